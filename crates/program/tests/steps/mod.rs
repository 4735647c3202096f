//! The steps of a program, one per line, for golden files: `line step`.

use fabius_program::catalog::Catalog;
use fabius_program::ir::*;
use fabius_program::syntax::expression::operator_form;
use fabius_value::{ColumnId, SqlState};
use std::fmt::Write;

pub fn dump(program: &Program, catalog: &Catalog) -> String {
    let mut dump = Dump { program, catalog, text: String::new(), level: 0 };
    dump.block(&program.body);
    dump.text
}

struct Dump<'a> {
    program: &'a Program,
    catalog: &'a Catalog,
    text: String,
    level: usize,
}

impl Dump<'_> {
    fn block(&mut self, block: &Block) {
        self.level += 1;
        for step in block {
            let line = self.step(&step.kind);
            let at = format!("{}:{}", step.id.0, step.line);
            writeln!(self.text, "{at:6}{:indent$}{line}", "", indent = 2 * (self.level - 1)).unwrap();
            match &step.kind {
                StepKind::If { then, otherwise, .. } => {
                    self.block(then);
                    if !otherwise.is_empty() {
                        writeln!(self.text, "{:6}{:indent$}else", "", "", indent = 2 * (self.level - 1))
                            .unwrap();
                        self.block(otherwise);
                    }
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => self.block(body),
                StepKind::ForScan { scan, body, .. } => {
                    if let Some(filter) = &scan.filter {
                        self.block(&filter.steps);
                        let condition = self.expression(&filter.condition);
                        writeln!(
                            self.text,
                            "{:6}{:indent$}filter {condition}",
                            "",
                            "",
                            indent = 2 * self.level
                        )
                        .unwrap();
                    }
                    self.block(body);
                }
                _ => {}
            }
        }
        self.level -= 1;
    }

    fn step(&self, kind: &StepKind) -> String {
        let list = |values: &[Expression]| {
            values.iter().map(|value| self.expression(value)).collect::<Vec<_>>().join(", ")
        };
        match kind {
            StepKind::Assign { variable, value } => {
                format!("{} := {}", self.typed(*variable), self.expression(value))
            }
            StepKind::Clear { list } => format!("Clear {}", self.name(*list)),
            StepKind::Sort { list, keys } => format!("Sort {} {keys:?}", self.name(*list)),
            StepKind::Append { list: to, values } => format!("Append {} ({})", self.name(*to), list(values)),
            StepKind::Locate { row, key } => format!("Locate r{} [{}]", row.0, list(key)),
            StepKind::RequireRow { row } => format!("RequireRow r{}", row.0),
            StepKind::Exists { variable, row } => format!("Exists r{} -> {}", row.0, self.name(*variable)),
            StepKind::Read { row, columns } => {
                let columns = columns.iter().map(|(column, variable)| {
                    format!("{} -> {}", self.column(*row, *column), self.typed(*variable))
                });
                format!("Read r{} {{ {} }}", row.0, columns.collect::<Vec<_>>().join(", "))
            }
            StepKind::Require { condition, failure } => {
                let mut line = format!("Require {}", self.expression(condition));
                match &failure.message {
                    Message::Fixed(message) => write!(line, " {message:?}").unwrap(),
                    Message::Computed(message) => write!(line, " {}", self.expression(message)).unwrap(),
                }
                if failure.state != SqlState::RAISED {
                    write!(line, " {}", failure.state).unwrap();
                }
                for (word, value) in [("detail", &failure.detail), ("hint", &failure.hint)] {
                    if let Some(value) = value {
                        write!(line, " {word} {}", self.expression(value)).unwrap();
                    }
                }
                line
            }
            StepKind::If { condition, .. } => format!("If {}", self.expression(condition)),
            StepKind::ForList { list, fields, .. } => {
                let fields: Vec<String> = fields.iter().map(|field| self.typed(*field)).collect();
                format!("ForList {} ({})", self.name(*list), fields.join(", "))
            }
            StepKind::ForRange { variable, from, to, .. } => {
                format!(
                    "ForRange {} {} to {}",
                    self.name(*variable),
                    self.expression(from),
                    self.expression(to)
                )
            }
            StepKind::ForScan { row, scan, .. } => {
                let mut line =
                    format!("ForScan r{} index {:?} [{}]", row.0, scan.index.map(|i| i.0), list(&scan.equal));
                for (bound, sign) in [(&scan.lower, ">"), (&scan.upper, "<")] {
                    if let Some(bound) = bound {
                        let equal = if bound.inclusive { "=" } else { "" };
                        write!(line, " {sign}{equal} {}", self.expression(&bound.value)).unwrap();
                    }
                }
                if scan.descending {
                    line += " descending";
                }
                if let Some(limit) = &scan.limit {
                    write!(line, " limit {}", self.expression(limit)).unwrap();
                }
                line
            }
            StepKind::Insert { row, values } => format!("Insert r{} ({})", row.0, list(values)),
            StepKind::Update { row, sets } => {
                let sets = sets.iter().map(|(column, value)| {
                    format!("{}: {}", self.column(*row, *column), self.expression(value))
                });
                format!("Update r{} {{ {} }}", row.0, sets.collect::<Vec<_>>().join(", "))
            }
            StepKind::Delete { row } => format!("Delete r{}", row.0),
            StepKind::Return { values } => {
                let values = values.iter().map(|value| match value {
                    Returned::Scalar(value) => self.expression(value),
                    Returned::List(list) => format!("list {}", self.name(*list)),
                });
                format!("Return {}", values.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn name(&self, variable: VariableId) -> String {
        format!("<{}>", self.program.variables[usize::from(variable.0)].name)
    }

    fn typed(&self, variable: VariableId) -> String {
        match &self.program.variables[usize::from(variable.0)].ty {
            Type::Scalar(scalar) => {
                let null = if scalar.nullable { " null" } else { "" };
                format!("{}: {}{null}", self.name(variable), scalar.data_type)
            }
            Type::List(_) => self.name(variable),
        }
    }

    fn column(&self, row: RowId, column: ColumnId) -> &str {
        let table = self.program.rows[usize::from(row.0)].table;
        &self.catalog.table(table).columns[usize::from(column.0)].name
    }

    fn expression(&self, expression: &Expression) -> String {
        let of = |expression: &Expression| self.expression(expression);
        let data_type = expression.ty.data_type;
        match &expression.kind {
            ExpressionKind::Constant(value) => format!("{value}:{data_type}"),
            ExpressionKind::Variable(variable) => self.name(*variable),
            ExpressionKind::Unary(UnaryOperator::Negate, operand) => format!("-{}", of(operand)),
            ExpressionKind::Unary(UnaryOperator::Not, operand) => format!("not {}", of(operand)),
            ExpressionKind::Unary(UnaryOperator::IsNull, operand) => format!("isnull({})", of(operand)),
            ExpressionKind::Binary(operator, left, right) => {
                let ty = if data_type == fabius_value::DataType::Boolean {
                    String::new()
                } else {
                    format!(":{data_type}")
                };
                format!("({} {} {}){ty}", of(left), operator_form(*operator).0, of(right))
            }
            ExpressionKind::Cast(operand) => format!("cast({} as {data_type})", of(operand)),
            ExpressionKind::Case { arms, otherwise } => {
                let arms: Vec<String> = arms
                    .iter()
                    .map(|(condition, value)| format!("{} ? {} : ", of(condition), of(value)))
                    .collect();
                format!("({}{}):{data_type}", arms.concat(), of(otherwise))
            }
            ExpressionKind::Call(function, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(of).collect();
                format!("{function:?}({}):{data_type}", arguments.join(", "))
            }
            ExpressionKind::Aggregate { aggregate, list, field } => {
                format!("{aggregate:?}({}.{field}):{data_type}", self.name(*list))
            }
            ExpressionKind::Element { list, index, field } => {
                format!("{}[{}].{field}", self.name(*list), of(index))
            }
            ExpressionKind::Now => "now()".into(),
            ExpressionKind::Random => "random()".into(),
        }
    }
}
