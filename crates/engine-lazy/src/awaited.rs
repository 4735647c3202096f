//! Procedures whose now-phases meet stickies, so that what they wait for is run before they come to the lane.
//!
//! A now-phase that reads a sticky has to wait until the calls are run that it stands for (lazy evaluation, sections
//! 2.3 and 2.4). In the lane everybody would wait with it. Which procedures do so is seen when it happens: the next
//! calls of such a procedure have the rows that their arguments name looked at while they are made ready, and what is
//! open there is run then, by the thread that brings them. What comes in between is still run in the lane.
//!
//! ```text
//! thread 1   | make ready | run 1,000 deferred calls of a row | lane |
//! thread 2   | make ready | lane       | make ready | lane    |      | lane
//! ```
//!
//! A procedure that has not met one for a while is left alone again: running early what nobody waits for would be
//! eager evaluation.

use fabius_program::catalog::ProcedureId;
use parking_lot::{RwLock, RwLockReadGuard};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Calls of a procedure that are looked at once one of them has met a sticky.
const LOOKS: u32 = 32;

/// By procedure: calls that are still to be looked at.
#[derive(Default)]
pub struct Awaited(RwLock<Vec<AtomicU32>>);

impl Awaited {
    /// Says that a now-phase of a procedure has met a sticky.
    pub fn note(&self, procedure: ProcedureId) {
        let at = procedure.0 as usize;
        if let Some(looks) = self.0.read().get(at) {
            looks.store(LOOKS, Relaxed);
            return;
        }
        let mut all = self.0.write();
        let missing = (at + 1).saturating_sub(all.len());
        all.extend(std::iter::repeat_with(AtomicU32::default).take(missing));
        all[at].store(LOOKS, Relaxed);
    }

    /// What is known now, for the calls of an intake. Nothing can be noted while it is held.
    pub fn looks(&self) -> Looks<'_> {
        Looks(self.0.read())
    }
}

/// Calls that are still to be looked at, by procedure.
pub struct Looks<'a>(RwLockReadGuard<'a, Vec<AtomicU32>>);

impl Looks<'_> {
    /// Whether the next call of a procedure is to be looked at.
    #[inline]
    pub fn take(&self, procedure: ProcedureId) -> bool {
        let Some(looks) = self.0.get(procedure.0 as usize) else { return false };
        let left = looks.load(Relaxed);
        // Two threads that count two calls as one look at one more.
        left > 0 && {
            looks.store(left - 1, Relaxed);
            true
        }
    }
}
