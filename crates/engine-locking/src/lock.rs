//! Locks by name: what a call may access, as a sorted list of small numbers.
//!
//! A lock's name is a place in the lock table, found by hash: of a table and a primary key for rows
//! (whether there is such a row or not), of its place among the granules
//! ([`fabius_engine::eager::granule`]) for ranges, unique values and idempotency keys. Two names that
//! share a place only make calls wait that need not. A call's own requests of one name add up, as their
//! [modes](Mode) do.

use fabius_engine::eager::granule::Granules;
use fabius_engine::eager::lock_mode::Mode;
use fabius_storage::Record;
use fabius_value::{Key, TableId};
use std::sync::atomic::AtomicU64;

/// Places of the lock table, a power of two.
pub const PLACES: usize = 1 << 18;

/// A bit above the mode.
const DECIDES: u32 = 1 << Mode::BITS;
/// Bits of a lock below its place: the mode, and one more.
const MODE_BITS: u32 = Mode::BITS + 1;

/// The mode in which granules around a locked row are locked.
#[inline]
pub fn around_row(writes: bool) -> Mode {
    if writes { Mode::Intent } else { Mode::Visit }
}

/// A lock and a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock(u32);

impl Lock {
    /// A lock by its place in the lock table.
    #[inline]
    pub fn new(place: usize, mode: Mode) -> Lock {
        Lock((place as u32) << MODE_BITS | mode as u32)
    }

    /// This lock, held to write what decides about the locks of other calls.
    #[inline]
    pub fn deciding(self, is_deciding: bool) -> Lock {
        Lock(self.0 | if is_deciding { DECIDES } else { 0 })
    }

    /// Whether it is held for that.
    #[inline]
    pub fn is_deciding(self) -> bool {
        self.0 & DECIDES != 0
    }

    /// The lock of a row, by table and hash of its key.
    #[inline]
    pub fn of_row(table: TableId, hash: u64, mode: Mode) -> Lock {
        Lock::new(fold(hash ^ u64::from(table.0).wrapping_mul(0xa24b_aed4_963e_e407)), mode)
    }

    /// The lock of a record.
    pub fn of_record(table: TableId, record: &Record, mode: Mode) -> Lock {
        let mut key = Key::new();
        key.extend(record.key());
        Lock::of_row(table, key.hash(), mode)
    }

    /// The lock of a granule.
    pub fn of_granule(granules: &Granules, word: &AtomicU64, mode: Mode) -> Lock {
        // Granules and rows lie in the same places, in orders that have nothing to do with each other.
        Lock::new(fold(granules.place(word) as u64 + 1), mode)
    }

    /// The lock's place in the lock table.
    #[inline]
    pub fn place(self) -> usize {
        (self.0 >> MODE_BITS) as usize
    }

    /// The lock's mode.
    #[inline]
    pub fn mode(self) -> Mode {
        Mode::of_bits(self.0.into())
    }
}

fn fold(hash: u64) -> usize {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES.ilog2())) as usize
}

/// The locks of a call.
#[derive(Clone, Debug, Default)]
pub struct LockSet {
    locks: Vec<Lock>,
}

impl LockSet {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.locks.clear();
    }

    /// Adds a lock; [`LockSet::seal`] follows when all have been added.
    #[inline]
    pub fn add(&mut self, lock: Lock) {
        self.locks.push(lock);
    }

    /// Brings the locks in order, each once, with its modes added up.
    pub fn seal(&mut self) {
        self.locks.sort_unstable();
        self.locks.dedup_by(|later, kept| {
            let is_same = later.place() == kept.place();
            if is_same {
                kept.0 |= later.0;
            }
            is_same
        });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }

    /// The locks; in order of their places, once they are sealed.
    pub fn iter(&self) -> impl Iterator<Item = Lock> + '_ {
        self.locks.iter().copied()
    }

    /// Whether a lock is among them, in this mode or more.
    #[inline]
    pub fn covers(&self, lock: Lock) -> bool {
        const LINEAR_MAX: usize = 16;
        let is_it = |own: &Lock| own.place() == lock.place() && own.mode().covers(lock.mode());
        if self.locks.len() <= LINEAR_MAX {
            return self.locks.iter().any(is_it);
        }
        let at = self.locks.partition_point(|own| own.place() < lock.place());
        self.locks.get(at).is_some_and(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a call's requests of one lock add up, and the set covers what was added and no more.
    #[test]
    fn modes_of_one_lock_add_up() {
        let mut set = LockSet::default();
        for (place, mode) in [(7, Mode::Shared), (3, Mode::Intent), (7, Mode::Intent), (3, Mode::Intent)] {
            set.add(Lock::new(place, mode));
        }
        set.seal();
        let locks: Vec<_> = set.iter().map(|lock| (lock.place(), lock.mode())).collect();
        assert_eq!(locks, [(3, Mode::Intent), (7, Mode::Exclusive)]);
        assert!(set.covers(Lock::new(7, Mode::Shared)) && set.covers(Lock::new(3, Mode::Intent)));
        assert!(set.covers(Lock::new(3, Mode::Visit)) && !set.covers(Lock::new(4, Mode::Visit)));
        assert!(!set.covers(Lock::new(3, Mode::Shared)) && !set.covers(Lock::new(4, Mode::Intent)));
        for place in 10..40 {
            set.add(Lock::new(place, Mode::Shared));
        }
        set.seal();
        assert!(set.covers(Lock::new(39, Mode::Shared)) && !set.covers(Lock::new(40, Mode::Shared)));
        assert!(!set.covers(Lock::new(39, Mode::Exclusive)));
    }
}
