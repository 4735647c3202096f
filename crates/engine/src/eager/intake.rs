//! Calls that were handed in and have not begun.
//!
//! ```text
//! front                                        back
//! [batch 7: 32 of 500 taken] [batch 8] [batch 9]
//!           \--> chunks of a batch run on several threads; the thread that ends the last one
//!                completes the batch
//! ```
//!
//! A batch of a higher priority overtakes others ([`crate::priority`]).
//!
//! In engines with phases, calls that a turn has put off wait beside the queue, together, and come before it in the
//! next phase; what a turn has not begun when its phase ends goes back to the front.

use crate::eager::control::Waiting;
use crate::entry::{self, Call};
use crate::priority::Queues;
use crate::returned::Returned;
use crate::{Batch, Ticket, batch};
use fabius_value::{Error, Seq};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Weak};

/// Calls that a thread takes at a time, if there are so many: so few that what they have read is still in the cache
/// when their turn ends and [chains are shortened](crate::eager::trail), so many that beginning a turn costs little.
const CHUNK_CALLS: u32 = 32;
/// It takes more of them while their encoding is no longer than this: such calls do not read much.
const CHUNK_BYTES: usize = 1024;
/// Calls that a thread takes at a time, at most.
pub const CHUNK_CALLS_MAX: u32 = 128;

/// A batch in progress.
pub struct Work {
    /// The batch.
    pub batch: Arc<Batch>,
    /// How many were handed in before it.
    number: u64,
    /// Calls without an outcome.
    open: AtomicU32,
    /// The last seq of any call so far.
    last: AtomicU64,
}

impl Work {
    /// A batch of which no call has an outcome, and before which so many were handed in.
    pub fn new(batch: Arc<Batch>, number: u64) -> Work {
        let open = batch.count().into();
        Work { batch, number, open, last: AtomicU64::new(0) }
    }

    /// Stores the outcomes of so many calls; gives the last seq of the batch if that were the last ones.
    pub fn end(&self, count: u32, outcomes: Outcomes) -> Option<Seq> {
        self.last.fetch_max(outcomes.last.0, AcqRel);
        let batch = &self.batch;
        let is_single = batch.count() == 1 && count == 1;
        let is_interesting = is_single
            || !outcomes.aborts.is_empty()
            || !outcomes.tickets.is_empty()
            || !outcomes.returned.is_empty()
            || outcomes.failure.is_some();
        if is_interesting {
            let mut all = batch.outcomes();
            if is_single {
                all.first_seq = Some(outcomes.last);
            }
            outcomes.add_to(&mut all);
        }
        if self.open.fetch_sub(count, AcqRel) > count {
            return None;
        }
        let mut all = batch.outcomes();
        all.aborts.sort_unstable_by_key(|abort| abort.0);
        all.tickets.sort_unstable_by_key(|ticket| ticket.0);
        all.returned.sort();
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
    /// Results that are remembered, likewise.
    pub tickets: Vec<(u32, Arc<Ticket>)>,
    /// All other results.
    pub returned: Returned,
    /// Calls without an outcome, put off to the next phase.
    pub put_off: PutOff,
    /// The highest seq of anything they wrote or may have read.
    pub last: Seq,
    /// Why some outcomes are not known.
    pub failure: Option<Error>,
}

impl Outcomes {
    /// Adds them to those of other calls of the batch.
    pub fn add_to(self, all: &mut batch::Outcomes) {
        all.aborts.extend(self.aborts);
        all.tickets.extend(self.tickets);
        all.returned.append(self.returned);
        if let Some(failure) = self.failure {
            all.failure.get_or_insert(failure);
        }
    }
}

/// Calls of a batch that a turn has put off to the next phase, to be run together then.
#[derive(Default)]
pub struct PutOff {
    /// Their places in the batch.
    places: Vec<u32>,
    /// The encoded calls, without those that stand between them in the batch.
    bytes: Vec<u8>,
}

impl PutOff {
    /// Adds a call, by its place in the batch.
    pub fn push(&mut self, place: u32, call: &[u8]) {
        self.places.push(place);
        self.bytes.extend_from_slice(call);
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.places.len() as u32
    }
}

/// What one thread runs in a turn, all of one batch.
pub enum Share {
    /// The next of its calls.
    Next(Chunk),
    /// Such as were put off in the phase before.
    Resumed(Arc<Work>, PutOff),
}

impl Share {
    /// The batch.
    pub fn work(&self) -> &Arc<Work> {
        match self {
            Share::Next(chunk) => &chunk.work,
            Share::Resumed(work, _) => work,
        }
    }

    /// The encoded calls.
    pub fn calls(&self) -> &[u8] {
        match self {
            Share::Next(chunk) => chunk.calls(),
            Share::Resumed(_, calls) => &calls.bytes,
        }
    }

    /// How many.
    pub fn count(&self) -> u32 {
        match self {
            Share::Next(chunk) => chunk.count,
            Share::Resumed(_, calls) => calls.count(),
        }
    }

    /// The place in the batch of one of them.
    pub fn place(&self, at: u32) -> u32 {
        match self {
            Share::Next(chunk) => chunk.first + at,
            Share::Resumed(_, calls) => calls.places[at as usize],
        }
    }
}

impl Chunk {
    /// The encoded calls.
    pub fn calls(&self) -> &[u8] {
        &self.work.batch.calls()[self.bytes.clone()]
    }

    /// The first of its calls.
    pub fn call(&self) -> Call<'_> {
        entry::take_call(&mut self.calls()).expect("batches are encoded by their builder")
    }

    /// The chunk's calls, each as a chunk of its own.
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

    /// Where they begin among those of the batch.
    pub fn offset(&self) -> usize {
        self.bytes.start
    }
}

/// Calls of a batch that wait, next to each other.
struct Unbegun {
    work: Arc<Work>,
    place: u32,
    bytes: Range<usize>,
}

#[derive(Default)]
struct State {
    queue: Queues<VecDeque<Unbegun>>,
    closed: Option<Error>,
    /// Put off to the next phase, by turns.
    put_off: Vec<(Arc<Work>, PutOff)>,
    /// Put off in the phase before.
    resumed: VecDeque<(Arc<Work>, PutOff)>,
    /// Batches handed in so far.
    count: u64,
    /// Those that may not be complete, and others: they are gone through when there are twice as many.
    open: Vec<Weak<Batch>>,
    open_max: usize,
}

/// So many batches are noted as open before those are looked for that are not.
const OPEN_MIN: usize = 64;

impl State {
    /// How many batches wait.
    fn length(&self) -> usize {
        self.queue.iter().map(VecDeque::len).sum()
    }

    /// Notes a batch that somebody waits for.
    fn note(&mut self, batch: &Arc<Batch>) {
        if self.open.len() >= self.open_max {
            self.open.retain(|noted| noted.upgrade().is_some_and(|batch| !batch.is_complete()));
            self.open_max = (2 * self.open.len()).max(OPEN_MIN);
        }
        self.open.push(Arc::downgrade(batch));
    }
}

/// The queue of calls.
#[derive(Default)]
pub struct Intake {
    state: Mutex<State>,
    put_off: AtomicUsize,
    resumed: AtomicUsize,
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
        let bytes = 0..batch.calls().len();
        state.note(&batch);
        let priority = batch.priority();
        let work = Arc::new(Work::new(batch, state.count));
        state.queue.of_mut(priority).push_back(Unbegun { work, place: 0, bytes });
        state.count += 1;
        self.length.store(state.length(), Release);
        Ok(())
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.length.load(Acquire) == 0 && self.resumed.load(Acquire) == 0
    }

    /// What does not run.
    pub fn waiting(&self) -> Waiting {
        Waiting {
            put_off: self.put_off.load(Acquire),
            resumed: self.resumed.load(Acquire),
            is_idle: self.length.load(Acquire) == 0,
        }
    }

    /// Takes calls in that were put off to the next phase.
    pub fn put_off(&self, work: &Arc<Work>, calls: PutOff) {
        if calls.count() > 0 {
            let mut state = self.state.lock();
            self.put_off.fetch_add(calls.count() as usize, Release);
            state.put_off.push((work.clone(), calls));
        }
    }

    /// The next phase has begun: what was put off comes first.
    pub fn resume(&self) {
        let mut state = self.state.lock();
        let State { put_off, resumed, .. } = &mut *state;
        resumed.extend(put_off.drain(..));
        self.resumed.fetch_add(self.put_off.swap(0, Release), Release);
    }

    /// Takes what comes next for one turn.
    pub fn take_share(&self) -> Option<Share> {
        if self.resumed.load(Acquire) > 0
            && let Some((work, calls)) = self.state.lock().resumed.pop_front()
        {
            self.resumed.fetch_sub(calls.count() as usize, Release);
            return Some(Share::Resumed(work, calls));
        }
        self.take().map(Share::Next)
    }

    /// Takes the next calls of the batch that comes next.
    pub fn take(&self) -> Option<Chunk> {
        self.take_while(|count, bytes| count < CHUNK_CALLS || count < CHUNK_CALLS_MAX && bytes < CHUNK_BYTES)
    }

    /// Takes the next calls of the batch that comes next, so many at most, and about so many bytes.
    pub fn take_at_most(&self, most: u32, most_bytes: usize) -> Option<Chunk> {
        self.take_while(|count, bytes| count < most && (count == 0 || bytes < most_bytes))
    }

    /// Takes calls of the batch that comes next, one by one, as long as there is room for more beside so many calls and
    /// bytes.
    fn take_while(&self, has_room: impl Fn(u32, usize) -> bool) -> Option<Chunk> {
        if self.length.load(Acquire) == 0 {
            return None;
        }
        let mut state = self.state.lock();
        let next = state.queue.next(|queue| !queue.is_empty())?;
        let front = state.queue.of_mut(next).front_mut()?;
        let mut rest = &front.work.batch.calls()[front.bytes.clone()];
        let (mut count, all) = (0, rest.len());
        while has_room(count, all - rest.len()) && !rest.is_empty() {
            entry::take_call(&mut rest).expect("batches are encoded by their builder");
            count += 1;
        }
        let bytes = front.bytes.start..front.bytes.end - rest.len();
        let chunk = Chunk { work: front.work.clone(), first: front.place, count, bytes };
        front.bytes.start = chunk.bytes.end;
        front.place += count;
        if front.bytes.is_empty() {
            state.queue.of_mut(next).pop_front();
            self.length.store(state.length(), Release);
        }
        Some(chunk)
    }

    /// Takes back what a turn has not begun of its share, all but the first so many calls: it comes next.
    pub fn give_back(&self, share: &Share, begun: u32) {
        let Share::Next(chunk) = share else { unreachable!("what was put off is run in one turn") };
        let mut rest = chunk.calls();
        for _ in 0..begun {
            entry::take_call(&mut rest).expect("batches are encoded by their builder");
        }
        let bytes = chunk.bytes.end - rest.len()..chunk.bytes.end;
        let mut state = self.state.lock();
        let queue = state.queue.of_mut(chunk.work.batch.priority());
        queue.push_front(Unbegun { work: chunk.work.clone(), place: chunk.first + begun, bytes });
        self.length.store(state.length(), Release);
    }

    /// How many batches were handed in so far.
    pub fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// Whether all calls of the first `count` batches have been taken, and none waits for another phase.
    pub fn has_begun(&self, count: u64) -> bool {
        let state = self.state.lock();
        state.put_off.is_empty()
            && state.resumed.is_empty()
            // What was given back is in the queue again.
            && state.queue.iter().flatten().all(|waiting| waiting.work.number >= count)
    }

    /// Refuses further batches; gives those that have calls left, and how many.
    pub fn close(&self, reason: Error) -> Vec<Arc<Work>> {
        let mut state = self.state.lock();
        state.closed.get_or_insert(reason);
        self.length.store(0, Relaxed);
        self.put_off.store(0, Relaxed);
        self.resumed.store(0, Relaxed);
        let State { queue, put_off, resumed, .. } = &mut *state;
        let unbegun = queue.iter_mut().flat_map(std::mem::take).map(|waiting| waiting.work);
        unbegun.chain(put_off.drain(..).chain(resumed.drain(..)).map(|(work, _)| work)).collect()
    }

    /// Refuses further batches for a failure after which calls that have begun may not end; gives all batches without
    /// final outcomes, wherever their calls are.
    pub fn fail(&self, reason: Error) -> Vec<Arc<Batch>> {
        drop(self.close(reason));
        let open = std::mem::take(&mut self.state.lock().open);
        open.iter().filter_map(Weak::upgrade).filter(|batch| !batch.is_decided()).collect()
    }

    /// Why no more batches are taken, if so.
    pub fn closed(&self) -> Option<Error> {
        self.state.lock().closed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchBuilder;
    use fabius_program::catalog::ProcedureId;

    /// Goal: what a turn gives back comes next, from the first call that it has not begun on; until it is taken again
    /// its batch has not begun.
    #[test]
    fn what_is_given_back_comes_next() {
        let intake = Intake::default();
        for calls in [200, 1] {
            let mut batch = BatchBuilder::new();
            (0..calls).for_each(|at| _ = batch.push(ProcedureId(0), &[at], None, false).unwrap());
            intake.push(batch.build()).unwrap();
        }
        let share = intake.take_share().unwrap();
        assert_eq!(share.count(), CHUNK_CALLS_MAX);
        intake.give_back(&share, CHUNK_CALLS_MAX - 4);
        let mut taken = Vec::new();
        while !intake.has_begun(2) {
            let share = intake.take_share().unwrap();
            let mut calls = share.calls();
            for at in 0..share.count() {
                taken.push((share.place(at), entry::take_call(&mut calls).unwrap().arguments[0]));
            }
        }
        assert_eq!(taken[..76], (124..200).map(|at| (at, at as u8)).collect::<Vec<_>>());
        assert_eq!(taken[76..], [(0, 0)]);
        assert!(intake.is_empty());
        intake.give_back(&share, CHUNK_CALLS_MAX - 1);
        assert!(intake.has_begun(0) && !intake.has_begun(1), "though the second batch is taken as a whole");
    }

    /// Goal: of long calls a turn takes fewer than of short ones.
    #[test]
    fn long_calls_are_taken_in_small_numbers() {
        let intake = Intake::default();
        for bytes in [200, 20] {
            let mut batch = BatchBuilder::new();
            (0..200).for_each(|_| _ = batch.push(ProcedureId(0), &vec![7; bytes], None, false).unwrap());
            intake.push(batch.build()).unwrap();
        }
        assert_eq!(intake.take().unwrap().count, CHUNK_CALLS);
        assert_eq!(intake.take_at_most(1000, usize::MAX).unwrap().count, 200 - CHUNK_CALLS);
        assert!((CHUNK_CALLS + 1..CHUNK_CALLS_MAX).contains(&intake.take().unwrap().count));
    }
}
