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

    /// Its calls, each as a chunk of its own.
    pub fn split(self) -> impl Iterator<Item = Chunk> {
        let mut offset = self.bytes.start;
        (0..self.count).map(move |at| {
            let begin = offset;
            let mut rest = &self.work.batch.calls()[begin..self.bytes.end];
            entry::take_call(&mut rest).expect("batches are encoded by their builder");
            offset = self.bytes.end - rest.len();
            Chunk { work: self.work.clone(), first: self.first + at, count: 1, bytes: begin..offset }
        })
    }

    /// Stores outcomes; gives the last seq of the batch if that were the last ones.
    pub fn end(&self, outcomes: Outcomes) -> Option<Seq> {
        let work = &self.work;
        work.last.fetch_max(outcomes.last.0, AcqRel);
        let batch = &work.batch;
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
        if work.open.fetch_sub(self.count, AcqRel) > self.count {
            return None;
        }
        let mut all = batch.outcomes();
        all.aborts.sort_unstable_by_key(|abort| abort.0);
        all.tickets.sort_unstable_by_key(|ticket| ticket.0);
        Some(Seq(work.last.load(Acquire)))
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
        let open = batch.count().into();
        let work = Arc::new(Work { batch, open, last: AtomicU64::new(0) });
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
        if self.is_empty() {
            return None;
        }
        let mut state = self.state.lock();
        let front = state.queue.front_mut()?;
        let calls = front.work.batch.calls();
        let mut rest = &calls[front.offset..];
        let mut count = 0;
        while count < CHUNK_CALLS && !rest.is_empty() {
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
