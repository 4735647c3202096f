//! An interactive transaction: statements one by one, then commit or roll back.

use super::allowance::Held;
use super::compound::STATEMENTS_MAX;
use super::hold::Hold;
use super::noted::Noted;
use super::observation::Observation;
use super::recall::{is_given_up, room};
use super::request::{Asked, Asking, Wish, until_granted};
use super::transaction_options::{Concurrency, TransactionOptions};
use super::wait::Wait;
use super::wound_wait::{Age, Owner};
use crate::history::Moment;
use crate::statement::Caller;
use crate::{Database, Statement};
use fabius_engine::speculation::{Footprint, Mark, Overlay, Speculated};
use fabius_engine::{Definitions, HeldSnapshot, Room};
use fabius_value::{Error, Result, Seq, SqlState, Value};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Transactions open at one time, and standpoints of theirs, at most: each holds a snapshot.
pub const TRANSACTIONS_MAX: usize = 3072;

/// How often who waits for a seq that is still to come looks whether it is there.
const LOOKS: Duration = Duration::from_millis(2);

/// A transaction whose statements come one by one. Dropping it rolls it back.
pub struct Transaction {
    pub(super) database: Arc<Database>,
    pub(super) options: TransactionOptions,
    /// Where it reads, from its first statement on; with a lock it moves on.
    pub(super) snapshot: Option<HeldSnapshot>,
    pub(super) overlay: Overlay,
    /// The seq of the rows that the overlay's were made of.
    overlay_at: Seq,
    pub(super) observations: Vec<Arc<Observation>>,
    /// Where the writes of each begin, and how much was held before.
    pub(super) begins: Vec<(Mark, usize)>,
    /// What it has shown that is not among the observations yet.
    pub(super) noted: Vec<Noted>,
    /// How many observations come before those that were made in their order.
    pub(super) in_front: usize,
    /// Bytes that all of this takes.
    pub(super) held: Held,
    /// What it locks as, once it has.
    pub(super) owner: Option<Arc<Owner>>,
    /// Whether it has shown anything that is not so at its snapshot.
    pub(super) has_assumed: bool,
    /// Whether it has moved on and trusted its locks that what it has shown is so there too.
    has_trusted: bool,
    /// Whether its seq is one of the past that it was told.
    pub(super) is_past: bool,
}

impl Database {
    /// Begins an interactive transaction. It reads at one seq, that of its first statement.
    pub fn begin(self: &Arc<Self>, options: TransactionOptions) -> Transaction {
        self.sessions().open.fetch_add(1, Relaxed);
        let held = Held::new(options.memory.clone());
        Transaction {
            database: self.clone(),
            options,
            snapshot: None,
            overlay: Overlay::default(),
            overlay_at: Seq::ZERO,
            observations: Vec::new(),
            begins: Vec::new(),
            noted: Vec::new(),
            in_front: 0,
            held,
            owner: None,
            has_assumed: false,
            has_trusted: false,
            is_past: false,
        }
    }
}

impl Database {
    /// A snapshot for an interactive transaction.
    ///
    /// # Errors
    /// `53400` if there are too many transactions.
    pub(crate) fn hold_snapshot(&self) -> Result<HeldSnapshot> {
        self.refuse_too_many()?;
        Ok(self.foundation().hold_snapshot())
    }

    /// Returns once a seq is promised here.
    ///
    /// # Errors
    /// What ended the log, or stopped the engine.
    async fn reach(&self, seq: Seq) -> Result<()> {
        poll_fn(|context| {
            if let Some(failure) = self.failure() {
                return Poll::Ready(Err(failure));
            }
            if self.foundation().promised() >= seq {
                return Poll::Ready(Ok(()));
            }
            self.sessions().alarm.at(Instant::now() + LOOKS, context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// # Errors
    /// `53400` if there are too many transactions.
    pub(super) fn refuse_too_many(&self) -> Result<()> {
        if self.sessions().open.load(Relaxed) > TRANSACTIONS_MAX {
            return Err(Error::new(SqlState::TOO_MANY, "too many open transactions")
                .with_detail(format!("at most {TRANSACTIONS_MAX} are allowed")));
        }
        Ok(())
    }
}

impl Transaction {
    /// Makes it read at a moment of the past, before its first statement. It cannot write then. A seq that is still
    /// to come is waited for (Calvin, section 3.1.2).
    ///
    /// # Errors
    /// `55000` if that moment is not kept, or no history is; `25001` if it reads at another seq already; what ended
    /// the log.
    pub async fn stand_at(&mut self, moment: Moment) -> Result<Arc<Definitions>> {
        if let Moment::Seq(seq) = moment {
            self.database.kept_history()?;
            self.database.reach(seq).await?;
        }
        let (snapshot, definitions) = self.database.kept_history()?.snapshot(moment)?;
        if self.snapshot.as_ref().is_some_and(|own| !self.is_past || own.seq() != snapshot.seq()) {
            let message = "a moment of the past must be chosen before any query";
            return Err(Error::new(SqlState(*b"25001"), message));
        }
        // What is not durable yet is not the past: it may never have been.
        self.database.durable(snapshot.seq()).await?;
        (self.snapshot, self.is_past) = (Some(snapshot), true);
        Ok(definitions)
    }

    /// The transaction's settings.
    pub fn options(&self) -> &TransactionOptions {
        &self.options
    }

    /// The transaction's settings, which may change from its next statement on.
    pub fn options_mut(&mut self) -> &mut TransactionOptions {
        &mut self.options
    }

    /// The seq at which it reads; `None` before its first statement.
    pub fn seq(&self) -> Option<Seq> {
        self.snapshot.as_ref().map(HeldSnapshot::seq)
    }

    /// How old it is, once it has locked anything.
    pub fn age(&self) -> Option<Age> {
        self.owner.as_ref().map(|owner| Age(owner.age))
    }

    /// Whether it has to give way to an older one: then it can only be tried again.
    pub fn has_given_way(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.wounded().is_some())
    }

    /// Whether it commits by a call, which is ordered: it has written, or has relied on what it was not shown.
    pub fn makes_call(&self) -> bool {
        self.has_written() || self.has_assumed
    }

    /// Whether it has written anything.
    pub fn has_written(&self) -> bool {
        !self.overlay.is_empty()
    }

    /// Runs a statement; what it returns can be shown to the client.
    ///
    /// # Errors
    /// Why it aborted: then the transaction is as it was before the statement. `40001` if it has to give way
    /// to an older one, or a lock shows that something has changed; `55P03` if a lock was not granted in time;
    /// `53400` for too many statements, or transactions; `53200` if it would hold too much.
    pub async fn run(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        hold: Hold,
    ) -> Result<Vec<Value>> {
        self.run_within(statement, arguments, hold, usize::MAX).await
    }

    /// Runs a statement that is not to take more than so many bytes.
    ///
    /// # Errors
    /// As [`Transaction::run`]; `53200` if it would take more.
    pub async fn run_within(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        hold: Hold,
        bytes_max: usize,
    ) -> Result<Vec<Value>> {
        if self.observations.len() + self.noted.len() >= STATEMENTS_MAX {
            return Err(Error::new(SqlState::TOO_MANY, "too many statements in one transaction")
                .with_detail(format!("at most {STATEMENTS_MAX} are allowed")));
        }
        if let Some(error) = self.owner.as_ref().and_then(|owner| owner.wounded()) {
            return Err(error);
        }
        if self.is_past && !statement.is_read_only() {
            let message = "cannot write in a transaction that reads the past";
            return Err(Error::new(SqlState(*b"25006"), message));
        }
        let before = self.savepoint();
        let results = self.run_held(statement, arguments, (hold, bytes_max)).await;
        if let Err(error) = &results {
            self.truncate_to(&before);
            if let Some(at) = self.seq().filter(|_| is_of_constraint(error))
                && self.has_changed(at)
            {
                return Err(self.conflict());
            }
        }
        results
    }

    /// Runs a statement and holds what it has shown.
    pub(super) async fn run_held(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        (hold, bytes_max): (Hold, usize),
    ) -> Result<Vec<Value>> {
        let encoded: Arc<[u8]> = statement.encode(arguments)?.into();
        let hold = match (hold, self.options.concurrency) {
            // The past does not change.
            _ if self.is_past => Hold::Observe,
            (Hold::Observe, Concurrency::Pessimistic) => Hold::Lock,
            _ => hold,
        };
        let run = Run { statement, arguments, encoded: &encoded, hold, bytes_max };
        if hold != Hold::Observe || !statement.is_read_only() {
            self.record()?;
        }
        if let Some(grain) = self.locks_by() {
            return self.run_on_locked(&run, grain).await;
        }
        if hold != Hold::Observe {
            return self.run_locked(&run).await;
        }
        let at = self.reading_at().await?;
        self.run_at(at, &run).map(|observation| observation.results.clone())
    }

    pub(super) fn run_at(&mut self, at: Seq, run: &Run<'_>) -> Result<Arc<Observation>> {
        let mut begin = self.overlay.mark();
        let database = self.database.clone();
        let (engine, procedure) = (database.engine(), run.statement.procedure());
        let space = || room(run.bytes_max.min(self.held.left()), self.options.recall.as_ref());
        let mut ran = engine.speculate(at, procedure, run.encoded, &mut self.overlay, space());
        // A row of its own that it looks at may have been made of what others have changed since.
        let is_behind = self.overlay_at != at && !self.overlay.is_empty();
        let may_differ = match &ran {
            Ok(ran) => ran.footprint.meets_before(&self.overlay, begin),
            Err(error) => !is_given_up(error),
        };
        if is_behind && may_differ {
            self.overlay.undo_to(begin);
            self.lay_over(at)?;
            begin = self.overlay.mark();
            let space = room(run.bytes_max.min(self.held.left()), self.options.recall.as_ref());
            ran = engine.speculate(at, procedure, run.encoded, &mut self.overlay, space);
        }
        if begin == Overlay::default().mark() {
            self.overlay_at = at;
        }
        let Speculated { mut results, footprint } = ran.map_err(|error| self.held.refusal(error))?;
        if self.options.speculative && !run.statement.is_read_only() && results == [Value::BigInt(0)] {
            results = vec![Value::BigInt(1)];
            self.has_assumed = true;
        }
        let observation = Arc::new(run.observation(results, footprint));
        let before = self.held.bytes();
        if let Err(error) = self.held.take(observation.bytes() + self.overlay.bytes_since(begin)) {
            self.overlay.undo_to(begin);
            return Err(error);
        }
        self.observations.push(observation.clone());
        self.begins.push((begin, before));
        Ok(observation)
    }

    /// The seq at which it reads; whoever is told of what is there may be.
    pub(super) async fn reading_at(&mut self) -> Result<Seq> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(snapshot.seq());
        }
        let snapshot = self.database.hold_snapshot()?;
        let seq = snapshot.seq();
        self.database.durable(seq).await?;
        self.snapshot = Some(snapshot);
        Ok(seq)
    }

    /// Runs a statement on the newest state, and locks what it has shown.
    async fn run_locked(&mut self, run: &Run<'_>) -> Result<Vec<Value>> {
        let (database, timeout) = (self.database.clone(), self.options.lock_timeout);
        let (label, age) = (&self.options.label, self.options.age);
        let owner = self.owner.get_or_insert_with(|| database.sessions().admission.owner(label, age)).clone();
        let ask = |wish: Wish<'_>| self.try_locked(&owner, run, wish);
        let results = until_granted(&database, &owner, timeout, ask).await?;
        let at = self.seq().unwrap_or_default();
        self.database.durable(at).await?;
        Ok(results)
    }

    /// The statement's results, or who is in the way.
    fn try_locked(
        &mut self,
        owner: &Arc<Owner>,
        run: &Run<'_>,
        wish: Wish<'_>,
    ) -> Result<Result<Vec<Value>, Wait>> {
        let database = self.database.clone();
        database.with_gate(owner, run.statement.tables(), |gate| {
            let mut asking = Asking { database: &database, gate, owner };
            let at = self.move_on()?;
            let observation = self.run_at(at, run)?;
            match asking.lock(&self.observations, &observation, wish) {
                Asked::Granted => Ok(Ok(observation.results.clone())),
                Asked::Blocked(wait) => {
                    self.truncate(self.observations.len() - 1);
                    Ok(Err(wait))
                }
            }
        })
    }

    /// Moves to the newest state. What was shown so far has to be so there too; what is locked is, but for a call that
    /// was past its admission when the lock was granted: whether there was one is found out when it commits.
    pub(super) fn move_on(&mut self) -> Result<Seq> {
        let promised = self.database.foundation().promised();
        if let Some(seen) = self.seq().filter(|seen| *seen >= promised) {
            return Ok(seen);
        }
        let snapshot = self.database.hold_snapshot()?;
        let seq = snapshot.seq();
        if self.observations.iter().any(|observation| observation.hold == Hold::Observe) {
            self.lay_over(seq)?;
            self.has_trusted = false;
        } else {
            self.has_trusted = !self.observations.is_empty();
        }
        self.snapshot = Some(snapshot);
        Ok(seq)
    }

    /// Makes the overlay again, of the rows at `seq`, at which somebody holds a snapshot.
    fn lay_over(&mut self, seq: Seq) -> Result<()> {
        let (mut overlay, mut begins) = (Overlay::default(), Vec::with_capacity(self.begins.len()));
        for (observation, (_, held)) in self.observations.iter().zip(&self.begins) {
            begins.push((overlay.mark(), *held));
            let again = self.shown_at(seq, observation, &mut overlay);
            if !again.is_ok_and(|again| again.results == observation.results) {
                return Err(self.conflict());
            }
        }
        (self.overlay, self.overlay_at, self.begins) = (overlay, seq, begins);
        Ok(())
    }

    /// What a statement that it has run shows at `seq`, behind those in the overlay.
    fn shown_at(&self, seq: Seq, shown: &Observation, overlay: &mut Overlay) -> Result<Speculated> {
        let procedure = shown.statement.procedure();
        self.database.engine().speculate(seq, procedure, &shown.encoded, overlay, Room::unbounded())
    }

    fn conflict(&self) -> Error {
        self.database.conflict(&self.options.label, self.seq().unwrap_or_default(), &self.observations)
    }

    /// Forgets all statements from one on.
    pub(super) fn truncate(&mut self, count: usize) {
        if let Some((begin, held)) = self.begins.get(count) {
            self.overlay.undo_to(*begin);
            self.held.shrink_to(*held);
            self.begins.truncate(count);
            self.observations.truncate(count);
        }
    }

    /// Commits: everything it has run, at one place in the order, has shown what it would have shown there.
    /// Gives that place. `key` is the idempotency key of the call, if there is anything to write.
    ///
    /// # Errors
    /// `40001` if something it was shown has changed: trying the whole transaction again may help. Class 23
    /// if all that is still so, and it would violate a constraint. Nothing was written then.
    pub async fn commit(mut self, key: Option<&[u8]>) -> Result<Seq> {
        if let Some(error) = self.owner.as_ref().and_then(|owner| owner.wounded()) {
            return Err(error);
        }
        if !self.makes_call() {
            // Everything it has seen was so at its snapshot, which is a place in the order.
            if let Some(seq) = self.seq().filter(|_| self.has_trusted) {
                self.lay_over(seq)?;
            }
            return Ok(self.seq().unwrap_or_else(|| self.database.foundation().promised()));
        }
        if let (Some(grain), Some(seen)) = (self.options.compares_by(), self.seq()) {
            self.database.compare_versions(&self.options.label, &self.observations, grain, seen)?;
        }
        let (program, arguments) = self.database.compound(&self.observations)?;
        let is_conventional = self.locks_by().is_some();
        let caller = Caller { owner: self.owner.clone(), is_conventional, ..Caller::of(&self.options) };
        match self.database.run_by(&caller, &program, &arguments, key).await {
            Ok(outcome) => Ok(outcome.seq),
            Err(error) if is_of_constraint(&error) => {
                let now = self.database.hold_snapshot()?;
                Err(if self.has_changed(now.seq()) { self.conflict() } else { error })
            }
            Err(error) => Err(self.as_conflict(error)),
        }
    }

    /// Whether something that it was shown is not so at `seq`, at which somebody holds a snapshot: then a constraint
    /// that is violated there says nothing of it.
    fn has_changed(&self, seq: Seq) -> bool {
        let mut overlay = Overlay::default();
        for observation in &self.observations {
            match self.shown_at(seq, observation, &mut overlay) {
                Ok(again) if again.results == observation.results => {}
                Err(error) if is_of_constraint(&error) => return false,
                _ => return true,
            }
        }
        false
    }

    /// Forgets everything it has run.
    pub fn roll_back(self) {}

    /// The error of a transaction's call as the client meets it: its statements ran well before, so whatever
    /// stops one now has come from others.
    fn as_conflict(&self, error: Error) -> Error {
        // What was shown is not so; a row is gone, a number has become too large.
        let is_conflict = ["40", "P0", "22"].iter().any(|class| error.state().as_str().starts_with(class))
            && error != fabius_cluster::other_leader();
        if is_conflict && !self.has_given_way() { self.conflict() } else { error }
    }
}

/// Whether a constraint is violated (class 23).
fn is_of_constraint(error: &Error) -> bool {
    error.state().as_str().starts_with("23")
}

/// A statement that is to be run.
pub(super) struct Run<'r> {
    statement: &'r Arc<Statement>,
    arguments: &'r [Value],
    encoded: &'r Arc<[u8]>,
    hold: Hold,
    bytes_max: usize,
}

impl Run<'_> {
    fn observation(&self, results: Vec<Value>, footprint: Footprint) -> Observation {
        Observation {
            statement: self.statement.clone(),
            arguments: self.arguments.to_vec(),
            encoded: self.encoded.clone(),
            results,
            footprint,
            hold: self.hold,
            is_apart: false,
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            self.database.set_locks(owner, &[]);
            self.database.sessions().lock_table.release(owner);
        }
        self.database.sessions().open.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use fabius_env::{RealClock, SimulatedDisk};
    use fabius_log::Flusher;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// Goal: a moment of the past is read once it is durable.
    #[test]
    fn the_past_is_durable() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let options = Options { workers: 0, history: Some(Duration::from_secs(60)), ..Options::default() };
        let database = Database::open_on(disk, Arc::new(RealClock::new()), Flusher::Manual, options).unwrap();
        let definitions = "table t { id: bigint, primary key (id) } procedure put() { insert t { id: 1 } }";
        database.define(definitions).unwrap();
        let database = Arc::new(database);
        let pending = database.prepare("put").unwrap().submit(&[]).unwrap();
        while database.engine().admit() {}
        let promised = database.foundation().promised();
        let mut transaction = database.begin(TransactionOptions::default());
        {
            let mut standing = pin!(transaction.stand_at(Moment::Seq(promised)));
            let context = &mut Context::from_waker(Waker::noop());
            assert!(matches!(standing.as_mut().poll(context), Poll::Pending));
            database.foundation().wait_durable(promised).unwrap();
            assert!(matches!(standing.as_mut().poll(context), Poll::Ready(Ok(_))));
        }
        assert_eq!(transaction.seq(), Some(promised));
        pending.wait().unwrap();
    }

    /// Goal: a transaction that locks and writes nothing has seen one state, also if a call was past its admission when
    /// the lock was granted: else it has to be tried again.
    #[test]
    fn calls_that_slip_past_locks_are_found() {
        let database = Arc::new(Database::in_memory(Options::default()));
        let definitions = "table t { id: bigint, v: bigint, primary key (id) }
            procedure fill() { insert t { id: 1, v: 0 } insert t { id: 2, v: 0 } }
            procedure move_both() { t[1].v += 1 t[2].v += 1 }
            procedure move_second() { t[2].v += 1 }";
        database.define(definitions).unwrap();
        database.prepare("fill").unwrap().call(&[]).unwrap();
        let show = |id: i64| {
            let text = format!("procedure show{id}() -> (v: bigint) {{ return t[{id}].v }}");
            database.statement_text(&text).unwrap()
        };
        // As a call does that has found no locks before there were some.
        let slip = |procedure: &str| {
            let procedure = database.definitions().catalog.find_procedure(procedure).unwrap();
            let mut builder = fabius_engine::BatchBuilder::new();
            builder.push(procedure, &[], None, false).unwrap();
            let batch = builder.build();
            database.hand_in(batch.clone());
            database.wait(&batch);
            batch.outcome(0).unwrap();
        };
        for (slips, is_one_state) in [("move_both", false), ("move_second", true)] {
            let mut transaction = database.begin(TransactionOptions::default());
            let first = crate::block_on(transaction.run(&show(1), &[], Hold::Lock)).unwrap();
            slip(slips);
            let second = crate::block_on(transaction.run(&show(2), &[], Hold::Lock)).unwrap();
            let committed = crate::block_on(transaction.commit(None));
            match is_one_state {
                true => assert!(committed.is_ok(), "{first:?} {second:?}"),
                false => assert_eq!(committed.unwrap_err().state(), SqlState::SERIALIZATION_FAILURE),
            }
        }
    }
}
