//! The types that SQL has, and how each is stored.
//!
//! Storage knows fewer types than PostgreSQL does; each SQL type has one storage type that keeps its values
//! and their order. Object identifiers are PostgreSQL's (`pg_type.oid`), which clients know by heart.

mod enumeration;
mod name;
mod numeric;

pub use enumeration::{Enumeration, Label};
pub use numeric::{FREE_SCALE, QUOTIENT};

use fabius_value::DataType;
use std::sync::Arc;

/// A SQL type with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum SqlType {
    /// `boolean`
    Boolean,
    /// `smallint`
    SmallInt,
    /// `integer`
    Int,
    /// `bigint`
    BigInt,
    /// `oid`: an object identifier, stored as `bigint`.
    Oid,
    /// `real`: stored as `double precision`, rounded to 32 bits.
    Real,
    /// `double precision`
    Double,
    /// `numeric(precision, scale)`; without modifiers, 38 digits with [`FREE_SCALE`] of them after the point.
    Numeric(Option<(u8, u8)>),
    /// `text`
    Text,
    /// `varchar(n)`, `varchar`
    VarChar(Option<u32>),
    /// `char(n)`
    Char(u32),
    /// `name`: PostgreSQL's type of identifiers, stored as `text`.
    Name,
    /// `bytea`
    Bytea,
    /// `date`
    Date,
    /// `time`: microseconds of the day, stored as `bigint`.
    Time,
    /// `timestamp`
    Timestamp,
    /// `timestamp with time zone`: stored in UTC, as `timestamp`.
    TimestampTz,
    /// `time(n)`, `timestamp(n)`, `timestamp(n) with time zone`: that type, its values rounded to so many digits of a
    /// second where they are stored or cast. It is the type of a column or target, never that of a value
    /// ([`SqlType::of_values`]).
    Rounded(Box<SqlType>, u8),
    /// `interval`: stored as its text.
    Interval,
    /// `uuid`: stored as its 16 bytes.
    Uuid,
    /// `inet`: stored as bytes in the order of addresses ([`Network`](fabius_value::network::Network)).
    Inet,
    /// `cidr`: an `inet` whose bits behind its network's are all 0.
    Cidr,
    /// `json`: stored as it was written.
    Json,
    /// `jsonb`: stored as PostgreSQL prints it.
    JsonB,
    /// An enumeration: stored as the number of a label.
    Enumeration(Arc<Enumeration>),
    /// An array: stored as its text.
    Array(Box<SqlType>),
    /// What a function without a result returns.
    Void,
    /// A literal or parameter whose type is not known yet.
    Unknown,
}

impl SqlType {
    /// How values are stored; `None` for types that cannot be a column's.
    pub fn storage(&self) -> Option<DataType> {
        Some(match self {
            SqlType::Boolean => DataType::Boolean,
            SqlType::SmallInt => DataType::SmallInt,
            SqlType::Int => DataType::Int,
            SqlType::BigInt | SqlType::Oid | SqlType::Time | SqlType::Enumeration(_) => DataType::BigInt,
            SqlType::Real | SqlType::Double => DataType::Double,
            SqlType::Numeric(Some((precision, scale))) => {
                DataType::Numeric { precision: *precision, scale: *scale }
            }
            SqlType::Numeric(None) => DataType::Numeric { precision: 38, scale: FREE_SCALE },
            SqlType::Text | SqlType::Name | SqlType::Json | SqlType::JsonB | SqlType::VarChar(None) => {
                DataType::Text { limit: None }
            }
            SqlType::VarChar(limit) => DataType::Text { limit: *limit },
            SqlType::Char(length) => DataType::Char { length: *length },
            SqlType::Bytea | SqlType::Uuid | SqlType::Inet | SqlType::Cidr => DataType::Bytea,
            SqlType::Date => DataType::Date,
            SqlType::Timestamp | SqlType::TimestampTz => DataType::Timestamp,
            SqlType::Rounded(of, _) => return of.storage(),
            SqlType::Interval => DataType::Text { limit: None },
            SqlType::Array(element) if !element.is_kept_as_text() => {
                element.storage()?;
                DataType::Text { limit: None }
            }
            SqlType::Array(_) | SqlType::Void | SqlType::Unknown => return None,
        })
    }

    /// The type of the elements of an array of any number of dimensions; the type itself if it is of no array.
    pub fn innermost(&self) -> &SqlType {
        match self {
            SqlType::Array(element) => element.innermost(),
            other => other,
        }
    }

    /// The type that values of it have.
    pub fn of_values(&self) -> SqlType {
        match self {
            SqlType::Rounded(of, _) => (**of).clone(),
            SqlType::Array(element) => SqlType::Array(Box::new(element.of_values())),
            other => other.clone(),
        }
    }

    /// Whether values are stored as their text, which says nothing of their order.
    pub fn is_kept_as_text(&self) -> bool {
        matches!(self, SqlType::Interval | SqlType::Array(_))
    }
}
