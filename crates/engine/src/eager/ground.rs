//! What an engine that runs calls whole stands on, whichever way it chooses the calls that run:
//! definitions, calls that have their place already, snapshots, purging.
//!
//! The *gate* is the one lock of the whole engine: a turn holds it shared, with the schema inside;
//! definitions, purging, closing and calls that have their place already hold it exclusively, when no call runs.

use crate::checkpoint::State;
use crate::eager::alone::Alone;
use crate::eager::answers::Answers;
use crate::eager::intake::{Outcomes, Work};
use crate::eager::plan::Schema;
use crate::eager::shared::{PURGE_AT, Shared};
use crate::eager::turn::{Order, Turn};
use crate::{Batch, Definitions, Foundation, Standpoint, batch};
use bumpalo::Bump;
use fabius_env::sync::RwLock;
use fabius_value::{Result, Seq};
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;

/// What calls share, and the gate.
pub struct Ground {
    /// What the calls share.
    pub shared: Shared,
    /// Held shared by every turn, with the definitions in force.
    pub gate: RwLock<Schema>,
    answers: Answers,
}

impl Ground {
    /// The ground on a foundation, with its definitions.
    pub fn new(foundation: Arc<Foundation>) -> Ground {
        let schema = Schema::of(foundation.definitions(), &Schema::default());
        Ground { shared: Shared::new(foundation), gate: RwLock::new(schema), answers: Answers::default() }
    }

    /// Definitions, log, clock, snapshots.
    pub fn foundation(&self) -> &Foundation {
        &self.shared.foundation
    }

    /// The time on the foundation's monotonic clock.
    pub fn now_ns(&self) -> u64 {
        self.shared.foundation.clock.monotonic_ns()
    }

    /// Stores what became of so many calls of a batch. When those are its last, it is answered as soon as readers see
    /// it whole.
    pub fn end(&self, work: &Work, count: u32, outcomes: Outcomes) {
        if let Some(last) = work.end(count, outcomes) {
            self.ended(last, &work.batch);
        }
    }

    /// All calls of a batch have ended, the last at this seq.
    pub fn ended(&self, last: Seq, batch: &Arc<Batch>) {
        self.answers.end(last, batch, self.foundation());
    }

    /// Answers batches that readers now see whole; to be called after `promised` was moved.
    pub fn answer(&self) {
        self.answers.answer(self.foundation());
    }

    /// Whether so many keys wait to be taken out of indexes that calls have to stop for it, and some of them can be:
    /// a reader of the past may need all of them.
    pub fn must_tidy(&self) -> bool {
        let oldest = {
            let purge = self.shared.purge.lock();
            (purge.len() >= PURGE_AT).then(|| purge.oldest()).flatten()
        };
        oldest.is_some_and(|oldest| oldest <= self.shared.collect())
    }

    /// Takes keys out of indexes; whether there were any.
    pub fn tidy(&self, _no_call_runs: &RwLockWriteGuard<'_, Schema>) -> bool {
        self.shared.tidy()
    }

    /// Takes keys out of indexes if there are any and no call runs; whether there were any.
    pub fn tidy_if_idle(&self) -> bool {
        let notes = self.shared.purge.lock().len();
        notes > 0 && self.gate.try_write().is_some_and(|gate| self.tidy(&gate))
    }

    /// Logs an entry other than calls and puts it in force, behind every call so far; gives its seq.
    ///
    /// # Errors
    /// What the definition has wrong, or why the log does not take it.
    pub fn amend(&self, mut gate: RwLockWriteGuard<'_, Schema>, entry: &[u8]) -> Result<Seq> {
        // No call runs, so nobody else takes the next seq.
        let definitions = gate.definitions.with(self.shared.sequencer.next(), entry)?;
        let seq = self.shared.sequencer.append(&self.shared.foundation, entry)?;
        self.take_in(&mut gate, definitions, seq);
        Ok(seq)
    }

    fn take_in(&self, gate: &mut Schema, definitions: Definitions, seq: Seq) {
        let definitions = Arc::new(definitions);
        *gate = Schema::of(definitions.clone(), gate);
        self.shared.foundation.set_definitions(definitions);
        self.shared.sequencer.installed(seq, &self.shared.foundation);
    }

    /// See [`Engine::stand`](crate::Engine::stand).
    pub fn stand(&self) -> Standpoint<'_> {
        // Calls go on; definitions wait.
        let _gate = self.gate.read();
        Standpoint::whole(&self.shared.foundation)
    }

    /// See [`Engine::restore`](crate::Engine::restore).
    pub fn restore(&self, state: State) {
        let mut gate = self.gate.write();
        assert_eq!(self.shared.sequencer.next(), Seq(1), "an engine begins with a checkpoint or not at all");
        self.shared.sequencer.go_on_after(state.seq);
        self.shared.foundation.restore(state);
        *gate = Schema::of(self.shared.foundation.definitions(), &gate);
    }

    /// Runs encoded calls that are in the log, one after the other; gives what has become of them, by their place.
    pub fn take_calls(&self, calls: &[u8], time_us: i64) -> batch::Outcomes {
        let gate = self.gate.write();
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let mut turn = Turn::new(&self.shared, &gate, &guard, &arena, Order::Logged, time_us, Alone);
        turn.run(calls, |at| at);
        let mut outcomes = batch::Outcomes::default();
        turn.end().add_to(&mut outcomes);
        if self.must_tidy() {
            self.tidy(&gate);
        }
        outcomes
    }

    /// Passes over a place of the log at which nothing is done.
    pub fn pass(&self) {
        let _no_call_runs = self.gate.write();
        self.shared.sequencer.installed(self.shared.sequencer.take(), &self.shared.foundation);
    }

    /// Takes in a logged entry, at its place, that is not one of calls.
    ///
    /// # Errors
    /// If the bytes are no such entry.
    pub fn take_definition(&self, first_seq: Seq, payload: &[u8]) -> Result<()> {
        let mut gate = self.gate.write();
        let definitions = gate.definitions.with(first_seq, payload)?;
        let seq = self.shared.sequencer.take();
        self.take_in(&mut gate, definitions, seq);
        Ok(())
    }
}
