//! A borrowed SQL value, as programs compute with it.
//!
//! The variant is the value's representation, not its type: programs are typed before they run,
//! so an `Int` may be a `smallint`, `int`, `bigint`, `date` (days) or `timestamp` (microseconds),
//! and a `Numeric` is the scaled integer whose scale its static type gives.

use crate::{DataType, Decimal, Value};

/// A scalar in the representation of its type; copied freely, borrows text and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Datum<'a> {
    /// SQL null, of any type.
    #[default]
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `smallint`, `int`, `bigint`, `date`, `timestamp`.
    Int(i64),
    /// `numeric`, times ten to its type's scale.
    Numeric(i128),
    /// `double precision`.
    Double(f64),
    /// `text`, `varchar`, `char`.
    Text(&'a str),
    /// `bytea`.
    Bytes(&'a [u8]),
}

impl<'a> Datum<'a> {
    /// Whether this is null.
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self, Datum::Null)
    }

    /// Whether this is `true` (not false, not null), as `require` and `if` ask.
    pub fn is_true(self) -> bool {
        matches!(self, Datum::Boolean(true))
    }

    /// The borrowed form of `value`, whose type is `data_type`.
    ///
    /// The value must already have that type (as [`Value::cast`] gives); lists have no datum.
    pub fn from_value(value: &'a Value) -> Datum<'a> {
        match value {
            Value::Null => Datum::Null,
            Value::Boolean(v) => Datum::Boolean(*v),
            Value::SmallInt(v) => Datum::Int((*v).into()),
            Value::Int(v) => Datum::Int((*v).into()),
            Value::BigInt(v) => Datum::Int(*v),
            Value::Numeric(v) => Datum::Numeric(v.mantissa),
            Value::Double(v) => Datum::Double(*v),
            Value::Text(v) => Datum::Text(v),
            Value::Bytea(v) => Datum::Bytes(v),
            Value::Date(v) => Datum::Int((*v).into()),
            Value::Timestamp(v) => Datum::Int(*v),
            Value::List(_) => panic!("a list is not a scalar"),
        }
    }

    /// The owned value, read as `data_type`.
    pub fn to_value(self, data_type: DataType) -> Value {
        match (self, data_type) {
            (Datum::Null, _) => Value::Null,
            (Datum::Boolean(v), _) => Value::Boolean(v),
            (Datum::Int(v), DataType::SmallInt) => Value::SmallInt(v as i16),
            (Datum::Int(v), DataType::Int) => Value::Int(v as i32),
            (Datum::Int(v), DataType::Date) => Value::Date(v as i32),
            (Datum::Int(v), DataType::Timestamp) => Value::Timestamp(v),
            (Datum::Int(v), _) => Value::BigInt(v),
            (Datum::Numeric(mantissa), data_type) => {
                Value::Numeric(Decimal { mantissa, scale: data_type.scale() })
            }
            (Datum::Double(v), _) => Value::Double(v),
            (Datum::Text(v), _) => Value::Text(v.into()),
            (Datum::Bytes(v), _) => Value::Bytea(v.into()),
        }
    }

    /// The integer inside; panics for any other representation (the verifier excludes it).
    #[inline]
    #[track_caller]
    pub fn int(self) -> i64 {
        match self {
            Datum::Int(v) => v,
            other => panic!("expected an integer, found {other:?}"),
        }
    }

    /// An exact number (integer or scaled numeric) as 128 bits.
    #[inline]
    #[track_caller]
    pub fn exact(self) -> i128 {
        match self {
            Datum::Int(v) => v.into(),
            Datum::Numeric(v) => v,
            other => panic!("expected an exact number, found {other:?}"),
        }
    }
}
