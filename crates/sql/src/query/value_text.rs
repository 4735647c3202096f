//! Values of queries as text and from text, as PostgreSQL writes and reads them in casts.

use crate::interval::{self, Interval};
use crate::query::arrow_column::scale_of;
use crate::sql_type::SqlType;
use crate::text_format::{self, TextStyle};
use fabius_value::{Decimal, Error, Result, SqlState, Value};

/// A value as text. Null has none: it gives an empty text.
pub fn to_text(value: &Value, sql_type: &SqlType, style: &TextStyle) -> String {
    match (sql_type, value) {
        (_, Value::Null) => String::new(),
        (SqlType::Interval, value) => match Interval::of_value(value) {
            Some(interval) => interval::write(interval),
            None => value.to_string(),
        },
        (SqlType::Array(element), Value::List(rows)) => array_text(rows, element, style),
        (
            SqlType::Time
            | SqlType::Date
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Uuid
            | SqlType::Bytea,
            value,
        ) => text_format::text(value, sql_type, style).unwrap_or_default(),
        (SqlType::Boolean, Value::Boolean(value)) => if *value { "true" } else { "false" }.into(),
        (SqlType::Real, Value::Double(value)) => float_text(*value, true),
        (_, Value::Double(value)) => float_text(*value, false),
        (SqlType::Char(_), Value::Text(text)) => text.trim_end_matches(' ').to_string(),
        (SqlType::Numeric(None), Value::Numeric(decimal)) => trimmed(*decimal),
        (quotient, Value::Numeric(decimal)) if *quotient == crate::query::arrow_column::QUOTIENT => {
            crate::query::arrow_column::shown_quotient(*decimal).to_string()
        }
        (_, value) => value.to_string(),
    }
}

/// A numeric without a declared scale: what of its digits says nothing is left out.
fn trimmed(decimal: Decimal) -> String {
    let text = decimal.to_string();
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// The shortest text that reads back as the same number; PostgreSQL's exponents.
pub fn float_text(value: f64, is_single: bool) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.into();
    }
    let plain = if is_single { format!("{:e}", value as f32) } else { format!("{value:e}") };
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let most = if is_single { 6 } else { 15 };
    if exponent < -4 || exponent >= most {
        return format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
    if is_single { format!("{}", value as f32) } else { format!("{value}") }
}

fn array_text(rows: &[Vec<Value>], element: &SqlType, style: &TextStyle) -> String {
    let items = rows.iter().map(|row| match row.first() {
        None | Some(Value::Null) => "NULL".to_string(),
        Some(nested @ Value::List(_)) if !matches!(element, SqlType::Interval) => {
            to_text(nested, element, style)
        }
        Some(value) => {
            let text = match value {
                Value::Boolean(value) => if *value { "t" } else { "f" }.to_string(),
                other => to_text(other, element, style),
            };
            let is_plain = !text.is_empty()
                && !text.eq_ignore_ascii_case("null")
                && !text.contains(|c: char| c.is_whitespace() || "{},\"\\".contains(c));
            if is_plain { text } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
        }
    });
    format!("{{{}}}", items.collect::<Vec<_>>().join(","))
}

/// Reads a value of a type.
///
/// # Errors
/// `22P02`, `22007`, `22003` with PostgreSQL's wording.
pub fn from_text(text: &str, sql_type: &SqlType, style: &TextStyle) -> Result<Value> {
    let trimmed = text.trim();
    let invalid = || {
        Error::new(
            SqlState::INVALID_TEXT,
            format!("invalid input syntax for type {}: \"{text}\"", plain(sql_type)),
        )
    };
    Ok(match sql_type {
        SqlType::Text | SqlType::Unknown | SqlType::Void | SqlType::VarChar(None) => Value::Text(text.into()),
        SqlType::Name => Value::Text(text.chars().take(63).collect()),
        SqlType::VarChar(Some(limit)) | SqlType::Char(limit) => {
            let cut: String = text.chars().take(*limit as usize).collect();
            let cut = if matches!(sql_type, SqlType::Char(_)) {
                cut.trim_end_matches(' ').to_string()
            } else {
                cut
            };
            Value::Text(cut)
        }
        SqlType::Boolean => {
            let lower = trimmed.to_lowercase();
            let is_start = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
            if is_start("true", 1) || is_start("yes", 1) || lower == "on" || lower == "1" {
                Value::Boolean(true)
            } else if is_start("false", 1) || is_start("no", 1) || is_start("off", 2) || lower == "0" {
                Value::Boolean(false)
            } else {
                return Err(invalid());
            }
        }
        SqlType::SmallInt | SqlType::Int | SqlType::BigInt => {
            let number: i128 = trimmed.parse().map_err(|_| invalid())?;
            let too_large = || {
                Error::new(
                    SqlState::OUT_OF_RANGE,
                    format!("value \"{text}\" is out of range for type {}", plain(sql_type)),
                )
            };
            match sql_type {
                SqlType::SmallInt => Value::SmallInt(i16::try_from(number).map_err(|_| too_large())?),
                SqlType::Int => Value::Int(i32::try_from(number).map_err(|_| too_large())?),
                _ => Value::BigInt(i64::try_from(number).map_err(|_| too_large())?),
            }
        }
        SqlType::Oid => {
            let number: i128 = trimmed.parse().map_err(|_| invalid())?;
            let oid = u32::try_from(number).or_else(|_| i32::try_from(number).map(|number| number as u32));
            let too_large = |_| {
                let message = format!("value \"{text}\" is out of range for type oid");
                Error::new(SqlState::OUT_OF_RANGE, message)
            };
            Value::BigInt(oid.map_err(too_large)?.into())
        }
        SqlType::Real
        | SqlType::Double
        | SqlType::Bytea
        | SqlType::Uuid
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz => text_format::read(text, sql_type, style)?,
        SqlType::Numeric(_) => {
            let decimal = decimal(trimmed).ok_or_else(invalid)?;
            let precision = if let SqlType::Numeric(Some((p @ 1..=38, _))) = sql_type { *p } else { 38 };
            fit_numeric(decimal, precision, scale_of(sql_type))?
        }
        SqlType::Json => {
            serde_json::from_str::<serde_json::Value>(text).map_err(|error| json_error(&error, "json"))?;
            Value::Text(text.into())
        }
        SqlType::JsonB => {
            let json: serde_json::Value =
                serde_json::from_str(text).map_err(|error| json_error(&error, "jsonb"))?;
            Value::Text(crate::query::functions::json::printed(&json))
        }
        SqlType::Interval => interval::read(text)?.into_value(),
        SqlType::Array(element) => array(trimmed, element, style)?,
    })
}

/// The type's name without modifiers, as messages have it.
fn plain(sql_type: &SqlType) -> String {
    let text = sql_type.to_string();
    text.split('(').next().unwrap_or_default().to_string()
}

fn json_error(error: &serde_json::Error, name: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type {name}"))
        .with_detail(error.to_string())
}

/// Reads a decimal, with an exponent too.
pub fn decimal(text: &str) -> Option<Decimal> {
    let lower = text.to_ascii_lowercase();
    let Some((digits, exponent)) = lower.split_once('e') else { return Decimal::parse(text) };
    let decimal = Decimal::parse(digits)?;
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() <= 40)?;
    let scale = i32::from(decimal.scale) - exponent;
    if scale >= 0 {
        return Some(Decimal { mantissa: decimal.mantissa, scale: u8::try_from(scale).ok()? });
    }
    let mantissa = decimal.mantissa.checked_mul(10i128.checked_pow(scale.unsigned_abs())?)?;
    Some(Decimal { mantissa, scale: 0 })
}

/// A decimal as `numeric(precision, scale)`.
///
/// # Errors
/// `22003`
pub fn fit_numeric(decimal: Decimal, precision: u8, scale: u8) -> Result<Value> {
    let most = 10i128.pow(precision.min(38).into()) - 1;
    decimal
        .rescale(scale)
        .filter(|decimal| decimal.mantissa.abs() <= most)
        .map(Value::Numeric)
        .ok_or_else(|| match precision {
            38.. => crate::query::failure::numeric_overflow(),
            _ => Error::new(SqlState::OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}.",
                precision - scale.min(precision)
            )),
        })
}

fn array(text: &str, element: &SqlType, style: &TextStyle) -> Result<Value> {
    let elements = crate::text_format::array_literal::elements(text)?.into_iter();
    let rows = elements.map(|text| {
        let value = text.map_or(Ok(Value::Null), |text| from_text(&text, element, style))?;
        Ok(vec![value])
    });
    rows.collect::<Result<_>>().map(Value::List)
}
