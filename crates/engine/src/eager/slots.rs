//! Numbers for the threads that run calls, so that a word can say who holds it.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

/// Numbers from 0 up, each for one thread at a time.
pub struct Slots {
    used: CachePadded<AtomicU64>,
    count: usize,
}

impl Slots {
    /// So many numbers, at most 64.
    pub fn new(count: usize) -> Slots {
        assert!(count <= 64, "a word has 64 bits");
        Slots { used: CachePadded::default(), count }
    }

    /// The lowest free number; `None` if all are taken.
    pub fn claim(&self) -> Option<usize> {
        let mut used = self.used.load(Relaxed);
        loop {
            let slot = used.trailing_ones() as usize;
            if slot >= self.count {
                return None;
            }
            match self.used.compare_exchange_weak(used, used | 1 << slot, AcqRel, Relaxed) {
                Ok(_) => return Some(slot),
                Err(now) => used = now,
            }
        }
    }

    /// Gives a claimed number back.
    pub fn leave(&self, slot: usize) {
        self.used.fetch_and(!(1 << slot), AcqRel);
    }
}
