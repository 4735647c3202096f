//! Which types fit together, and how a value becomes one of another type.
//!
//! - A literal takes the type of what it meets if it has exactly that value there: `balance + 1` is a
//!   sum of two `numeric(12, 2)`. Otherwise it has the smallest type it fits: `int` (or `bigint`, or a
//!   numeric of its digits), `numeric` of its digits, `text`.
//! - Values that meet in an operator are widened: `smallint < int < bigint < numeric < double
//!   precision`; numerics to as many digits on both sides of the point as either has; `varchar` and
//!   `char` to `text`; `date` to `timestamp`.
//! - A value that is stored is converted to the type of its place if no more than its range or
//!   digits can be in the way; whatever else is wanted is written as a cast.

use super::Lowered;
use crate::ir::{Expression, ExpressionKind, ScalarType};
use crate::syntax::{Diagnostic, Span, tree::Literal};
use fabius_value::data_type::Family;
use fabius_value::{DataType, Decimal, Error, SqlState, Value, limit};

/// A lowered expression, whether it is a literal that can still take another type, and its place.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) value: Expression,
    pub(super) literal: bool,
    pub(super) span: Span,
}

impl Operand {
    pub(super) fn typed(value: Expression, span: Span) -> Operand {
        Operand { value, literal: false, span }
    }

    pub(super) fn data_type(&self) -> DataType {
        self.value.ty.data_type
    }

    pub(super) fn is_null_literal(&self) -> bool {
        self.literal && matches!(self.value.kind, ExpressionKind::Constant(Value::Null))
    }

    /// The value of a literal that is not null.
    fn constant(&self) -> Option<&Value> {
        match &self.value.kind {
            ExpressionKind::Constant(value) if self.literal && !value.is_null() => Some(value),
            _ => None,
        }
    }
}

pub(super) fn constant(value: Value, data_type: DataType) -> Expression {
    let ty = ScalarType { data_type, nullable: value.is_null() };
    Expression { kind: ExpressionKind::Constant(value), ty }
}

/// A literal with the smallest type it fits.
pub(super) fn literal(literal: &Literal, span: Span) -> Operand {
    let (value, adapts) = match literal {
        Literal::Null => (constant(Value::Null, DataType::TEXT), true),
        Literal::Boolean(value) => (constant(Value::Boolean(*value), DataType::Boolean), false),
        Literal::Integer(value) => (number(Decimal { mantissa: *value, scale: 0 }), true),
        Literal::Decimal(value) => (number(*value), true),
        Literal::Text(value) => (constant(Value::Text(value.clone()), DataType::TEXT), true),
        Literal::Bytea(value) => (constant(Value::Bytea(value.clone()), DataType::Bytea), false),
        Literal::Date(days) => (constant(Value::Date(*days), DataType::Date), false),
        Literal::Timestamp(micros) => (constant(Value::Timestamp(*micros), DataType::Timestamp), false),
    };
    Operand { value, literal: adapts, span }
}

/// A number with the smallest type it fits, at least `int`.
pub(super) fn number(decimal: Decimal) -> Expression {
    if decimal.scale == 0 {
        if let Ok(value) = i32::try_from(decimal.mantissa) {
            return constant(Value::Int(value), DataType::Int);
        }
        if let Ok(value) = i64::try_from(decimal.mantissa) {
            return constant(Value::BigInt(value), DataType::BigInt);
        }
    }
    let digits = decimal.mantissa.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1);
    let precision = digits.max(decimal.scale).max(1);
    constant(Value::Numeric(decimal), DataType::Numeric { precision, scale: decimal.scale })
}

pub(super) fn is_number(data_type: DataType) -> bool {
    matches!(data_type.family(), Family::Integer | Family::Numeric | Family::Double)
}

/// The digits before the point that a value of an exact type can have.
fn whole_digits(data_type: DataType) -> u8 {
    match data_type {
        DataType::SmallInt => 5,
        DataType::Int => 10,
        DataType::Numeric { precision, scale } => precision - scale,
        _ => 19,
    }
}

/// An exact type as a numeric that has all its values.
pub(super) fn as_numeric(data_type: DataType) -> DataType {
    match data_type {
        DataType::Numeric { .. } => data_type,
        integer => DataType::Numeric { precision: whole_digits(integer), scale: 0 },
    }
}

/// The narrowest type that has the values of both; `None` if there is none.
pub(super) fn common(left: DataType, right: DataType) -> Option<DataType> {
    if left == right {
        return Some(left);
    }
    Some(match (left.family(), right.family()) {
        (Family::Integer, Family::Integer) => {
            if whole_digits(left) > whole_digits(right) {
                left
            } else {
                right
            }
        }
        (Family::Integer | Family::Numeric, Family::Integer | Family::Numeric) => {
            let scale = left.scale().max(right.scale());
            let precision =
                (whole_digits(left).max(whole_digits(right)) + scale).min(limit::NUMERIC_PRECISION);
            DataType::Numeric { precision, scale }
        }
        (Family::Double, _) if is_number(right) => DataType::Double,
        (_, Family::Double) if is_number(left) => DataType::Double,
        (Family::Text, Family::Text) => DataType::TEXT,
        (Family::Date | Family::Timestamp, Family::Date | Family::Timestamp) => DataType::Timestamp,
        _ => return None,
    })
}

/// Whether a value is stored in a place of type `to` without a cast in the text.
fn is_assignable(from: DataType, to: DataType) -> bool {
    match (from.family(), to.family()) {
        (from, to) if from == to => true,
        (Family::Integer, Family::Numeric | Family::Double) | (Family::Numeric, Family::Double) => true,
        (Family::Date, Family::Timestamp) => true,
        _ => false,
    }
}

/// Whether `e::to` exists, as [`Value::cast`] has it.
pub(super) fn is_castable(from: DataType, to: DataType) -> bool {
    match (from.family(), to.family()) {
        (from, to) if from == to => true,
        (Family::Bytea, Family::Text) => false,
        (Family::Text, _) | (_, Family::Text) => true,
        (Family::Date, Family::Timestamp) | (Family::Timestamp, Family::Date) => true,
        _ => is_number(from) && is_number(to),
    }
}

/// The types that a cast makes of a value, for hints.
pub(super) fn convertible(from: DataType) -> &'static str {
    match from.family() {
        Family::Integer | Family::Numeric | Family::Double => "other numbers, and to text",
        Family::Text => "every type",
        Family::Boolean => "text only",
        Family::Bytea => "nothing else",
        Family::Date => "timestamp and text",
        Family::Timestamp => "date and text",
    }
}

/// The values that a type takes, with an example, for hints.
fn described(data_type: DataType) -> String {
    match data_type {
        DataType::Boolean => "true or false".into(),
        DataType::SmallInt | DataType::Int | DataType::BigInt => {
            let (low, high) = data_type.exact_range().unwrap_or_default();
            format!("a whole number from {low} to {high}")
        }
        DataType::Numeric { precision, scale } => {
            format!(
                "a number with at most {} digits before the point, like {}",
                precision - scale,
                match scale {
                    0 => "12",
                    _ => "1.5",
                }
            )
        }
        DataType::Double => "a number, like 1.5".into(),
        DataType::Text { limit: None } => "a text, like 'name'".into(),
        DataType::Text { limit: Some(most) } | DataType::Char { length: most } => {
            format!("a text of at most {most} characters")
        }
        DataType::Bytea => "bytes, like x'0aff'".into(),
        DataType::Date => "a day, like date '2026-11-20'".into(),
        DataType::Timestamp => "a day and time, like timestamp '2026-11-20 08:30:00'".into(),
    }
}

/// A literal as a constant of `to`, if it has exactly its value there.
///
/// # Errors
/// Text that should be a date, time or bytes and is not.
fn adapted(operand: &Operand, to: DataType) -> Lowered<Option<Expression>> {
    if operand.is_null_literal() {
        return Ok(Some(constant(Value::Null, to)));
    }
    let Some(value) = operand.constant() else { return Ok(None) };
    let cast = match (value, to.family()) {
        (Value::Text(_), Family::Date | Family::Timestamp | Family::Bytea) => {
            return value
                .cast(to)
                .map(|value| Some(constant(value, to)))
                .map_err(|e| at(e, to, operand.span));
        }
        (Value::Text(text), Family::Text) => match value.cast(to) {
            Ok(Value::Text(fit)) if *text == fit || matches!(to, DataType::Char { .. }) => Value::Text(fit),
            _ => return Ok(None),
        },
        (Value::Text(_), _) => return Ok(None),
        (_, Family::Integer | Family::Numeric | Family::Double) => match value.cast(to) {
            Ok(cast) if to == DataType::Double || exact(&cast, value) => cast,
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(constant(cast, to)))
}

/// Whether two exact numbers are equal.
fn exact(left: &Value, right: &Value) -> bool {
    let decimal = |value: &Value| match value {
        Value::Numeric(decimal) => Some(*decimal),
        other => other.as_integer().map(|number| Decimal { mantissa: number.into(), scale: 0 }),
    };
    match (decimal(left), decimal(right)) {
        (Some(left), Some(right)) => {
            let scale = left.scale.max(right.scale);
            left.rescale(scale).is_some() && left.rescale(scale) == right.rescale(scale)
        }
        _ => false,
    }
}

/// An error of the value vocabulary, at a place.
pub(super) fn at(error: Error, to: DataType, span: Span) -> super::Refused {
    let message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.message()),
        None => error.message().into(),
    };
    let hint = error.hint().map_or_else(|| format!("{to} takes {}", described(to)), String::from);
    Diagnostic::new(error.state(), span, message).with_hint(hint).into()
}

/// The value in the type `to`, which has all its values or is checked at run time. Constants are
/// converted now.
pub(super) fn convert(value: Expression, to: DataType, span: Span) -> Lowered<Expression> {
    if value.ty.data_type == to {
        return Ok(value);
    }
    if let ExpressionKind::Constant(known) = &value.kind {
        return known.cast(to).map(|value| constant(value, to)).map_err(|error| at(error, to, span));
    }
    let ty = ScalarType { data_type: to, nullable: value.ty.nullable };
    Ok(Expression { kind: ExpressionKind::Cast(Box::new(value)), ty })
}

/// The operand with a type of its own.
pub(super) fn settled(operand: Operand) -> Lowered<Expression> {
    if operand.is_null_literal() {
        let error =
            Diagnostic::new(SqlState::DATATYPE_MISMATCH, operand.span, "the type of null is not known here");
        return Err(error.with_hint("say it: null::int").into());
    }
    Ok(operand.value)
}

/// An integer literal has the digits it is written with; everything else those of its type.
pub(super) fn narrowed(operand: &Operand) -> DataType {
    match &operand.value.kind {
        ExpressionKind::Constant(value) if operand.literal => match value.as_integer() {
            Some(number) => {
                let digits = number.unsigned_abs().checked_ilog10().map_or(1, |log| log as u8 + 1);
                DataType::Numeric { precision: digits, scale: 0 }
            }
            None => operand.data_type(),
        },
        _ => operand.data_type(),
    }
}

/// All operands as one type: what the typed ones have in common, unless a literal needs more.
pub(super) fn unified(operands: Vec<Operand>, expected: Option<DataType>) -> Lowered<Vec<Expression>> {
    let to = common_of(&operands, expected)?;
    operands
        .into_iter()
        .map(|operand| match adapted(&operand, to)? {
            Some(constant) => Ok(constant),
            None => convert(operand.value, to, operand.span),
        })
        .collect()
}

fn common_of(operands: &[Operand], expected: Option<DataType>) -> Lowered<DataType> {
    let widened = |to: Option<DataType>, operand: &Operand| match to {
        None => Ok(operand.data_type()),
        Some(to) if to.family() == Family::Numeric => {
            common(to, narrowed(operand)).ok_or_else(|| mismatch(to, operand))
        }
        Some(to) => common(to, operand.data_type()).ok_or_else(|| mismatch(to, operand)),
    };
    let mut typed = None;
    for operand in operands.iter().filter(|operand| !operand.literal) {
        typed = Some(widened(typed, operand)?);
    }
    let mut to = typed;
    for operand in operands.iter().filter(|operand| operand.literal && !operand.is_null_literal()) {
        let fits = match typed {
            Some(typed) => adapted(operand, typed)?.is_some(),
            None => false,
        };
        if !fits {
            to = Some(widened(to, operand)?);
        }
    }
    match to.or(expected) {
        Some(to) => Ok(to),
        None => settled(operands[0].clone()).map(|value| value.ty.data_type),
    }
}

fn mismatch(wanted: DataType, operand: &Operand) -> super::Refused {
    let found = operand.data_type();
    let message = format!("{wanted} and {found} do not fit together");
    let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, operand.span, message);
    match is_castable(found, wanted) {
        true => error.with_hint(format!("convert one of them: (...)::{wanted}")).into(),
        false => error.with_hint(format!("{found} converts to {}", convertible(found))).into(),
    }
}

/// The operand as a value for a place of type `to`; `place` names it in errors.
pub(super) fn assigned(operand: Operand, to: DataType, place: &str) -> Lowered<Expression> {
    if let Some(constant) = adapted(&operand, to)? {
        return Ok(constant);
    }
    let found = operand.data_type();
    if let Some(value) = operand.constant() {
        let shown = match value {
            Value::Text(text) => format!("'{}'", text.chars().take(60).collect::<String>()),
            other => other.to_string(),
        };
        let message = format!("{shown} does not fit {place}, which is {to}");
        let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, operand.span, message);
        return Err(match value.cast(to) {
            Ok(_) => error.with_hint(format!("to convert it all the same, write {shown}::{to}")).into(),
            Err(_) => error.with_hint(format!("{to} takes {}", described(to))).into(),
        });
    }
    if !is_assignable(found, to) {
        let message = format!("{place} is {to}, this is {found}");
        let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, operand.span, message);
        return Err(match is_castable(found, to) {
            true => error.with_hint(format!("write (...)::{to} to convert it")).into(),
            false => error.with_hint(format!("{found} converts to {}", convertible(found))).into(),
        });
    }
    convert(operand.value, to, operand.span)
}
