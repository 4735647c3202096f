//! Any eager engine behind the contract.
//!
//! Two locks of the whole engine stand around whatever its [`Protocol`] does:
//!
//! - the *gate*: a turn holds it shared, with the schema inside; definitions, purging, closing and
//!   replay hold it exclusively, when no call runs;
//! - *alone*, inside it: a call that draws random numbers holds it exclusively ([`crate::eager::plan`]).

use crate::checkpoint::State;
use crate::counters::Counts;
use crate::eager::control::Protocol;
use crate::eager::intake::Intake;
use crate::eager::plan::Schema;
use crate::eager::shared::{PURGE_AT, Shared};
use crate::eager::turn::{Order, Turn};
use crate::entry::{self, Entries};
use crate::reader::query_settled;
use crate::{Batch, Definitions, Engine, Foundation, Procedure, Standpoint, Ticket};
use bumpalo::Bump;
use fabius_env::schedule;
use fabius_env::sync::RwLock;
use fabius_value::{Datum, Error, Result, Seq, SqlState, TableId, Value};
use parking_lot::{Mutex, RwLockWriteGuard};
use std::sync::Arc;

/// An engine that runs calls whole, each on the thread that takes it, kept apart by a protocol.
pub struct EagerEngine<P> {
    shared: Shared,
    protocol: P,
    gate: RwLock<Schema>,
    intake: Intake,
    /// Batches that have ended in a phase that holds back what was written, with their last seqs.
    held: Mutex<Vec<(Seq, Arc<Batch>)>>,
}

/// A thread that has entered a protocol, until this is dropped.
struct Entered<'p, P: Protocol> {
    protocol: &'p P,
    number: usize,
}

impl<P: Protocol> Drop for Entered<'_, P> {
    fn drop(&mut self) {
        self.protocol.leave(self.number);
    }
}

impl<P: Protocol> EagerEngine<P> {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, protocol: P) -> EagerEngine<P> {
        let schema = Schema::of(foundation.definitions(), &Schema::default());
        EagerEngine {
            shared: Shared::new(foundation),
            protocol,
            gate: RwLock::new(schema),
            intake: Intake::default(),
            held: Mutex::default(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.shared.foundation.clock.monotonic_ns()
    }

    /// Runs the next calls, if there are any; whether there were.
    fn take_turn(&self) -> bool {
        if P::HAS_PHASES && self.is_phase_due() {
            let gate = self.gate.write();
            // Another thread may have been here before.
            if self.is_phase_due() {
                self.change_phase(&gate);
            }
            return true;
        }
        if self.intake.is_empty() {
            return false;
        }
        let Some(entered) = self.enter() else { return false };
        self.run_chunk(entered.number)
    }

    fn is_phase_due(&self) -> bool {
        self.protocol.is_phase_due(&self.intake.waiting(), self.now_ns())
    }

    fn change_phase(&self, no_call_runs: &RwLockWriteGuard<'_, Schema>) {
        self.protocol.change_phase(&self.shared, no_call_runs, self.now_ns());
        schedule::point("phase");
        if !self.protocol.holds_back() {
            self.intake.resume();
            for (last, batch) in self.held.lock().drain(..) {
                self.shared.foundation.decided(last, batch);
            }
        }
    }

    /// Ends a phase that holds back what was written.
    fn publish(&self, no_call_runs: &RwLockWriteGuard<'_, Schema>) {
        if P::HAS_PHASES && self.protocol.holds_back() {
            self.change_phase(no_call_runs);
        }
    }

    fn enter(&self) -> Option<Entered<'_, P>> {
        self.protocol.enter().map(|number| Entered { protocol: &self.protocol, number })
    }

    fn run_chunk(&self, number: usize) -> bool {
        let gate = self.gate.read();
        // Only now, so that whoever holds the gate exclusively knows that what was taken has ended.
        let Some(chunk) = self.intake.take() else { return false };
        schedule::point("turn");
        let foundation = &self.shared.foundation;
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let now = foundation.clock.now_us();
        let mut turn =
            Turn::new(&self.shared, &gate, &guard, &arena, Order::Now, now, self.protocol.control(number));
        turn.run(chunk.calls(), chunk.first);
        let mut outcomes = turn.end();
        // Before the others count as ended: as long as it waits, nobody thinks that all have begun.
        let put_off = std::mem::take(&mut outcomes.put_off);
        let put_off_count = put_off.len() as u32;
        self.intake.put_off(&chunk, put_off);
        let mut ended = chunk.end(outcomes, put_off_count);
        if P::HAS_PHASES && self.protocol.holds_back() {
            let is_held = |_: &mut Seq| chunk.work.batch.outcomes().failure.is_none();
            let last = ended.take_if(is_held);
            self.held.lock().extend(last.map(|last| (last, chunk.work.batch.clone())));
        }
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
        self.publish(&self.gate.write());
    }

    fn tidy(&self, _no_call_runs: &RwLockWriteGuard<'_, Schema>) -> bool {
        self.shared.tidy()
    }

    fn take_in(&self, gate: &mut Schema, definitions: Definitions, seq: Seq) {
        let definitions = Arc::new(definitions);
        *gate = Schema::of(definitions.clone(), gate);
        self.shared.foundation.set_definitions(definitions);
        self.shared.sequencer.installed(seq, &self.shared.foundation);
    }
}

impl<P: Protocol> Engine for EagerEngine<P> {
    fn name(&self) -> &'static str {
        P::NAME
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
        if notes >= PURGE_AT && self.tidy(&self.gate.write()) {
            return true;
        }
        if self.take_turn() {
            return true;
        }
        notes > 0 && self.gate.try_write().is_some_and(|gate| self.tidy(&gate))
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        self.drain();
        let mut gate = self.gate.write();
        if let Some(reason) = self.intake.closed() {
            return Err(reason);
        }
        self.publish(&gate);
        // No call runs, so nobody else takes the next seq.
        let definitions = gate.definitions.with(self.shared.sequencer.next(), entry)?;
        let seq = self.shared.sequencer.append(&self.shared.foundation, entry)?;
        self.take_in(&mut gate, definitions, seq);
        drop(gate);
        self.shared.foundation.wait_durable(seq)
    }

    fn query(&self, procedure: &Procedure, arguments: &[u8]) -> Result<Vec<Value>> {
        query_settled(&self.shared.foundation, procedure, arguments)
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
        self.tidy(&self.gate.write());
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
                let entered = self.enter().expect("no call runs");
                let guard = crossbeam_epoch::pin();
                let arena = Bump::new();
                let control = self.protocol.control(entered.number);
                let mut turn =
                    Turn::new(&self.shared, &gate, &guard, &arena, Order::Logged, time_us, control);
                turn.run(bytes, 0);
                turn.end();
            }
        }
        if self.shared.purge.lock().len() >= PURGE_AT {
            self.tidy(&gate);
        }
        Ok(())
    }

    fn close(&self, reason: Error) {
        let mut unbegun = self.intake.close(reason.clone());
        self.publish(&self.gate.write());
        // What a turn that was under way has put off.
        unbegun.extend(self.intake.close(reason.clone()));
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.now_ns()));
    }

    fn counts(&self) -> Counts {
        self.shared.foundation.counters.counts(0)
    }
}
