//! Locks: one word each, in the record itself or in the table of granules.
//!
//! ```text
//!   63        62   61 60    59                                    0
//!  +---------+----+-------+----------------------------------------+
//!  | waiters |    | mode  | holders: a bit for each running call   |
//!  +---------+----+-------+----------------------------------------+
//! ```
//!
//! A call that runs has one of [`SLOTS`] *slots*, and its bit says that it holds the lock, so whoever is refused
//! knows by whom. All holders of a lock have it in the same [`Mode`], which is never `visit`, except that a single
//! one may have added another mode to its own. A mode without holders means nothing.
//!
//! Taking a free lock is one compare-and-swap and giving it back one fetch-and. Only if someone has to
//! wait is there anything beside the word: a queue in [`crate::wait`], announced by the waiters bit.
//! While that bit is set, a lock is granted by whoever holds the queue's mutex, and by no one else.

use fabius_engine::eager::lock_mode::Mode;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Calls that can run at one time.
pub const SLOTS: usize = 60;

/// Someone waits in a queue.
pub(crate) const WAITERS: u64 = 1 << 63;
const HOLDERS: u64 = (1 << SLOTS) - 1;
const MODE_SHIFT: u32 = SLOTS as u32;

/// The calls whose bits are in a lock's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holders(pub u64);

impl Holders {
    /// Their slots.
    pub fn slots(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let slot = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                slot
            })
        })
    }
}

/// How an attempt without waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The call had the lock before, in this mode or more.
    Held,
    /// The call had it before, in less; it is the only holder.
    Raised,
    /// The call has it now, and must give it back.
    Taken,
    /// Others hold it, or wait for it.
    Refused,
}

/// Takes a lock if neither a holder nor a waiter is against it.
#[inline]
pub fn attempt(word: &AtomicU64, slot: usize, mode: Mode) -> Attempt {
    let bit = 1 << slot;
    let mut seen = word.load(Relaxed);
    loop {
        let holds = seen & bit != 0;
        if holds && mode_of(seen).covers(mode) {
            return Attempt::Held;
        }
        if seen & WAITERS != 0 {
            return Attempt::Refused;
        }
        let Some(next) = granted(seen, bit, mode) else { return Attempt::Refused };
        match word.compare_exchange_weak(seen, next, AcqRel, Relaxed) {
            Ok(_) => return if holds { Attempt::Raised } else { Attempt::Taken },
            Err(now) => seen = now,
        }
    }
}

/// Takes a lock for a call if no other holder is against it. The caller holds the queue's mutex.
pub(crate) fn grant(word: &AtomicU64, slot: usize, mode: Mode) -> bool {
    let mut seen = word.load(Relaxed);
    loop {
        let Some(next) = granted(seen, 1 << slot, mode) else { return false };
        match word.compare_exchange_weak(seen, next, AcqRel, Relaxed) {
            Ok(_) => return true,
            Err(now) => seen = now,
        }
    }
}

/// The mode in which holders have the lock.
#[inline]
fn mode_of(word: u64) -> Mode {
    Mode::of_bits(word >> MODE_SHIFT)
}

/// The word after granting, if it can be granted; the waiters bit stays as it is.
#[inline]
fn granted(word: u64, bit: u64, mode: Mode) -> Option<u64> {
    let current = mode_of(word);
    let wanted = if word & bit != 0 { mode.and(current) } else { mode };
    if word & HOLDERS & !bit == 0 {
        return Some(word & WAITERS | (wanted as u64) << MODE_SHIFT | bit);
    }
    // Nobody visits, so they are the same mode.
    wanted.goes_with(current).then_some(word | bit)
}

/// The holders other than the call itself.
pub(crate) fn others(word: u64, slot: usize) -> Holders {
    Holders(word & HOLDERS & !(1 << slot))
}

/// Whether the call holds the lock, in any mode.
pub(crate) fn holds(word: &AtomicU64, slot: usize) -> bool {
    word.load(Relaxed) & 1 << slot != 0
}

/// Whether holders, and not just the order among waiters, are against granting the lock.
pub(crate) fn is_opposed(word: u64, slot: usize, mode: Mode) -> bool {
    granted(word, 1 << slot, mode).is_none()
}

/// Gives a lock back; whether someone waits for it.
#[inline]
pub(crate) fn give_back(word: &AtomicU64, slot: usize) -> bool {
    word.fetch_and(!(1 << slot), AcqRel) & WAITERS != 0
}

/// Says that someone waits, so that no one takes the lock without the queue; gives the word.
pub(crate) fn announce_waiter(word: &AtomicU64) -> u64 {
    word.fetch_or(WAITERS, AcqRel)
}

/// Says that no one waits any more.
pub(crate) fn no_waiters(word: &AtomicU64) {
    word.fetch_and(!WAITERS, AcqRel);
}

/// Whether anyone holds the lock (for assertions where all calls have ended).
pub fn is_free(word: &AtomicU64) -> bool {
    word.load(Acquire) & (HOLDERS | WAITERS) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_shared_in_modes_that_go_together() {
        let modes = [Mode::Shared, Mode::Intent, Mode::Exclusive];
        for first in modes {
            for second in modes {
                let word = AtomicU64::new(0);
                assert_eq!(attempt(&word, 3, first), Attempt::Taken);
                let expected = if first.goes_with(second) { Attempt::Taken } else { Attempt::Refused };
                assert_eq!(attempt(&word, 7, second), expected, "{first:?} then {second:?}");
            }
        }
    }

    #[test]
    fn a_single_holder_raises_its_own_lock() {
        let word = AtomicU64::new(0);
        assert_eq!(attempt(&word, 0, Mode::Shared), Attempt::Taken);
        assert_eq!(attempt(&word, 0, Mode::Shared), Attempt::Held);
        assert_eq!(attempt(&word, 0, Mode::Intent), Attempt::Raised);
        assert_eq!(attempt(&word, 0, Mode::Exclusive), Attempt::Held);
        assert_eq!(attempt(&word, 1, Mode::Intent), Attempt::Refused);
        assert!(!give_back(&word, 0));
        assert!(is_free(&word));
        // What mode the last holder had means nothing to the next.
        assert_eq!(attempt(&word, 1, Mode::Intent), Attempt::Taken);
        assert_eq!(attempt(&word, 2, Mode::Intent), Attempt::Taken);
        assert_eq!(attempt(&word, 2, Mode::Exclusive), Attempt::Refused);
    }

    #[test]
    fn nobody_overtakes_a_waiter() {
        let word = AtomicU64::new(0);
        attempt(&word, 0, Mode::Shared);
        announce_waiter(&word);
        assert_eq!(attempt(&word, 1, Mode::Shared), Attempt::Refused);
        assert_eq!(attempt(&word, 0, Mode::Shared), Attempt::Held);
        assert!(give_back(&word, 0));
        assert!(grant(&word, 1, Mode::Exclusive));
        no_waiters(&word);
        assert_eq!(attempt(&word, 1, Mode::Exclusive), Attempt::Held);
    }
}
