//! Versions of plain values: what calls that run whole leave behind.
//!
//! Neither deltas nor stickies are in them, so they are made and read in fewer steps.

use super::{TOMBSTONE, Version, WHOLE};
use crate::slot;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, Seq};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

impl Version {
    /// Allocates a version of plain values, given in the order of their columns.
    pub fn of_values(
        seq: Seq,
        columns: ColumnMask,
        values: &[Datum<'_>],
        types: &[DataType],
    ) -> NonNull<Version> {
        let flags = if columns == ColumnMask::first(types.len()) { WHOLE } else { 0 };
        let version = Version::allocate(seq, flags, columns.0, 0);
        // SAFETY: just allocated, and ours alone.
        let this = unsafe { version.as_ref() };
        let mut nulls = 0;
        for ((at, column), &datum) in columns.iter().enumerate().zip(values) {
            nulls |= u64::from(datum.is_null()) << column.0;
            this.word(at).store(slot::store(datum, types[usize::from(column.0)]), Relaxed);
        }
        this.nulls.store(nulls, Relaxed);
        version
    }

    /// Allocates a whole row: these columns, and the others as they are in `row`, a whole row of plain values; none of
    /// these is long.
    pub fn of_changed_row(
        row: &Version,
        seq: Seq,
        columns: ColumnMask,
        values: &[Datum<'_>],
        types: &[DataType],
    ) -> NonNull<Version> {
        debug_assert!(row.is_plain_row());
        let version = Version::allocate(seq, WHOLE, row.columns, 0);
        // SAFETY: just allocated, and ours alone.
        let this = unsafe { version.as_ref() };
        let mut nulls = row.nulls.load(Relaxed) & !columns.0;
        let mut values = values.iter();
        for (at, &data_type) in types.iter().enumerate() {
            let stored = if columns.0 >> at & 1 == 1 {
                let datum = values.next().copied().unwrap_or_default();
                nulls |= u64::from(datum.is_null()) << at;
                slot::store(datum, data_type)
            } else {
                debug_assert!(!slot::may_allocate(data_type));
                row.word(at).load(Relaxed)
            };
            this.word(at).store(stored, Relaxed);
        }
        this.nulls.store(nulls, Relaxed);
        version
    }

    /// Whether it is a row that has a plain value for every column.
    #[inline]
    pub fn is_plain_row(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & (WHOLE | TOMBSTONE) == WHOLE
            && self.deltas | self.sticky.load(Acquire) == 0
    }

    /// The value of a column of a plain row ([`Version::is_plain_row`]).
    ///
    /// # Safety
    /// The version is not freed during `'a`.
    #[inline]
    pub unsafe fn value_of_row<'a>(&self, column: ColumnId, data_type: DataType) -> Datum<'a> {
        if self.nulls().contains(column) {
            return Datum::Null;
        }
        debug_assert!(self.columns().contains(column));
        // SAFETY: a row has a slot for each column; and the caller's promise.
        unsafe { slot::load(&*std::ptr::from_ref(self.word(usize::from(column.0))), data_type) }
    }
}
