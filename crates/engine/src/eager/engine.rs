//! Any eager engine behind the contract.
//!
//! Two locks of the whole engine stand around whatever its [`Protocol`] does:
//!
//! - the *gate* ([`Ground`]), which every turn holds shared;
//! - *alone*, inside it: a call that draws random numbers holds it exclusively ([`crate::eager::plan`]).

use crate::Foundation;
use crate::eager::control::Protocol;
use crate::eager::ground::Ground;
use crate::eager::intake::Intake;
use crate::eager::plan::Schema;
use crate::eager::runner::Runner;
use crate::eager::turn::{Order, Turn};
use bumpalo::Bump;
use fabius_env::schedule;
use parking_lot::RwLockWriteGuard;
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

    /// What keeps its calls apart.
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    fn has_stopped(&self) -> bool {
        self.ground.foundation().failure().is_some()
    }

    fn is_phase_due(&self) -> bool {
        self.protocol.is_phase_due(&self.intake.waiting(), self.ground.now_ns())
    }

    fn change_phase(&self, no_call_runs: &RwLockWriteGuard<'_, Schema>) {
        // What was held back may hold what is not in the log.
        if self.has_stopped() {
            return;
        }
        self.protocol.change_phase(&self.ground.shared, no_call_runs, self.ground.now_ns());
        schedule::point("phase");
        if !self.protocol.holds_back() {
            self.intake.resume();
            self.ground.answer();
        }
    }

    /// Ends a phase that holds back what was written.
    fn publish(&self, no_call_runs: &RwLockWriteGuard<'_, Schema>) {
        if P::HAS_PHASES && self.protocol.holds_back() {
            self.change_phase(no_call_runs);
        }
    }

    fn run_chunk(&self, number: usize) -> bool {
        let Ground { shared, gate, .. } = &self.ground;
        let gate = gate.read();
        // Only now, so that whoever holds the gate exclusively knows that what was taken has ended.
        let Some(share) = self.intake.take_share() else { return false };
        schedule::point("turn");
        let foundation = &shared.foundation;
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let now = foundation.clock.now_us();
        let mut turn =
            Turn::new(shared, &gate, &guard, &arena, Order::Now, now, self.protocol.control(number));
        let begun = turn.run(share.calls(), |at| share.place(at));
        let mut outcomes = turn.end();
        let work = share.work();
        // Before the others count as ended: as long as something waits, nobody thinks that all have begun.
        let put_off = std::mem::take(&mut outcomes.put_off);
        let mut ended_count = share.count() - put_off.count();
        self.intake.put_off(work, put_off);
        if begun < share.count() && outcomes.failure.is_none() {
            self.intake.give_back(&share, begun);
            ended_count -= share.count() - begun;
        }
        let ended = work.end(ended_count, outcomes);
        drop(gate);
        schedule::point("turn ended");
        match ended {
            Some(last) => self.ground.ended(last, &work.batch),
            None => self.ground.answer(),
        }
        true
    }
}

impl<P: Protocol> Runner for EagerEngine<P> {
    type Rest<'a> = ();

    fn name(&self) -> &'static str {
        P::NAME
    }

    fn ground(&self) -> &Ground {
        &self.ground
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn rouse(&self) {
        self.protocol.rouse();
    }

    /// Runs the next calls, if there are any.
    fn take_turn(&self) -> bool {
        if P::HAS_PHASES && self.is_phase_due() {
            // Nobody sleeps until the last turn has ended: whoever ends it comes here next.
            match self.ground.gate.try_write() {
                // Another thread may have been here before.
                Some(gate) if self.is_phase_due() => {
                    self.change_phase(&gate);
                    // Where nothing was put off, the next phase that holds back may begin at once.
                    if !self.protocol.holds_back() && self.is_phase_due() {
                        self.change_phase(&gate);
                    }
                }
                Some(_) => {}
                None => schedule::give_way("phase"),
            }
            return true;
        }
        if self.intake.is_empty() {
            return false;
        }
        let Some(entered) = Entered::new(&self.protocol) else { return false };
        self.run_chunk(entered.number)
    }

    fn come_to_rest(&self) -> (RwLockWriteGuard<'_, Schema>, ()) {
        let count = self.intake.count();
        loop {
            while !self.intake.has_begun(count) && !self.has_stopped() {
                if !self.take_turn() {
                    schedule::give_way("definition");
                }
            }
            let gate = self.ground.gate.write();
            self.publish(&gate);
            // Turns that were under way may have put calls off, or given some back.
            if self.intake.has_begun(count) || self.has_stopped() {
                return (gate, ());
            }
        }
    }

    fn finish(&self) {
        self.publish(&self.ground.gate.write());
    }
}

/// A thread that has entered a protocol, until this is dropped.
struct Entered<'p, P: Protocol> {
    protocol: &'p P,
    /// The number that it got.
    number: usize,
}

impl<'p, P: Protocol> Entered<'p, P> {
    /// Enters; `None` if as many threads run calls as can.
    fn new(protocol: &'p P) -> Option<Entered<'p, P>> {
        protocol.enter().map(|number| Entered { protocol, number })
    }
}

impl<P: Protocol> Drop for Entered<'_, P> {
    fn drop(&mut self) {
        self.protocol.leave(self.number);
    }
}
