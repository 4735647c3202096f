//! Values that outlive the run of the action that has read or computed them: handed to other actions of the call, or
//! kept for the record until the queue's last action.

use bumpalo::Bump;
use fabius_value::Datum;

/// A value with its own memory.
#[derive(Debug)]
pub enum Handed {
    /// Anything but text and bytes.
    Plain(Datum<'static>),
    /// Text.
    Text(Box<str>),
    /// Bytes.
    Bytes(Box<[u8]>),
}

impl Handed {
    /// The value as an action finds it.
    #[inline]
    pub fn datum(&self) -> Datum<'_> {
        match self {
            Handed::Plain(datum) => *datum,
            Handed::Text(text) => Datum::Text(text),
            Handed::Bytes(bytes) => Datum::Bytes(bytes),
        }
    }

    /// The value in a worker's memory.
    pub fn in_arena<'a>(&self, arena: &'a Bump) -> Datum<'a> {
        match self {
            Handed::Plain(datum) => *datum,
            Handed::Text(text) => Datum::Text(arena.alloc_str(text)),
            Handed::Bytes(bytes) => Datum::Bytes(arena.alloc_slice_copy(bytes)),
        }
    }
}

impl From<Datum<'_>> for Handed {
    #[inline]
    fn from(datum: Datum<'_>) -> Handed {
        Handed::Plain(match datum {
            Datum::Text(text) => return Handed::Text(text.into()),
            Datum::Bytes(bytes) => return Handed::Bytes(bytes.into()),
            Datum::Null => Datum::Null,
            Datum::Boolean(value) => Datum::Boolean(value),
            Datum::Int(value) => Datum::Int(value),
            Datum::Numeric(value) => Datum::Numeric(value),
            Datum::Double(value) => Datum::Double(value),
        })
    }
}
