//! A range scan over the ordered index, one leaf at a time.
//!
//! ```text
//!   bounds        25 <= key <= 95                     ascending
//!   leaves     [ 10 20 30 40 ] -> [ 50 90 ] -> [ 95 97 99 ]
//!   batches            30 40        50 90        95
//! ```
//!
//! A batch is copied out of a leaf and then validated. The cursor remembers the leaf with its version: if
//! that still holds, it goes on in the same leaf or steps to the neighbour as a reader steps to a child.
//! If not, it goes back to the root with the last key it returned as the new, excluded bound. So no key is
//! returned twice, and none that stays is passed over.
//!
//! Invariant: every key in the range and not returned yet lies within `lower` and `upper`.

use std::marker::PhantomData;
use std::ops::Bound;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_epoch::Guard;

use super::key::{Changed, IndexKey, Words};
use super::ordered::OrderedIndex;
use super::ordered_node::{Inner, LEAF_ENTRIES, Leaf, prefetch_node};
use super::pointer::Pointer;

/// Entries the iterator copies at first; it doubles up to a leaf, so that taking one costs little.
const FIRST_BATCH: usize = 4;

/// The order in which a scan returns keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Lowest key first.
    Ascending,
    /// Highest key first.
    Descending,
}

/// One entry that a scan returned.
pub struct Entry<'g, K: IndexKey> {
    words: K::Words,
    pointer: Option<Pointer>,
    guard: PhantomData<&'g Guard>,
}

impl<K: IndexKey> Clone for Entry<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: IndexKey> Copy for Entry<'_, K> {}

impl<'g, K: IndexKey> Entry<'g, K> {
    const BLANK: Entry<'g, K> = Entry { words: K::Words::ZERO, pointer: None, guard: PhantomData };

    /// The key; a long key's bytes stay until the guard of the scan is dropped.
    #[inline]
    pub fn key(&self) -> K::Key<'g> {
        // SAFETY: only entries copied from a validated leaf leave the cursor, and the guard of the scan, which
        // was pinned before, is borrowed for `'g`.
        unsafe { K::view(self.words) }
    }

    /// What is stored under the key.
    #[inline]
    pub fn pointer(&self) -> Pointer {
        self.pointer.expect("an entry has a pointer")
    }
}

/// Where a cursor stands: a leaf as it was at `version`, and the ranks of the entries still to return.
struct Position<'g, K: IndexKey> {
    leaf: &'g Leaf<K>,
    version: u64,
    from: usize,
    to: usize,
    /// The range ends in this leaf.
    last: bool,
}

impl<K: IndexKey> OrderedIndex<K> {
    /// The entries between the bounds, in ascending or descending order of their keys.
    ///
    /// Every key that is in the index from this call until the cursor has passed it is returned exactly
    /// once; a key that is inserted or removed meanwhile may be. Costs one descent at the first entry, then
    /// follows the leaves.
    #[inline]
    pub fn scan<'g>(
        &'g self,
        lower: Bound<K::Key<'g>>,
        upper: Bound<K::Key<'g>>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Cursor<'g, K> {
        Cursor::new(self, lower, upper, direction, guard)
    }
}

/// A scan in progress; made by [`OrderedIndex::scan`].
///
/// It is an iterator. [`Cursor::next_batch`] gives the same entries some at a time, for callers who want to
/// prefetch what the pointers lead to. Neither allocates.
pub struct Cursor<'g, K: IndexKey> {
    index: &'g OrderedIndex<K>,
    guard: &'g Guard,
    direction: Direction,
    lower: Bound<K::Key<'g>>,
    upper: Bound<K::Key<'g>>,
    position: Option<Position<'g, K>>,
    finished: bool,
    batch_limit: usize,
    taken: usize,
    filled: usize,
    buffer: [Entry<'g, K>; LEAF_ENTRIES],
}

impl<'g, K: IndexKey> Cursor<'g, K> {
    #[inline]
    pub(super) fn new(
        index: &'g OrderedIndex<K>,
        lower: Bound<K::Key<'g>>,
        upper: Bound<K::Key<'g>>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Cursor<'g, K> {
        Cursor {
            index,
            guard,
            direction,
            lower,
            upper,
            position: None,
            finished: false,
            batch_limit: FIRST_BATCH,
            taken: 0,
            filled: 0,
            buffer: [Entry::BLANK; LEAF_ENTRIES],
        }
    }

    /// The next entries, at most `limit` (which is at least 1) and at most those of one leaf; none if the
    /// scan is over.
    pub fn next_batch(&mut self, limit: usize) -> &[Entry<'g, K>] {
        if self.taken == self.filled {
            self.fill(limit.max(1));
        }
        let from = self.taken;
        self.taken = self.filled.min(from + limit.max(1));
        &self.buffer[from..self.taken]
    }

    /// Replaces the buffer with the next entries, at most `limit`.
    fn fill(&mut self, limit: usize) {
        self.taken = 0;
        self.filled = 0;
        while !self.finished && self.filled == 0 {
            if self.try_fill(limit).is_err() {
                self.position = None;
            }
        }
    }

    fn try_fill(&mut self, limit: usize) -> Result<(), Changed> {
        let mut at = match self.position.take() {
            Some(position) => position,
            None => self.descend()?,
        };
        while at.from == at.to {
            at.leaf.header().validate(at.version)?;
            if at.last {
                self.finished = true;
                return Ok(());
            }
            at = self.step(&at)?;
        }
        let count = limit.min(at.to - at.from);
        let first = match self.direction {
            Direction::Ascending => at.from,
            Direction::Descending => at.to - count,
        };
        for (entry, rank) in self.buffer[..count].iter_mut().zip(first..) {
            entry.words = at.leaf.words(rank);
            entry.pointer = at.leaf.pointer(rank);
        }
        at.leaf.header().validate(at.version)?;
        match self.direction {
            Direction::Ascending => {
                at.from += count;
                self.lower = Bound::Excluded(self.buffer[count - 1].key());
            }
            Direction::Descending => {
                self.buffer[..count].reverse();
                at.to -= count;
                self.upper = Bound::Excluded(self.buffer[count - 1].key());
            }
        }
        self.filled = count;
        self.position = Some(at);
        Ok(())
    }

    /// Finds the leaf in which the rest of the range begins.
    fn descend(&self) -> Result<Position<'g, K>, Changed> {
        let (near, end) = match self.direction {
            Direction::Ascending => (&self.lower, 0),
            Direction::Descending => (&self.upper, usize::MAX),
        };
        let route = |inner: &Inner<K>, version| match near {
            // SAFETY: `stable` validates the version noted before the node was read, and the guard is pinned.
            Bound::Included(key) | Bound::Excluded(key) => unsafe {
                inner.rank(key, || inner.header().is_at(version))
            },
            Bound::Unbounded => Ok(end.min(inner.count())),
        };
        let (leaf, version) = self.index.find_leaf(route, self.guard)?;
        self.stand(leaf, version)
    }

    /// Goes on to the neighbour of the leaf at `at`.
    fn step(&self, at: &Position<'g, K>) -> Result<Position<'g, K>, Changed> {
        let neighbour = self.neighbour(at.leaf);
        at.leaf.header().validate(at.version)?;
        // SAFETY: the leaf is unchanged, so its neighbour was in the tree while the guard was pinned; `last`
        // was false, so there is one.
        let leaf = unsafe { &*neighbour };
        let version = leaf.header().begin()?;
        at.leaf.header().validate(at.version)?;
        self.stand(leaf, version)
    }

    #[inline]
    fn neighbour(&self, leaf: &Leaf<K>) -> *mut Leaf<K> {
        match self.direction {
            Direction::Ascending => leaf.next.load(Relaxed),
            Direction::Descending => leaf.previous.load(Relaxed),
        }
    }

    /// The part of a leaf that is in the range.
    fn stand(&self, leaf: &'g Leaf<K>, version: u64) -> Result<Position<'g, K>, Changed> {
        let neighbour = self.neighbour(leaf);
        prefetch_node::<K>(neighbour.cast(), 0);
        let stable = || leaf.header().is_at(version);
        let count = leaf.count().min(LEAF_ENTRIES);
        // SAFETY (all four): `stable` validates the version noted before the leaf was read, and the guard is
        // pinned.
        let below = |key| unsafe { leaf.rank(key, stable) };
        let holds = |rank, key| unsafe { leaf.holds(rank, key, stable) };
        let from = match &self.lower {
            Bound::Unbounded => 0,
            Bound::Included(key) => below(key)?,
            Bound::Excluded(key) => {
                let rank = below(key)?;
                rank + usize::from(holds(rank, key)?)
            }
        };
        let to = match &self.upper {
            Bound::Unbounded => count,
            Bound::Included(key) => {
                let rank = below(key)?;
                rank + usize::from(holds(rank, key)?)
            }
            Bound::Excluded(key) => below(key)?,
        };
        leaf.header().validate(version)?;
        let range_ends = match self.direction {
            Direction::Ascending => to < count,
            Direction::Descending => from > 0,
        };
        Ok(Position {
            leaf,
            version,
            from: from.min(to),
            to,
            last: range_ends || ptr::eq(neighbour, ptr::null()),
        })
    }
}

impl<'g, K: IndexKey> Iterator for Cursor<'g, K> {
    type Item = (K::Key<'g>, Pointer);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.taken == self.filled {
            self.fill(self.batch_limit);
            if self.filled == 0 {
                return None;
            }
            self.batch_limit = (2 * self.batch_limit).min(LEAF_ENTRIES);
        }
        let entry = &self.buffer[self.taken];
        self.taken += 1;
        Some((entry.key(), entry.pointer()))
    }
}
