//! Rows by column names.

use super::Column;
use crate::sql_type::SqlType;
use fabius_value::Value;
use std::collections::HashMap;

/// A row of a catalog relation, before its values are put in the columns' order.
#[derive(Default)]
pub struct Row(HashMap<&'static str, Value>);

impl Row {
    /// A row of named values; what is not named is false, 0 or null.
    pub fn of<const N: usize>(values: [(&'static str, Value); N]) -> Row {
        Row(values.into_iter().collect())
    }

    /// This row with one value more.
    pub fn with(mut self, name: &'static str, value: Value) -> Row {
        self.0.insert(name, value);
        self
    }

    /// The values in the columns' order. In `information_schema` what is not named is null, whatever its type.
    pub fn arranged(mut self, columns: &[Column], is_standard: bool) -> Vec<Value> {
        columns
            .iter()
            .map(|column| {
                self.0.remove(column.name.as_str()).unwrap_or(match column.sql_type {
                    _ if is_standard => Value::Null,
                    SqlType::Boolean => Value::Boolean(false),
                    SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Oid => Value::BigInt(0),
                    _ => Value::Null,
                })
            })
            .collect()
    }
}

/// A name.
pub fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

/// A number.
pub fn number(value: impl Into<i64>) -> Value {
    Value::BigInt(value.into())
}

/// A truth.
pub fn truth(value: bool) -> Value {
    Value::Boolean(value)
}

/// `YES` or `NO`.
pub fn yes(value: bool) -> Value {
    text(if value { "YES" } else { "NO" })
}

/// An array.
pub fn array(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(values.into_iter().map(|value| vec![value]).collect())
}
