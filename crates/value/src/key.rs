//! The order-preserving byte form of a key.
//!
//! Comparing two keys of one index as unsigned bytes gives their SQL order, column by column:
//!
//! | type | bytes |
//! |---|---|
//! | boolean | one: 0 or 1 |
//! | smallint, int, bigint, date, timestamp | 2, 4, 8, 4, 8, big-endian, sign bit flipped |
//! | numeric | 8 (precision to 18) or 16, likewise |
//! | double precision | 8: sign flipped if positive, all flipped if negative; -0 is 0 |
//! | text, bytea | the bytes, 00 written as 00 FF, ended by 00 00 |
//!
//! In a nullable column a byte comes first: 0 for a value, 1 for null (nulls sort last, as in
//! PostgreSQL). A secondary index appends the primary key, so its entries are unique. The first
//! columns of a key are a byte prefix of it: a scan over equal leading columns is a prefix scan.

use crate::{DataType, Datum, Error, IndexId, Result, SqlState, TableSchema, Value, limit};
use std::fmt;

/// Keys up to this many bytes live inside [`Key`]; longer ones on the heap.
pub const INLINE_BYTES: usize = 64;

/// An encoded key: a short byte string, zero-padded in place so that it can be read as words.
#[derive(Clone)]
pub struct Key {
    inline: [u8; INLINE_BYTES],
    len: usize,
    spill: Vec<u8>,
}

impl Default for Key {
    fn default() -> Key {
        Key { inline: [0; INLINE_BYTES], len: 0, spill: Vec::new() }
    }
}

impl Key {
    /// An empty key, to push columns on.
    pub fn new() -> Key {
        Key::default()
    }

    /// Back to empty, keeping any heap space.
    #[inline]
    pub fn clear(&mut self) {
        // A word at a time: keys are short, and a call to fill a few bytes costs more than they do.
        let words = self.len.min(INLINE_BYTES).div_ceil(8);
        self.inline.as_chunks_mut::<8>().0[..words].iter_mut().for_each(|word| *word = [0; 8]);
        self.len = 0;
        self.spill.clear();
    }

    /// The encoded bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        if self.len <= INLINE_BYTES { &self.inline[..self.len] } else { &self.spill }
    }

    /// The first `W` words, big-endian, zero-padded. Complete if the key has at most `8 * W` bytes.
    #[inline]
    pub fn words<const W: usize>(&self) -> [u64; W] {
        std::array::from_fn(|at| u64::from_be_bytes(self.inline.as_chunks::<8>().0[at]))
    }

    /// A well-mixed 64-bit hash of the bytes.
    #[inline]
    pub fn hash(&self) -> u64 {
        match self.len {
            0..=8 => hash_word(self.words::<1>()[0], self.len),
            9..=INLINE_BYTES => {
                let words = &self.inline.as_chunks::<8>().0[..self.len.div_ceil(8)];
                hash_words(self.len, words.iter().copied().map(u64::from_be_bytes))
            }
            _ => {
                let (words, rest) = self.spill.as_chunks::<8>();
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                let last = (!rest.is_empty()).then_some(last);
                hash_words(self.len, words.iter().copied().chain(last).map(u64::from_be_bytes))
            }
        }
    }

    /// Appends one column.
    ///
    /// # Errors
    /// `54000` if the key grows beyond [`limit::KEY_BYTES`].
    #[inline(always)]
    pub fn push(&mut self, datum: Datum<'_>, data_type: DataType, nullable: bool) -> Result<()> {
        if nullable {
            self.put([datum.is_null().into()]);
        }
        match (datum, data_type) {
            (Datum::Int(v), DataType::Int | DataType::Date) => {
                self.put((v as u32 ^ 1 << 31).to_be_bytes());
            }
            (Datum::Int(v), DataType::SmallInt) => self.put((v as u16 ^ 1 << 15).to_be_bytes()),
            (Datum::Int(v), _) => self.put((v as u64 ^ 1 << 63).to_be_bytes()),
            _ => self.push_other(datum, data_type),
        }
        if self.len > limit::KEY_BYTES { Err(too_long()) } else { Ok(()) }
    }

    /// Appends what is no integer.
    #[inline(never)]
    fn push_other(&mut self, datum: Datum<'_>, data_type: DataType) {
        match datum {
            Datum::Null => {}
            Datum::Int(_) => unreachable!("integers are appended where they come"),
            Datum::Boolean(v) => self.put([v.into()]),
            Datum::Numeric(v) if data_type.is_wide_numeric() => {
                self.put((v as u128 ^ 1 << 127).to_be_bytes());
            }
            Datum::Numeric(v) => self.put((v as i64 as u64 ^ 1 << 63).to_be_bytes()),
            Datum::Double(v) => {
                // There is one zero, and one NaN, which is the greatest.
                let bits = if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() };
                let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
                self.put((bits ^ flip).to_be_bytes());
            }
            Datum::Text(v) => self.extend_escaped(v.as_bytes()),
            Datum::Bytes(v) => self.extend_escaped(v),
        }
    }

    /// Appends a few bytes: one store while the key is short.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let end = self.len + N;
        match self.inline.get_mut(self.len..end) {
            Some(place) => {
                place.copy_from_slice(&bytes);
                self.len = end;
            }
            None => self.extend(&bytes),
        }
    }

    /// Appends bytes that are encoded already, such as another key.
    pub fn extend(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end <= INLINE_BYTES {
            self.inline[self.len..end].copy_from_slice(bytes);
        } else {
            if self.len <= INLINE_BYTES {
                self.spill.clear();
                self.spill.extend_from_slice(&self.inline[..self.len]);
                // The inline part goes on serving as the first words.
                let head = INLINE_BYTES - self.len;
                self.inline[self.len..].copy_from_slice(&bytes[..head]);
            }
            self.spill.extend_from_slice(bytes);
        }
        self.len = end;
    }

    fn extend_escaped(&mut self, bytes: &[u8]) {
        for (at, part) in bytes.split(|&byte| byte == 0).enumerate() {
            if at > 0 {
                self.extend(&[0, 0xff]);
            }
            self.extend(part);
        }
        self.extend(&[0, 0]);
    }

    /// The smallest key above every key that starts with these bytes; `None` if there is none.
    pub fn prefix_end(&self) -> Option<Key> {
        let bytes = self.bytes();
        let last = bytes.iter().rposition(|&byte| byte != 0xff)?;
        let mut end = Key::new();
        end.extend(&bytes[..last]);
        end.extend(&[bytes[last] + 1]);
        Some(end)
    }
}

/// The most bytes that keys over these columns can have; `None` without a bound.
pub fn width_bound<'a>(columns: impl IntoIterator<Item = (&'a DataType, bool)>) -> Option<usize> {
    columns.into_iter().try_fold(0usize, |sum, (data_type, nullable)| {
        let bytes = match data_type {
            DataType::Boolean => 1,
            DataType::SmallInt => 2,
            DataType::Int | DataType::Date => 4,
            DataType::BigInt | DataType::Timestamp | DataType::Double => 8,
            DataType::Numeric { .. } => 8 + 8 * usize::from(data_type.is_wide_numeric()),
            DataType::Text { .. } | DataType::Char { .. } | DataType::Bytea => return None,
        };
        Some(sum + bytes + usize::from(nullable))
    })
}

/// How many bytes the first columns of a key have, none of them nullable, that have these types; `None` if it has fewer
/// columns.
pub fn prefix_bytes<'a>(bytes: &[u8], types: impl IntoIterator<Item = &'a DataType>) -> Option<usize> {
    let mut at = 0;
    for data_type in types {
        at += match width_bound([(data_type, false)]) {
            Some(width) => width,
            // Within the value 00 stands before FF only.
            None => bytes.get(at..)?.windows(2).position(|pair| pair == [0, 0])? + 2,
        };
    }
    (at <= bytes.len()).then_some(at)
}

/// The values of a key whose columns, none of them nullable, have these types; `None` if it is not one.
pub fn decode(mut bytes: &[u8], types: &[DataType]) -> Option<Vec<Value>> {
    let mut values = Vec::with_capacity(types.len());
    for &data_type in types {
        values.push(match data_type {
            DataType::Boolean => Value::Boolean(take::<1>(&mut bytes)?[0] != 0),
            DataType::SmallInt => {
                Datum::Int((u16::from_be_bytes(take(&mut bytes)?) ^ 1 << 15).cast_signed().into())
                    .to_value(data_type)
            }
            DataType::Int | DataType::Date => {
                Datum::Int((u32::from_be_bytes(take(&mut bytes)?) ^ 1 << 31).cast_signed().into())
                    .to_value(data_type)
            }
            DataType::BigInt | DataType::Timestamp => {
                Datum::Int((u64::from_be_bytes(take(&mut bytes)?) ^ 1 << 63).cast_signed())
                    .to_value(data_type)
            }
            DataType::Numeric { .. } if data_type.is_wide_numeric() => {
                Datum::Numeric((u128::from_be_bytes(take(&mut bytes)?) ^ 1 << 127).cast_signed())
                    .to_value(data_type)
            }
            DataType::Numeric { .. } => {
                let number = (u64::from_be_bytes(take(&mut bytes)?) ^ 1 << 63).cast_signed();
                Datum::Numeric(number.into()).to_value(data_type)
            }
            DataType::Double => {
                let bits = u64::from_be_bytes(take(&mut bytes)?);
                let flip = if bits >> 63 == 1 { 1 << 63 } else { u64::MAX };
                Value::Double(f64::from_bits(bits ^ flip))
            }
            DataType::Text { .. } | DataType::Char { .. } => {
                Value::Text(String::from_utf8(take_escaped(&mut bytes)?).ok()?)
            }
            DataType::Bytea => Value::Bytea(take_escaped(&mut bytes)?),
        });
    }
    bytes.is_empty().then_some(values)
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

/// Bytes in which 00 is written as 00 FF, up to 00 00.
fn take_escaped(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    loop {
        match *bytes {
            [0, 0xff, rest @ ..] => {
                value.push(0);
                *bytes = rest;
            }
            [0, 0, rest @ ..] => {
                *bytes = rest;
                return Some(value);
            }
            [byte, rest @ ..] => {
                value.push(*byte);
                *bytes = rest;
            }
            [] => return None,
        }
    }
}

/// One round of multiply-fold mixing (the core of wyhash).
#[inline]
fn mix(word: u64, salt: u64) -> u64 {
    let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(salt ^ 0xd6e8_feb8_6659_fd93 | 1);
    product as u64 ^ (product >> 64) as u64
}

/// Of a key of `len` bytes, at most eight: a word, padded with zeros.
#[inline]
pub(crate) fn hash_word(word: u64, len: usize) -> u64 {
    mix(word, len as u64)
}

/// Of a key of `len` bytes, more than eight; the last word padded with zeros.
#[inline]
pub(crate) fn hash_words(len: usize, words: impl Iterator<Item = u64>) -> u64 {
    words.fold(mix(len as u64, 1), |hash, word| mix(word ^ hash, 0x2545_f491_4f6c_dd1d))
}

/// The error for a key whose columns together are too long.
#[cold]
pub fn too_long() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT, "key too long")
        .with_detail(format!("its columns together have more than {} bytes", limit::KEY_BYTES))
        .with_hint(SHORTER)
}

/// The error for a row's key that is too long for an index once the primary key is appended.
#[cold]
pub fn entry_too_long(table: &TableSchema, index: IndexId) -> Error {
    let index = &table.indexes[usize::from(index.0)].name;
    let message = format!("index key too long for {index}, an index of {}", table.name);
    let detail =
        format!("the index's columns and the primary key together have more than {} bytes", limit::KEY_BYTES);
    Error::new(SqlState::PROGRAM_LIMIT, message).with_detail(detail).with_hint(SHORTER)
}

/// What to do about long keys.
const SHORTER: &str = "keep what is long in a column of its own, and let the key have a part or a hash of it: \
                       left(text, 100), md5(text)";

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(datum: Datum<'_>, data_type: DataType) -> Key {
        let mut key = Key::new();
        key.push(datum, data_type, false).unwrap();
        key
    }

    proptest! {
        #[test]
        fn byte_order_is_sql_order(a: i64, b: i64, x: f64, y: f64, s in ".{0,40}", t in ".{0,40}",
                                   p in proptest::collection::vec(0u8..3, 0..90),
                                   q in proptest::collection::vec(0u8..3, 0..90)) {
            let int = |v| encode(Datum::Int(v), DataType::BigInt);
            prop_assert_eq!(int(a).cmp(&int(b)), a.cmp(&b));
            let double = |v| encode(Datum::Double(v), DataType::Double);
            prop_assert_eq!(double(x).partial_cmp(&double(y)), x.partial_cmp(&y));
            let text = |v| encode(Datum::Text(v), DataType::TEXT);
            prop_assert_eq!(text(&s).cmp(&text(&t)), s.cmp(&t));
            let bytes = |v| encode(Datum::Bytes(v), DataType::Bytea);
            prop_assert_eq!(bytes(&p).cmp(&bytes(&q)), p.cmp(&q));
            // Words agree with bytes on the first 64.
            prop_assert!(bytes(&p).words::<8>().cmp(&bytes(&q).words::<8>()) != p.cmp(&q).reverse() || p == q);
        }
    }

    /// Goal: there is one zero, and one not-a-number, above all others.
    #[test]
    fn doubles_that_are_equal_have_one_key() {
        let double = |v| encode(Datum::Double(v), DataType::Double);
        assert_eq!(double(0.0), double(-0.0));
        assert_eq!(double(f64::NAN), double(-f64::NAN));
        assert!(double(-f64::NAN) > double(f64::INFINITY));
    }

    #[test]
    fn columns_end_where_the_next_ones_begin() {
        let columns = [(Datum::Int(1), DataType::Int), (Datum::Text("a\0b\0"), DataType::TEXT)];
        let last = (Datum::Int(i64::MIN), DataType::BigInt);
        let mut key = Key::new();
        let mut ends = vec![0];
        for (datum, data_type) in columns.into_iter().chain([last]) {
            key.push(datum, data_type, false).unwrap();
            ends.push(key.bytes().len());
        }
        let types = [DataType::Int, DataType::TEXT, DataType::BigInt];
        for count in 0..=3 {
            assert_eq!(prefix_bytes(key.bytes(), &types[..count]), Some(ends[count]));
        }
        assert_eq!(prefix_bytes(&key.bytes()[..ends[1]], &types[..2]), None);
    }

    #[test]
    fn a_prefix_end_bounds_its_prefix() {
        let mut key = Key::new();
        key.extend(&[1, 0xff, 0xff]);
        assert_eq!(key.prefix_end().unwrap().bytes(), [2]);
        let mut top = Key::new();
        top.extend(&[0xff]);
        assert!(top.prefix_end().is_none());
    }

    /// Goal: what was encoded is decoded again, and nothing else is.
    #[test]
    fn keys_are_decoded() {
        let columns = [
            (DataType::Boolean, Value::Boolean(true)),
            (DataType::SmallInt, Value::SmallInt(-3)),
            (DataType::Int, Value::Int(i32::MIN)),
            (DataType::BigInt, Value::BigInt(-1)),
            (DataType::Date, Value::Date(20_000)),
            (DataType::Timestamp, Value::Timestamp(-5)),
            (
                DataType::Numeric { precision: 9, scale: 2 },
                Value::Numeric(crate::Decimal { mantissa: -150, scale: 2 }),
            ),
            (
                DataType::Numeric { precision: 30, scale: 1 },
                Value::Numeric(crate::Decimal { mantissa: 7, scale: 1 }),
            ),
            (DataType::Double, Value::Double(-2.5)),
            (DataType::Double, Value::Double(2.5)),
            (DataType::Text { limit: None }, Value::Text("a\0b".into())),
            (DataType::Bytea, Value::Bytea(vec![0, 0xff, 0, 0])),
        ];
        let types: Vec<DataType> = columns.iter().map(|column| column.0).collect();
        let values: Vec<Value> = columns.iter().map(|column| column.1.clone()).collect();
        let mut key = Key::new();
        for (data_type, value) in &columns {
            key.push(Datum::from_value(value), *data_type, false).unwrap();
        }
        assert_eq!(decode(key.bytes(), &types), Some(values));
        assert_eq!(decode(&key.bytes()[..key.bytes().len() - 1], &types), None);
        assert_eq!(decode(&[0, 1], &[DataType::Text { limit: None }]), None);
    }
}
