//! The ordered index: a B+tree that readers walk without locks, with one writer at a time.
//!
//! ```text
//!                         root
//!                      [ . 40 . 90 . ]                     level 1
//!                      /      |      \
//!   [ 10 20 40 ] <-> [ 50 90 ] <-> [ 95 97 99 ]            level 0, linked both ways
//! ```
//!
//! **Reading.** A reader notes a node's version, finds the child, notes the child's version, and then
//! makes sure that the node is unchanged: so the child was the right one when its version was noted, and
//! whatever moves a key out of the child later changes that version too. Any change sends the reader back
//! to the root. Finding 50: root at v8, child 1, leaf at v4, root still v8, entry 0, leaf still v4.
//!
//! **Writing.** One latch for the index. The writer locks every node it is going to change, changes them
//! all, and unlocks them together, so that no reader passes from a changed node to one not yet changed. A
//! full leaf splits in the middle; but where keys arrive in ascending order it splits where they arrive,
//! and leaves full leaves behind. An empty leaf is unlinked at once, so the first and last key are always
//! found in one descent; a leaf that is merely sparse stays.
//!
//! Invariants, beside those of the nodes: an inner root has at least two children; a leaf that is not the
//! root has an entry; the leaf links are in the order of the tree.

use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::key::{Changed, IndexKey};
use super::ordered_change::{LockSet, Path};
use super::ordered_node::{Header, INNER_KEYS, Inner, LEAF_ENTRIES, Leaf, prefetch_node};
use super::pointer::Pointer;

/// A map from keys to [`Pointer`]s in the order of the keys.
///
/// Any number of threads may call any method; `insert` and `remove` wait for each other, nothing else
/// waits for more than a few stores. Guards must come from `crossbeam_epoch::pin`.
pub struct OrderedIndex<K: IndexKey> {
    root: CachePadded<AtomicPtr<Header>>,
    writer: CachePadded<Mutex<Writer<K>>>,
    length: AtomicUsize,
}

/// What the latch protects, beside the right to change nodes: where the last insert was.
struct Writer<K: IndexKey> {
    recent: Option<Recent<K>>,
}

/// A leaf and the range of keys that belong to it. Forgotten whenever any node is split or unlinked, so
/// the leaf is in the tree and the bounds are words of separators in the tree.
struct Recent<K: IndexKey> {
    leaf: *mut Leaf<K>,
    /// Keys at or below are in another leaf.
    lower: Option<K::Words>,
    /// Keys above are in another leaf.
    upper: Option<K::Words>,
    /// Where in the leaf the entry went.
    rank: usize,
}

// SAFETY: the nodes behind the raw pointers are shared only by the protocol of this module, which is made
// for many threads; keys and pointers are plain words, and blocks of long keys do not change.
unsafe impl<K: IndexKey> Send for OrderedIndex<K> {}
// SAFETY: nodes are shared only by the protocol of this module, which is made for many threads.
unsafe impl<K: IndexKey> Sync for OrderedIndex<K> {}

impl<K: IndexKey> Recent<K> {
    fn covers(&self, key: &K::Key<'_>) -> bool {
        // SAFETY: the words are those of separators in the tree, and the caller, who can see the writer's
        // state, holds the latch.
        unsafe {
            self.lower.is_none_or(|lower| K::view(lower) < *key)
                && self.upper.is_none_or(|upper| *key <= K::view(upper))
        }
    }

    /// The place just behind the last entry, if that is where the key belongs: so it is for the lines of an order.
    #[inline]
    fn next_place(&self, key: &K::Key<'_>) -> Option<usize> {
        // SAFETY: the recent leaf is in the tree, and the caller, who can see the writer's state, holds the latch.
        let leaf = unsafe { &*self.leaf };
        let next = self.rank + 1;
        // SAFETY: the leaf is in the tree and latched, for all words that are looked at.
        let belongs = next <= leaf.count()
            && unsafe { K::view(leaf.words(self.rank)) < *key }
            && if next < leaf.count() {
                unsafe { *key < K::view(leaf.words(next)) }
            } else {
                self.upper.is_none_or(|upper| unsafe { *key <= K::view(upper) })
            };
        belongs.then_some(next)
    }
}

impl<K: IndexKey> Default for OrderedIndex<K> {
    fn default() -> Self {
        OrderedIndex::new()
    }
}

impl<K: IndexKey> OrderedIndex<K> {
    /// An index without entries.
    pub fn new() -> OrderedIndex<K> {
        let root = Box::into_raw(Leaf::<K>::new()).cast::<Header>();
        OrderedIndex {
            root: CachePadded::new(AtomicPtr::new(root)),
            writer: CachePadded::new(Mutex::new(Writer { recent: None })),
            length: AtomicUsize::new(0),
        }
    }

    /// The number of entries; while others write, that of a moment ago.
    pub fn len(&self) -> usize {
        self.length.load(Relaxed)
    }

    /// Whether [`OrderedIndex::len`] is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pointer stored under `key`. One descent; again if a writer was in the way.
    #[inline]
    pub fn get(&self, key: &K::Key<'_>, guard: &Guard) -> Option<Pointer> {
        loop {
            if let Ok(found) = self.try_get(key, guard) {
                return found;
            }
        }
    }

    #[inline]
    fn try_get(&self, key: &K::Key<'_>, guard: &Guard) -> Result<Option<Pointer>, Changed> {
        // SAFETY: `stable` validates the version noted before the node was read, and `guard` is pinned.
        let route = |inner: &Inner<K>, version| unsafe { inner.rank(key, || inner.header().is_at(version)) };
        let (leaf, version) = self.find_leaf(route, guard)?;
        let stable = || leaf.header().is_at(version);
        // SAFETY: as for `route`.
        let found = unsafe {
            let rank = leaf.rank(key, stable)?;
            if leaf.holds(rank, key, stable)? { leaf.pointer(rank) } else { None }
        };
        leaf.header().validate(version)?;
        Ok(found)
    }

    /// Walks down to a leaf and returns it with its version. `route` chooses a child, given an inner node
    /// and the version to read it under; what it returns is used only if that version still holds.
    #[inline]
    pub(super) fn find_leaf<'g>(
        &'g self,
        route: impl Fn(&Inner<K>, u64) -> Result<usize, Changed>,
        _guard: &'g Guard,
    ) -> Result<(&'g Leaf<K>, u64), Changed> {
        let mut node: *const Header = self.root.load(Acquire);
        // SAFETY (here and below): a validated parent or the root pointer led to the node while the guard was
        // pinned, and unlinked nodes are freed only after every such guard is gone. The level of a node,
        // which never changes, tells which kind it is.
        let mut version = unsafe { (*node).begin() }?;
        if !ptr::eq(self.root.load(Acquire), node) {
            return Err(Changed);
        }
        while unsafe { (*node).level() } > 0 {
            let inner = unsafe { &*node.cast::<Inner<K>>() };
            let child = inner.child(route(inner, version)?);
            inner.header().validate(version)?;
            prefetch_node::<K>(child, inner.header().level() - 1);
            let child_version = unsafe { (*child).begin() }?;
            inner.header().validate(version)?;
            node = child;
            version = child_version;
        }
        Ok((unsafe { &*node.cast::<Leaf<K>>() }, version))
    }

    /// Stores `pointer` under `key`.
    ///
    /// # Errors
    ///
    /// The pointer already stored under `key`, which stays, and may be followed while the guard is pinned.
    pub fn insert(&self, key: &K::Key<'_>, pointer: Pointer, _guard: &Guard) -> Result<(), Pointer> {
        let mut writer = self.writer.lock();
        let next_place = writer.recent.as_ref().and_then(|recent| recent.next_place(key));
        let recent = match &mut writer.recent {
            Some(recent) if next_place.is_some() || recent.covers(key) => recent,
            other => other.insert(self.descend(key, None)),
        };
        // SAFETY: the recent leaf is in the tree, and the latch keeps it there.
        let leaf = unsafe { &*recent.leaf };
        let rank = match next_place {
            Some(rank) => rank,
            None => {
                // SAFETY: the latch is held.
                let (rank, present) = unsafe { self.search(leaf, key) };
                if present {
                    return Err(leaf.pointer(rank).expect("an entry has a pointer"));
                }
                rank
            }
        };
        let words = K::store(key);
        if leaf.count() < LEAF_ENTRIES {
            recent.rank = rank;
            leaf.header().lock();
            leaf.insert(rank, words, pointer);
            leaf.header().unlock();
        } else {
            writer.recent = None;
            self.split_leaf(key, rank, words, pointer);
        }
        self.length.store(self.length.load(Relaxed) + 1, Relaxed);
        Ok(())
    }

    /// Takes the entry of `key` out and returns its pointer; `None` if there is none.
    pub fn remove(&self, key: &K::Key<'_>, guard: &Guard) -> Option<Pointer> {
        let mut writer = self.writer.lock();
        let mut path = Path::new();
        let address = self.descend(key, Some(&mut path)).leaf;
        // SAFETY: the latch keeps the leaf in the tree.
        let leaf = unsafe { &*address };
        // SAFETY: the latch is held.
        let (rank, present) = unsafe { self.search(leaf, key) };
        if !present {
            return None;
        }
        let pointer = leaf.pointer(rank);
        let words = leaf.words(rank);
        if leaf.count() > 1 || path.is_empty() {
            leaf.header().lock();
            leaf.remove(rank);
            leaf.header().unlock();
        } else {
            writer.recent = None;
            self.unlink_leaf(&path, address, guard);
        }
        // SAFETY: the latch is held and the entry that held these words is gone.
        unsafe { K::retire(words, guard) };
        self.length.store(self.length.load(Relaxed) - 1, Relaxed);
        pointer
    }

    /// The leaf `key` belongs to; the caller holds the latch.
    fn descend(&self, key: &K::Key<'_>, mut path: Option<&mut Path<K>>) -> Recent<K> {
        let mut node = self.root.load(Relaxed);
        let (mut lower, mut upper) = (None, None);
        // SAFETY (here and below): the latch keeps every node in the tree, and the level tells its kind.
        while unsafe { (*node).level() } > 0 {
            let inner = unsafe { &*node.cast::<Inner<K>>() };
            let index = settled(unsafe { inner.rank(key, || true) });
            if index > 0 {
                lower = Some(inner.words(index - 1));
            }
            if index < inner.count() {
                upper = Some(inner.words(index));
            }
            if let Some(path) = &mut path {
                path.push(node.cast(), index);
            }
            node = inner.child(index);
            prefetch_node::<K>(node, inner.header().level() - 1);
        }
        Recent { leaf: node.cast(), lower, upper, rank: 0 }
    }

    /// The number of entries below `key`, and whether the next one is `key`.
    ///
    /// # Safety
    ///
    /// The caller holds the latch.
    #[inline]
    unsafe fn search(&self, leaf: &Leaf<K>, key: &K::Key<'_>) -> (usize, bool) {
        // SAFETY: nothing changes while the latch is held.
        unsafe {
            let rank = settled(leaf.rank(key, || true));
            (rank, settled(leaf.holds(rank, key, || true)))
        }
    }

    /// Divides a full leaf in two and puts the new entry, whose rank is given, in its place.
    fn split_leaf(&self, key: &K::Key<'_>, rank: usize, words: K::Words, pointer: Pointer) {
        let mut path = Path::new();
        let address = self.descend(key, Some(&mut path)).leaf;
        // SAFETY: the latch keeps the leaf in the tree.
        let leaf = unsafe { &*address };
        let next = leaf.next.load(Relaxed);
        let ascending = leaf.ascends(rank) || (rank == LEAF_ENTRIES && next.is_null());
        let cut = if ascending { rank } else { LEAF_ENTRIES / 2 };

        let mut locks = LockSet::new();
        let right = Box::into_raw(Leaf::<K>::new());
        // SAFETY: the latch is held until `locks` is dropped, `next` is in the tree, `right` is fresh.
        unsafe {
            locks.lock(leaf.header());
            if let Some(next) = next.as_ref() {
                locks.lock(next.header());
                next.previous.store(right, Relaxed);
            }
            (*right).next.store(next, Relaxed);
            (*right).previous.store(address, Relaxed);
            leaf.next.store(right, Relaxed);
            leaf.split_off(cut, &*right);
            if rank <= cut && cut < LEAF_ENTRIES {
                leaf.insert(rank, words, pointer);
            } else {
                (*right).insert(rank - cut, words, pointer);
            }
            let separator = leaf.words(leaf.count() - 1);
            K::share(separator);
            self.insert_child(&mut locks, &path, separator, right.cast());
        }
    }

    /// Links `child`, which holds the keys just above `separator`, behind the end of `path`.
    ///
    /// # Safety
    ///
    /// The caller holds the latch until `locks` is dropped, and `path` is a way in the tree.
    unsafe fn insert_child(
        &self,
        locks: &mut LockSet,
        path: &Path<K>,
        mut separator: K::Words,
        mut child: *mut Header,
    ) {
        for (parent, index) in path.upwards() {
            // SAFETY: inner nodes on the path are in the tree while the latch is held.
            let parent = unsafe { &*parent };
            // SAFETY: the latch is held (the contract).
            unsafe { locks.lock(parent.header()) };
            if parent.count() < INNER_KEYS {
                parent.insert(index, separator, child);
                return;
            }
            // As for leaves: where children arrive at the right end, leave a full node behind.
            let cut = if index == INNER_KEYS { INNER_KEYS - 1 } else { INNER_KEYS / 2 };
            let (middle, right) = parent.split_off(cut);
            if index <= cut {
                parent.insert(index, separator, child);
            } else {
                right.insert(index - cut - 1, separator, child);
            }
            separator = middle;
            child = Box::into_raw(right).cast();
        }
        let old_root = self.root.load(Relaxed);
        // SAFETY: the root is in the tree.
        let root = Inner::<K>::new(unsafe { (*old_root).level() } + 1, old_root);
        root.insert(0, separator, child);
        self.root.store(Box::into_raw(root).cast(), Release);
    }

    /// Takes the leaf at the end of `path`, which holds its last entry, out of the tree.
    fn unlink_leaf(&self, path: &Path<K>, address: *mut Leaf<K>, guard: &Guard) {
        // SAFETY: the latch keeps the leaf in the tree.
        let leaf = unsafe { &*address };
        let (previous, next) = (leaf.previous.load(Relaxed), leaf.next.load(Relaxed));
        let mut separator = None;
        let mut unlinked = Vec::new();
        let mut locks = LockSet::new();
        // SAFETY: the latch is held; neighbours, and nodes on the path, are in the tree.
        unsafe {
            locks.lock(leaf.header());
            if let Some(neighbour) = previous.as_ref() {
                locks.lock(neighbour.header());
                neighbour.next.store(next, Relaxed);
            }
            if let Some(neighbour) = next.as_ref() {
                locks.lock(neighbour.header());
                neighbour.previous.store(previous, Relaxed);
            }
            leaf.header().mark_obsolete();
            for (parent, index) in path.upwards() {
                locks.lock((*parent).header());
                if (*parent).count() > 0 {
                    separator = Some((*parent).remove(index));
                    break;
                }
                (*parent).header().mark_obsolete();
                unlinked.push(parent);
            }
            self.lower_root(&mut locks, &mut unlinked);
        }
        drop(locks);
        // SAFETY: all of these were unlinked above, so only readers pinned by now can still look at them.
        unsafe {
            if let Some(separator) = separator {
                K::retire(separator, guard);
            }
            guard.defer_unchecked(move || drop(Box::from_raw(address)));
            for inner in unlinked {
                guard.defer_unchecked(move || drop(Box::from_raw(inner)));
            }
        }
    }

    /// While the root has a single child, makes the child the root.
    ///
    /// # Safety
    ///
    /// The caller holds the latch until `locks` is dropped.
    unsafe fn lower_root(&self, locks: &mut LockSet, unlinked: &mut Vec<*mut Inner<K>>) {
        loop {
            let root = self.root.load(Relaxed);
            // SAFETY: the root is in the tree, its level tells its kind, and the latch is held (the contract).
            unsafe {
                if (*root).level() == 0 {
                    return;
                }
                let inner = &*root.cast::<Inner<K>>();
                if inner.count() > 0 {
                    return;
                }
                locks.lock(inner.header());
                inner.header().mark_obsolete();
                self.root.store(inner.child(0), Release);
            }
            unlinked.push(root.cast());
        }
    }
}

/// What a search found while nothing could change.
fn settled<T>(found: Result<T, Changed>) -> T {
    found.expect("nodes do not change while the latch is held")
}

impl<K: IndexKey> Drop for OrderedIndex<K> {
    fn drop(&mut self) {
        /// # Safety
        ///
        /// Nobody else uses the subtree, and each node and key in it is freed only here.
        unsafe fn free<K: IndexKey>(node: *mut Header, guard: &Guard) {
            // SAFETY: the level tells the node's kind; the tree is whole, so each child is met once.
            unsafe {
                if (*node).level() == 0 {
                    let leaf = Box::from_raw(node.cast::<Leaf<K>>());
                    (0..leaf.count()).for_each(|i| K::retire(leaf.words(i), guard));
                } else {
                    let inner = Box::from_raw(node.cast::<Inner<K>>());
                    (0..inner.count()).for_each(|i| K::retire(inner.words(i), guard));
                    (0..=inner.count()).for_each(|i| free::<K>(inner.child(i), guard));
                }
            }
        }
        // SAFETY: `&mut self`: there are no readers left, so nothing has to wait for an epoch.
        unsafe { free::<K>(*self.root.get_mut(), crossbeam_epoch::unprotected()) };
    }
}
