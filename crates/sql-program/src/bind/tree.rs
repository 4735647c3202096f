//! Parts of programs, built without their places in a text.

use fabius_program::syntax::Span;
use fabius_program::syntax::tree::{
    BinaryOperator, Block, Bound, ColumnDefinition, Expression, ExpressionKind, Failure, Literal, Message,
    Name, Range, RowReference, ScalarName, Scan, Statement, StatementKind, Target, TypeKind, TypeName,
};
use fabius_sql_syntax::dialect::balanced;
use fabius_value::{DataType, Decimal, SqlState, Value};

/// A name.
pub(crate) fn name(text: impl Into<String>) -> Name {
    Name::new(text)
}

/// An expression.
pub(crate) fn expression(kind: ExpressionKind) -> Expression {
    kind.into()
}

/// A statement.
pub(crate) fn statement(kind: StatementKind) -> Statement {
    Statement { kind, span: Span::default() }
}

/// A variable.
pub(crate) fn variable(name: impl Into<String>) -> Expression {
    Expression::variable(name)
}

/// The null.
pub(crate) fn null() -> Expression {
    expression(ExpressionKind::Literal(Literal::Null))
}

/// A null of a type.
pub(crate) fn typed_null(data_type: DataType) -> Expression {
    cast(null(), data_type)
}

/// `true` or `false`.
pub(crate) fn boolean(value: bool) -> Expression {
    expression(ExpressionKind::Literal(Literal::Boolean(value)))
}

/// A text.
pub(crate) fn text(value: impl Into<String>) -> Expression {
    expression(ExpressionKind::Literal(Literal::Text(value.into())))
}

/// A whole number.
pub(crate) fn integer(value: i128) -> Expression {
    let number = expression(ExpressionKind::Literal(Literal::Integer(value.unsigned_abs() as i128)));
    if value < 0 { expression(ExpressionKind::Negate(Box::new(number))) } else { number }
}

/// A value of a type as a literal.
pub(crate) fn literal(value: &Value, data_type: DataType) -> Expression {
    let plain = |literal| expression(ExpressionKind::Literal(literal));
    let number = |decimal: Decimal| {
        let digits = Decimal { mantissa: decimal.mantissa.abs(), ..decimal };
        let number = match decimal.scale {
            0 => plain(Literal::Integer(digits.mantissa)),
            _ => plain(Literal::Decimal(digits)),
        };
        match decimal.mantissa < 0 {
            true => expression(ExpressionKind::Negate(Box::new(number))),
            false => number,
        }
    };
    match value {
        Value::Null | Value::List(_) => typed_null(data_type),
        Value::Boolean(value) => boolean(*value),
        Value::SmallInt(_) | Value::Int(_) | Value::BigInt(_) => {
            cast(integer(value.as_integer().unwrap_or_default().into()), data_type)
        }
        Value::Numeric(decimal) => cast(number(*decimal), data_type),
        Value::Double(value) => cast(text(value.to_string()), DataType::Double),
        Value::Text(value) => text(value.clone()),
        Value::Bytea(value) => plain(Literal::Bytea(value.clone())),
        Value::Date(days) => plain(Literal::Date(*days)),
        Value::Timestamp(micros) => plain(Literal::Timestamp(*micros)),
    }
}

/// `operand::type`.
pub(crate) fn cast(operand: Expression, data_type: DataType) -> Expression {
    expression(ExpressionKind::Cast { operand: Box::new(operand), data_type })
}

/// `left operator right`.
pub(crate) fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    expression(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)))
}

/// `not operand`.
pub(crate) fn not(operand: Expression) -> Expression {
    expression(ExpressionKind::Not(Box::new(operand)))
}

/// `operand is null`, or `is not null`.
pub(crate) fn is_null(operand: Expression, negated: bool) -> Expression {
    expression(ExpressionKind::IsNull { operand: Box::new(operand), negated })
}

/// All of them, `true` if there are none.
pub(crate) fn all(conditions: impl IntoIterator<Item = Expression>) -> Expression {
    let join = |left, right| binary(BinaryOperator::And, left, right);
    balanced(conditions.into_iter().collect(), join).unwrap_or_else(|| boolean(true))
}

/// One of them, `false` if there are none.
pub(crate) fn any(conditions: impl IntoIterator<Item = Expression>) -> Expression {
    let join = |left, right| binary(BinaryOperator::Or, left, right);
    balanced(conditions.into_iter().collect(), join).unwrap_or_else(|| boolean(false))
}

/// `if condition then value else otherwise`.
pub(crate) fn choice(condition: Expression, value: Expression, otherwise: Expression) -> Expression {
    expression(ExpressionKind::If { arms: vec![(condition, value)], otherwise: Box::new(otherwise) })
}

/// `function(arguments)`.
pub(crate) fn call(function: &str, arguments: Vec<Expression>) -> Expression {
    expression(ExpressionKind::Call { function: name(function), distinct: false, arguments })
}

/// A float as `real` holds it.
pub(crate) fn single(number: Expression) -> Expression {
    call("round_single", vec![number])
}

/// `row`, a loop's.
pub(crate) fn loop_row(row: &str) -> RowReference {
    RowReference { name: name(row), key: None, span: Span::default() }
}

/// `table[key]`.
pub(crate) fn keyed_row(table: &str, key: Vec<Expression>) -> RowReference {
    RowReference { name: name(table), key: Some(key), span: Span::default() }
}

/// `row.column`, or `row?.column`.
pub(crate) fn column(row: RowReference, column: &str, optional: bool) -> Expression {
    expression(ExpressionKind::Column { row, optional, column: name(column) })
}

/// `exists table[key]`.
pub(crate) fn exists(row: RowReference) -> Expression {
    expression(ExpressionKind::Exists(row))
}

/// `var name: type = value`, or `let`.
pub(crate) fn declare(variable: &str, mutable: bool, ty: Option<TypeName>, value: Expression) -> Statement {
    statement(StatementKind::Let { name: name(variable), mutable, ty, value })
}

/// `var list: list of (...) = []`.
pub(crate) fn declare_list(list: &str, fields: Vec<ColumnDefinition>) -> Statement {
    declare(list, true, Some(records(fields)), expression(ExpressionKind::EmptyList))
}

/// `variable = value`.
pub(crate) fn assign(variable: &str, value: Expression) -> Statement {
    let target = Target::Variable(name(variable));
    statement(StatementKind::Assign { target, operator: None, value })
}

/// `variable += value`.
pub(crate) fn add(variable: &str, value: Expression) -> Statement {
    let target = Target::Variable(name(variable));
    statement(StatementKind::Assign { target, operator: Some(BinaryOperator::Add), value })
}

/// `append list (values)`.
pub(crate) fn append(list: &str, values: Vec<Expression>) -> Statement {
    statement(StatementKind::Append { list: name(list), values })
}

/// `if condition { then } else { otherwise }`.
pub(crate) fn when(condition: Expression, then: Block, otherwise: Option<Block>) -> Statement {
    statement(StatementKind::If { arms: vec![(condition, then)], otherwise })
}

/// `for element in list { body }`.
pub(crate) fn for_list(element: &str, list: &str, body: Block) -> Statement {
    for_each(element, scan(list), body)
}

/// `for row in ... { body }`.
pub(crate) fn for_each(row: &str, scan: Scan, body: Block) -> Statement {
    statement(StatementKind::ForEach { variable: name(row), scan: Box::new(scan), body })
}

/// All of a list, or of a table by its primary key.
pub(crate) fn scan(of: &str) -> Scan {
    Scan::all(of)
}

/// `[equal ...]`, with bounds on the next column.
pub(crate) fn range(equal: Vec<Expression>, lower: Option<Bound>, upper: Option<Bound>) -> Option<Range> {
    (!equal.is_empty() || lower.is_some() || upper.is_some()).then_some(Range { equal, lower, upper })
}

/// `insert table { ... }`.
pub(crate) fn insert(table: &str, columns: Vec<(String, Expression)>) -> Statement {
    let columns = columns.into_iter().map(|(column, value)| (name(column), value)).collect();
    statement(StatementKind::Insert { table: name(table), columns, upsert: false })
}

/// `update row { ... }`.
pub(crate) fn update(row: RowReference, columns: Vec<(String, Expression)>) -> Statement {
    let columns = columns.into_iter().map(|(column, value)| (name(column), value)).collect();
    statement(StatementKind::Update { row, columns })
}

/// `delete row`.
pub(crate) fn delete(row: RowReference) -> Statement {
    statement(StatementKind::Delete { row })
}

/// A scalar type's name.
pub(crate) fn scalar(data_type: DataType, nullable: bool) -> ScalarName {
    ScalarName { data_type, nullable, span: Span::default() }
}

/// A scalar type.
pub(crate) fn scalar_type(data_type: DataType, nullable: bool) -> TypeName {
    TypeName { kind: TypeKind::Scalar(scalar(data_type, nullable)), span: Span::default() }
}

/// `list of (...)`.
pub(crate) fn records(fields: Vec<ColumnDefinition>) -> TypeName {
    TypeName { kind: TypeKind::Records(fields), span: Span::default() }
}

/// A field of a list.
pub(crate) fn field(field: &str, data_type: DataType, nullable: bool) -> ColumnDefinition {
    ColumnDefinition { name: name(field), scalar: scalar(data_type, nullable) }
}

/// What the columns of keys are called in a list of keys.
pub(crate) fn key_field(at: usize) -> String {
    format!("f{}", at + 1)
}

/// The fields of a list of keys.
pub(crate) fn key_fields(types: &[DataType]) -> Vec<ColumnDefinition> {
    types.iter().enumerate().map(|(at, data_type)| field(&key_field(at), *data_type, false)).collect()
}

/// `require condition, "message", sqlstate 'state', detail detail`.
pub(crate) fn require(
    condition: Expression,
    state: &[u8; 5],
    message: impl Into<String>,
    detail: Option<Expression>,
) -> Statement {
    let failure = Failure {
        message: Message::Fixed(message.into()),
        state: Some(SqlState(*state)),
        detail: Some(detail.unwrap_or_else(|| typed_null(DataType::TEXT))),
        hint: None,
    };
    statement(StatementKind::Require { condition, failure })
}

/// `function(distinct argument)`.
pub(crate) fn distinct_call(function: &str, argument: Expression) -> Expression {
    expression(ExpressionKind::Call { function: name(function), distinct: true, arguments: vec![argument] })
}
