//! A value as one of another type, where PostgreSQL converts ([`type_rules`](crate::type_rules) says where).

use crate::sql_type::SqlType;
use crate::text_format::{self, Fit, TextStyle, cast_text};
use crate::type_rules::is_number;
use fabius_program::operation::function::round_single;
use fabius_value::calendar::{self, DAY_MICROS};
use fabius_value::interval::Interval;
use fabius_value::network::Network;
use fabius_value::value_text::numeric_overflow;
use fabius_value::{Decimal, Error, Result, SqlState, Value};

/// Converts a value from one type to another: a null stays null.
///
/// # Errors
/// `22003`, `22P02`, `22007`: what PostgreSQL says of a value that does not fit.
pub fn convert(value: &Value, from: &SqlType, to: &SqlType, style: &TextStyle, fit: Fit) -> Result<Value> {
    match to {
        _ if value.is_null() => Ok(Value::Null),
        SqlType::Rounded(of, digits) => {
            Ok(text_format::rounded(convert(value, from, of, style, fit)?, of, *digits))
        }
        _ => converted(value, from, to, style, fit),
    }
}

fn converted(value: &Value, from: &SqlType, to: &SqlType, style: &TextStyle, fit: Fit) -> Result<Value> {
    use SqlType as T;
    let read = |text: &str| text_format::read(text, to, style, fit);
    let integer = |number: i128| -> Result<Value> {
        let fit = match to {
            T::SmallInt => i16::try_from(number).ok().map(Value::SmallInt),
            T::Int => i32::try_from(number).ok().map(Value::Int),
            T::Oid => u32::try_from(number).ok().map(|oid| Value::BigInt(oid.into())),
            _ => i64::try_from(number).ok().map(Value::BigInt),
        };
        fit.ok_or_else(|| Error::new(SqlState::OUT_OF_RANGE, format!("{to} out of range")))
    };
    match (to, value) {
        (T::Name, Value::Boolean(value)) => Ok(Value::Text(if *value { "t" } else { "f" }.into())),
        (T::Text | T::VarChar(_) | T::Char(_) | T::Name | T::Unknown | T::Void, value) => {
            read(&cast_text(value, from, style))
        }
        (T::JsonB, Value::Text(text)) => read(text),
        (T::Json, Value::Text(text)) if matches!(from, T::JsonB) => Ok(Value::Text(text.clone())),
        (to, Value::Text(text)) => {
            if *from == T::JsonB {
                return of_json(text, to, style, fit);
            }
            read(text)
        }
        (T::Boolean, Value::Boolean(value)) => Ok(Value::Boolean(*value)),
        (T::Boolean, value) => Ok(Value::Boolean(value.as_integer().unwrap_or(0) != 0)),
        (T::SmallInt | T::Int | T::BigInt | T::Oid, value) => match value {
            Value::Boolean(value) => integer(i128::from(*value)),
            Value::Numeric(decimal) => {
                integer(decimal.rescale(0).map_or(i128::MAX, |decimal| decimal.mantissa))
            }
            Value::Double(value) if value.is_finite() && value.abs() < 1e19 => {
                integer(value.round_ties_even() as i128)
            }
            Value::Double(_) => integer(i128::MAX),
            value => integer(value.as_integer().unwrap_or(0).into()),
        },
        (T::Real, value) => round_single(value.as_double().unwrap_or_default()).map(Value::Double),
        (T::Double, value) => Ok(value.as_double().unwrap_or_default().into()),
        (T::Numeric(_), value) => {
            let decimal = match value {
                Value::Numeric(decimal) => *decimal,
                Value::Double(value) => {
                    // As many significant digits as a float is sure of.
                    let digits = if *from == T::Real { 6 } else { 15 };
                    let text = format!("{value:.*e}", digits - 1);
                    Decimal::parse(&text).filter(|_| value.is_finite()).ok_or_else(numeric_overflow)?
                }
                value => Decimal { mantissa: value.as_integer().unwrap_or(0).into(), scale: 0 },
            };
            Ok(Value::Numeric(if fit == Fit::Literal { decimal } else { to.fit(decimal)? }))
        }
        // A moment of UTC is one of the session's zone, and the other way round.
        (T::Date | T::Time | T::Timestamp, Value::Timestamp(micros))
            if *from == T::TimestampTz && !style.is_utc() =>
        {
            convert(&Value::Timestamp(style.local(*micros)), &T::Timestamp, to, style, fit)
        }
        (T::TimestampTz, Value::Timestamp(micros)) if *from == T::Timestamp => {
            Ok(Value::Timestamp(style.moment(*micros)))
        }
        (T::TimestampTz, value @ Value::Date(_)) if !style.is_utc() => {
            let local = convert(value, from, &T::Timestamp, style, fit)?;
            convert(&local, &T::Timestamp, to, style, fit)
        }
        (T::Date, Value::Timestamp(i64::MAX)) => Ok(Value::Date(i32::MAX)),
        (T::Date, Value::Timestamp(i64::MIN)) => Ok(Value::Date(i32::MIN)),
        (T::Date, Value::Timestamp(micros)) => i32::try_from(micros.div_euclid(DAY_MICROS))
            .map(Value::Date)
            .map_err(|_| calendar::out_of_range("date")),
        (T::Timestamp | T::TimestampTz, day @ Value::Date(_)) => calendar::moment_of_value(day)
            .map(Value::Timestamp)
            .ok_or_else(|| calendar::out_of_range("timestamp")),
        (T::Time, Value::Timestamp(micros)) => Ok(time_of_day(*micros)),
        (T::Time, interval @ Value::List(_)) => {
            let Interval { micros, .. } = Interval::of_value(interval).unwrap_or_default();
            Ok(Value::BigInt(micros.rem_euclid(DAY_MICROS)))
        }
        (T::Interval, Value::BigInt(micros)) => {
            Ok(Interval { micros: *micros, ..Interval::default() }.into_value())
        }
        (T::Cidr, value) if *from == T::Inet => {
            Ok(Network::of_value(value).map_or(Value::Null, |host| host.network().into_value()))
        }
        (T::Array(element), Value::List(rows)) => {
            let from = if let T::Array(element) = from { element } else { from };
            let rows = rows
                .iter()
                .map(|row| row.iter().map(|value| convert(value, from, element, style, fit)).collect());
            rows.collect::<Result<_>>().map(Value::List)
        }
        (_, value) => Ok(value.clone()),
    }
}

/// The time of a moment; an infinite one has none.
fn time_of_day(moment: i64) -> Value {
    if calendar::is_infinite(moment) { Value::Null } else { Value::BigInt(moment.rem_euclid(DAY_MICROS)) }
}

/// A number or truth of JSON; numbers are those of `numeric` first.
fn of_json(text: &str, to: &SqlType, style: &TextStyle, fit: Fit) -> Result<Value> {
    refuse_json(text, to)?;
    match Decimal::parse(text).filter(|_| is_number(to)) {
        Some(decimal) => convert(&Value::Numeric(decimal), &SqlType::Numeric(None), to, style, fit),
        None => text_format::read(text, to, style, fit),
    }
}

/// Refuses to make a number or truth of what is none in JSON.
///
/// # Errors
/// `22023`
fn refuse_json(text: &str, to: &SqlType) -> Result<()> {
    let (kind, fits) = match text.bytes().next() {
        Some(b'{') => ("object", false),
        Some(b'[') => ("array", false),
        Some(b'"') => ("string", false),
        Some(b'n') => ("null", false),
        Some(b't' | b'f') => ("boolean", *to == SqlType::Boolean),
        _ => ("numeric", *to != SqlType::Boolean),
    };
    if fits {
        return Ok(());
    }
    let name = match to {
        SqlType::Numeric(_) => "numeric".to_string(),
        other => other.to_string(),
    };
    Err(Error::new(SqlState(*b"22023"), format!("cannot cast jsonb {kind} to type {name}")))
}
