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
//! A thread does not wait until `promised` has reached what it ran: whoever closes the gap answers the batch
//! ([`fabius_engine::eager::answers`]).

use crate::keys_in_flight::KeysInFlight;
use crate::layout::Layout;
use crate::owner::Owner;
use crate::partition_set::PartitionSet;
use bumpalo::Bump;
use fabius_engine::ahead::Ahead;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::{Outcomes, Work};
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::Shared;
use fabius_engine::eager::turn::{Order, Turn};
use fabius_engine::entry::{self, Call};
use fabius_env::schedule;
use fabius_value::{Result, Seq};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};

/// Calls that are run together, at most.
pub const RUN_CALLS: usize = 64;

/// A call in its batch.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Where its bytes begin.
    pub offset: u32,
    /// The call's number in the batch.
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

/// A call with its bytes, and its number in the batch.
type Numbered<'b> = ((Call<'b>, &'b [u8]), u32);

/// Calls that are in the log.
struct Logged {
    first: Seq,
    count: u32,
    time_us: i64,
}

/// What runs have in common.
pub struct Runs {
    /// What calls share, and the definitions in force.
    pub ground: Ground,
    /// Idempotency keys of calls that have not ended.
    pub keys: KeysInFlight,
    /// Calls that were dispatched and have not ended.
    open: AtomicU64,
}

impl Runs {
    /// No calls yet.
    pub fn new(ground: Ground) -> Runs {
        Runs { ground, keys: KeysInFlight::default(), open: 0.into() }
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
        layout: &Layout,
        work: &Arc<Work>,
        places: &[Place],
        held: PartitionSet,
    ) {
        schedule::point("run");
        let calls: Vec<_> = places.iter().map(|place| (place.call(work), place.number)).collect();
        let outcomes = match self.log(schema, &calls) {
            Ok(first) => self.execute(schema, &calls, first, Owner::new(layout, held)),
            Err(failure) => Outcomes { failure: Some(failure), ..Outcomes::default() },
        };
        calls.iter().filter_map(|((call, _), _)| call.key).for_each(|key| self.keys.remove(key));
        schedule::point("run ended");
        let count = places.len() as u32;
        self.ground.end(work, count, outcomes);
        self.ground.answer();
        self.open.fetch_sub(count.into(), AcqRel);
    }

    /// Logs those of the calls that get a place; gives the first.
    fn log(&self, schema: &Schema, calls: &[Numbered<'_>]) -> Result<Logged> {
        let Shared { sequencer, foundation, .. } = &self.ground.shared;
        let time_us = foundation.clock.now_us();
        let bytes = calls.iter().map(|((_, bytes), _)| bytes.len()).sum::<usize>();
        let mut payload = Vec::with_capacity(entry::HEAD_BYTES + bytes);
        entry::begin_calls(time_us, &mut payload);
        let mut count = 0;
        for ((call, bytes), _) in calls {
            if schema.has_place(call) {
                payload.extend_from_slice(bytes);
                count += 1;
            }
        }
        let first = if count == 0 { Seq::ZERO } else { sequencer.append_run(foundation, count, &payload)? };
        schedule::point("logged");
        Ok(Logged { first, count, time_us })
    }

    fn execute(&self, schema: &Schema, calls: &[Numbered<'_>], logged: Logged, owner: Owner<'_>) -> Outcomes {
        let shared = &self.ground.shared;
        let (guard, arena) = (crossbeam_epoch::pin(), Bump::new());
        let mut turn = Turn::new(shared, schema, &guard, &arena, Order::Now, logged.time_us, owner);
        if logged.count > 0 {
            turn.is_seen_whole(logged.first.before());
        }
        let mut ahead = Ahead::new(&schema.definitions, &guard);
        let mut coming = calls.iter();
        let mut next = logged.first;
        for (_, number) in calls {
            while ahead.is_short()
                && let Some(((call, _), _)) = coming.next()
            {
                ahead.look(*call);
            }
            let mut coming = ahead.proceed().expect("it was looked at");
            let has_place = schema.has_place(&coming.call);
            turn.run_placed(has_place.then_some(next), &mut coming, *number);
            ahead.recycle(coming);
            next = Seq(next.0 + u64::from(has_place));
        }
        if logged.count > 0 {
            shared.sequencer.installed_run(logged.first, next.before(), &shared.foundation);
        }
        // Now readers stand behind the run, most often, so that nothing below its versions is needed.
        turn.end()
    }
}
