//! What engines that take calls from an intake, and run them whole on a ground, have to say of themselves; the rest
//! of the contract follows.

use crate::checkpoint::State;
use crate::counters::Counts;
use crate::eager::ground::Ground;
use crate::eager::intake::Intake;
use crate::eager::plan::Schema;
use crate::{Batch, Engine, Foundation, Standpoint};
use fabius_value::{Error, Result, Seq};
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;

/// An engine that takes calls from an intake and runs them on a ground.
pub trait Runner: Send + Sync {
    /// As long as it is held, no call begins.
    type Rest<'a>
    where
        Self: 'a;

    /// The engine's name, as users give it.
    fn name(&self) -> &'static str;

    /// What it stands on.
    fn ground(&self) -> &Ground;

    /// Calls that have not begun.
    fn intake(&self) -> &Intake;

    /// Does one piece of work on the calling thread; whether there was any.
    fn take_turn(&self) -> bool;

    /// Runs all calls that were handed in before; then none runs, and none begins.
    fn come_to_rest(&self) -> (RwLockWriteGuard<'_, Schema>, Self::Rest<'_>);

    /// Ends the calls that have begun. No others are there any more.
    fn finish(&self);

    /// See [`Engine::stand`].
    fn stand(&self) -> Standpoint<'_> {
        self.ground().stand()
    }
}

impl<R: Runner> Engine for R {
    fn name(&self) -> &'static str {
        Runner::name(self)
    }

    fn foundation(&self) -> &Foundation {
        self.ground().foundation()
    }

    fn submit(&self, batch: Arc<Batch>) {
        if batch.count() == 0 {
            batch.complete(self.ground().now_ns());
        } else if let Err(reason) = self.intake().push(batch.clone()) {
            batch.fail(reason, self.ground().now_ns());
        }
    }

    fn admit(&self) -> bool {
        self.take_turn()
    }

    fn help(&self) -> bool {
        let ground = self.ground();
        if ground.must_tidy() && ground.tidy(&ground.gate.write()) {
            return true;
        }
        self.take_turn() || ground.tidy_if_idle()
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        let (gate, rest) = self.come_to_rest();
        if let Some(reason) = self.intake().closed() {
            return Err(reason);
        }
        let seq = self.ground().amend(gate, entry)?;
        drop(rest);
        self.foundation().wait_durable(seq)
    }

    fn stand(&self) -> Standpoint<'_> {
        Runner::stand(self)
    }

    fn settle(&self) {
        let (gate, _rest) = self.come_to_rest();
        self.ground().tidy(&gate);
    }

    fn restore(&self, state: State) {
        self.ground().restore(state);
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        self.ground().replay(first_seq, count, payload)
    }

    fn close(&self, reason: Error) {
        let mut unbegun = self.intake().close(reason.clone());
        self.finish();
        // What a turn that was under way has put off.
        unbegun.extend(self.intake().close(reason.clone()));
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.ground().now_ns()));
    }

    fn counts(&self) -> Counts {
        self.foundation().counters.counts(0)
    }
}
