//! Any eager engine behind the contract.
//!
//! Two locks of the whole engine stand around whatever its [`Protocol`] does:
//!
//! - the *gate* ([`Ground`]), which every turn holds shared;
//! - *alone*, inside it: a call that draws random numbers holds it exclusively ([`crate::eager::plan`]).

use crate::checkpoint::State;
use crate::counters::Counts;
use crate::eager::control::Protocol;
use crate::eager::ground::{Entered, Ground};
use crate::eager::intake::Intake;
use crate::eager::turn::{Order, Turn};
use crate::reader::query_settled;
use crate::{Batch, Engine, Foundation, Procedure, Standpoint, Ticket};
use bumpalo::Bump;
use fabius_env::schedule;
use fabius_value::{Datum, Error, Result, Seq, TableId, Value};
use std::sync::Arc;

/// An engine that runs calls whole, each on the thread that takes it, kept apart by a protocol.
pub struct EagerEngine<P> {
    ground: Ground,
    protocol: P,
    intake: Intake,
}

impl<P: Protocol> EagerEngine<P> {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, protocol: P) -> EagerEngine<P> {
        EagerEngine { ground: Ground::new(foundation), protocol, intake: Intake::default() }
    }

    /// Runs the next calls, if there are any; whether there were.
    fn take_turn(&self) -> bool {
        if self.intake.is_empty() {
            return false;
        }
        let Some(entered) = Entered::new(&self.protocol) else { return false };
        self.run_chunk(entered.number)
    }

    fn run_chunk(&self, number: usize) -> bool {
        let Ground { shared, gate } = &self.ground;
        let gate = gate.read();
        // Only now, so that whoever holds the gate exclusively knows that what was taken has ended.
        let Some(chunk) = self.intake.take() else { return false };
        schedule::point("turn");
        let foundation = &shared.foundation;
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let now = foundation.clock.now_us();
        let mut turn =
            Turn::new(shared, &gate, &guard, &arena, Order::Now, now, self.protocol.control(number));
        turn.run(chunk.calls(), chunk.first);
        let ended = chunk.end(turn.end());
        drop(gate);
        schedule::point("turn ended");
        if let Some(last) = ended {
            let batch = &chunk.work.batch;
            let failure = batch.outcomes().failure.clone();
            match failure {
                Some(failure) => batch.fail(failure, self.ground.now_ns()),
                None => {
                    shared.sequencer.wait_promised(last, foundation);
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
        drop(self.ground.gate.write());
    }
}

impl<P: Protocol> Engine for EagerEngine<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn foundation(&self) -> &Foundation {
        self.ground.foundation()
    }

    fn submit(&self, batch: Arc<Batch>) {
        if batch.count() == 0 {
            batch.complete(self.ground.now_ns());
        } else if let Err(reason) = self.intake.push(batch.clone()) {
            batch.fail(reason, self.ground.now_ns());
        }
    }

    fn admit(&self) -> bool {
        self.take_turn()
    }

    fn help(&self) -> bool {
        if self.ground.must_tidy() && self.ground.tidy(&self.ground.gate.write()) {
            return true;
        }
        self.take_turn() || self.ground.tidy_if_idle()
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        self.drain();
        let gate = self.ground.gate.write();
        match self.intake.closed() {
            Some(reason) => Err(reason),
            None => self.ground.amend(gate, entry),
        }
    }

    fn query(&self, procedure: &Procedure, arguments: &[u8]) -> Result<Vec<Value>> {
        query_settled(self.foundation(), procedure, arguments)
    }

    fn resolve(&self, _: &Ticket) {}

    fn stand(&self) -> Standpoint<'_> {
        self.ground.stand()
    }

    fn rows_at(
        &self,
        at: &Standpoint<'_>,
        table: TableId,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<()>,
    ) -> Result<()> {
        self.ground.rows_at(at, table, visit)
    }

    fn settle(&self) {
        self.drain();
        self.ground.tidy(&self.ground.gate.write());
    }

    fn restore(&self, state: State) {
        self.ground.restore(state);
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        self.ground.replay(&self.protocol, first_seq, count, payload)
    }

    fn close(&self, reason: Error) {
        let unbegun = self.intake.close(reason.clone());
        drop(self.ground.gate.write());
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.ground.now_ns()));
    }

    fn counts(&self) -> Counts {
        self.foundation().counters.counts(0)
    }
}
