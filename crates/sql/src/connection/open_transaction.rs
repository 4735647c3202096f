//! What a connection has between the begin of a transaction and its end.

use super::deferred::{ConstraintModes, Doubt};
use super::notify::ListenChange;
use super::stance::Stance;
use crate::lock::LockKey;
use crate::settings::SettingsMark;
use fabius::{Savepoint, Transaction};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::catalog::store::Change;
use fabius_sql_syntax::command::Characteristics;
use fabius_value::{Error, Result, SqlState};
use std::sync::{Arc, Weak};
use tokio::sync::Mutex;

/// What the database beneath has of a transaction; taken out when it ends.
pub(super) type Running = Arc<Mutex<Option<Transaction>>>;

/// Where a connection stands between the begin of a transaction and its end.
pub(crate) enum TransactionState {
    /// None is open.
    Idle,
    /// One is open.
    Open(OpenTransaction),
    /// A statement of the one that is open has failed: it can only go back.
    Failed(OpenTransaction),
}

/// The error of statements in a transaction that has failed.
pub fn aborted() -> Error {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    Error::new(SqlState(*b"25P02"), message)
}

/// The error of a statement in a transaction that is over.
pub(super) fn ended() -> Error {
    Error::new(SqlState(*b"25P02"), "the transaction has ended")
}

impl TransactionState {
    pub fn is_idle(&self) -> bool {
        matches!(self, TransactionState::Idle)
    }

    pub fn has_failed(&self) -> bool {
        matches!(self, TransactionState::Failed(_))
    }

    /// The transaction that is open, failed or not.
    pub fn get(&self) -> Option<&OpenTransaction> {
        match self {
            TransactionState::Idle => None,
            TransactionState::Open(open) | TransactionState::Failed(open) => Some(open),
        }
    }

    /// As [`TransactionState::get`].
    pub fn get_mut(&mut self) -> Option<&mut OpenTransaction> {
        match self {
            TransactionState::Idle => None,
            TransactionState::Open(open) | TransactionState::Failed(open) => Some(open),
        }
    }

    /// Whether the client has begun the one that is open.
    pub fn is_block(&self) -> bool {
        self.get().is_some_and(|open| !open.is_implicit)
    }

    /// Ends what is open.
    pub fn take(&mut self) -> Option<OpenTransaction> {
        match std::mem::replace(self, TransactionState::Idle) {
            TransactionState::Idle => None,
            TransactionState::Open(open) | TransactionState::Failed(open) => Some(open),
        }
    }

    /// What is open has failed, or has gone back to before it did.
    pub fn set_failed(&mut self, has_failed: bool) {
        let state = if has_failed { TransactionState::Failed } else { TransactionState::Open };
        *self = self.take().map_or(TransactionState::Idle, state);
    }

    /// `25P01` unless the client has begun the one that is open.
    pub fn needs_block(&self, what: &str) -> Result<()> {
        match self.is_block() {
            true => Ok(()),
            false => {
                Err(Error::new(SqlState(*b"25P01"), format!("{what} can only be used in transaction blocks")))
            }
        }
    }

    /// Where the newest savepoint of a name is.
    pub fn savepoint_at(&self, name: &str) -> Result<usize> {
        let savepoints = self.get().map(|open| open.savepoints.as_slice()).unwrap_or_default();
        savepoints
            .iter()
            .rposition(|savepoint| savepoint.name == name)
            .ok_or_else(|| Error::new(SqlState(*b"3B001"), format!("savepoint \"{name}\" does not exist")))
    }

    /// `RELEASE`
    pub fn release(&mut self, name: &str) -> Result<()> {
        self.needs_block("RELEASE SAVEPOINT")?;
        let at = self.savepoint_at(name)?;
        if let Some(open) = self.get_mut() {
            open.savepoints.truncate(at);
        }
        Ok(())
    }

    /// Whether a statement of rows has run in the one that is open.
    pub fn has_run(&self) -> bool {
        self.get().is_some_and(OpenTransaction::has_run)
    }

    /// Whether one is open that the client has not begun itself.
    pub fn is_implicit(&self) -> bool {
        self.get().is_some_and(|open| open.is_implicit)
    }

    /// Whether a table of the storage is the transaction's own, and can be written without its other statements.
    pub fn can_write_aside(&self, storage: &str) -> bool {
        self.get().is_some_and(|open| !open.has_run() && open.made.iter().any(|made| made == storage))
    }

    /// Whether one is open that may write nothing.
    pub fn is_read_only(&self) -> bool {
        self.get().is_some_and(|open| open.is_read_only)
    }

    /// A table of the storage is made: it is dropped if the transaction does not commit.
    pub fn note_made(&mut self, storage: String) {
        if let Some(open) = self.get_mut() {
            open.made.push(storage);
        }
    }

    /// A table of the storage is of no use once the transaction has committed.
    pub fn note_left(&mut self, storage: String) {
        if let Some(open) = self.get_mut() {
            open.left.push(storage);
        }
    }

    /// Keeps until its end what did not hold when a statement was over.
    pub fn doubt(&mut self, doubts: Vec<Doubt>) {
        if let Some(open) = self.get_mut() {
            open.doubts.extend(doubts);
        }
    }

    /// Whether something did not hold so far.
    pub fn has_doubts(&self) -> bool {
        self.get().is_some_and(|open| !open.doubts.is_empty())
    }

    /// `25P02` unless a statement can run now.
    pub fn refuse_if_failed(&self) -> Result<()> {
        if self.has_failed() { Err(aborted()) } else { Ok(()) }
    }

    /// The point to which [`TransactionState::forget_since`] goes back.
    pub async fn point(&mut self) -> Option<fabius::Savepoint> {
        let running = self.get()?.running.clone();
        let running = running.lock().await;
        running.as_ref().map(Transaction::savepoint)
    }

    /// Takes back what was done since a point.
    pub async fn forget_since(&mut self, point: Option<fabius::Savepoint>) {
        let Some(open) = self.get() else { return };
        if let (Some(point), Some(running)) = (point, open.running.lock().await.as_mut()) {
            running.roll_back_to(&point);
        }
    }

    /// Refuses what is no part of a transaction.
    ///
    /// # Errors
    /// `25001`
    pub fn refuse_within(&self, what: &str) -> Result<()> {
        match !self.is_idle() && (!self.is_implicit() || self.has_run()) {
            true => {
                let message = format!("{what} cannot run inside a transaction block");
                Err(Error::new(SqlState(*b"25001"), message))
            }
            false => Ok(()),
        }
    }
}

/// The moment at which a transaction reads.
pub(super) enum Moment {
    /// No statement of rows has run yet: it is still to be chosen.
    Open,
    /// A statement of rows has run; names meant this then, where they counted.
    Fixed(Option<Arc<Catalog>>),
}

/// A transaction that is open.
pub(crate) struct OpenTransaction {
    pub(super) running: Running,
    /// The point before its first statement.
    pub(super) begin: Savepoint,
    /// Whether it is the one of several statements of a message, not the client's own.
    pub(super) is_implicit: bool,
    pub(super) is_read_only: bool,
    pub(super) moment: Moment,
    pub(super) characteristics: Characteristics,
    pub(super) began_us: i64,
    pub(super) settings: SettingsMark,
    pub(super) savepoints: Vec<OpenSavepoint>,
    /// Which constraints are deferred.
    pub(super) constraint_modes: ConstraintModes,
    /// What of them did not hold so far.
    pub(super) doubts: Vec<Doubt>,
    /// Changes of the catalog that are not committed.
    pub(super) changes: Vec<Change>,
    /// Changes of temporary objects before it began.
    pub(super) temporary: Vec<Change>,
    /// Tables of the storage that it has made.
    pub(super) made: Vec<String>,
    /// Tables of the storage that are of no use once it has committed.
    pub(super) left: Vec<String>,
    pub(super) locks: Vec<LockKey>,
    /// Where the session listens once it has committed.
    pub(super) listening: Vec<ListenChange>,
    /// What it stands on.
    pub(super) stance: Stance,
    /// Where queries of it read, while one does.
    pub(super) stand: Weak<fabius::ReaderStandpoint>,
}

/// A savepoint.
pub(super) struct OpenSavepoint {
    pub name: String,
    pub point: Savepoint,
    pub settings: SettingsMark,
    pub constraint_modes: ConstraintModes,
    pub doubts: Vec<Doubt>,
    pub changes: usize,
    pub temporary: Vec<Change>,
    pub left: usize,
    pub listening: usize,
    pub told: usize,
}

impl OpenTransaction {
    /// Whether a statement of rows has run.
    pub fn has_run(&self) -> bool {
        matches!(self.moment, Moment::Fixed(_))
    }

    /// Whether it was about to commit when whoever runs it was interrupted.
    pub fn is_committing(&self) -> bool {
        self.running.try_lock().is_ok_and(|running| running.is_none())
    }

    /// A statement of rows runs: what it reads is of one moment from now on.
    pub fn fix_moment(&mut self) {
        if let Moment::Open = self.moment {
            self.moment = Moment::Fixed(None);
        }
    }
}
