//! Someone who waits for the locks of another.

use fabius_value::{Error, SqlState, TableId};
use std::time::Instant;

/// Someone who waits, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waits: the label of its transaction.
    pub waiting: String,
    /// Who is in the way.
    pub holder: String,
    /// The table it is about.
    pub table: TableId,
    /// The row: `stock (item) = (1)`.
    pub row: String,
    /// Whether it waits to write, or for a lock.
    pub writes: bool,
    /// Since when.
    pub since: Instant,
}

/// The error of someone who has waited for as long as it wanted to.
pub(crate) fn waited_too_long(wait: &Wait) -> Error {
    Error::new(SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
        .with_detail(format!("{} is locked by {}", wait.row, wait.holder))
}
