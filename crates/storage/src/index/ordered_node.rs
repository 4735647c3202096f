//! Nodes of the ordered index, and how readers look at them without locks.
//!
//! ```text
//! inner   children  [ c0 | c1 | c2 | c3 ]          keys in c1 are above k0 and at most k1
//!         keys         [ k0 | k1 | k2 ]
//!
//! leaf    keys      [ k0 | k1 | k2 | ...... ]  <-> previous, next leaf
//!         pointers  [ p0 | p1 | p2 | ...... ]
//! ```
//!
//! Every node starts with a version. The writer makes it odd, changes the node, and makes it even again;
//! a reader notes an even version, reads, and believes what it read only if the version is still the same
//! (a seqlock; Leis et al., *The ART of Practical Synchronization*, 2016, "optimistic lock coupling"):
//!
//! ```text
//!              lock              unlock
//!   version 8 ------> version 9 --------> version 12      a reader that noted 8 starts again
//!                         |
//!                         +-------------> OBSOLETE        unlinked: the reader goes back to the root
//!                           mark_obsolete
//! ```
//!
//! Everything readers and the writer touch at the same time is atomic. Relaxed loads and stores suffice:
//! a validated version is one that an `unlock` released after all the stores the reader saw.
//!
//! Invariants: `count` never exceeds the node's capacity; `keys[..count]` ascend strictly; an inner node
//! has `count + 1` children, all of the level below; level 0 is the leaves. What lies past `count` is stale
//! and is never followed.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, fence};

use crossbeam_utils::Backoff;

use super::key::{Changed, IndexKey, Words};
use super::pointer::{Pointer, prefetch};

/// Entries of a leaf. Unit tests have small nodes, so that few keys make a high tree.
pub(super) const LEAF_ENTRIES: usize = if cfg!(test) { 6 } else { 32 };
/// Separator keys of an inner node, which has one child more.
pub(super) const INNER_KEYS: usize = if cfg!(test) { 5 } else { 63 };

type Slot<K> = <<K as IndexKey>::Words as Words>::Slot;

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const VERSION_STEP: u64 = 4;

/// The start of every node, whatever its kind.
#[repr(C)]
pub(super) struct Header {
    version: AtomicU64,
    count: AtomicU32,
    level: u32,
}

impl Header {
    fn new(level: u32) -> Header {
        Header { version: AtomicU64::new(0), count: AtomicU32::new(0), level }
    }

    /// 0 for a leaf. Never changes.
    #[inline]
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    #[inline]
    fn set_count(&self, count: usize) {
        self.count.store(count as u32, Relaxed);
    }

    /// The version to read under; waits while the writer is inside.
    #[inline]
    pub(super) fn begin(&self) -> Result<u64, Changed> {
        let version = self.version.load(Acquire);
        if version & (LOCKED | OBSOLETE) == 0 { Ok(version) } else { self.begin_slow() }
    }

    #[cold]
    fn begin_slow(&self) -> Result<u64, Changed> {
        let backoff = Backoff::new();
        loop {
            let version = self.version.load(Acquire);
            if version & OBSOLETE != 0 {
                return Err(Changed);
            }
            if version & LOCKED == 0 {
                return Ok(version);
            }
            backoff.snooze();
        }
    }

    /// Whether nothing has been written since `version` was noted.
    #[inline]
    pub(super) fn is_at(&self, version: u64) -> bool {
        fence(Acquire);
        self.version.load(Relaxed) == version
    }

    /// [`Header::is_at`] as a result.
    #[inline]
    pub(super) fn validate(&self, version: u64) -> Result<(), Changed> {
        if self.is_at(version) { Ok(()) } else { Err(Changed) }
    }

    /// Keeps readers out. Only the holder of the index's latch locks nodes.
    pub(super) fn lock(&self) {
        let version = self.version.load(Relaxed);
        assert_eq!(version & (LOCKED | OBSOLETE), 0, "the latch holder locks a live node once");
        self.version.store(version | LOCKED, Relaxed);
        fence(Release);
    }

    /// Lets readers in again, unless the node has become obsolete.
    pub(super) fn unlock(&self) {
        let version = self.version.load(Relaxed);
        if version & OBSOLETE == 0 {
            self.version.store(version - LOCKED + VERSION_STEP, Release);
        }
    }

    /// Turns readers away for good: the locked node is being unlinked.
    pub(super) fn mark_obsolete(&self) {
        self.version.store(OBSOLETE, Release);
    }
}

/// The number of `keys[..count]` below `key`.
///
/// # Safety
///
/// The contract of [`IndexKey`].
#[inline]
unsafe fn rank<K: IndexKey>(
    keys: &[Slot<K>],
    count: usize,
    key: &K::Key<'_>,
    stable: impl Fn() -> bool + Copy,
) -> Result<usize, Changed> {
    let mut base = 0;
    let mut size = count.min(keys.len());
    while size > 1 {
        let half = size / 2;
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        let less = unsafe { K::is_less(&keys[base + half - 1], key, stable) }?;
        base = std::hint::select_unpredictable(less, base + half, base);
        size -= half;
    }
    if size == 1 {
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        base += usize::from(unsafe { K::is_less(&keys[base], key, stable) }?);
    }
    Ok(base)
}

fn empty_slots<K: IndexKey, const N: usize>() -> [Slot<K>; N] {
    std::array::from_fn(|_| K::Words::empty_slot())
}

/// Copies entry `from` of one array of slots to `to` of another, or the same.
#[inline]
fn copy_slot<K: IndexKey>(source: &Slot<K>, target: &Slot<K>) {
    K::Words::load(source).store(target);
}

/// A node that holds entries.
#[repr(C, align(64))]
pub(super) struct Leaf<K: IndexKey> {
    header: Header,
    /// Where the last entry went, and how many before it each went just behind the one before; the writer's.
    last_rank: AtomicU32,
    run: AtomicU32,
    /// The leaf of the keys just below; null in the first.
    pub(super) previous: AtomicPtr<Leaf<K>>,
    /// The leaf of the keys just above; null in the last.
    pub(super) next: AtomicPtr<Leaf<K>>,
    keys: [Slot<K>; LEAF_ENTRIES],
    pointers: [AtomicU64; LEAF_ENTRIES],
}

impl<K: IndexKey> Leaf<K> {
    pub(super) fn new() -> Box<Leaf<K>> {
        Box::new(Leaf {
            header: Header::new(0),
            last_rank: AtomicU32::new(0),
            run: AtomicU32::new(0),
            previous: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            keys: empty_slots::<K, LEAF_ENTRIES>(),
            pointers: [const { AtomicU64::new(0) }; LEAF_ENTRIES],
        })
    }

    #[inline]
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.header.count()
    }

    /// The number of entries below `key`.
    ///
    /// # Safety
    ///
    /// The contract of [`IndexKey`].
    #[inline]
    pub(super) unsafe fn rank(
        &self,
        key: &K::Key<'_>,
        stable: impl Fn() -> bool + Copy,
    ) -> Result<usize, Changed> {
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        unsafe { rank::<K>(&self.keys, self.count(), key, stable) }
    }

    /// Whether entry `rank` exists and has this key.
    ///
    /// # Safety
    ///
    /// The contract of [`IndexKey`].
    #[inline]
    pub(super) unsafe fn holds(
        &self,
        rank: usize,
        key: &K::Key<'_>,
        stable: impl Fn() -> bool + Copy,
    ) -> Result<bool, Changed> {
        if rank >= self.count().min(LEAF_ENTRIES) {
            return Ok(false);
        }
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        unsafe { K::is_equal(&self.keys[rank], key, stable) }
    }

    #[inline]
    pub(super) fn words(&self, rank: usize) -> K::Words {
        K::Words::load(&self.keys[rank])
    }

    /// The pointer of entry `rank`; `None` only if the slot has never held one.
    #[inline]
    pub(super) fn pointer(&self, rank: usize) -> Option<Pointer> {
        Pointer::new(self.pointers[rank].load(Relaxed))
    }

    fn set(&self, rank: usize, words: K::Words, pointer: Pointer) {
        words.store(&self.keys[rank]);
        self.pointers[rank].store(pointer.address(), Relaxed);
    }

    /// Puts an entry at `rank`. The leaf is locked or private, and not full.
    pub(super) fn insert(&self, rank: usize, words: K::Words, pointer: Pointer) {
        let count = self.count();
        for i in (rank..count).rev() {
            copy_slot::<K>(&self.keys[i], &self.keys[i + 1]);
            self.pointers[i + 1].store(self.pointers[i].load(Relaxed), Relaxed);
        }
        self.set(rank, words, pointer);
        self.header.set_count(count + 1);
        let follows = rank as u32 == self.last_rank.load(Relaxed) + 1;
        self.run.store(if follows { self.run.load(Relaxed) + 1 } else { 0 }, Relaxed);
        self.last_rank.store(rank as u32, Relaxed);
    }

    /// Takes entry `rank` out. The leaf is locked.
    pub(super) fn remove(&self, rank: usize) {
        let count = self.count();
        for i in rank + 1..count {
            copy_slot::<K>(&self.keys[i], &self.keys[i - 1]);
            self.pointers[i - 1].store(self.pointers[i].load(Relaxed), Relaxed);
        }
        self.header.set_count(count - 1);
        // A run goes on behind the same entry, which has moved down if it was above the removed one.
        let last_rank = self.last_rank.load(Relaxed);
        self.last_rank.store(last_rank.saturating_sub(u32::from(rank as u32 <= last_rank)), Relaxed);
    }

    /// Whether an entry put at `rank` would go on an ascending run, such as the lines of an order.
    pub(super) fn ascends(&self, rank: usize) -> bool {
        const RUN_MIN: u32 = 3;
        self.run.load(Relaxed) >= RUN_MIN && rank as u32 == self.last_rank.load(Relaxed) + 1
    }

    /// Moves the entries from `cut` on to the private, empty `right`. The leaf is locked.
    pub(super) fn split_off(&self, cut: usize, right: &Leaf<K>) {
        let count = self.count();
        for i in cut..count {
            copy_slot::<K>(&self.keys[i], &right.keys[i - cut]);
            right.pointers[i - cut].store(self.pointers[i].load(Relaxed), Relaxed);
        }
        right.header.set_count(count - cut);
        self.header.set_count(cut);
    }
}

/// A node that leads to others.
#[repr(C, align(64))]
pub(super) struct Inner<K: IndexKey> {
    header: Header,
    keys: [Slot<K>; INNER_KEYS],
    children: [AtomicPtr<Header>; INNER_KEYS + 1],
}

impl<K: IndexKey> Inner<K> {
    /// A private node with one child and no separator.
    pub(super) fn new(level: u32, child: *mut Header) -> Box<Inner<K>> {
        let inner = Box::new(Inner {
            header: Header::new(level),
            keys: empty_slots::<K, INNER_KEYS>(),
            children: [const { AtomicPtr::new(ptr::null_mut()) }; INNER_KEYS + 1],
        });
        inner.children[0].store(child, Relaxed);
        inner
    }

    #[inline]
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.header.count().min(INNER_KEYS)
    }

    /// Which child `key` belongs to.
    ///
    /// # Safety
    ///
    /// The contract of [`IndexKey`].
    #[inline]
    pub(super) unsafe fn rank(
        &self,
        key: &K::Key<'_>,
        stable: impl Fn() -> bool + Copy,
    ) -> Result<usize, Changed> {
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        unsafe { rank::<K>(&self.keys, self.count(), key, stable) }
    }

    #[inline]
    pub(super) fn child(&self, index: usize) -> *mut Header {
        self.children[index].load(Relaxed)
    }

    #[inline]
    pub(super) fn words(&self, index: usize) -> K::Words {
        K::Words::load(&self.keys[index])
    }

    /// Puts `words` behind child `index`, and `child` behind that. The node is locked or private, and not full.
    pub(super) fn insert(&self, index: usize, words: K::Words, child: *mut Header) {
        let count = self.count();
        for i in (index..count).rev() {
            copy_slot::<K>(&self.keys[i], &self.keys[i + 1]);
            self.children[i + 2].store(self.child(i + 1), Relaxed);
        }
        words.store(&self.keys[index]);
        self.children[index + 1].store(child, Relaxed);
        self.header.set_count(count + 1);
    }

    /// Takes child `index` out and gives its range to the next child, or to the one before if it is the
    /// last; returns the separator that is gone. The node is locked and has another child.
    pub(super) fn remove(&self, index: usize) -> K::Words {
        let count = self.count();
        let gone = index.min(count - 1);
        let words = self.words(gone);
        for i in gone + 1..count {
            copy_slot::<K>(&self.keys[i], &self.keys[i - 1]);
        }
        for i in index + 1..=count {
            self.children[i - 1].store(self.child(i), Relaxed);
        }
        self.header.set_count(count - 1);
        words
    }

    /// Moves the children behind separator `cut` to a new node; returns that separator, which is in neither
    /// node now, and the new node. The node is locked.
    pub(super) fn split_off(&self, cut: usize) -> (K::Words, Box<Inner<K>>) {
        let count = self.count();
        let right = Inner::new(self.header.level, self.child(cut + 1));
        for i in cut + 1..count {
            right.insert(i - cut - 1, self.words(i), self.child(i + 1));
        }
        self.header.set_count(cut);
        (self.words(cut), right)
    }
}

/// Asks for the cache lines that a search of a node reads, the first ones if it is wide: waiting for many
/// lines together costs hardly more than waiting for one. `level` is the node's.
#[inline]
pub(super) fn prefetch_node<K: IndexKey>(node: *const Header, level: u32) {
    const LINE_BYTES: usize = 64;
    const LINES_MAX: usize = 28;
    let bytes = if level == 0 { size_of::<Leaf<K>>() } else { std::mem::offset_of!(Inner<K>, children) };
    for line in 0..bytes.div_ceil(LINE_BYTES).min(LINES_MAX) {
        prefetch(node.cast::<u8>().wrapping_add(LINE_BYTES * line));
    }
}
