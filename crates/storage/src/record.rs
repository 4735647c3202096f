//! A key and its chain of versions.
//!
//! A record is made when its key is first inserted and lives until the key has been purged from the
//! primary index; deleting a row only puts a tombstone on its chain.

use crate::index::{prefetch, prefetch_to_write};
use crate::{Version, block};
use fabius_value::Seq;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Pushes to a chain without a look at what could be folded, at most.
const BLIND_PUSHES_MAX: u32 = 32;
/// Pushes to a chain without a look at what could be folded, where others shorten most chains, but merge nothing: at
/// least, and at most.
const BLIND_PUSHES_BESIDE_OTHERS: (u32, u32) = (8, 1024);

/// A record; its primary key bytes follow it in memory.
#[repr(C)]
pub struct Record {
    head: AtomicPtr<Version>,
    lock: AtomicU64,
    pending: AtomicU32,
    until_fold: AtomicU32,
    fold_interval: AtomicU16,
    notes: AtomicU16,
    key_bytes: u16,
    under_shortening: AtomicBool,
    unlinked: AtomicBool,
}

impl Record {
    fn bytes(key_bytes: usize) -> usize {
        size_of::<Record>() + key_bytes
    }

    /// Allocates a record without versions.
    pub fn create(key: &[u8]) -> NonNull<Record> {
        let record = block::take(Record::bytes(key.len())).cast::<Record>();
        // SAFETY: the block is that long, and ours alone; all of it that is ever read is written here.
        unsafe {
            record.write(Record {
                head: AtomicPtr::new(std::ptr::null_mut()),
                lock: AtomicU64::new(0),
                pending: AtomicU32::new(0),
                // Below the first version nothing can go.
                until_fold: AtomicU32::new(2),
                fold_interval: AtomicU16::new(1),
                notes: AtomicU16::new(0),
                key_bytes: u16::try_from(key.len()).expect("a key's size is bounded"),
                under_shortening: AtomicBool::new(false),
                unlinked: AtomicBool::new(false),
            });
            record.add(1).cast::<u8>().copy_from_nonoverlapping(NonNull::from(key).cast(), key.len());
        }
        record.as_ptr().expose_provenance();
        record
    }

    /// Frees a record; its versions must be gone already.
    ///
    /// # Safety
    /// No one can reach it any more.
    pub unsafe fn free(record: NonNull<Record>) {
        // SAFETY: nobody can reach it any more, as whoever calls this sees to; its block was taken with this size.
        unsafe { block::give(record.cast(), Record::bytes(record.as_ref().key_bytes as usize)) };
    }

    /// The pointer that the record is freed through: as it was made. (A reference gives no right to free
    /// what it refers to.)
    pub fn owner(&self) -> NonNull<Record> {
        let address = std::ptr::from_ref(self).addr();
        NonNull::new(std::ptr::with_exposed_provenance_mut(address)).expect("a reference is not null")
    }

    /// Whether it has been taken out of the primary index, for whoever found it there before.
    #[inline]
    pub fn is_unlinked(&self) -> bool {
        self.unlinked.load(Acquire)
    }

    /// Notes that it is being taken out of the primary index (the record's writer only).
    pub(crate) fn mark_unlinked(&self) {
        self.unlinked.store(true, Release);
    }

    /// Asks for the memory of the record and the beginning of its key.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self);
        // SAFETY: an address within or at the end of the allocation; prefetching reads nothing.
        prefetch(unsafe { std::ptr::from_ref(self).add(1) });
    }

    /// Asks for the memory of the record and the beginning of its key, for whoever writes the record.
    #[inline]
    pub fn prefetch_to_write(&self) {
        prefetch_to_write(self);
        // SAFETY: an address within or at the end of the allocation; prefetching reads nothing.
        prefetch(unsafe { std::ptr::from_ref(self).add(1) });
    }

    /// Asks for the memory of the version below the newest.
    ///
    /// # Safety
    /// An epoch is pinned.
    #[inline]
    pub unsafe fn prefetch_below(&self) {
        // SAFETY: linked versions stay readable while the epoch is pinned.
        if let Some(head) = unsafe { self.head().as_ref() } {
            prefetch(head.next());
        }
    }

    /// The encoded primary key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        // SAFETY: `create` wrote the key right behind the record.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).add(1).cast(), self.key_bytes as usize) }
    }

    /// The newest version, null if there is none.
    #[inline]
    pub fn head(&self) -> *const Version {
        self.head.load(Acquire)
    }

    /// Puts a version on top (the record's writer only).
    #[inline]
    pub fn push(&self, version: NonNull<Version>) {
        // SAFETY: the version is the caller's until it is published by the store below; the head is linked.
        unsafe { version.as_ref().place_above(self.head.load(Relaxed)) };
        self.head.store(version.as_ptr(), Release);
    }

    /// Puts a version in the place of the newest, for everyone who comes from now on (the record's writer only).
    /// Whoever has come to the other one before goes on below it as ever.
    ///
    /// # Panics
    /// If there is no version.
    #[inline]
    pub fn replace(&self, version: NonNull<Version>) {
        // SAFETY: the writer reads its own chain.
        let newest = unsafe { self.head.load(Relaxed).as_ref() }.expect("a version to replace");
        // SAFETY: as in `push`.
        unsafe { version.as_ref().place_above(newest.next()) };
        self.head.store(version.as_ptr(), Release);
    }

    /// Counts a push, and says whether the chain is worth folding again (the record's writer only).
    ///
    /// While even the version before the pushed one is newer than `collected`, a fold would most often walk down the
    /// chain in vain; the next one is tried after twice as many pushes.
    #[inline]
    pub fn is_fold_due(&self, collected: Seq) -> bool {
        self.is_due(|pushes| pushes < BLIND_PUSHES_MAX && self.is_fold_vain(collected))
    }

    /// Counts a push where others shorten most chains, and says whether the chain is worth folding here all the same:
    /// what they leave is to be merged, and what they do not come to shortened.
    #[inline]
    pub fn is_fold_overdue(&self, collected: Seq) -> bool {
        let (least, most) = BLIND_PUSHES_BESIDE_OTHERS;
        self.is_due(|pushes| pushes < least || pushes < most && self.is_fold_vain(collected))
    }

    /// Whether even the version before the newest is newer than `collected`.
    #[inline]
    fn is_fold_vain(&self, collected: Seq) -> bool {
        // SAFETY: the writer reads its own chain.
        let before = unsafe { self.head().as_ref().and_then(|head| head.next().as_ref()) };
        before.is_some_and(|before| before.seq() > collected)
    }

    /// Counts a push; whether the chain is to be looked at now. `goes_on` says whether to wait for twice as many
    /// pushes as came since it last was.
    #[inline]
    fn is_due(&self, goes_on: impl Fn(u32) -> bool) -> bool {
        let left = self.until_fold.load(Relaxed).saturating_sub(1);
        self.until_fold.store(left, Relaxed);
        if left > 0 {
            return false;
        }
        let interval = u32::from(self.fold_interval.load(Relaxed));
        if goes_on(interval) {
            self.fold_after(2 * interval);
            return false;
        }
        true
    }

    /// Folds again after as many pushes as the fold had to walk past, so that walking costs a constant per
    /// push.
    pub(crate) fn fold_after(&self, pushes: u32) {
        self.until_fold.store(pushes.max(1), Relaxed);
        self.fold_interval.store(pushes.clamp(1, u16::MAX.into()) as u16, Relaxed);
    }

    /// Makes the caller the one who takes versions out of the chain; false if there is one.
    #[inline]
    pub fn begin_shortening(&self) -> bool {
        !self.under_shortening.load(Relaxed) && !self.under_shortening.swap(true, Acquire)
    }

    /// Ends what [`Record::begin_shortening`] began.
    #[inline]
    pub fn end_shortening(&self) {
        self.under_shortening.store(false, Release);
    }

    /// Replaces the head (the record's writer only), e.g. by the version below it to undo a push.
    pub fn set_head(&self, head: *const Version) {
        self.head.store(head.cast_mut(), Release);
    }

    /// The newest version at or below `seq`, null if there is none.
    ///
    /// # Safety
    /// An epoch is pinned for as long as the pointer is used.
    #[inline]
    pub unsafe fn visible(&self, seq: Seq) -> *const Version {
        let mut version = self.head();
        // SAFETY: linked versions stay readable while the epoch is pinned.
        while let Some(at) = unsafe { version.as_ref() } {
            if at.seq() <= seq {
                break;
            }
            version = at.next();
        }
        version
    }

    /// A word for an engine that locks records; 0 at first.
    pub fn lock(&self) -> &AtomicU64 {
        &self.lock
    }

    /// Adds one to the count of calls on this record since one was last handed to substantiation or a blind
    /// write made them pointless, and returns it (lazy evaluation, section 3.1.2). The record's writer only.
    #[inline]
    pub fn count_pending(&self) -> u32 {
        let count = self.pending.load(Relaxed) + 1;
        self.pending.store(count, Relaxed);
        count
    }

    /// Counts notes about this record that wait in a purge; gives how many there are now. Once there were too many to
    /// be counted, nobody knows which is the last: that stays so, and the record stays in its index.
    pub(crate) fn count_notes(&self, change: i16) -> u16 {
        let before = self.notes.load(Relaxed);
        let notes = if before == u16::MAX { before } else { before.wrapping_add_signed(change) };
        self.notes.store(notes, Relaxed);
        notes
    }

    /// Starts the count again.
    #[inline]
    pub fn reset_pending(&self) {
        self.pending.store(0, Relaxed);
    }
}
