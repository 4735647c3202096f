//! Numbers for the threads that run calls, so that a word can say who holds it.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

const BITS: usize = u64::BITS as usize;

/// Numbers from 0 up, each for one thread at a time.
pub struct Slots {
    /// A bit for each number that is taken.
    used: Box<[CachePadded<AtomicU64>]>,
    count: usize,
}

impl Slots {
    /// So many numbers.
    pub fn new(count: usize) -> Slots {
        let words = count.div_ceil(BITS);
        Slots { used: (0..words).map(|_| CachePadded::default()).collect(), count }
    }

    /// A free number, the lowest but for those that others take or leave meanwhile; `None` if all are taken.
    pub fn claim(&self) -> Option<usize> {
        self.used.iter().enumerate().find_map(|(place, used)| {
            let first = place * BITS;
            claim_bit(used, (self.count - first).min(BITS)).map(|bit| first + bit)
        })
    }

    /// Gives a claimed number back.
    pub fn leave(&self, slot: usize) {
        self.used[slot / BITS].fetch_and(!(1 << (slot % BITS)), AcqRel);
    }
}

/// Claims the lowest free bit of a word, of which so many count.
fn claim_bit(word: &AtomicU64, count: usize) -> Option<usize> {
    let mut used = word.load(Relaxed);
    loop {
        let bit = used.trailing_ones() as usize;
        if bit >= count {
            return None;
        }
        match word.compare_exchange_weak(used, used | 1 << bit, AcqRel, Relaxed) {
            Ok(_) => return Some(bit),
            Err(now) => used = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: there are as many numbers as were asked for, the lowest free one comes first, and one that is given back
    /// can be had again.
    #[test]
    fn numbers_are_given_from_the_lowest_up() {
        for count in [1, 60, 64, 65, 128, 255] {
            let slots = Slots::new(count);
            (0..count).for_each(|number| assert_eq!(slots.claim(), Some(number)));
            assert_eq!(slots.claim(), None);
            for number in [count - 1, count / 2] {
                slots.leave(number);
                assert_eq!((slots.claim(), slots.claim()), (Some(number), None));
            }
        }
    }
}
