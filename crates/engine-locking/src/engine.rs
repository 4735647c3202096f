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
use crate::footprint::{Footprints, Way};
use crate::lock::LockSet;
use crate::policy::Policy;
use crate::reconnaissance::{Dependent, Expedition, predict};
use crate::scheduler::{Ended, Ready, Scheduler};
use bumpalo::Bump;
use fabius_engine::ahead::Ahead;
use fabius_engine::eager::intake::{CHUNK_CALLS_MAX, Chunk, Intake, Outcomes};
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::queue::Queue;
use fabius_engine::eager::turn::{Order, Turn};
use fabius_engine::eager::{Ground, Runner};
use fabius_engine::reader::query_at;
use fabius_engine::{Foundation, Room, Standpoint};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use parking_lot::{RwLock, RwLockWriteGuard};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire},
};

/// Calls that a worker takes at a time, at most.
const READY_CALLS: usize = 64;
/// Calls whose reconnaissance is made together, at most.
const EXPEDITION_CALLS: usize = 32;
/// Dependent calls on their way to a place, at most; until there are fewer, nothing is taken in.
const DEPENDENT_MAX: usize = 1 << 16;

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
    ground: Ground,
    policy: Policy,
    intake: Intake,
    role: Mutex<Role>,
    /// As of the scheduler's last turn.
    footprints: RwLock<Arc<Footprints>>,
    ready: Queue<Ready>,
    ended: Queue<Ended>,
    unpredicted: Queue<Dependent>,
    predicted: Queue<Expedition>,
    /// Calls that have been taken in and have not ended.
    open: AtomicUsize,
    /// Those of them that are on their way to a place.
    dependent: AtomicUsize,
    /// How many want that nothing be taken in.
    pauses: AtomicUsize,
}

/// Nothing is taken in until this is dropped.
pub struct Pause<'e>(&'e AtomicUsize);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
    }
}

impl LockingEngine {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, policy: Policy) -> LockingEngine {
        let scheduler = Scheduler::new(&policy);
        LockingEngine {
            ground: Ground::new(foundation),
            policy,
            intake: Intake::default(),
            role: Mutex::new(Role { scheduler, expeditions: VecDeque::new(), certain: VecDeque::new() }),
            footprints: RwLock::default(),
            ready: Queue::default(),
            ended: Queue::default(),
            unpredicted: Queue::default(),
            predicted: Queue::default(),
            open: AtomicUsize::new(0),
            dependent: AtomicUsize::new(0),
            pauses: AtomicUsize::new(0),
        }
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
        let gate = self.ground.gate.read();
        let ended = self.ended.take(|all| all);
        let mut has_worked = !ended.is_empty();
        ended.into_iter().for_each(|ended| role.scheduler.end(ended));
        if !Arc::ptr_eq(&role.scheduler.footprints.definitions, &gate.definitions) {
            role.scheduler.follow(&gate, self.ground.shared.sequencer.next());
            *self.footprints.write() = role.scheduler.footprints.clone();
        }
        has_worked |= self.place_predicted(&mut role);
        if role.expeditions.front().is_none_or(|first| !first.is_held_up) {
            has_worked |= self.place_declared(&mut role, &gate);
        }
        self.ready.extend(role.scheduler.ready.drain(..));
        has_worked
    }

    /// Gives places to calls whose predictions hold; whether there were any predictions.
    fn place_predicted(&self, role: &mut Role) -> bool {
        if self.dependent.load(Acquire) == 0 {
            return false;
        }
        role.expeditions.extend(self.predicted.take(|all| all));
        let now = self.ground.now_ns();
        let mut has_worked = false;
        while role.scheduler.room() >= EXPEDITION_CALLS
            && let Some(mut expedition) = role.expeditions.pop_front_if(|expedition| expedition.due_ns <= now)
        {
            let mut again = Vec::new();
            expedition.is_held_up = false;
            while let Some((dependent, prediction)) = expedition.calls.pop_front() {
                if prediction.is_some() && role.scheduler.is_open(&dependent) {
                    expedition.is_held_up = true;
                    expedition.calls.push_front((dependent, prediction));
                    break;
                }
                has_worked = true;
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
            self.ground.foundation().counters.retries.add(again.len() as u64);
            self.unpredicted.extend(again);
            self.log(role, expedition.time_us);
            if expedition.is_held_up {
                role.expeditions.push_front(expedition);
                break;
            }
        }
        has_worked
    }

    /// Takes calls in, and gives places to those that need no prediction; whether there were any calls.
    fn place_declared(&self, role: &mut Role, schema: &Schema) -> bool {
        let (scheduler, shared) = (&mut role.scheduler, &self.ground.shared);
        let mut has_worked = false;
        while scheduler.room() > 0
            && let Some(Dependent { chunk, .. }) = role.certain.pop_front()
        {
            has_worked = true;
            self.dependent.fetch_sub(1, AcqRel);
            scheduler.place(chunk, true, schema, shared);
        }
        let mut unpredicted = Vec::new();
        while scheduler.room() >= CHUNK_CALLS_MAX as usize && self.takes_in() {
            let Some(chunk) = self.intake.take() else { break };
            has_worked = true;
            self.open.fetch_add(chunk.count as usize, AcqRel);
            for chunk in chunk.split() {
                match scheduler.footprints.way(&chunk.call(), schema) {
                    Way::Declared => scheduler.place(chunk, false, schema, shared),
                    Way::Certain => scheduler.place(chunk, true, schema, shared),
                    Way::Query | Way::Dependent => {
                        self.dependent.fetch_add(1, AcqRel);
                        unpredicted.push(Dependent { chunk, restarts: 0 });
                    }
                }
            }
        }
        if !unpredicted.is_empty() {
            self.unpredicted.extend(unpredicted);
        }
        self.log(role, self.ground.foundation().clock.now_us());
        has_worked
    }

    fn log(&self, role: &mut Role, time_us: i64) {
        if let Err((error, chunks)) = role.scheduler.log(time_us, &self.ground.shared) {
            for chunk in chunks {
                self.end(&chunk, Outcomes { failure: Some(error.clone()), ..Outcomes::default() });
            }
        }
    }

    /// Runs calls that have their locks; whether there were any.
    fn run_ready(&self) -> bool {
        if self.ready.is_empty() {
            return false;
        }
        let gate = self.ground.gate.read();
        // What is left may be for another thread.
        let mut ready = self.ready.take(|all| all.div_ceil(2).min(READY_CALLS));
        if ready.is_empty() {
            return false;
        }
        let mut locks: Vec<_> = ready.iter_mut().map(|ready| std::mem::take(&mut ready.locks)).collect();
        schedule::point("turn");
        let footprints = self.footprints.read().clone();
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let shared = &self.ground.shared;
        let control = Covered::new(&shared.granules, &footprints);
        let mut turn = Turn::new(shared, &gate, &guard, &arena, Order::Logged, 0, control);
        let mut ahead = Ahead::new(&gate.definitions, &guard);
        let mut rest = ready.iter();
        for (ready, locks) in ready.iter().zip(&mut locks) {
            while ahead.is_short()
                && let Some(later) = rest.next()
            {
                ahead.look(later.chunk.call());
            }
            ahead.proceed().into_iter().for_each(|coming| ahead.recycle(coming));
            let control = turn.control();
            control.locks = std::mem::take(locks);
            control.has_ranges = footprints.get(ready.chunk.call().procedure).has_ranges();
            control.written = ready.is_certain.then(LockSet::default);
            let outcomes = turn.run_at(ready.chunk.calls(), ready.chunk.first, ready.seq, ready.time_us);
            let control = turn.control();
            let (locks, written) = (std::mem::take(&mut control.locks), control.written.take());
            self.ended.push(Ended { seq: ready.seq, locks, written });
            self.end(&ready.chunk, outcomes);
        }
        turn.end();
        drop(gate);
        schedule::point("turn ended");
        self.ground.answer();
        true
    }

    /// Runs dependent calls for what they would access, and programs that only read for what they return;
    /// whether there were any.
    fn reconnoitre(&self) -> bool {
        if self.unpredicted.is_empty() {
            return false;
        }
        let gate = self.ground.gate.read();
        let calls = self.unpredicted.take(|all| all.div_ceil(2).min(EXPEDITION_CALLS));
        if calls.is_empty() {
            return false;
        }
        let footprints = self.footprints.read().clone();
        let is_query = |call: &Dependent| footprints.way(&call.chunk.call(), &gate) == Way::Query;
        let (queries, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_query);
        for query in &queries {
            self.query_in_batch(&gate, &query.chunk);
        }
        self.dependent.fetch_sub(queries.len(), AcqRel);
        if !calls.is_empty() {
            let Ground { shared, .. } = &self.ground;
            // Before anything is read.
            let since = shared.foundation.promised();
            let time_us = shared.foundation.clock.now_us();
            schedule::point("reconnaissance");
            let guard = crossbeam_epoch::pin();
            let arena = Bump::new();
            let control = Recorder::new(&shared.granules, &footprints);
            let mut turn = Turn::new(shared, &gate, &guard, &arena, Order::Logged, time_us, control);
            let predictions: Vec<_> = calls
                .iter()
                .map(|call| predict(&mut turn, &call.chunk, since, &footprints, &gate, &shared.granules))
                .collect();
            turn.end();
            let due_ns = self.ground.now_ns() + self.policy.delay.as_nanos() as u64;
            let calls = calls.into_iter().zip(predictions).collect();
            self.predicted.push(Expedition { time_us, due_ns, is_held_up: false, calls });
        }
        true
    }

    /// Runs a call of a program that only reads, on a snapshot: it has no place in the order (Calvin,
    /// section 3.1.2).
    fn query_in_batch(&self, schema: &Schema, chunk: &Chunk) {
        let call = chunk.call();
        let foundation = self.ground.foundation();
        let at = Standpoint::newest(foundation);
        let procedure = schema.definitions.procedure(call.procedure);
        let result = procedure
            .and_then(|procedure| query_at(foundation, &at, procedure, call.arguments, Room::unbounded()));
        let mut outcomes = Outcomes { last: at.seq(), ..Outcomes::default() };
        match result {
            Ok(values) if call.wants_result => {
                outcomes.returned.push(chunk.first, values.into_iter());
            }
            Ok(_) => {}
            Err(error) => outcomes.aborts.push((chunk.first, error)),
        }
        self.end(chunk, outcomes);
    }

    /// Stores what became of a call.
    fn end(&self, chunk: &Chunk, outcomes: Outcomes) {
        self.ground.end(&chunk.work, chunk.count, outcomes);
        self.open.fetch_sub(1, AcqRel);
    }

    fn has_stopped(&self) -> bool {
        self.ground.foundation().failure().is_some()
    }

    /// Takes no calls in until the pause ends, and runs those that have been taken in.
    fn pause(&self) -> Pause<'_> {
        self.pauses.fetch_add(1, AcqRel);
        let pause = Pause(&self.pauses);
        // A turn that is under way may not have seen it.
        drop(self.role.lock());
        self.finish();
        pause
    }
}

impl Runner for LockingEngine {
    type Rest<'a> = Pause<'a>;

    fn name(&self) -> &'static str {
        "locking"
    }

    fn ground(&self) -> &Ground {
        &self.ground
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn take_turn(&self) -> bool {
        self.schedule() || self.run_ready() || self.reconnoitre()
    }

    fn come_to_rest(&self) -> (RwLockWriteGuard<'_, Schema>, Pause<'_>) {
        let count = self.intake.count();
        while !self.intake.has_begun(count) && !self.has_stopped() {
            if !self.take_turn() {
                schedule::give_way("rest");
            }
        }
        let pause = self.pause();
        (self.ground.gate.write(), pause)
    }

    fn finish(&self) {
        while self.open.load(Acquire) > 0 && !self.has_stopped() {
            if !self.take_turn() {
                schedule::give_way("rest");
            }
        }
    }

    fn stand(&self) -> Standpoint<'_> {
        // A checkpoint stands between two batches of the log, and calls become visible one by one.
        let _pause = self.pause();
        self.ground.stand()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_engine::{Batch, BatchBuilder};
    use fabius_testing::rig::Rig;
    use fabius_value::Value;
    use std::panic::AssertUnwindSafe;
    use std::sync::OnceLock;
    use std::time::Duration;

    const PROGRAMS: &str = "
        table names { id: int, target: int, primary key (id) }
        table targets { id: int, count: int, primary key (id) }
        procedure open(id: int) {
            insert names { id: id, target: 0 }
            insert targets { id: id, count: 0 }
        }
        procedure rename(id: int, target: int) { names[id].target = target }
        procedure follow(id: int) { targets[names[id].target].count += 1 }
        procedure raise(id: int) { targets[id].count += 100 }
        procedure pass_on(id: int) {
            names[id].target = targets[0].count % 8
            targets[names[id].target].count += 10000
        }
    ";
    const TARGETS: i32 = 8;
    const DELAY: Duration = Duration::from_millis(1);

    fn database(policy: Policy) -> (Arc<LockingEngine>, Rig) {
        let made = AssertUnwindSafe(OnceLock::new());
        let rig = Rig::new(&|foundation| {
            made.get_or_init(|| Arc::new(LockingEngine::new(foundation, policy))).clone()
        });
        rig.define(PROGRAMS);
        (0..TARGETS).for_each(|id| drop(rig.call("open", &[id.into()]).expect("it is new")));
        (made.get().expect("it was made").clone(), rig)
    }

    /// Hands a call in, and lends a thread until there is nothing to do.
    fn begin(rig: &Rig, name: &str, values: &[Value]) -> Arc<Batch> {
        let mut batch = BatchBuilder::new();
        rig.push(&mut batch, name, values, None);
        let batch = batch.build();
        rig.engine.submit(batch.clone());
        while rig.engine.help() {}
        batch
    }

    fn counts(rig: &Rig) -> Vec<i32> {
        let rows = rig.rows("targets").into_iter();
        rows.map(|row| if let Value::Int(count) = row[1] { count } else { unreachable!("an int") }).collect()
    }

    /// Goal: a call whose predictions are wrong goes back as often as the bound says, and keeps to it; then it locks
    /// whole tables: it runs though its keys have changed once more, and whoever accesses other rows of them waits
    /// for it.
    #[test]
    fn what_is_predicted_wrongly_too_often_locks_whole_tables() {
        let policy = Policy { delay: DELAY, ..Policy::default() };
        let (engine, rig) = database(policy);
        let retries = || rig.foundation.counters.retries.get();
        let call = begin(&rig, "follow", &[1.into()]);
        for restart in 1..=policy.restarts_max {
            assert!(!call.is_complete());
            rig.call("rename", &[1.into(), Value::Int(restart as i32)]).expect("it is there");
            rig.clock.advance(DELAY);
            while rig.engine.help() {}
            assert_eq!(retries(), restart.into());
        }
        rig.call("rename", &[1.into(), 6.into()]).expect("it is there");
        rig.clock.advance(DELAY);
        let mut batch = BatchBuilder::new();
        rig.push(&mut batch, "raise", &[7.into()], None);
        let other = batch.build();
        rig.engine.submit(other.clone());
        assert!(engine.schedule());
        let ready = engine.ready.take(|all| all);
        let whole: Vec<bool> = ready.iter().map(|ready| ready.is_certain).collect();
        assert_eq!(whole, [true], "the other call waits for the one that has whole tables");
        engine.ready.extend(ready);
        while rig.engine.help() {}
        assert!(call.is_complete() && other.is_complete());
        assert_eq!(retries(), u64::from(policy.restarts_max));
        assert_eq!(counts(&rig), [0, 0, 0, 0, 0, 0, 1, 100]);
    }

    /// Goal: what decides may come by way of a row that the call itself has written.
    #[test]
    fn what_is_predicted_may_depend_on_what_the_call_has_written() {
        let (_, rig) = database(Policy { delay: DELAY, ..Policy::default() });
        let call = begin(&rig, "pass_on", &[1.into()]);
        rig.call("raise", &[0.into()]).expect("it is there");
        while !call.is_complete() {
            rig.clock.advance(DELAY);
            while rig.engine.help() {}
        }
        assert_eq!(counts(&rig), [100, 0, 0, 0, 10_000, 0, 0, 0]);
    }

    /// Goal: a predicted call gets its place when the delay has passed, and not before; a prediction that is still
    /// right by then is not repeated.
    #[test]
    fn a_prediction_waits_for_the_delay() {
        let (_, rig) = database(Policy { delay: DELAY, ..Policy::default() });
        let call = begin(&rig, "follow", &[1.into()]);
        rig.clock.advance(DELAY - Duration::from_nanos(1));
        while rig.engine.help() {}
        assert!(!call.is_complete());
        // Of another row.
        rig.call("rename", &[2.into(), 3.into()]).expect("it is there");
        rig.clock.advance(Duration::from_nanos(1));
        while rig.engine.help() {}
        assert!(call.is_complete());
        assert_eq!(rig.foundation.counters.retries.get(), 0);
        assert_eq!(counts(&rig)[0], 1);
    }
}
