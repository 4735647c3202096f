//! Versions of plain values: what calls that run whole leave behind.
//!
//! Neither deltas nor stickies are in them, so they are made and read in fewer steps. One that is not large is a single
//! block, with its long values behind the slots:
//!
//! ```text
//! +--------+-----+---------+---------+----------------+
//! | header | 17  | counter | address | len  bytes ... |
//! +--------+-----+---------+----|----+----------------+
//!                               \------^
//! ```

use super::making::Making;
use super::{Mask, TOMBSTONE, Version, WHOLE};
use crate::slot;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, Seq};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

impl Version {
    /// Allocates a version of plain values, given in the order of their columns.
    pub fn of_values(
        seq: Seq,
        columns: ColumnMask,
        values: &[Datum<'_>],
        types: &[DataType],
    ) -> NonNull<Version> {
        if let [Datum::Int(number)] = values
            && types.len() > 1
        {
            return Version::of_number(seq, columns, *number, types);
        }
        let mut making = Making::of_row(seq, columns, columns, values, types);
        for ((at, column), &datum) in columns.iter().enumerate().zip(values) {
            making.put_beside(at, column, datum, types[usize::from(column.0)]);
        }
        making.end()
    }

    /// Allocates a version of one number: what most updates write.
    #[inline]
    fn of_number(seq: Seq, column: ColumnMask, number: i64, types: &[DataType]) -> NonNull<Version> {
        debug_assert!(column.len() == 1);
        let version = Version::allocate_slots(seq, Version::width(types), column.0, 1, 0);
        // SAFETY: just allocated, and ours alone.
        unsafe { Version::write_word(version, 0, number as u64) };
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
        let mut making = Making::of_row(seq, row.columns(), columns, values, types);
        let mut values = values.iter();
        for (at, &data_type) in types.iter().enumerate() {
            let column = ColumnId(at as u8);
            if columns.contains(column) {
                making.put_beside(at, column, values.next().copied().unwrap_or_default(), data_type);
            } else {
                debug_assert!(!slot::may_allocate(data_type));
                making.put_word(at, column, row.word_of(column));
            }
        }
        making.end()
    }

    /// Whether it is a row that has a plain value for every column.
    #[inline]
    pub fn is_plain_row(&self) -> bool {
        self.seq_and_flags.load(Relaxed) & (WHOLE | TOMBSTONE) == WHOLE && self.is_plain()
    }

    /// The number in a column, if the version has nothing but plain values, and a whole number of it.
    #[inline]
    pub fn plain_number(&self, column: ColumnId, data_type: DataType) -> Option<i64> {
        let is_number = matches!(
            data_type,
            DataType::SmallInt | DataType::Int | DataType::BigInt | DataType::Date | DataType::Timestamp
        );
        let flags = self.flags();
        let has = |mask| ColumnMask(self.mask_of(flags, mask, Relaxed)).contains(column);
        let has_it = has(Mask::Columns) && !has(Mask::Nulls);
        (is_number && has_it && self.is_plain_by(flags)).then(|| self.slot(column).load(Relaxed) as i64)
    }

    /// The value of a column, if the version has nothing but plain values, and one of it.
    ///
    /// # Safety
    /// The version is not freed during `'a`.
    #[inline]
    pub unsafe fn plain_value<'a>(&self, column: ColumnId, data_type: DataType) -> Option<Datum<'a>> {
        let flags = self.flags();
        let has = |mask| ColumnMask(self.mask_of(flags, mask, Relaxed)).contains(column);
        if !has(Mask::Columns) || !self.is_plain_by(flags) {
            return None;
        }
        if has(Mask::Nulls) {
            return Some(Datum::Null);
        }
        // SAFETY: there is a slot for each column; the version is not freed during `'a`, as whoever calls this sees to.
        Some(unsafe { slot::load(&*std::ptr::from_ref(self.slot(column)), data_type) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: long values come back whether they are in the version's block, because they are few, or in blocks of their
    /// own; and a changed row has the other columns as they were.
    #[test]
    fn long_values_come_back() {
        let types = [DataType::BigInt, DataType::TEXT, DataType::Bytea, DataType::BigInt, DataType::TEXT];
        let (some, many) = ("some text".repeat(3), "some text".repeat(100));
        for text in [&some, &many] {
            let row = [
                Datum::Int(7),
                Datum::Text(text),
                Datum::Bytes(b"a few bytes more"),
                Datum::Null,
                Datum::Text("short"),
            ];
            let all = ColumnMask::first(5);
            let version = Version::of_values(Seq(1), all, &row, &types);
            let long_columns = slot::long_columns(&types);
            // SAFETY: freed below.
            let value = |version: NonNull<Version>, at: usize| unsafe {
                version.as_ref().plain_value(ColumnId(at as u8), types[at]).expect("a plain row")
            };
            (0..5).for_each(|at| assert_eq!(value(version, at), row[at]));
            let columns = all.without(ColumnMask::first(1)).without(ColumnMask::of(ColumnId(3)));
            let values = [Datum::Text("short"), Datum::Bytes(text.as_bytes()), Datum::Text(text)];
            // SAFETY: it is freed at the end.
            let changed =
                Version::of_changed_row(unsafe { version.as_ref() }, Seq(2), columns, &values, &types);
            let expected = [row[0], values[0], values[1], row[3], values[2]];
            (0..5).for_each(|at| assert_eq!(value(changed, at), expected[at]));
            // SAFETY: nothing refers to them any more.
            unsafe {
                Version::free(version, long_columns);
                Version::free(changed, long_columns);
            }
        }
    }
}
