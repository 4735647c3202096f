//! The engine behind the contract: threads that are lent take the scheduler's role, run calls that have
//! their locks, or run reconnaissance.
//!
//! ```text
//!             /--------------------------------- restart ---------------------------------\
//! intake --> scheduler --> unpredicted --> reconnaissance --> predicted --> scheduler ----+
//!               |                                                              |
//!               +----------------- place, log, locks --------------------------+
//!                                         |
//!                 scheduler <-- ended <-- run <-- ready
//! ```

use crate::control::{Covered, Recorder};
use crate::footprint::Way;
use crate::policy::Policy;
use crate::reconnaissance::{Dependent, Expedition, predict};
use crate::scheduler::{Ended, Ready, Scheduler};
use bumpalo::Bump;
use fabius_engine::ahead::Ahead;
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::eager::intake::{CHUNK_CALLS, Chunk, Intake, Outcomes};
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::{PURGE_AT, Shared};
use fabius_engine::eager::turn::{Order, Turn};
use fabius_engine::entry::{self, Entries};
use fabius_engine::reader::query_unanswered;
use fabius_engine::{Batch, Definitions, Engine, Foundation, Room, Standpoint, Ticket};
use fabius_env::schedule;
use fabius_env::sync::{Mutex, RwLock};
use fabius_value::{Error, Result, Seq};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};

/// Calls that a worker takes at a time, at most.
const READY_CALLS: usize = 64;
/// Calls whose reconnaissance is made together, at most.
const EXPEDITION_CALLS: usize = 32;
/// Dependent calls on their way to a place, at most; until there are fewer, nothing is taken in.
const DEPENDENT_MAX: usize = 1 << 16;

/// Things on their way from one thread to another; whether there are any can be seen without the lock.
struct Queue<T> {
    items: parking_lot::Mutex<VecDeque<T>>,
    length: AtomicUsize,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { items: parking_lot::Mutex::default(), length: AtomicUsize::new(0) }
    }
}

impl<T> Queue<T> {
    fn is_empty(&self) -> bool {
        self.length.load(Acquire) == 0
    }

    fn extend(&self, items: impl IntoIterator<Item = T>) {
        let mut queue = self.items.lock();
        queue.extend(items);
        self.length.store(queue.len(), Release);
    }

    /// Takes what `most` says of so many.
    fn take(&self, most: impl FnOnce(usize) -> usize) -> Vec<T> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut queue = self.items.lock();
        let count = most(queue.len()).min(queue.len());
        let taken = queue.drain(..count).collect();
        self.length.store(queue.len(), Release);
        taken
    }
}

/// What only the scheduler knows.
struct Role {
    scheduler: Scheduler,
    /// Expeditions that are back, in the order in which they go on.
    expeditions: VecDeque<Expedition>,
    /// Calls that are not predicted, or not any more.
    certain: VecDeque<Dependent>,
}

/// Calvin's deterministic locking.
pub struct LockingEngine {
    shared: Shared,
    policy: Policy,
    gate: RwLock<Schema>,
    intake: Intake,
    role: Mutex<Role>,
    ready: Queue<Ready>,
    ended: Queue<Ended>,
    unpredicted: Queue<Dependent>,
    predicted: Queue<Expedition>,
    /// Batches all of whose calls have ended, and the last seq of each.
    complete: parking_lot::Mutex<Vec<(Seq, Arc<Batch>)>>,
    /// Calls that have been taken in and have not ended.
    open: AtomicUsize,
    /// Those of them that are on their way to a place.
    dependent: AtomicUsize,
    /// How many want that nothing be taken in.
    pauses: AtomicUsize,
}

/// Nothing is taken in until this is dropped.
struct Pause<'e>(&'e AtomicUsize);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
    }
}

impl LockingEngine {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, policy: Policy) -> LockingEngine {
        let schema = Schema::of(foundation.definitions(), &Schema::default());
        let mut scheduler = Scheduler::new(&policy);
        scheduler.follow(&schema, Seq(1));
        LockingEngine {
            shared: Shared::new(foundation),
            policy,
            gate: RwLock::new(schema),
            intake: Intake::default(),
            role: Mutex::new(Role { scheduler, expeditions: VecDeque::new(), certain: VecDeque::new() }),
            ready: Queue::default(),
            ended: Queue::default(),
            unpredicted: Queue::default(),
            predicted: Queue::default(),
            complete: parking_lot::Mutex::default(),
            open: AtomicUsize::new(0),
            dependent: AtomicUsize::new(0),
            pauses: AtomicUsize::new(0),
        }
    }

    fn foundation(&self) -> &Foundation {
        &self.shared.foundation
    }

    fn now_ns(&self) -> u64 {
        self.foundation().clock.monotonic_ns()
    }

    /// Does one piece of work on the calling thread; whether there was any.
    fn lend(&self) -> bool {
        self.schedule() || self.run_ready() || self.reconnoitre()
    }

    fn takes_in(&self) -> bool {
        !self.intake.is_empty()
            && self.pauses.load(Acquire) == 0
            && self.dependent.load(Acquire) < DEPENDENT_MAX
    }

    /// A turn of the scheduler, if nobody else is at it; whether anything came of it.
    fn schedule(&self) -> bool {
        if self.ended.is_empty() && !self.takes_in() && self.dependent.load(Acquire) == 0 {
            return false;
        }
        let Some(mut role) = self.role.try_lock() else { return false };
        schedule::point("scheduler");
        let gate = self.gate.read();
        let ended = self.ended.take(|all| all);
        let mut has_worked = !ended.is_empty();
        ended.into_iter().for_each(|ended| role.scheduler.end(ended));
        has_worked |= self.place_predicted(&mut role);
        has_worked |= self.place_declared(&mut role, &gate);
        self.ready.extend(role.scheduler.ready.drain(..));
        has_worked
    }

    /// Gives places to calls whose predictions hold; whether there were any predictions.
    fn place_predicted(&self, role: &mut Role) -> bool {
        if self.dependent.load(Acquire) == 0 {
            return false;
        }
        role.expeditions.extend(self.predicted.take(|all| all));
        let now = self.now_ns();
        let mut has_worked = false;
        while role.scheduler.room() >= EXPEDITION_CALLS
            && let Some(expedition) = role.expeditions.pop_front_if(|expedition| expedition.due_ns <= now)
        {
            has_worked = true;
            let mut again = Vec::new();
            for (dependent, prediction) in expedition.calls {
                let Some(prediction) = prediction else {
                    role.certain.push_back(dependent);
                    continue;
                };
                match role.scheduler.place_predicted(dependent, prediction) {
                    Ok(()) => drop(self.dependent.fetch_sub(1, AcqRel)),
                    Err(dependent) if dependent.restarts == self.policy.restarts_max => {
                        role.certain.push_back(dependent);
                    }
                    Err(dependent) => again.push(Dependent { restarts: dependent.restarts + 1, ..dependent }),
                }
            }
            self.foundation().counters.retries.add(again.len() as u64);
            self.unpredicted.extend(again);
            self.log(role, expedition.time_us);
        }
        has_worked
    }

    /// Takes calls in, and gives places to those that need no prediction; whether there were any calls.
    fn place_declared(&self, role: &mut Role, schema: &Schema) -> bool {
        let scheduler = &mut role.scheduler;
        let mut has_worked = false;
        while scheduler.room() > 0
            && let Some(Dependent { chunk, footprint, .. }) = role.certain.pop_front()
        {
            has_worked = true;
            self.dependent.fetch_sub(1, AcqRel);
            scheduler.place(chunk, footprint, true, schema, &self.shared);
        }
        let mut unpredicted = Vec::new();
        while scheduler.room() >= CHUNK_CALLS as usize && self.takes_in() {
            let Some(chunk) = self.intake.take() else { break };
            has_worked = true;
            self.open.fetch_add(chunk.count as usize, AcqRel);
            for chunk in chunk.split() {
                let call =
                    entry::take_call(&mut chunk.calls()).expect("batches are encoded by their builder");
                let footprint = scheduler.footprint(&call);
                let is_query = footprint.is_read_only && call.key.is_none();
                let way = footprint.way();
                if is_query || way == Way::Dependent {
                    self.dependent.fetch_add(1, AcqRel);
                    let deciding = scheduler.deciding.clone();
                    unpredicted.push(Dependent { chunk, footprint, deciding, restarts: 0 });
                } else {
                    let is_certain = way == Way::Certain;
                    scheduler.place(chunk, footprint, is_certain, schema, &self.shared);
                }
            }
        }
        if !unpredicted.is_empty() {
            self.unpredicted.extend(unpredicted);
        }
        self.log(role, self.foundation().clock.now_us());
        has_worked
    }

    fn log(&self, role: &mut Role, time_us: i64) {
        if let Err((error, chunks)) = role.scheduler.log(time_us, &self.shared) {
            for chunk in chunks {
                self.end(&chunk, Outcomes { failure: Some(error.clone()), ..Outcomes::default() });
            }
            self.answer();
        }
    }

    /// Runs calls that have their locks; whether there were any.
    fn run_ready(&self) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        let gate = self.gate.read();
        // What is left may be for another thread.
        let mut ready = self.ready.take(|all| all.div_ceil(2).min(READY_CALLS));
        if ready.is_empty() {
            return false;
        }
        let mut locks: Vec<_> = ready.iter_mut().map(|ready| std::mem::take(&mut ready.locks)).collect();
        schedule::point("turn");
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let control = Covered::new(&self.shared.granules);
        let mut turn = Turn::new(&self.shared, &gate, &guard, &arena, Order::Logged, 0, control);
        let mut ahead = Ahead::new(&gate.definitions, &guard);
        let mut rest = ready.iter();
        for (ready, locks) in ready.iter().zip(&mut locks) {
            while ahead.is_short()
                && let Some(later) = rest.next()
            {
                look(&mut ahead, &later.chunk);
            }
            ahead.proceed().into_iter().for_each(|coming| ahead.recycle(coming));
            let control = turn.control();
            control.locks = std::mem::take(locks);
            control.is_certain = ready.is_certain;
            let outcomes = turn.run_at(ready.chunk.calls(), ready.chunk.first, ready.seq, ready.time_us);
            let locks = std::mem::take(&mut turn.control().locks);
            self.ended.extend([Ended { number: ready.number, locks }]);
            self.end(&ready.chunk, outcomes);
        }
        turn.end();
        drop(gate);
        schedule::point("turn ended");
        self.answer();
        true
    }

    /// Runs dependent calls for what they would access, and programs that only read for what they return;
    /// whether there were any.
    fn reconnoitre(&self) -> bool {
        if self.unpredicted.is_empty() {
            return false;
        }
        let gate = self.gate.read();
        let calls = self.unpredicted.take(|all| all.div_ceil(2).min(EXPEDITION_CALLS));
        if calls.is_empty() {
            return false;
        }
        let (queries, calls): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| call.footprint.is_read_only && !has_key(&call.chunk));
        for query in &queries {
            self.query_in_batch(&gate, &query.chunk);
        }
        self.dependent.fetch_sub(queries.len(), AcqRel);
        if !calls.is_empty() {
            // Before anything is read.
            let since = self.foundation().promised();
            let time_us = self.foundation().clock.now_us();
            schedule::point("reconnaissance");
            let guard = crossbeam_epoch::pin();
            let arena = Bump::new();
            let control = Recorder::new(&self.shared.granules);
            let mut turn = Turn::new(&self.shared, &gate, &guard, &arena, Order::Logged, time_us, control);
            let predictions: Vec<_> = calls
                .iter()
                .map(|call| predict(&mut turn, call, since, &gate, &self.shared.granules))
                .collect();
            turn.end();
            let due_ns = self.now_ns() + self.policy.delay.as_nanos() as u64;
            let calls = calls.into_iter().zip(predictions).collect();
            self.predicted.extend([Expedition { time_us, due_ns, calls }]);
        }
        drop(gate);
        self.answer();
        true
    }

    /// Runs a call of a program that only reads, on a snapshot: it has no place in the order (Calvin,
    /// section 3.1.2).
    fn query_in_batch(&self, schema: &Schema, chunk: &Chunk) {
        let call = entry::take_call(&mut chunk.calls()).expect("calls are checked when they come in");
        let (last, result) = match schema.definitions.procedure(call.procedure) {
            Ok(procedure) => {
                query_unanswered(self.foundation(), procedure, call.arguments, Room::unbounded())
            }
            Err(gone) => (self.foundation().promised(), Err(gone)),
        };
        let mut outcomes = Outcomes { last, ..Outcomes::default() };
        match result {
            Ok(values) if call.wants_result => {
                outcomes.tickets.push((chunk.first, Arc::new(Ticket::ready(Ok(values)))));
            }
            Ok(_) => {}
            Err(error) => outcomes.aborts.push((chunk.first, error)),
        }
        self.end(chunk, outcomes);
    }

    /// Stores what became of a call.
    fn end(&self, chunk: &Chunk, outcomes: Outcomes) {
        if let Some(last) = chunk.end(outcomes) {
            self.complete.lock().push((last, chunk.work.batch.clone()));
        }
        self.open.fetch_sub(1, AcqRel);
    }

    /// Answers batches all of whose calls have ended, as far as readers can see what they wrote.
    fn answer(&self) {
        let promised = self.foundation().promised();
        let batches: Vec<_> = {
            let mut complete = self.complete.lock();
            let is_promised = |of: &mut (Seq, Arc<Batch>)| of.0 <= promised;
            complete.extract_if(.., is_promised).collect()
        };
        for (last, batch) in batches {
            let failure = batch.outcomes().failure.clone();
            match failure {
                Some(failure) => batch.fail(failure, self.now_ns()),
                None => self.foundation().decided(last, batch),
            }
        }
    }

    /// Runs all calls that have been handed in, and takes none in until the pause ends.
    fn come_to_rest(&self) -> Pause<'_> {
        let count = self.intake.count();
        while !self.intake.has_begun(count) {
            if !self.lend() {
                schedule::give_way("rest");
            }
        }
        self.pause()
    }

    /// Takes no calls in until the pause ends, and runs those that have been taken in.
    fn pause(&self) -> Pause<'_> {
        self.pauses.fetch_add(1, AcqRel);
        let pause = Pause(&self.pauses);
        // A turn that is under way may not have seen it.
        drop(self.role.lock());
        while self.open.load(Acquire) > 0 {
            if !self.lend() {
                schedule::give_way("rest");
            }
        }
        pause
    }

    fn take_in(&self, role: &mut Role, gate: &mut Schema, definitions: Definitions, seq: Seq) {
        let definitions = Arc::new(definitions);
        *gate = Schema::of(definitions.clone(), gate);
        self.foundation().set_definitions(definitions);
        self.shared.sequencer.installed(seq, self.foundation());
        role.scheduler.follow(gate, seq.next());
    }

    fn tidy_if(&self, notes_min: usize) -> bool {
        let notes = self.shared.purge.lock().len();
        if notes == 0 || notes < notes_min {
            return false;
        }
        if notes >= PURGE_AT {
            let _no_call_runs = self.gate.write();
            return self.shared.tidy();
        }
        self.gate.try_write().is_some_and(|_no_call_runs| self.shared.tidy())
    }
}

fn look<'a>(ahead: &mut Ahead<'a>, chunk: &'a Chunk) {
    ahead.look(entry::take_call(&mut chunk.calls()).expect("calls are checked when they come in"));
}

fn has_key(chunk: &Chunk) -> bool {
    entry::take_call(&mut chunk.calls()).is_some_and(|call| call.key.is_some())
}

impl Engine for LockingEngine {
    fn name(&self) -> &'static str {
        "locking"
    }

    fn foundation(&self) -> &Foundation {
        &self.shared.foundation
    }

    fn submit(&self, batch: Arc<Batch>) {
        if batch.count() == 0 {
            batch.complete(self.now_ns());
        } else if let Err(reason) = self.intake.push(batch.clone()) {
            batch.fail(reason, self.now_ns());
        }
    }

    fn admit(&self) -> bool {
        self.lend()
    }

    fn help(&self) -> bool {
        self.tidy_if(PURGE_AT) || self.lend() || self.tidy_if(1)
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        let pause = self.come_to_rest();
        let mut role = self.role.lock();
        // The last calls may have ended without the scheduler.
        self.ended.take(|all| all).into_iter().for_each(|ended| role.scheduler.end(ended));
        let mut gate = self.gate.write();
        if let Some(reason) = self.intake.closed() {
            return Err(reason);
        }
        let definitions = gate.definitions.with(self.shared.sequencer.next(), entry)?;
        let seq = self.shared.sequencer.append(self.foundation(), entry)?;
        self.take_in(&mut role, &mut gate, definitions, seq);
        drop((gate, role, pause));
        self.foundation().wait_durable(seq)
    }

    fn stand(&self) -> Standpoint<'_> {
        // A checkpoint stands between two batches of the log, and calls become visible one by one.
        let _pause = self.pause();
        Standpoint::whole(self.foundation())
    }

    fn settle(&self) {
        let _pause = self.come_to_rest();
        let _no_call_runs = self.gate.write();
        self.shared.tidy();
    }

    fn restore(&self, state: State) {
        let (mut role, mut gate) = (self.role.lock(), self.gate.write());
        assert_eq!(self.shared.sequencer.next(), Seq(1), "an engine begins with a checkpoint or not at all");
        let seq = state.seq;
        self.shared.sequencer.go_on_after(seq);
        self.foundation().restore(state);
        *gate = Schema::of(self.foundation().definitions(), &gate);
        role.scheduler.follow(&gate, seq.next());
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        let (mut role, mut gate) = (self.role.lock(), self.gate.write());
        match entry::decode_next(payload, first_seq, count, self.shared.sequencer.next())? {
            Entries::Definition(_) | Entries::KeyWindow(_) => {
                let definitions = gate.definitions.with(first_seq, payload)?;
                let seq = self.shared.sequencer.take();
                self.take_in(&mut role, &mut gate, definitions, seq);
            }
            Entries::Calls { time_us, bytes } => {
                let guard = crossbeam_epoch::pin();
                let arena = Bump::new();
                // One after the other, nothing is in anyone's way.
                let control = Covered::new(&self.shared.granules);
                let mut turn =
                    Turn::new(&self.shared, &gate, &guard, &arena, Order::Logged, time_us, control);
                turn.run(bytes, |at| at);
                turn.end();
                role.scheduler.follow(&gate, self.shared.sequencer.next());
            }
        }
        if self.shared.purge.lock().len() >= PURGE_AT {
            self.shared.tidy();
        }
        Ok(())
    }

    fn close(&self, reason: Error) {
        let unbegun = self.intake.close(reason.clone());
        while self.open.load(Acquire) > 0 {
            if !self.lend() {
                schedule::give_way("close");
            }
        }
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.now_ns()));
    }

    fn counts(&self) -> Counts {
        self.foundation().counters.counts(0)
    }
}
