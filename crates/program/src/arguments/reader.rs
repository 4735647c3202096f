//! Reading encoded arguments, whatever the bytes are.

use super::{EncodedType, INVALID_ENCODING, check_date};
use crate::ir::ScalarType;
use crate::operation::arithmetic::Digits;
use fabius_value::value::{check_blob, fit_text};
use fabius_value::{DataType, Datum, Error, Result};

/// Reads encoded arguments one parameter at a time; also rows, whose columns are written the same way.
pub struct ArgumentReader<'a> {
    rest: &'a [u8],
}

impl<'a> ArgumentReader<'a> {
    /// Reads from the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> ArgumentReader<'a> {
        ArgumentReader { rest: bytes }
    }

    /// How many bytes are left.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    /// One scalar argument or field.
    ///
    /// # Errors
    /// [`INVALID_ENCODING`] if the bytes that follow are not a value of the type.
    #[inline]
    pub fn scalar(&mut self, scalar: ScalarType) -> Result<Datum<'a>> {
        if scalar.nullable && !self.boolean()? {
            return Ok(Datum::Null);
        }
        let data_type = scalar.data_type;
        match data_type {
            DataType::BigInt | DataType::Timestamp => self.integer().map(Datum::Int),
            DataType::Int => self.integer().and_then(|v| fitting(v, i32::try_from(v).is_ok(), data_type)),
            DataType::SmallInt => {
                self.integer().and_then(|v| fitting(v, i16::try_from(v).is_ok(), data_type))
            }
            DataType::Date => {
                let date = Datum::Int(self.integer()?);
                check_date(data_type, date)?;
                Ok(date)
            }
            DataType::Numeric { precision, scale } => {
                let mantissa = self.wide_varint()?;
                let mantissa = (mantissa >> 1) as i128 ^ -((mantissa & 1) as i128);
                match (Digits { precision, scale }).fit(Some(mantissa)) {
                    Ok(mantissa) => Ok(Datum::Numeric(mantissa)),
                    Err(_) => Err(outside(data_type)),
                }
            }
            DataType::Boolean => self.boolean().map(Datum::Boolean),
            DataType::Double => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(cut_short)?;
                self.rest = rest;
                Ok(Datum::Double(f64::from_le_bytes(*bytes)))
            }
            DataType::Text { .. } | DataType::Char { .. } => {
                let text =
                    std::str::from_utf8(self.blob()?).map_err(|_| invalid("text that is not UTF-8"))?;
                match fit_text(text, data_type) {
                    Ok(fitted) if fitted.len() == text.len() => Ok(Datum::Text(text)),
                    _ => Err(invalid(format!("text that is not a {data_type}"))),
                }
            }
            DataType::Bytea => self.blob().map(Datum::Bytes),
        }
    }

    /// Rows of values of these types: appends them, row by row.
    #[inline]
    pub(crate) fn rows(
        &mut self,
        fields: &[EncodedType],
        rows: usize,
        values: &mut Vec<Datum<'a>>,
    ) -> Result<()> {
        self.rows_from(fields, rows, values, |_| {})
    }

    /// Rows of values of these types, appended row by row; `begin` is told of each how many bytes are left where it
    /// begins.
    #[inline]
    pub(crate) fn rows_from(
        &mut self,
        fields: &[EncodedType],
        rows: usize,
        values: &mut Vec<Datum<'a>>,
        mut begin: impl FnMut(usize),
    ) -> Result<()> {
        // Every field takes a byte at least, so a false count allocates no more than the bytes did.
        let total =
            rows.checked_mul(fields.len()).filter(|total| *total <= self.rest.len() && !fields.is_empty());
        match total {
            Some(total) => values.reserve(total),
            None if rows == 0 => {}
            None => return Err(cut_short()),
        }
        for _ in 0..rows {
            begin(self.rest.len());
            fields.iter().try_for_each(|field| self.field(field, |value| values.push(value)))?;
        }
        Ok(())
    }

    /// Hands a value of one of these types on. (A datum that is made here and copied elsewhere would have to wait for
    /// the stores that made it.)
    #[inline(always)]
    pub(crate) fn field(&mut self, field: &EncodedType, mut to: impl FnMut(Datum<'a>)) -> Result<()> {
        let Some((low, high)) = field.integers else { return self.scalar(field.scalar).map(to) };
        let value = match self.short_varint() {
            Some(value) => zigzag(value),
            None => self.integer()?,
        };
        if value < low || value > high {
            return Err(outside(field.scalar.data_type));
        }
        to(Datum::Int(value));
        Ok(())
    }

    /// Passes over a value of one of these types; what is wrong with it may go unnoticed.
    #[inline(always)]
    pub(crate) fn skip(&mut self, field: &EncodedType) -> Result<()> {
        if field.integers.is_some()
            && let Some(word) = self.rest.first_chunk()
            && let ends = ends(u64::from_le_bytes(*word))
            && ends != 0
        {
            self.rest = &self.rest[ends.trailing_zeros() as usize / 8 + 1..];
            return Ok(());
        }
        self.scalar(field.scalar).map(drop)
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`INVALID_ENCODING`] if there is.
    pub fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(invalid(format!("{} bytes too many", self.rest.len())))
        }
    }

    fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.rest.split_first().ok_or_else(cut_short)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn boolean(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(invalid(format!("a boolean that is {other}"))),
        }
    }

    #[inline]
    fn integer(&mut self) -> Result<i64> {
        self.varint().map(zigzag)
    }

    /// The number of rows of a list, which follow.
    ///
    /// # Errors
    /// [`INVALID_ENCODING`](super::INVALID_ENCODING) if the bytes end here.
    pub fn length(&mut self) -> Result<usize> {
        self.varint().and_then(|v| usize::try_from(v).map_err(|_| cut_short()))
    }

    fn blob(&mut self) -> Result<&'a [u8]> {
        let length = self.length()?;
        let (blob, rest) = self.rest.split_at_checked(length).ok_or_else(cut_short)?;
        check_blob(length)?;
        self.rest = rest;
        Ok(blob)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok((*byte).into())
            }
            [first, second, rest @ ..] if *second < 0x80 && *second > 0 => {
                self.rest = rest;
                Ok(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            [first, second, third, rest @ ..] if *second >= 0x80 && *third < 0x80 && *third > 0 => {
                self.rest = rest;
                Ok(u64::from(*first & 0x7f) | u64::from(*second & 0x7f) << 7 | u64::from(*third) << 14)
            }
            _ => match self.word_varint() {
                Some(value) => Ok(value),
                None => self.wide_varint().and_then(|v| u64::try_from(v).map_err(|_| overlong())),
            },
        }
    }

    /// A number of one byte, or of at most eight if as many are left.
    #[inline(always)]
    fn short_varint(&mut self) -> Option<u64> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Some((*byte).into())
            }
            _ => self.word_varint(),
        }
    }

    /// A number of at most eight bytes, in its shortest form, if as many are left.
    #[inline]
    fn word_varint(&mut self) -> Option<u64> {
        let word = u64::from_le_bytes(*self.rest.first_chunk()?);
        let ends = ends(word);
        if ends == 0 {
            return None;
        }
        // The bits up to the end of the number, of which each byte has seven.
        let bits = ends.trailing_zeros() + 1;
        let word = word << (u64::BITS - bits) >> (u64::BITS - bits);
        if word >> (bits - 8) == 0 {
            return None;
        }
        self.rest = &self.rest[bits as usize / 8..];
        let pairs = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
        let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
        Some(fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4)
    }

    fn wide_varint(&mut self) -> Result<u128> {
        // Up to eight bytes in 64 bits: the usual case by far.
        let mut short = 0u64;
        for (at, byte) in self.rest.iter().take(8).enumerate() {
            short |= u64::from(byte & 0x7f) << (7 * at);
            if *byte < 0x80 {
                if *byte == 0 && at > 0 {
                    return Err(overlong());
                }
                self.rest = &self.rest[at + 1..];
                return Ok(short.into());
            }
        }
        let mut value = 0u128;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return Err(overlong());
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(overlong())
    }
}

/// Which bytes of a word, the first one lowest, are the last of a number: their highest bits.
#[inline]
fn ends(word: u64) -> u64 {
    !word & 0x8080_8080_8080_8080
}

#[inline]
fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn fitting<'a>(value: i64, fits: bool, data_type: DataType) -> Result<Datum<'a>> {
    if fits { Ok(Datum::Int(value)) } else { Err(outside(data_type)) }
}

#[cold]
fn outside(data_type: DataType) -> Error {
    invalid(format!("a number outside {data_type}"))
}

#[cold]
fn invalid(what: impl Into<String>) -> Error {
    Error::new(INVALID_ENCODING, "malformed arguments").with_detail(what)
}

#[cold]
pub(super) fn cut_short() -> Error {
    invalid("the bytes end early")
}

#[cold]
fn overlong() -> Error {
    invalid("a number that is not in its shortest form, or too large")
}
