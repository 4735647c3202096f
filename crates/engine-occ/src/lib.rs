//! Optimistic concurrency control as in Silo (Tu, Zheng, Kohler, Liskov, Madden; SOSP 2013).
//!
//! A call runs whole, on the thread that takes it, and locks nothing while it runs. Then it locks what it
//! writes, checks that all it has read is still so, takes its place in the log in the same step, installs
//! its writes, and gives the locks back. If something has changed it starts again, so callers never see a
//! conflict.
//!
//! ```text
//! batches --> intake --> turns, on any number of threads --------------------------------------> promised
//!                         read, write aside | 1: lock | 2: validate, seq, log | 3: install | unlock
//! ```
//!
//! The read set, the node set, the three phases, and why the log's order is a serial order:
//! [`fabius_engine::eager::optimistic`], on which other engines are built too. What it has in common with all
//! engines that run calls whole: [`fabius_engine::eager`]. Here is what remains: who takes part.

use fabius_engine::Foundation;
use fabius_engine::eager::optimistic::{ATTEMPTS_MAX, Optimistic, word};
use fabius_engine::eager::slots::Slots;
use fabius_engine::eager::{EagerEngine, Protocol};
use std::sync::Arc;

/// How the optimistic engine is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A call that was refused so often runs alone.
    pub attempts_max: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { attempts_max: ATTEMPTS_MAX }
    }
}

/// Silo's commit protocol.
pub struct Silo {
    policy: Policy,
    slots: Slots,
}

impl Protocol for Silo {
    const NAME: &'static str = "occ";

    type Control<'a> = Optimistic<'a>;

    fn enter(&self) -> Option<usize> {
        self.slots.claim()
    }

    fn leave(&self, number: usize) {
        self.slots.leave(number);
    }

    fn control<'a>(&'a self, number: usize) -> Optimistic<'a> {
        Optimistic::new(number, self.policy.attempts_max)
    }
}

/// The optimistic engine.
pub type OptimisticEngine = EagerEngine<Silo>;

/// An optimistic engine with the foundation's definitions.
pub fn new(foundation: Arc<Foundation>) -> OptimisticEngine {
    with_policy(foundation, Policy::default())
}

/// An optimistic engine with a policy of one's own.
pub fn with_policy(foundation: Arc<Foundation>, policy: Policy) -> OptimisticEngine {
    EagerEngine::new(foundation, Silo { policy, slots: Slots::new(word::SLOTS_MAX) })
}
