//! Statements that lock rows: `FOR UPDATE` and the like.

use fabius::Transaction;
use fabius_sql_meaning::output::RowLock;
use fabius_value::{Error, Result, SqlState, Value};
use std::sync::Arc;
use std::time::Duration;

/// Runs a statement with `FOR UPDATE` or the like.
pub(super) async fn submit_locking(
    transaction: &mut Transaction,
    statement: &Arc<fabius::Statement>,
    arguments: &[Value],
    (row_lock, bytes_max): (Option<RowLock>, usize),
) -> Result<Vec<Value>> {
    if row_lock.is_some_and(|lock| lock.no_wait) {
        transaction.options_mut().lock_timeout = Some(Duration::ZERO);
    }
    transaction.run_within(statement, arguments, RowLock::hold(row_lock), bytes_max).await
}

/// The error of `NOWAIT` for a row that somebody else has locked.
pub(super) fn unless_waited(error: Error, row_lock: Option<RowLock>, table: &str) -> Error {
    if error.state() != SqlState::LOCK_NOT_AVAILABLE || !row_lock.is_some_and(|lock| lock.no_wait) {
        return error;
    }
    let message = format!("could not obtain lock on row in relation \"{table}\"");
    let words = Error::new(error.state(), message);
    match error.detail() {
        Some(detail) => words.with_detail(detail),
        None => words,
    }
}
