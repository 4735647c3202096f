//! Writing encoded arguments.

use crate::ir::ScalarType;
use fabius_value::Datum;

/// Writes arguments whose types the caller knows, without going through [`Value`](fabius_value::Value)s.
///
/// The caller writes each parameter in order, in the representation of its type: nothing is checked
/// here, and what does not fit is refused when the call is decoded.
///
/// ```
/// use fabius_program::arguments::ArgumentWriter;
/// let mut bytes = Vec::new();
/// let mut writer = ArgumentWriter::new(&mut bytes);
/// writer.int(7).null_or(Some("rent"), |writer, memo| writer.text(memo)).list(1).int(1).numeric(250);
/// assert_eq!(bytes, [0x0e, 1, 4, b'r', b'e', b'n', b't', 1, 2, 0xf4, 3]);
/// ```
pub struct ArgumentWriter<'b> {
    bytes: &'b mut Vec<u8>,
}

impl<'b> ArgumentWriter<'b> {
    /// Appends to `bytes`.
    pub fn new(bytes: &'b mut Vec<u8>) -> ArgumentWriter<'b> {
        ArgumentWriter { bytes }
    }

    /// A `smallint`, `int`, `bigint`, `date` (days) or `timestamp` (microseconds).
    #[inline]
    pub fn int(&mut self, value: i64) -> &mut Self {
        self.varint((value << 1 ^ value >> 63) as u64)
    }

    /// A `numeric`, as its value times ten to its type's scale.
    pub fn numeric(&mut self, mantissa: i128) -> &mut Self {
        let mut rest = (mantissa << 1 ^ mantissa >> 127) as u128;
        while rest > u128::from(u64::MAX >> 1) {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.varint(rest as u64)
    }

    /// A `boolean`.
    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.bytes.push(value.into());
        self
    }

    /// A `double precision`.
    pub fn double(&mut self, value: f64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `text`, `varchar` or `char` (the latter without trailing blanks).
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// A `bytea`.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    /// A value of a nullable type, written by `write` if it is there.
    pub fn null_or<T>(
        &mut self,
        value: Option<T>,
        write: impl FnOnce(&mut Self, T) -> &mut Self,
    ) -> &mut Self {
        match value {
            Some(value) => write(self.present(), value),
            None => self.null(),
        }
    }

    /// Null, of a nullable type.
    pub fn null(&mut self) -> &mut Self {
        self.bytes.push(0);
        self
    }

    /// Says that the value of a nullable type follows.
    pub fn present(&mut self) -> &mut Self {
        self.bytes.push(1);
        self
    }

    /// Starts a list of this many rows; their values follow, row by row.
    pub fn list(&mut self, rows: usize) -> &mut Self {
        self.varint(rows as u64)
    }

    /// A value of a type, null if that is allowed.
    pub fn scalar(&mut self, scalar: ScalarType, datum: Datum<'_>) -> &mut Self {
        match (scalar.nullable, datum.is_null()) {
            (true, true) => self.null(),
            (true, false) => self.present().datum(datum),
            (false, _) => self.datum(datum),
        }
    }

    /// A value that is not null, in its representation.
    pub(super) fn datum(&mut self, datum: Datum<'_>) -> &mut Self {
        match datum {
            Datum::Null => unreachable!("nulls are written as absence"),
            Datum::Boolean(v) => self.boolean(v),
            Datum::Int(v) => self.int(v),
            Datum::Numeric(v) => self.numeric(v),
            Datum::Double(v) => self.double(v),
            Datum::Text(v) => self.text(v),
            Datum::Bytes(v) => self.bytes(v),
        }
    }

    #[inline]
    fn varint(&mut self, value: u64) -> &mut Self {
        match value {
            0..0x80 => self.bytes.push(value as u8),
            _ => self.wide_varint(value),
        }
        self
    }

    /// A number of several bytes: all of them at once if they are at most eight.
    #[inline(never)]
    fn wide_varint(&mut self, value: u64) {
        if value >> 56 > 0 {
            return self.long_varint(value);
        }
        let fours = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
        let pairs = fours & 0x0000_3fff_0000_3fff | (fours & 0x0fff_c000_0fff_c000) << 2;
        let word = pairs & 0x007f_007f_007f_007f | (pairs & 0x3f80_3f80_3f80_3f80) << 1;
        let before = word.ilog2() / 8;
        let goes_on = 0x8080_8080_8080_8080 & ((1 << (8 * before)) - 1);
        let end = self.bytes.len() + before as usize + 1;
        self.bytes.extend_from_slice(&(word | goes_on).to_le_bytes());
        self.bytes.truncate(end);
    }

    #[cold]
    fn long_varint(&mut self, mut rest: u64) {
        while rest > 0x7f {
            self.bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
    }
}
