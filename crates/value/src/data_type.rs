//! The SQL types a column, parameter or expression can have.

use crate::{Error, SqlState};
use std::fmt;

/// A scalar SQL type with its modifiers (SQL:2016 part 2, 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// `boolean`
    Boolean,
    /// `smallint`: 16-bit signed integer.
    SmallInt,
    /// `int`: 32-bit signed integer.
    Int,
    /// `bigint`: 64-bit signed integer.
    BigInt,
    /// `numeric(precision, scale)`: exact decimal, at most 38 digits.
    Numeric {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, 0 to `precision`.
        scale: u8,
    },
    /// `double precision`: IEEE 754 binary64.
    Double,
    /// `text`, or `varchar(limit)`.
    Text {
        /// Most characters allowed, if bounded.
        limit: Option<u32>,
    },
    /// `char(length)`: blank-padded in SQL; stored without trailing blanks, compared without them.
    Char {
        /// Characters.
        length: u32,
    },
    /// `bytea`: bytes.
    Bytea,
    /// `date`: days since 1970-01-01 in the proleptic Gregorian calendar.
    Date,
    /// `timestamp`: microseconds since 1970-01-01 00:00:00, without time zone.
    Timestamp,
}

/// What two types have in common, for deciding which operations and casts exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// True and false.
    Boolean,
    /// `smallint`, `int`, `bigint`.
    Integer,
    /// `numeric`.
    Numeric,
    /// `double precision`.
    Double,
    /// `text`, `varchar`, `char`.
    Text,
    /// `bytea`.
    Bytea,
    /// `date`.
    Date,
    /// `timestamp`.
    Timestamp,
}

impl DataType {
    /// `text` without a bound.
    pub const TEXT: DataType = DataType::Text { limit: None };

    /// The family this type belongs to.
    pub fn family(self) -> Family {
        match self {
            DataType::Boolean => Family::Boolean,
            DataType::SmallInt | DataType::Int | DataType::BigInt => Family::Integer,
            DataType::Numeric { .. } => Family::Numeric,
            DataType::Double => Family::Double,
            DataType::Text { .. } | DataType::Char { .. } => Family::Text,
            DataType::Bytea => Family::Bytea,
            DataType::Date => Family::Date,
            DataType::Timestamp => Family::Timestamp,
        }
    }

    /// The smallest and largest value of an integer type, or of a numeric as a scaled integer.
    /// `None` for types that are not exact numbers.
    pub fn exact_range(self) -> Option<(i128, i128)> {
        match self {
            DataType::SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            DataType::Int => Some((i32::MIN.into(), i32::MAX.into())),
            DataType::BigInt => Some((i64::MIN.into(), i64::MAX.into())),
            DataType::Numeric { precision, .. } => {
                let bound = 10i128.pow(precision.into()) - 1;
                Some((-bound, bound))
            }
            _ => None,
        }
    }

    /// The smallest and largest number that a value can be in memory: [`exact_range`](DataType::exact_range), and those
    /// of dates and timestamps, which are numbers of days and of microseconds.
    pub fn number_range(self) -> Option<(i128, i128)> {
        match self {
            DataType::Date => DataType::Int.exact_range(),
            DataType::Timestamp => DataType::BigInt.exact_range(),
            other => other.exact_range(),
        }
    }

    /// The scale of a numeric; 0 for integers.
    pub fn scale(self) -> u8 {
        match self {
            DataType::Numeric { scale, .. } => scale,
            _ => 0,
        }
    }

    /// Whether values are exact numbers (integers and numerics).
    pub fn is_exact(self) -> bool {
        matches!(self.family(), Family::Integer | Family::Numeric)
    }

    /// Whether a numeric needs more than 64 bits.
    pub fn is_wide_numeric(self) -> bool {
        matches!(self, DataType::Numeric { precision, .. } if precision > 18)
    }
}

impl DataType {
    /// The type as PostgreSQL's messages name it.
    pub fn sql_name(self) -> String {
        match self {
            DataType::Int => "integer".into(),
            DataType::Text { limit: Some(limit) } => format!("character varying({limit})"),
            DataType::Char { length } => format!("character({length})"),
            DataType::Timestamp => "timestamp without time zone".into(),
            other => other.to_string(),
        }
    }

    /// `22003` for a value beyond the type's range, as PostgreSQL words it.
    #[cold]
    pub fn out_of_range(self) -> Error {
        match self {
            DataType::Numeric { precision, scale } => {
                let whole = precision - scale;
                let most = if whole == 0 { "1".to_string() } else { format!("10^{whole}") };
                Error::new(SqlState::OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less than {most}."
                ))
            }
            DataType::Timestamp => Error::new(SqlState::OUT_OF_RANGE, "timestamp out of range"),
            other => Error::new(SqlState::OUT_OF_RANGE, format!("{} out of range", other.sql_name())),
        }
    }
}

impl fmt::Display for DataType {
    /// The type as SQL and the text form write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Boolean => f.write_str("boolean"),
            DataType::SmallInt => f.write_str("smallint"),
            DataType::Int => f.write_str("int"),
            DataType::BigInt => f.write_str("bigint"),
            DataType::Numeric { precision, scale } => write!(f, "numeric({precision}, {scale})"),
            DataType::Double => f.write_str("double precision"),
            DataType::Text { limit: None } => f.write_str("text"),
            DataType::Text { limit: Some(limit) } => write!(f, "varchar({limit})"),
            DataType::Char { length } => write!(f, "char({length})"),
            DataType::Bytea => f.write_str("bytea"),
            DataType::Date => f.write_str("date"),
            DataType::Timestamp => f.write_str("timestamp"),
        }
    }
}
