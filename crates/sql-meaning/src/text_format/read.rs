//! Text to values, as PostgreSQL's input functions read it.

use super::json::{check_json, jsonb};
use super::{TextStyle, zone};
use crate::sql_type::SqlType;
use fabius_value::interval;
use fabius_value::network::Network;
use fabius_value::value::fit_text;
use fabius_value::{DataType, Decimal, Error, Result, SqlState, Value, calendar, moment_text, value_text};

/// What a type's length and digits do to a value that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Nothing: an operator takes the value as it is written.
    Literal,
    /// What is too long is cut, as a cast does.
    Cast,
    /// What is too long is refused, as a column does.
    Store,
}

/// Reads a value in the type's storage type; arrays are lists.
///
/// # Errors
/// `22P02`, `22007` for text that is no such value; `22003`, `22008`, `22001` for one beyond the type.
pub fn read(text: &str, sql_type: &SqlType, style: &TextStyle, fit: Fit) -> Result<Value> {
    let moment = |read: Option<Value>, name| read.ok_or_else(|| value_text::no_moment(text, name));
    match sql_type {
        SqlType::Boolean => Value::parse(text, DataType::Boolean),
        SqlType::SmallInt => Value::parse(text, DataType::SmallInt),
        SqlType::Int => Value::parse(text, DataType::Int),
        SqlType::BigInt => Value::parse(text, DataType::BigInt),
        SqlType::Oid => oid(text),
        SqlType::Real => value_text::real(text).map(Value::Double),
        SqlType::Double => Value::parse(text, DataType::Double),
        SqlType::Numeric(_) => {
            let decimal = Decimal::parse(text.trim()).ok_or_else(|| value_text::no_numeric(text))?;
            Ok(Value::Numeric(if fit == Fit::Literal { decimal } else { sql_type.fit(decimal)? }))
        }
        SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_) | SqlType::Name => {
            characters(text, sql_type, fit)
        }
        SqlType::Json => check_json(text).map(|()| text.into()),
        SqlType::JsonB => jsonb(text).map(Value::Text),
        SqlType::Bytea => Value::parse(text, DataType::Bytea),
        SqlType::Uuid => {
            let digits = uuid_digits(text.trim());
            let uuid = digits.and_then(|digits| uuid::Uuid::parse_str(&digits).ok());
            let uuid = uuid.ok_or_else(|| value_text::invalid(text, "uuid"))?;
            Ok(Value::Bytea(uuid.into_bytes().to_vec()))
        }
        SqlType::Inet => Network::host_of_text(text)
            .map(Network::into_value)
            .ok_or_else(|| value_text::invalid(text, "inet")),
        SqlType::Cidr => cidr(text),
        SqlType::Date => moment(moment_text::read_date(text, style.order).map(Value::Date), "date"),
        SqlType::Time => moment(moment_text::read_time(text, style.order).map(Value::BigInt), "time"),
        SqlType::Timestamp => {
            moment(zone::read_unzoned(text, style.order)?.map(Value::Timestamp), "timestamp")
        }
        SqlType::TimestampTz => {
            let read = zone::read_zoned(text, style.order, style.zone)?.map(Value::Timestamp);
            moment(read, "timestamp with time zone")
        }
        SqlType::Rounded(of, digits) => Ok(rounded(read(text, of, style, fit)?, of, *digits)),
        SqlType::Interval => interval::read(text).map(|interval| interval::write(interval).into()),
        SqlType::Enumeration(of) => of.number(text).map(Value::BigInt),
        SqlType::Array(element) => {
            let elements = super::array_literal::elements(text)?.into_iter();
            let rows = elements.map(|text| {
                let value = text.map_or(Ok(Value::Null), |text| read(&text, element, style, fit))?;
                Ok(vec![value])
            });
            rows.collect::<Result<_>>().map(Value::List)
        }
        SqlType::Void | SqlType::Unknown => Ok(text.into()),
    }
}

/// A network; bits behind its own are refused.
fn cidr(text: &str) -> Result<Value> {
    let network = Network::network_of_text(text).ok_or_else(|| value_text::invalid(text, "cidr"))?;
    if !network.is_whole() {
        return Err(Error::new(SqlState::INVALID_TEXT, format!("invalid cidr value: \"{text}\""))
            .with_detail("Value has bits set to right of mask."));
    }
    Ok(network.into_value())
}

/// A moment or time, rounded to so many digits of a second.
pub(crate) fn rounded(value: Value, of: &SqlType, digits: u8) -> Value {
    match value {
        Value::Timestamp(moment) => Value::Timestamp(calendar::rounded_moment(moment, digits)),
        Value::BigInt(micros) if *of == SqlType::Time => {
            Value::BigInt(calendar::rounded_micros(micros, digits))
        }
        other => other,
    }
}

/// Bytes of a `name` (`NAMEDATALEN`, without the zero at the end).
const NAME_BYTES: usize = 63;

fn characters(text: &str, sql_type: &SqlType, fit: Fit) -> Result<Value> {
    match (sql_type, fit) {
        (SqlType::Name, _) => Ok(text[..text.floor_char_boundary(NAME_BYTES)].into()),
        (SqlType::VarChar(Some(most)) | SqlType::Char(most), Fit::Cast) => {
            let end = text.char_indices().nth(*most as usize).map_or(text.len(), |(at, _)| at);
            let cut = &text[..end];
            Ok(if let SqlType::Char(_) = sql_type { cut.trim_end_matches(' ') } else { cut }.into())
        }
        (_, Fit::Literal | Fit::Cast) => Ok(text.into()),
        (_, Fit::Store) => {
            let fitted = fit_text(text, sql_type.storage().unwrap_or(DataType::TEXT));
            fitted.map(Value::from).map_err(|error| match error.state() {
                SqlState::TOO_LONG => too_long(sql_type),
                _ => error,
            })
        }
    }
}

/// `22001`
fn too_long(sql_type: &SqlType) -> Error {
    Error::new(SqlState::TOO_LONG, format!("value too long for type {sql_type}"))
}

/// An object identifier; a negative number is counted from the end, as PostgreSQL does.
fn oid(text: &str) -> Result<Value> {
    let wide = value_text::integer(text, "oid")?;
    wide.filter(|wide| (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(wide))
        .map(|wide| Value::BigInt(wide.rem_euclid(1 << 32)))
        .ok_or_else(|| value_text::out_of_range(text, "oid"))
}

/// The digits of a UUID, which may stand in braces, with hyphens behind any four of them.
fn uuid_digits(text: &str) -> Option<String> {
    let within = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let mut digits = String::new();
    let mut was_hyphen = true;
    for c in within.chars() {
        match c {
            '-' if was_hyphen || !digits.len().is_multiple_of(4) => return None,
            '-' => {}
            c => digits.push(c),
        }
        was_hyphen = c == '-';
    }
    (!was_hyphen).then_some(digits)
}
