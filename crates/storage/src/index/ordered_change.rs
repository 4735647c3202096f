//! What the writer of the ordered index keeps during one change of the tree: the way down, and the locks.
//!
//! ```text
//!   Path       root --child 1--> inner --child 4--> (leaf)
//!   LockSet    leaf, previous, next, inner, root      locked one by one, unlocked together
//! ```
//!
//! Only one thread locks nodes, so the order of locking does not matter; that nothing is unlocked before
//! everything has been changed does.

use std::ptr;

use super::key::IndexKey;
use super::ordered_node::{Header, Inner};

/// No tree is higher: a level more takes at least 30 times the inserts, and 30^16 is more than 2^64.
const HEIGHT_MAX: usize = 16;

/// The way from the root to a leaf: each inner node with the child taken, the lowest node last.
pub(super) struct Path<K: IndexKey> {
    steps: [(*mut Inner<K>, usize); HEIGHT_MAX],
    length: usize,
}

impl<K: IndexKey> Path<K> {
    pub(super) fn new() -> Path<K> {
        Path { steps: [(ptr::null_mut(), 0); HEIGHT_MAX], length: 0 }
    }

    pub(super) fn push(&mut self, inner: *mut Inner<K>, index: usize) {
        self.steps[self.length] = (inner, index);
        self.length += 1;
    }

    /// Whether the root is the leaf.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The steps from the lowest node to the root.
    pub(super) fn upwards(&self) -> impl Iterator<Item = (*mut Inner<K>, usize)> {
        self.steps[..self.length].iter().rev().copied()
    }
}

/// The nodes locked for one change; unlocked together when dropped.
pub(super) struct LockSet {
    nodes: [*const Header; LockSet::NODES_MAX],
    length: usize,
}

impl LockSet {
    /// A leaf, its neighbours, the nodes above it, and the nodes below a root that is lowered.
    const NODES_MAX: usize = 3 + 2 * HEIGHT_MAX;

    pub(super) fn new() -> LockSet {
        LockSet { nodes: [ptr::null(); LockSet::NODES_MAX], length: 0 }
    }

    /// Locks `node`, if this set has not already.
    ///
    /// # Safety
    ///
    /// The caller holds the latch of the index that `node` is in, and frees no node, until the set is
    /// dropped.
    pub(super) unsafe fn lock(&mut self, node: &Header) {
        let address: *const Header = node;
        if self.nodes[..self.length].contains(&address) {
            return;
        }
        node.lock();
        self.nodes[self.length] = address;
        self.length += 1;
    }
}

impl Drop for LockSet {
    fn drop(&mut self) {
        for &node in &self.nodes[..self.length] {
            // SAFETY: no node is freed before the set is dropped (the contract of `lock`).
            unsafe { (*node).unlock() };
        }
    }
}
