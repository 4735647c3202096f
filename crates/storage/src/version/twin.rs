//! Two versions of a number in one block, which take turns.
//!
//! A row whose number is updated again and again has the version that was promised last, and the next one until that is
//! promised too. The one after it comes where the first was, once nobody reads that any more: no block is taken or
//! given back, and whoever has found the newest version has found the place of the next.
//!
//! ```text
//! lines of a block    |  3  |     |    |  3  |  4  |    |  5  |  4  |
//! chain                  3 -> row       4 -> 3 -> row    5 -> 4 -> row
//! ```
//!
//! A twin that is in no chain is *unlinked*, also before its first turn. Whoever takes the other one out of its chain
//! then gives back the block.

use super::{BARE, HAS_OPEN_PART, Mask, TWIN, UNLINKED, Version, WIDE};
use crate::block::{self, LINE_BYTES};
use crate::{Record, index::prefetch_to_write};
use fabius_value::{ColumnMask, DataType, Seq};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A version of one number is a line.
const TWINS_BYTES: usize = 2 * LINE_BYTES;

impl Version {
    /// Allocates a version of one number, one of several columns, and room for its twin.
    pub fn of_number_with_twin(
        seq: Seq,
        column: ColumnMask,
        number: i64,
        types: &[DataType],
    ) -> NonNull<Version> {
        debug_assert!(column.len() == 1);
        let (twins, width) = (block::take(TWINS_BYTES), Version::width(types));
        let write = |at: NonNull<u8>, seq: Seq, flags: u64| {
            // SAFETY: the block has room for two such lines, and is ours alone.
            unsafe {
                let version = Version::begin(at, seq, flags | width | TWIN, column.0, 0);
                Version::write_word(version, 0, number as u64);
                version
            }
        };
        // SAFETY: within the block.
        write(unsafe { twins.add(LINE_BYTES) }, Seq::ZERO, UNLINKED);
        write(twins, seq, 0)
    }

    /// Whether it has a twin.
    #[inline]
    pub fn has_twin(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & (TWIN | HAS_OPEN_PART) == TWIN
    }

    /// Whether a number of this column that is put on top, and has a twin, will [be renewed](renew): nothing, or no
    /// more than one version like it, stands between this one's base and the number.
    #[inline]
    pub fn may_be_followed_by_twins(&self, column: ColumnMask) -> bool {
        let is_alone = || self.columns() == column && self.next() == self.base();
        self.is_bare() && (self.is_plain_row() || self.is_plain() && is_alone())
    }

    /// The twin of a version that has one.
    #[inline]
    fn twin(&self) -> &Version {
        let twin = std::ptr::from_ref(self).addr() ^ LINE_BYTES;
        // SAFETY: both are made together, on two lines that begin at a multiple of their size, and freed together.
        unsafe { &*std::ptr::with_exposed_provenance(twin) }
    }

    /// Whether nothing in its block is linked any more, when the version itself is not.
    #[inline]
    pub(crate) fn is_last_twin(&self) -> bool {
        self.twin().is_unlinked()
    }

    /// Where the block of a version begins that has a twin.
    #[inline]
    pub(crate) fn twins(version: NonNull<Version>) -> (NonNull<u8>, usize) {
        let begin = std::ptr::with_exposed_provenance_mut(version.addr().get() & !(TWINS_BYTES - 1));
        (NonNull::new(begin).expect("a version is somewhere"), TWINS_BYTES)
    }

    /// Asks for the memory of a version, and for that of its twin if it has one, for whoever writes them.
    #[inline]
    pub fn prefetch_twins(&self) {
        prefetch_to_write(self);
        prefetch_to_write(std::ptr::from_ref(self).map_addr(|address| address ^ LINE_BYTES));
    }
}

/// Puts a number on top of a chain, where the twin of the newest version is, if nobody can read that any more;
/// whether it has.
///
/// # Safety
/// The caller is the record's writer; nobody reads, now or later, below `collected`, and whoever has read the record
/// as it was before the newest version is done.
#[inline]
pub unsafe fn renew(record: &Record, seq: Seq, column: ColumnMask, number: i64, collected: Seq) -> bool {
    // SAFETY: the writer reads its own chain.
    let Some(newest) = (unsafe { record.head().as_ref() }) else { return false };
    let is_next = newest.has_twin()
        && newest.columns() == column
        && newest.reach() == column
        && newest.is_bare()
        && newest.seq() <= collected;
    if !is_next || !record.begin_shortening() {
        return false;
    }
    // Above its base there is nothing, or the twin alone: such a version has been put there by this function.
    let (twin, base) = (newest.twin(), newest.base());
    let is_free = [base, std::ptr::from_ref(twin)].contains(&newest.next());
    if is_free {
        newest.set_next(base);
        twin.word(0).store(number as u64, Relaxed);
        twin.set_mask(Mask::Nulls, 0, Relaxed);
        twin.set_mask(Mask::Filled, 0, Relaxed);
        twin.base.store(base.cast_mut(), Relaxed);
        twin.set_mask(Mask::Reach, column.0, Relaxed);
        twin.next.store(std::ptr::from_ref(newest).cast_mut(), Relaxed);
        twin.seq_and_flags.store(seq.0 | twin.flags() & WIDE | TWIN | BARE, Release);
        record.set_head(twin);
    }
    record.end_shortening();
    is_free
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::{Retired, retire_record, shorten};
    use fabius_value::{ColumnId, Datum};
    use std::sync::Arc;

    const TYPES: [DataType; 2] = [DataType::BigInt, DataType::BigInt];

    /// A record with a row, and a number above it that has a twin.
    fn written_twice() -> (NonNull<Record>, ColumnMask, Arc<[DataType]>) {
        let record = Record::create(b"key");
        let column = ColumnMask::of(ColumnId(1));
        let row = Version::of_values(Seq(1), ColumnMask::first(2), &[Datum::Int(0); 2], &TYPES);
        // SAFETY: freed by the caller.
        let shared = unsafe { record.as_ref() };
        shared.push(row);
        shared.push(Version::of_number_with_twin(Seq(2), column, 20, &TYPES));
        (record, column, Arc::from(TYPES))
    }

    /// The seqs of a chain, from the newest down.
    fn seqs(record: &Record) -> Vec<u64> {
        // SAFETY: nobody takes versions out.
        let versions = std::iter::successors(unsafe { record.head().as_ref() }, |version| unsafe {
            version.next().as_ref()
        });
        versions.map(|version| version.seq().0).collect()
    }

    /// Goal: numbers take turns in a block as long as nobody reads the one before the last, and the block is given back
    /// with the second of them.
    #[test]
    fn numbers_take_turns() {
        let (record, column, types) = written_twice();
        // SAFETY: freed below.
        let shared = unsafe { record.as_ref() };
        let first = shared.head();
        let write = |seq: u64, collected: u64| {
            // SAFETY: nobody else is there.
            unsafe { renew(shared, Seq(seq), column, 10 * seq as i64, Seq(collected)) }
        };
        assert!(write(3, 2));
        assert_eq!((shared.head().addr(), seqs(shared)), (first.addr() ^ LINE_BYTES, vec![3, 2, 1]));
        assert!(!write(4, 2), "somebody may read 2");
        assert!(write(4, 3));
        assert_eq!((shared.head(), seqs(shared)), (first, vec![4, 3, 1]));
        // SAFETY: the version is linked.
        let value = unsafe { (*shared.head()).plain_value(ColumnId(1), DataType::BigInt) };
        assert_eq!(value, Some(Datum::Int(40)));
        let mut retired = Retired::default();
        // SAFETY: nobody else is there.
        unsafe { shorten(shared, Seq(4), &types, &mut retired) };
        assert_eq!((seqs(shared), retired.len()), (vec![4, 1], 0));
        assert!(write(5, 4));
        assert_eq!(seqs(shared), [5, 4, 1]);
        // SAFETY: it is in no index, and this test alone has it.
        unsafe { retire_record(record, &types, &mut retired) };
        assert_eq!(retired.len(), 2, "the row, and both numbers");
        retired.hand_over(&crossbeam_epoch::pin());
    }

    /// Goal: a version that is not like the twins, and what stands on it, keep them from taking turns.
    #[test]
    fn others_come_in_between() {
        let (record, column, types) = written_twice();
        // SAFETY: freed below.
        let shared = unsafe { record.as_ref() };
        let write = |seq: u64, column| {
            // SAFETY: nobody else is there.
            unsafe { renew(shared, Seq(seq), column, 0, Seq(seq - 1)) }
        };
        let other = ColumnMask::first(1);
        assert!(!write(3, other));
        shared.push(Version::of_values(Seq(3), other, &[Datum::Int(30)], &TYPES));
        shared.push(Version::of_number_with_twin(Seq(4), column, 40, &TYPES));
        assert!(!write(5, column));
        let mut retired = Retired::default();
        // SAFETY: it is in no index, and this test alone has it.
        unsafe { retire_record(record, &types, &mut retired) };
        assert_eq!(retired.len(), 4);
        retired.hand_over(&crossbeam_epoch::pin());
    }
}
