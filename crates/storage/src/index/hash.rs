//! The hash index: open addressing in buckets of one cache line, read without locks.
//!
//! ```text
//!  hash   63     base + 15        base                  0
//!        | ...      |     tag     |  . . .  | bucket number |      base <= bits of the bucket number
//!                                                                     <= base + 7
//!  bucket 5  | slot | slot | slot | slot | slot | slot | slot | slot |     64 bytes, aligned
//!                |
//!                +-->  63          62     48 47                           0
//!                     | displaced |   tag   |  address of the record       |
//! ```
//!
//! A lookup reads the eight slots of the bucket its hash names, follows those whose tag is right (one wrong
//! in 256 at the worst), and goes on to the next bucket only if no slot is `EMPTY`. So a lookup costs about
//! one cache miss here and one at the record. An entry that is not in the bucket its hash names is marked
//! `displaced`.
//!
//! **Why readers need no version.** A slot is one word, and an entry never moves within a table. An entry is
//! put into the first bucket on its way that has a free slot; hence:
//!
//! - *A bucket that an entry has passed never has an `EMPTY` slot again in the same table.* Taking an entry
//!   out of a bucket without empty slots leaves `DELETED`, which an insert may use again.
//!
//! So a reader that sees an empty slot may stop: whatever was there before it began is not further on. A
//! table that grows too full, of entries and `DELETED` slots together, is replaced by a new one, published
//! with one store; a reader still in the old table answers as of the moment it took it.
//!
//! **Growing** stops the writer, not the readers. Doubling the table needs one bit more of each hash. The
//! bucket number and the tag overlap on purpose, so that the slot itself knows that bit, and the record has
//! to be asked only for displaced entries; after seven doublings the tag has too few bits left of its own,
//! and one time all records are asked, some of them ahead.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use super::pointer::{ADDRESS_BITS, Pointer, prefetch};

const BUCKET_SLOTS: usize = 8;
const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
const EMPTY: u64 = 0;
/// An address of zero with a tag, which no entry has.
const DELETED: u64 = 1 << ADDRESS_BITS;
/// The entry is not in the bucket that its hash names.
const DISPLACED: u64 = 1 << 63;
const TAG_MASK: u64 = !ADDRESS_MASK & !DISPLACED;
/// Bits of the tag that bucket numbers may come to overlap; eight bits are left to tell entries apart.
const OVERLAP_BITS_MAX: u32 = 7;

/// A map from hashes to [`Pointer`]s; whoever looks up tells which of the pointers found is meant.
///
/// Hashes are 64 bits, all of which should be good. Any number of threads may call any method; writers wait
/// for each other. Guards must come from `crossbeam_epoch::pin`.
pub struct HashIndex {
    table: CachePadded<AtomicPtr<Table>>,
    writer: CachePadded<Mutex<Writer>>,
    length: AtomicUsize,
}

/// What the latch protects, beside the right to change slots.
struct Writer {
    /// `DELETED` slots in the table.
    deleted: usize,
}

#[repr(align(64))]
struct Bucket([AtomicU64; BUCKET_SLOTS]);

struct Table {
    /// A power of two of them.
    buckets: Box<[Bucket]>,
    /// The lowest bit of a hash that is in the tag.
    base: u32,
}

impl Bucket {
    #[inline]
    fn has_empty(&self) -> bool {
        self.0.iter().any(|slot| slot.load(Relaxed) == EMPTY)
    }
}

impl Table {
    fn new(count: usize, base: u32) -> Box<Table> {
        assert!(count.is_power_of_two(), "a table has a power of two of buckets");
        let layout = Layout::array::<Bucket>(count).expect("a table fits in the address space");
        // SAFETY: the layout is not empty; zeroed memory is a valid array of `count` buckets of empty slots,
        // allocated as a boxed slice of them is.
        let buckets = unsafe {
            let memory = alloc_zeroed(layout).cast::<Bucket>();
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(memory, count))
        };
        fabius_env::memory::prefer_large_pages(&buckets);
        Box::new(Table { buckets, base })
    }

    /// Entries and deleted slots that the table may have: three quarters of its slots.
    fn used_max(&self) -> usize {
        self.buckets.len() * BUCKET_SLOTS / 4 * 3
    }

    /// Buckets in the order in which an entry of this hash may be in them.
    #[inline]
    fn probe(&self, hash: u64) -> impl Iterator<Item = &Bucket> {
        let mask = self.buckets.len() - 1;
        (0..=mask).map(move |i| &self.buckets[(hash as usize).wrapping_add(i) & mask])
    }

    #[inline]
    fn home(&self, hash: u64) -> &Bucket {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }

    /// The tag of this hash, where it stands in a slot.
    #[inline]
    fn tag(&self, hash: u64) -> u64 {
        ((hash >> self.base) << ADDRESS_BITS) & TAG_MASK
    }

    /// The bits of the hash of `word`, which is not displaced, that bucket `number` and tag tell: those below
    /// `base + 15`.
    fn known_hash(&self, number: usize, word: u64) -> u64 {
        number as u64 | (((word & TAG_MASK) >> ADDRESS_BITS) << self.base)
    }

    /// Stores an entry in the first free slot on its way; whether that was a `DELETED` one. The caller
    /// holds the latch or has the table for itself.
    fn place(&self, hash: u64, pointer: Pointer) -> bool {
        let mut word = self.tag(hash) | pointer.address();
        for bucket in self.probe(hash) {
            for slot in &bucket.0 {
                let old = slot.load(Relaxed);
                if old == EMPTY || old == DELETED {
                    // Release: whoever finds the pointer sees the record behind it.
                    slot.store(word, Release);
                    return old == DELETED;
                }
            }
            word |= DISPLACED;
        }
        unreachable!("a table is never full")
    }
}

impl Default for HashIndex {
    fn default() -> Self {
        HashIndex::new()
    }
}

impl HashIndex {
    /// An index without entries.
    pub fn new() -> HashIndex {
        HashIndex {
            table: CachePadded::new(AtomicPtr::new(Box::into_raw(Table::new(1, 0)))),
            writer: CachePadded::new(Mutex::new(Writer { deleted: 0 })),
            length: AtomicUsize::new(0),
        }
    }

    /// The number of entries; while others write, that of a moment ago.
    pub fn len(&self) -> usize {
        self.length.load(Relaxed)
    }

    /// Whether [`HashIndex::len`] is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots of the table, of which entries use at most three quarters.
    pub fn slots(&self, guard: &Guard) -> usize {
        self.table(guard).buckets.len() * BUCKET_SLOTS
    }

    #[inline]
    fn table<'g>(&'g self, _guard: &'g Guard) -> &'g Table {
        // SAFETY: a replaced table is freed only after every guard pinned by then is dropped.
        unsafe { &*self.table.load(Acquire) }
    }

    /// The pointer stored under `hash` for which `is_match` says yes.
    ///
    /// `is_match` is asked about the pointers stored under this hash, and about few others: at most one in
    /// 256 of those that are looked at.
    #[inline]
    pub fn get(&self, hash: u64, is_match: impl Fn(Pointer) -> bool, guard: &Guard) -> Option<Pointer> {
        let table = self.table(guard);
        let tag = table.tag(hash);
        for bucket in table.probe(hash) {
            let mut ends = false;
            for slot in &bucket.0 {
                let word = slot.load(Acquire);
                ends |= word == EMPTY;
                if (word ^ tag) & TAG_MASK == 0
                    && let Some(pointer) = Pointer::new(word & ADDRESS_MASK)
                    && is_match(pointer)
                {
                    return Some(pointer);
                }
            }
            if ends {
                return None;
            }
        }
        None
    }

    /// Asks for the cache line that [`HashIndex::get`] reads first.
    #[inline]
    pub fn prefetch(&self, hash: u64, guard: &Guard) {
        prefetch(self.table(guard).home(hash));
    }

    /// Stores `pointer` under `hash`. The caller knows that it is not stored yet.
    ///
    /// `hash_of` gives the hash a pointer was stored under; it is called only when the table has to grow: for
    /// some entries, and one time in eight for all.
    pub fn insert(&self, hash: u64, pointer: Pointer, hash_of: impl Fn(Pointer) -> u64, guard: &Guard) {
        let mut writer = self.writer.lock();
        let mut table = self.table(guard);
        let length = self.len();
        if length + writer.deleted + 1 > table.used_max() {
            // If a quarter of what is in the way are deleted slots, getting rid of them is enough for a while.
            let crowded = length >= table.used_max() / 4 * 3;
            self.rebuild(&mut writer, table.buckets.len() << u32::from(crowded), &hash_of, guard);
            table = self.table(guard);
        }
        if table.place(hash, pointer) {
            writer.deleted -= 1;
        }
        self.length.store(length + 1, Relaxed);
    }

    /// Calls `visit` for every pointer stored throughout the call, in no particular order.
    pub fn for_each(&self, guard: &Guard, mut visit: impl FnMut(Pointer)) {
        for bucket in &self.table(guard).buckets {
            for slot in &bucket.0 {
                if let Some(pointer) = Pointer::new(slot.load(Acquire) & ADDRESS_MASK) {
                    visit(pointer);
                }
            }
        }
    }

    /// Takes `pointer`, stored under `hash`, out; whether it was there.
    pub fn remove(&self, hash: u64, pointer: Pointer, guard: &Guard) -> bool {
        let mut writer = self.writer.lock();
        let is_it = |slot: &&AtomicU64| slot.load(Relaxed) & ADDRESS_MASK == pointer.address();
        for bucket in self.table(guard).probe(hash) {
            let ends = bucket.has_empty();
            if let Some(slot) = bucket.0.iter().find(is_it) {
                slot.store(if ends { EMPTY } else { DELETED }, Release);
                writer.deleted += usize::from(!ends);
                self.length.store(self.len() - 1, Relaxed);
                return true;
            }
            if ends {
                return false;
            }
        }
        false
    }

    /// Makes room for `additional` more entries at once, so that inserting them does not grow the table.
    pub fn reserve(&self, additional: usize, hash_of: impl Fn(Pointer) -> u64, guard: &Guard) {
        let mut writer = self.writer.lock();
        let entries = self.len() + additional;
        if entries + writer.deleted > self.table(guard).used_max() {
            let buckets = entries.div_ceil(BUCKET_SLOTS / 4 * 3).next_power_of_two();
            self.rebuild(&mut writer, buckets, &hash_of, guard);
        }
    }

    /// Moves all entries to a new table, which readers then use.
    fn rebuild(&self, writer: &mut Writer, buckets: usize, hash_of: &impl Fn(Pointer) -> u64, guard: &Guard) {
        const AHEAD_SLOTS: usize = 4 * BUCKET_SLOTS;
        let old = self.table(guard);
        let slots = old.buckets.len() * BUCKET_SLOTS;
        let word_at = |slot: usize| old.buckets[slot / BUCKET_SLOTS].0[slot % BUCKET_SLOTS].load(Relaxed);
        let tags_suffice = buckets.ilog2() <= old.base + OVERLAP_BITS_MAX;
        let must_ask = |word: u64| !tags_suffice || word & DISPLACED != 0;
        let new = Table::new(buckets, if tags_suffice { old.base } else { buckets.ilog2() });
        for slot in 0..slots {
            if slot + AHEAD_SLOTS < slots
                && let ahead = word_at(slot + AHEAD_SLOTS)
                && must_ask(ahead)
                && let Some(record) = Pointer::new(ahead & ADDRESS_MASK)
            {
                record.prefetch();
            }
            let word = word_at(slot);
            if let Some(pointer) = Pointer::new(word & ADDRESS_MASK) {
                let hash =
                    if must_ask(word) { hash_of(pointer) } else { old.known_hash(slot / BUCKET_SLOTS, word) };
                new.place(hash, pointer);
            }
        }
        writer.deleted = 0;
        let old = self.table.swap(Box::into_raw(new), Release);
        // SAFETY: readers that took the old table before the swap are pinned; no other can reach it.
        unsafe { guard.defer_unchecked(move || drop(Box::from_raw(old))) };
    }
}

impl Drop for HashIndex {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: there are no readers left, and the current table was never retired.
        drop(unsafe { Box::from_raw(*self.table.get_mut()) });
    }
}
