//! A value in eight bytes, longer ones on the heap.
//!
//! ```text
//! boolean, integers, date, timestamp, numeric(<= 18), double   the value itself
//! text, bytea of at most 7 bytes     [len << 1 | 1][bytes ...]   inline, odd
//! longer, and numeric(> 18)          address of [len: u64][bytes ...], even, never 0
//! ```
//!
//! What an address leads to is a block of its own, which the slot owns, or lies in the same block as the slot.
//!
//! Null is not a slot: versions keep a mask of null columns, and their slots are 0.

use crate::block;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, data_type::Family};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const INLINE_BYTES: usize = 7;

/// Stores a datum of `data_type`; null gives 0.
#[inline]
pub fn store(datum: Datum<'_>, data_type: DataType) -> u64 {
    match datum {
        Datum::Null => 0,
        Datum::Boolean(v) => v.into(),
        Datum::Int(v) => v as u64,
        Datum::Double(v) => v.to_bits(),
        Datum::Numeric(v) if data_type.is_wide_numeric() => allocate(&v.to_ne_bytes()),
        Datum::Numeric(v) => v as i64 as u64,
        Datum::Text(v) => store_bytes(v.as_bytes()),
        Datum::Bytes(v) => store_bytes(v),
    }
}

fn store_bytes(bytes: &[u8]) -> u64 {
    if bytes.len() > INLINE_BYTES {
        return allocate(bytes);
    }
    let mut word = [0; 8];
    word[0] = (bytes.len() as u8) << 1 | 1;
    word[1..=bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Whether values of the type may be on the heap.
#[inline]
pub fn may_allocate(data_type: DataType) -> bool {
    matches!(data_type.family(), Family::Text | Family::Bytea) || data_type.is_wide_numeric()
}

/// The columns, of those with these types, whose values may be on the heap.
pub fn long_columns(types: &[DataType]) -> ColumnMask {
    let is_long = |&(_, &data_type): &(usize, &DataType)| may_allocate(data_type);
    types.iter().enumerate().filter(is_long).map(|(at, _)| ColumnId(at as u8)).collect()
}

/// Reads a slot that is not null.
///
/// # Safety
/// The slot was filled by [`store`] with this type, and neither it nor what it points to is freed or
/// overwritten during `'a`.
#[inline]
pub unsafe fn load<'a>(slot: &'a AtomicU64, data_type: DataType) -> Datum<'a> {
    let word = slot.load(Relaxed);
    match data_type {
        DataType::Boolean => Datum::Boolean(word != 0),
        DataType::SmallInt | DataType::Int | DataType::BigInt | DataType::Date | DataType::Timestamp => {
            Datum::Int(word as i64)
        }
        DataType::Double => Datum::Double(f64::from_bits(word)),
        DataType::Numeric { .. } if data_type.is_wide_numeric() => {
            // SAFETY: wide numerics are always 16 bytes on the heap.
            let bytes = unsafe { heap_bytes(word) };
            Datum::Numeric(i128::from_ne_bytes(bytes.try_into().expect("sixteen bytes")))
        }
        DataType::Numeric { .. } => Datum::Numeric((word as i64).into()),
        DataType::Text { .. } | DataType::Char { .. } => {
            // SAFETY: text slots hold what `store` was given, a `str`.
            Datum::Text(unsafe { std::str::from_utf8_unchecked(load_bytes(slot, word)) })
        }
        // SAFETY: the slot was stored from bytes, as whoever gives the type sees to.
        DataType::Bytea => Datum::Bytes(unsafe { load_bytes(slot, word) }),
    }
}

/// # Safety
/// As [`load`], for a text or bytea slot whose content is `word`.
unsafe fn load_bytes(slot: &AtomicU64, word: u64) -> &[u8] {
    if word & 1 == 1 {
        let len = (word & 0xff) as usize >> 1;
        // SAFETY: the bytes are inside the slot itself, after the first (little-endian) byte.
        unsafe { std::slice::from_raw_parts(slot.as_ptr().cast::<u8>().add(1), len) }
    } else {
        // SAFETY: even words are heap addresses.
        unsafe { heap_bytes(word) }
    }
}

/// # Safety
/// `word` is the address of a live heap block.
unsafe fn heap_bytes<'a>(word: u64) -> &'a [u8] {
    let base = word as *const u8;
    // SAFETY: a block begins with its length.
    unsafe {
        let len = base.cast::<u64>().read() as usize;
        std::slice::from_raw_parts(base.add(8), len)
    }
}

/// Whether a slot, of a type whose values may be long, refers to a block (or to what is beside it).
#[inline]
pub fn is_long(word: u64) -> bool {
    word != 0 && word & 1 == 0
}

fn allocate(bytes: &[u8]) -> u64 {
    let base = block::take(8 + bytes.len());
    // SAFETY: the block is that long, and ours alone.
    unsafe { write_bytes(base, bytes) }
}

/// # Safety
/// `base` has room for the bytes and their length, and is the caller's alone until the slot is read.
unsafe fn write_bytes(base: NonNull<u8>, bytes: &[u8]) -> u64 {
    // SAFETY: there is room, and nobody else reads it yet, as whoever calls this sees to.
    unsafe {
        base.cast::<u64>().write(bytes.len() as u64);
        base.add(8).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
    }
    base.as_ptr() as u64
}

/// How many bytes a datum takes beside its slot, in whole words; 0 if it fits in.
#[inline]
pub fn bytes_beside(datum: Datum<'_>, data_type: DataType) -> usize {
    let bytes = match datum {
        Datum::Text(v) => v.len(),
        Datum::Bytes(v) => v.len(),
        Datum::Numeric(_) if data_type.is_wide_numeric() => 16,
        _ => 0,
    };
    if bytes > INLINE_BYTES { 8 + bytes.next_multiple_of(8) } else { 0 }
}

/// Stores a datum that takes bytes beside its slot: these, at a place that the slot does not own.
///
/// # Safety
/// There is room for [`bytes_beside`], aligned to words and the caller's alone until the slot is read; it lasts as long
/// as the slot.
#[inline]
pub unsafe fn store_beside(datum: Datum<'_>, place: NonNull<u8>) -> u64 {
    // SAFETY: there is room, and nobody else reads it yet, as whoever calls this sees to.
    unsafe {
        match datum {
            Datum::Text(v) => write_bytes(place, v.as_bytes()),
            Datum::Bytes(v) => write_bytes(place, v),
            Datum::Numeric(v) => write_bytes(place, &v.to_ne_bytes()),
            _ => unreachable!("other values fit in their slots"),
        }
    }
}

/// Frees the heap block of a slot that [`is_long`].
///
/// # Safety
/// No one reads the block any more, and it is freed once.
pub unsafe fn free(word: u64) {
    let Some(base) = NonNull::new(word as *mut u8) else { return };
    // SAFETY: taken above with this size.
    unsafe { block::give(base, 8 + base.cast::<u64>().read() as usize) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_representation_round_trips() {
        let cases: &[(Datum<'_>, DataType)] = &[
            (Datum::Boolean(true), DataType::Boolean),
            (Datum::Int(-5), DataType::SmallInt),
            (Datum::Int(i64::MIN), DataType::BigInt),
            (Datum::Double(-0.5), DataType::Double),
            (Datum::Numeric(-12345), DataType::Numeric { precision: 12, scale: 2 }),
            (Datum::Numeric(10i128.pow(37)), DataType::Numeric { precision: 38, scale: 2 }),
            (Datum::Text(""), DataType::TEXT),
            (Datum::Text("1234567"), DataType::TEXT),
            (Datum::Text("12345678"), DataType::TEXT),
            (Datum::Bytes(&[0; 300]), DataType::Bytea),
        ];
        for &(datum, data_type) in cases {
            let word = store(datum, data_type);
            let slot = AtomicU64::new(word);
            // SAFETY: just stored, freed below.
            assert_eq!(unsafe { load(&slot, data_type) }, datum);
            if may_allocate(data_type) && is_long(word) {
                // SAFETY: nothing refers to it any more.
                unsafe { free(word) };
            }
        }
    }
}
