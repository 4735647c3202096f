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

use crate::footprint::{Deciding, Footprint};
use crate::lock::{LockSet, Mode, PLACES};
use crate::lock_manager::LockManager;
use crate::policy::Policy;
use crate::reconnaissance::{Dependent, Prediction};
use fabius_engine::eager::intake::Chunk;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::Shared;
use fabius_engine::entry::{self, Call};
use fabius_program::read_write_set::TableColumns;
use fabius_value::{ColumnMask, Error, Seq, TableId};
use std::sync::Arc;

/// Calls in progress, a power of two: those that have a place in the order and have not ended. Well below
/// the sequencer's ring, so that calls that end before older ones do not have to wait for those.
pub const IN_PROGRESS_MAX: usize = 1 << 10;

/// A call that has all its locks.
pub struct Ready {
    /// Its number among those in progress.
    pub number: u32,
    /// Its place in the order.
    pub seq: Seq,
    /// Its logged time.
    pub time_us: i64,
    /// The call.
    pub chunk: Chunk,
    /// Its locks.
    pub locks: LockSet,
    /// Whether it has whole tables besides.
    pub is_certain: bool,
}

/// A call that has run.
pub struct Ended {
    /// Its number among those in progress.
    pub number: u32,
    /// Its locks.
    pub locks: LockSet,
}

/// A call that is going to get its place.
pub struct Placed {
    chunk: Chunk,
    locks: LockSet,
    footprint: Arc<Footprint>,
    is_certain: bool,
}

/// A place for a call in progress.
#[derive(Default)]
struct InProgress {
    /// What it still waits for: locks, certain calls before it, or, if it is certain itself, for being the
    /// oldest.
    waits: u32,
    is_done: bool,
    /// The lock manager's handle.
    requests: u32,
    /// Until it is handed to a worker.
    ready: Option<Ready>,
    /// If it is certain, until it has ended.
    certain: Option<Arc<Footprint>>,
    /// If it is certain: who waits for it.
    behind: Vec<u32>,
    /// Space for the locks of the next call here.
    spare: LockSet,
}

/// The scheduler's state.
pub struct Scheduler {
    manager: LockManager,
    calls: Box<[InProgress]>,
    /// The oldest call in progress; `next`, if there is none.
    oldest: Seq,
    next: Seq,
    /// Certain calls in progress.
    certain: Vec<u32>,
    footprints: Vec<Arc<Footprint>>,
    /// By place of a lock: the last call that has requested it in order to write, as long as there are
    /// dependent calls to be told.
    written: Box<[Seq]>,
    /// The same, of those who may write what decides about the locks of others.
    decided: Box<[Seq]>,
    /// What that is.
    pub deciding: Deciding,
    /// By table and column: the last certain call that may write it, the table locked whole.
    table_written: Vec<Box<[Seq]>>,
    has_dependent: bool,
    payload: Vec<u8>,
    /// Calls that have all their locks, and are not handed over yet.
    pub ready: Vec<Ready>,
    /// Calls that get their places together.
    pub placed: Vec<Placed>,
}

impl Scheduler {
    /// A scheduler without calls.
    pub fn new(policy: &Policy) -> Scheduler {
        Scheduler {
            manager: LockManager::new(policy.lock_manager),
            calls: (0..IN_PROGRESS_MAX).map(|_| InProgress::default()).collect(),
            oldest: Seq(1),
            next: Seq(1),
            certain: Vec::new(),
            footprints: Vec::new(),
            written: Box::default(),
            decided: Box::default(),
            deciding: Deciding::default(),
            table_written: Vec::new(),
            has_dependent: false,
            payload: Vec::new(),
            ready: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// Takes further definitions in, and goes on at `next`. No call is in progress.
    pub fn follow(&mut self, schema: &Schema, next: Seq) {
        assert!(self.oldest == self.next, "definitions come between calls");
        (self.oldest, self.next) = (next, next);
        let definitions = &schema.definitions;
        for procedure in definitions.procedures.iter_from(self.footprints.len()) {
            let draws_random = schema.plan(procedure.id.0 as usize).draws_random;
            let footprint = Footprint::of(procedure, &definitions.catalog, draws_random);
            self.has_dependent |= footprint.may_be_dependent();
            self.note_deciding(&footprint);
            self.footprints.push(Arc::new(footprint));
        }
        if self.has_dependent && self.written.is_empty() {
            self.written = vec![Seq::ZERO; PLACES].into();
            self.decided = self.written.clone();
        }
        for table in &definitions.tables[self.table_written.len()..] {
            self.table_written.push(vec![Seq::ZERO; table.types().len()].into());
        }
    }

    /// Notes what decides about the locks of a procedure's calls.
    fn note_deciding(&mut self, footprint: &Footprint) {
        for of in footprint.determining() {
            let at = of.table.0 as usize;
            let known = self.deciding.get(at).copied().unwrap_or(ColumnMask::EMPTY);
            if !known.covers(of.columns) {
                let mut deciding = self.deciding.to_vec();
                deciding.resize(deciding.len().max(at + 1), ColumnMask::EMPTY);
                deciding[at] = known.union(of.columns);
                self.deciding = deciding.into();
            }
        }
    }

    /// How many more calls can be in progress.
    pub fn room(&self) -> usize {
        IN_PROGRESS_MAX - (self.next.0 - self.oldest.0) as usize - self.placed.len()
    }

    /// What is known of the procedure of a call; nothing, if there is none.
    pub fn footprint(&self, call: &Call<'_>) -> Arc<Footprint> {
        self.footprints.get(call.procedure.0 as usize).cloned().unwrap_or_default()
    }

    /// Puts a call in line for a place, with the locks that its arguments say it needs.
    pub fn place(
        &mut self,
        chunk: Chunk,
        footprint: Arc<Footprint>,
        is_certain: bool,
        schema: &Schema,
        shared: &Shared,
    ) {
        let mut locks = self.spare_locks();
        let call = entry::take_call(&mut chunk.calls()).expect("calls are checked when they come in");
        footprint.declared_locks(&call, schema, &shared.granules, &self.deciding, &mut locks);
        locks.seal();
        self.note_writes(&locks, &footprint, is_certain);
        self.placed.push(Placed { chunk, locks, footprint, is_certain });
    }

    /// Puts a dependent call in line for a place, with the locks that were predicted, if what they depend on
    /// is as it was; or gives it back.
    pub fn place_predicted(&mut self, dependent: Dependent, prediction: Prediction) -> Result<(), Dependent> {
        let written = if prediction.aborts { &self.written } else { &self.decided };
        let is_unwritten = |place: &u32| written[*place as usize] <= prediction.since;
        let is_before = |seq: &Seq| *seq <= prediction.since;
        let is_whole_unwritten = |table: TableId| self.table_written[table.0 as usize].iter().all(is_before);
        let are_columns_unwritten = |of: &TableColumns| {
            let written = &self.table_written[of.table.0 as usize];
            of.columns.iter().all(|column| is_before(&written[usize::from(column.0)]))
        };
        let are_tables_unwritten = match prediction.aborts {
            true => dependent.footprint.tables().all(is_whole_unwritten),
            false => dependent.footprint.determining().all(are_columns_unwritten),
        };
        let is_right = are_tables_unwritten && prediction.determining.iter().all(is_unwritten);
        dependent.footprint.learn(is_right);
        if !is_right {
            return Err(dependent);
        }
        let Dependent { chunk, footprint, .. } = dependent;
        self.note_writes(&prediction.locks, &footprint, false);
        self.placed.push(Placed { chunk, locks: prediction.locks, footprint, is_certain: false });
        Ok(())
    }

    /// The place in the order of the next call in line.
    fn next_seq(&self) -> Seq {
        Seq(self.next.0 + self.placed.len() as u64)
    }

    fn number(seq: Seq) -> u32 {
        seq.0 as u32 & (IN_PROGRESS_MAX as u32 - 1)
    }

    fn spare_locks(&mut self) -> LockSet {
        let number = Scheduler::number(self.next_seq());
        let mut locks = std::mem::take(&mut self.calls[number as usize].spare);
        locks.clear();
        locks
    }

    /// Notes, for predictions made before, what the next call in line may write.
    fn note_writes(&mut self, locks: &LockSet, footprint: &Footprint, is_certain: bool) {
        if !self.has_dependent {
            return;
        }
        let seq = self.next_seq();
        for lock in locks.iter().filter(|lock| lock.mode() != Mode::Shared) {
            self.written[lock.place()] = seq;
            if lock.is_deciding() {
                self.decided[lock.place()] = seq;
            }
        }
        if is_certain {
            for of in footprint.written_whole() {
                let written = &mut self.table_written[of.table.0 as usize];
                of.columns.iter().for_each(|column| written[usize::from(column.0)] = seq);
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

    /// Requests the locks of the next call in the order.
    fn request(&mut self, placed: Placed, time_us: i64) {
        let Placed { chunk, locks, footprint, is_certain } = placed;
        let seq = self.next;
        self.next = seq.next();
        let number = Scheduler::number(seq);
        let mut waits = u32::from(is_certain);
        for &before in &self.certain {
            let before = &mut self.calls[before as usize];
            let whole = before.certain.as_ref().expect("it has not ended");
            if footprint.conflicts_with(whole) {
                before.behind.push(number);
                waits += 1;
            }
        }
        let call = &mut self.calls[number as usize];
        waits += self.manager.request(number, &locks, &mut call.requests);
        call.waits = waits;
        call.is_done = false;
        call.ready = Some(Ready { number, seq, time_us, chunk, locks, is_certain });
        if is_certain {
            call.certain = Some(footprint);
            self.certain.push(number);
        }
        if waits == 0 {
            self.ready.extend(call.ready.take());
        }
    }

    /// Releases the locks of a call that has ended.
    pub fn end(&mut self, ended: Ended) {
        let Scheduler { manager, calls, ready, certain, .. } = self;
        let number = ended.number;
        let mut grant = |calls: &mut [InProgress], number: u32| {
            let call = &mut calls[number as usize];
            call.waits -= 1;
            if call.waits == 0 {
                ready.extend(call.ready.take());
            }
        };
        let requests = calls[number as usize].requests;
        manager.release(&ended.locks, requests, |granted| grant(calls, granted));
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
        while self.oldest < self.next && self.calls[Scheduler::number(self.oldest) as usize].is_done {
            self.oldest = self.oldest.next();
        }
        if self.oldest < self.next {
            let call = &mut self.calls[Scheduler::number(self.oldest) as usize];
            self.ready.extend(call.ready.take());
        }
    }
}
