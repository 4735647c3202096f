//! Values as PostgreSQL writes and reads them: casts, `COPY`, the wire's text format.
//!
//! | module | concept |
//! |---|---|
//! | `array_literal` | the elements of an array's text |
//! | `json` | JSON, as it is written and in `jsonb`'s form |
//! | `read` | text to values |
//! | `zone` | time zones, and moments with them |
//!
//! What no session changes is read and written in `fabius_value`: `value_text`, `moment_text`, `float_text`. Values
//! are in their storage types, and intervals within queries are rows too; the SQL type says how they look.

pub mod array_literal;
mod json;
mod read;
mod zone;

pub use fabius_value::moment_text::DateOrder;
pub use json::jsonb;
pub use json::{
    json_failure, order_json_number, parse_json, print_json, print_json_pretty, quoted_json, refuse_zero,
    sorted_members,
};
pub(crate) use read::rounded;
pub use read::{Fit, read};
pub use zone::Zone;

use crate::sql_type::SqlType;
use crate::type_rules::ANY_CHAR;
use chrono_tz::Tz;
use fabius_value::interval::{self, Interval};
use fabius_value::network::Network;
use fabius_value::{Value, float_text, moment_text, value_text};
use std::io::Write;

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
    pub fn new(zone_name: &str, date_style: &str, float_digits: i32, escapes_bytea: bool) -> TextStyle {
        let order = match date_style {
            style if style.ends_with("DMY") => DateOrder::DayMonth,
            style if style.ends_with("YMD") => DateOrder::Year,
            _ => DateOrder::MonthDay,
        };
        TextStyle { zone: zone::zone(zone_name).unwrap_or(Tz::UTC), order, float_digits, escapes_bytea }
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
        zone::abbreviation(moment, self.zone)
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
        zone::zone(name).map(|zone| zone.name().to_string())
    }
}

/// Appends a value that is not null.
pub fn write(value: &Value, sql_type: &SqlType, style: &TextStyle, out: &mut Vec<u8>) {
    match (value, sql_type) {
        (value, SqlType::Rounded(of, _)) => write(value, of, style, out),
        (Value::Boolean(v), _) => out.push(if *v { b't' } else { b'f' }),
        (Value::List(elements), SqlType::Array(element)) => array(elements, element, style, out),
        (interval @ Value::List(_), SqlType::Interval) => {
            let interval = Interval::of_value(interval).unwrap_or_default();
            out.extend_from_slice(interval::write(interval).as_bytes());
        }
        (Value::List(elements), _) => array(elements, &SqlType::Text, style, out),
        (Value::Text(v), SqlType::Char(length)) if *sql_type != ANY_CHAR => {
            out.extend_from_slice(v.as_bytes());
            let missing = (*length as usize).saturating_sub(v.chars().count());
            out.resize(out.len() + missing, b' ');
        }
        (Value::Text(v), _) => out.extend_from_slice(v.as_bytes()),
        (Value::Bytea(v), SqlType::Uuid) if v.len() == 16 => value_text::write_uuid(v, out),
        (Value::Bytea(v), SqlType::Inet) => {
            Network::of_bytes(v).into_iter().for_each(|network| drop(write!(out, "{network}")))
        }
        (Value::Bytea(v), SqlType::Cidr) => {
            Network::of_bytes(v).into_iter().for_each(|network| out.extend(network.shown_whole().bytes()))
        }
        (Value::Bytea(v), _) if style.escapes_bytea => v.iter().for_each(|byte| match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(*byte),
            other => drop(write!(out, "\\{other:03o}")),
        }),
        (Value::Bytea(v), _) => {
            out.extend_from_slice(b"\\x");
            v.iter().for_each(|byte| value_text::write_hex(*byte, out));
        }
        (Value::Double(v), SqlType::Real) => float_text::write_real(*v as f32, style.float_digits, out),
        (Value::Double(v), _) => float_text::write_double(*v, style.float_digits, out),
        (Value::Numeric(v), _) => drop(write!(out, "{}", sql_type.shown(*v))),
        (Value::Date(days), _) => moment_text::write_date(*days, out),
        (Value::Timestamp(micros), SqlType::TimestampTz) => zone::write_zoned(*micros, style.zone, out),
        (Value::Timestamp(micros), _) => moment_text::write_timestamp(*micros, out),
        (Value::BigInt(number), SqlType::Enumeration(of)) => {
            out.extend_from_slice(of.word(*number).unwrap_or_default().as_bytes());
        }
        (Value::BigInt(micros), SqlType::Time) => moment_text::write_time(*micros, out),
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

/// A value as a cast to `text` gives it: truths are words, `character` has no blanks at its end, and `inet` shows all
/// of its bits. Null, of which a cast makes null, gives no text.
pub fn cast_text(value: &Value, sql_type: &SqlType, style: &TextStyle) -> String {
    match (value, sql_type) {
        (Value::Boolean(value), _) => value.to_string(),
        (Value::Text(text), SqlType::Char(_)) => text.trim_end_matches(' ').to_string(),
        (Value::Bytea(_), SqlType::Inet) => {
            Network::of_value(value).map_or_else(String::new, Network::shown_whole)
        }
        _ => text(value, sql_type, style).unwrap_or_default(),
    }
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
            Some(nested @ Value::List(_)) if *sql_type != SqlType::Interval => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: Value, sql_type: SqlType) -> String {
        let style = TextStyle::new("Europe/Berlin", "ISO, MDY", 1, false);
        text(&value, &sql_type, &style).unwrap()
    }

    #[test]
    fn values_look_as_in_postgres() {
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
            let value = read(written, &sql_type, &style, Fit::Store).unwrap();
            assert_eq!(text(&value, &sql_type, &style).unwrap(), written);
        }
        let day = read("1/2/2020", &SqlType::Date, &style, Fit::Store).unwrap();
        assert_eq!(text(&day, &SqlType::Date, &style).unwrap(), "2020-01-02");
        assert_eq!(
            read("x", &SqlType::Int, &style, Fit::Store).unwrap_err().message(),
            "invalid input syntax for type integer: \"x\""
        );
    }
}
