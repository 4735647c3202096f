//! The errors with which a program aborts its call by itself.
//!
//! ```text
//! [P0001] insufficient funds (line 2); accounts[src].balance = 3.00, amount = 5.00
//! [P0002] no such row (line 2); accounts[7]
//! [23502] null value in column owner of table accounts (line 4)
//! [22023] limit must not be negative (line 5); limit is -1
//! ```
//!
//! The reference interpreter and the executor both make them here, and add the line.

use fabius_value::{Error, SqlState, Value};

/// Characters of one value that a message shows.
const SHOWN: usize = 80;

/// A `require` that was not met: its message, and the values of the variables it mentions.
pub(crate) fn require<'n>(message: &str, mentioned: impl Iterator<Item = (&'n str, Value)>) -> Error {
    let mentioned: Vec<String> =
        mentioned.map(|(name, value)| format!("{name} = {}", shown(&value))).collect();
    let error = Error::new(SqlState::RAISED, message);
    if mentioned.is_empty() { error } else { error.with_detail(mentioned.join(", ")) }
}

/// A row that had to be there: its table, and its key if it was looked up by one.
pub(crate) fn no_such_row(table: &str, key: Option<Vec<Value>>) -> Error {
    let error = Error::new(SqlState::NO_SUCH_ROW, "no such row");
    match key {
        Some(key) => {
            let key: Vec<String> = key.iter().map(shown).collect();
            error.with_detail(format!("{table}[{}]", key.join(", ")))
        }
        None => error.with_detail(format!("a row of {table}")),
    }
}

/// Null for a column that must have a value.
pub(crate) fn null_in_column(table: &str, column: &str) -> Error {
    Error::new(SqlState::NOT_NULL_VIOLATION, format!("null value in column {column} of table {table}"))
}

/// A scan's limit below zero.
pub(crate) fn negative_limit(limit: i64) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, "limit must not be negative")
        .with_detail(format!("limit is {limit}"))
}

/// The error with the line it arose on, unless it has one.
pub(crate) fn at_line(error: Error, line: u32) -> Error {
    if error.line().is_some() { error } else { error.at_line(line) }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Text(text) => format!("'{text}'"),
        other => other.to_string(),
    };
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN).chain("...".chars()).collect()
}
