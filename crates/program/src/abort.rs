//! The errors with which a program aborts its call by itself.
//!
//! ```text
//! [P0001] insufficient funds (line 2); accounts[src].balance = 3.00, amount = 5.00
//! [P0002] no such row (line 2); accounts[7]
//! [23502] null value in column "owner" of relation "accounts" violates not-null constraint (line 4)
//! [22023] limit must not be negative (line 5); limit is -1
//! [22012] division by zero (line 6); 7 / 0
//! [54000] loops of one call may take 10000000 turns (line 6); here are 20000000, after 10 before; ...
//! ```
//!
//! The reference interpreter and the executor both make them here, and add the line.

use crate::ir::{Aggregate, BinaryOperator, Function};
use crate::slice::expression_text::{aggregated, called};
use crate::syntax::expression::operator_form;
use fabius_value::{DataType, Datum, Error, SqlState, Value, limit};

/// Characters of one value that a message shows.
const SHOWN: usize = 80;

/// A `require` that was not met: its state and message, and the values of the variables it mentions;
/// without these if it kept null out of a column, which says it all.
pub(crate) fn require<'n>(
    state: SqlState,
    message: &str,
    mentioned: impl Iterator<Item = (&'n str, Value)>,
    hint: Option<&str>,
) -> Error {
    let error = raised(state, Some(message), None, hint);
    let mentioned: Vec<String> =
        mentioned.map(|(name, value)| format!("{name} = {}", shown(&value))).collect();
    if mentioned.is_empty() || state == SqlState::NOT_NULL_VIOLATION {
        error
    } else {
        error.with_detail(mentioned.join(", "))
    }
}

/// A `require` that was not met and says itself what the caller is told. A null message is `null`.
pub(crate) fn raised(
    state: SqlState,
    message: Option<&str>,
    detail: Option<&str>,
    hint: Option<&str>,
) -> Error {
    let mut error = Error::new(state, message.unwrap_or("null"));
    if let Some(detail) = detail {
        error = error.with_detail(detail);
    }
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The text inside, if it is not null.
pub(crate) fn text(datum: Datum<'_>) -> Option<&str> {
    match datum {
        Datum::Text(text) => Some(text),
        _ => None,
    }
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
    Error::new(SqlState::NOT_NULL_VIOLATION, null_in_column_message(table, column))
}

/// The message of [`null_in_column`].
pub(crate) fn null_in_column_message(table: &str, column: &str) -> String {
    format!("null value in column \"{column}\" of relation \"{table}\" violates not-null constraint")
}

/// A scan's limit below zero.
pub(crate) fn negative_limit(limit: i64) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, "limit must not be negative")
        .with_detail(format!("limit is {limit}"))
}

/// A loop that does not fit what is left of the call's turns.
pub(crate) fn too_many_turns(taken: u64, turns: u128) -> Error {
    let message = format!("loops of one call may take {} turns", limit::LOOP_TURNS);
    Error::new(SqlState::PROGRAM_LIMIT, message)
        .with_detail(format!("here are {turns}, after {taken} before"))
        .with_hint("divide the work among several calls")
}

/// An operation, for messages about its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `-a`
    Negation,
    /// `a + b`
    Binary(BinaryOperator),
    /// `a::int`
    Cast(DataType),
    /// `abs(a)`
    Call(Function),
}

/// An operation that cannot be done with these operands: they are the detail, unless there is one already. What
/// PostgreSQL says about a numeric's digits comes first.
pub(crate) fn in_operation(error: Error, operation: Operation, operands: &[Value]) -> Error {
    let operands: Vec<String> = operands.iter().map(shown).collect();
    let text = match (operation, operands.as_slice()) {
        (Operation::Negation, [operand]) => format!("-({operand})"),
        (Operation::Binary(operator), [left, right]) => {
            format!("{left} {} {right}", operator_form(operator).0)
        }
        (Operation::Cast(to), [operand]) => format!("{operand}::{to}"),
        (Operation::Call(function), operands) => format!("{}({})", called(function), operands.join(", ")),
        _ => return error,
    };
    with_operation(error, &text)
}

/// An aggregate that cannot be computed of so many values.
pub(crate) fn in_aggregate(error: Error, aggregate: Aggregate, values: usize) -> Error {
    with_operation(error, &format!("{} of {values} values", aggregated(aggregate)))
}

fn with_operation(error: Error, text: &str) -> Error {
    match error.detail() {
        None => error.with_detail(text),
        Some(detail) if error.state() == SqlState::OUT_OF_RANGE => {
            let detail = format!("{detail} Here: {text}.");
            error.with_detail(detail)
        }
        Some(_) => error,
    }
}

/// The error with the line it arose on, unless it has one.
pub(crate) fn at_line(error: Error, line: u32) -> Error {
    if error.line().is_some() { error } else { error.at_line(line) }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Text(text) => format!("'{text}'"),
        // In hundreds of digits nobody sees how large it is.
        Value::Double(number) if number.abs() >= 1e30 || number.abs() < 1e-15 => match number {
            0.0 => "0".into(),
            number => format!("{number:e}"),
        },
        other => other.to_string(),
    };
    if text.chars().count() <= SHOWN {
        return text;
    }
    text.chars().take(SHOWN).chain("...".chars()).collect()
}
