//! An owned SQL value, as callers pass and receive it.

use crate::{DataType, Decimal, Error, Result, SqlState, calendar, data_type::Family, limit};
use crate::{float_text, moment_text};
use std::fmt;

/// A SQL value, or a list of rows of values (parameters and results may be lists).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Null, of any type.
    #[default]
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `smallint`.
    SmallInt(i16),
    /// `int`.
    Int(i32),
    /// `bigint`.
    BigInt(i64),
    /// `numeric`.
    Numeric(Decimal),
    /// `double precision`.
    Double(f64),
    /// `text`, `varchar`, `char`.
    Text(String),
    /// `bytea`.
    Bytea(Vec<u8>),
    /// `date`: days since 1970-01-01.
    Date(i32),
    /// `timestamp`: microseconds since 1970-01-01 00:00:00.
    Timestamp(i64),
    /// A list; each element has one value per field.
    List(Vec<Vec<Value>>),
}

impl Value {
    /// What a value takes in memory as a part of a row, about; its text or bytes, or the list that it is, come besides.
    pub const BYTES: usize = size_of::<Value>() + 16;

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        Value::BYTES
            + match self {
                Value::Text(text) => text.len(),
                Value::Bytea(bytes) => bytes.len(),
                Value::List(rows) => rows.iter().flatten().map(Value::bytes).sum(),
                _ => 0,
            }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The number of a `smallint`, `int` or `bigint`.
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Value::SmallInt(v) => Some(v.into()),
            Value::Int(v) => Some(v.into()),
            Value::BigInt(v) => Some(v),
            _ => None,
        }
    }

    /// The nearest binary64 of any number.
    pub fn as_double(&self) -> Option<f64> {
        match self {
            Value::Double(v) => Some(*v),
            Value::Numeric(v) => Some(v.to_f64()),
            other => other.as_integer().map(|v| v as f64),
        }
    }

    /// What the value is, for messages: `bigint`, `text`, `null`, `list`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Boolean(_) => "boolean",
            Value::SmallInt(_) => "smallint",
            Value::Int(_) => "int",
            Value::BigInt(_) => "bigint",
            Value::Numeric(_) => "numeric",
            Value::Double(_) => "double precision",
            Value::Text(_) => "text",
            Value::Bytea(_) => "bytea",
            Value::Date(_) => "date",
            Value::Timestamp(_) => "timestamp",
            Value::List(_) => "list",
        }
    }

    /// Converts to `data_type` as an assignment does in SQL: numbers to numbers with a range check
    /// and rounding, text to text with a length check, text to anything by parsing, anything to
    /// text. Null stays null.
    ///
    /// # Errors
    /// `22003` out of range, `22008` a date beyond the timestamps, `22001` too long, `22P02`/`22007`
    /// text that does not read as the type, `42804` types that have no conversion.
    pub fn cast(&self, data_type: DataType) -> Result<Value> {
        let out_of_range = || data_type.out_of_range();
        let integer = |number: i128| -> Result<Value> {
            match data_type {
                DataType::SmallInt => number.try_into().map(Value::SmallInt),
                DataType::Int => number.try_into().map(Value::Int),
                _ => number.try_into().map(Value::BigInt),
            }
            .map_err(|_| out_of_range())
        };
        let numeric = |decimal: Option<Decimal>| -> Result<Value> {
            let (_, most) = data_type.exact_range().expect("a numeric has a range");
            decimal
                .and_then(|decimal| decimal.rescale(data_type.scale()))
                .filter(|decimal| decimal.mantissa.abs() <= most)
                .map(Value::Numeric)
                .ok_or_else(out_of_range)
        };
        let (number, double) = (self.as_integer(), self.as_double());
        match (data_type.family(), self) {
            (_, Value::Null) => Ok(Value::Null),
            (_, Value::List(_)) => Err(self.no_cast(data_type)),
            (Family::Boolean, Value::Boolean(v)) => Ok(Value::Boolean(*v)),
            (Family::Integer, Value::Numeric(v)) => integer(v.rescale(0).ok_or_else(out_of_range)?.mantissa),
            (Family::Integer, Value::Double(v)) => {
                let rounded = v.round_ties_even();
                if !rounded.is_finite() || rounded.abs() > 1e19 {
                    return Err(out_of_range());
                }
                integer(rounded as i128)
            }
            (Family::Integer, _) if number.is_some() => integer(number.unwrap_or_default().into()),
            (Family::Numeric, Value::Numeric(v)) => numeric(Some(*v)),
            (Family::Numeric, Value::Double(v)) => numeric(Decimal::from_f64(*v, data_type.scale())),
            (Family::Numeric, _) if number.is_some() => {
                numeric(number.map(|v| Decimal { mantissa: v.into(), scale: 0 }))
            }
            (Family::Double, _) if double.is_some() => Ok(double.into()),
            (Family::Text, Value::Bytea(_)) => Err(self.no_cast(data_type)),
            (Family::Text, Value::Text(v)) => fit_text(v, data_type).map(|v| Value::Text(v.into())),
            (Family::Text, other) => {
                let text = other.to_string();
                fit_text(&text, data_type).map(|v| Value::Text(v.into()))
            }
            (Family::Bytea, Value::Bytea(v)) => {
                check_blob(v.len())?;
                Ok(Value::Bytea(v.clone()))
            }
            (Family::Date, Value::Date(v)) => Ok(Value::Date(*v)),
            (Family::Date, Value::Timestamp(v)) => {
                i32::try_from(v.div_euclid(calendar::DAY_MICROS)).map(Value::Date).map_err(|_| out_of_range())
            }
            (Family::Timestamp, Value::Timestamp(v)) => Ok(Value::Timestamp(*v)),
            (Family::Timestamp, Value::Date(v)) => {
                let micros = i64::from(*v).checked_mul(calendar::DAY_MICROS);
                micros.map(Value::Timestamp).ok_or_else(|| {
                    Error::new(SqlState::DATETIME_OVERFLOW, "timestamp out of range")
                        .with_detail(format!("value is {self}"))
                })
            }
            (_, Value::Text(text)) => Value::parse(text, data_type),
            _ => Err(self.no_cast(data_type)),
        }
    }

    fn no_cast(&self, data_type: DataType) -> Error {
        Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!("{} does not convert to {data_type}", self.type_name()),
        )
    }
}

/// Text as `data_type` stores it: `char` loses trailing blanks; too long is an error unless only
/// blanks are cut (SQL:2016 part 2, 9.2).
///
/// # Errors
/// `22001` if more characters than the type allows remain.
pub fn fit_text(text: &str, data_type: DataType) -> Result<&str> {
    let (text, most) = match data_type {
        DataType::Char { length } => (text.trim_end_matches(' '), Some(length)),
        DataType::Text { limit } => (text, limit),
        _ => (text, None),
    };
    check_blob(text.len())?;
    let Some(most) = most else { return Ok(text) };
    // Bytes bound characters from above, so the usual short text is not counted.
    if text.len() <= most as usize {
        return Ok(text);
    }
    match text.char_indices().nth(most as usize) {
        None => Ok(text),
        Some((at, _)) if text[at..].bytes().all(|byte| byte == b' ') => Ok(&text[..at]),
        Some(_) => {
            Err(Error::new(SqlState::TOO_LONG, format!("value too long for type {}", data_type.sql_name()))
                .with_detail(format!("it has {} characters", text.chars().count())))
        }
    }
}

/// Checks the length of a text or bytea.
///
/// # Errors
/// `54000` above [`limit::BLOB_BYTES`].
pub fn check_blob(bytes: usize) -> Result<()> {
    if bytes > limit::BLOB_BYTES {
        return Err(Error::new(SqlState::PROGRAM_LIMIT, "value too large")
            .with_detail(format!("it has {bytes} bytes, at most {} are allowed", limit::BLOB_BYTES))
            .with_hint("divide it among several rows"));
    }
    Ok(())
}

impl fmt::Display for Value {
    /// The value as PostgreSQL shows it; lists as `[(1, 2), (3, 4)]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(v) => write!(f, "{v}"),
            Value::SmallInt(v) => write!(f, "{v}"),
            Value::Int(v) => write!(f, "{v}"),
            Value::BigInt(v) => write!(f, "{v}"),
            Value::Numeric(v) => write!(f, "{v}"),
            Value::Double(v) => f.write_str(&float_text::text(*v)),
            Value::Text(v) => f.write_str(v),
            Value::Bytea(v) => {
                f.write_str("\\x")?;
                v.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Date(v) => f.write_str(&moment_text::date_text(*v)),
            Value::Timestamp(v) => f.write_str(&moment_text::timestamp_text(*v)),
            Value::List(rows) => {
                f.write_str("[")?;
                for (at, row) in rows.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    let fields: Vec<String> = row.iter().map(Value::to_string).collect();
                    write!(f, "({})", fields.join(", "))?;
                }
                f.write_str("]")
            }
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),*) => {
        $(impl From<$source> for Value {
            fn from(value: $source) -> Value { Value::$variant(value.into()) }
        })*
    };
}
from!(bool => Boolean, i16 => SmallInt, i32 => Int, i64 => BigInt, Decimal => Numeric, f64 => Double,
      &str => Text, String => Text, Vec<u8> => Bytea);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn casts_round_check_and_refuse() {
        let numeric = DataType::Numeric { precision: 4, scale: 2 };
        let cases: &[(Value, DataType, Result<&str, SqlState>)] = &[
            (Value::BigInt(40_000), DataType::SmallInt, Err(SqlState::OUT_OF_RANGE)),
            (Value::BigInt(32_767), DataType::SmallInt, Ok("32767")),
            (Value::Double(2.5), DataType::Int, Ok("2")),
            (Value::Double(f64::INFINITY), DataType::BigInt, Err(SqlState::OUT_OF_RANGE)),
            (Value::Text("99.995".into()), numeric, Err(SqlState::OUT_OF_RANGE)),
            (Value::Text("99.994".into()), numeric, Ok("99.99")),
            (Value::Text("abc  ".into()), DataType::Text { limit: Some(3) }, Ok("abc")),
            (Value::Text("abcd".into()), DataType::Text { limit: Some(3) }, Err(SqlState::TOO_LONG)),
            (Value::Text("x  ".into()), DataType::Char { length: 1 }, Ok("x")),
            (Value::Text("éé".into()), DataType::Text { limit: Some(2) }, Ok("éé")),
            (Value::Text("\\x0aFF".into()), DataType::Bytea, Ok("\\x0aff")),
            (Value::Text("\\x0".into()), DataType::Bytea, Err(SqlState::INVALID_PARAMETER)),
            (Value::Text("2026-13-01".into()), DataType::Date, Err(SqlState::DATETIME_OVERFLOW)),
            (Value::Text("x".into()), DataType::Date, Err(SqlState::INVALID_DATETIME)),
            (Value::Boolean(true), DataType::Int, Err(SqlState::DATATYPE_MISMATCH)),
            (Value::Date(i32::MAX), DataType::Timestamp, Err(SqlState::DATETIME_OVERFLOW)),
            (Value::Date(i32::MIN), DataType::Timestamp, Err(SqlState::DATETIME_OVERFLOW)),
            (Value::Date(106_751_991), DataType::Timestamp, Ok("294247-01-10 00:00:00")),
            (Value::Date(i32::MAX), DataType::TEXT, Ok("infinity")),
            (Value::Timestamp(i64::MIN), DataType::Date, Ok("290309-12-21 BC")),
            (Value::Numeric(Decimal { mantissa: 5, scale: 200 }), numeric, Ok("0.00")),
            (Value::Null, DataType::Int, Ok("null")),
        ];
        for (value, data_type, expected) in cases {
            let got = value.cast(*data_type).map(|v| v.to_string()).map_err(|e| e.state());
            assert_eq!(got, expected.map(String::from), "{value:?} as {data_type}");
        }
    }
}
