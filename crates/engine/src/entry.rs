//! The log's entries: calls and definitions as bytes.
//!
//! ```text
//! batch of calls    01  time: i64 LE (microseconds since 1970)  call call ...
//! definition        02  the definition's canonical text (one entry)
//! key window        03  calls: u64 LE (one entry): from here on, idempotency keys are remembered so many
//!                       calls back; a log that says nothing means 10,000,000
//! nothing           05  (one entry): takes its place in the order, and is all that it does; 04 is how a log under
//!                       agreement begins what it holds (`fabius_cluster`)
//! checkpoint        06  (one entry): changes nothing; every node of a cluster takes a checkpoint of the state here
//!
//! call              flags: u8   procedure: varint   [key length: varint, key]
//!                   argument length: varint   arguments
//! flags             1: an idempotency key follows    2: the caller wants the result
//! ```
//!
//! Clients encode calls when they make them, so the sequencer only copies bytes. What the arguments
//! mean is the procedure's business (`fabius_program::arguments`).

use fabius_program::catalog::ProcedureId;
use fabius_value::{Error, Result, Seq, SqlState};

const CALLS: u8 = 1;
const DEFINITION: u8 = 2;
const KEY_WINDOW: u8 = 3;
const NOTHING: u8 = 5;
const CHECKPOINT: u8 = 6;
const HAS_KEY: u8 = 1;
const WANTS_RESULT: u8 = 2;

/// A call, borrowed from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'e> {
    /// Which procedure.
    pub procedure: ProcedureId,
    /// The arguments, encoded.
    pub arguments: &'e [u8],
    /// The caller's idempotency key.
    pub key: Option<&'e [u8]>,
    /// Whether the caller will ask for the returned values.
    pub wants_result: bool,
}

/// What one log batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries<'e> {
    /// Calls with their logged time.
    Calls {
        /// Microseconds since 1970.
        time_us: i64,
        /// Encoded calls; read with [`calls`].
        bytes: &'e [u8],
    },
    /// A table or procedure in canonical text.
    Definition(&'e str),
    /// How many calls back idempotency keys are remembered from here on.
    KeyWindow(u64),
    /// A place in the order, and no more.
    Nothing,
    /// A place in the order of which whoever keeps checkpoints takes one.
    Checkpoint,
}

/// Bytes before the calls of a batch.
pub const HEAD_BYTES: usize = 9;

/// Starts a batch of calls; the encoded calls follow.
pub fn begin_calls(time_us: i64, to: &mut Vec<u8>) {
    to.push(CALLS);
    to.extend_from_slice(&time_us.to_le_bytes());
}

/// A definition as a batch of one entry.
pub fn encode_definition(text: &str) -> Vec<u8> {
    let mut bytes = vec![DEFINITION];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// A change of the key window as a batch of one entry.
pub fn encode_key_window(calls: u64) -> Vec<u8> {
    let mut bytes = vec![KEY_WINDOW];
    bytes.extend_from_slice(&calls.to_le_bytes());
    bytes
}

/// An entry that takes its place in the order and does nothing, as a batch.
pub fn encode_nothing() -> Vec<u8> {
    vec![NOTHING]
}

/// The place of a checkpoint, as a batch of one entry.
pub fn encode_checkpoint() -> Vec<u8> {
    vec![CHECKPOINT]
}

/// Appends one call.
pub fn encode_call(call: &Call<'_>, to: &mut Vec<u8>) {
    let flags =
        if call.key.is_some() { HAS_KEY } else { 0 } | if call.wants_result { WANTS_RESULT } else { 0 };
    to.push(flags);
    push_varint(call.procedure.0.into(), to);
    if let Some(key) = call.key {
        push_varint(key.len() as u64, to);
        to.extend_from_slice(key);
    }
    push_varint(call.arguments.len() as u64, to);
    to.extend_from_slice(call.arguments);
}

/// Reads a log batch.
///
/// # Errors
/// `XX001` if it is of no known kind or cut short.
pub fn decode(payload: &[u8]) -> Result<Entries<'_>> {
    match payload.split_first() {
        Some((&CALLS, rest)) => {
            let (time, bytes) = rest.split_first_chunk::<8>().ok_or_else(malformed)?;
            Ok(Entries::Calls { time_us: i64::from_le_bytes(*time), bytes })
        }
        Some((&DEFINITION, text)) => {
            std::str::from_utf8(text).map(Entries::Definition).map_err(|_| malformed())
        }
        Some((&KEY_WINDOW, calls)) => {
            let calls = calls.try_into().map_err(|_| malformed())?;
            Ok(Entries::KeyWindow(u64::from_le_bytes(calls)))
        }
        Some((&NOTHING, [])) => Ok(Entries::Nothing),
        Some((&CHECKPOINT, [])) => Ok(Entries::Checkpoint),
        _ => Err(malformed().with_hint("it may have been written by a newer version of Fabius")),
    }
}

/// Reads a log batch of so many entries from `first_seq` on, where an engine that replays the log stands at
/// `expected`.
///
/// # Errors
/// `XX001` as for [`decode`], or if it is not what comes next, or does not have so many entries.
pub fn decode_next(payload: &[u8], first_seq: Seq, count: u32, expected: Seq) -> Result<Entries<'_>> {
    let damaged = |what: String| Error::new(SqlState::DATA_CORRUPTED, what);
    if expected != first_seq {
        return Err(damaged(format!("log goes on at {first_seq}, expected {expected}")));
    }
    let entries = decode(payload)?;
    let found = match entries {
        Entries::Calls { bytes, .. } => calls(bytes).try_fold(0u32, |count, call| call.map(|_| count + 1))?,
        Entries::Definition(_) | Entries::KeyWindow(_) | Entries::Nothing | Entries::Checkpoint => 1,
    };
    if found != count {
        return Err(damaged(format!("log batch at {first_seq} has {found} entries, expected {count}")));
    }
    Ok(entries)
}

fn malformed() -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "log entry is malformed")
}

/// The calls in a run of encoded calls, each with its bytes; an error ends the iteration.
pub fn calls(mut bytes: &[u8]) -> impl Iterator<Item = Result<Call<'_>>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let call = take_call(&mut bytes).ok_or_else(malformed);
        if call.is_err() {
            bytes = &[];
        }
        Some(call)
    })
}

/// Takes one call off the front; `None` if the bytes are malformed.
#[inline]
pub fn take_call<'e>(bytes: &mut &'e [u8]) -> Option<Call<'e>> {
    let (&flags, rest) = bytes.split_first()?;
    *bytes = rest;
    if flags & !(HAS_KEY | WANTS_RESULT) != 0 {
        return None;
    }
    let procedure = ProcedureId(u32::try_from(take_varint(bytes)?).ok()?);
    let key = if flags & HAS_KEY != 0 { Some(take_bytes(bytes)?) } else { None };
    let arguments = take_bytes(bytes)?;
    Some(Call { procedure, arguments, key, wants_result: flags & WANTS_RESULT != 0 })
}

pub(crate) fn take_bytes<'e>(bytes: &mut &'e [u8]) -> Option<&'e [u8]> {
    let len = usize::try_from(take_varint(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

pub(crate) fn push_varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

        #[test]
        fn calls_round_trip(list in proptest::collection::vec(
            (any::<u32>(), proptest::collection::vec(any::<u8>(), 0..200),
             proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)), any::<bool>()), 0..20)) {
            let expected: Vec<Call<'_>> = list.iter().map(|(procedure, arguments, key, wants_result)| Call {
                procedure: ProcedureId(*procedure), arguments, key: key.as_deref(), wants_result: *wants_result,
            }).collect();
            let mut bytes = Vec::new();
            begin_calls(-7, &mut bytes);
            expected.iter().for_each(|call| encode_call(call, &mut bytes));
            let Entries::Calls { time_us, bytes } = decode(&bytes).unwrap() else { panic!("calls") };
            prop_assert_eq!(time_us, -7);
            prop_assert_eq!(calls(bytes).collect::<Result<Vec<_>>>().unwrap(), expected);
        }

        #[test]
        fn a_batch_has_as_many_entries_as_it_says(count in 0u32..4) {
            let definition = encode_definition("table t { a: int, primary key (a) }");
            let next = decode_next(&definition, Seq(7), count, Seq(7));
            prop_assert_eq!(next.is_ok(), count == 1);
        }

        #[test]
        fn garbage_is_an_error_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Entries::Calls { bytes, .. }) = decode(&bytes) {
                let _ = calls(bytes).collect::<Result<Vec<_>>>();
            }
        }
    }
}
