//! The canonical text of definitions: what [`parse`](super::parse) reads back as the same tree.
//!
//! It is the form stored in the log, so it must not change: one statement per line, four blanks per
//! level, only the parentheses that are needed, braces opened to a column per line where one line
//! would be longer than [`LINE`] characters.

use super::expression::{Precedence, operator_form};
use super::lexer::is_plain_name;
use super::parser::RESERVED;
use super::tree::*;
use fabius_value::moment_text;
use std::fmt::{self, Display, Write};

/// Where a line of columns is broken.
const LINE: usize = 100;

struct Printer<'f, 'a> {
    to: &'f mut fmt::Formatter<'a>,
    level: usize,
}

macro_rules! display {
    ($($node:ty => $method:ident;)*) => {
        $(impl Display for $node {
            /// The canonical text.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                Printer { to: f, level: 0 }.$method(self)
            }
        })*
    };
}
display! {
    TableDefinition => table;
    ProcedureDefinition => procedure;
    Statement => statement;
}

impl Display for Definition {
    /// The canonical text, ending with a line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Definition::Table(table) => table.fmt(f),
            Definition::Procedure(procedure) => procedure.fmt(f),
            Definition::Drop(DropDefinition { what: Dropped::Table, name, .. }) => {
                writeln!(f, "drop table {name}")
            }
            Definition::Drop(DropDefinition { what: Dropped::Procedure, name, .. }) => {
                writeln!(f, "drop procedure {name}")
            }
        }
    }
}

impl Printer<'_, '_> {
    fn line(&mut self) -> fmt::Result {
        write!(self.to, "{:width$}", "", width = 4 * self.level)
    }

    fn table(&mut self, table: &TableDefinition) -> fmt::Result {
        writeln!(self.to, "table {} {{", table.name)?;
        for column in &table.columns {
            writeln!(self.to, "    {column},")?;
        }
        if !table.primary_key.is_empty() {
            let using = if table.hash { " using hash" } else { "" };
            writeln!(self.to, "    primary key ({}){using},", list(&table.primary_key))?;
        }
        for index in &table.indexes {
            let unique = if index.unique { "unique " } else { "" };
            writeln!(self.to, "    {unique}index {} ({}),", index.name, list(&index.columns))?;
        }
        writeln!(self.to, "}}")
    }

    fn procedure(&mut self, procedure: &ProcedureDefinition) -> fmt::Result {
        write!(self.to, "procedure {}({})", procedure.name, list(&procedure.parameters))?;
        match &procedure.results {
            Results::None => {}
            Results::One(ty) => write!(self.to, " -> {ty}")?,
            Results::Named(results) => write!(self.to, " -> ({})", list(results))?,
        }
        self.to.write_str(" ")?;
        self.block(&procedure.body)?;
        self.to.write_str("\n")
    }

    fn block(&mut self, block: &Block) -> fmt::Result {
        self.to.write_str("{\n")?;
        self.level += 1;
        for statement in block {
            self.line()?;
            self.statement(statement)?;
            self.to.write_str("\n")?;
        }
        self.level -= 1;
        self.line()?;
        self.to.write_str("}")
    }

    fn statement(&mut self, statement: &Statement) -> fmt::Result {
        match &statement.kind {
            StatementKind::Let { name, mutable, ty, value } => {
                write!(self.to, "{} {name}", if *mutable { "var" } else { "let" })?;
                if let Some(ty) = ty {
                    write!(self.to, ": {ty}")?;
                }
                write!(self.to, " = {value}")
            }
            StatementKind::Assign { target, operator, value } => {
                let operator = operator.map_or("", |operator| operator_form(operator).0);
                write!(self.to, "{target} {operator}= {value}")
            }
            StatementKind::Require { condition, failure } => {
                write!(self.to, "require {condition}, {failure}")
            }
            StatementKind::Insert { table, columns, upsert } => {
                self.columns(&format!("{} {table}", if *upsert { "upsert" } else { "insert" }), columns)
            }
            StatementKind::Update { row, columns } => self.columns(&format!("update {row}"), columns),
            StatementKind::Delete { row } => write!(self.to, "delete {row}"),
            StatementKind::Append { list: to, values } => write!(self.to, "append {to} ({})", list(values)),
            StatementKind::Sort { list: of, keys } => {
                let by = if keys.iter().any(|key| key.field.is_some()) { " by" } else { "" };
                let keys: Vec<String> = keys.iter().map(SortKey::to_string).collect();
                write!(self.to, "sort {of}{by}{}", keys.join(","))
            }
            StatementKind::If { arms, otherwise } => {
                for (at, (condition, block)) in arms.iter().enumerate() {
                    write!(self.to, "{}if {condition} ", if at > 0 { " else " } else { "" })?;
                    self.block(block)?;
                }
                match otherwise {
                    None => Ok(()),
                    Some(block) => {
                        self.to.write_str(" else ")?;
                        self.block(block)
                    }
                }
            }
            StatementKind::ForRange { variable, from, to, body } => {
                write!(self.to, "for {variable} in {from} to {to} ")?;
                self.block(body)
            }
            StatementKind::ForEach { variable, scan, body } => {
                write!(self.to, "for {variable} in {scan} ")?;
                self.block(body)
            }
            StatementKind::Return { values } => write!(self.to, "return {}", list(values)),
        }
    }

    fn columns(&mut self, head: &str, columns: &[(Name, Expression)]) -> fmt::Result {
        let columns: Vec<String> = columns.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let line = format!("{head} {{ {} }}", columns.join(", "));
        if 4 * self.level + line.chars().count() <= LINE {
            return self.to.write_str(&line);
        }
        writeln!(self.to, "{head} {{")?;
        self.level += 1;
        for column in columns {
            self.line()?;
            writeln!(self.to, "{column},")?;
        }
        self.level -= 1;
        self.line()?;
        self.to.write_str("}")
    }
}

fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl Display for Name {
    /// The name, in backquotes where it would not be read as itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        name(&self.text, f)
    }
}

fn name(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if is_plain_name(text) && !RESERVED.contains(&text) {
        f.write_str(text)
    } else {
        write!(f, "`{}`", text.replace('`', "``"))
    }
}

impl Display for ColumnDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.scalar)
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.ty)
    }
}

impl Display for ScalarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.data_type, if self.nullable { " null" } else { "" })
    }
}

impl Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            TypeKind::Scalar(scalar) => scalar.fmt(f),
            TypeKind::List(scalar) => write!(f, "list of {scalar}"),
            TypeKind::Records(fields) => write!(f, "list of ({})", list(fields)),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Variable(name) => name.fmt(f),
            Target::Column { row, column } => write!(f, "{row}.{column}"),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Message::Fixed(message) => write!(f, "\"{}\"", message.replace('"', "\"\""))?,
            Message::Computed(message) => message.fmt(f)?,
        }
        if let Some(state) = self.state {
            write!(f, ", sqlstate '{state}'")?;
        }
        for (word, value) in [("detail", &self.detail), ("hint", &self.hint)] {
            if let Some(value) = value {
                write!(f, ", {word} {value}")?;
            }
        }
        Ok(())
    }
}

impl Display for SortKey {
    /// With a blank before each word.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, " {field}")?;
        }
        if self.descending {
            f.write_str(" descending")?;
        }
        match (self.descending, self.nulls_first) {
            (false, true) => f.write_str(" nulls first"),
            (true, false) => f.write_str(" nulls last"),
            _ => Ok(()),
        }
    }
}

impl Display for RowReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match &self.key {
            None => Ok(()),
            Some(key) => write!(f, "[{}]", list(key)),
        }
    }
}

impl Display for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if let Some(index) = &self.index {
            write!(f, " by {index}")?;
        }
        if let Some(range) = &self.range {
            range.fmt(f)?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " where {filter}")?;
        }
        if self.descending {
            f.write_str(" descending")?;
        }
        match &self.limit {
            Some(limit) => write!(f, " limit {limit}"),
            None => Ok(()),
        }
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = self.equal.iter().map(Expression::to_string).collect();
        if self.lower.is_some() || self.upper.is_some() {
            let mut part = String::new();
            if let Some(lower) = &self.lower {
                write!(part, "{} {}", lower.value, if lower.inclusive { "" } else { "<" })?;
            }
            part += "..";
            if let Some(upper) = &self.upper {
                write!(part, "{} {}", if upper.inclusive { "" } else { "<" }, upper.value)?;
            }
            parts.push(part);
        }
        write!(f, "[{}]", parts.join(", "))
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Boolean(value) => value.fmt(f),
            Literal::Integer(value) => value.fmt(f),
            Literal::Decimal(value) => value.fmt(f),
            Literal::Text(value) => write!(f, "'{}'", value.replace('\'', "''")),
            Literal::Bytea(bytes) => {
                f.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("'")
            }
            Literal::Date(days) => write!(f, "date '{}'", moment_text::date_text(*days)),
            Literal::Timestamp(micros) => write!(f, "timestamp '{}'", moment_text::timestamp_text(*micros)),
        }
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        expression(self, Precedence::Any, f)
    }
}

/// An expression as an operand of something that binds as tightly as `least`.
struct At<'a>(&'a Expression, Precedence);

impl Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        expression(self.0, self.1, f)
    }
}

fn precedence(kind: &ExpressionKind) -> Precedence {
    match kind {
        ExpressionKind::If { .. } => Precedence::Any,
        ExpressionKind::Not(_) => Precedence::Not,
        ExpressionKind::IsNull { .. } => Precedence::Is,
        ExpressionKind::Between { .. } => Precedence::Between,
        ExpressionKind::Binary(operator, ..) => operator_form(*operator).1,
        ExpressionKind::Negate(_) => Precedence::Negate,
        ExpressionKind::Cast { .. } => Precedence::Cast,
        _ => Precedence::Operand,
    }
}

fn expression(node: &Expression, least: Precedence, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if precedence(&node.kind) < least {
        return write!(f, "({})", At(node, Precedence::Any));
    }
    let not = |negated: bool| if negated { "not " } else { "" };
    match &node.kind {
        ExpressionKind::Literal(literal) => literal.fmt(f),
        ExpressionKind::Variable(text) => name(text, f),
        ExpressionKind::Column { row, optional, column } => {
            write!(f, "{row}{}.{column}", if *optional { "?" } else { "" })
        }
        ExpressionKind::Element { list, index } => write!(f, "{list}[{index}]"),
        ExpressionKind::Exists(row) => write!(f, "exists {row}"),
        ExpressionKind::Call { function, distinct, arguments } => {
            write!(f, "{function}({}{})", if *distinct { "distinct " } else { "" }, list(arguments))
        }
        // No form has more parentheses than the text it was read from, which may have been at the bound.
        ExpressionKind::Negate(operand) => {
            let blank = if matches!(operand.kind, ExpressionKind::Negate(_)) { " " } else { "" };
            write!(f, "-{blank}{}", At(operand, Precedence::Negate))
        }
        ExpressionKind::Not(operand) => write!(f, "not {}", At(operand, Precedence::Not)),
        ExpressionKind::IsNull { operand, negated } => {
            write!(f, "{} is {}null", At(operand, Precedence::Is), not(*negated))
        }
        ExpressionKind::Between { operand, low, high, negated } => {
            let tighter = Precedence::Between.tighter();
            let operand = At(operand, Precedence::Between);
            write!(f, "{operand} {}between {} and {}", not(*negated), At(low, tighter), At(high, tighter))
        }
        ExpressionKind::Binary(operator, left, right) => {
            let (symbol, own) = operator_form(*operator);
            let chained = if own == Precedence::Comparison { own.tighter() } else { own };
            write!(f, "{} {symbol} {}", At(left, chained), At(right, own.tighter()))
        }
        ExpressionKind::If { arms, otherwise } => {
            for (condition, value) in arms {
                write!(f, "if {condition} then {value} else ")?;
            }
            expression(otherwise, Precedence::Or, f)
        }
        ExpressionKind::Cast { operand, data_type } => {
            write!(f, "{}::{data_type}", At(operand, Precedence::Cast))
        }
        ExpressionKind::EmptyList => f.write_str("[]"),
    }
}
