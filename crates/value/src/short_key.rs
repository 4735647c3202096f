//! A key of a few whole numbers, encoded in two words.
//!
//! Most primary keys are of this kind. They are encoded, hashed and compared a good many times for each call, which
//! takes a few steps where no other kind of column has to be thought of.

use crate::key::{hash_word, hash_words};
use crate::{DataType, Datum};

/// Columns that such a key has, at most.
pub const COLUMNS_MAX: usize = 3;
/// Bytes that it has, at most.
const BYTES_MAX: usize = 16;

/// A key whose columns are whole numbers, as [`Key`](crate::Key) encodes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortKey {
    /// The encoded bytes from the highest on, zeros behind them.
    words: [u64; 2],
    bytes: u8,
}

/// The columns of a table whose keys are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortColumns {
    /// Bits of each column.
    bits: [u8; COLUMNS_MAX],
    count: u8,
    bits_total: u8,
}

impl ShortColumns {
    /// Key columns of these types, none of them nullable, if such keys are short.
    pub fn of(types: impl Iterator<Item = DataType>) -> Option<ShortColumns> {
        let mut columns = ShortColumns { bits: [0; COLUMNS_MAX], count: 0, bits_total: 0 };
        for data_type in types {
            let bits = match data_type {
                DataType::SmallInt => 16,
                DataType::Int | DataType::Date => 32,
                DataType::BigInt | DataType::Timestamp => 64,
                _ => return None,
            };
            *columns.bits.get_mut(usize::from(columns.count))? = bits;
            columns.count += 1;
            columns.bits_total += bits;
        }
        (1..=8 * BYTES_MAX).contains(&columns.bits_total.into()).then_some(columns)
    }

    /// The key with these values, if there is one for each column, and none is null.
    #[inline]
    pub fn key(&self, values: &[Datum<'_>]) -> Option<ShortKey> {
        if values.len() != usize::from(self.count) {
            return None;
        }
        if self.bits_total > 64 {
            return self.two_words(values);
        }
        let (mut all, mut used) = (0, 0);
        for (value, bits) in values.iter().zip(self.bits) {
            let Datum::Int(value) = value else { return None };
            all |= leading(*value, bits) >> used;
            used += bits;
        }
        Some(ShortKey { words: [all, 0], bytes: self.bits_total / 8 })
    }

    /// A key that one word has no room for.
    fn two_words(&self, values: &[Datum<'_>]) -> Option<ShortKey> {
        let (mut all, mut used) = (0u128, 0);
        for (value, bits) in values.iter().zip(self.bits) {
            let Datum::Int(value) = value else { return None };
            all |= u128::from(leading(*value, bits)) << 64 >> used;
            used += bits;
        }
        Some(ShortKey { words: [(all >> 64) as u64, all as u64], bytes: self.bits_total / 8 })
    }
}

/// A column's bits, the highest of a word, with the sign flipped.
#[inline]
fn leading(value: i64, bits: u8) -> u64 {
    (value as u64) << (64 - bits) ^ 1 << 63
}

impl ShortKey {
    /// The hash of [`Key::hash`](crate::Key::hash).
    #[inline]
    pub fn hash(&self) -> u64 {
        match self.bytes {
            0..=8 => hash_word(self.words[0], self.bytes.into()),
            _ => hash_words(self.bytes.into(), self.words.into_iter()),
        }
    }

    /// Whether these are its bytes.
    #[inline]
    pub fn has_bytes(&self, bytes: &[u8]) -> bool {
        if bytes.len() != usize::from(self.bytes) {
            return false;
        }
        if let Ok(word) = bytes.try_into() {
            return u64::from_be_bytes(word) == self.words[0];
        }
        let mut own = [0; BYTES_MAX];
        for (to, word) in own.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *to = word.to_be_bytes();
        }
        own[..bytes.len()] == *bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    /// Goal: a short key has the bytes and the hash of the key, whatever its columns are.
    #[test]
    fn short_keys_are_keys() {
        let types =
            [DataType::SmallInt, DataType::Int, DataType::BigInt, DataType::Date, DataType::Timestamp];
        let numbers = [0, 1, -1, 77, -300, i64::from(i16::MIN), i64::from(i16::MAX)];
        for columns in (1..=3).flat_map(|count| (0..125).map(move |code: usize| (count, code))) {
            let of = |at: usize| types[columns.1 / 5usize.pow(at as u32) % 5];
            let columns: Vec<DataType> = (0..columns.0).map(of).collect();
            let Some(short) = ShortColumns::of(columns.iter().copied()) else {
                assert!(
                    columns
                        .iter()
                        .filter(|of| **of == DataType::BigInt || **of == DataType::Timestamp)
                        .count()
                        > 1
                );
                continue;
            };
            for turn in 0..numbers.len() {
                let values: Vec<Datum<'_>> = (0..columns.len())
                    .map(|at| Datum::Int(numbers[(turn + 3 * at) % numbers.len()]))
                    .collect();
                let mut key = Key::new();
                for (value, data_type) in values.iter().zip(&columns) {
                    key.push(*value, *data_type, false).unwrap();
                }
                let short = short.key(&values).unwrap();
                assert_eq!(short.hash(), key.hash());
                assert!(short.has_bytes(key.bytes()));
                assert!(!short.has_bytes(&key.bytes()[1..]));
                let mut other = key.bytes().to_vec();
                *other.last_mut().unwrap() ^= 1;
                assert!(!short.has_bytes(&other));
            }
        }
        let short = ShortColumns::of([DataType::Int].into_iter()).unwrap();
        assert_eq!((short.key(&[Datum::Null]), short.key(&[])), (None, None));
        assert_eq!(ShortColumns::of([DataType::TEXT].into_iter()), None);
        assert_eq!(ShortColumns::of([DataType::SmallInt; 4].into_iter()), None);
    }
}
