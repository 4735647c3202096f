//! Calls that were handed in and have not begun.
//!
//! ```text
//! front                                        back
//! [batch 7: 64 of 500 taken] [batch 8] [batch 9]
//!           \--> chunks of a batch run on several threads; the thread that ends the last one
//!                completes the batch
//! ```

use crate::{Batch, Ticket, entry};
use fabius_value::{Error, Seq};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Calls that a thread takes at a time, at most.
pub const CHUNK_CALLS: u32 = 64;

/// A batch in progress.
pub struct Work {
    /// The batch.
    pub batch: Arc<Batch>,
    /// Calls without an outcome.
    open: AtomicU32,
    /// The last seq of any call so far.
    last: AtomicU64,
}

impl Work {
    /// A batch of which no call has an outcome.
    pub fn new(batch: Arc<Batch>) -> Work {
        let open = batch.count().into();
        Work { batch, open, last: AtomicU64::new(0) }
    }

    /// Stores the outcomes of so many calls; gives the last seq of the batch if that were the last ones.
    pub fn end(&self, count: u32, outcomes: Outcomes) -> Option<Seq> {
        self.last.fetch_max(outcomes.last.0, AcqRel);
        let batch = &self.batch;
        let is_interesting = batch.count() == 1
            || !outcomes.aborts.is_empty()
            || !outcomes.tickets.is_empty()
            || outcomes.failure.is_some();
        if is_interesting {
            let mut all = batch.outcomes();
            if batch.count() == 1 {
                all.first_seq = Some(outcomes.last);
            }
            all.aborts.extend(outcomes.aborts);
            all.tickets.extend(outcomes.tickets);
            if let Some(failure) = outcomes.failure {
                all.failure.get_or_insert(failure);
            }
        }
        if self.open.fetch_sub(count, AcqRel) > count {
            return None;
        }
        let mut all = batch.outcomes();
        all.aborts.sort_unstable_by_key(|abort| abort.0);
        all.tickets.sort_unstable_by_key(|ticket| ticket.0);
        Some(Seq(self.last.load(Acquire)))
    }
}

/// Calls of one batch that one thread runs.
pub struct Chunk {
    /// Their batch.
    pub work: Arc<Work>,
    /// The place of the first in the batch.
    pub first: u32,
    /// How many.
    pub count: u32,
    bytes: Range<usize>,
}

/// What became of a chunk's calls.
#[derive(Default)]
pub struct Outcomes {
    /// Calls that aborted, by their place in the batch.
    pub aborts: Vec<(u32, Error)>,
    /// Results, likewise.
    pub tickets: Vec<(u32, Arc<Ticket>)>,
    /// The highest seq of anything they wrote or may have read.
    pub last: Seq,
    /// Why some outcomes are not known.
    pub failure: Option<Error>,
}

impl Chunk {
    /// The encoded calls.
    pub fn calls(&self) -> &[u8] {
        &self.work.batch.calls()[self.bytes.clone()]
    }

    /// Where they begin among those of the batch.
    pub fn offset(&self) -> usize {
        self.bytes.start
    }

    /// Stores outcomes; gives the last seq of the batch if that were the last ones.
    pub fn end(&self, outcomes: Outcomes) -> Option<Seq> {
        self.work.end(self.count, outcomes)
    }
}

struct Waiting {
    work: Arc<Work>,
    place: u32,
    offset: usize,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Waiting>,
    closed: Option<Error>,
    /// Batches handed in so far.
    count: u64,
}

/// The queue of calls.
#[derive(Default)]
pub struct Intake {
    state: Mutex<State>,
    /// Batches in the queue: lets idle threads look without the mutex.
    length: AtomicUsize,
}

impl Intake {
    /// Adds a batch that has calls.
    ///
    /// # Errors
    /// Why no more are taken.
    pub fn push(&self, batch: Arc<Batch>) -> Result<(), Error> {
        let mut state = self.state.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone());
        }
        let work = Arc::new(Work::new(batch));
        state.queue.push_back(Waiting { work, place: 0, offset: 0 });
        state.count += 1;
        self.length.store(state.queue.len(), Release);
        Ok(())
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.length.load(Acquire) == 0
    }

    /// Takes the next calls of the oldest batch.
    pub fn take(&self) -> Option<Chunk> {
        self.take_at_most(CHUNK_CALLS)
    }

    /// Takes the next calls of the oldest batch, so many at most.
    pub fn take_at_most(&self, most: u32) -> Option<Chunk> {
        if self.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        let front = state.queue.front_mut()?;
        let calls = front.work.batch.calls();
        let mut rest = &calls[front.offset..];
        let mut count = 0;
        while count < most && !rest.is_empty() {
            entry::take_call(&mut rest).expect("batches are encoded by their builder");
            count += 1;
        }
        let bytes = front.offset..calls.len() - rest.len();
        let chunk = Chunk { work: front.work.clone(), first: front.place, count, bytes };
        front.offset = chunk.bytes.end;
        front.place += count;
        if rest.is_empty() {
            state.queue.pop_front();
            self.length.store(state.queue.len(), Release);
        }
        Some(chunk)
    }

    /// How many batches were handed in so far.
    pub fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// Whether all calls of the first `count` batches have been taken.
    pub fn has_begun(&self, count: u64) -> bool {
        let state = self.state.lock();
        state.count - state.queue.len() as u64 >= count
    }

    /// Refuses further batches; gives those that have calls left, and how many.
    pub fn close(&self, reason: Error) -> Vec<Arc<Work>> {
        let mut state = self.state.lock();
        state.closed.get_or_insert(reason);
        self.length.store(0, Relaxed);
        state.queue.drain(..).map(|waiting| waiting.work).collect()
    }

    /// Why no more batches are taken, if so.
    pub fn closed(&self) -> Option<Error> {
        self.state.lock().closed.clone()
    }
}
