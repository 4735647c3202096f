//! Keys without a bound on their length: three words in the node, all bytes in a block beside it.
//!
//! ```text
//! slot     | word 0 | word 1 | word 2 | address |
//!                                          |
//!                                          v
//! block                       | references | length | byte 0 ... byte length-1 |
//! ```
//!
//! Two keys are told apart by their first 24 bytes in most comparisons; only if those are equal is the
//! block read. The caller's probe is borrowed bytes: looking a key up copies nothing.
//!
//! A block has one reference for each place in the tree that holds its address: the leaf entry, and any
//! separators made from it, which may outlive the entry. The writer alone counts, under its latch. The
//! block is retired through the epoch with its last place, so an address that a reader took from a
//! validated node can be followed for as long as its guard is pinned.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crossbeam_epoch::Guard;

use super::key::{Changed, IndexKey, Words, key_words};

const PREFIX_WORDS: usize = 3;
const SLOT_WORDS: usize = PREFIX_WORDS + 1;

/// A key of any length, ordered as its bytes are. `OrderedIndex<LongKey<'static>>` is an index of such keys.
#[derive(Clone, Copy, Debug)]
pub struct LongKey<'k> {
    prefix: [u64; PREFIX_WORDS],
    bytes: &'k [u8],
}

impl<'k> LongKey<'k> {
    /// The key with these normalised bytes.
    #[inline]
    pub fn new(bytes: &'k [u8]) -> LongKey<'k> {
        LongKey { prefix: key_words(bytes), bytes }
    }

    /// The whole key.
    #[inline]
    pub fn bytes(&self) -> &'k [u8] {
        self.bytes
    }

    /// The order of the key in `slot` relative to this one.
    ///
    /// # Safety
    ///
    /// The contract of [`IndexKey`].
    #[inline]
    unsafe fn compare(
        &self,
        slot: &[AtomicU64; SLOT_WORDS],
        stable: impl FnOnce() -> bool,
    ) -> Result<Ordering, Changed> {
        let words = <[u64; SLOT_WORDS]>::load(slot);
        match words[..PREFIX_WORDS].cmp(&self.prefix) {
            Ordering::Equal if !stable() => Err(Changed),
            // SAFETY: the node had not changed after the words were read, so the address is that of a block
            // which was in the tree at that time; the latch or the guard keeps it (the contract).
            Ordering::Equal => Ok(unsafe { Block::bytes(words[PREFIX_WORDS]) }.cmp(self.bytes)),
            order => Ok(order),
        }
    }
}

impl PartialEq for LongKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for LongKey<'_> {}

impl PartialOrd for LongKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LongKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(other.bytes)
    }
}

impl IndexKey for LongKey<'static> {
    type Key<'k> = LongKey<'k>;
    type Words = [u64; SLOT_WORDS];

    fn store(key: &LongKey<'_>) -> Self::Words {
        let [a, b, c] = key.prefix;
        [a, b, c, Block::allocate(key.bytes)]
    }

    #[inline]
    unsafe fn view<'k>(words: Self::Words) -> Self::Key<'k> {
        let [a, b, c, block] = words;
        // SAFETY: the words are validated and the guard or latch is held for `'k` (the contract).
        LongKey { prefix: [a, b, c], bytes: unsafe { Block::bytes(block) } }
    }

    #[inline]
    unsafe fn is_less(
        slot: &[AtomicU64; SLOT_WORDS],
        key: &LongKey<'_>,
        stable: impl FnOnce() -> bool,
    ) -> Result<bool, Changed> {
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        unsafe { key.compare(slot, stable) }.map(Ordering::is_lt)
    }

    #[inline]
    unsafe fn is_equal(
        slot: &[AtomicU64; SLOT_WORDS],
        key: &LongKey<'_>,
        stable: impl FnOnce() -> bool,
    ) -> Result<bool, Changed> {
        // SAFETY: the keys are as [`IndexKey`] wants them, as whoever calls this sees to.
        unsafe { key.compare(slot, stable) }.map(Ordering::is_eq)
    }

    unsafe fn share(words: Self::Words) {
        // SAFETY: the words stand in the tree and the caller holds the latch, so the block is there.
        unsafe { Block::share(words[PREFIX_WORDS]) };
    }

    unsafe fn retire(words: Self::Words, guard: &Guard) {
        let block = words[PREFIX_WORDS];
        // SAFETY: the place just given up held a reference, so the block is there; after the last one no
        // node holds the address, and readers that saw it are waited for.
        unsafe {
            if Block::unshare(block) {
                guard.defer_unchecked(move || Block::free(block));
            }
        }
    }
}

/// The head of a block; the bytes follow it in the same allocation.
#[repr(C)]
struct Block {
    references: AtomicUsize,
    length: usize,
}

impl Block {
    fn layout(length: usize) -> Layout {
        let bytes = Layout::array::<u8>(length).expect("a key is shorter than the address space");
        Layout::new::<Block>().extend(bytes).expect("a key is shorter than the address space").0
    }

    /// The address of a new block with one reference.
    fn allocate(bytes: &[u8]) -> u64 {
        let layout = Block::layout(bytes.len());
        // SAFETY: the layout is that of a head (so not empty) followed by `bytes.len()` bytes, and both are
        // written before the address is given away.
        unsafe {
            let block = alloc(layout).cast::<Block>();
            if block.is_null() {
                handle_alloc_error(layout);
            }
            block.write(Block { references: AtomicUsize::new(1), length: bytes.len() });
            block.add(1).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            block.expose_provenance() as u64
        }
    }

    fn at(address: u64) -> *mut Block {
        std::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// # Safety
    ///
    /// `address` is that of a block that is not freed during `'k`. Its bytes never change.
    #[inline]
    unsafe fn bytes<'k>(address: u64) -> &'k [u8] {
        let block = Block::at(address);
        // SAFETY: `allocate` wrote a head and `length` bytes after it, and the block lives (the contract).
        unsafe { std::slice::from_raw_parts(block.add(1).cast(), (*block).length) }
    }

    /// # Safety
    ///
    /// `address` is that of a live block, and no other thread counts at the same time.
    unsafe fn share(address: u64) {
        // SAFETY: the block lives (the contract).
        let references = unsafe { &(*Block::at(address)).references };
        references.store(references.load(Relaxed) + 1, Relaxed);
    }

    /// Gives one reference up; whether it was the last.
    ///
    /// # Safety
    ///
    /// As for [`Block::share`].
    unsafe fn unshare(address: u64) -> bool {
        // SAFETY: the block lives (the contract).
        let references = unsafe { &(*Block::at(address)).references };
        let left = references.load(Relaxed) - 1;
        references.store(left, Relaxed);
        left == 0
    }

    /// # Safety
    ///
    /// Nobody uses the block any more.
    unsafe fn free(address: u64) {
        let block = Block::at(address);
        // SAFETY: allocated with this layout; nobody uses it any more (the contract).
        unsafe { dealloc(block.cast(), Block::layout((*block).length)) };
    }
}
