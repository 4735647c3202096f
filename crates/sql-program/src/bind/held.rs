//! How programs hold values: their types for values of SQL types, results and constants.

use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::data_type::Family;
use fabius_value::{DataType, Decimal, Value};

/// How programs hold a value of the type; text without its bound, so that comparing never refuses.
pub(super) fn held(sql_type: &SqlType) -> DataType {
    match sql_type {
        SqlType::VarChar(_) | SqlType::Char(_) => DataType::TEXT,
        other => other.storage().unwrap_or(DataType::TEXT),
    }
}

/// How a program holds the sum, difference, product, quotient or remainder of two numbers; as the
/// program's verifier has it.
pub(super) fn result_type(operator: char, left: DataType, right: DataType) -> DataType {
    const MOST: u8 = 38;
    let whole = |data_type: DataType| match data_type {
        DataType::SmallInt => 5,
        DataType::Int => 10,
        DataType::Numeric { precision, scale } => precision.saturating_sub(scale),
        _ => 19,
    };
    let is_numeric = |data_type: DataType| matches!(data_type, DataType::Numeric { .. });
    if left == DataType::Double || right == DataType::Double {
        return DataType::Double;
    }
    if !is_numeric(left) && !is_numeric(right) {
        return if whole(left) > whole(right) { left } else { right };
    }
    let (s1, s2) = (left.scale(), right.scale());
    match operator {
        '*' => DataType::Numeric { precision: MOST, scale: s1.saturating_add(s2).min(MOST) },
        '/' => DataType::Numeric { precision: MOST, scale: s1.max(s2).max(6) },
        _ => {
            let scale = s1.max(s2);
            let precision = (whole(left).max(whole(right)) + scale + 1).min(MOST);
            DataType::Numeric { precision, scale }
        }
    }
}

/// A type that holds the values of both.
pub(super) fn unified(left: DataType, right: DataType) -> DataType {
    use fabius_value::data_type::Family as F;
    if left == right {
        return left;
    }
    match (left.family(), right.family()) {
        (F::Text, F::Text) => DataType::TEXT,
        (F::Date | F::Timestamp, F::Date | F::Timestamp) => DataType::Timestamp,
        (F::Integer | F::Numeric | F::Double, F::Integer | F::Numeric | F::Double) => {
            match result_type('=', left, right) {
                DataType::Numeric { scale, .. } => DataType::Numeric { precision: 38, scale },
                other => other,
            }
        }
        _ => left,
    }
}

/// How a constant number is held.
pub(super) fn decimal_type(decimal: Decimal) -> DataType {
    let digits = decimal.mantissa.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    constant_numeric(digits, decimal.scale)
}

/// The numeric that a constant of these digits is held as: few types, so that statements that differ in
/// literals only are one program.
pub(super) fn constant_numeric(digits: u32, scale: u8) -> DataType {
    let precision = if digits <= 18 && scale <= 18 { 18 } else { 38 };
    DataType::Numeric { precision, scale: scale.min(38) }
}

/// Some value of a type, to stand where there is always another, or is going to be.
pub fn some_value(data_type: DataType) -> Value {
    match data_type.family() {
        Family::Boolean => Value::Boolean(false),
        Family::Integer | Family::Numeric => Value::BigInt(0),
        Family::Double => Value::Double(0.0),
        Family::Text => Value::Text(String::new()),
        Family::Bytea => Value::Bytea(Vec::new()),
        Family::Date => Value::Date(0),
        Family::Timestamp => Value::Timestamp(0),
    }
}
