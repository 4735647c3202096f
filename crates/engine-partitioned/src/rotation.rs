//! Partitions that the threads which are lent look at in turn, so that none is passed over for ever.

use crossbeam_utils::CachePadded;
use std::ops::Index;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// All partitions, static or logical ones.
pub struct Rotation<P> {
    partitions: Box<[CachePadded<P>]>,
    /// Where the next thread looks first.
    next: AtomicUsize,
}

impl<P: Default> Rotation<P> {
    /// So many partitions.
    pub fn new(count: usize) -> Rotation<P> {
        Rotation {
            partitions: (0..count).map(|_| CachePadded::default()).collect(),
            next: AtomicUsize::new(0),
        }
    }
}

impl<P> Rotation<P> {
    /// Asks one partition after the other; gives the number of the first that can be claimed, with what that gives.
    pub fn claim<'p, C>(&'p self, claim: impl Fn(&'p P) -> Option<C>) -> Option<(usize, C)> {
        let (first, count) = (self.next.load(Relaxed), self.len());
        let mut numbers = (0..count).map(|at| (first + at) % count);
        let claimed = numbers.find_map(|number| Some((number, claim(&self[number])?)))?;
        self.next.store(claimed.0 + 1, Relaxed);
        Some(claimed)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.partitions.len()
    }
}

impl<P> Index<usize> for Rotation<P> {
    type Output = P;

    fn index(&self, number: usize) -> &P {
        &self.partitions[number]
    }
}
