//! Literals: what their text is as a value of a type.

use super::stop::wrong;
use crate::sql_type::SqlType;
use crate::text_format::{self, TextStyle};
use fabius_value::{DataType, Decimal, Error, Result, SqlState, Value};

/// A number as it is written, with the type that PostgreSQL gives it.
pub(super) fn number(text: &str) -> Option<(Value, SqlType, DataType)> {
    let text = text.replace('_', "");
    if let Ok(value) = text.parse::<i32>() {
        return Some((Value::Int(value), SqlType::Int, DataType::Int));
    }
    if let Ok(value) = text.parse::<i64>() {
        return Some((Value::BigInt(value), SqlType::BigInt, DataType::BigInt));
    }
    let decimal = decimal(&text)?;
    Some((Value::Numeric(decimal), SqlType::Numeric(None), decimal_type(decimal)))
}

/// How a constant number is held.
pub(super) fn decimal_type(decimal: Decimal) -> DataType {
    let digits = decimal.mantissa.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    super::typing::constant_numeric(digits, decimal.scale)
}

/// A decimal, perhaps with an exponent.
pub(super) fn decimal(text: &str) -> Option<Decimal> {
    let (digits, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let decimal = Decimal::parse(digits)?;
    let scale = i32::from(decimal.scale).checked_sub(exponent)?;
    if (0..=38).contains(&scale) {
        return Some(Decimal { scale: scale as u8, ..decimal });
    }
    if !(-38..0).contains(&scale) {
        return None;
    }
    let mantissa = decimal.mantissa.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?;
    (mantissa.abs() <= fabius_value::decimal::MANTISSA_MAX).then_some(Decimal { mantissa, scale: 0 })
}

/// The value of a type that a text is.
///
/// # Errors
/// `22P02`, `22007`, `22008` or `22003`, in PostgreSQL's words.
pub(super) fn read(text: &str, sql_type: &SqlType) -> Result<Value> {
    let name = super::typing::without_modifiers(sql_type);
    let invalid = || wrong(b"22P02", format!("invalid input syntax for type {name}: \"{text}\""));
    let trimmed = text.trim();
    match sql_type {
        SqlType::Boolean => boolean(trimmed).map(Value::Boolean).ok_or_else(invalid),
        SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Oid => {
            let mantissa: i128 = trimmed.parse().map_err(|_| invalid())?;
            let storage = sql_type.storage().unwrap_or(DataType::BigInt);
            let least = i128::from(i32::MIN);
            let whole = match sql_type {
                SqlType::Oid if !(least..=i128::from(u32::MAX)).contains(&mantissa) => None,
                SqlType::Oid => Some(Value::BigInt(mantissa.rem_euclid(1 << 32) as i64)),
                _ => i64::try_from(mantissa).ok().map(Value::BigInt),
            };
            whole
                .and_then(|whole| whole.cast(storage).ok())
                .ok_or_else(|| wrong(b"22003", format!("value \"{text}\" is out of range for type {name}")))
        }
        SqlType::Real | SqlType::Double => text_format::read(text, sql_type, &TextStyle::default()),
        SqlType::Numeric(_) => decimal(trimmed).map(Value::Numeric).ok_or_else(invalid),
        SqlType::Text | SqlType::VarChar(_) | SqlType::Name | SqlType::Char(_) => {
            Ok(Value::Text(text.into()))
        }
        SqlType::Bytea => text_format::bytea(text).map(Value::Bytea),
        SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Time | SqlType::Uuid => {
            text_format::read(text, sql_type, &TextStyle::default())
        }
        SqlType::Json => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(_) => Ok(Value::Text(text.into())),
            Err(_) => Err(invalid()),
        },
        SqlType::JsonB => text_format::jsonb(text).map(Value::Text).map_err(|_| {
            // The name that PostgreSQL has for both here.
            wrong(b"22P02", "invalid input syntax for type json".to_string())
        }),
        _ => Err(Error::new(SqlState::NOT_SUPPORTED, format!("a literal of type {name} is not supported"))),
    }
}

fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let abbreviates = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if text == "1" || abbreviates("true", 1) || abbreviates("yes", 1) || text == "on" {
        Some(true)
    } else if text == "0" || abbreviates("false", 1) || abbreviates("no", 1) || abbreviates("off", 2) {
        Some(false)
    } else {
        None
    }
}

/// Whether a text says when by the time at which it is read: `now`, `today`.
pub(super) fn is_of_now(text: &str) -> bool {
    ["now", "today", "tomorrow", "yesterday"].iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}
