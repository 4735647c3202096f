//! Numbers as SQL writes them.

use crate::sql_type::SqlType;
use fabius_value::{Decimal, Value};

/// A number with the type that PostgreSQL gives it: the smallest of `integer`, `bigint` and `numeric` that has it;
/// `None` for one that needs more than 38 digits.
pub fn read(text: &str) -> Option<(Value, SqlType)> {
    let text = text.replace('_', "");
    if let Ok(value) = text.parse() {
        return Some((Value::Int(value), SqlType::Int));
    }
    if let Ok(value) = text.parse() {
        return Some((Value::BigInt(value), SqlType::BigInt));
    }
    Some((Value::Numeric(Decimal::parse(&text)?), SqlType::Numeric(None)))
}

/// Whether the negative of a number is the smallest integer of a type, which its positive does not fit.
pub fn is_smallest(digits: &str) -> bool {
    let negative = format!("-{digits}");
    read(digits).map(|(_, sql_type)| sql_type) != read(&negative).map(|(_, sql_type)| sql_type)
}
