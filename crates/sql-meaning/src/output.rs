//! What a query shows: columns, and locks on the rows.

use crate::sql_type::SqlType;
use fabius::Hold;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    /// The column's name.
    pub name: String,
    /// The column's type.
    pub sql_type: SqlType,
    /// The table it comes from unchanged, and its place there (from 1): number and column, else zeros.
    pub origin: (u32, u16),
}

/// What becomes of the rows that a query shows: they may not change until the transaction ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowLock {
    /// `FOR UPDATE`: nobody else locks them either.
    pub is_exclusive: bool,
    /// `NOWAIT`: it fails if somebody else has locked them.
    pub no_wait: bool,
}

impl RowLock {
    /// What a clause asks for.
    ///
    /// # Errors
    /// `0A000` for `SKIP LOCKED`.
    pub fn of(clause: &ast::LockClause) -> Result<RowLock> {
        let is_exclusive = clause.lock_type == ast::LockType::Update;
        match clause.nonblock {
            None => Ok(RowLock { is_exclusive, no_wait: false }),
            Some(ast::NonBlock::Nowait) => Ok(RowLock { is_exclusive, no_wait: true }),
            Some(ast::NonBlock::SkipLocked) => Err(skip_locked()),
        }
    }

    /// What a clause asks of the database beneath.
    pub fn hold(lock: Option<RowLock>) -> Hold {
        match lock {
            None => Hold::Observe,
            Some(RowLock { is_exclusive: false, .. }) => Hold::Lock,
            Some(RowLock { is_exclusive: true, .. }) => Hold::LockForUpdate,
        }
    }
}

/// The error of `SKIP LOCKED` in what is not a statement by itself.
fn skip_locked() -> Error {
    Error::new(SqlState::NOT_SUPPORTED, "SKIP LOCKED is not supported here")
        .with_hint("NOWAIT and lock_timeout bound the wait for a row")
}
