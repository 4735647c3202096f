//! Values as PostgreSQL writes and reads them: casts, `COPY`, the wire's text format.
//!
//! | module | concept |
//! |---|---|
//! | `array_literal` | the elements of an array's text |
//! | `calendar` | days and moments to text and back, with time zones |
//! | [`interval`] | intervals to text and back |
//! | `read` | text to values |
//!
//! Values are in their storage types; the SQL type says how they look.

pub(crate) mod array_literal;
mod calendar;
mod read;

pub(crate) use calendar::Zone;
pub(crate) use read::{bytea, shown_json};
pub use read::{jsonb, read};

use crate::sql_type::{self, SqlType};
use chrono_tz::Tz;
use fabius_value::Value;
use std::io::Write;

/// In which order day, month and year are read where they do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// Month, day, year.
    #[default]
    MonthDay,
    /// Day, month, year.
    DayMonth,
    /// Year, month, day.
    Year,
}

/// How a session wants text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TextStyle {
    /// Of timestamps with time zone.
    pub zone: Tz,
    /// How ambiguous dates are read.
    pub order: DateOrder,
    /// `extra_float_digits`: from 1 on the shortest text that reads back as the same number.
    pub float_digits: i32,
    /// `bytea_output = escape`
    pub escapes_bytea: bool,
}

impl Default for TextStyle {
    fn default() -> TextStyle {
        TextStyle { zone: Tz::UTC, order: DateOrder::default(), float_digits: 1, escapes_bytea: false }
    }
}

impl TextStyle {
    /// From the values of `TimeZone`, `DateStyle`, `extra_float_digits`.
    pub fn new(zone: &str, date_style: &str, float_digits: i32, escapes_bytea: bool) -> TextStyle {
        let order = match date_style {
            style if style.ends_with("DMY") => DateOrder::DayMonth,
            style if style.ends_with("YMD") => DateOrder::Year,
            _ => DateOrder::MonthDay,
        };
        TextStyle { zone: calendar::zone(zone).unwrap_or(Tz::UTC), order, float_digits, escapes_bytea }
    }

    /// Whether moments are read and shown as where nothing is set.
    pub fn is_usual(&self) -> bool {
        self.is_utc() && self.order == DateOrder::MonthDay
    }

    /// Whether its time zone is UTC.
    pub fn is_utc(&self) -> bool {
        matches!(self.zone, Tz::UTC | Tz::Etc__UTC)
    }

    /// What its time zone is called at a moment: `CET`, `CEST`.
    pub fn zone_at(&self, moment: i64) -> String {
        calendar::abbreviation(moment, self.zone)
    }

    /// What the clock of its time zone shows at a moment; both in microseconds since 1970.
    pub fn local(&self, moment: i64) -> i64 {
        Zone::Named(self.zone).local(moment)
    }

    /// When the clock of its time zone shows this.
    pub fn moment(&self, local: i64) -> i64 {
        Zone::Named(self.zone).moment(local)
    }

    /// The name of a time zone as it is kept; `None` for one that is not known.
    pub fn zone_name(name: &str) -> Option<String> {
        calendar::zone(name).map(|zone| zone.name().to_string())
    }
}

/// Appends a value that is not null.
pub fn write(value: &Value, sql_type: &SqlType, style: &TextStyle, out: &mut Vec<u8>) {
    match (value, sql_type) {
        (Value::Boolean(v), _) => out.push(if *v { b't' } else { b'f' }),
        (Value::List(elements), SqlType::Array(element)) => array(elements, element, style, out),
        (Value::List(elements), _) => array(elements, &SqlType::Text, style, out),
        (Value::Text(v), SqlType::Char(length)) => {
            out.extend_from_slice(v.as_bytes());
            let missing = (*length as usize).saturating_sub(v.chars().count());
            out.resize(out.len() + missing, b' ');
        }
        (Value::Text(v), _) => out.extend_from_slice(v.as_bytes()),
        (Value::Bytea(v), SqlType::Uuid) if v.len() == 16 => {
            for (at, byte) in v.iter().enumerate() {
                if matches!(at, 4 | 6 | 8 | 10) {
                    out.push(b'-');
                }
                hex(*byte, out);
            }
        }
        (Value::Bytea(v), _) if style.escapes_bytea => v.iter().for_each(|byte| match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(*byte),
            other => drop(write!(out, "\\{other:03o}")),
        }),
        (Value::Bytea(v), _) => {
            out.extend_from_slice(b"\\x");
            v.iter().for_each(|byte| hex(*byte, out));
        }
        (Value::Double(v), SqlType::Real) => real(*v as f32, style.float_digits, out),
        (Value::Double(v), _) => double(*v, style.float_digits, out),
        (Value::Numeric(v), SqlType::Numeric(None)) => {
            drop(write!(out, "{}", Value::Numeric(sql_type::shown(*v))))
        }
        (Value::Date(days), _) => calendar::write_date(*days, out),
        (Value::Timestamp(micros), SqlType::TimestampTz) => calendar::write_zoned(*micros, style.zone, out),
        (Value::Timestamp(micros), _) => calendar::write_timestamp(*micros, out),
        (Value::BigInt(micros), SqlType::Time) => calendar::write_time(*micros, out),
        // A Vec takes whatever is written.
        (other, _) => drop(write!(out, "{other}")),
    }
}

/// A value as it is stored in a column of a type: arrays are texts.
pub fn kept(value: Value, sql_type: &SqlType) -> Value {
    match (&value, sql_type) {
        (Value::List(_), SqlType::Array(_)) => text(&value, sql_type, &TextStyle::default()).into(),
        _ => value,
    }
}

/// A value as text; `None` for null.
pub fn text(value: &Value, sql_type: &SqlType, style: &TextStyle) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let mut out = Vec::new();
    write(value, sql_type, style, &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

/// `{1,NULL,"a b"}`
fn array(elements: &[Vec<Value>], sql_type: &SqlType, style: &TextStyle, out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match element.first() {
            None | Some(Value::Null) => out.extend_from_slice(b"NULL"),
            Some(nested @ Value::List(_)) => {
                write(nested, &SqlType::Array(Box::new(sql_type.clone())), style, out)
            }
            Some(value) => {
                let mut text = Vec::new();
                write(value, sql_type, style, &mut text);
                let is_plain = !text.is_empty()
                    && !text.eq_ignore_ascii_case(b"null")
                    && !text.iter().any(|byte| {
                        matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\') || byte.is_ascii_whitespace()
                    });
                if is_plain {
                    out.extend(text);
                    continue;
                }
                out.push(b'"');
                for byte in text {
                    if matches!(byte, b'"' | b'\\') {
                        out.push(b'\\');
                    }
                    out.push(byte);
                }
                out.push(b'"');
            }
        }
    }
    out.push(b'}');
}

fn double(value: f64, digits: i32, out: &mut Vec<u8>) {
    if digits < 1 && value.is_finite() {
        let count = (15 + digits).max(1) as usize;
        return rounded(&format!("{:.*e}", count - 1, value), count as i32, out);
    }
    special(value, out, |out| shortest(&format!("{value:e}"), 15, out));
}

fn real(value: f32, digits: i32, out: &mut Vec<u8>) {
    if digits < 1 && value.is_finite() {
        let count = (6 + digits).max(1) as usize;
        return rounded(&format!("{:.*e}", count - 1, value), count as i32, out);
    }
    special(f64::from(value), out, |out| shortest(&format!("{value:e}"), 6, out));
}

fn special(value: f64, out: &mut Vec<u8>, finite: impl FnOnce(&mut Vec<u8>)) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
    } else {
        finite(out);
    }
}

/// `%g`: of a number in scientific form with a fixed count of digits, without zeros at the end.
fn rounded(scientific: &str, count: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let mantissa =
        if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    shortest(&format!("{mantissa}e{exponent}"), count, out);
}

/// A number in Rust's scientific form (`1.5e-7`) as PostgreSQL shows it: with an exponent below -4, and from
/// `most` on (Ryu's output there; `float8out`).
fn shortest(scientific: &str, most: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= most {
        let sign = if exponent < 0 { '-' } else { '+' };
        drop(write!(out, "{mantissa}e{sign}{:02}", exponent.abs()));
        return;
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    out.extend_from_slice(sign.as_bytes());
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits.as_bytes());
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits.as_bytes()[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits.as_bytes()[whole..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: Value, sql_type: SqlType) -> String {
        let style = TextStyle::new("Europe/Berlin", "ISO, MDY", 1, false);
        text(&value, &sql_type, &style).unwrap()
    }

    #[test]
    fn values_look_as_in_postgres() {
        let double = |v| shown(Value::Double(v), SqlType::Double);
        assert_eq!(double(1.0), "1");
        assert_eq!(double(0.1), "0.1");
        assert_eq!(double(1e15), "1e+15");
        assert_eq!(double(123456789012345.0), "123456789012345");
        assert_eq!(double(1.5e-7), "1.5e-07");
        assert_eq!(double(-0.0001), "-0.0001");
        assert_eq!(double(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(shown(Value::Double(f64::from(0.1f32)), SqlType::Real), "0.1");
        assert_eq!(shown(Value::Timestamp(0), SqlType::TimestampTz), "1970-01-01 01:00:00+01");
        assert_eq!(shown(Value::Timestamp(1_500_000), SqlType::Timestamp), "1970-01-01 00:00:01.5");
        assert_eq!(shown(Value::BigInt(3_600_000_000), SqlType::Time), "01:00:00");
        assert_eq!(shown(Value::Text("a".into()), SqlType::Char(3)), "a  ");
        let list = Value::List(vec![vec![Value::Int(1)], vec![Value::Null]]);
        assert_eq!(shown(list, SqlType::Array(Box::new(SqlType::Int))), "{1,NULL}");
    }

    #[test]
    fn text_reads_back() {
        let style = TextStyle::new("Europe/Berlin", "ISO, MDY", 1, false);
        for (written, sql_type) in [
            ("2026-11-20", SqlType::Date),
            ("0044-03-15 BC", SqlType::Date),
            ("12345-01-02", SqlType::Date),
            ("infinity", SqlType::Date),
            ("2026-07-20 08:30:00.123456+02", SqlType::TimestampTz),
            ("-infinity", SqlType::Timestamp),
            ("23:59:59.5", SqlType::Time),
            ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", SqlType::Uuid),
            ("{1,NULL,3}", SqlType::Array(Box::new(SqlType::Int))),
            ("{\"a b\",\"\",x}", SqlType::Array(Box::new(SqlType::Text))),
            ("\\x00ff", SqlType::Bytea),
            ("t", SqlType::Boolean),
        ] {
            let value = read(written, &sql_type, &style).unwrap();
            assert_eq!(text(&value, &sql_type, &style).unwrap(), written);
        }
        let day = read("1/2/2020", &SqlType::Date, &style).unwrap();
        assert_eq!(text(&day, &SqlType::Date, &style).unwrap(), "2020-01-02");
        assert_eq!(
            read("x", &SqlType::Int, &style).unwrap_err().message(),
            "invalid input syntax for type integer: \"x\""
        );
    }
}
