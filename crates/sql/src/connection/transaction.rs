//! Transactions of a connection: begin, commit, roll back, savepoints; the catalog as a transaction sees it.

use super::clock::now_us;
use super::deferred::ConstraintModes;
use super::execution::Manner;
use super::open_transaction::{Moment, OpenSavepoint, OpenTransaction, TransactionState};
use super::plan::Body;
use super::plan::Given;
use super::stance::Stance;
use super::{Connection, TransactionStatus};
use crate::lock::{self, LockKey, LockMode};
use fabius::{Concurrency, Footing, Grain, Transaction, TransactionOptions};
use fabius_sql_meaning::catalog::Table;
use fabius_sql_program::bind::wording;
use fabius_sql_syntax::command::Characteristics;
use fabius_value::{Error, Result, SqlState};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// How a transaction has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Committed,
    /// By a key of an earlier transaction, which has committed: what was done then stays, and nothing is done now.
    Repeated,
    RolledBack,
}

/// The error of a transaction whose statements were understood by a catalog that is not the newest any more.
pub(super) fn redefined() -> Error {
    Error::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to a concurrent change of a definition",
    )
    .with_hint("the transaction might succeed if retried")
}

fn state(code: &[u8; 5]) -> SqlState {
    SqlState(*code)
}

impl Connection {
    /// Where its transaction stands.
    pub fn status(&self) -> TransactionStatus {
        match &self.transaction {
            TransactionState::Failed(_) => TransactionStatus::Failed,
            // A message's own transaction shows only while the message is answered.
            TransactionState::Open(open) if !open.is_implicit => TransactionStatus::Open,
            TransactionState::Open(_) | TransactionState::Idle => TransactionStatus::Idle,
        }
    }

    /// How it goes about what others do, by its settings.
    pub(super) fn options(&self) -> TransactionOptions {
        let chosen = self.session.settings.concurrency();
        let concurrency = match chosen.contains("pessimistic") {
            true => Concurrency::Pessimistic,
            false => Concurrency::Optimistic,
        };
        let conventional = chosen.starts_with("conventional").then(|| match chosen.ends_with("by_column") {
            true => Grain::Column,
            false => Grain::Row,
        });
        let Manner { is_looking, is_impatient } = self.execution.manner;
        TransactionOptions {
            footing: self.footing(),
            concurrency: if is_looking { Concurrency::Optimistic } else { concurrency },
            label: lock::label(self.session.process),
            lock_timeout: if is_impatient {
                Some(Duration::ZERO)
            } else {
                self.session.settings.lock_timeout()
            },
            age: None,
            recall: Some(self.session.recall.clone()),
            conventional: conventional.filter(|_| !is_looking),
            speculative: chosen == "speculative",
            priority: self.session.settings.priority(),
            memory: Some(self.session.memory.clone()),
        }
    }

    /// A transaction of the database beneath, with the session's settings.
    pub(super) fn start(&self) -> Transaction {
        self.database.database().begin(self.options())
    }

    fn open(&mut self, characteristics: &Characteristics, is_implicit: bool) {
        let is_read_only = characteristics.is_read_only.unwrap_or_else(|| self.session.settings.reads_only())
            || self.session.reads_the_past();
        // What a query told before, whose rows have been taken since.
        self.tell_unless_open();
        let running = self.start();
        // Constraints that are deferred are so in transactions only.
        self.session.forget_deferrable();
        self.transaction = TransactionState::Open(OpenTransaction {
            begin: running.savepoint(),
            running: Arc::new(Mutex::new(Some(running))),
            is_implicit,
            is_read_only,
            moment: Moment::Open,
            characteristics: characteristics.clone(),
            began_us: self.execution.began_us,
            settings: self.session.settings.mark(),
            savepoints: Vec::new(),
            constraint_modes: ConstraintModes::default(),
            doubts: Vec::new(),
            changes: Vec::new(),
            temporary: self.session.temporary.clone(),
            made: Vec::new(),
            left: Vec::new(),
            locks: Vec::new(),
            listening: Vec::new(),
            stance: self.execution.stance.clone(),
            stand: Weak::new(),
        });
    }

    /// Begins the transaction that several statements of one message form together, unless one is open.
    ///
    /// # Errors
    /// In a cluster, why the node has stopped.
    pub async fn begin_implicit(&mut self) -> Result<()> {
        if self.transaction.is_idle() {
            self.execution.began_us = now_us();
            self.execution.requirement = None;
            self.execution.stance = Stance::now(&self.database).await?;
        }
        self.begin_within();
        Ok(())
    }

    /// Begins the transaction of what runs now, which stands on what that does, unless one is open.
    pub(crate) fn begin_within(&mut self) {
        if self.transaction.is_idle() {
            self.open(&Characteristics::default(), true);
        }
    }

    /// Begins a transaction of what runs now, unless one is open; whether it did.
    pub(crate) fn begin_alone(&mut self) -> bool {
        let is_alone = self.transaction.is_idle();
        if is_alone {
            self.begin_within();
        }
        is_alone
    }

    /// Ends the transaction that was begun for something, by how that has come out.
    ///
    /// # Errors
    /// That of the outcome, or why it could not be committed.
    pub(crate) async fn end_alone<T>(&mut self, is_alone: bool, outcome: Result<T>) -> Result<T> {
        if is_alone {
            self.end_implicit(outcome.is_ok()).await?;
        }
        outcome
    }

    /// Ends that transaction, unless the client has made it its own by `BEGIN`.
    ///
    /// # Errors
    /// Why it could not be committed.
    pub async fn end_implicit(&mut self, commit: bool) -> Result<()> {
        match &self.transaction {
            TransactionState::Open(open) if open.is_implicit && commit => self.commit().await,
            _ if self.transaction.is_implicit() => {
                self.roll_back().await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whether a transaction is open that the client has not begun itself.
    pub fn is_in_implicit_transaction(&self) -> bool {
        self.transaction.is_implicit()
    }

    /// How many transactions `COMMIT` and `ROLLBACK` have ended so far.
    pub fn transactions_ended(&self) -> u64 {
        self.session.transactions_ended
    }

    /// Whether what runs, or ran last, has committed what it wrote: then it cannot fail any more.
    pub fn has_committed(&self) -> bool {
        self.execution.has_committed
    }

    /// `BEGIN`
    pub(super) fn begin(&mut self, characteristics: &Characteristics) -> Result<()> {
        match self.transaction.get_mut() {
            Some(open) if open.is_implicit => open.is_implicit = false,
            Some(_) => self.session.warn(b"25001", "there is already a transaction in progress"),
            None => self.open(characteristics, false),
        }
        self.characterize(characteristics)
    }

    /// `SET TRANSACTION`, and what follows `BEGIN`.
    pub(super) fn characterize(&mut self, characteristics: &Characteristics) -> Result<()> {
        let Some(open) = self.transaction.get_mut() else {
            self.session.warn(b"25P01", "SET TRANSACTION can only be used in transaction blocks");
            return Ok(());
        };
        if let Some(is_read_only) = characteristics.is_read_only {
            if !is_read_only && open.is_read_only && open.has_run() {
                return Err(Error::new(
                    state(b"25001"),
                    "transaction read-write mode must be set before any query",
                ));
            }
            open.is_read_only = is_read_only;
        }
        if characteristics.isolation.is_some() {
            if open.has_run() && open.characteristics.isolation != characteristics.isolation {
                return Err(Error::new(
                    state(b"25001"),
                    "SET TRANSACTION ISOLATION LEVEL must be called before any query",
                ));
            }
            open.characteristics.isolation = characteristics.isolation;
        }
        if characteristics.is_deferrable.is_some() {
            open.characteristics.is_deferrable = characteristics.is_deferrable;
        }
        Ok(())
    }

    /// `COMMIT`: the tag, which says `ROLLBACK` if it had failed.
    pub(super) async fn end(&mut self, commit: bool, chain: bool) -> Result<&'static str> {
        let Some(open) = self.transaction.get() else {
            if chain {
                let what = if commit { "COMMIT AND CHAIN" } else { "ROLLBACK AND CHAIN" };
                return Err(Error::new(
                    state(b"25P01"),
                    format!("{what} can only be used in transaction blocks"),
                ));
            }
            self.session.warn(b"25P01", "there is no transaction in progress");
            return Ok(if commit { "COMMIT" } else { "ROLLBACK" });
        };
        if open.is_implicit {
            self.session.warn(b"25P01", "there is no transaction in progress");
        }
        let mut characteristics = open.characteristics.clone();
        characteristics.is_read_only = Some(open.is_read_only);
        let commits = commit && !self.transaction.has_failed();
        self.session.transactions_ended += 1;
        if commits {
            self.commit().await?;
        } else {
            self.roll_back().await;
        }
        if chain {
            self.open(&characteristics, false);
        }
        Ok(if commits { "COMMIT" } else { "ROLLBACK" })
    }

    /// Commits what is open; afterwards nothing is, whatever comes of it.
    pub(super) async fn commit(&mut self) -> Result<()> {
        if self.transaction.is_idle() {
            return Ok(());
        }
        let settled = match self.transaction.has_doubts() {
            true => Box::pin(self.settle_doubts(|_| true)).await,
            false => Ok(()),
        };
        let held = match settled {
            Ok(()) => self.session.cursors.complete().await,
            Err(error) => Err(error),
        };
        let Some(open) = self.transaction.get() else { return Ok(()) };
        let running = open.running.lock().await.take();
        let outcome = match running {
            Some(running) if held.is_ok() => self.commit_running(running).await,
            Some(_) => held.map(|()| End::RolledBack),
            None => Err(Error::new(state(b"25P02"), "the transaction has ended")),
        };
        if let Some(open) = self.transaction.take() {
            self.wind_up(open, *outcome.as_ref().unwrap_or(&End::RolledBack));
        }
        outcome.map(drop)
    }

    /// What is left to do when a transaction has ended.
    pub(super) fn wind_up(&mut self, open: OpenTransaction, end: End) {
        if end == End::RolledBack {
            self.session.settings.go_back(&open.settings);
            self.session.temporary = open.temporary;
        }
        self.session.settings.end_local();
        match end {
            End::Committed => {
                if !open.changes.is_empty() {
                    self.database.publish(self.within(), &open.changes);
                }
                self.drop_storage(&open.left);
            }
            End::Repeated => {
                let (made, left) = (open.made.iter(), open.left.iter());
                let unused: Vec<String> =
                    made.chain(left).filter(|name| !self.is_named(name)).cloned().collect();
                self.drop_storage(&unused);
            }
            End::RolledBack => self.drop_storage(&open.made),
        }
        self.session.forget_catalog();
        self.session.cursors.end(end != End::RolledBack);
        self.let_go(&open.locks);
        self.end_telling(&open.listening, end == End::Committed);
    }

    /// Whether a table, committed or temporary, has its rows in this table of the storage.
    fn is_named(&self, storage: &str) -> bool {
        self.database.is_named(storage)
            || self.session.temporary_storage().any(|temporary| temporary == storage)
    }

    /// Gives up locks on tables, and the advisory ones that are of the transaction.
    fn let_go(&self, locks: &[LockKey]) {
        self.database.release_locks(self.session.process, locks);
        self.session.facts.advisory.lock().give_back_all(&self.database.locks, self.session.process, true);
    }

    /// Commits in the database beneath, with the changes of the catalog.
    async fn commit_running(&mut self, mut running: Transaction) -> Result<End> {
        let changes = self.transaction.get().map(|open| open.changes.clone()).unwrap_or_default();
        let key = self.session.settings.idempotency_key();
        // A repetition commits without doing anything. What is published of a catalog has to be what was done.
        let database = self.database.clone();
        let mut alone = None;
        if let Some(key) = key.as_ref().filter(|_| !changes.is_empty()) {
            alone = Some(database.commit_alone(key)?);
            // One that has aborted is told so when it commits.
            if let Some(Ok(first)) = database.database().first_outcome(key.as_bytes()).await? {
                self.session.note_place(Some(first), true);
                return Ok(End::Repeated);
            }
        }
        if !changes.is_empty() {
            let (program, arguments) = self.database.change(self.within(), &changes)?;
            running.run(&program, &arguments, fabius::Hold::Observe).await?;
        }
        let has_written = running.has_written();
        if has_written {
            self.refuse_void_locks()?;
        }
        *running.options_mut() = self.options();
        if let Some(ground) = self.ground().cloned()
            && running.makes_call()
            && self.execution.requirement.is_none()
        {
            let requirement = self.requirement_of(&ground).await?.ok_or_else(redefined)?;
            running.options_mut().footing = Footing::State(requirement);
        }
        let makes_call = running.makes_call();
        let outcome = running.commit(key.as_deref().map(str::as_bytes)).await;
        drop(alone);
        match outcome {
            Ok(seq) => {
                self.session.note_place(Some(seq), makes_call);
                self.execution.has_committed |= has_written;
                Ok(End::Committed)
            }
            // A table that is replaced where another node leads is gone before anybody here knows.
            Err(error) if self.stands_elsewhere() && error.state().as_str().starts_with("42") => {
                Err(redefined())
            }
            Err(error) => Err(wording::in_words(error, &self.catalog())),
        }
    }

    /// Forgets what is open.
    pub(super) async fn roll_back(&mut self) {
        let Some(open) = self.transaction.take() else { return };
        if let Some(running) = open.running.lock().await.take() {
            running.roll_back();
        }
        self.wind_up(open, End::RolledBack);
    }

    /// Tables of the storage that nothing refers to any more.
    fn drop_storage(&self, names: &[String]) {
        for name in names {
            // What cannot be dropped now is dropped when the database opens the next time.
            let _ = self.database.drop_storage(name);
        }
    }

    /// `SAVEPOINT`
    pub(super) async fn savepoint(&mut self, name: String) -> Result<()> {
        self.transaction.needs_block("SAVEPOINT")?;
        let settings = self.session.settings.mark();
        let temporary = self.session.temporary.clone();
        if let Some(open) = self.transaction.get_mut()
            && let Some(running) = open.running.lock().await.as_ref()
        {
            let (changes, left, listening) = (open.changes.len(), open.left.len(), open.listening.len());
            let point = running.savepoint();
            let (constraint_modes, doubts) = (open.constraint_modes.clone(), open.doubts.clone());
            open.savepoints.push(OpenSavepoint {
                name,
                point,
                settings,
                constraint_modes,
                doubts,
                changes,
                temporary,
                left,
                listening,
                told: self.session.facts.told(),
            });
        }
        Ok(())
    }

    /// `ROLLBACK TO`
    pub(super) async fn roll_back_to(&mut self, name: &str) -> Result<()> {
        self.transaction.needs_block("ROLLBACK TO SAVEPOINT")?;
        let at = self.transaction.savepoint_at(name)?;
        if let Some(open) = self.transaction.get_mut() {
            let savepoint = &open.savepoints[at];
            if let Some(running) = open.running.lock().await.as_mut() {
                running.roll_back_to(&savepoint.point);
            }
            open.changes.truncate(savepoint.changes);
            open.left.truncate(savepoint.left);
            open.listening.truncate(savepoint.listening);
            self.session.facts.tell_only(savepoint.told);
            // What was settled since may have held by what is taken back.
            open.doubts.clone_from(&savepoint.doubts);
            open.constraint_modes = savepoint.constraint_modes.clone();
            self.session.temporary = savepoint.temporary.clone();
            self.session.settings.go_back(&savepoint.settings.clone());
            open.savepoints.truncate(at + 1);
            self.transaction.set_failed(false);
            self.session.forget_catalog();
        }
        Ok(())
    }

    /// A statement has failed: so has its transaction. What it holds, beyond its last savepoint, is of no use any
    /// more, and nobody else need wait for it.
    pub(crate) fn fail(&mut self) {
        let TransactionState::Open(open) = &mut self.transaction else { return };
        let point = open.savepoints.last().map_or(open.begin, |savepoint| savepoint.point);
        if let Ok(mut running) = open.running.try_lock()
            && let Some(running) = running.as_mut()
        {
            running.roll_back_to(&point);
        }
        let locks = open.savepoints.is_empty().then(|| std::mem::take(&mut open.locks));
        self.transaction.set_failed(true);
        if let Some(locks) = locks {
            self.let_go(&locks);
        }
    }
}

/// What definitions ask of the connection.
impl Connection {
    pub(crate) fn set_copying(&mut self, copying: Option<crate::copy::copying::Copying>) {
        self.execution.copying = copying;
    }

    pub(crate) fn take_copying(&mut self) -> Option<crate::copy::copying::Copying> {
        self.execution.copying.take()
    }

    /// Why something is refused that only reads.
    pub(crate) fn refuse_to_write(&self, what: &str) -> Error {
        Error::new(state(b"25006"), format!("cannot execute {what} in a read-only transaction"))
    }

    /// Runs a program that fills a table of the storage that nobody else sees yet: by itself, as long as the
    /// transaction does not read at a moment of its own; else as a part of it.
    pub(crate) async fn submit_aside(
        &mut self,
        statement: &Arc<fabius::Statement>,
        arguments: &[fabius_value::Value],
    ) -> Result<Vec<fabius_value::Value>> {
        match self.transaction.has_run() {
            true => self.submit(statement, arguments, None).await,
            false => Ok(self.database.database().run(statement, arguments, None).await?.results),
        }
    }

    /// Runs a statement that writes a table which nobody else sees yet.
    pub(crate) async fn write_aside(&mut self, text: &str) -> Result<()> {
        let prepared = self.prepare(text, &[]).await?;
        let (catalog, ready) = self.hold_plan(&prepared, LockMode::AccessShare).await?;
        let given = Given { literals: &ready.literals, ..Given::default() };
        let Body::Program(program) = &ready.plan.body else {
            return self.perform(&catalog, &ready.plan, given).await.map(drop);
        };
        let mut arguments = Vec::new();
        for argument in &program.lowered.arguments {
            arguments.push(self.argument(&catalog, argument, given).await?);
        }
        let outcome = self.submit_aside(&program.statement, &arguments).await;
        outcome.map(drop).map_err(|error| wording::in_words(error, &catalog))
    }

    /// How many rows a table has, as the transaction sees it.
    pub(crate) async fn count_rows(&mut self, table: &Table) -> Result<usize> {
        let text = format!(
            "procedure count() -> bigint {{ var n: bigint = 0 for row in `{}` {{ n = n + 1 }} return n }}",
            table.storage.replace('`', "``")
        );
        let statement = self.database.program(text)?;
        let results = self.submit_aside(&statement, &[]).await?;
        Ok(results
            .first()
            .and_then(fabius_value::Value::as_integer)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or_default())
    }
}
