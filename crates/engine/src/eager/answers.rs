//! Batches of which every call has ended, and that readers cannot see whole yet.
//!
//! ```text
//! promised = 40    [batch, last 57] [batch, last 44]     41..44 are installed: the second is answered
//! ```
//!
//! A call that has ended may have earlier calls beside it that have not, and whoever is told of its outcome must
//! find what it wrote. No thread waits for that: the batch is left here, and whoever moves `promised` on answers
//! it.

use crate::{Batch, Foundation};
use fabius_value::Seq;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// Batches that wait for `promised`.
pub struct Answers {
    waiting: Mutex<Vec<(Seq, Arc<Batch>)>>,
    /// The lowest seq that one waits for: lets threads look without the mutex.
    next: AtomicU64,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers { waiting: Mutex::default(), next: AtomicU64::new(u64::MAX) }
    }
}

impl Answers {
    /// All calls of a batch have ended; nothing that they wrote or have read is later than `last`.
    pub fn end(&self, last: Seq, batch: &Arc<Batch>, foundation: &Foundation) {
        let failure = batch.outcomes().failure.clone();
        if let Some(failure) = failure {
            batch.fail(failure, foundation.clock.monotonic_ns());
        } else if last <= foundation.promised() {
            foundation.decided(last, batch.clone());
        } else {
            let mut waiting = self.waiting.lock();
            waiting.push((last, batch.clone()));
            self.next.fetch_min(last.0, Relaxed);
        }
        self.answer(foundation);
    }

    /// Answers what has been reached; to be called whenever `promised` may have moved.
    pub fn answer(&self, foundation: &Foundation) {
        // One who leaves a batch here looks at `promised` afterwards, one who moves `promised` looks here
        // afterwards: in one order, so one of them sees the other.
        fence(SeqCst);
        if self.next.load(Relaxed) > foundation.promised().0 {
            return;
        }
        let reached: Vec<_> = {
            let mut waiting = self.waiting.lock();
            let promised = foundation.promised();
            let reached = waiting.extract_if(.., |(last, _)| *last <= promised).collect();
            let next = waiting.iter().map(|(last, _)| last.0).min();
            self.next.store(next.unwrap_or(u64::MAX), Relaxed);
            reached
        };
        reached.into_iter().for_each(|(last, batch)| foundation.decided(last, batch));
    }
}
