//! The outcome under an idempotency key as bytes.
//!
//! ```text
//! committed, no result wanted   00
//! committed                     01   count: varint, values
//! aborted                       02   SQLSTATE (5 bytes), message, detail, hint, line
//! the same, with a place        03   as above, then schema, table, column, constraint, context
//!
//! message, detail, hint, ...    length plus one: varint, text; zero if there is none
//! line                          varint, plus one; zero if there is none
//! value                         tag, then: fixed bytes, little-endian; length: varint, bytes; or rows of a list
//! ```
//!
//! Values carry a tag because a result is read without the program that returned it.

use crate::Ticket;
use crate::entry::{push_varint, take_bytes, take_varint};
use crate::idempotency::First;
use fabius_value::{Decimal, Error, Place, Seq, SqlState, Value};
use std::sync::Arc;

/// Appends an outcome; `results` are those of its ticket.
pub(super) fn encode(first: &First, results: Option<&[Value]>, to: &mut Vec<u8>) {
    match (&first.abort, results) {
        (Some(error), _) => {
            to.push(if error.place().is_some() { 3 } else { 2 });
            to.extend_from_slice(&error.state().0);
            push_texts([Some(error.message()), error.detail(), error.hint()], to);
            push_varint(error.line().map_or(0, |line| u64::from(line) + 1), to);
            if let Some(place) = error.place() {
                let Place { schema, table, column, constraint, context } = place;
                push_texts([schema, table, column, constraint, context].map(Option::as_deref), to);
            }
        }
        (None, None) => to.push(0),
        (None, Some(results)) => {
            to.push(1);
            push_values(results, to);
        }
    }
}

/// Takes an outcome off the front; `None` if the bytes are none.
pub(super) fn take(seq: Seq, bytes: &mut &[u8]) -> Option<First> {
    let (abort, ticket) = match take_byte(bytes)? {
        0 => (None, None),
        1 => (None, Some(Arc::new(Ticket::ready(Ok(take_values(bytes)?))))),
        2 => (Some(take_error(bytes)?), None),
        3 => (Some(take_place(take_error(bytes)?, bytes)?), None),
        _ => return None,
    };
    Some(First { seq, abort, ticket })
}

fn take_error(bytes: &mut &[u8]) -> Option<Error> {
    let state = SqlState(take_array(bytes)?);
    let mut error = Error::new(state, take_text(bytes)??);
    if let Some(detail) = take_text(bytes)? {
        error = error.with_detail(detail);
    }
    if let Some(hint) = take_text(bytes)? {
        error = error.with_hint(hint);
    }
    match take_varint(bytes)? {
        0 => Some(error),
        line => Some(error.at_line(u32::try_from(line - 1).ok()?)),
    }
}

fn take_place(error: Error, bytes: &mut &[u8]) -> Option<Error> {
    let mut text = || take_text(bytes);
    let (schema, table, column) = (text()?, text()?, text()?);
    Some(error.with_place(Place { schema, table, column, constraint: text()?, context: text()? }))
}

fn push_texts<const N: usize>(texts: [Option<&str>; N], to: &mut Vec<u8>) {
    for text in texts {
        push_varint(text.map_or(0, |text| text.len() as u64 + 1), to);
        to.extend_from_slice(text.unwrap_or_default().as_bytes());
    }
}

/// A text that may not be there.
fn take_text(bytes: &mut &[u8]) -> Option<Option<String>> {
    let Some(length) = take_varint(bytes)?.checked_sub(1) else { return Some(None) };
    let (text, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(Some(std::str::from_utf8(text).ok()?.to_string()))
}

fn push_values(values: &[Value], to: &mut Vec<u8>) {
    push_varint(values.len() as u64, to);
    values.iter().for_each(|value| push_value(value, to));
}

fn push_value(value: &Value, to: &mut Vec<u8>) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        to.push(tag);
        to.extend_from_slice(bytes);
    };
    match value {
        Value::Null => tagged(0, &[]),
        Value::Boolean(v) => tagged(1, &[(*v).into()]),
        Value::SmallInt(v) => tagged(2, &v.to_le_bytes()),
        Value::Int(v) => tagged(3, &v.to_le_bytes()),
        Value::BigInt(v) => tagged(4, &v.to_le_bytes()),
        Value::Numeric(v) => {
            tagged(5, &v.mantissa.to_le_bytes());
            to.push(v.scale);
        }
        Value::Double(v) => tagged(6, &v.to_le_bytes()),
        Value::Text(v) => {
            to.push(7);
            push_blob(v.as_bytes(), to);
        }
        Value::Bytea(v) => {
            to.push(8);
            push_blob(v, to);
        }
        Value::Date(v) => tagged(9, &v.to_le_bytes()),
        Value::Timestamp(v) => tagged(10, &v.to_le_bytes()),
        Value::List(rows) => {
            to.push(11);
            push_varint(rows.len() as u64, to);
            rows.iter().for_each(|row| push_values(row, to));
        }
    }
}

fn push_blob(bytes: &[u8], to: &mut Vec<u8>) {
    push_varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

fn take_values(bytes: &mut &[u8]) -> Option<Vec<Value>> {
    let count = take_count(bytes)?;
    (0..count).map(|_| take_value(bytes, true)).collect()
}

fn take_value(bytes: &mut &[u8], may_be_list: bool) -> Option<Value> {
    Some(match take_byte(bytes)? {
        0 => Value::Null,
        1 => Value::Boolean(take_byte(bytes)? != 0),
        2 => Value::SmallInt(i16::from_le_bytes(take_array(bytes)?)),
        3 => Value::Int(i32::from_le_bytes(take_array(bytes)?)),
        4 => Value::BigInt(i64::from_le_bytes(take_array(bytes)?)),
        5 => {
            let mantissa = i128::from_le_bytes(take_array(bytes)?);
            Value::Numeric(Decimal { mantissa, scale: take_byte(bytes)? })
        }
        6 => Value::Double(f64::from_le_bytes(take_array(bytes)?)),
        7 => Value::Text(std::str::from_utf8(take_bytes(bytes)?).ok()?.into()),
        8 => Value::Bytea(take_bytes(bytes)?.into()),
        9 => Value::Date(i32::from_le_bytes(take_array(bytes)?)),
        10 => Value::Timestamp(i64::from_le_bytes(take_array(bytes)?)),
        11 if may_be_list => {
            let rows = take_count(bytes)?;
            let row = |bytes: &mut &[u8]| {
                let fields = take_count(bytes)?;
                (0..fields).map(|_| take_value(bytes, false)).collect::<Option<Vec<_>>>()
            };
            Value::List((0..rows).map(|_| row(bytes)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// A count of things that take a byte each at least.
fn take_count(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(take_varint(bytes)?).ok().filter(|count| *count <= bytes.len())
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    take_array::<1>(bytes).map(|[byte]| byte)
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(first: &First) {
        let mut bytes = Vec::new();
        let values = first.ticket.as_ref().map(|ticket| ticket.values().unwrap().clone().unwrap());
        encode(first, values.as_deref(), &mut bytes);
        for cut in 0..bytes.len() {
            assert!(take(first.seq, &mut &bytes[..cut]).is_none(), "cut at {cut}");
        }
        let mut rest = &bytes[..];
        let again = take(first.seq, &mut rest).expect("what was written");
        assert!(rest.is_empty());
        assert_eq!(again.abort, first.abort);
        let again = again.ticket.map(|ticket| ticket.values().unwrap().clone().unwrap());
        assert_eq!(again, values);
    }

    /// Goal: every outcome reads back, and no part of one passes for one.
    #[test]
    fn outcomes_read_back() {
        let values = vec![
            Value::Null,
            Value::Boolean(true),
            Value::SmallInt(-2),
            Value::Int(3),
            Value::BigInt(i64::MIN),
            Value::Numeric(Decimal { mantissa: -12_345, scale: 2 }),
            Value::Double(0.5),
            Value::Text("é".into()),
            Value::Bytea(vec![0, 255]),
            Value::Date(-1),
            Value::Timestamp(77),
            Value::List(vec![vec![Value::Int(1), Value::Null], vec![]]),
        ];
        let error = Error::new(SqlState::RAISED, "sold out");
        let full = error.clone().with_detail("0 left").with_hint("").at_line(7);
        round_trip(&First { seq: Seq(1), abort: None, ticket: None });
        round_trip(&First { seq: Seq(2), abort: None, ticket: Some(Arc::new(Ticket::ready(Ok(values)))) });
        round_trip(&First { seq: Seq(3), abort: Some(error), ticket: None });
        round_trip(&First { seq: Seq(4), abort: Some(full.clone()), ticket: None });
        let placed = full.with_table("public", "stock").with_constraint("stock_pkey").with_column("");
        round_trip(&First { seq: Seq(5), abort: Some(placed), ticket: None });
    }

    /// Goal: what was written before errors had places still reads, and what has none is written like that.
    #[test]
    fn an_error_without_a_place_is_as_it_always_was() {
        let bytes = b"\x02P0001\x09sold out\x00\x00\x08";
        let error = Error::new(SqlState::RAISED, "sold out").at_line(7);
        assert_eq!(take(Seq(1), &mut &bytes[..]).expect("an outcome").abort, Some(error.clone()));
        let mut written = Vec::new();
        encode(&First { seq: Seq(1), abort: Some(error), ticket: None }, None, &mut written);
        assert_eq!(written, bytes);
    }

    proptest! {
        #[test]
        fn garbage_is_refused_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = take(Seq(1), &mut &bytes[..]);
        }
    }
}
