//! Expressions of a kind.

use super::KEYS;
use super::scope::{Kind, Term};
use super::statement::Writer;
use super::values::key_literal;
use fabius_program::ir::Function;
use fabius_program::operation::function::{SIGNATURES, Signature};
use fabius_value::{ColumnId, DataType, TableId};

/// Of the keys, those that procedures of few statements mostly write to.
const FEW_KEYS: u64 = 2;

fn solid(text: impl Into<String>) -> Term {
    Term { text: text.into(), nullable: false }
}

impl Writer<'_> {
    /// An expression of a kind, of at most `depth` operators on a path.
    pub fn expression(&mut self, kind: Kind, depth: usize) -> Term {
        if depth == 0 || self.random.chance(1, 4) {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        match (kind, self.random.index(8)) {
            (_, 0) => {
                let condition = self.condition(depth.min(1)).text;
                let (yes, no) = (self.expression(kind, depth), self.expression(kind, depth));
                Term {
                    text: format!("(if {condition} then {} else {})", yes.text, no.text),
                    nullable: yes.nullable || no.nullable,
                }
            }
            (_, 1) => {
                let (first, second) = (self.expression(kind, depth), self.expression(kind, 0));
                let function = ["coalesce", "least", "greatest"][self.random.index(3)];
                Term {
                    text: format!("{function}({}, {})", first.text, second.text),
                    nullable: first.nullable && second.nullable,
                }
            }
            (_, 6) => self.call(kind, depth),
            (Kind::Boolean, _) => self.condition(depth),
            (Kind::Integer, 2) => {
                let kind = [Kind::Text, Kind::Bytes][self.random.index(2)];
                let text = self.expression(kind, depth);
                Term { text: format!("length({})", text.text), nullable: text.nullable }
            }
            (Kind::Integer, 3) => self.operator(kind, depth, &["*", "%", "/"]),
            (Kind::Integer, 4) => {
                let number = self.expression(Kind::Numeric, depth);
                Term { text: format!("({})::int", number.text), nullable: number.nullable }
            }
            (Kind::Integer | Kind::Numeric | Kind::Double, 5) => {
                let number = self.expression(kind, depth);
                let function = ["abs(", "-("][self.random.index(2)];
                Term { text: format!("{function}{})", number.text), nullable: number.nullable }
            }
            (Kind::Numeric, 2 | 3) => {
                let product = self.operator(kind, depth, &["*", "/"]);
                Term { text: format!("({})::numeric(14, 2)", product.text), nullable: product.nullable }
            }
            (Kind::Numeric, 4) if self.random.chance(1, 2) => {
                let kind = [Kind::Date, Kind::Timestamp][self.random.index(2)];
                let (field, moment) = (self.field(), self.expression(kind, depth));
                let field = if kind == Kind::Date { "'day'".into() } else { field };
                Term {
                    text: format!("extract({field}, {})::numeric(38, 8)", moment.text),
                    nullable: moment.nullable,
                }
            }
            (Kind::Numeric, 4) => self.expression(Kind::Integer, depth).decimal(),
            (Kind::Double, 2) => {
                let number = self.expression(Kind::Numeric, depth);
                Term { text: format!("({})::double precision", number.text), nullable: number.nullable }
            }
            (Kind::Double, 3) => self.operator(kind, depth, &["*"]),
            (Kind::Integer | Kind::Numeric | Kind::Double, _) => self.operator(kind, depth, &["+", "-"]),
            (Kind::Text | Kind::Bytes, 2 | 3) => {
                let (left, right) = (self.expression(kind, depth), self.expression(kind, depth));
                Term {
                    text: format!("({} || {})", left.text, right.text),
                    nullable: left.nullable || right.nullable,
                }
            }
            (Kind::Text, 4) => {
                // Bytes have no cast to text.
                let kind = match Kind::USUAL[self.random.index(Kind::USUAL.len())] {
                    Kind::Bytes => Kind::Timestamp,
                    kind => kind,
                };
                let value = self.expression(kind, depth);
                Term { text: format!("({})::text", value.text), nullable: value.nullable }
            }
            (Kind::Text, 5) => {
                let text = self.expression(kind, depth);
                let function = ["lower", "upper"][self.random.index(2)];
                Term { text: format!("{function}({})", text.text), nullable: text.nullable }
            }
            (Kind::Bytes, 4) => {
                let (bytes, by) = (self.expression(kind, depth), self.expression(kind, 0));
                let from = 1 + self.random.below(4);
                Term {
                    text: format!("overlay({}, {}, {from})", bytes.text, by.text),
                    nullable: bytes.nullable || by.nullable,
                }
            }
            (Kind::Bytes, 5) => {
                let digits = self.random.below(256);
                solid(format!("('\\x{digits:02x}' || '0a')::bytea"))
            }
            (Kind::Text | Kind::Bytes, _) => {
                let text = self.expression(kind, depth);
                let (from, count) = (self.random.below(4), self.random.below(6));
                Term { text: format!("substring({}, {from}, {count})", text.text), nullable: text.nullable }
            }
            (Kind::Date, 2) => {
                let moment = self.expression(Kind::Timestamp, depth);
                Term { text: format!("({})::date", moment.text), nullable: moment.nullable }
            }
            (Kind::Timestamp, 2 | 3) => {
                let date = self.expression(Kind::Date, depth);
                Term { text: format!("({})::timestamp", date.text), nullable: date.nullable }
            }
            (Kind::Timestamp, _) => self.call(kind, depth),
            (Kind::Date, _) => {
                let (date, days) = (self.expression(kind, depth), self.expression(Kind::Integer, 0));
                let operator = ["+", "-"][self.random.index(2)];
                Term {
                    text: format!("({} {operator} ({})::int % 30)", date.text, days.text),
                    nullable: date.nullable || days.nullable,
                }
            }
        }
    }

    /// A function of fixed types, or of numerics, that gives the kind.
    fn call(&mut self, kind: Kind, depth: usize) -> Term {
        if kind == Kind::Numeric {
            let number = self.expression(kind, depth);
            let function = ["round", "round_even", "trunc", "floor", "ceil", "sign"][self.random.index(6)];
            let digits = match function {
                "round_even" => [", 0", ", 3"][self.random.index(2)],
                "round" | "trunc" => ["", ", 1", ", -1"][self.random.index(3)],
                _ => "",
            };
            return Term {
                text: format!("{function}({}{digits})::numeric(38, 8)", number.text),
                nullable: number.nullable,
            };
        }
        let lines: Vec<&Signature> = SIGNATURES.iter().filter(|line| Kind::of(line.result) == kind).collect();
        let Some(line) = self.pick(&lines) else { return self.leaf(kind) };
        let mut nullable = false;
        let mut arguments = Vec::new();
        for (at, data_type) in line.parameters.iter().enumerate() {
            if at == 0 && matches!(line.function, Function::DatePart | Function::DateTruncate) {
                arguments.push(self.field());
                continue;
            }
            let kind = Kind::of(*data_type);
            let value = self.expression(kind, if at == 0 { depth } else { 0 });
            nullable |= value.nullable;
            // Counts and lengths are small, so that texts are; codes mostly are of letters.
            arguments.push(match (kind, line.function) {
                (_, Function::PythonFormatText) if at == 1 => "'*^8'".into(),
                (
                    _,
                    Function::PythonFormatInt | Function::PythonFormatDouble | Function::PythonFormatDecimal,
                ) if at == 1 => "'+012.2f'".into(),
                (Kind::Text, Function::PythonFormatDecimal) => "'-1234.565'".into(),
                (_, Function::PythonQuotient | Function::PythonQuantize) if at == 0 => "'-12.5'".into(),
                (_, Function::PythonQuotient) => "'0.3'".into(),
                (_, Function::PythonTimedelta) => "'2 mons -1 days +00:00:07.5'".into(),
                (_, Function::PythonHas) if at == 1 => "'isalpha'".into(),
                (_, Function::PythonQuantize) if at == 2 => "'ROUND_HALF_UP'".into(),
                (Kind::Integer, Function::CharacterOf) => format!("90 + ({}) % 8", value.text),
                (Kind::Integer, Function::AddMicros) => format!("({}) % 6 * 1000000", value.text),
                (Kind::Integer, _) => format!("({}) % 6", value.text),
                _ => value.text,
            });
        }
        Term { text: format!("{}({})", line.name, arguments.join(", ")), nullable }
    }

    /// The name of a field that both dates and timestamps have, and that one can be cut at.
    fn field(&mut self) -> String {
        ["'year'", "'month'", "'week'", "'day'", "'hour'", "'second'"][self.random.index(6)].into()
    }

    fn operator(&mut self, kind: Kind, depth: usize, operators: &[&str]) -> Term {
        let operator = operators[self.random.index(operators.len())];
        let left = self.expression(kind, depth);
        // A divisor is rarely anything but a number other than zero.
        let right = if matches!(operator, "/" | "%") && self.random.chance(9, 10) {
            solid(format!("{}", 1 + self.random.below(5)))
        } else {
            self.expression(kind, depth)
        };
        Term {
            text: format!("({} {operator} {})", left.text, right.text),
            nullable: left.nullable || right.nullable,
        }
    }

    /// A literal, a variable, a column, an aggregate.
    pub fn leaf(&mut self, kind: Kind) -> Term {
        for _ in 0..2 {
            let found = match self.random.index(8) {
                0..=3 => self.scalar(kind),
                4 | 5 => self.column(kind),
                6 => self.aggregate(kind),
                _ => None,
            };
            if let Some(term) = found {
                return term;
            }
        }
        self.literal(kind)
    }

    fn literal(&mut self, kind: Kind) -> Term {
        match kind {
            Kind::Double if self.random.chance(1, 12) => return solid("random()"),
            Kind::Integer if self.random.chance(1, 24) => return solid("(random() * 10)::int"),
            Kind::Date if self.random.chance(1, 12) => return solid("now()::date"),
            Kind::Timestamp if self.random.chance(1, 12) => return solid("now()"),
            Kind::Bytes if self.random.chance(1, 4) => return solid("x''"),
            _ => {}
        }
        let number = self.random.below(10);
        solid(match kind {
            Kind::Boolean => ["true", "false"][self.random.index(2)].into(),
            Kind::Integer => format!("{number}"),
            Kind::Numeric => format!("{number}.{:02}", self.random.below(100)),
            Kind::Double => format!("{number}.25::double precision"),
            Kind::Text => format!("'k{}'", self.random.below(KEYS)),
            Kind::Bytes | Kind::Date | Kind::Timestamp => key_literal(kind, number),
        })
    }

    fn scalar(&mut self, kind: Kind) -> Option<Term> {
        let known = self.scope.scalars.iter().filter(|scalar| scalar.kind == kind);
        let known: Vec<Term> =
            known.map(|scalar| Term { text: scalar.name.clone(), nullable: scalar.nullable }).collect();
        self.pick(&known)
    }

    /// A column of the row that a loop is at, or of a row found by key.
    fn column(&mut self, kind: Kind) -> Option<Term> {
        let rows = self.scope.rows.clone();
        if let Some((name, table)) = self.pick(&rows)
            && self.random.chance(2, 3)
        {
            let (column, nullable) = self.column_of(table, kind)?;
            return Some(Term { text: format!("{name}.{column}"), nullable });
        }
        if self.in_filter {
            return None;
        }
        let table = self.any_table();
        let (column, nullable) = self.column_of(table, kind)?;
        let row = self.row_by_key(table);
        // What must be there often is not: mostly ask for null then.
        Some(if self.random.chance(1, 24) {
            Term { text: format!("{row}.{column}"), nullable }
        } else {
            let value = Term { text: format!("{row}?.{column}"), nullable: true };
            let otherwise = self.literal(kind).text;
            match self.random.chance(2, 3) {
                true => solid(format!("coalesce({}, {otherwise})", value.text)),
                false => value,
            }
        })
    }

    fn column_of(&mut self, table: TableId, kind: Kind) -> Option<(String, bool)> {
        let columns = self.catalog.table(table).columns.iter();
        let columns = columns.filter(|column| Kind::of(column.data_type) == kind);
        let columns: Vec<(String, bool)> =
            columns.map(|column| (column.name.clone(), column.nullable)).collect();
        self.pick(&columns)
    }

    fn aggregate(&mut self, kind: Kind) -> Option<Term> {
        let lists = self.scope.lists.clone();
        let list = self.pick(&lists)?;
        if kind == Kind::Integer && self.random.chance(1, 2) {
            return Some(solid(format!("count({})", list.name)));
        }
        let fields: Vec<_> = list.fields.iter().filter(|(_, of, _)| *of == kind).cloned().collect();
        let (field, ..) = self.pick(&fields)?;
        let dotted = if field.is_empty() { String::new() } else { format!(".{field}") };
        let of_numbers = matches!(kind, Kind::Integer | Kind::Numeric | Kind::Double);
        Some(match self.random.index(5) {
            0 if of_numbers => Term { text: format!("sum({}{dotted})", list.name), nullable: true },
            1 if kind == Kind::Integer => solid(format!("count(distinct {}{dotted})", list.name)),
            2 if matches!(kind, Kind::Numeric | Kind::Double) => {
                Term { text: format!("avg({}{dotted})", list.name), nullable: true }
            }
            3 if kind != Kind::Boolean => {
                let function = ["min", "max"][self.random.index(2)];
                Term { text: format!("{function}({}{dotted})", list.name), nullable: true }
            }
            _ => {
                Term { text: format!("{}[{}]{dotted}", list.name, 1 + self.random.below(3)), nullable: true }
            }
        })
    }

    /// A condition.
    pub fn condition(&mut self, depth: usize) -> Term {
        match self.random.index(if depth == 0 { 4 } else { 7 }) {
            0..=2 => {
                let kind = Kind::USUAL[self.random.index(Kind::USUAL.len())];
                let depth = depth.min(1);
                // A date is compared with a timestamp as one.
                let other = match kind {
                    Kind::Timestamp if self.random.chance(1, 4) => Kind::Date,
                    _ => kind,
                };
                let (left, right) = (self.expression(kind, depth), self.expression(other, 0));
                let operators = ["=", "<>", "<", "<=", ">", ">=", "is distinct from", "is not distinct from"];
                let operator = operators[self.random.index(operators.len())];
                let nullable = !operator.starts_with("is") && (left.nullable || right.nullable);
                Term { text: format!("{} {operator} {}", left.text, right.text), nullable }
            }
            3 => match self.random.index(3) {
                0 if !self.in_filter => {
                    let table = self.any_table();
                    solid(format!("exists {}", self.row_by_key(table)))
                }
                1 => {
                    let value = self.leaf(Kind::Text).text;
                    solid(format!("({value}) is not null"))
                }
                _ => self.leaf(Kind::Boolean),
            },
            4 => {
                let inner = self.condition(depth - 1);
                Term { text: format!("not ({})", inner.text), nullable: inner.nullable }
            }
            _ => {
                let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
                let operator = ["and", "or"][self.random.index(2)];
                Term {
                    text: format!("({}) {operator} ({})", left.text, right.text),
                    nullable: left.nullable || right.nullable,
                }
            }
        }
    }

    /// `t0[p1]`, mostly with keys that may be there.
    pub fn row_by_key(&mut self, table: TableId) -> String {
        let schema = self.catalog.table(table).clone();
        let values: Vec<String> =
            schema.primary_key.iter().map(|column| self.key_value(schema.data_type(*column))).collect();
        format!("{}[{}]", schema.name, values.join(", "))
    }

    /// A value for a key column.
    pub fn key_value(&mut self, data_type: DataType) -> String {
        let kind = Kind::of(data_type);
        if self.is_brief && self.random.chance(2, 3) {
            return key_literal(kind, self.random.below(FEW_KEYS));
        }
        let keys = self.scope.scalars.iter().filter(|scalar| scalar.key && scalar.kind == kind);
        let keys: Vec<String> = keys.map(|scalar| scalar.name.clone()).collect();
        match self.random.index(12) {
            0..=7 => {
                if let Some(key) = self.pick(&keys) {
                    return key;
                }
            }
            8 if kind == Kind::Integer => return format!("({}) % {KEYS}", self.expression(kind, 1).text),
            8 if matches!(kind, Kind::Bytes | Kind::Date | Kind::Timestamp) => {
                return self.expression(kind, 1).text;
            }
            _ => {}
        }
        key_literal(kind, self.random.below(KEYS))
    }

    /// A value for a column, brought into its range most of the time.
    pub fn value_for(&mut self, table: TableId, column: ColumnId, depth: usize) -> String {
        let schema = self.catalog.table(table).columns[usize::from(column.0)].clone();
        let kind = Kind::of(schema.data_type);
        let value = self.expression(kind, depth);
        let text = match (schema.data_type, kind) {
            // What is written again and again must not double each time.
            (DataType::Text { limit: None }, _) | (_, Kind::Bytes) => {
                format!("substring({}, 1, 20)", value.text)
            }
            (_, Kind::Text) if self.random.chance(9, 10) => format!("substring({}, 1, 6)", value.text),
            (DataType::SmallInt, _) if self.random.chance(9, 10) => format!("({}) % 100", value.text),
            (_, Kind::Integer) if self.random.chance(1, 2) => format!("({}) % 1000", value.text),
            (_, Kind::Numeric) if self.random.chance(1, 2) => format!("({}) % 1000.00", value.text),
            _ => value.text,
        };
        if value.nullable && !schema.nullable && self.random.chance(14, 15) {
            let otherwise = self.literal(kind).text;
            return format!("coalesce({text}, {otherwise})");
        }
        text
    }
}

impl Term {
    /// An integer where a numeric is wanted.
    fn decimal(self) -> Term {
        Term { text: format!("({})::numeric(20, 2)", self.text), nullable: self.nullable }
    }
}
