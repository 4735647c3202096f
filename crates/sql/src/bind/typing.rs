//! Which SQL types fit together, as PostgreSQL decides it.

use crate::sql_type::SqlType;
use fabius_value::{DataType, Decimal};

/// What types have in common (`pg_type.typcategory`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Boolean,
    Number,
    Text,
    Moment,
    Time,
    Interval,
    Bytea,
    Uuid,
    Json,
    Array,
    Other,
}

pub(super) fn category(sql_type: &SqlType) -> Category {
    match sql_type {
        SqlType::Boolean => Category::Boolean,
        SqlType::SmallInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::Oid
        | SqlType::Real
        | SqlType::Double
        | SqlType::Numeric(_) => Category::Number,
        SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_) | SqlType::Name => Category::Text,
        SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz => Category::Moment,
        SqlType::Time => Category::Time,
        SqlType::Interval => Category::Interval,
        SqlType::Bytea => Category::Bytea,
        SqlType::Uuid => Category::Uuid,
        SqlType::Json | SqlType::JsonB => Category::Json,
        SqlType::Array(_) => Category::Array,
        SqlType::Void | SqlType::Unknown => Category::Other,
    }
}

pub(super) fn is_integer(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Oid)
}

pub(super) fn is_number(sql_type: &SqlType) -> bool {
    category(sql_type) == Category::Number
}

pub(super) fn is_text(sql_type: &SqlType) -> bool {
    category(sql_type) == Category::Text
}

/// The type without its modifiers: what an operator gives.
pub(super) fn without_modifiers(sql_type: &SqlType) -> SqlType {
    match sql_type {
        SqlType::Numeric(_) => SqlType::Numeric(None),
        SqlType::VarChar(_) => SqlType::VarChar(None),
        other => other.clone(),
    }
}

/// How programs hold a value of the type; text without its bound, so that comparing never refuses.
pub(super) fn held(sql_type: &SqlType) -> DataType {
    match sql_type {
        SqlType::VarChar(_) | SqlType::Char(_) => DataType::TEXT,
        other => other.storage().unwrap_or(DataType::TEXT),
    }
}

fn rank(sql_type: &SqlType) -> u8 {
    match sql_type {
        SqlType::SmallInt => 1,
        SqlType::Int => 2,
        SqlType::BigInt | SqlType::Oid => 3,
        SqlType::Numeric(_) => 4,
        SqlType::Real => 5,
        _ => 6,
    }
}

/// The type in which two numbers are added.
pub(super) fn arithmetic(left: &SqlType, right: &SqlType) -> SqlType {
    let (wide, narrow) = if rank(left) >= rank(right) { (left, right) } else { (right, left) };
    match (wide, narrow) {
        (SqlType::Real, SqlType::Real) => SqlType::Real,
        (SqlType::Real | SqlType::Double, _) => SqlType::Double,
        (SqlType::Oid, _) => SqlType::BigInt,
        (wide, _) => without_modifiers(wide),
    }
}

/// The type that values of both have in `CASE`, `COALESCE`, `IN` and `UNION`; `None` if there is none.
pub(super) fn common(left: &SqlType, right: &SqlType) -> Option<SqlType> {
    if left == right {
        return Some(left.clone());
    }
    match (category(left), category(right)) {
        (Category::Number, Category::Number) => {
            let wide = if rank(left) >= rank(right) { left } else { right };
            Some(without_modifiers(wide))
        }
        (Category::Text, Category::Text) => Some(match (left, right) {
            // The first, of types that become each other implicitly.
            (SqlType::VarChar(_), _) => SqlType::VarChar(None),
            _ => SqlType::Text,
        }),
        (Category::Moment, Category::Moment) => Some(match (left, right) {
            (SqlType::TimestampTz, _) | (_, SqlType::TimestampTz) => SqlType::TimestampTz,
            _ => SqlType::Timestamp,
        }),
        _ => None,
    }
}

/// When a value may become another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Wherever an operand is wanted.
    Implicit,
    /// Where it is stored.
    Assignment,
    /// Where the text says so.
    Explicit,
}

/// Whether there is such a conversion.
pub(super) fn converts(from: &SqlType, to: &SqlType, conversion: Conversion) -> bool {
    use Category as C;
    use Conversion::*;
    if without_modifiers(from) == without_modifiers(to) {
        return true;
    }
    match (category(from), category(to)) {
        (C::Number, C::Number)
            if matches!((from, to), (SqlType::Oid, other) | (other, SqlType::Oid)
                if matches!(other, SqlType::Numeric(_) | SqlType::Real | SqlType::Double)) =>
        {
            false
        }
        (C::Number, C::Number) => match conversion {
            Implicit => rank(from) <= rank(to),
            _ => true,
        },
        (C::Text, C::Text) => true,
        (C::Moment, C::Moment) => match (from, to) {
            (SqlType::Date, _) | (SqlType::Timestamp, SqlType::TimestampTz) => true,
            _ => conversion != Implicit,
        },
        (C::Moment, C::Time) => conversion != Implicit && *from != SqlType::Date,
        (C::Json, C::Json) => conversion != Implicit,
        (C::Json, C::Text) => conversion != Implicit,
        (C::Time, C::Interval) => true,
        (C::Interval, C::Time) => conversion != Implicit,
        (C::Boolean, C::Number) => conversion == Explicit && *to == SqlType::Int,
        (C::Number, C::Boolean) => conversion == Explicit && *from == SqlType::Int,
        (C::Json, C::Number | C::Boolean) => conversion == Explicit && *from == SqlType::JsonB,
        (C::Other, _) | (_, C::Other) => false,
        (_, C::Text) => conversion != Implicit,
        (C::Text, _) => conversion == Explicit,
        (C::Array, C::Array) => conversion == Explicit,
        _ => false,
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
