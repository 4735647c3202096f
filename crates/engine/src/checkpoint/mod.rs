//! The state at one seq, to a file and back.
//!
//! What a checkpoint has to hold is everything that replaying the log up to its seq would give:
//!
//! | block | item |
//! |---|---|
//! | definitions | seq: varint, length: varint, the log's entry ([`crate::entry`]) |
//! | keys | seq: varint, length: varint, key, outcome (`outcome.rs`) |
//! | rows of a table | one value per column, as arguments are encoded ([`fabius_program::arguments`]) |
//!
//! What is *not* kept: results of calls without a key, and what engines know beyond rows. Intervals that
//! proofs rest upon (`interval.rs` of the lazy engine) are found again from the rows, as [`State::ranges`]:
//! they have to contain every value that a call can meet, and those are the rows' and what calls write
//! from then on.
//!
//! File, blocks and checksums: [`fabius_storage::checkpoint`].

mod digest;
mod hand_over;
mod outcome;
mod read;
mod write;

pub use digest::{Digest, differences};
pub use hand_over::hand_over;
pub use read::{read, read_definitions};
pub use write::{Progress, Written, write};

use crate::Definitions;
use crate::idempotency::Keys;
use fabius_value::{Datum, Seq};

/// What an engine begins with instead of nothing.
pub struct State {
    /// The entries up to here have been run.
    pub seq: Seq,
    /// When the checkpoint was begun, in microseconds since 1970; no entry up to there is of a later time.
    pub time_us: i64,
    /// Definitions, with all rows in their tables.
    pub definitions: Definitions,
    /// First outcomes by idempotency key.
    pub keys: Keys,
    /// By table.
    pub ranges: Vec<Ranges>,
}

/// By column of a table: the least and the greatest value, if it is an exact number.
pub type Ranges = Vec<Option<(i128, i128)>>;

/// Widens the range of a column by a value.
fn include(range: &mut Option<(i128, i128)>, value: Datum<'_>) {
    if let Datum::Int(_) | Datum::Numeric(_) = value {
        widen(range, Some((value.exact(), value.exact())));
    }
}

/// Widens the range of a column by another of its ranges.
fn widen(range: &mut Option<(i128, i128)>, other: Option<(i128, i128)>) {
    if let Some((least, most)) = other {
        let (low, high) = range.get_or_insert((least, most));
        (*low, *high) = ((*low).min(least), (*high).max(most));
    }
}
