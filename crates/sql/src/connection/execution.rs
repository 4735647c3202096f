//! What the statement that runs has of its own, until it is over.

use super::given_rows::GivenRows;
use super::stance::Stance;
use crate::copy::copying::Copying;
use crate::lock::LockKey;
use fabius::Requirement;
use std::sync::Arc;

/// The running of one statement.
#[derive(Default)]
pub(super) struct Execution {
    /// When it began: microseconds since 1970 in UTC.
    pub began_us: i64,
    pub manner: Manner,
    /// What parts of the statement have found.
    pub given: GivenRows,
    /// What a statement by itself stands on.
    pub stance: Stance,
    /// What the call of a statement by itself requires, if it does not stand on the lead of this node.
    pub requirement: Option<Arc<Requirement>>,
    /// Locks until the statement ends, outside of transactions.
    pub locks: Vec<LockKey>,
    /// Rows that the client sends.
    pub copying: Option<Copying>,
    /// Whether the statement has committed what it wrote.
    pub has_committed: bool,
}

/// How what runs now goes about locks, besides what settings say.
#[derive(Clone, Copy, Default)]
pub(super) struct Manner {
    /// What it sees is not held.
    pub is_looking: bool,
    /// It does not wait.
    pub is_impatient: bool,
}

impl Execution {
    /// Begins anew: a statement that was given up may have left something as it was within.
    pub fn begin(&mut self, now_us: i64) {
        self.began_us = now_us;
        self.manner = Manner::default();
        self.requirement = None;
        self.has_committed = false;
    }
}
