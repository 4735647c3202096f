//! Keys as the ordered index compares them: a fixed number of words, most significant first.
//!
//! A key's normalised bytes are cut into big-endian words, so that comparing words compares bytes:
//!
//! ```text
//! bytes   00 00 00 07 | 00 00 00 01 | 80 00 00 00 00 00 00 05
//! words   [0x0000_0007_0000_0001, 0x8000_0000_0000_0005]
//! ```
//!
//! A key known to fit in eight words is a `[u64; W]`; any other is a [`LongKey`](super::LongKey), which
//! keeps three words in the node and the whole key in a block beside it.
//!
//! Nodes hold keys in [`Slot`](Words::Slot)s of atomics, because optimistic readers look at them while
//! the writer moves them. What a reader loads may therefore be a mixture of two keys; it counts only once
//! the node's version has been validated.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crossbeam_epoch::Guard;

/// The node changed while it was being read; the reader starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed;

mod sealed {
    pub trait Sealed {}
    impl<const W: usize> Sealed for [u64; W] {}
    impl Sealed for super::super::LongKey<'static> {}
}

/// A copied key: an array of words, and the atomics it lives in while it is in a node.
pub trait Words: Copy + Send + Sync + 'static {
    /// Every word zero.
    const ZERO: Self;

    /// The key's words inside a node.
    type Slot: Send + Sync + 'static;

    /// A slot holding [`Words::ZERO`].
    fn empty_slot() -> Self::Slot;
    /// The words in `slot`, each loaded on its own.
    fn load(slot: &Self::Slot) -> Self;
    /// Stores the words, each on its own.
    fn store(self, slot: &Self::Slot);
}

impl<const W: usize> Words for [u64; W] {
    const ZERO: Self = [0; W];

    type Slot = [AtomicU64; W];

    #[inline]
    fn empty_slot() -> Self::Slot {
        [const { AtomicU64::new(0) }; W]
    }

    #[inline]
    fn load(slot: &Self::Slot) -> Self {
        std::array::from_fn(|i| slot[i].load(Relaxed))
    }

    #[inline]
    fn store(self, slot: &Self::Slot) {
        for (word, place) in self.iter().zip(slot) {
            place.store(*word, Relaxed);
        }
    }
}

/// What the ordered index needs of a key. Sealed: implemented for `[u64; W]`, `W` from 1 to 8, and for
/// `LongKey<'static>`.
///
/// # Safety contract of the `unsafe` methods
///
/// Words (or a slot) must come from a node of an index of this key type, and either the caller holds that
/// index's latch, or a guard has been pinned since before the words were read and, wherever a `stable`
/// closure is passed, it returns `true` only if the node has not changed since the read began; words
/// passed without one have been validated.
pub trait IndexKey: sealed::Sealed + 'static {
    /// The key as callers see it; a long key borrows its bytes.
    type Key<'k>: Copy + Ord;
    /// The key as nodes hold it.
    type Words: Words;

    /// The stored form, owning what it refers to until [`IndexKey::retire`].
    fn store(key: &Self::Key<'_>) -> Self::Words;

    /// The key that was stored.
    ///
    /// # Safety
    ///
    /// The trait's contract; the guard or latch is held for `'k`.
    unsafe fn view<'k>(words: Self::Words) -> Self::Key<'k>;

    /// Whether the stored key is below `key`.
    ///
    /// # Safety
    ///
    /// The trait's contract.
    unsafe fn is_less(
        slot: &<Self::Words as Words>::Slot,
        key: &Self::Key<'_>,
        stable: impl FnOnce() -> bool,
    ) -> Result<bool, Changed>;

    /// Whether the stored key is `key`.
    ///
    /// # Safety
    ///
    /// The trait's contract.
    unsafe fn is_equal(
        slot: &<Self::Words as Words>::Slot,
        key: &Self::Key<'_>,
        stable: impl FnOnce() -> bool,
    ) -> Result<bool, Changed>;

    /// Counts a second place in the tree that holds the same words.
    ///
    /// # Safety
    ///
    /// The trait's contract; the caller holds the latch.
    unsafe fn share(words: Self::Words);

    /// Counts a place less; what is left without a place is freed once no reader can see it.
    ///
    /// # Safety
    ///
    /// The trait's contract; the caller holds the latch and has taken the words out of their place.
    unsafe fn retire(words: Self::Words, guard: &Guard);
}

impl<const W: usize> IndexKey for [u64; W] {
    type Key<'k> = [u64; W];
    type Words = [u64; W];

    #[inline]
    fn store(key: &[u64; W]) -> [u64; W] {
        const { assert!(W >= 1 && W <= 8, "a fixed key has one to eight words") };
        *key
    }

    #[inline]
    unsafe fn view<'k>(words: [u64; W]) -> Self::Key<'k> {
        words
    }

    #[inline]
    unsafe fn is_less(
        slot: &[AtomicU64; W],
        key: &[u64; W],
        _: impl FnOnce() -> bool,
    ) -> Result<bool, Changed> {
        // The borrow of `slot - key` as one long integer: no branch to mispredict, whatever the words.
        let mut borrow = false;
        for i in (0..W).rev() {
            let (difference, under) = slot[i].load(Relaxed).overflowing_sub(key[i]);
            let (_, under_again) = difference.overflowing_sub(u64::from(borrow));
            borrow = under | under_again;
        }
        Ok(borrow)
    }

    #[inline]
    unsafe fn is_equal(
        slot: &[AtomicU64; W],
        key: &[u64; W],
        _: impl FnOnce() -> bool,
    ) -> Result<bool, Changed> {
        Ok(<[u64; W]>::load(slot) == *key)
    }

    #[inline]
    unsafe fn share(_: [u64; W]) {}

    #[inline]
    unsafe fn retire(_: [u64; W], _: &Guard) {}
}

/// The first `8 * W` of `bytes` as big-endian words, padded with zero bytes.
///
/// The words of two byte strings are in the order of the strings, or equal if the strings differ only
/// further on or in trailing zero bytes.
#[inline]
pub fn key_words<const W: usize>(bytes: &[u8]) -> [u64; W] {
    std::array::from_fn(|i| {
        let rest = bytes.get(8 * i..).unwrap_or_default();
        let mut word = [0; 8];
        let length = rest.len().min(8);
        word[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(word)
    })
}
