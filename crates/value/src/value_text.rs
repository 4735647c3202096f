//! Values from text, as PostgreSQL's input functions read it.

use crate::calendar::{self, DATE_RANGE};
use crate::moment_text::{self, DateOrder};
use crate::value::fit_text;
use crate::{DataType, Decimal, Error, Result, SqlState, Value, data_type::Family};

impl Value {
    /// Reads a value of `data_type` from its text, as PostgreSQL does where nothing is set; of days, those that
    /// programs compute with.
    ///
    /// # Errors
    /// `22P02` or `22007` for a text that is no such value, `22003`, `22008` or `22001` for one that is too large or
    /// too long, `22023` for hexadecimal digits that are none.
    pub fn parse(text: &str, data_type: DataType) -> Result<Value> {
        let name = input_name(data_type);
        let trimmed = text.trim();
        match data_type.family() {
            Family::Boolean => boolean(trimmed).map(Value::Boolean).ok_or_else(|| invalid(text, &name)),
            Family::Integer => {
                let wide = integer(text, &name)?;
                let fitted = wide.and_then(|wide| Value::BigInt(wide).cast(data_type).ok());
                fitted.ok_or_else(|| out_of_range(text, &name))
            }
            Family::Numeric => match Decimal::parse(trimmed) {
                Some(decimal) => Value::Numeric(decimal).cast(data_type),
                None => Err(no_numeric(text)),
            },
            Family::Double => double(text).map(Value::Double),
            Family::Text => fit_text(text, data_type).map(|text| Value::Text(text.into())),
            Family::Bytea => bytes(text).map(Value::Bytea),
            Family::Date => match moment_text::read_date(text, DateOrder::MonthDay) {
                Some(days) if (DATE_RANGE.0..=DATE_RANGE.1).contains(&days) => Ok(Value::Date(days)),
                Some(_) => Err(calendar::out_of_range("date")),
                None => Err(no_moment(text, &name)),
            },
            Family::Timestamp => match moment_text::read_timestamp(text, DateOrder::MonthDay) {
                Some(moment) => Ok(Value::Timestamp(moment)),
                None => Err(no_moment(text, &name)),
            },
        }
    }
}

/// A type as messages about its text name it: without digits.
fn input_name(data_type: DataType) -> String {
    match data_type {
        DataType::Numeric { .. } => "numeric".into(),
        DataType::Timestamp => "timestamp".into(),
        other => other.sql_name(),
    }
}

/// `22P02` for a text that is no value of a type.
pub fn invalid(text: &str, type_name: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type {type_name}: \"{text}\""))
}

/// Two hexadecimal digits.
pub fn write_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// The bytes of a UUID as digits in five groups.
pub fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        write_hex(*byte, out);
    }
}

/// `22P02` for a text that is no label of an enumeration.
pub fn no_label(text: &str, enumeration: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT, format!("invalid input value for enum {enumeration}: \"{text}\""))
}

/// `22003` for the text of a number that is too large for its type.
pub fn out_of_range(text: &str, type_name: &str) -> Error {
    Error::new(SqlState::OUT_OF_RANGE, format!("value \"{text}\" is out of range for type {type_name}"))
}

/// Why a text is no day or time: `22008` for one that has the digits of one, but not of one that there is; otherwise
/// `22007`.
pub fn no_moment(text: &str, type_name: &str) -> Error {
    let trimmed = text.trim();
    let has_digits = trimmed.bytes().all(|byte| byte.is_ascii_digit() || b"-/:. T+Z".contains(&byte));
    let fields = trimmed.split(['-', '/', ':']).count();
    let is_compact = trimmed.split([' ', 'T']).all(|word| matches!(word.len(), 6 | 8));
    if has_digits && (fields >= 3 || is_compact || fields == 2 && type_name == "time") {
        let message = format!("date/time field value out of range: \"{text}\"");
        return Error::new(SqlState::DATETIME_OVERFLOW, message);
    }
    Error::new(SqlState::INVALID_DATETIME, format!("invalid input syntax for type {type_name}: \"{text}\""))
}

/// Why a text is no numeric: `22P02`, or what numerics do not have here.
pub fn no_numeric(text: &str) -> Error {
    let trimmed = text.trim();
    let unsigned = trimmed.trim_start_matches(['+', '-']).to_ascii_lowercase();
    if unsigned == "nan" || unsigned == "inf" || unsigned == "infinity" {
        return Error::new(SqlState::NOT_SUPPORTED, "numeric values are finite here")
            .with_detail(format!("the value is \"{trimmed}\""));
    }
    let is_number =
        unsigned.parse::<f64>().is_ok() && unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if is_number { numeric_overflow() } else { invalid(text, "numeric") }
}

/// `22003` for a numeric beyond 38 digits.
pub fn numeric_overflow() -> Error {
    Error::new(SqlState::OUT_OF_RANGE, "value overflows numeric format")
        .with_detail("a numeric has at most 38 digits, those after the point included")
}

/// `true`, `yes`, `on`, `1`, or a beginning of one that is no other's.
fn boolean(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let begins = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if lower == "1" || begins("true", 1) || begins("yes", 1) || lower == "on" {
        return Some(true);
    }
    (lower == "0" || begins("false", 1) || begins("no", 1) || begins("off", 2)).then_some(false)
}

/// A whole number; `None` for one that no integer type has.
///
/// # Errors
/// `22P02`
pub fn integer(text: &str, type_name: &str) -> Result<Option<i64>> {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(text, type_name));
    }
    Ok(trimmed.parse().ok())
}

/// A binary64 number.
///
/// # Errors
/// `22P02`; `22003` for a number that would become infinite or zero.
fn double(text: &str) -> Result<f64> {
    float(text, "double precision", |value| value)
}

/// A binary32 number.
///
/// # Errors
/// `22P02`; `22003` for a number that would become infinite or zero.
pub fn real(text: &str) -> Result<f64> {
    float(text, "real", |value| f64::from(value as f32))
}

fn float(text: &str, type_name: &str, rounded: impl Fn(f64) -> f64) -> Result<f64> {
    let trimmed = text.trim();
    match trimmed.to_ascii_lowercase().as_str() {
        "infinity" | "inf" | "+infinity" | "+inf" => return Ok(f64::INFINITY),
        "-infinity" | "-inf" => return Ok(f64::NEG_INFINITY),
        "nan" => return Ok(f64::NAN),
        _ => {}
    }
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(invalid(text, type_name));
    }
    let value = rounded(trimmed.parse().map_err(|_| invalid(text, type_name))?);
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !mantissa.contains(|c: char| ('1'..='9').contains(&c));
    if value.is_infinite() || (value == 0.0 && !is_zero) {
        let message = format!("\"{trimmed}\" is out of range for type {type_name}");
        return Err(Error::new(SqlState::OUT_OF_RANGE, message));
    }
    Ok(value)
}

/// Bytes in hexadecimal (`\x...`), or escaped: as themselves, but for backslashes, which are doubled, and `\001`.
///
/// # Errors
/// `22023` for digits that are none, `22P02` for what is not escaped as it should be.
fn bytes(text: &str) -> Result<Vec<u8>> {
    let Some(digits) = text.strip_prefix("\\x") else {
        return escaped(text)
            .ok_or_else(|| Error::new(SqlState::INVALID_TEXT, "invalid input syntax for type bytea"));
    };
    let wrong = |message: String| Error::new(SqlState::INVALID_PARAMETER, message);
    let mut nibbles = Vec::with_capacity(digits.len());
    for digit in digits.chars() {
        // Blanks stand between bytes, not within them.
        if digit.is_ascii_whitespace() && nibbles.len().is_multiple_of(2) {
            continue;
        }
        let nibble = digit.to_digit(16);
        nibbles.push(nibble.ok_or_else(|| wrong(format!("invalid hexadecimal digit: \"{digit}\"")))? as u8);
    }
    if !nibbles.len().is_multiple_of(2) {
        return Err(wrong("invalid hexadecimal data: odd number of digits".into()));
    }
    Ok(nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn escaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        match bytes.next()? {
            b'\\' => out.push(b'\\'),
            first @ b'0'..=b'3' => {
                let octal = |digit: u8| (b'0'..=b'7').contains(&digit).then(|| digit - b'0');
                let (second, third) = (octal(bytes.next()?)?, octal(bytes.next()?)?);
                out.push((first - b'0') << 6 | second << 3 | third);
            }
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: values of each type, and what is none, as PostgreSQL tells them apart.
    #[test]
    fn texts_are_read() {
        let numeric = DataType::Numeric { precision: 10, scale: 2 };
        let cases: &[(&str, DataType, Result<&str, SqlState>)] = &[
            (" TRU ", DataType::Boolean, Ok("true")),
            ("of", DataType::Boolean, Ok("false")),
            ("o", DataType::Boolean, Err(SqlState::INVALID_TEXT)),
            ("+12", DataType::SmallInt, Ok("12")),
            ("32768", DataType::SmallInt, Err(SqlState::OUT_OF_RANGE)),
            ("99999999999999999999999", DataType::BigInt, Err(SqlState::OUT_OF_RANGE)),
            ("1.0", DataType::Int, Err(SqlState::INVALID_TEXT)),
            ("1.5e3", numeric, Ok("1500.00")),
            ("1e60", numeric, Err(SqlState::OUT_OF_RANGE)),
            ("NaN", numeric, Err(SqlState::NOT_SUPPORTED)),
            ("1x", numeric, Err(SqlState::INVALID_TEXT)),
            ("-inf", DataType::Double, Ok("-Infinity")),
            ("1e400", DataType::Double, Err(SqlState::OUT_OF_RANGE)),
            ("1e-400", DataType::Double, Err(SqlState::OUT_OF_RANGE)),
            ("0e-400", DataType::Double, Ok("0")),
            ("infinit", DataType::Double, Err(SqlState::INVALID_TEXT)),
            ("\\x0a FF", DataType::Bytea, Ok("\\x0aff")),
            ("a\\\\\\001", DataType::Bytea, Ok("\\x615c01")),
            ("\\x0", DataType::Bytea, Err(SqlState::INVALID_PARAMETER)),
            ("infinity", DataType::Date, Err(SqlState::DATETIME_OVERFLOW)),
            ("infinity", DataType::Timestamp, Ok("infinity")),
            ("2026-02-30", DataType::Date, Err(SqlState::DATETIME_OVERFLOW)),
            ("tomorrow", DataType::Date, Err(SqlState::INVALID_DATETIME)),
            ("1/2/2020 8:00", DataType::Timestamp, Ok("2020-01-02 08:00:00")),
        ];
        for (text, data_type, expected) in cases {
            let got = Value::parse(text, *data_type).map(|v| v.to_string()).map_err(|e| e.state());
            assert_eq!(got, expected.map(String::from), "{text:?} as {data_type}");
        }
        assert_eq!(real("1e39").unwrap_err().state(), SqlState::OUT_OF_RANGE);
    }
}
