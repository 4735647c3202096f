//! The steps of a transaction over future values, and the programs that are made of them.
//!
//! A transaction is a list of steps. Committing it is the program of all of them. Asking for a value is the program of
//! those that the value depends on, and no others: reads that are parts of it, and writes before such a read that may
//! be of the same row.
//!
//! ```text
//! 0  read   stock[5].quantity                    asked: 0 >= 4           program: 0
//! 1  write  stock[5] { quantity: 0 - 4 }
//! 2  read   stock[6].quantity                    asked: 2                program: 2      [6] is not [5]
//! 3  read   stock[5].quantity                    asked: 3                program: 0, 1, 3
//! ```
//!
//! Constants are parameters, and variables are numbered by their place in the program, so that questions that differ in
//! values only are one program.

use super::expression::{FutureValue, Node};
use super::row_range::RowRange;
use fabius_engine::Definitions;
use fabius_program::compose::{CHANGED, scalar_type};
use fabius_program::syntax::tree::{
    BinaryOperator, Block, Bound, ColumnDefinition, Expression, ExpressionKind, Failure, Literal, Name,
    Parameter, ProcedureDefinition, Range, Results, RowReference, ScalarName, Scan, Statement, StatementKind,
    Target, TypeKind, TypeName,
};
use fabius_program::syntax::{Source, Span};
use fabius_value::{DataType, Error, Result, SqlState, TableSchema, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What a transaction has done, in order.
#[derive(Debug)]
pub(super) enum Step {
    /// Columns of a row, null if it is not there; without columns, whether it is.
    Read {
        table: String,
        key: Vec<FutureValue>,
        columns: Vec<String>,
    },
    /// Columns of the first row of a range, null if there is none.
    First {
        range: RowRange,
        columns: Vec<(String, DataType)>,
    },
    /// Columns of all rows of a range.
    Rows {
        range: RowRange,
        columns: Vec<(String, DataType)>,
    },
    Update {
        table: String,
        key: Vec<FutureValue>,
        columns: Vec<(String, FutureValue)>,
    },
    Insert {
        table: String,
        columns: Vec<(String, FutureValue)>,
    },
    Delete {
        table: String,
        key: Vec<FutureValue>,
    },
    /// Something that was told.
    Observed {
        value: FutureValue,
        data_type: DataType,
        answer: Value,
    },
}

/// A program, and what it is called with.
pub(super) struct Made {
    pub(super) definition: ProcedureDefinition,
    pub(super) arguments: Vec<Value>,
}

impl Step {
    fn for_each_step(&self, visit: &mut impl FnMut(usize)) {
        let mut of = |value: &FutureValue| value.for_each_step(visit);
        match self {
            Step::Read { key, .. } | Step::Delete { key, .. } => key.iter().for_each(of),
            Step::First { range, .. } | Step::Rows { range, .. } => range.values().for_each(of),
            Step::Update { key, columns, .. } => {
                key.iter().chain(columns.iter().map(|(_, value)| value)).for_each(of);
            }
            Step::Insert { columns, .. } => columns.iter().for_each(|(_, value)| of(value)),
            Step::Observed { value, .. } => of(value),
        }
    }

    /// The table that it reads or writes.
    fn table(&self) -> Option<&str> {
        match self {
            Step::Read { table, .. }
            | Step::Update { table, .. }
            | Step::Insert { table, .. }
            | Step::Delete { table, .. } => Some(table),
            Step::First { range, .. } | Step::Rows { range, .. } => Some(&range.table),
            Step::Observed { .. } => None,
        }
    }

    fn writes(&self) -> bool {
        matches!(self, Step::Update { .. } | Step::Insert { .. } | Step::Delete { .. })
    }

    /// The key of its row, as far as it is of one row; of a table with this schema.
    fn key<'s>(&'s self, schema: Option<&TableSchema>) -> Option<Vec<&'s FutureValue>> {
        match self {
            Step::Read { key, .. } | Step::Update { key, .. } | Step::Delete { key, .. } => {
                Some(key.iter().collect())
            }
            Step::Insert { columns, .. } => {
                let schema = schema?;
                let value =
                    |name: &str| columns.iter().find(|(column, _)| column == name).map(|(_, value)| value);
                let key = schema.primary_key.iter();
                key.map(|column| value(&schema.columns[usize::from(column.0)].name)).collect()
            }
            Step::First { .. } | Step::Rows { .. } | Step::Observed { .. } => None,
        }
    }

    /// Whether a write may be of a row that this step reads or writes.
    fn may_meet(&self, write: &Step, definitions: &Definitions) -> bool {
        if self.table() != write.table() {
            return false;
        }
        let table = self.table().and_then(|name| definitions.catalog.find_table(name));
        let schema = table.map(|table| definitions.table(table).schema());
        match (self.key(schema.map(|schema| &**schema)), write.key(schema.map(|schema| &**schema))) {
            (Some(one), Some(other)) => !one.iter().zip(&other).any(|(one, other)| are_apart(one, other)),
            _ => true,
        }
    }
}

/// Whether two values are known, and differ.
fn are_apart(one: &FutureValue, other: &FutureValue) -> bool {
    let (Some(one), Some(other)) = (one.constant(), other.constant()) else { return false };
    match (one.as_integer(), other.as_integer(), one, other) {
        (Some(one), Some(other), ..) => one != other,
        (_, _, Value::Text(one), Value::Text(other)) => one != other,
        _ => false,
    }
}

/// The steps that values depend on.
pub(super) fn needed(steps: &[Step], values: &[FutureValue], definitions: &Definitions) -> BTreeSet<usize> {
    let mut needed = BTreeSet::new();
    let mut open = Vec::new();
    values.iter().for_each(|value| value.for_each_step(&mut |step| open.push(step)));
    while let Some(at) = open.pop() {
        if !needed.insert(at) {
            continue;
        }
        let step = &steps[at];
        step.for_each_step(&mut |step| open.push(step));
        let before = steps[..at].iter().enumerate();
        open.extend(
            before.filter(|(_, one)| one.writes() && step.may_meet(one, definitions)).map(|(at, _)| at),
        );
    }
    needed
}

/// The program of some steps, in order, which returns some values.
///
/// # Errors
/// `42804` for a constant that is no value of a column.
pub(super) fn program<'s>(
    steps: impl Iterator<Item = (usize, &'s Step)>,
    values: &[(FutureValue, DataType)],
) -> Result<Made> {
    let mut making = Making::default();
    for (at, step) in steps {
        making.step(at, step)?;
    }
    let mut results = Results::None;
    if !values.is_empty() {
        let returned: Vec<Expression> =
            values.iter().map(|(value, _)| making.expression(value)).collect::<Result<_>>()?;
        making.push(StatementKind::Return { values: returned });
        let named = values.iter().enumerate().map(|(at, (_, data_type))| Parameter {
            name: Name::new(format!("v{at}")),
            ty: scalar_type(*data_type, true),
        });
        results = match values {
            [(_, data_type)] => Results::One(scalar_type(*data_type, true)),
            _ => Results::Named(named.collect()),
        };
    }
    let definition = ProcedureDefinition {
        source: Arc::new(Source::new("", "transaction")),
        name: Name::new("transaction"),
        parameters: making.parameters,
        results,
        body: making.body,
    };
    Ok(Made { definition, arguments: making.arguments })
}

/// A program that is being made.
#[derive(Default)]
struct Making {
    /// Steps by their place in the transaction: their place in the program.
    numbers: HashMap<usize, usize>,
    parameters: Vec<Parameter>,
    arguments: Vec<Value>,
    body: Block,
}

impl Making {
    fn push(&mut self, kind: StatementKind) {
        self.body.push(statement(kind));
    }

    fn step(&mut self, at: usize, step: &Step) -> Result<()> {
        let number = self.numbers.len();
        self.numbers.insert(at, number);
        match step {
            Step::Read { table, key, columns } if columns.is_empty() => {
                let row = self.row(table, key)?;
                self.bind(number, 0, ExpressionKind::Exists(row));
            }
            Step::Read { table, key, columns } => {
                for (place, column) in columns.iter().enumerate() {
                    let row = self.row(table, key)?;
                    self.bind(
                        number,
                        place,
                        ExpressionKind::Column { row, optional: true, column: Name::new(column) },
                    );
                }
            }
            Step::First { range, columns } => self.first(number, range, columns)?,
            Step::Rows { range, columns } => self.rows(number, range, columns)?,
            Step::Update { table, key, columns } => {
                let row = self.row(table, key)?;
                let columns = self.columns(columns)?;
                self.push(StatementKind::Update { row, columns });
            }
            Step::Insert { table, columns } => {
                let columns = self.columns(columns)?;
                self.push(StatementKind::Insert { table: Name::new(table), columns, upsert: false });
            }
            Step::Delete { table, key } => {
                let row = self.row(table, key)?;
                self.push(StatementKind::Delete { row });
            }
            Step::Observed { value, data_type, answer } => {
                let value = self.expression(value)?;
                let answer = self.parameter(*data_type, true, answer);
                let condition = binary(BinaryOperator::IsNotDistinct, value, answer);
                let failure = Failure::from(CHANGED).with_state(SqlState::SERIALIZATION_FAILURE);
                self.push(StatementKind::require(condition, failure));
            }
        }
        Ok(())
    }

    fn bind(&mut self, number: usize, place: usize, value: ExpressionKind) {
        let name = Name::new(variable(number, place));
        self.push(StatementKind::Let { name, mutable: false, ty: None, value: Expression::from(value) });
    }

    /// `var f0_0: bigint null = null ... for r0 in stock by by_name[p1] limit 1 { f0_0 = r0.quantity ... }`
    fn first(&mut self, number: usize, range: &RowRange, columns: &[(String, DataType)]) -> Result<()> {
        for (place, (_, data_type)) in columns.iter().enumerate() {
            let name = Name::new(variable(number, place));
            let ty = Some(scalar_type(*data_type, true));
            self.push(StatementKind::Let { name, mutable: true, ty, value: literal(Literal::Null) });
        }
        let assign = |(place, (column, _)): (usize, &(String, DataType))| {
            let target = Target::Variable(Name::new(variable(number, place)));
            statement(StatementKind::Assign { target, operator: None, value: of_row(number, column) })
        };
        let body = columns.iter().enumerate().map(assign).collect();
        self.scan(number, &RowRange { limit: Some(1), ..range.clone() }, body)
    }

    /// `var l0: list of (quantity: bigint null) = [] for r0 in stock[p1 .. p2] { append l0 (r0.quantity) }`
    fn rows(&mut self, number: usize, range: &RowRange, columns: &[(String, DataType)]) -> Result<()> {
        let field = |(column, data_type): &(String, DataType)| ColumnDefinition {
            name: Name::new(column),
            scalar: ScalarName { data_type: *data_type, nullable: true, span: Span::default() },
        };
        let ty =
            TypeName { kind: TypeKind::Records(columns.iter().map(field).collect()), span: Span::default() };
        let (name, value) = (Name::new(list(number)), Expression::from(ExpressionKind::EmptyList));
        self.push(StatementKind::Let { name, mutable: true, ty: Some(ty), value });
        let values = columns.iter().map(|(column, _)| of_row(number, column)).collect();
        let append = StatementKind::Append { list: Name::new(list(number)), values };
        self.scan(number, range, vec![statement(append)])
    }

    fn scan(&mut self, number: usize, range: &RowRange, body: Block) -> Result<()> {
        let equal = range.equal.iter().map(|value| self.expression(value)).collect::<Result<Vec<_>>>()?;
        let mut bound = |value: &Option<FutureValue>| -> Result<Option<Bound>> {
            let Some(value) = value else { return Ok(None) };
            Ok(Some(Bound { value: self.expression(value)?, inclusive: true }))
        };
        let (lower, upper) = (bound(&range.lower)?, bound(&range.upper)?);
        let is_part = !equal.is_empty() || lower.is_some() || upper.is_some();
        let limit = range.limit.map(|limit| self.parameter(DataType::BigInt, false, &Value::BigInt(limit)));
        let scan = Scan {
            index: range.index.as_ref().map(Name::new),
            range: is_part.then_some(Range { equal, lower, upper }),
            descending: range.descending,
            limit,
            ..Scan::all(&range.table)
        };
        let variable = Name::new(format!("r{number}"));
        self.push(StatementKind::ForEach { variable, scan: Box::new(scan), body });
        Ok(())
    }

    fn row(&mut self, table: &str, key: &[FutureValue]) -> Result<RowReference> {
        let key = key.iter().map(|value| self.expression(value)).collect::<Result<_>>()?;
        Ok(RowReference { name: Name::new(table), key: Some(key), span: Span::default() })
    }

    fn columns(&mut self, columns: &[(String, FutureValue)]) -> Result<Vec<(Name, Expression)>> {
        columns.iter().map(|(column, value)| Ok((Name::new(column), self.expression(value)?))).collect()
    }

    fn expression(&mut self, value: &FutureValue) -> Result<Expression> {
        Ok(match &*value.0 {
            Node::Read(step, place) => Expression::variable(variable(self.numbers[step], *place)),
            Node::Aggregate(function, step, column) => {
                let list = list(self.numbers[step]);
                let of = match column {
                    None => Expression::variable(list),
                    Some(column) => field(list, None, column),
                };
                let function = Name::new(*function);
                Expression::from(ExpressionKind::Call { function, distinct: false, arguments: vec![of] })
            }
            Node::Element(step, row, column) => {
                let at = self.parameter(DataType::BigInt, false, &Value::BigInt(*row));
                field(list(self.numbers[step]), Some(vec![at]), column)
            }
            Node::Constant(value) => self.constant(value)?,
            Node::Negate(operand) => ExpressionKind::Negate(Box::new(self.expression(operand)?)).into(),
            Node::Not(operand) => ExpressionKind::Not(Box::new(self.expression(operand)?)).into(),
            Node::IsNull(operand) => {
                ExpressionKind::IsNull { operand: Box::new(self.expression(operand)?), negated: false }.into()
            }
            Node::IsTrue(operand) => {
                let operand = self.expression(operand)?;
                binary(BinaryOperator::IsNotDistinct, operand, literal(Literal::Boolean(true)))
            }
            Node::Binary(operator, left, right) => {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                binary(*operator, left, right)
            }
        })
    }

    /// A constant as a parameter, so that transactions that differ in values only are one program.
    fn constant(&mut self, value: &Value) -> Result<Expression> {
        let data_type = match value {
            Value::Null => return Ok(literal(Literal::Null)),
            Value::Boolean(_) => DataType::Boolean,
            Value::SmallInt(_) => DataType::SmallInt,
            Value::Int(_) => DataType::Int,
            Value::BigInt(_) => DataType::BigInt,
            Value::Numeric(decimal) => DataType::Numeric { precision: 38, scale: decimal.scale },
            Value::Double(_) => DataType::Double,
            Value::Text(_) => DataType::Text { limit: None },
            Value::Bytea(_) => DataType::Bytea,
            Value::Date(_) => DataType::Date,
            Value::Timestamp(_) => DataType::Timestamp,
            Value::List(_) => {
                return Err(Error::new(SqlState::DATATYPE_MISMATCH, "a list is not a value of a column"));
            }
        };
        Ok(self.parameter(data_type, false, value))
    }

    fn parameter(&mut self, data_type: DataType, nullable: bool, value: &Value) -> Expression {
        let name = format!("p{}", self.parameters.len());
        self.parameters.push(Parameter { name: Name::new(&name), ty: scalar_type(data_type, nullable) });
        self.arguments.push(value.clone());
        Expression::variable(name)
    }
}

/// The variable that a column of a step is read into.
fn variable(number: usize, place: usize) -> String {
    format!("f{number}_{place}")
}

/// The list that a step's rows are in.
fn list(number: usize) -> String {
    format!("l{number}")
}

fn of_row(number: usize, column: &str) -> Expression {
    field(format!("r{number}"), None, column)
}

fn field(of: String, key: Option<Vec<Expression>>, column: &str) -> Expression {
    let row = RowReference { name: Name::new(of), key, span: Span::default() };
    Expression::from(ExpressionKind::Column { row, optional: false, column: Name::new(column) })
}

fn statement(kind: StatementKind) -> Statement {
    Statement { kind, span: Span::default() }
}

fn literal(literal: Literal) -> Expression {
    Expression::from(ExpressionKind::Literal(literal))
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    Expression::from(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)))
}
