//! The lazy engine behind the contract: lane, workers, queries.

use crate::awaited::Awaited;
use crate::backlog::{Backlog, let_go};
use crate::deferred::{Chunk, Deferred};
use crate::intake::{Buffers, Intake, runs};
use crate::lane::{Lane, Rest, Surroundings, closed, is_memory_short};
use crate::policy::Policy;
use crate::substantiate::{Failed, Substantiation};
use crate::turn::Outcome;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use fabius_engine::batch::Outcomes;
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::entry::{self, Entries};
use fabius_engine::priority::Queues;
use fabius_engine::reader::SnapshotContext;
use fabius_engine::{Batch, Definitions, Engine, Foundation, Procedure, Room, Standpoint, Ticket};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use fabius_program::context::Stop;
use fabius_program::execute::{FrameFor, run};
use fabius_storage::{block, chain, fold::Retired};
use fabius_value::{Error, Result, Seq, Value};
use parking_lot::{MutexGuard, RwLock};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Calls of one turn of the lane, about: batches are not divided.
const TURN_CALLS: u32 = 1024;

/// Bytes of the calls of one turn, about. Calls with long arguments mostly do more, and what a turn has
/// written should still be in the cache when its deferred calls run, and when it is taken again.
const TURN_BYTES: usize = 10 << 10;

/// Deferred calls above which a thread that took a turn works off what it left itself.
const KEEP_UP_CALLS: u64 = 512;

/// Deferred calls above which what a turn has left is not near any more before it can run.
/// Few in debug builds, so that tests come there.
const OLDEST_FIRST_CALLS: u64 = if cfg!(debug_assertions) { 16 } else { 8 * KEEP_UP_CALLS };

/// Calls in the queue above which all threads promise before they do anything else: callers wait for several turns.
/// Few in debug builds, likewise.
const CROWD_CALLS: u32 = if cfg!(debug_assertions) { 8 } else { 2 * TURN_CALLS };

/// Deferred calls that should not wait and are run in one go.
const URGENT_CALLS: u32 = 64;

/// Deferred calls that an idle thread runs before it looks around again.
const IDLE_CALLS: u32 = 32;

/// Deferred calls that a thread runs while it waits for the lane, which should not wait for it.
const WAITING_CALLS: u32 = 4;

/// How often the thread that has the lane next tries to take it before it sleeps: some 100 us, about a turn.
const TRIES_AWAKE: u32 = 100;

/// The lazy engine.
pub struct LazyEngine {
    foundation: Arc<Foundation>,
    policy: RwLock<Policy>,
    queue: Queues<SegQueue<Arc<Batch>>>,
    /// Calls in the queue.
    queued: CachePadded<AtomicU32>,
    /// Threads that have taken batches from the queue and not yet brought them through the lane.
    in_hand: AtomicU32,
    spare: SegQueue<Buffers>,
    /// In memory of its own: those who wait for it read the mutex all the time.
    lane: CachePadded<Mutex<Box<Lane>>>,
    /// Whether a thread waits awake for the lane.
    has_next: CachePadded<AtomicBool>,
    backlog: Backlog,
    awaited: Awaited,
    closed: AtomicBool,
    relieving: AtomicBool,
    sweeps: AtomicU32,
}

impl LazyEngine {
    /// An engine without definitions.
    pub fn new(foundation: Arc<Foundation>, policy: Policy) -> LazyEngine {
        LazyEngine {
            foundation,
            policy: RwLock::new(policy),
            queue: Queues::default(),
            queued: CachePadded::new(AtomicU32::new(0)),
            in_hand: AtomicU32::new(0),
            spare: SegQueue::new(),
            lane: CachePadded::new(Mutex::new(Box::new(Lane::new()))),
            has_next: CachePadded::default(),
            backlog: Backlog::default(),
            awaited: Awaited::default(),
            closed: AtomicBool::new(false),
            relieving: AtomicBool::new(false),
            sweeps: AtomicU32::new(0),
        }
    }

    /// Changes when deferred work is done, from the next turn on.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write() = policy;
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            foundation: &self.foundation,
            backlog: &self.backlog,
            policy: *self.policy.read(),
            is_far_behind: self.is_far_behind(),
            awaited: &self.awaited,
        }
    }

    fn backlog_calls(&self) -> u64 {
        let counters = &self.foundation.counters;
        self.backlog.pushed().saturating_sub(counters.substantiated.get() + counters.skipped.get())
    }

    /// Whether callers have to wait for substantiation (backpressure: promises are never dropped).
    fn must_relieve(&self, policy: &Policy) -> bool {
        let backlog = self.backlog_calls();
        if backlog == 0 {
            self.relieving.store(false, Relaxed);
            return false;
        }
        let is_short = is_memory_short(policy) || backlog > policy.backlog_calls;
        // Once begun, relief goes on until a tenth is free, so that it comes in runs, not call by call.
        let goes_on = self.relieving.load(Relaxed)
            && (fabius_storage::memory::used() > policy.memory_bytes / 10 * 9
                || backlog > policy.backlog_calls / 10 * 9);
        if is_short && !self.relieving.swap(true, Relaxed) {
            self.foundation.counters.slowed.add(1);
        }
        if !is_short && !goes_on {
            self.relieving.store(false, Relaxed);
        }
        is_short || goes_on
    }

    /// A turn of the lane, if there are calls; whether it was taken.
    fn take_turn(&self) -> bool {
        self.turn().is_some()
    }

    /// A turn of the lane, if there are calls: what it leaves for later.
    fn turn(&self) -> Option<Option<Arc<Chunk>>> {
        if !self.has_queued() {
            return None;
        }
        let in_hand = InHand::of(&self.in_hand);
        let mut batches = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        while count < TURN_CALLS && bytes < TURN_BYTES {
            let Some(batch) = self.pop() else { break };
            count += batch.count();
            bytes += batch.calls().len();
            batches.push(batch);
        }
        if batches.is_empty() {
            return None;
        }
        self.queued.fetch_sub(count, Relaxed);
        let rest = self.foundation.contained(None, || self.take_through(&batches));
        drop(in_hand);
        if let Some(reason) = self.foundation.failure() {
            let now = self.foundation.clock.monotonic_ns();
            batches
                .iter()
                .filter(|batch| !batch.is_decided())
                .for_each(|batch| batch.fail(reason.clone(), now));
        }
        Some(rest)
    }

    /// Takes batches through the lane: what that leaves for later.
    fn take_through(&self, batches: &[Arc<Batch>]) -> Option<Arc<Chunk>> {
        let guard = crossbeam_epoch::pin();
        let mut definitions = self.foundation.definitions();
        let spare = self.spare.pop().unwrap_or_default();
        let mut intake = Intake::prepare(spare, &self.awaited, &definitions, &guard, runs(batches));
        self.run_awaited(&intake);
        let chunk = self.backlog.arenas().chunk();
        block::make_ready();
        schedule::point("made ready");
        let mut lane = self.lane_of_a_turn();
        schedule::point("lane");
        let in_force = self.foundation.definitions();
        if !Arc::ptr_eq(&definitions, &in_force) {
            let spare = intake.into_buffers();
            definitions = in_force;
            intake = Intake::prepare(spare, &self.awaited, &definitions, &guard, runs(batches));
        }
        let around = self.surroundings();
        let rest = if let Some(reason) = self.why_closed() {
            let now = self.foundation.clock.monotonic_ns();
            batches.iter().for_each(|batch| batch.fail(reason.clone(), now));
            Rest::default()
        } else {
            // A panic stops the engine before another thread gets the lane.
            self.foundation.watched(|| lane.turn(&around, batches, &intake, chunk))
        };
        drop(lane);
        // Now that nobody waits, what the lane has left is dropped, and what it has retired is freed.
        around.drop_unread(rest.unread, &guard);
        guard.flush();
        self.spare.push(intake.into_buffers());
        rest.chunk
    }

    /// Runs what now-phases of these calls would have to wait for in the lane, as far as it is promised already.
    fn run_awaited(&self, intake: &Intake<'_>) {
        if intake.awaited().is_empty() || self.why_closed().is_some() {
            return;
        }
        let Some(snapshot) = self.foundation.snapshots.try_begin(|| self.foundation.promised()) else {
            return;
        };
        // Whoever needs what failed says so.
        let _ = self.work(|tools| {
            intake.awaited().iter().try_for_each(|&(record, columns)| {
                // SAFETY: the epoch is pinned, and the snapshot keeps what is visible at its seq.
                let open = || unsafe {
                    chain::first_pending(record.visible(snapshot.seq()), columns, std::ptr::null_mut())
                };
                let mut before = None;
                while let Some(deferred) = open()
                    // One that was dropped stays open.
                    && before.replace(deferred) != Some(deferred)
                {
                    // SAFETY: read from an open sticky under this epoch.
                    unsafe { tools.substantiate(deferred)? };
                }
                Ok(())
            })
        });
    }

    /// Why no calls are taken in any more: whoever has panicked in the lane has left it as it was then.
    fn why_closed(&self) -> Option<Error> {
        let failure = self.foundation.failure().cloned();
        failure.or_else(|| self.closed.load(Acquire).then(closed))
    }

    /// The lane, for calls that are ready for it. While another thread has it, deferred calls are run; and if there
    /// are none, one thread stays awake, since being woken takes as long as many calls.
    fn lane_of_a_turn(&self) -> MutexGuard<'_, Box<Lane>> {
        let is_idle_work_wanted = self.policy.read().idle;
        loop {
            if let Some(lane) = self.lane.try_lock() {
                return lane;
            }
            let has_run = || match is_idle_work_wanted {
                true => self.run_oldest(WAITING_CALLS),
                false => self.run_urgent(WAITING_CALLS),
            };
            if self.is_crowded() || !has_run() {
                if self.has_next.swap(true, Relaxed) {
                    return self.lane.lock();
                }
                let lane = self.lane.lock_awake(TRIES_AWAKE);
                self.has_next.store(false, Relaxed);
                return lane;
            }
        }
    }

    /// Whether so many calls wait that deferred ones have to wait too.
    fn is_crowded(&self) -> bool {
        self.queued.load(Relaxed) > CROWD_CALLS
    }

    /// Whether callers have handed in what has not been promised yet.
    fn has_calls(&self) -> bool {
        self.has_queued() || self.in_hand.load(Acquire) > 0
    }

    fn has_queued(&self) -> bool {
        self.queue.iter().any(|queue| !queue.is_empty())
    }

    /// The batch that comes next.
    fn pop(&self) -> Option<Arc<Batch>> {
        loop {
            let next = self.queue.next(|queue| !queue.is_empty())?;
            // Another thread may have taken it.
            if let Some(batch) = self.queue.of(next).pop() {
                return Some(batch);
            }
        }
    }

    /// Works off about as much as a turn of this very thread has left: that, while it is in this core's cache, since
    /// waiting only makes it dearer when callers hand in more than idle threads keep up with. Behind a long backlog
    /// the oldest calls come first, though: the newest would need nearly all of those before them. Where nothing is
    /// done just because a thread is idle, those that should not wait are run.
    fn keep_up(&self, chunk: &Chunk, is_idle_work_wanted: bool) {
        if !is_idle_work_wanted {
            for _ in 0..=chunk.calls().len() / URGENT_CALLS as usize {
                if !self.run_urgent(URGENT_CALLS) {
                    break;
                }
            }
        } else if self.is_far_behind() {
            for _ in 0..=chunk.calls().len() / IDLE_CALLS as usize {
                if !self.run_oldest(IDLE_CALLS) {
                    break;
                }
            }
        } else if self.backlog_calls() > KEEP_UP_CALLS {
            // SAFETY: the chunk is alive.
            unsafe { self.substantiate_all(chunk.take(u32::MAX)) };
        }
    }

    /// Runs `work` with the tools of a worker, and counts what was run. What panics stops the engine.
    fn work(&self, work: impl FnOnce(&mut Substantiation<'_>) -> Result<(), Failed>) -> Result<()> {
        let definitions = self.foundation.definitions();
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let mut tools = Substantiation::new(&definitions, &guard, &arena);
        let result = self.unless_failed(|| work(&mut tools));
        self.foundation.counters.substantiated.add(tools.run);
        if result.is_ok() && (self.is_far_behind() || self.policy.read().is_eager()) {
            self.shorten_behind(&definitions, &guard);
        }
        result
    }

    /// Runs later-phases; if that fails, says why the engine has stopped.
    fn unless_failed(&self, work: impl FnOnce() -> Result<(), Failed>) -> Result<()> {
        self.foundation.attempt(|| work().map_err(|Failed| self.foundation.why_stopped()))
    }

    /// Runs calls that nobody waits for; whether it has. Once the engine has stopped, only what is read is computed.
    ///
    /// # Safety
    /// The calls' chunks are alive.
    unsafe fn substantiate_all(&self, calls: &[NonNull<Deferred>]) -> bool {
        // SAFETY: the calls' chunks are alive, as whoever calls this sees to.
        self.foundation.failure().is_none()
            && self.work(|tools| unsafe { tools.substantiate_all(calls) }).is_ok()
    }

    /// Takes out of chains what nobody needs any more since calls at the old end of the backlog are done.
    fn shorten_behind(&self, definitions: &Definitions, guard: &Guard) {
        let done: Vec<Arc<Chunk>> = std::iter::from_fn(|| self.backlog.take_done()).collect();
        if done.is_empty() {
            return;
        }
        let readers = self.foundation.snapshots.collect(self.foundation.promised());
        let collected = self.backlog.oldest_pending().map_or(readers, |open| readers.min(open.before()));
        let mut retired = Retired::default();
        for chunk in done {
            // SAFETY: taken out in this epoch; and `collected` is behind all readers and open calls.
            unsafe { chunk.shorten(collected, definitions, &mut retired, guard) };
            let_go(chunk, guard);
        }
        retired.hand_over(guard);
    }

    /// Whether the backlog is so long that deferred calls are best run one after the other from its old end: any
    /// other would need nearly all of those before it, which are found slowly from there.
    fn is_far_behind(&self) -> bool {
        self.backlog_calls() > OLDEST_FIRST_CALLS
    }

    /// Runs deferred calls, whatever the policy: those that should not wait any longer, then the oldest.
    fn run_deferred(&self) -> bool {
        self.is_far_behind() && self.run_oldest(IDLE_CALLS)
            || self.run_urgent(URGENT_CALLS)
            || self.run_oldest(IDLE_CALLS)
    }

    fn run_urgent(&self, most: u32) -> bool {
        // All of them before the definitions that they are run with.
        let (_chunks, calls): (Vec<Arc<Chunk>>, Vec<NonNull<Deferred>>) =
            std::iter::from_fn(|| self.backlog.take_urgent()).take(most as usize).unzip();
        // SAFETY: the chunks are alive.
        !calls.is_empty() && unsafe { self.substantiate_all(&calls) }
    }

    fn run_oldest(&self, most: u32) -> bool {
        let Some((_chunk, calls)) = self.backlog.take_oldest(most) else { return false };
        // SAFETY: the chunk is alive.
        unsafe { self.substantiate_all(&calls) }
    }

    /// Gives memory back when it is short and there is nothing to substantiate.
    fn sweep_if_short(&self, policy: &Policy) {
        let due = is_memory_short(policy)
            && self.foundation.failure().is_none()
            && self.sweeps.fetch_add(1, Relaxed).is_multiple_of(1024);
        if due && let Some(mut lane) = self.lane.try_lock() {
            self.foundation.watched(|| lane.sweep(&self.surroundings()));
        }
    }

    fn tidy(&self, lane: &mut Lane) -> bool {
        self.foundation.failure().is_none() && self.foundation.watched(|| lane.tidy(&self.surroundings()))
    }

    /// Computes everything that is deferred if the entry drops a table: what a deferred call fills must not
    /// go before it. The lane is held, so nothing is deferred meanwhile.
    fn rest_before(&self, entry: &[u8]) -> Result<()> {
        if Definitions::drops_table(entry) {
            self.substantiate_to(self.foundation.promised());
        }
        self.foundation.failure().cloned().map_or(Ok(()), Err)
    }

    fn substantiate_to(&self, limit: Seq) {
        while let Some(chunk) = self.backlog.oldest_open(limit) {
            // SAFETY: the chunk is alive.
            if !unsafe { self.substantiate_all(chunk.calls()) } {
                break;
            }
            schedule::point("settle");
        }
    }

    fn take_in(&self, lane: &mut Lane, definitions: Definitions) -> Seq {
        let seq = lane.follow(&definitions);
        self.foundation.set_definitions(Arc::new(definitions));
        schedule::point("definitions");
        self.foundation.set_promised(seq);
        seq
    }

    /// Runs code on a snapshot, substantiating what it meets.
    fn run_at<'a>(
        &self,
        tools: &mut Substantiation<'_>,
        context: &mut SnapshotContext<'a>,
        mut step: impl FnMut(&mut SnapshotContext<'a>) -> Result<(), Stop>,
    ) -> Result<()> {
        loop {
            match step(context) {
                Ok(()) => return Ok(()),
                Err(Stop::Blocked) => {
                    // SAFETY: read from an open sticky under the epoch that the caller has pinned.
                    self.unless_failed(|| unsafe { tools.substantiate(context.blocked_on) })?;
                }
                Err(Stop::Abort(error)) => return Err(error),
                Err(Stop::Restart) => unreachable!("a snapshot has nothing to give up"),
            }
        }
    }
}

/// A thread that has batches in hand.
struct InHand<'e>(&'e AtomicU32);

impl InHand<'_> {
    fn of(count: &AtomicU32) -> InHand<'_> {
        count.fetch_add(1, AcqRel);
        InHand(count)
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, AcqRel);
    }
}

impl Engine for LazyEngine {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn foundation(&self) -> &Foundation {
        &self.foundation
    }

    fn submit(&self, batch: Arc<Batch>) {
        if let Some(reason) = self.why_closed() {
            batch.fail(reason, self.foundation.clock.monotonic_ns());
            return;
        }
        if batch.count() == 0 {
            batch.complete(self.foundation.clock.monotonic_ns());
            return;
        }
        schedule::point("submit");
        self.queued.fetch_add(batch.count(), Relaxed);
        self.queue.of(batch.priority()).push(batch);
    }

    fn admit(&self) -> bool {
        let policy = *self.policy.read();
        if self.must_relieve(&policy) && self.has_queued() {
            return self.run_deferred() || self.take_turn();
        }
        self.take_turn()
    }

    fn help(&self) -> bool {
        let policy = *self.policy.read();
        if self.must_relieve(&policy) {
            // Substantiation first: callers wait, promises are not dropped.
            return self.run_deferred() || self.take_turn();
        }
        if let Some(left) = self.turn() {
            if let Some(chunk) = left.filter(|_| !self.is_crowded()) {
                self.keep_up(&chunk, policy.idle);
            }
            return true;
        }
        if policy.idle && self.is_far_behind() && self.run_oldest(IDLE_CALLS) || self.run_urgent(URGENT_CALLS)
        {
            return true;
        }
        self.sweep_if_short(&policy);
        if policy.idle && self.run_oldest(IDLE_CALLS) {
            return true;
        }
        self.lane.try_lock().is_some_and(|mut lane| self.tidy(&mut lane))
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        while self.has_calls() && self.why_closed().is_none() {
            if !self.take_turn() && !self.help() {
                schedule::give_way("definition");
            }
        }
        let mut lane = self.lane.lock();
        if let Some(reason) = self.why_closed() {
            return Err(reason);
        }
        self.rest_before(entry)?;
        let seq = lane.next_seq();
        let definitions = self.foundation.definitions().with(seq, entry)?;
        self.foundation.append(seq, 1, entry)?;
        self.take_in(&mut lane, definitions);
        drop(lane);
        self.foundation.wait_durable(seq)
    }

    fn query_at(
        &self,
        at: &Standpoint<'_>,
        procedure: &Procedure,
        arguments: &[u8],
        room: Room,
    ) -> Result<Vec<Value>> {
        let (definitions, in_force) = (at.definitions(), self.foundation.definitions());
        let guard = crossbeam_epoch::pin();
        let arena = Bump::new();
        let mut tools = Substantiation::new(&in_force, &guard, &arena);
        let mut context =
            SnapshotContext::new(definitions, &guard, at.seq(), self.foundation.clock.now_us()).within(room);
        let mut frame = FrameFor::<SnapshotContext<'_>>::default();
        let started =
            definitions.admit(procedure).and_then(|()| frame.start(&procedure.whole, arguments, &arena));
        let outcome = started.and_then(|()| {
            self.run_at(&mut tools, &mut context, |context| {
                run(&mut frame, &procedure.whole, context, &arena)
            })
        });
        let counters = &self.foundation.counters;
        counters.substantiated.add(tools.run);
        let counter = if outcome.is_ok() { &counters.committed } else { &counters.aborted };
        counter.add(1);
        outcome.map(|()| frame.results(&procedure.whole).unwrap_or_default())
    }

    unsafe fn substantiate(&self, source: *mut ()) -> Result<()> {
        // SAFETY: it was read from an open sticky in an epoch that is still pinned, as whoever calls this sees to.
        self.work(|tools| unsafe { tools.substantiate(source) })
    }

    fn resolve(&self, ticket: &Ticket) {
        let resolved = self.work(|tools| {
            let source = ticket.source();
            // SAFETY: read under this epoch; a ticket forgets its source before the chunk goes.
            if source.is_null() { Ok(()) } else { unsafe { tools.substantiate(source) } }
        });
        if let Err(reason) = resolved {
            ticket.fulfil(Err(reason));
        }
    }

    fn stand(&self) -> Standpoint<'_> {
        let _lane = self.lane.lock();
        Standpoint::whole(&self.foundation)
    }

    fn settle(&self) {
        while self.has_calls() {
            if !self.take_turn() && !self.help() {
                schedule::give_way("settle");
            }
        }
        drop(self.lane.lock());
        self.substantiate_to(self.foundation.promised());
        self.tidy(&mut self.lane.lock());
    }

    fn restore(&self, state: State) {
        let mut lane = self.lane.lock();
        assert_eq!(lane.next_seq(), Seq(1), "an engine begins with a checkpoint or not at all");
        lane.restore(&state);
        self.foundation.restore(state);
    }

    fn take(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<Outcomes> {
        let mut outcomes = Outcomes { first_seq: Some(first_seq), ..Outcomes::default() };
        let mut lane = self.lane.lock();
        match entry::decode_next(payload, first_seq, count, lane.next_seq())? {
            Entries::Definition(_) | Entries::KeyWindow(_) | Entries::Nothing | Entries::Checkpoint => {
                self.rest_before(payload)?;
                let definitions = self.foundation.definitions().with(first_seq, payload)?;
                self.take_in(&mut lane, definitions);
            }
            Entries::Calls { time_us, bytes } => {
                self.foundation.clock.has_been(time_us);
                let (definitions, guard) = (self.foundation.definitions(), crossbeam_epoch::pin());
                let spare = self.spare.pop().unwrap_or_default();
                let intake =
                    Intake::prepare(spare, &self.awaited, &definitions, &guard, std::iter::once(bytes));
                let chunk = self.backlog.arenas().chunk();
                let around = self.surroundings();
                let note = &mut |seq: Seq, outcome: Outcome| {
                    let place = (seq.0 - first_seq.0) as u32;
                    outcomes.aborts.extend(outcome.abort.map(|error| (place, error)));
                    outcomes.tickets.extend(outcome.ticket.map(|ticket| (place, ticket)));
                };
                let rest = lane.promise(&around, time_us, &intake, chunk, note);
                around.drop_unread(rest.unread, &guard);
                guard.flush();
                self.spare.push(intake.into_buffers());
            }
        }
        drop(lane);
        let policy = *self.policy.read();
        while self.must_relieve(&policy) && self.run_deferred() {}
        self.foundation.failure().cloned().map_or(Ok(outcomes), Err)
    }

    fn close(&self, reason: Error) {
        self.closed.store(true, Release);
        let _lane = self.lane.lock();
        let now = self.foundation.clock.monotonic_ns();
        while let Some(batch) = self.pop() {
            batch.fail(reason.clone(), now);
        }
    }

    fn counts(&self) -> Counts {
        self.foundation.counters.counts(self.backlog_calls())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred;
    use fabius_testing::rig::Rig;
    use fabius_value::SqlState;
    use std::panic::AssertUnwindSafe;
    use std::sync::OnceLock;

    const SCHEMA: &str = "
        table cells { id: bigint, x: bigint, primary key (id) }
        procedure make(id: bigint) { insert cells { id: id, x: 1 } }
        procedure step(id: bigint) -> bigint { update cells[id] { x: cells[id].x * 31 % 1009 } return cells[id].x }
        procedure gather(id: bigint) {
            var total: bigint = 0
            for cell in cells[..<3] { total = (total + cell.x) % 1009 }
            update cells[id] { x: total }
        }
        procedure see(id: bigint) -> bigint { return cells[id].x }";

    /// Goal: a later-phase that panics stops the engine, and all who need what it should have written are told why,
    /// also those who wait while it runs, and those who need it by way of a call that was suspended for it; what
    /// other calls have written can be read, and nothing is taken in any more.
    #[test]
    fn a_later_phase_that_panics_is_told_to_whoever_needs_it() {
        let policy = Policy { chain_bound: u32::MAX, idle: false, ..Policy::default() };
        let made = AssertUnwindSafe(OnceLock::new());
        let rig = Rig::new(&|foundation| {
            let made = &made;
            made.get_or_init(|| Arc::new(LazyEngine::new(foundation, policy))).clone()
        });
        let engine = made.get().expect("a rig makes its engine");
        rig.define(SCHEMA);
        (0..4).for_each(|id| _ = rig.call("make", &[Value::BigInt(id)]).expect("a new cell"));
        rig.engine.settle();
        let mut builder = fabius_engine::BatchBuilder::new();
        let calls = [("step", 0), ("step", 1), ("step", 1), ("gather", 3)];
        calls.iter().for_each(|&(name, id)| _ = rig.push(&mut builder, name, &[Value::BigInt(id)], None));
        let batch = builder.build();
        rig.run(&batch);
        let chunk = engine.backlog.oldest_open(Seq(u64::MAX)).expect("calls are deferred");
        let states = || {
            chunk.calls().iter().map(|call| {
                // SAFETY: the chunk is alive.
                unsafe { call.as_ref() }.state()
            })
        };
        assert!(
            states().all(|state| state == deferred::State::Pending),
            "{:?}",
            states().collect::<Vec<_>>()
        );
        // SAFETY: no thread helps.
        unsafe { Deferred::spoil(chunk.calls()[1]) };
        let see = |id: i64| rig.query("see", &[Value::BigInt(id)]);
        let is_told = |read: Result<Vec<Value>>| {
            let error = read.expect_err("what it should have written is not there");
            assert_eq!(error.state(), SqlState::INTERNAL);
            assert!(error.detail().is_some_and(|why| why.contains("well-formed arguments")), "{error:?}");
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|at| _ = scope.spawn(move || is_told(see(1 + at % 2 * 2))))
        });
        is_told(see(3));
        is_told(rig.result(&batch, 2));
        assert_eq!(see(0), Ok(vec![Value::BigInt(31)]));
        assert_eq!(see(2), Ok(vec![Value::BigInt(1)]));
        is_told(rig.call("step", &[Value::BigInt(2)]));
        rig.engine.settle();
        assert!(!rig.engine.help());
        let ended: Vec<_> = states().collect();
        assert_eq!(
            (ended[0], ended[1], ended[3]),
            (deferred::State::Done, deferred::State::Failed, deferred::State::Failed)
        );
        rig.close();
    }
}
