//! A version while its slots are written, by the one thread that knows of it.

use super::{Mask, Version, WHOLE};
use crate::slot;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, Seq};
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
