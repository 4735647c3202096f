//! The scheduler: gives calls their place in the log, and locks in that order (Calvin, section 3.2).
//!
//! One thread at a time is the scheduler, whoever takes the role. A *turn*:
//!
//! ```text
//! ended calls       release their locks; whoever has all its locks now is ready
//! predictions       those that still hold are logged, and request what they predict; others go back
//! calls handed in   are logged together, and request what their arguments say
//! ```
//!
//! **No deadlock.** Locks are requested in log order and granted in request order, so a call waits only for
//! calls before it; the oldest call in progress waits for nobody.
//!
//! **Certain calls.** A call whose accesses cannot be predicted, or were not too often, requests what its
//! arguments say, and whole tables where those say too little. Nobody requests anything for tables as long
//! as there is no such call. It runs when it is the oldest, and so has everything; calls behind it that
//! access one of its tables wait for it.

use crate::footprint::{Footprint, Footprints};
use crate::lock::{LockSet, PLACES};
use crate::lock_manager::LockManager;
use crate::policy::Policy;
use crate::reconnaissance::{Dependent, Prediction};
use fabius_engine::eager::intake::Chunk;
use fabius_engine::eager::lock_mode::Mode;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::Shared;
use fabius_engine::entry;
use fabius_program::arguments::DecodedArguments;
use fabius_value::{Error, Seq};
use std::sync::Arc;

/// Calls in progress, a power of two: those that have a place in the order and have not ended. Well below
/// the sequencer's ring, so that calls that end before older ones do not have to wait for those.
pub const IN_PROGRESS_MAX: usize = 1 << 10;

/// A call that has all its locks.
pub struct Ready {
    /// The call's place in the order.
    pub seq: Seq,
    /// The call's logged time.
    pub time_us: i64,
    /// The call.
    pub chunk: Chunk,
    /// The locks that the call holds.
    pub locks: LockSet,
    /// Whether it has whole tables besides.
    pub is_certain: bool,
}

/// A call that has run.
pub struct Ended {
    /// The call's place in the order.
    pub seq: Seq,
    /// The locks that the call has held.
    pub locks: LockSet,
    /// What it has written, if it had whole tables besides.
    pub written: Option<LockSet>,
}

/// A call that is going to get its place.
struct Placed {
    chunk: Chunk,
    locks: LockSet,
    is_certain: bool,
}

/// A place for a call in progress.
#[derive(Default)]
struct InProgress {
    /// What it still waits for: locks, certain calls before it, or, if it is certain itself, for being the
    /// oldest.
    waits: u32,
    is_done: bool,
    /// Until it is handed to a worker.
    ready: Option<Ready>,
    /// If it is certain, until it has ended.
    certain: Option<Arc<Footprint>>,
    /// If it is certain: who waits for it.
    behind: Vec<u32>,
    /// Space for the locks of the next call here.
    spare: LockSet,
}

/// Who has requested a lock last in order to write.
#[derive(Clone, Copy, Default)]
struct LastWrite {
    /// Anything.
    any: Seq,
    /// What decides about the locks of others.
    deciding: Seq,
}

/// The scheduler's state.
pub struct Scheduler {
    /// What is known of all procedures.
    pub footprints: Arc<Footprints>,
    manager: LockManager,
    calls: Box<[InProgress]>,
    /// The oldest call in progress; `next`, if there is none.
    oldest: Seq,
    next: Seq,
    /// Certain calls in progress.
    certain: Vec<u32>,
    /// By place of a lock, as long as there are dependent calls to be told.
    written: Box<[LastWrite]>,
    decoded: DecodedArguments<'static>,
    payload: Vec<u8>,
    /// Calls that have all their locks, and are not handed over yet.
    pub ready: Vec<Ready>,
    /// Calls that get their places together.
    placed: Vec<Placed>,
}

fn number(seq: Seq) -> u32 {
    seq.0 as u32 & (IN_PROGRESS_MAX as u32 - 1)
}

impl Scheduler {
    /// A scheduler without calls.
    pub fn new(policy: &Policy) -> Scheduler {
        Scheduler {
            footprints: Arc::default(),
            manager: LockManager::new(policy.lock_manager),
            calls: (0..IN_PROGRESS_MAX).map(|_| InProgress::default()).collect(),
            oldest: Seq(1),
            next: Seq(1),
            certain: Vec::new(),
            written: Box::default(),
            decoded: DecodedArguments::default(),
            payload: Vec::new(),
            ready: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Takes further definitions in, and goes on at `next`. No call is in progress.
    pub fn follow(&mut self, schema: &Schema, next: Seq) {
        assert!(self.oldest == self.next, "definitions come between calls");
        (self.oldest, self.next) = (next, next);
        self.footprints = Arc::new(self.footprints.follow(schema));
        if self.footprints.has_dependent && self.written.is_empty() {
            self.written = vec![LastWrite::default(); PLACES].into();
        }
    }

    /// How many more calls can be in progress.
    pub fn room(&self) -> usize {
        IN_PROGRESS_MAX - (self.next.0 - self.oldest.0) as usize - self.placed.len()
    }

    /// Puts a call in line for a place, with the locks that its arguments say it needs.
    pub fn place(&mut self, chunk: Chunk, is_certain: bool, schema: &Schema, shared: &Shared) {
        let next = number(self.next_seq()) as usize;
        let mut locks = std::mem::take(&mut self.calls[next].spare);
        locks.clear();
        let mut decoded = std::mem::take(&mut self.decoded).recycle();
        let Shared { granules, .. } = shared;
        self.footprints.declared_locks(&chunk.call(), &mut decoded, schema, granules, &mut locks);
        self.decoded = decoded.recycle();
        locks.seal();
        self.line_up(Placed { chunk, locks, is_certain });
    }

    /// Whether a certain call is in progress that may yet write what a dependent one has read.
    pub fn is_open(&self, dependent: &Dependent) -> bool {
        !self.certain.is_empty() && {
            let footprint = self.footprints.get(dependent.chunk.call().procedure);
            self.certain_before(footprint).next().is_some()
        }
    }

    /// Puts a dependent call in line for a place, with the locks that were predicted, if what they depend on
    /// is as it was; or gives it back.
    pub fn place_predicted(&mut self, dependent: Dependent, prediction: Prediction) -> Result<(), Dependent> {
        let is_unwritten = |place: &u32| {
            let last = self.written[*place as usize];
            (if prediction.aborts { last.any } else { last.deciding }) <= prediction.since
        };
        if !prediction.determining.iter().all(is_unwritten) {
            return Err(dependent);
        }
        self.line_up(Placed { chunk: dependent.chunk, locks: prediction.locks, is_certain: false });
        Ok(())
    }

    /// The place in the order of the next call in line.
    fn next_seq(&self) -> Seq {
        Seq(self.next.0 + self.placed.len() as u64)
    }

    fn line_up(&mut self, placed: Placed) {
        self.note_writes(&placed.locks, self.next_seq());
        self.placed.push(placed);
    }

    /// Notes, for predictions made before, what a call may write, or has written.
    fn note_writes(&mut self, locks: &LockSet, seq: Seq) {
        if self.written.is_empty() {
            return;
        }
        for lock in locks.iter().filter(|lock| matches!(lock.mode(), Mode::Intent | Mode::Exclusive)) {
            let last = &mut self.written[lock.place()];
            last.any = last.any.max(seq);
            if lock.is_deciding() {
                last.deciding = last.deciding.max(seq);
            }
        }
    }

    /// Gives the calls in line their places, logs them together, and requests their locks.
    ///
    /// # Errors
    /// What ended the log; then these are the calls whose outcomes are not known.
    pub fn log(&mut self, time_us: i64, shared: &Shared) -> Result<(), (Error, Vec<Chunk>)> {
        if self.placed.is_empty() {
            return Ok(());
        }
        self.payload.clear();
        entry::begin_calls(time_us, &mut self.payload);
        self.placed.iter().for_each(|placed| self.payload.extend_from_slice(placed.chunk.calls()));
        let count = self.placed.len() as u32;
        match shared.sequencer.append_run(&shared.foundation, count, &self.payload) {
            Ok(first) => assert_eq!(first, self.next, "only the scheduler gives places"),
            Err(error) => return Err((error, self.placed.drain(..).map(|placed| placed.chunk).collect())),
        }
        let mut placed = std::mem::take(&mut self.placed);
        placed.drain(..).for_each(|placed| self.request(placed, time_us));
        self.placed = placed;
        self.advance();
        Ok(())
    }

    /// Certain calls in progress that a call may be in conflict with.
    fn certain_before(&self, footprint: &Footprint) -> impl Iterator<Item = u32> {
        self.certain.iter().copied().filter(move |before| {
            let before = self.calls[*before as usize].certain.as_ref().expect("it has not ended");
            footprint.conflicts_with(before)
        })
    }

    /// Requests the locks of the next call in the order.
    fn request(&mut self, placed: Placed, time_us: i64) {
        let Placed { chunk, locks, is_certain } = placed;
        let seq = self.next;
        self.next = seq.next();
        let number = number(seq);
        let mut waits = u32::from(is_certain) + self.manager.request(number, &locks);
        if is_certain || !self.certain.is_empty() {
            let footprint = self.footprints.get(chunk.call().procedure).clone();
            let before: Vec<u32> = self.certain_before(&footprint).collect();
            waits += before.len() as u32;
            before.iter().for_each(|before| self.calls[*before as usize].behind.push(number));
            if is_certain {
                self.calls[number as usize].certain = Some(footprint);
                self.certain.push(number);
            }
        }
        let ready = Ready { seq, time_us, chunk, locks, is_certain };
        let call = &mut self.calls[number as usize];
        (call.waits, call.is_done) = (waits, false);
        match waits {
            0 => self.ready.push(ready),
            _ => call.ready = Some(ready),
        }
    }

    /// Releases the locks of a call that has ended.
    pub fn end(&mut self, ended: Ended) {
        if let Some(written) = &ended.written {
            self.note_writes(written, ended.seq);
        }
        let Scheduler { manager, calls, ready, certain, .. } = self;
        let number = number(ended.seq);
        let mut grant = |calls: &mut [InProgress], number: u32| {
            let call = &mut calls[number as usize];
            call.waits -= 1;
            if call.waits == 0 {
                ready.extend(call.ready.take());
            }
        };
        manager.release(&ended.locks, |granted| grant(calls, granted));
        if calls[number as usize].certain.take().is_some() {
            certain.retain(|of| *of != number);
            let mut behind = std::mem::take(&mut calls[number as usize].behind);
            behind.drain(..).for_each(|number| grant(calls, number));
            calls[number as usize].behind = behind;
        }
        let call = &mut calls[number as usize];
        call.is_done = true;
        call.spare = ended.locks;
        self.advance();
    }

    /// Finds the oldest call; whatever it has waited for, it has now.
    fn advance(&mut self) {
        while self.oldest < self.next && self.calls[number(self.oldest) as usize].is_done {
            self.oldest = self.oldest.next();
        }
        if self.oldest < self.next {
            let call = &mut self.calls[number(self.oldest) as usize];
            self.ready.extend(call.ready.take());
        }
    }
}
