//! An interactive transaction: statements one by one, then commit or roll back.

use super::compound::STATEMENTS_MAX;
use super::observation::Observation;
use crate::{Database, Statement};
use fabius_engine::HeldSnapshot;
use fabius_engine::speculation::Overlay;
use fabius_program::compose::CHANGED;
use fabius_value::{Error, Result, Seq, SqlState, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Transactions open at one time, at most: each holds a snapshot.
pub const TRANSACTIONS_MAX: usize = 1536;

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
    /// How long it waits for a lock; `None` for as long as it takes.
    pub lock_timeout: Option<std::time::Duration>,
}

/// What becomes of what a statement shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// It is checked at commit; in a pessimistic transaction it is locked.
    #[default]
    Observe,
    /// It stays as it is until the transaction ends (`FOR SHARE`).
    Lock,
    /// Besides, nobody else locks the rows it has looked at (`FOR UPDATE`).
    LockForUpdate,
}

/// A transaction whose statements come one by one. Dropping it rolls it back.
pub struct Transaction {
    pub(super) database: Arc<Database>,
    pub(super) options: TransactionOptions,
    /// Where it reads, from its first statement on.
    pub(super) snapshot: Option<HeldSnapshot>,
    pub(super) overlay: Overlay,
    pub(super) observations: Vec<Observation>,
}

impl Database {
    /// Begins an interactive transaction. It reads at one seq, that of its first statement.
    pub fn begin(self: &Arc<Self>, options: TransactionOptions) -> Transaction {
        self.sessions().open.fetch_add(1, Relaxed);
        Transaction {
            database: self.clone(),
            options,
            snapshot: None,
            overlay: Overlay::default(),
            observations: Vec::new(),
        }
    }
}

impl Transaction {
    /// Its settings.
    pub fn options(&self) -> &TransactionOptions {
        &self.options
    }

    /// The seq at which it reads; `None` before its first statement.
    pub fn seq(&self) -> Option<Seq> {
        self.snapshot.as_ref().map(HeldSnapshot::seq)
    }

    /// Whether it has written anything.
    pub fn has_written(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// Runs a statement; what it returns can be shown to the client.
    ///
    /// # Errors
    /// Why it aborted: then the transaction is as it was before the statement. `53400` for too many
    /// statements, or transactions.
    pub async fn run(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        _hold: Hold,
    ) -> Result<Vec<Value>> {
        if self.observations.len() >= STATEMENTS_MAX {
            return Err(Error::new(SqlState::TOO_MANY, "too many statements in one transaction")
                .with_detail(format!("at most {STATEMENTS_MAX} are allowed")));
        }
        let encoded: Arc<[u8]> = statement.encode(arguments)?.into();
        let at = self.reading_at().await?;
        let begin = self.overlay.mark();
        let engine = self.database.engine();
        let speculated = engine.speculate(at, statement.procedure(), &encoded, &mut self.overlay)?;
        self.observations.push(Observation {
            statement: statement.clone(),
            arguments: arguments.to_vec(),
            encoded,
            results: speculated.results.clone(),
            footprint: speculated.footprint,
            begin,
        });
        Ok(speculated.results)
    }

    /// The seq at which it reads; whoever is told of what is there may be.
    async fn reading_at(&mut self) -> Result<Seq> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(snapshot.seq());
        }
        if self.database.sessions().open.load(Relaxed) > TRANSACTIONS_MAX {
            return Err(Error::new(SqlState::TOO_MANY, "too many open transactions")
                .with_detail(format!("at most {TRANSACTIONS_MAX} are allowed")));
        }
        let snapshot = self.database.foundation().hold_snapshot();
        let seq = snapshot.seq();
        self.database.durable(seq).await?;
        self.snapshot = Some(snapshot);
        Ok(seq)
    }

    /// Commits: everything it has run, at one place in the order, has shown what it would have shown there.
    /// Gives that place. `key` is the idempotency key of the call, if there is anything to write.
    ///
    /// # Errors
    /// `40001` if something it was shown has changed: trying the whole transaction again may help. Class 23
    /// if it would now violate a constraint. Nothing was written then.
    pub async fn commit(mut self, key: Option<&[u8]>) -> Result<Seq> {
        let seq =
            self.snapshot.as_ref().map_or_else(|| self.database.foundation().promised(), HeldSnapshot::seq);
        if self.overlay.is_empty() {
            // Everything it has seen was so at its snapshot, which is a place in the order.
            return Ok(seq);
        }
        let observations = std::mem::take(&mut self.observations);
        let (program, arguments) = self.database.compound(&observations)?;
        let outcome = self.database.run(&program, &arguments, key).await;
        outcome.map(|outcome| outcome.seq).map_err(as_conflict)
    }

    /// Forgets everything it has run.
    pub fn roll_back(self) {}
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.database.sessions().open.fetch_sub(1, Relaxed);
    }
}

/// The error of a transaction's call as the client meets it: its statements ran well before, so whatever
/// stops one now has come from others.
fn as_conflict(error: Error) -> Error {
    let is_changed = error.state() == SqlState::SERIALIZATION_FAILURE;
    // A row that is gone, a number that has become too large.
    let by_program = ["P0", "22"].iter().any(|class| error.state().as_str().starts_with(class));
    if !is_changed && !by_program {
        return error;
    }
    let conflict = Error::new(SqlState::SERIALIZATION_FAILURE, CHANGED);
    let detail = match is_changed {
        true => error.detail().map(str::to_string),
        false => Some(error.to_string()),
    };
    let conflict = conflict.with_hint("the transaction might succeed if retried");
    detail.into_iter().fold(conflict, Error::with_detail)
}
