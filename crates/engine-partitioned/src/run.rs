//! A run: calls of one batch that nothing is in conflict with, logged together and then run one after the
//! other.
//!
//! ```text
//! partition 0   |log 41..73|  41 42 43 ...          73 |
//! partition 1        |log 74..99|  74 75 ...   99 |          promised = 73 once 73 is done, then 99
//! ```
//!
//! A call's inputs are all that is logged, so they can be logged before it runs (command logging), and one
//! visit to the sequencer serves the run. While it is under way its partitions are held, so calls in
//! conflict have their seqs in the order in which they run.
//!
//! A thread does not wait until `promised` has reached what it ran: the batch is left with the
//! [`Completions`], and whoever closes the gap completes it.

use crate::keys_in_flight::KeysInFlight;
use crate::owner::Owner;
use crate::partition_set::PartitionSet;
use crate::route::Routes;
use bumpalo::Bump;
use fabius_engine::Batch;
use fabius_engine::ahead::Ahead;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::{Outcomes, Work};
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::turn::{Order, Turn};
use fabius_engine::entry::{self, Call};
use fabius_env::schedule;
use fabius_value::Seq;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};

/// Calls that are run together, at most.
pub const RUN_CALLS: usize = 64;

/// A call in its batch.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where its bytes begin.
    pub offset: u32,
    /// Its number.
    pub number: u32,
}

impl Place {
    /// The call, with its bytes.
    pub fn call(self, work: &Work) -> (Call<'_>, &[u8]) {
        let bytes = &work.batch.calls()[self.offset as usize..];
        let mut rest = bytes;
        let call = entry::take_call(&mut rest).expect("batches are encoded by their builder");
        (call, &bytes[..bytes.len() - rest.len()])
    }
}

/// A call, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Dispatched {
    /// The call.
    pub place: Place,
    /// The partitions that it touches; at least one.
    pub partitions: PartitionSet,
    /// Whether it has to have them whole, because its idempotency key is in flight.
    pub is_whole: bool,
}

/// What runs have in common.
pub struct Runs {
    /// What calls share, and the definitions in force.
    pub ground: Ground,
    /// Idempotency keys of calls that have not ended.
    pub keys: KeysInFlight,
    completions: Completions,
    /// Calls that were dispatched and have not ended.
    open: AtomicU64,
}

impl Runs {
    /// No calls yet.
    pub fn new(ground: Ground) -> Runs {
        Runs { ground, keys: KeysInFlight::default(), completions: Completions::default(), open: 0.into() }
    }

    /// Counts calls that are dispatched.
    pub fn dispatched(&self, count: u32) {
        self.open.fetch_add(count.into(), AcqRel);
    }

    /// Whether all that was dispatched has ended.
    pub fn is_idle(&self) -> bool {
        self.open.load(Acquire) == 0
    }

    /// Runs calls of one batch. The caller keeps off every other call that is in conflict with them; they
    /// touch no partitions but those in `held`.
    pub fn run(
        &self,
        schema: &Schema,
        routes: &Routes,
        work: &Arc<Work>,
        places: &[Place],
        held: PartitionSet,
    ) {
        schedule::point("run");
        let outcomes = self.outcomes(schema, routes, work, places, held);
        schedule::point("run ended");
        let count = places.len() as u32;
        match work.end(count, outcomes) {
            Some(last) => self.completions.end(last, &work.batch, &self.ground),
            None => self.completions.go_on(&self.ground),
        }
        self.open.fetch_sub(count.into(), AcqRel);
    }

    fn outcomes(
        &self,
        schema: &Schema,
        routes: &Routes,
        work: &Work,
        places: &[Place],
        held: PartitionSet,
    ) -> Outcomes {
        let Ground { shared, .. } = &self.ground;
        let now = shared.foundation.clock.now_us();
        let mut payload = Vec::with_capacity(RUN_CALLS * 64);
        entry::begin_calls(now, &mut payload);
        let (mut calls, mut logged) = (Vec::with_capacity(places.len()), 0);
        for place in places {
            let (call, bytes) = place.call(work);
            let is_logged = routes.is_logged(&call, |procedure| schema.plan(procedure).draws_random);
            if is_logged {
                payload.extend_from_slice(bytes);
                logged += 1;
            }
            calls.push((call, place.number, is_logged));
        }
        let mut next = Seq::ZERO;
        let ended = if logged == 0 {
            Ok(())
        } else {
            shared.sequencer.append_run(&shared.foundation, logged, &payload).map(|first| next = first)
        };
        schedule::point("logged");
        let outcomes = match ended {
            Err(failure) => Outcomes { failure: Some(failure), ..Outcomes::default() },
            Ok(()) => {
                let (guard, arena) = (crossbeam_epoch::pin(), Bump::new());
                let control = Owner { held: Some((&routes.layout, held)) };
                let mut turn = Turn::new(shared, schema, &guard, &arena, Order::Now, now, control);
                let mut ahead = Ahead::new(&schema.definitions, &guard);
                let mut coming = calls.iter();
                for (call, number, is_logged) in &calls {
                    while ahead.is_short()
                        && let Some((call, ..)) = coming.next()
                    {
                        ahead.look(*call, routes.route(call).map(|route| &route.keys));
                    }
                    ahead.proceed().into_iter().for_each(|coming| ahead.recycle(coming));
                    let at = is_logged.then_some(next);
                    next = Seq(next.0 + u64::from(*is_logged));
                    turn.run_placed(at, call, *number);
                }
                let outcomes = turn.end();
                if logged > 0 {
                    let first = Seq(next.0 - u64::from(logged));
                    shared.sequencer.installed_run(first, next.before(), &shared.foundation);
                }
                outcomes
            }
        };
        calls.iter().filter_map(|(call, ..)| call.key).for_each(|key| self.keys.remove(key));
        outcomes
    }
}

/// Batches of which every call has ended, and not every earlier call of others.
#[derive(Default)]
struct Completions {
    waiting: Mutex<Vec<(Seq, Arc<Batch>)>>,
    /// How many wait: lets threads look without the mutex.
    count: AtomicUsize,
}

impl Completions {
    /// All calls of a batch have ended; nothing of them or of what they have read is later than `last`.
    fn end(&self, last: Seq, batch: &Arc<Batch>, ground: &Ground) {
        let failure = batch.outcomes().failure.clone();
        if let Some(failure) = failure {
            batch.fail(failure, ground.now_ns());
        } else {
            let mut waiting = self.waiting.lock();
            waiting.push((last, batch.clone()));
            self.count.store(waiting.len(), Release);
        }
        // Whoever raises `promised` looks here afterwards, or we do.
        self.go_on(ground);
    }

    /// Completes what has been reached; to be called after calls have been installed.
    fn go_on(&self, ground: &Ground) {
        if self.count.load(Acquire) == 0 {
            return;
        }
        let foundation = ground.foundation();
        let reached: Vec<_> = {
            let mut waiting = self.waiting.lock();
            let promised = foundation.promised();
            let reached = waiting.extract_if(.., |(last, _)| *last <= promised).collect();
            self.count.store(waiting.len(), Release);
            reached
        };
        reached.into_iter().for_each(|(last, batch)| foundation.decided(last, batch));
    }
}
