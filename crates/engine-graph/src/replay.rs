//! Replaying a log by graphs (LADS, section 4.2.4).
//!
//! The log has calls with their arguments, from which their record actions and the dependencies between them follow.
//! So the graphs are built again, of the calls of consecutive batches of the log together, and executed by all threads
//! that are lent. The graphs need not be those of the first time: the log's order is the order.
//!
//! ```text
//! log       [calls 1..3] [calls 4] [definition 5] [calls 6..9] [calls 10]
//! rounds    \-- 1 .. 4 --------/   in between     \-- 6 .. 10 ---------/
//! ```

use crate::engine::GraphEngine;
use fabius_engine::Engine;
use fabius_engine::entry::{self, Entries};
use fabius_value::{Result, Seq};

/// A batch of the log.
#[derive(Clone, Copy, Debug)]
pub struct Logged<'l> {
    /// The seq of its first entry.
    pub first_seq: Seq,
    /// How many entries it has.
    pub count: u32,
    /// The entries' bytes.
    pub payload: &'l [u8],
}

impl GraphEngine {
    /// Takes batches that come next in the log, each as [`Engine::take`] does, but the calls of several together;
    /// nobody is told what has become of them, but for what is remembered under idempotency keys.
    ///
    /// # Errors
    /// As [`Engine::take`], of the first batch that is not what it should be; some of those before may not have run.
    pub fn replay<'l>(&self, batches: impl IntoIterator<Item = Logged<'l>>) -> Result<()> {
        let (foundation, mut expected) = (self.foundation(), self.next_seq());
        let mut calls: Vec<(i64, &[u8])> = Vec::new();
        for Logged { first_seq, count, payload } in batches {
            match entry::decode_next(payload, first_seq, count, expected)? {
                Entries::Calls { time_us, bytes } => {
                    foundation.clock.has_been(time_us);
                    calls.push((time_us, bytes));
                }
                Entries::Definition(_) | Entries::KeyWindow(_) | Entries::Nothing | Entries::Checkpoint => {
                    self.replay_calls(&mut calls);
                    self.take(first_seq, count, payload)?;
                }
            }
            expected = Seq(first_seq.0 + u64::from(count));
        }
        self.replay_calls(&mut calls);
        foundation.failure().cloned().map_or(Ok(()), Err)
    }
}
