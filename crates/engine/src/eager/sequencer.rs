//! The serialisation point: the order of the log is the order of the calls.
//!
//! A call takes its seq while nobody else can change what it has read, or see what it writes
//! ([`Control::certify`](crate::eager::Control::certify)). So if two calls conflict, the one that goes first has the
//! lower seq, and running the log's calls one after the other gives what running them together gave.
//!
//! Taking a seq is one `fetch_add`, and each thread appends to the log by itself, at the place that its seq says (Silo
//! 4.10): no lock is common to all calls. A call that is validated after it has taken its seq
//! ([`Sequencer::append_if`]) may be refused then; its seq is *void*, and an entry that does nothing fills its place
//! in the log.
//!
//! ```text
//! seq          41   42   43   44   45
//! installed     x    x         x              promised = 42: readers must not see 44 without 43
//! ```
//!
//! Calls install their versions after that, side by side, and finish in any order. `promised` moves up as far as
//! there is no gap: [`Sequencer::installed`] marks a place in a ring, with the last seq of what was logged together
//! there, and whoever closes the gap moves it on. Both write before they read, in one sequentially consistent order,
//! so the last to mark sees all.

use crate::{Foundation, entry};
use crossbeam_utils::CachePadded;
use fabius_env::schedule;
use fabius_value::{Result, Seq};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Release, SeqCst},
};

/// Places of the ring, a power of two: calls that can be installed behind one that is not.
pub const RING: u64 = 1 << 12;

/// Gives calls their seq, and publishes what they wrote.
pub struct Sequencer {
    next: CachePadded<AtomicU64>,
    ring: Box<[AtomicU64]>,
}

/// What became of an entry that was to take a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in the log at this seq.
    At(Seq),
    /// It was refused; perhaps after it had taken a seq, which is void then, and is said to be installed once the call
    /// has given back what it held.
    Refused(Option<Seq>),
}

impl Default for Sequencer {
    fn default() -> Sequencer {
        Sequencer {
            next: CachePadded::new(AtomicU64::new(1)),
            ring: (0..RING).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Sequencer {
    /// Gives the next seq to an entry, and logs it.
    ///
    /// # Errors
    /// What ended the log.
    pub fn append(&self, foundation: &Foundation, payload: &[u8]) -> Result<Seq> {
        self.append_run(foundation, 1, payload)
    }

    /// Gives the next seq to an entry, and logs it if `is_valid` holds then. What the caller has made known before, it
    /// sees if the caller has the lower seq; what others have made known before they took lower seqs, `is_valid` sees.
    ///
    /// # Errors
    /// What ended the log.
    pub fn append_if(
        &self,
        foundation: &Foundation,
        payload: &[u8],
        is_valid: &mut dyn FnMut() -> bool,
    ) -> Result<Taken> {
        foundation.make_room(payload.len())?;
        let seq = self.take();
        schedule::point("seq");
        if is_valid() {
            foundation.append_at(seq, 1, payload)?;
            return Ok(Taken::At(seq));
        }
        foundation.append_at(seq, 1, &entry::encode_nothing())?;
        Ok(Taken::Refused(Some(seq)))
    }

    /// Gives the next seqs to a run of so many entries, at least one, and logs them together; gives the first.
    ///
    /// # Errors
    /// What ended the log.
    pub fn append_run(&self, foundation: &Foundation, count: u32, payload: &[u8]) -> Result<Seq> {
        foundation.make_room(payload.len())?;
        let first = Seq(self.next.fetch_add(count.into(), AcqRel));
        schedule::point("seq");
        foundation.append_at(first, count, payload)?;
        Ok(first)
    }

    /// Gives the next seq to an entry that is in the log already.
    pub fn take(&self) -> Seq {
        Seq(self.next.fetch_add(1, AcqRel))
    }

    /// Goes on after a seq, which a checkpoint has; before any was given.
    pub fn go_on_after(&self, seq: Seq) {
        self.next.store(seq.next().0, Release);
    }

    /// The seq that the next entry gets, as long as nobody else takes one.
    pub fn next(&self) -> Seq {
        Seq(self.next.load(Acquire))
    }

    /// The last seq that was given: whatever a call has read was written at it or before.
    pub fn issued(&self) -> Seq {
        self.next().before()
    }

    /// Says that everything the entry at `seq` wrote is in its place.
    pub fn installed(&self, seq: Seq, foundation: &Foundation) {
        self.installed_run(seq, seq, foundation);
    }

    /// Says that the writes of calls that were logged together are installed: `promised` moves over all of them at
    /// once, because a snapshot that becomes a checkpoint has to stand between two batches of the log.
    pub fn installed_run(&self, first: Seq, last: Seq, foundation: &Foundation) {
        let has_room = || last.0 - foundation.promised().0 < RING;
        if !has_room() {
            // A thread between its seq and here has been held up for thousands of calls.
            schedule::wait_until("ring", || has_room() || foundation.failure().is_some());
            if !has_room() {
                return;
            }
        }
        foundation.see_together(first, last);
        self.place(first.0).store(last.0, SeqCst);
        schedule::point("installed");
        let before = foundation.promised().0;
        let mut reached = before;
        loop {
            let last = self.place(reached + 1).load(SeqCst);
            // What is there may be of an earlier round of the ring or, if others have gone on, of a later one.
            if last <= reached || last > reached + RING {
                break;
            }
            reached = last;
        }
        if reached > before {
            foundation.raise_promised(Seq(reached));
        }
    }

    fn place(&self, seq: u64) -> &AtomicU64 {
        &self.ring[(seq & (RING - 1)) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::SimulatedClock;
    use std::sync::Arc;

    #[test]
    fn promised_stops_at_a_gap() {
        let foundation = Foundation::new(Arc::new(SimulatedClock::at(0)));
        let sequencer = Sequencer::default();
        let seqs: Vec<Seq> = (0..4).map(|_| sequencer.take()).collect();
        sequencer.installed(seqs[1], &foundation);
        sequencer.installed(seqs[3], &foundation);
        assert_eq!(foundation.promised(), Seq::ZERO);
        sequencer.installed(seqs[0], &foundation);
        assert_eq!(foundation.promised(), Seq(2));
        sequencer.installed(seqs[2], &foundation);
        assert_eq!(foundation.promised(), Seq(4));
    }

    /// Goal: calls that were logged together are seen together, round after round of the ring.
    #[test]
    fn promised_moves_over_a_run_at_once() {
        let foundation = Foundation::new(Arc::new(SimulatedClock::at(0)));
        let sequencer = Sequencer::default();
        for round in 0..3 * RING / 4 {
            let first = round * 7 + 1;
            let runs = [(first, first + 4), (first + 5, first + 5), (first + 6, first + 6)];
            runs.iter().for_each(|(from, to)| {
                let end =
                    sequencer.append_run(&foundation, (to - from + 1) as u32, &[]).unwrap().0 + to - from;
                assert_eq!(end, *to);
            });
            let installed = |(from, to): (u64, u64)| sequencer.installed_run(Seq(from), Seq(to), &foundation);
            installed(runs[1]);
            assert_eq!(foundation.promised(), Seq(first - 1));
            installed(runs[0]);
            assert_eq!(foundation.promised(), Seq(first + 5));
            installed(runs[2]);
        }
    }
}
