//! The past that can still be read.
//!
//! A thread looks at the clock and the newest promised seq from time to time. It notes both, and holds a
//! snapshot now and then, which keeps every version from its seq on:
//!
//! ```text
//! seqs   100 ... 140 ... 180 ... 220 ... 260 ... promised
//! held    |               |               |
//! noted   |  |  |  |  |   |  |  |  |  |   |  |
//!         '-- as far back as the setting says
//! ```
//!
//! So a time is known to a few milliseconds, and a seq that is not held itself is read under the one held below it.
//! Calls that an engine has put in force together have one state behind the last of them, and none in between: a seq
//! there is refused. History begins when the database is opened; nothing of it is in the log.
//!
//! In a cluster a time stands for the calls that the leader has given that time or an earlier one, so that every node
//! shows the same. A time behind all calls shows the newest state, which a call of an earlier time may still change:
//! the leader's clock decides.

use fabius_engine::{Definitions, Foundation, HeldSnapshot, Standpoint};
use fabius_value::{Error, Result, Seq, SqlState};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Snapshots held at one time, about.
const HELD: u32 = 32;
/// Notes kept at one time, about.
const NOTED: u32 = 100_000;
/// The least time between two notes.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The most.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A moment of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// After the call with this seq.
    Seq(Seq),
    /// What was promised then, in microseconds since 1970, to a few milliseconds.
    Time(i64),
}

/// Keeps what was, as far back as it is told to.
pub(crate) struct History {
    kept: Arc<Kept>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

struct Kept {
    foundation: Arc<Foundation>,
    past: Mutex<Past>,
    keep_us: i64,
}

#[derive(Default)]
struct Past {
    /// Oldest first.
    notes: VecDeque<Note>,
    /// With the times at which they were taken, oldest first.
    held: VecDeque<(i64, HeldSnapshot)>,
}

/// What was promised at some time.
struct Note {
    time_us: i64,
    seq: Seq,
}

impl History {
    /// Starts to keep what is read from now on, for so long.
    pub(crate) fn start(foundation: Arc<Foundation>, keep: Duration) -> History {
        let keep_us = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        foundation.keep_past();
        let kept = Arc::new(Kept { foundation, past: Mutex::default(), keep_us });
        kept.look();
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let (looking, stopping) = (kept.clone(), stop.clone());
        let pause = (keep / NOTED).clamp(PAUSE_MIN, PAUSE_MAX);
        let work = move || {
            let mut stopped = stopping.0.lock();
            while !*stopped {
                stopping.1.wait_while_for(&mut stopped, |stopped| !*stopped, pause);
                looking.look();
            }
        };
        let thread = std::thread::Builder::new().name("fabius-history".to_string()).spawn(work);
        History { kept, stop, thread: Some(thread.expect("the system gives us a thread")) }
    }

    /// Stands at a moment of the past.
    ///
    /// # Errors
    /// `55000` if it is no longer there, or not yet.
    pub(crate) fn at(&self, moment: Moment) -> Result<Standpoint<'static>> {
        let (snapshot, definitions) = self.snapshot(moment)?;
        Ok(Standpoint::past(snapshot, definitions))
    }

    /// A snapshot of a moment of the past, with the definitions that were in force.
    ///
    /// # Errors
    /// As [`History::at`].
    pub(crate) fn snapshot(&self, moment: Moment) -> Result<(HeldSnapshot, Arc<Definitions>)> {
        match moment {
            Moment::Seq(seq) => self.kept.at(seq),
            Moment::Time(time_us) => self.at_time(time_us),
        }
    }

    fn at_time(&self, time_us: i64) -> Result<(HeldSnapshot, Arc<Definitions>)> {
        self.kept.look();
        let (first, now) = {
            let past = self.kept.past.lock();
            let now = self.kept.foundation.clock.now_us();
            let after = past.notes.partition_point(|note| note.time_us <= time_us);
            match after.checked_sub(1) {
                Some(at) if time_us <= now => {
                    // In a cluster by the time that calls were given, which is the same on every node.
                    let seq = self.kept.foundation.seq_at_time(time_us).unwrap_or(past.notes[at].seq);
                    return self.kept.stand(&past, seq);
                }
                _ => (past.notes.front().map_or(now, |note| note.time_us), now),
            }
        };
        let shown = fabius_value::moment_text::timestamp_text;
        Err(not_there(format!("{} is not in the history that is kept", shown(time_us))).with_detail(format!(
            "it reaches from {} to {}",
            shown(first),
            shown(now)
        )))
    }
}

impl Kept {
    /// Notes what is promised, and lets go of what is older than it need be.
    fn look(&self) {
        let time_us = self.foundation.clock.now_us();
        let mut past = self.past.lock();
        let hold_every = self.keep_us / i64::from(HELD);
        if past.held.back().is_none_or(|(taken, _)| time_us - taken >= hold_every) {
            past.held.push_back((time_us, self.foundation.hold_snapshot()));
        }
        let seq = self.foundation.promised();
        if past.notes.back().is_none_or(|note| note.seq != seq) {
            past.notes.push_back(Note { time_us, seq });
        }
        // What is in force at the oldest time to keep began before it.
        let oldest = time_us.saturating_sub(self.keep_us);
        while past.held.get(1).is_some_and(|(taken, _)| *taken <= oldest) {
            past.held.pop_front();
        }
        let first = past.held.front().map_or(seq, |(_, held)| held.seq());
        self.foundation.forget_past(first);
        while past.notes.get(1).is_some_and(|note| note.time_us <= oldest || note.seq < first) {
            past.notes.pop_front();
        }
    }

    fn at(&self, seq: Seq) -> Result<(HeldSnapshot, Arc<Definitions>)> {
        self.stand(&self.past.lock(), seq)
    }

    fn stand(&self, past: &Past, seq: Seq) -> Result<(HeldSnapshot, Arc<Definitions>)> {
        let promised = self.foundation.promised();
        let below = past.held.partition_point(|(_, held)| held.seq() <= seq);
        let held = below.checked_sub(1).map(|at| &past.held[at].1);
        let (Some(held), true) = (held, seq <= promised) else {
            let first = past.held.front().map_or(promised, |(_, held)| held.seq());
            return Err(not_there(format!("seq {seq} is not in the history that is kept"))
                .with_detail(format!("it reaches from {first} to {promised}")));
        };
        if let Some((first, last)) = self.foundation.seen_together(seq) {
            let message = format!("there is no state of its own at seq {seq}");
            return Err(Error::new(SqlState::NOT_IN_STATE, message)
                .with_detail(format!("the calls {first} to {last} came into force together"))
                .with_hint(format!("read at {}, before all of them, or at {last}, after", first.before())));
        }
        Ok((held.at(seq), self.foundation.definitions_at(seq)))
    }
}

fn not_there(message: String) -> Error {
    Error::new(SqlState::NOT_IN_STATE, message)
        .with_hint("the setting history says how long what was is kept")
}

impl Drop for History {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // If it has panicked, history ends earlier than it should.
            let _ = thread.join();
        }
    }
}
