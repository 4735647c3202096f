//! What one call wrote to a row.
//!
//! ```text
//!  0       8       16      24                              40              48      56
//!  +-------+-------+-------+-------+-------+-------+-------+-------+-------+-------+-----
//!  | next  |seq and| base  |columns| nulls |filled | reach |sticky |deltas | defer-| slots
//!  |(older)| flags |       |            masks              |     masks     | red   |
//!  +-------+-------+-------+-------+-------+-------+-------+-------+-------+-------+-----
//!                                                           \---- open part ------/
//! ```
//!
//! A version has a slot for each column of its mask, in column order. A column is a *delta* (the slot
//! holds an operand to apply to what is below), or a *sticky* (the slot is empty until the deferred
//! call has run), or a plain value. A version of every column is a *whole row*: nothing below it is
//! ever read through it. A *tombstone* says that the row is gone.
//!
//! One that was made of plain values alone has no *open part*. Masks have 32 bits where the table has no more
//! columns, and 64 where it is *wide*. So a version with a single column, which is what most updates write, is one
//! cache line, plain or open.
//!
//! `base` is the nearest whole row (or tombstone) at or below the version, and `reach` the columns that
//! versions above the base say anything about. A reader of another column goes straight to the base,
//! however many versions a popular column has left in between.
//!
//! A version of plain values that is not large has its long ones in the same block, behind the slots; `filled` is
//! their size in bytes then. A version whose long values another one has taken over ([`crate::fold`]) has their
//! columns there.
//!
//! Numbers that are written again and again have two versions in one block ([`renew`]).
//!
//! Maximum and minimum deltas are rare; a version that has any carries two more words behind its
//! slots that say which.

mod making;
mod open_part;
mod plain;
mod twin;

pub use self::twin::renew;

use crate::block::{self, LINE_BYTES};
use crate::{index::prefetch, slot};
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, DeltaOperator, Deltas, Seq};
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64, Ordering,
    Ordering::{Acquire, Relaxed, Release},
};

const SEQ_BITS: u32 = 53;
/// No log comes this far: what is read from files is refused from here on.
pub(crate) const SEQ_END: Seq = Seq((1 << SEQ_BITS) - (1 << 32));
const TOMBSTONE: u64 = 1 << 63;
const EXTREMES: u64 = 1 << 62;
const READ_ELSEWHERE: u64 = 1 << 61;
const WHOLE: u64 = 1 << 60;
const BARE: u64 = 1 << 59;
const HAS_VALUES: u64 = 1 << 58;
const GAVE_AWAY: u64 = 1 << 57;
const UNLINKED: u64 = 1 << 56;
const ALL_OF_ITS_CALL: u64 = 1 << 55;
const HAS_OPEN_PART: u64 = 1 << 54;
const WIDE: u64 = 1 << 53;
/// Of a version without an open part.
const TWIN: u64 = ALL_OF_ITS_CALL;

/// Columns of a table that is not wide, at most.
const NARROW_COLUMNS_MAX: usize = 32;

/// A version in a record's chain: what all have. See the module's picture.
#[repr(C)]
pub struct Version {
    next: AtomicPtr<Version>,
    seq_and_flags: AtomicU64,
    base: AtomicPtr<Version>,
}

/// The masks of a version, in the order in which they follow. The last two are in the open part.
#[derive(Clone, Copy)]
enum Mask {
    Columns,
    Nulls,
    Filled,
    Reach,
    Sticky,
    Deltas,
}

/// The contents of a version to be made.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'r, 'a> {
    /// The version's place in the order.
    pub seq: Seq,
    /// Columns with values, in ascending order in `values`.
    pub values_mask: ColumnMask,
    /// Their values.
    pub values: &'r [Datum<'a>],
    /// Columns with operations.
    pub deltas: Deltas<'r, 'a>,
    /// Columns that `deferred` will fill.
    pub sticky: ColumnMask,
    /// The deferred call that stickies name.
    pub deferred: *mut (),
}

impl Version {
    /// Where the slots of a version begin.
    #[inline]
    const fn slots_at(flags: u64) -> usize {
        let mask = if flags & WIDE == 0 { size_of::<u32>() } else { size_of::<u64>() };
        let open_part = if flags & HAS_OPEN_PART == 0 { 0 } else { 2 * mask + size_of::<*mut ()>() };
        size_of::<Version>() + 4 * mask + open_part
    }

    /// Bytes of its block. Less than a line would save little, and make two lines of one.
    #[inline]
    fn block_bytes(flags: u64, slots: usize, values_bytes: usize) -> usize {
        (Version::slots_at(flags) + 8 * slots + values_bytes).max(LINE_BYTES)
    }

    /// The flag that says how wide the masks of a table's versions are.
    #[inline]
    fn width(types: &[DataType]) -> u64 {
        if types.len() > NARROW_COLUMNS_MAX { WIDE } else { 0 }
    }

    #[inline]
    fn flags(&self) -> u64 {
        self.seq_and_flags.load(Relaxed)
    }

    /// A mask, which is there.
    #[inline(always)]
    fn mask(&self, mask: Mask, order: Ordering) -> u64 {
        self.mask_of(self.flags(), mask, order)
    }

    /// A mask, which is there, where the flags are known.
    #[inline(always)]
    fn mask_of(&self, flags: u64, mask: Mask, order: Ordering) -> u64 {
        let (masks, at) = (std::ptr::from_ref(self).wrapping_add(1), mask as usize);
        // SAFETY: the masks follow, so wide as the flag says.
        unsafe {
            match flags & WIDE {
                0 => (*masks.cast::<AtomicU32>().add(at)).load(order).into(),
                _ => (*masks.cast::<AtomicU64>().add(at)).load(order),
            }
        }
    }

    #[inline(always)]
    fn set_mask(&self, mask: Mask, columns: u64, order: Ordering) {
        let (masks, at) = (std::ptr::from_ref(self).wrapping_add(1), mask as usize);
        // SAFETY: the masks follow the header, as wide as the flag says.
        unsafe {
            match self.flags() & WIDE {
                0 => (*masks.cast::<AtomicU32>().add(at)).store(columns as u32, order),
                _ => (*masks.cast::<AtomicU64>().add(at)).store(columns, order),
            }
        }
    }

    /// Names the deferred call; for a version that has an open part.
    #[inline]
    fn deferred_word(&self) -> &AtomicPtr<()> {
        let at = Version::slots_at(self.flags()) - size_of::<*mut ()>();
        // SAFETY: the last word before the slots.
        unsafe { &*std::ptr::from_ref(self).byte_add(at).cast() }
    }

    fn slot_count(columns: u64, flags: u64) -> usize {
        // A whole row has the first columns, so many as the highest says.
        let columns =
            if flags & WHOLE != 0 { u64::BITS - columns.leading_zeros() } else { columns.count_ones() };
        columns as usize + if flags & EXTREMES == 0 { 0 } else { 2 }
    }

    /// Allocates a tombstone.
    pub fn create_tombstone(seq: Seq) -> NonNull<Version> {
        Version::allocate(seq, TOMBSTONE | WHOLE, 0, 0)
    }

    /// A version whose slots are still to be written, and its open part if it has one, with room behind the slots for
    /// long values of so many bytes.
    #[inline]
    fn allocate(seq: Seq, flags: u64, columns: u64, values_bytes: usize) -> NonNull<Version> {
        Version::allocate_slots(seq, flags, columns, Version::slot_count(columns, flags), values_bytes)
    }

    /// A version whose slots are still to be written, where the caller knows how many slots its columns make.
    #[inline(always)]
    fn allocate_slots(
        seq: Seq,
        flags: u64,
        columns: u64,
        slots: usize,
        values_bytes: usize,
    ) -> NonNull<Version> {
        debug_assert_eq!(slots, Version::slot_count(columns, flags));
        let block = block::take(Version::block_bytes(flags, slots, values_bytes));
        let flags = flags | if values_bytes > 0 { HAS_VALUES } else { 0 };
        // SAFETY: the block is that long, and ours alone; what is not written here, the caller writes: slots and the
        // open part.
        unsafe {
            let version = Version::begin(block, seq, flags, columns, values_bytes);
            if flags & EXTREMES != 0 {
                version.byte_add(Version::slots_at(flags)).cast::<u64>().add(slots - 2).write_bytes(0, 2);
            }
            version
        }
    }

    /// Writes what all versions have.
    ///
    /// # Safety
    /// There is room for it, and nobody else knows of it.
    #[inline(always)]
    unsafe fn begin(
        block: NonNull<u8>,
        seq: Seq,
        flags: u64,
        columns: u64,
        values_bytes: usize,
    ) -> NonNull<Version> {
        assert!(seq.0 >> SEQ_BITS == 0, "sequence numbers have {SEQ_BITS} bits");
        let version = block.cast::<Version>();
        // SAFETY: there is room for it, and nobody else knows of it, as whoever calls this sees to.
        unsafe {
            version.write(Version {
                next: AtomicPtr::new(std::ptr::null_mut()),
                seq_and_flags: AtomicU64::new(seq.0 | flags),
                base: AtomicPtr::new(std::ptr::null_mut()),
            });
            match flags & WIDE {
                0 => {
                    let columns = columns as u32;
                    version.add(1).cast::<[u32; 4]>().write([columns, 0, values_bytes as u32, columns]);
                }
                _ => version.add(1).cast::<[u64; 4]>().write([columns, 0, values_bytes as u64, columns]),
            }
        }
        version.as_ptr().expose_provenance();
        version
    }

    /// Writes the open part.
    ///
    /// # Safety
    /// The version was made with one, by these flags, and nobody else knows of it.
    #[inline]
    unsafe fn open(
        version: NonNull<Version>,
        flags: u64,
        sticky: ColumnMask,
        deltas: ColumnMask,
        deferred: *mut (),
    ) {
        let at = Mask::Sticky as usize;
        // SAFETY: the flags say that there is room for it, and nobody else knows of the version, as whoever calls
        // this sees to.
        unsafe {
            match flags & WIDE {
                0 => version.add(1).cast::<u32>().add(at).cast().write([sticky.0 as u32, deltas.0 as u32]),
                _ => version.add(1).cast::<u64>().add(at).cast().write([sticky.0, deltas.0]),
            }
            version.byte_add(Version::slots_at(flags)).cast::<*mut ()>().sub(1).write(deferred);
        }
    }

    /// Writes a slot.
    ///
    /// # Safety
    /// There is such a slot, and nobody else knows of the version.
    #[inline]
    unsafe fn write_word(version: NonNull<Version>, at: usize, word: u64) {
        // SAFETY: there is such a slot, and nobody else knows of the version, as whoever calls this sees to.
        unsafe {
            let slots = Version::slots_at(version.as_ref().flags());
            version.byte_add(slots).cast::<u64>().add(at).write(word);
        }
    }

    /// The pointer that the version is freed through: as it was made. (A reference gives no right to free
    /// what it refers to.)
    #[inline]
    pub fn owner(&self) -> NonNull<Version> {
        Version::owner_of(self)
    }

    /// The pointer that a version is freed through, without a look at the version.
    #[inline]
    pub(crate) fn owner_of(version: *const Version) -> NonNull<Version> {
        let version = std::ptr::with_exposed_provenance_mut(version.addr());
        NonNull::new(version).expect("there is a version")
    }

    /// Whether it has, or had, more than plain values.
    #[inline]
    fn has_open_part(&self) -> bool {
        self.flags() & HAS_OPEN_PART != 0
    }

    /// Whether every column has a plain value, or one that has been filled in. Acquires what the filler wrote.
    #[inline]
    fn is_plain(&self) -> bool {
        self.is_plain_by(self.flags())
    }

    #[inline(always)]
    fn is_plain_by(&self, flags: u64) -> bool {
        let mask = |mask| self.mask_of(flags, mask, Acquire);
        flags & HAS_OPEN_PART == 0 || mask(Mask::Sticky) | mask(Mask::Deltas) == 0
    }

    /// The version below, null at the end of the chain.
    #[inline]
    pub fn next(&self) -> *const Version {
        self.next.load(Acquire)
    }

    /// Sets the version below (the record's writer only).
    pub fn set_next(&self, next: *const Version) {
        self.next.store(next.cast_mut(), Release);
    }

    /// Puts the version above another one (or none), before anyone can see it.
    ///
    /// # Safety
    /// `below` is null or linked, and the caller is the record's writer.
    #[inline]
    pub unsafe fn place_above(&self, below: *const Version) {
        self.next.store(below.cast_mut(), Relaxed);
        // SAFETY: null, or linked in a chain that the record's writer, who calls this, alone pushes to.
        let below = unsafe { below.as_ref() };
        if self.seq_and_flags.load(Relaxed) & WHOLE != 0 {
            self.set_base(self, ColumnMask(u64::MAX));
            if below.is_none() {
                self.mark_bare();
            }
        } else if let Some(below) = below {
            if below.is_bare() {
                self.mark_bare();
            }
            let under = if below.is_whole() { ColumnMask::EMPTY } else { below.reach() };
            self.set_base(below.base(), under.union(self.columns()));
        }
    }

    /// Whether it is a whole row or a tombstone.
    #[inline]
    pub fn is_whole(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & WHOLE != 0
    }

    /// Whether its base is known to have nothing below it.
    #[inline]
    pub fn is_bare(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & BARE != 0
    }

    /// Notes that its base has nothing below it (the record's writer only).
    #[inline]
    pub fn mark_bare(&self) {
        self.seq_and_flags.store(self.seq_and_flags.load(Relaxed) | BARE, Relaxed);
    }

    /// Whether it has been taken out of its chain; for whoever shortens that.
    #[inline]
    pub(crate) fn is_unlinked(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & UNLINKED != 0
    }

    /// Notes that it is being taken out of its chain (by whoever shortens that).
    #[inline]
    pub(crate) fn mark_unlinked(&self) {
        self.seq_and_flags.store(self.seq_and_flags.load(Relaxed) | UNLINKED, Relaxed);
    }

    /// The nearest whole row or tombstone at or below; null if there is none.
    #[inline]
    pub fn base(&self) -> *const Version {
        self.base.load(Acquire)
    }

    /// Every column that versions from this one down to above the base say something about, and
    /// perhaps others.
    #[inline]
    pub fn reach(&self) -> ColumnMask {
        ColumnMask(self.mask(Mask::Reach, Relaxed))
    }

    /// Sets the base and the reach (the record's writer only). A reader may see one of them old: an
    /// old reach is wider, and an old base stays readable for its epoch and means the same.
    pub fn set_base(&self, base: *const Version, reach: ColumnMask) {
        self.base.store(base.cast_mut(), Release);
        self.set_mask(Mask::Reach, reach.0, Release);
    }

    /// Where a reader of `columns` goes on from here without missing any of them.
    #[inline]
    pub fn shortcut(&self, columns: ColumnMask) -> Option<&Version> {
        // The reach is loaded first: narrow together with its base, or wide.
        if ColumnMask(self.mask(Mask::Reach, Acquire)).intersects(columns) {
            return None;
        }
        // SAFETY: a base is linked, or was when this reader's epoch was pinned.
        unsafe { self.base().as_ref() }
    }

    /// The whole row, this version or below it, of which nothing in between says anything about `columns`.
    #[inline]
    pub fn whole_row(&self, columns: ColumnMask) -> Option<&Version> {
        let row = if self.is_whole() { Some(self) } else { self.shortcut(columns) };
        row.filter(|row| !row.is_tombstone())
    }

    /// Whether the version that it has just been pushed on says something about the same columns, both of them plain
    /// values, and is the only one above the end of the chain, their base.
    #[inline]
    pub fn is_like(&self, below: &Version) -> bool {
        let flags = self.seq_and_flags.load(Relaxed) | below.seq_and_flags.load(Relaxed);
        flags & (HAS_OPEN_PART | HAS_VALUES | WHOLE | TWIN) == 0
            && self.columns() == below.columns()
            && self.is_bare()
            && below.next() == self.base()
    }

    /// The version's place in the order.
    #[inline]
    pub fn seq(&self) -> Seq {
        Seq(self.seq_and_flags.load(Relaxed) & ((1 << SEQ_BITS) - 1))
    }

    /// Whether it says that the row is gone.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & TOMBSTONE != 0
    }

    /// Notes that a deferred call other than the one that wrote the version above will read this one
    /// (the record's writer only). Somebody may be taking the version out of its chain at the same time.
    #[inline]
    pub fn mark_read_elsewhere(&self) {
        if !self.is_read_elsewhere() {
            self.seq_and_flags.fetch_or(READ_ELSEWHERE, Relaxed);
        }
    }

    /// Whether [`Version::mark_read_elsewhere`] was called.
    #[inline]
    pub fn is_read_elsewhere(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & READ_ELSEWHERE != 0
    }

    /// Every column it says something about.
    #[inline]
    pub fn columns(&self) -> ColumnMask {
        ColumnMask(self.mask(Mask::Columns, Relaxed))
    }

    /// The columns it has operations for. Acquires the values of those that have been resolved.
    #[inline]
    pub fn deltas(&self) -> ColumnMask {
        ColumnMask(if self.has_open_part() { self.mask(Mask::Deltas, Acquire) } else { 0 })
    }

    /// The columns whose values are not there yet. Acquires what the filler wrote.
    #[inline]
    pub fn sticky(&self) -> ColumnMask {
        ColumnMask(if self.has_open_part() { self.mask(Mask::Sticky, Acquire) } else { 0 })
    }

    /// The columns that the running deferred call has filled (for that call alone).
    #[inline]
    pub fn filled(&self) -> ColumnMask {
        ColumnMask(self.mask(Mask::Filled, Relaxed))
    }

    /// The columns that are null.
    #[inline]
    pub fn nulls(&self) -> ColumnMask {
        ColumnMask(self.mask(Mask::Nulls, Relaxed))
    }

    /// The slot of a column in its mask.
    #[inline]
    pub fn slot(&self, column: ColumnId) -> &AtomicU64 {
        debug_assert!(self.columns().contains(column));
        let flags = self.flags();
        let columns = || ColumnMask(self.mask_of(flags, Mask::Columns, Relaxed));
        let at = if flags & WHOLE != 0 { usize::from(column.0) } else { columns().rank(column) };
        self.word_of_flags(flags, at)
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        self.word_of_flags(self.flags(), at)
    }

    #[inline(always)]
    fn word_of_flags(&self, flags: u64, at: usize) -> &AtomicU64 {
        // SAFETY: the allocation has a word for each column of the mask, and two more with EXTREMES.
        unsafe { &*std::ptr::from_ref(self).byte_add(Version::slots_at(flags)).cast::<AtomicU64>().add(at) }
    }

    fn extreme_word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(self.seq_and_flags.load(Relaxed) & EXTREMES != 0);
        self.word(self.columns().len() + at)
    }

    /// The operation of a delta column.
    #[inline]
    pub fn operator(&self, column: ColumnId) -> DeltaOperator {
        if self.seq_and_flags.load(Relaxed) & EXTREMES == 0 {
            return DeltaOperator::Add;
        }
        let bit = ColumnMask::of(column).0;
        match (self.extreme_word(0).load(Relaxed) & bit != 0, self.extreme_word(1).load(Relaxed) & bit != 0) {
            (true, _) => DeltaOperator::Max,
            (_, true) => DeltaOperator::Min,
            _ => DeltaOperator::Add,
        }
    }

    /// The value or operand of a column that is not an open sticky.
    ///
    /// # Safety
    /// The version is not freed during `'a`, and the column's slot is not filled again.
    #[inline]
    pub unsafe fn value<'a>(&self, column: ColumnId, data_type: DataType) -> Datum<'a> {
        if self.nulls().contains(column) {
            return Datum::Null;
        }
        // SAFETY: the slot is in the version's block, which is not freed during `'a`, as whoever calls this sees to.
        unsafe { slot::load(&*std::ptr::from_ref(self.slot(column)), data_type) }
    }

    /// The slot of a column that is not an open sticky, as it is; `None` for null.
    #[inline]
    pub(crate) fn word_of(&self, column: ColumnId) -> Option<u64> {
        (!self.nulls().contains(column)).then(|| self.slot(column).load(Relaxed))
    }

    /// Whether the slot of a column can be another version's too: it has a plain value, which is not in this
    /// version's own block.
    pub(crate) fn can_give_away(&self, column: ColumnId, data_type: DataType) -> bool {
        !(self.deltas().contains(column) || self.has_values() && slot::may_allocate(data_type))
    }

    /// Asks for the version's memory.
    #[inline]
    pub fn prefetch(&self) {
        Version::prefetch_at(self);
    }

    /// Asks for the memory of a version that may be there.
    #[inline]
    pub fn prefetch_at(version: *const Version) {
        prefetch(version);
        prefetch(version.wrapping_byte_add(LINE_BYTES));
    }

    /// Asks for the memory of the values in these columns, which may be long.
    #[inline]
    pub fn prefetch_values(&self, long_columns: ColumnMask) {
        for column in self.columns().intersection(long_columns).iter() {
            let word = self.slot(column).load(Relaxed);
            if slot::is_long(word) {
                prefetch(word as *const u64);
                prefetch((word + 64) as *const u64);
            }
        }
    }

    /// Notes that what these columns have on the heap belongs to another version now (the record's writer only, and
    /// for a version that is settled and about to be unlinked).
    pub(crate) fn give_away(&self, columns: ColumnMask) {
        debug_assert!(self.sticky().is_empty() && !self.has_values());
        self.set_mask(Mask::Filled, columns.0, Relaxed);
        self.seq_and_flags.store(self.seq_and_flags.load(Relaxed) | GAVE_AWAY, Relaxed);
    }

    /// Whether its long values are in its own block.
    #[inline]
    pub(crate) fn has_values(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & HAS_VALUES != 0
    }

    /// Which of these columns, which may be long, have blocks of this version's.
    #[inline]
    pub(crate) fn columns_with_blocks(&self, long_columns: ColumnMask) -> ColumnMask {
        if self.has_values() {
            return ColumnMask::EMPTY;
        }
        let gave_away = self.seq_and_flags.load(Relaxed) & GAVE_AWAY != 0;
        let kept = if gave_away { ColumnMask(!self.filled().0) } else { ColumnMask(u64::MAX) };
        self.columns().intersection(long_columns).intersection(kept)
    }

    /// How many bytes its own block was taken with.
    #[inline]
    pub(crate) fn own_bytes(&self) -> usize {
        let values = if self.has_values() { self.filled().0 as usize } else { 0 };
        let flags = self.flags();
        Version::block_bytes(flags, Version::slot_count(self.columns().0, flags), values)
    }

    /// Frees a version, and its blocks.
    ///
    /// # Safety
    /// No one can reach it any more, and these are the columns of its table that may be long.
    pub unsafe fn free(version: NonNull<Version>, long_columns: ColumnMask) {
        // SAFETY: nobody can reach it any more, as whoever calls this sees to: it is ours alone.
        let this = unsafe { version.as_ref() };
        debug_assert!(!this.has_twin(), "twins are given back together");
        let bytes = this.own_bytes();
        for column in this.columns_with_blocks(long_columns).iter() {
            let word = this.slot(column).load(Relaxed);
            if slot::is_long(word) {
                // SAFETY: owned by this version.
                unsafe { slot::free(word) };
            }
        }
        // SAFETY: taken with this size.
        unsafe { block::give(version.cast(), bytes) };
    }
}
