//! How a version is made: its slots are written one by one, by the one thread that knows of it.

use super::{Contents, EXTREMES, HAS_OPEN_PART, Mask, Version, WHOLE};
use crate::slot;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, DeltaOperator, Seq};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

/// Long values that take more bytes than this together have blocks of their own.
const VALUES_BYTES_MAX: usize = 384;

/// A version that is being made: every slot is put once.
pub(super) struct Making {
    version: NonNull<Version>,
    slots: NonNull<u64>,
    nulls: u64,
    /// Where the next long value comes, if it is to be in the same block.
    place: Option<NonNull<u8>>,
}

impl Making {
    /// Allocates a version without long values in its block.
    #[inline]
    pub fn begin(seq: Seq, flags: u64, columns: ColumnMask) -> Making {
        Making::of(Version::allocate(seq, flags, columns.0, 0), flags)
    }

    /// A version just allocated by these flags.
    #[inline]
    fn of(version: NonNull<Version>, flags: u64) -> Making {
        // SAFETY: the place is within or at the end of the block.
        let slots = unsafe { version.byte_add(Version::slots_at(flags)).cast() };
        Making { version, slots, nulls: 0, place: None }
    }

    /// Allocates one of plain values, with room for those given, which are of some of `all` columns.
    #[inline]
    pub fn of_row(
        seq: Seq,
        all: ColumnMask,
        columns: ColumnMask,
        values: &[Datum<'_>],
        types: &[DataType],
    ) -> Making {
        let whole = if all == ColumnMask::first(types.len()) { WHOLE } else { 0 };
        let flags = Version::width(types) | whole;
        let typed = columns.iter().zip(values);
        let long = typed.map(|(column, datum)| slot::bytes_beside(*datum, types[usize::from(column.0)]));
        let beside = Some(long.sum()).filter(|bytes| *bytes <= VALUES_BYTES_MAX).unwrap_or(0);
        let making = Making::of(Version::allocate(seq, flags, all.0, beside), flags);
        // SAFETY: the place behind the slots, within the block.
        let place =
            (beside > 0).then(|| unsafe { making.slots.add(Version::slot_count(all.0, flags)).cast() });
        Making { place, ..making }
    }

    /// Stores a value in the slot at this place, a long one in a block of its own.
    #[inline(always)]
    pub fn put(&mut self, at: usize, column: ColumnId, datum: Datum<'_>, data_type: DataType) {
        let word = (!datum.is_null()).then(|| slot::store(datum, data_type));
        self.put_word(at, column, word);
    }

    /// Stores a value in the slot at this place, a long one in the version's block if there is room for it.
    #[inline]
    pub fn put_beside(&mut self, at: usize, column: ColumnId, datum: Datum<'_>, data_type: DataType) {
        let Some(place) = self.place else { return self.put(at, column, datum, data_type) };
        let bytes = slot::bytes_beside(datum, data_type);
        if bytes == 0 {
            return self.put(at, column, datum, data_type);
        }
        // SAFETY: `of_row` has made room for all values.
        let word = unsafe {
            self.place = Some(place.add(bytes));
            slot::store_beside(datum, place)
        };
        self.put_word(at, column, Some(word));
    }

    /// Stores what another version has in its slot, `None` for null.
    #[inline(always)]
    pub fn put_word(&mut self, at: usize, column: ColumnId, word: Option<u64>) {
        self.nulls |= u64::from(word.is_none()) << column.0;
        // SAFETY: just allocated, and ours alone.
        unsafe { self.slots.add(at).write(word.unwrap_or(0)) };
    }

    /// The version, with all slots written.
    #[inline]
    pub fn end(self) -> NonNull<Version> {
        if self.nulls != 0 {
            // SAFETY: just allocated, and ours alone.
            unsafe { self.version.as_ref() }.set_mask(Mask::Nulls, self.nulls, Relaxed);
        }
        self.version
    }
}

impl Version {
    /// Allocates a version that no one else can see yet; it owns copies of long values.
    ///
    /// The masks of `contents` do not overlap; `types` are those of all columns of the table.
    #[inline]
    pub fn create(contents: &Contents<'_, '_>, types: &[DataType]) -> NonNull<Version> {
        Version::create_with(contents, ColumnMask::EMPTY, |_| None, types)
    }

    /// As [`create`](Version::create), with `repeated` columns besides, as they are in `row`: plain values that
    /// are never null and never on the heap.
    #[inline]
    pub fn create_over(
        contents: &Contents<'_, '_>,
        repeated: ColumnMask,
        row: &Version,
        types: &[DataType],
    ) -> NonNull<Version> {
        debug_assert!(row.columns().without(row.deltas()).without(row.sticky()).covers(repeated));
        Version::create_with(contents, repeated, |column| Some(row.slot(column).load(Relaxed)), types)
    }

    /// As [`create`](Version::create), with `repeated` columns besides, whose slots are given as they are, `None` for
    /// null. What they have on the heap belongs to this version from now on.
    #[inline]
    pub(crate) fn create_with(
        contents: &Contents<'_, '_>,
        repeated: ColumnMask,
        repeat: impl Fn(ColumnId) -> Option<u64>,
        types: &[DataType],
    ) -> NonNull<Version> {
        let deltas = contents.deltas.mask();
        let columns = contents.values_mask.union(deltas).union(contents.sticky).union(repeated);
        debug_assert_eq!(
            columns.len(),
            contents.values_mask.len() + deltas.len() + contents.sticky.len() + repeated.len()
        );
        let extremes = contents.deltas.operations.iter().any(|delta| delta.1 != DeltaOperator::Add);
        let is_whole = columns == ColumnMask::first(types.len());
        let is_open = !deltas.is_empty() || !contents.sticky.is_empty();
        let flags = Version::width(types)
            | if extremes { EXTREMES } else { 0 }
            | if is_whole { WHOLE } else { 0 }
            | if is_open { HAS_OPEN_PART } else { 0 };
        let mut making = Making::begin(contents.seq, flags, columns);
        if columns == contents.values_mask {
            // Most inserts, and all that is folded.
            for ((at, column), &datum) in columns.iter().enumerate().zip(contents.values) {
                making.put(at, column, datum, types[usize::from(column.0)]);
            }
        } else {
            let (mut values, mut operands) = (contents.values.iter(), contents.deltas.operands.iter());
            for (at, column) in columns.iter().enumerate() {
                let data_type = types[usize::from(column.0)];
                if contents.values_mask.contains(column) {
                    making.put(at, column, *values.next().expect("a value for each column"), data_type);
                } else if repeated.contains(column) {
                    making.put_word(at, column, repeat(column));
                } else if deltas.contains(column) {
                    making.put(at, column, *operands.next().expect("an operand for each delta"), data_type);
                } else {
                    making.put_word(at, column, Some(0));
                }
            }
        }
        let version = making.end();
        // SAFETY: just made, and ours alone.
        let this = unsafe { version.as_ref() };
        if extremes {
            for &(column, operator) in contents.deltas.operations {
                let word = match operator {
                    DeltaOperator::Add => continue,
                    DeltaOperator::Max => this.extreme_word(0),
                    DeltaOperator::Min => this.extreme_word(1),
                };
                word.store(word.load(Relaxed) | ColumnMask::of(column).0, Relaxed);
            }
        }
        if is_open {
            // SAFETY: just made, and ours alone; `flags` say that there is room for the open part.
            unsafe { Version::open(version, flags, contents.sticky, deltas, contents.deferred) };
        }
        version
    }
}
