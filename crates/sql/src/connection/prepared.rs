//! Statements that are ready to run.

use super::listed::Listing;
use super::plan::Ready;
use fabius::Held;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning as planning;
use fabius_sql_syntax::Command;
use fabius_sql_syntax::tokens;
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A statement that is ready to run.
pub struct Prepared {
    /// Types of `$1`, `$2`, ...
    pub parameters: Vec<SqlType>,
    /// Columns of its result, if it gives rows.
    pub columns: Option<Vec<OutputColumn>>,
    pub(super) text: String,
    /// What it asks for; with other literals if it was found by its normal form.
    pub(super) command: Arc<Command>,
    /// The types that the client gave.
    pub(super) given: Vec<SqlType>,
    /// How it runs, by itself and where constraints are deferred; found again when the catalog changes.
    ready: Mutex<[Option<Ready>; 2]>,
    /// Whether somebody holds what it shares with others.
    is_held: AtomicBool,
}

/// Memory that a prepared statement takes, about: its tree and its plan, and for each token more.
const STATEMENT_BYTES: usize = 16 << 10;

const TOKEN_BYTES: usize = 1 << 10;

/// A statement that a session keeps; it may count as held.
pub struct KeptStatement {
    pub(super) prepared: Arc<Prepared>,
    pub(super) held: Held,
    /// It is in `pg_prepared_statements` as long as it is kept.
    pub(super) _listed: Option<Listing>,
}

impl KeptStatement {
    /// Whether it counts.
    pub fn is_counted(&self) -> bool {
        self.held.bytes() > 0
    }
}

impl From<Arc<Prepared>> for KeptStatement {
    /// One that does not count.
    fn from(prepared: Arc<Prepared>) -> KeptStatement {
        KeptStatement { prepared, held: Held::new(None), _listed: None }
    }
}

impl Deref for KeptStatement {
    type Target = Arc<Prepared>;

    fn deref(&self) -> &Arc<Prepared> {
        &self.prepared
    }
}

impl Prepared {
    /// The statement as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn new(text: &str, command: Arc<Command>, given: &[SqlType], ready: Ready) -> Prepared {
        Prepared {
            parameters: ready.plan.parameters.clone(),
            columns: ready.plan.columns.clone(),
            text: text.to_string(),
            command,
            given: given.to_vec(),
            ready: Mutex::new([Some(ready), None]),
            is_held: AtomicBool::new(false),
        }
    }

    /// Whether going through it may take long.
    pub(super) fn is_long(&self) -> bool {
        self.text.len() > planning::SHORT_BYTES
    }

    /// Memory that it takes, about.
    pub fn bytes(&self) -> usize {
        self.own_bytes() + STATEMENT_BYTES + tokens::estimate(&self.text) * TOKEN_BYTES
    }

    /// Memory that it takes besides what is shared with others of its text or normal form.
    fn own_bytes(&self) -> usize {
        size_of::<Prepared>() + self.text.len()
    }

    /// What whoever keeps it holds: the first who does holds what is shared too.
    pub(super) fn bytes_to_keep(&self) -> usize {
        match self.is_held.swap(true, Relaxed) {
            true => self.own_bytes(),
            false => self.bytes(),
        }
    }

    /// Somebody else holds what it shares.
    pub(super) fn share(&self) {
        self.is_held.store(true, Relaxed);
    }

    /// How it runs under a version of the catalog, if that is known.
    pub(super) fn ready(&self, version: u64) -> Option<Ready> {
        let ready = self.ready.lock();
        ready.iter().flatten().find(|ready| ready.plan.version == version).cloned()
    }

    pub(super) fn keep(&self, ready: Ready) {
        let mut kept = self.ready.lock();
        let last = kept[0].replace(ready);
        kept[1] = last;
    }
}
