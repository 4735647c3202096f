//! The locking engine behind the contract.
//!
//! Two locks of the whole engine stand around the calls' own:
//!
//! - the *gate*: a turn holds it shared, with the schema inside; definitions, purging, closing and
//!   replay hold it exclusively, when no call runs and no record is locked;
//! - *alone*, inside it: a call that draws random numbers holds it exclusively ([`crate::plan`]).

use crate::granule::Granules;
use crate::intake::Intake;
use crate::plan::Schema;
use crate::sequencer::Sequencer;
use crate::turn::{Order, Turn};
use crate::wait::{Claim, Locks};
use bumpalo::Bump;
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::entry::{self, Entries};
use fabius_engine::reader::SnapshotContext;
use fabius_engine::{Batch, Definitions, Engine, Foundation, Procedure, Standpoint, Ticket};
use fabius_env::schedule;
use fabius_env::sync::RwLock;
use fabius_program::context::Stop;
use fabius_program::execute::{self, FrameFor};
use fabius_storage::fold::Retired;
use fabius_storage::purge::Purge;
use fabius_value::{Datum, Error, Result, Seq, SqlState, TableId, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

/// Mutexes for making records, by key.
const CREATION_MUTEXES: usize = 64;
/// So many notes about keys stop the calls to purge them.
const PURGE_AT: usize = 4096;

/// What the calls share.
pub struct Shared {
    /// Definitions, log, clock, snapshots.
    pub foundation: Arc<Foundation>,
    /// Who runs and who waits.
    pub locks: Locks,
    /// Locks of what is not a record.
    pub granules: Granules,
    /// One thread at a time makes the record of a key.
    pub creation: [Mutex<()>; CREATION_MUTEXES],
    /// The order.
    pub sequencer: Sequencer,
    /// Keys to take out of indexes.
    pub purge: Mutex<Purge>,
    /// Held exclusively by a call that has to run alone.
    pub alone: RwLock<()>,
    collector: Mutex<()>,
    collected: AtomicU64,
}

impl Shared {
    fn new(foundation: Arc<Foundation>) -> Shared {
        Shared {
            foundation,
            locks: Locks::default(),
            granules: Granules::default(),
            creation: std::array::from_fn(|_| Mutex::new(())),
            sequencer: Sequencer::default(),
            purge: Mutex::default(),
            alone: RwLock::default(),
            collector: Mutex::default(),
            collected: AtomicU64::new(0),
        }
    }

    /// Up to where nobody reads any more; finds out anew unless another thread is at it.
    pub fn collect(&self) -> Seq {
        if let Some(_collector) = self.collector.try_lock() {
            let collected = self.foundation.snapshots.collect(self.foundation.promised());
            self.collected.store(collected.0, Release);
        }
        Seq(self.collected.load(Acquire))
    }
}

/// The locking engine.
pub struct LockingEngine {
    shared: Shared,
    gate: RwLock<Schema>,
    intake: Intake,
}

impl LockingEngine {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>) -> LockingEngine {
        let schema = Schema::of(foundation.definitions(), &Schema::default());
        LockingEngine {
            shared: Shared::new(foundation),
            gate: RwLock::new(schema),
            intake: Intake::default(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.shared.foundation.clock.monotonic_ns()
    }

    /// Runs the next calls, if there are any; whether there were.
    fn take_turn(&self) -> bool {
        if self.intake.is_empty() {
            return false;
        }
        let Some(claim) = self.shared.locks.claim() else { return false };
        self.run_chunk(&claim)
    }

    fn run_chunk(&self, claim: &Claim<'_>) -> bool {
        let gate = self.gate.read();
        // Only now, so that whoever holds the gate exclusively knows that what was taken has ended.
        let Some(chunk) = self.intake.take() else { return false };
        schedule::point("turn");
        let foundation = &self.shared.foundation;
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let now = foundation.clock.now_us();
        let mut turn = Turn::new(&self.shared, &gate, &guard, &arena, claim.slot(), Order::Now, now);
        turn.run(chunk.calls(), chunk.first);
        let ended = chunk.end(turn.end());
        drop(gate);
        schedule::point("turn ended");
        if let Some(last) = ended {
            let batch = &chunk.work.batch;
            let failure = batch.outcomes().failure.clone();
            match failure {
                Some(failure) => batch.fail(failure, self.now_ns()),
                None => {
                    self.shared.sequencer.wait_promised(last, foundation);
                    foundation.decided(last, batch.clone());
                }
            }
        }
        true
    }

    /// Runs calls until all that were handed in before have begun, and waits until they have ended.
    fn drain(&self) {
        let count = self.intake.count();
        while !self.intake.has_begun(count) {
            if !self.take_turn() {
                schedule::give_way("definition");
            }
        }
        drop(self.gate.write());
    }

    /// Takes keys out of indexes that no reader can need, while no call runs; whether there were any.
    fn tidy(&self, _gate: &mut Schema) -> bool {
        let mut purge = self.shared.purge.lock();
        let before = purge.len();
        let guard = crossbeam_epoch::pin();
        let mut retired = Retired::default();
        let collected = self.shared.collect();
        purge.run(|_| collected, collected, PURGE_AT, &mut retired, &guard);
        retired.hand_over(&guard);
        purge.len() != before
    }

    fn take_in(&self, gate: &mut Schema, definitions: Definitions, seq: Seq) {
        let definitions = Arc::new(definitions);
        *gate = Schema::of(definitions.clone(), gate);
        self.shared.foundation.set_definitions(definitions);
        self.shared.sequencer.installed(seq, &self.shared.foundation);
    }
}

impl Engine for LockingEngine {
    fn name(&self) -> &'static str {
        "2pl"
    }

    fn foundation(&self) -> &Foundation {
        &self.shared.foundation
    }

    fn submit(&self, batch: Arc<Batch>) {
        if batch.count() == 0 {
            batch.complete(self.now_ns());
        } else if let Err(reason) = self.intake.push(batch.clone()) {
            batch.fail(reason, self.now_ns());
        }
    }

    fn admit(&self) -> bool {
        self.take_turn()
    }

    fn help(&self) -> bool {
        let notes = self.shared.purge.lock().len();
        if notes >= PURGE_AT && self.tidy(&mut self.gate.write()) {
            return true;
        }
        if self.take_turn() {
            return true;
        }
        notes > 0 && self.gate.try_write().is_some_and(|mut gate| self.tidy(&mut gate))
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        self.drain();
        let mut gate = self.gate.write();
        if let Some(reason) = self.intake.closed() {
            return Err(reason);
        }
        // No call runs, so nobody else takes the next seq.
        let definitions = gate.definitions.with(self.shared.sequencer.next(), entry)?;
        let seq = self.shared.sequencer.append(&self.shared.foundation, entry)?;
        self.take_in(&mut gate, definitions, seq);
        drop(gate);
        self.shared.foundation.wait_durable(seq)
    }

    fn query(&self, procedure: &Procedure, arguments: &[u8]) -> Result<Vec<Value>> {
        let foundation = &self.shared.foundation;
        let snapshot = foundation.begin_snapshot();
        let definitions = foundation.definitions();
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let mut context =
            SnapshotContext::new(&definitions, &guard, snapshot.seq(), foundation.clock.now_us());
        let mut frame = FrameFor::<SnapshotContext<'_>>::default();
        frame.start(&procedure.whole, arguments, &arena)?;
        let outcome = execute::run(&mut frame, &procedure.whole, &mut context, &arena);
        foundation.wait_durable(snapshot.seq())?;
        match outcome {
            Ok(()) => {
                foundation.counters.committed.add(1);
                Ok(frame.results(&procedure.whole).unwrap_or_default())
            }
            Err(Stop::Abort(error)) => {
                foundation.counters.aborted.add(1);
                Err(error)
            }
            Err(Stop::Blocked | Stop::Restart) => unreachable!("a snapshot has every value"),
        }
    }

    fn resolve(&self, _: &Ticket) {}

    fn stand(&self) -> Standpoint<'_> {
        // Calls go on; definitions wait.
        let _gate = self.gate.read();
        Standpoint::whole(&self.shared.foundation)
    }

    fn rows_at(
        &self,
        at: &Standpoint<'_>,
        table: TableId,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<()>,
    ) -> Result<()> {
        at.visit_rows(table, &mut |_| unreachable!("an eager engine leaves no stickies"), visit)
    }

    fn settle(&self) {
        self.drain();
        self.tidy(&mut self.gate.write());
    }

    fn restore(&self, state: State) {
        let mut gate = self.gate.write();
        assert_eq!(self.shared.sequencer.next(), Seq(1), "an engine begins with a checkpoint or not at all");
        self.shared.sequencer.go_on_after(state.seq);
        self.shared.foundation.restore(state);
        *gate = Schema::of(self.shared.foundation.definitions(), &gate);
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        let damaged = |what: String| Error::new(SqlState::DATA_CORRUPTED, what);
        let mut gate = self.gate.write();
        let expected = self.shared.sequencer.next();
        if expected != first_seq {
            return Err(damaged(format!("log goes on at {first_seq}, expected {expected}")));
        }
        match entry::decode(payload)? {
            Entries::Definition(_) | Entries::KeyWindow(_) => {
                let definitions = gate.definitions.with(first_seq, payload)?;
                let seq = self.shared.sequencer.take();
                self.take_in(&mut gate, definitions, seq);
            }
            Entries::Calls { time_us, bytes } => {
                let found = entry::calls(bytes).try_fold(0u32, |count, call| call.map(|_| count + 1))?;
                if found != count {
                    return Err(damaged(format!(
                        "log batch at {first_seq} has {found} calls, expected {count}"
                    )));
                }
                let claim = self.shared.locks.claim().expect("no call runs");
                let guard = crossbeam_epoch::pin();
                let arena = Bump::new();
                let mut turn =
                    Turn::new(&self.shared, &gate, &guard, &arena, claim.slot(), Order::Logged, time_us);
                turn.run(bytes, 0);
                turn.end();
            }
        }
        if self.shared.purge.lock().len() >= PURGE_AT {
            self.tidy(&mut gate);
        }
        Ok(())
    }

    fn close(&self, reason: Error) {
        let unbegun = self.intake.close(reason.clone());
        drop(self.gate.write());
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.now_ns()));
    }

    fn counts(&self) -> Counts {
        self.shared.foundation.counters.counts(0)
    }
}
