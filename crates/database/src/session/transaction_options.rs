//! The settings of a transaction.

use super::allowance::Allowance;
use super::conventional::grain::Grain;
use super::recall::Recall;
use super::requirement::Footing;
use super::wound_wait::Age;
use fabius_engine::Priority;
use std::sync::Arc;
use std::time::Duration;

/// How a transaction goes about what others do meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// What was shown is checked at commit (the default).
    #[default]
    Optimistic,
    /// What was shown is locked: others wait before they change it.
    Pessimistic,
}

/// The settings of a transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionOptions {
    /// How it goes about what others do meanwhile.
    pub concurrency: Concurrency,
    /// What errors and listings call it: `process 4711`.
    pub label: String,
    /// How long it waits for a lock; `None` for as long as it takes. With zero it neither waits nor makes others
    /// give way.
    pub lock_timeout: Option<Duration>,
    /// How old it is when it locks, if it tries again what has given way; else the youngest.
    pub age: Option<Age>,
    /// Whether its calls can still be taken back, for someone who may want to give up on them.
    pub recall: Option<Arc<Recall>>,
    /// Every object that a statement looks at counts as shown, rows or columns of rows: what a database does that sees
    /// reads and writes only. To compare with.
    pub conventional: Option<Grain>,
    /// Conditions are taken to be true without asking, and a statement that writes and returns a count alone to find a
    /// row, even if it finds none now: commit finds out (OCC-LSD+, section 3.3.2 of the paper).
    pub speculative: bool,
    /// What its calls stand on.
    pub footing: Footing,
    /// How urgent its calls are.
    pub priority: Priority,
    /// What it may hold of what it has shown and written; `None` for as much as there is. Chosen when it begins.
    pub memory: Option<Arc<Allowance>>,
}

impl TransactionOptions {
    /// What is one object to a conventional transaction that locks objects.
    pub(super) fn locks_by(&self) -> Option<Grain> {
        self.conventional.filter(|_| self.concurrency == Concurrency::Pessimistic)
    }

    /// What is one object to a conventional transaction that compares versions.
    pub(super) fn compares_by(&self) -> Option<Grain> {
        self.conventional.filter(|_| self.concurrency == Concurrency::Optimistic)
    }
}
