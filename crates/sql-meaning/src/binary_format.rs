//! Values as bytes: PostgreSQL's binary format, as clients send and receive it and as `COPY ... (FORMAT binary)` has
//! it.
//!
//! ```text
//! smallint, integer, bigint, oid   big-endian, 2, 4, 8, 4 bytes
//! real, double precision           IEEE 754, big-endian
//! numeric                          digits, weight, sign, scale (i16 each), then digits of base 10,000 (i16)
//! date                             days since 2000-01-01, i32
//! time                             microseconds of the day, i64
//! timestamp, timestamptz           microseconds since 2000-01-01 00:00 (UTC), i64
//! interval                         microseconds i64, days i32, months i32
//! uuid                             16 bytes
//! jsonb                            version 1, then its text
//! an array                         dimensions, has nulls, element's oid (i32 each); per dimension its length and
//!                                  first index; per element its length (-1: null) and bytes
//! anything else                    its text
//! ```
//!
//! Nothing here is trusted: what does not read as its type is an error of class 22.

use crate::sql_type::SqlType;
use crate::text_format::{self, Fit, TextStyle};
use crate::type_rules::ANY_CHAR;
use fabius_value::interval::{self, Interval};
use fabius_value::network::Network;
use fabius_value::{DataType, Decimal, Error, Result, SqlState, Value, calendar};
use std::net::IpAddr;

/// Days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_DAYS: i32 = 10_957;
const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

const NUMERIC_POSITIVE: u16 = 0x0000;
const NUMERIC_NEGATIVE: u16 = 0x4000;

/// `AF_INET`, and what PostgreSQL sends for the other family (`PGSQL_AF_INET6`).
const V4_FAMILY: u8 = 2;
const V6_FAMILY: u8 = 3;

/// `22P03`: bytes that are not a value of the type.
const INVALID_BINARY: SqlState = SqlState(*b"22P03");

/// Appends a value that is not null; `sql_type` is its column's.
///
/// # Errors
/// A value that the type's binary format cannot hold: a fault of whoever made it.
pub fn write(value: &Value, sql_type: &SqlType, out: &mut Vec<u8>) -> Result<()> {
    match (sql_type, value) {
        (SqlType::Rounded(of, _), value) => return write(value, of, out),
        (SqlType::Boolean, Value::Boolean(v)) => out.push(u8::from(*v)),
        (SqlType::Real, Value::Double(v)) => out.extend((*v as f32).to_be_bytes()),
        (SqlType::Double, Value::Double(v)) => out.extend(v.to_be_bytes()),
        (SqlType::Numeric(None), Value::Numeric(v)) => write_numeric(sql_type.shown(*v), out),
        (SqlType::Numeric(_), Value::Numeric(v)) => write_numeric(*v, out),
        (SqlType::Bytea | SqlType::Uuid, Value::Bytea(v)) => out.extend_from_slice(v),
        (SqlType::Inet | SqlType::Cidr, value) => write_network(value, sql_type, out)?,
        // The ends are infinite in both.
        (SqlType::Date, Value::Date(v @ (i32::MIN | i32::MAX))) => out.extend(v.to_be_bytes()),
        (SqlType::Date, Value::Date(v)) => out.extend(v.saturating_sub(EPOCH_DAYS).to_be_bytes()),
        (SqlType::Timestamp | SqlType::TimestampTz, Value::Timestamp(v)) => {
            let infinite = calendar::is_infinite(*v).then_some(*v);
            out.extend(infinite.unwrap_or(v.saturating_sub(EPOCH_MICROS)).to_be_bytes());
        }
        (SqlType::JsonB, Value::Text(v)) => {
            out.push(1);
            out.extend_from_slice(v.as_bytes());
        }
        (SqlType::Char(length), Value::Text(v)) if *sql_type != ANY_CHAR => {
            out.extend_from_slice(v.as_bytes());
            let missing = (*length as usize).saturating_sub(v.chars().count());
            out.resize(out.len() + missing, b' ');
        }
        (SqlType::Interval, Value::Text(v)) => write_interval(v, out)?,
        (SqlType::Enumeration(of), Value::BigInt(number)) => {
            out.extend_from_slice(of.word(*number).unwrap_or_default().as_bytes());
        }
        (SqlType::Array(element), Value::List(rows)) => write_array(element, rows, out)?,
        (SqlType::Array(_), Value::Text(text)) => {
            // As it is stored.
            let list = text_format::read(text, sql_type, &TextStyle::default(), Fit::Store)?;
            write(&list, sql_type, out)?;
        }
        (SqlType::Void, _) => {}
        (sql_type, value) => match (whole(sql_type), value.as_integer()) {
            (Some(bytes), Some(number)) => write_whole(number, bytes, out)?,
            (None, None) => write_text(value, sql_type, out)?,
            _ => return Err(unfit(value, sql_type)),
        },
    }
    Ok(())
}

/// How many bytes a whole number of this type takes.
fn whole(sql_type: &SqlType) -> Option<usize> {
    match sql_type {
        SqlType::SmallInt => Some(2),
        SqlType::Int | SqlType::Oid => Some(4),
        SqlType::BigInt | SqlType::Time => Some(8),
        _ => None,
    }
}

fn write_whole(number: i64, bytes: usize, out: &mut Vec<u8>) -> Result<()> {
    let lost = |_| Error::new(SqlState::OUT_OF_RANGE, "integer out of range");
    match bytes {
        2 => out.extend(i16::try_from(number).map_err(lost)?.to_be_bytes()),
        // Object identifiers have no sign.
        4 if number > i64::from(i32::MAX) => out.extend(u32::try_from(number).map_err(lost)?.to_be_bytes()),
        4 => out.extend(i32::try_from(number).map_err(lost)?.to_be_bytes()),
        _ => out.extend(number.to_be_bytes()),
    }
    Ok(())
}

/// The family as PostgreSQL numbers it, the network's bits, whether it is a `cidr`, the address.
fn write_network(value: &Value, sql_type: &SqlType, out: &mut Vec<u8>) -> Result<()> {
    let network = Network::of_value(value).ok_or_else(|| unfit(value, sql_type))?;
    let mut put = |family: u8, address: &[u8]| {
        out.extend([family, network.bits, u8::from(*sql_type == SqlType::Cidr), address.len() as u8]);
        out.extend_from_slice(address);
    };
    match network.address {
        IpAddr::V4(address) => put(V4_FAMILY, &address.octets()),
        IpAddr::V6(address) => put(V6_FAMILY, &address.octets()),
    }
    Ok(())
}

fn read_network(input: &mut Input<'_>, sql_type: &SqlType) -> Result<Value> {
    let [family, bits, _, length] = input.array()?;
    let address: IpAddr = match (family, length) {
        (V4_FAMILY, 4) => input.array::<4>()?.into(),
        (V6_FAMILY, 16) => input.array::<16>()?.into(),
        _ => return Err(invalid(&format!("invalid address family in external \"{sql_type}\" value"))),
    };
    let network = Network { address, bits };
    if bits > network.width() {
        return Err(invalid(&format!("invalid bits in external \"{sql_type}\" value")));
    }
    if *sql_type == SqlType::Cidr && !network.is_whole() {
        return Err(
            invalid("invalid external \"cidr\" value").with_detail("Value has bits set to right of mask.")
        );
    }
    Ok(network.into_value())
}

fn write_text(value: &Value, sql_type: &SqlType, out: &mut Vec<u8>) -> Result<()> {
    let is_text = matches!(
        sql_type,
        SqlType::Text | SqlType::VarChar(_) | SqlType::Name | SqlType::Json | SqlType::Unknown
    );
    match value {
        Value::Text(text) if is_text => out.extend_from_slice(text.as_bytes()),
        _ => return Err(unfit(value, sql_type)),
    }
    Ok(())
}

fn unfit(value: &Value, sql_type: &SqlType) -> Error {
    let what = format!("a {} cannot be sent as {sql_type:?}", value.type_name());
    Error::new(SqlState(*b"XX000"), what)
}

fn write_numeric(value: Decimal, out: &mut Vec<u8>) {
    let scale = usize::from(value.scale);
    let text = format!("{:0width$}", value.mantissa.unsigned_abs(), width = scale + 1);
    let (integer, fraction) = text.split_at(text.len() - scale);
    // Groups of four digits, counted from the point in both directions.
    let integer = format!("{}{integer}", "0".repeat(integer.len().next_multiple_of(4) - integer.len()));
    let fraction = format!("{fraction}{}", "0".repeat(scale.next_multiple_of(4) - scale));
    let group = |digits: &[u8]| digits.iter().fold(0i16, |group, digit| group * 10 + i16::from(digit - b'0'));
    let groups: Vec<i16> =
        integer.as_bytes().chunks(4).chain(fraction.as_bytes().chunks(4)).map(group).collect();
    let weight = (integer.len() / 4) as i16 - 1;
    let leading = groups.iter().take_while(|group| **group == 0).count();
    let trailing = groups.iter().rev().take_while(|group| **group == 0).count();
    let kept = groups.get(leading..groups.len() - trailing).unwrap_or_default();
    let weight = if kept.is_empty() { 0 } else { weight - leading as i16 };
    let sign = if value.mantissa < 0 { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE };
    out.extend((kept.len() as i16).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend((scale as i16).to_be_bytes());
    kept.iter().for_each(|group| out.extend(group.to_be_bytes()));
}

/// Intervals are text between the crates, as PostgreSQL prints them: `1 year 2 mons -3 days 04:05:06.789`.
fn write_interval(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let invalid = || Error::new(SqlState::INVALID_DATETIME, format!("invalid interval \"{text}\""));
    let (mut months, mut days, mut micros) = (0i32, 0i32, 0i64);
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.contains(':') {
            micros = micros_of(word).ok_or_else(invalid)?;
            continue;
        }
        let number: i32 = word.parse().map_err(|_| invalid())?;
        let unit = words.next().ok_or_else(invalid)?;
        let add = |to: i32, times: i32| number.checked_mul(times).and_then(|more| to.checked_add(more));
        match unit.trim_end_matches('s') {
            "year" => months = add(months, 12).ok_or_else(invalid)?,
            "mon" | "month" => months = add(months, 1).ok_or_else(invalid)?,
            "day" => days = add(days, 1).ok_or_else(invalid)?,
            _ => return Err(invalid()),
        }
    }
    out.extend(micros.to_be_bytes());
    out.extend(days.to_be_bytes());
    out.extend(months.to_be_bytes());
    Ok(())
}

fn micros_of(clock: &str) -> Option<i64> {
    let (sign, clock) = clock.strip_prefix('-').map_or((1, clock), |rest| (-1, rest));
    let mut parts = clock.trim_start_matches('+').split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let seconds = parts.next().unwrap_or("0");
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let seconds: i64 = seconds.parse().ok()?;
    let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let total = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(seconds)?;
    total.checked_mul(1_000_000)?.checked_add(fraction)?.checked_mul(sign)
}

fn write_array(element: &SqlType, rows: &[Vec<Value>], out: &mut Vec<u8>) -> Result<()> {
    let has_nulls = rows.iter().any(|row| row.first().is_none_or(Value::is_null));
    out.extend(i32::from(!rows.is_empty()).to_be_bytes());
    out.extend(i32::from(has_nulls).to_be_bytes());
    out.extend(element.oid().to_be_bytes());
    if rows.is_empty() {
        return Ok(());
    }
    out.extend((rows.len() as i32).to_be_bytes());
    out.extend(1i32.to_be_bytes());
    for row in rows {
        match row.first() {
            None | Some(Value::Null) => out.extend((-1i32).to_be_bytes()),
            Some(value) => {
                let begin = out.len();
                out.extend(0i32.to_be_bytes());
                write(value, element, out)?;
                let length = ((out.len() - begin - 4) as i32).to_be_bytes();
                out[begin..begin + 4].copy_from_slice(&length);
            }
        }
    }
    Ok(())
}

/// Reads a value of a type, in the type's storage type.
///
/// # Errors
/// `22P03` for bytes that are not such a value, `22021` for text that is not UTF-8, `22003`, `22008`, `22001` for
/// values that the type does not hold.
pub fn read(bytes: &[u8], sql_type: &SqlType) -> Result<Value> {
    let mut input = Input { bytes };
    let value = match sql_type {
        SqlType::Rounded(of, digits) => {
            return Ok(crate::text_format::rounded(read(bytes, of)?, of, *digits));
        }
        SqlType::Boolean => Value::Boolean(input.array::<1>()? != [0]),
        SqlType::SmallInt => Value::SmallInt(i16::from_be_bytes(input.array()?)),
        SqlType::Int => Value::Int(i32::from_be_bytes(input.array()?)),
        SqlType::BigInt => Value::BigInt(i64::from_be_bytes(input.array()?)),
        SqlType::Oid => Value::BigInt(u32::from_be_bytes(input.array()?).into()),
        SqlType::Real => Value::Double(f32::from_be_bytes(input.array()?).into()),
        SqlType::Double => Value::Double(f64::from_be_bytes(input.array()?)),
        SqlType::Numeric(_) => fit(Value::Numeric(read_numeric(&mut input)?), sql_type)?,
        SqlType::Date => {
            let days = match i32::from_be_bytes(input.array()?) {
                infinite @ (i32::MIN | i32::MAX) => Some(infinite),
                days => days.checked_add(EPOCH_DAYS),
            };
            Value::Date(days.ok_or_else(|| Error::new(SqlState::DATETIME_OVERFLOW, "date out of range"))?)
        }
        SqlType::Time => {
            let micros = i64::from_be_bytes(input.array()?);
            if !(0..=86_400_000_000).contains(&micros) {
                return Err(Error::new(SqlState::DATETIME_OVERFLOW, "time out of range"));
            }
            Value::BigInt(micros)
        }
        SqlType::Timestamp | SqlType::TimestampTz => {
            let micros = match i64::from_be_bytes(input.array()?) {
                infinite if calendar::is_infinite(infinite) => Some(infinite),
                micros => micros.checked_add(EPOCH_MICROS),
            };
            let overflow = || Error::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range");
            Value::Timestamp(micros.ok_or_else(overflow)?)
        }
        SqlType::Interval => read_interval(&mut input)?,
        SqlType::Uuid => Value::Bytea(input.array::<16>()?.to_vec()),
        SqlType::Inet | SqlType::Cidr => read_network(&mut input, sql_type)?,
        SqlType::Bytea => fit(Value::Bytea(input.rest().to_vec()), sql_type)?,
        SqlType::JsonB => {
            if input.array()? != [1] {
                return Err(invalid("unsupported jsonb version number"));
            }
            read_as_text(text(input.rest())?, sql_type)?
        }
        SqlType::Json | SqlType::Enumeration(_) => read_as_text(text(input.rest())?, sql_type)?,
        SqlType::Array(element) => read_array(&mut input, element)?,
        SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_) | SqlType::Name | SqlType::Unknown => {
            fit(Value::Text(text(input.rest())?.to_string()), sql_type)?
        }
        SqlType::Void => return Err(invalid("a value of type void cannot be given")),
    };
    match input.bytes {
        [] => Ok(value),
        _ => Err(invalid("incorrect binary data format")),
    }
}

fn fit(value: Value, sql_type: &SqlType) -> Result<Value> {
    sql_type.storage().map_or(Ok(value.clone()), |storage: DataType| value.cast(storage))
}

/// The text that bytes from a client are.
///
/// # Errors
/// `22021` if they are not UTF-8, or hold a zero.
pub fn text(bytes: &[u8]) -> Result<&str> {
    let refused = |at: usize| {
        let shown =
            bytes[at..].iter().take(4).map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(" ");
        Error::new(SqlState(*b"22021"), format!("invalid byte sequence for encoding \"UTF8\": {shown}"))
    };
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(refused(at));
    }
    std::str::from_utf8(bytes).map_err(|error| refused(error.valid_up_to()))
}

fn read_numeric(input: &mut Input<'_>) -> Result<Decimal> {
    let count = input.i16()?;
    let weight = input.i16()?;
    let sign = input.i16()? as u16;
    let scale = input.i16()?;
    let out_of_range = || Error::new(SqlState::OUT_OF_RANGE, "numeric out of range");
    if !matches!(sign, NUMERIC_POSITIVE | NUMERIC_NEGATIVE) {
        return Err(Error::new(SqlState::NOT_SUPPORTED, "NaN and infinity are not supported in a numeric"));
    }
    if count < 0 || !(0..=0x3fff).contains(&scale) {
        return Err(invalid("invalid length or scale in external \"numeric\" value"));
    }
    let mut mantissa = 0i128;
    for _ in 0..count {
        let group = input.i16()?;
        if !(0..10_000).contains(&group) {
            return Err(invalid("invalid digit in external \"numeric\" value"));
        }
        let grown = mantissa.checked_mul(10_000).and_then(|grown| grown.checked_add(group.into()));
        mantissa = grown.ok_or_else(out_of_range)?;
    }
    // The mantissa stands at this many digits behind the point.
    let behind = (i32::from(count) - 1 - i32::from(weight)) * 4;
    if mantissa == 0 {
        return Ok(Decimal { mantissa, scale: scale.min(38) as u8 });
    }
    if sign == NUMERIC_NEGATIVE {
        mantissa = -mantissa;
    }
    let wanted = scale.min(38) as u8;
    match u8::try_from(behind) {
        Ok(behind) if behind <= 38 => {
            Decimal { mantissa, scale: behind }.rescale(wanted).ok_or_else(out_of_range)
        }
        // Digits far behind the point that the scale does not show, or a number with zeros before it.
        Ok(behind) => {
            let cut = 10i128.checked_pow(u32::from(behind - 38)).map_or(0, |cut| mantissa / cut);
            Decimal { mantissa: cut, scale: 38 }.rescale(wanted).ok_or_else(out_of_range)
        }
        Err(_) if behind > 0 => Ok(Decimal { mantissa: 0, scale: wanted }),
        Err(_) => {
            let raised = 10i128.checked_pow(behind.unsigned_abs()).and_then(|by| mantissa.checked_mul(by));
            let whole = Decimal { mantissa: raised.ok_or_else(out_of_range)?, scale: 0 };
            whole.rescale(wanted).ok_or_else(out_of_range)
        }
    }
}

fn read_interval(input: &mut Input<'_>) -> Result<Value> {
    let micros = i64::from_be_bytes(input.array()?);
    let days = i32::from_be_bytes(input.array()?);
    let months = i32::from_be_bytes(input.array()?);
    // Its time has no opposite, as which it is shown.
    if micros == i64::MIN {
        return Err(Error::new(SqlState::DATETIME_OVERFLOW, "interval out of range"));
    }
    Ok(Value::Text(interval::write(Interval { months, days, micros })))
}

/// What a value is that was given as text: checked, and in the form in which it is stored.
fn read_as_text(text: &str, sql_type: &SqlType) -> Result<Value> {
    text_format::read(text, sql_type, &TextStyle::default(), Fit::Store)
}

fn read_array(input: &mut Input<'_>, element: &SqlType) -> Result<Value> {
    let dimensions = i32::from_be_bytes(input.array()?);
    let _has_nulls = i32::from_be_bytes(input.array()?);
    let _element = u32::from_be_bytes(input.array()?);
    let count = match dimensions {
        0 => return Ok(Value::List(Vec::new())),
        1 => i32::from_be_bytes(input.array()?),
        _ => {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                "arrays of several dimensions are not supported",
            ));
        }
    };
    let _first_index = i32::from_be_bytes(input.array()?);
    // Each element has at least its length: a count beyond that is no reason to reserve memory.
    let count = usize::try_from(count).ok().filter(|count| *count <= input.bytes.len() / 4);
    let count = count.ok_or_else(|| invalid("insufficient data left in message"))?;
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let length = i32::from_be_bytes(input.array()?);
        rows.push(vec![match usize::try_from(length) {
            Ok(length) => read(input.take(length)?, element)?,
            Err(_) => Value::Null,
        }]);
    }
    Ok(Value::List(rows))
}

fn invalid(message: &str) -> Error {
    Error::new(INVALID_BINARY, message)
}

/// What is left of a value's bytes.
struct Input<'b> {
    bytes: &'b [u8],
}

impl<'b> Input<'b> {
    fn take(&mut self, count: usize) -> Result<&'b [u8]> {
        let (taken, rest) =
            self.bytes.split_at_checked(count).ok_or_else(|| invalid("insufficient data left in message"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES]> {
        let (taken, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| invalid("insufficient data left in message"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn i16(&mut self) -> Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    fn rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Value {
        Value::Numeric(Decimal::parse(text).expect("a decimal"))
    }

    /// Goal: what is written reads back, for every type.
    #[test]
    fn values_read_back() {
        let numeric = SqlType::Numeric(Some((38, 4)));
        let cases = [
            (SqlType::Boolean, Value::Boolean(true)),
            (SqlType::SmallInt, Value::SmallInt(-2)),
            (SqlType::Int, Value::Int(i32::MIN)),
            (SqlType::BigInt, Value::BigInt(i64::MAX)),
            (SqlType::Oid, Value::BigInt(u32::MAX.into())),
            (SqlType::Real, Value::Double(1.5)),
            (SqlType::Double, Value::Double(-0.1)),
            (numeric.clone(), decimal("0.0000")),
            (numeric.clone(), decimal("-12345678.9010")),
            (numeric.clone(), decimal("0.0001")),
            (numeric.clone(), decimal("10000.0000")),
            (numeric, decimal("9999999999999999999999999999999999.9999")),
            (SqlType::Text, Value::Text("naïve".into())),
            (SqlType::Char(3), Value::Text("é".into())),
            (SqlType::Bytea, Value::Bytea(vec![0, 255])),
            (SqlType::Date, Value::Date(0)),
            (SqlType::Time, Value::BigInt(1)),
            (SqlType::Timestamp, Value::Timestamp(-1)),
            (SqlType::TimestampTz, Value::Timestamp(i64::MAX)),
            (SqlType::Timestamp, Value::Timestamp(i64::MIN)),
            (SqlType::Date, Value::Date(i32::MAX)),
            (SqlType::Date, Value::Date(i32::MIN)),
            (SqlType::Uuid, Value::Bytea((0..16).collect())),
            (SqlType::JsonB, Value::Text("{}".into())),
            (
                SqlType::Array(Box::new(SqlType::Int)),
                Value::List(vec![vec![Value::Int(1)], vec![Value::Null]]),
            ),
            (SqlType::Array(Box::new(SqlType::Text)), Value::List(vec![])),
        ];
        for (sql_type, value) in cases {
            let mut bytes = Vec::new();
            write(&value, &sql_type, &mut bytes).expect("it is written");
            assert_eq!(read(&bytes, &sql_type), Ok(value), "{sql_type:?} {bytes:?}");
            // Cut short, or with more behind, it is an error or another value, never a panic.
            (0..bytes.len()).for_each(|length| drop(read(&bytes[..length], &sql_type)));
        }
    }

    /// Goal: the bytes are PostgreSQL's.
    #[test]
    fn bytes_are_as_postgresql_sends_them() {
        let cases: &[(SqlType, Value, &[u8])] = &[
            (SqlType::Date, Value::Date(EPOCH_DAYS + 1), &[0, 0, 0, 1]),
            // select timestamp_send('infinity'), date_send('-infinity')
            (SqlType::Timestamp, Value::Timestamp(i64::MAX), &[127, 255, 255, 255, 255, 255, 255, 255]),
            (SqlType::Date, Value::Date(i32::MIN), &[128, 0, 0, 0]),
            // select numeric_send(-1234567.8)
            (
                SqlType::Numeric(None),
                decimal("-1234567.8"),
                &[0, 3, 0, 1, 0x40, 0, 0, 1, 0, 123, 0x11, 0xd7, 0x1f, 0x40],
            ),
            (SqlType::Numeric(None), decimal("0.00"), &[0, 0, 0, 0, 0, 0, 0, 2]),
            (SqlType::Numeric(None), decimal("0.00012"), &[0, 2, 0xff, 0xff, 0, 0, 0, 5, 0, 1, 0x07, 0xd0]),
            (
                SqlType::Interval,
                Value::Text("1 year 2 mons -3 days -00:00:01.5".into()),
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xe9, 0x1c, 0xa0, 0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 14],
            ),
        ];
        for (sql_type, value, expected) in cases {
            let mut bytes = Vec::new();
            write(value, sql_type, &mut bytes).expect("it is written");
            assert_eq!(bytes, *expected, "{value:?}");
        }
    }

    /// Goal: what is stored as text is checked, and stored as if it had been given as text.
    #[test]
    fn values_that_are_text_are_read_as_text() {
        let jsonb = read(b"\x01{\"b\": 1,   \"a\":[1 , 2], \"b\": 2}", &SqlType::JsonB);
        assert_eq!(jsonb, Ok(Value::Text("{\"a\": [1, 2], \"b\": 2}".into())));
        for bytes in [&b"\x01{"[..], b"\x01nothing"] {
            assert_eq!(read(bytes, &SqlType::JsonB).map_err(|error| error.state()), Err(SqlState(*b"22P02")));
            assert!(read(&bytes[1..], &SqlType::Json).is_err());
        }
        assert_eq!(read(b"{\"b\":  1}", &SqlType::Json), Ok(Value::Text("{\"b\":  1}".into())));
        for text in ["1 year 2 mons -3 days -00:00:01.5", "00:00:00", "-1 mons", "5 days", "100:00:00"] {
            let mut bytes = Vec::new();
            write(&Value::Text(text.into()), &SqlType::Interval, &mut bytes).expect("it is written");
            let as_text = text_format::read(text, &SqlType::Interval, &TextStyle::default(), Fit::Store);
            assert_eq!(read(&bytes, &SqlType::Interval), as_text, "{text}");
        }
        // What is large stays as exact; what could not be shown is refused.
        for byte in [0x00, 0x7f, 0x80, 0xff] {
            let mut bytes = Vec::new();
            let value = read(&[byte; 16], &SqlType::Interval).expect("an interval");
            write(&value, &SqlType::Interval, &mut bytes).expect("it is written");
            assert_eq!(bytes, [byte; 16], "{value:?}");
        }
        let least = [&i64::MIN.to_be_bytes()[..], &[0; 8]].concat();
        assert!(read(&least, &SqlType::Interval).is_err());
    }

    /// Goal: hostile numerics and arrays are refused.
    #[test]
    fn hostile_bytes_are_errors() {
        let numeric = SqlType::Numeric(None);
        for bytes in [
            &[0, 1, 0x7f, 0xff, 0, 0, 0, 0, 0, 1][..],
            &[0, 1, 0, 0, 0xc0, 0, 0, 0, 0, 1],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0x7f, 0xff],
            &[0x7f, 0xff, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(read(bytes, &numeric).is_err(), "{bytes:?}");
        }
        let small = [0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(read(&small, &numeric).map(|value| value.to_string()), Ok("0.0000000000".into()));
        let array = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1];
        assert!(read(&array, &SqlType::Array(Box::new(SqlType::Int))).is_err());
        assert!(read(&[0xff], &SqlType::Text).is_err());
    }
}
