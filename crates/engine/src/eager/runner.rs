//! What engines that take calls from an intake, and run them whole on a ground, have to say of themselves; the rest
//! of the contract follows.

use crate::batch::Outcomes;
use crate::checkpoint::State;
use crate::counters::Counts;
use crate::eager::ground::Ground;
use crate::eager::intake::Intake;
use crate::eager::plan::Schema;
use crate::entry::{self, Entries};
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

    /// Does one piece of work on the calling thread; whether there was any. When the engine has stopped it returns
    /// soon, also where it waits for what other threads do.
    fn take_turn(&self) -> bool;

    /// Whether its turns take keys out of indexes themselves, so that nobody has to wait for the gate to do so.
    fn tidies_itself(&self) -> bool {
        false
    }

    /// Wakes threads that sleep in a turn, because the engine has stopped.
    fn rouse(&self) {}

    /// Runs all calls that were handed in before; then none runs, and none begins. Nor if the engine has stopped.
    fn come_to_rest(&self) -> (RwLockWriteGuard<'_, Schema>, Self::Rest<'_>);

    /// Ends the calls that have begun, unless the engine has stopped. No others are there any more.
    fn finish(&self);

    /// See [`Engine::stand`].
    fn stand(&self) -> Standpoint<'_> {
        self.ground().stand()
    }

    /// See [`Engine::restore`].
    fn restore(&self, state: State) {
        self.ground().restore(state);
    }

    /// Runs so many encoded calls, which have their places in the order, at their logged time; gives what has become of
    /// them, by their place among them.
    fn take_calls(&self, calls: &[u8], _count: u32, time_us: i64) -> Outcomes {
        self.ground().take_calls(calls, time_us)
    }

    /// See [`Engine::times`].
    fn times(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Runs `work` of a runner unless its engine has stopped, and gives `stopped` if it has, or stops meanwhile by a
/// panic; then nobody waits for a call any more.
///
/// A thread that panics halfway through a turn may have locks, and a place in the order that readers cannot see past.
/// So nothing is tried again: the engine stops, all who wait are told why, and the log has what was acknowledged.
fn unless_stopped<R: Runner, T>(runner: &R, stopped: T, work: impl FnOnce() -> T) -> T {
    let foundation = runner.ground().foundation();
    if foundation.failure().is_some() {
        give_up(runner);
        return stopped;
    }
    let done = foundation.contained(stopped, work);
    if foundation.failure().is_some() {
        give_up(runner);
    }
    done
}

/// Tells all who wait for calls why the engine has stopped.
#[cold]
fn give_up<R: Runner>(runner: &R) {
    let ground = runner.ground();
    let Some(reason) = ground.foundation().failure() else { return };
    runner.rouse();
    let open = runner.intake().fail(reason.clone());
    open.iter().for_each(|batch| batch.fail(reason.clone(), ground.now_ns()));
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
        unless_stopped(self, false, || self.take_turn())
    }

    fn help(&self) -> bool {
        unless_stopped(self, false, || {
            let ground = self.ground();
            if !self.tidies_itself() && ground.must_tidy() && ground.tidy(&ground.gate.write()) {
                return true;
            }
            self.take_turn() || ground.tidy_if_idle()
        })
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        let seq = unless_stopped(self, None, || {
            let (gate, rest) = self.come_to_rest();
            if let Some(reason) = self.intake().closed() {
                return Some(Err(reason));
            }
            let seq = self.ground().amend(gate, entry);
            drop(rest);
            Some(seq)
        });
        match seq {
            Some(seq) => self.foundation().wait_durable(seq?),
            None => Err(self.foundation().failure().expect("it has stopped").clone()),
        }
    }

    fn stand(&self) -> Standpoint<'_> {
        Runner::stand(self)
    }

    fn settle(&self) {
        unless_stopped(self, (), || {
            let (gate, _rest) = self.come_to_rest();
            self.ground().tidy(&gate);
        });
    }

    fn restore(&self, state: State) {
        Runner::restore(self, state);
    }

    fn take(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<Outcomes> {
        let ground = self.ground();
        let mut outcomes = Outcomes { first_seq: Some(first_seq), ..Outcomes::default() };
        match entry::decode_next(payload, first_seq, count, ground.shared.sequencer.next())? {
            Entries::Definition(_) | Entries::KeyWindow(_) => ground.take_definition(first_seq, payload)?,
            Entries::Nothing | Entries::Checkpoint => ground.pass(),
            Entries::Calls { time_us, bytes } => {
                ground.foundation().clock.has_been(time_us);
                let taken = self.take_calls(bytes, count, time_us);
                outcomes = Outcomes { first_seq: Some(first_seq), ..taken };
            }
        }
        let failure = outcomes.failure.take().or_else(|| ground.foundation().failure().cloned());
        failure.map_or(Ok(outcomes), Err)
    }

    fn close(&self, reason: Error) {
        let mut unbegun = self.intake().close(reason.clone());
        unless_stopped(self, (), || self.finish());
        // What a turn that was under way has put off.
        unbegun.extend(self.intake().close(reason.clone()));
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.ground().now_ns()));
    }

    fn counts(&self) -> Counts {
        self.foundation().counters.counts(0)
    }

    fn times(&self) -> Vec<(&'static str, u64)> {
        Runner::times(self)
    }
}
