//! Text to values, as PostgreSQL's input functions read it.

use super::{TextStyle, calendar};
use crate::interval;
use crate::sql_type::SqlType;
use fabius_value::{DataType, Decimal, Error, Result, SqlState, Value};

/// Reads a value in the type's storage type.
///
/// # Errors
/// `22P02`, `22007` for text that is no such value; `22003`, `22008`, `22001` for one beyond the type.
pub fn read(text: &str, sql_type: &SqlType, style: &TextStyle) -> Result<Value> {
    let trimmed = text.trim();
    Ok(match sql_type {
        SqlType::Boolean => Value::Boolean(boolean(trimmed).ok_or_else(|| invalid(text, sql_type))?),
        SqlType::SmallInt | SqlType::Int | SqlType::BigInt | SqlType::Oid => return integer(text, sql_type),
        SqlType::Real | SqlType::Double => return double(text, sql_type),
        SqlType::Numeric(_) => return numeric(text, sql_type),
        SqlType::Text | SqlType::Name | SqlType::VarChar(_) | SqlType::Char(_) => {
            let storage = sql_type.storage().unwrap_or(DataType::TEXT);
            let fitted =
                fabius_value::value::fit_text(text, storage).map_err(|error| match error.state() {
                    SqlState::TOO_LONG => {
                        Error::new(SqlState::TOO_LONG, format!("value too long for type {sql_type}"))
                    }
                    _ => error,
                })?;
            Value::Text(fitted.to_string())
        }
        SqlType::Json => {
            parsed_json(text)?;
            Value::Text(text.to_string())
        }
        SqlType::JsonB => Value::Text(shown_json(&parsed_json(text)?)),
        SqlType::Bytea => Value::Bytea(bytea(text)?),
        SqlType::Uuid => Value::Bytea(
            uuid::Uuid::parse_str(trimmed.trim_start_matches('{').trim_end_matches('}'))
                .map_err(|_| invalid(text, sql_type))?
                .into_bytes()
                .to_vec(),
        ),
        SqlType::Date => {
            Value::Date(calendar::read_date(text, style.order).ok_or_else(|| no_moment(text, sql_type))?)
        }
        SqlType::Time => {
            Value::BigInt(calendar::read_time(text, style.order).ok_or_else(|| no_moment(text, sql_type))?)
        }
        SqlType::Timestamp => Value::Timestamp(
            calendar::read_timestamp(text, style.order).ok_or_else(|| no_moment(text, sql_type))?,
        ),
        SqlType::TimestampTz => Value::Timestamp(
            calendar::read_zoned(text, style.order, style.zone).ok_or_else(|| no_moment(text, sql_type))?,
        ),
        SqlType::Array(element) => array(text, element, style)?,
        SqlType::Interval => Value::Text(interval::write(interval::read(text)?)),
        SqlType::Void | SqlType::Unknown => Value::Text(text.to_string()),
    })
}

fn invalid(text: &str, sql_type: &SqlType) -> Error {
    let name = match sql_type {
        SqlType::Numeric(_) => "numeric".to_string(),
        other => other.to_string(),
    };
    Error::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type {name}: \"{text}\""))
}

/// A text that has the digits of a day or time, but not of one that there is, is out of range.
fn no_moment(text: &str, sql_type: &SqlType) -> Error {
    let is_like_one = text.trim().bytes().all(|byte| byte.is_ascii_digit() || b"-/:. T+Z".contains(&byte))
        && text.trim().split(['-', '/', ':']).count() >= 3;
    let name = match sql_type {
        SqlType::Date => "date".to_string(),
        SqlType::Time => "time".to_string(),
        SqlType::Timestamp => "timestamp".to_string(),
        other => other.to_string(),
    };
    if is_like_one {
        return Error::new(
            SqlState::DATETIME_OVERFLOW,
            format!("date/time field value out of range: \"{text}\""),
        );
    }
    Error::new(SqlState::INVALID_DATETIME, format!("invalid input syntax for type {name}: \"{text}\""))
}

fn boolean(text: &str) -> Option<bool> {
    let lower = text.to_lowercase();
    let is_start = |word: &str, least: usize| lower.len() >= least && word.starts_with(&lower);
    if lower == "1" || is_start("true", 1) || is_start("yes", 1) || lower == "on" {
        return Some(true);
    }
    (lower == "0" || is_start("false", 1) || is_start("no", 1) || is_start("off", 2)).then_some(false)
}

fn integer(text: &str, sql_type: &SqlType) -> Result<Value> {
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid(text, sql_type));
    }
    let out_of_range = || {
        Error::new(SqlState::OUT_OF_RANGE, format!("value \"{text}\" is out of range for type {sql_type}"))
    };
    let wide: i64 = trimmed.trim_start_matches('+').parse().map_err(|_| out_of_range())?;
    match sql_type {
        SqlType::SmallInt => i16::try_from(wide).map(Value::SmallInt).map_err(|_| out_of_range()),
        SqlType::Int => i32::try_from(wide).map(Value::Int).map_err(|_| out_of_range()),
        SqlType::Oid => u32::try_from(wide).map(|oid| Value::BigInt(oid.into())).map_err(|_| out_of_range()),
        _ => Ok(Value::BigInt(wide)),
    }
}

fn double(text: &str, sql_type: &SqlType) -> Result<Value> {
    let trimmed = text.trim();
    let is_written = trimmed.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let value: f64 = match trimmed.to_lowercase().as_str() {
        "infinity" | "inf" | "+infinity" | "+inf" => f64::INFINITY,
        "-infinity" | "-inf" => f64::NEG_INFINITY,
        "nan" => f64::NAN,
        _ if !is_written => return Err(invalid(text, sql_type)),
        _ => {
            let value: f64 = trimmed.parse().map_err(|_| invalid(text, sql_type))?;
            let stored = if *sql_type == SqlType::Real { f64::from(value as f32) } else { value };
            let has_digits = trimmed
                .split(['e', 'E'])
                .next()
                .is_some_and(|m| m.contains(|c: char| ('1'..='9').contains(&c)));
            if stored.is_infinite() || (stored == 0.0 && has_digits) {
                return Err(Error::new(
                    SqlState::OUT_OF_RANGE,
                    format!("\"{trimmed}\" is out of range for type {sql_type}"),
                ));
            }
            stored
        }
    };
    Ok(Value::Double(value))
}

fn numeric(text: &str, sql_type: &SqlType) -> Result<Value> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("nan")
        || trimmed.to_lowercase().trim_start_matches(['+', '-']).starts_with("inf")
    {
        return Err(Error::new(SqlState::NOT_SUPPORTED, "numeric values are finite here")
            .with_detail(format!("the value is \"{trimmed}\"")));
    }
    let decimal = match trimmed.split_once(['e', 'E']) {
        None => Decimal::parse(trimmed),
        Some((mantissa, exponent)) => shifted(mantissa, exponent),
    }
    .ok_or_else(|| invalid(text, sql_type))?;
    let Some(storage) = sql_type.storage() else { return Ok(Value::Numeric(decimal)) };
    Value::Numeric(decimal).cast(storage).map_err(|error| match (error.state(), sql_type) {
        (SqlState::OUT_OF_RANGE, SqlType::Numeric(Some((precision, scale)))) => {
            let most = if precision == scale { "1".to_string() } else { format!("10^{}", precision - scale) };
            Error::new(SqlState::OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
                "A field with precision {precision}, scale {scale} must round to an absolute value less than {most}."
            ))
        }
        _ => error,
    })
}

/// `1.5e3`: the point moved.
fn shifted(mantissa: &str, exponent: &str) -> Option<Decimal> {
    let exponent: i32 = exponent.parse().ok().filter(|exponent: &i32| exponent.abs() <= 100)?;
    let decimal = Decimal::parse(mantissa)?;
    let scale = i32::from(decimal.scale) - exponent;
    if scale >= 0 {
        return Some(Decimal { mantissa: decimal.mantissa, scale: u8::try_from(scale).ok()? });
    }
    let factor = 10i128.checked_pow(u32::try_from(-scale).ok()?)?;
    Some(Decimal { mantissa: decimal.mantissa.checked_mul(factor)?, scale: 0 })
}

/// Bytes in hexadecimal (`\x...`) or escaped.
///
/// # Errors
/// `22023` for digits that are none, `22P02` for what is not escaped as it should be.
pub(crate) fn bytea(text: &str) -> Result<Vec<u8>> {
    let Some(digits) = text.strip_prefix("\\x") else {
        return escaped(text)
            .ok_or_else(|| Error::new(SqlState::INVALID_TEXT, "invalid input syntax for type bytea"));
    };
    let wrong = |message: String| Error::new(SqlState::INVALID_PARAMETER, message);
    let mut nibbles = Vec::with_capacity(digits.len());
    for digit in digits.chars().filter(|digit| !digit.is_ascii_whitespace()) {
        let nibble = digit.to_digit(16);
        nibbles.push(nibble.ok_or_else(|| wrong(format!("invalid hexadecimal digit: \"{digit}\"")))? as u8);
    }
    if !nibbles.len().is_multiple_of(2) {
        return Err(wrong("invalid hexadecimal data: odd number of digits".into()));
    }
    Ok(nibbles.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Bytes as themselves, but for backslashes, which are doubled, and `\001`.
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

fn parsed_json(text: &str) -> Result<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(SqlState::INVALID_TEXT, "invalid input syntax for type json")
            .with_detail(error.to_string())
    })
}

/// JSON as a `jsonb` is stored and shown.
///
/// # Errors
/// `22P02` if it is none.
pub fn jsonb(text: &str) -> Result<String> {
    Ok(shown_json(&parsed_json(text)?))
}

/// JSON as `jsonb` prints it: blanks behind commas and colons, keys by length, then by bytes, each once.
pub(crate) fn shown_json(json: &serde_json::Value) -> String {
    match json {
        serde_json::Value::Array(elements) => {
            format!("[{}]", elements.iter().map(shown_json).collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
            let member = |key: &String| {
                let value = members.get(key).map(shown_json).unwrap_or_default();
                format!("{}: {value}", serde_json::Value::String(key.clone()))
            };
            format!("{{{}}}", keys.into_iter().map(member).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn array(text: &str, element: &SqlType, style: &TextStyle) -> Result<Value> {
    let elements = super::array_literal::elements(text)?.into_iter();
    let rows = elements.map(|text| {
        let value = text.map_or(Ok(Value::Null), |text| read(&text, element, style))?;
        Ok(vec![value])
    });
    rows.collect::<Result<_>>().map(Value::List)
}
