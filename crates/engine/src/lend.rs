//! Values of their owner's, as long as a run's arena lives.

use bumpalo::Bump;
use fabius_value::{Datum, Value};

/// The value, with its text or bytes copied to the arena.
pub fn lend<'a>(arena: &'a Bump, value: &Value) -> Datum<'a> {
    match Datum::from_value(value) {
        Datum::Text(text) => Datum::Text(arena.alloc_str(text)),
        Datum::Bytes(bytes) => Datum::Bytes(arena.alloc_slice_copy(bytes)),
        Datum::Null => Datum::Null,
        Datum::Boolean(v) => Datum::Boolean(v),
        Datum::Int(v) => Datum::Int(v),
        Datum::Numeric(v) => Datum::Numeric(v),
        Datum::Double(v) => Datum::Double(v),
    }
}
