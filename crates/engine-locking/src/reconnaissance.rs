//! Optimistic lock location prediction (Calvin, section 3.2.1).
//!
//! A *dependent* call must read to find out what it accesses. So it runs twice: first on whatever is there,
//! for what it would lock, and everything it does is taken back; then in its place in the order, under those
//! locks.
//!
//! ```text
//! handed in --> reconnaissance --------> has what decided been written since? --> place, log, locks, run
//!                    ^    (delay)                 |
//!                    \------ restart ------------yes; too often: whole tables, certain to be right
//! ```
//!
//! **When a prediction is right.** Calvin checks it when the call runs. Here a call that turns out to need
//! another lock would be in the log already, at a place that every other engine would run it in; and calls
//! behind it may have run on what it needs. So the check comes before the call gets its place, and needs
//! nothing but the lock table: it knows who has requested each lock last in order to write, and who in order to
//! write columns that decide anything. Let a
//! reconnaissance begin when everything up to seq r was installed, and read the newest versions, committed by
//! whomever. If nobody behind r has requested to write
//!
//! - columns that decide, of what the call has read for that ([`fabius_program::read_write_set`]): ranges that it
//!   has scanned, and rows whose values flow into keys, or,
//! - if it aborted, anything that it has read at all,
//!
//! then all it read there is as it was at r, and will be at its place, because its locks are requested
//! there. So it accesses nothing but what it has accessed, and what its arguments say; or it aborts again.
//! Its logged time is that of the reconnaissance, so that `now()` is the same too. A procedure that draws
//! random numbers, which come from its seq, is not predicted at all.
//!
//! The order of the log stays the order in which locks are requested, calls never lose their place, and the log says
//! nothing of predictions. The price: requests to write count as writes. Of calls that have locked whole tables the
//! writes themselves count, when they are known: as long as such a call is in progress, predictions that may depend
//! on it wait, and nobody else gets a place meanwhile.

use crate::control::Recorder;
use crate::footprint::Footprints;
use crate::lock::LockSet;
use fabius_engine::eager::granule::Granules;
use fabius_engine::eager::intake::Chunk;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::turn::Turn;
use fabius_program::arguments::DecodedArguments;
use fabius_value::Seq;
use std::collections::VecDeque;

/// Locks that are predicted for a call, at most; with more, whole tables are cheaper.
const LOCKS_MAX: usize = 4096;

/// A call that has no place yet.
pub struct Dependent {
    /// The call.
    pub chunk: Chunk,
    /// How often a prediction was wrong.
    pub restarts: u32,
}

/// What a call would access.
pub struct Prediction {
    /// The call's locks, those that its arguments say included.
    pub locks: LockSet,
    /// Places of the locks under which it has read what decides about the others.
    pub determining: Vec<u32>,
    /// Whether it aborts; then all that it has read decides.
    pub aborts: bool,
    /// Everything up to here was installed when it began.
    pub since: Seq,
}

/// Calls whose reconnaissance was made together.
pub struct Expedition {
    /// Their logged time.
    pub time_us: i64,
    /// When they go on, on the monotonic clock.
    pub due_ns: u64,
    /// Whether its next call waits for a certain one to end.
    pub is_held_up: bool,
    /// The calls; those without a prediction need too much, or cannot be predicted.
    pub calls: VecDeque<(Dependent, Option<Prediction>)>,
}

/// Runs a call for what it would access; gives nothing if that is too much, or if rows keep changing under its scans.
pub fn predict<'a>(
    turn: &mut Turn<'a, Recorder<'a>>,
    chunk: &'a Chunk,
    since: Seq,
    footprints: &Footprints,
    schema: &Schema,
    granules: &Granules,
) -> Option<Prediction> {
    let call = chunk.call();
    turn.control().footprint = footprints.get(call.procedure).clone();
    let aborts = turn.rehearse(chunk.calls())?.is_err();
    let recorder = turn.control();
    let mut determining = std::mem::take(&mut recorder.determining);
    let mut locks = std::mem::take(&mut recorder.locks);
    if aborts {
        determining.clear();
        determining.extend(locks.iter().map(|lock| lock.place() as u32));
    }
    footprints.declared_locks(&call, &mut DecodedArguments::default(), schema, granules, &mut locks);
    locks.seal();
    (locks.len() <= LOCKS_MAX).then_some(Prediction { locks, determining, aborts, since })
}
