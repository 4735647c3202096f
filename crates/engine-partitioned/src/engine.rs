//! The engine behind the contract, and dispatch: from what was handed in to the partitions.
//!
//! One thread at a time dispatches, in the order in which batches were handed in. Definitions come into
//! force while nothing that was dispatched is left, because routes depend on them.

use crate::division::Division;
use crate::owner::Alone;
use crate::partition::Partitions;
use crate::partition_set::{PARTITIONS_MAX, PartitionSet};
use crate::policy::{Policy, Scheme};
use crate::rendezvous::LogicalPartitions;
use crate::route::Routes;
use crate::run::{Dispatched, Place, Runs};
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::{Chunk, Intake};
use fabius_engine::entry;
use fabius_engine::{Batch, Engine, Foundation, Standpoint};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use fabius_program::arguments::DecodedArguments;
use fabius_value::{Error, Result, Seq};
use parking_lot::{MutexGuard, RwLock};
use std::sync::Arc;

/// Calls that are dispatched at a time, at most.
const DISPATCH_CALLS: u32 = 1024;

/// The partitioned engine.
pub struct PartitionedEngine {
    runs: Runs,
    intake: Intake,
    scheme: Scheme,
    division: Box<dyn Division>,
    /// Whoever holds this dispatches.
    dispatcher: Mutex<Dispatcher>,
    /// As of the last dispatch.
    routes: RwLock<Arc<Routes>>,
}

#[derive(Default)]
struct Dispatcher {
    /// Where the next call goes that needs no partition in particular.
    rotation: usize,
}

impl PartitionedEngine {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, policy: Policy) -> PartitionedEngine {
        let partitions = policy.partitions.clamp(1, PARTITIONS_MAX);
        PartitionedEngine {
            runs: Runs::new(Ground::new(foundation)),
            intake: Intake::default(),
            scheme: policy.scheme,
            division: match policy.scheme {
                Scheme::Partitioned => Box::new(Partitions::new(partitions)),
                Scheme::Dora => Box::new(LogicalPartitions::new(partitions)),
            },
            dispatcher: Mutex::default(),
            routes: RwLock::new(Arc::new(Routes::new(partitions))),
        }
    }

    fn ground(&self) -> &Ground {
        &self.runs.ground
    }

    /// Dispatches what was handed in, or runs some of what was dispatched; whether there was any.
    fn take_turn(&self) -> bool {
        let mut did = false;
        if !self.intake.is_empty()
            && let Some(mut dispatcher) = self.dispatcher.try_lock()
        {
            did = self.dispatch(&mut dispatcher);
        }
        self.run() || did
    }

    /// Puts the next calls into the queues of the partitions that they touch; whether there were any.
    fn dispatch(&self, dispatcher: &mut Dispatcher) -> bool {
        let gate = self.ground().gate.read();
        let Some(chunk) = self.intake.take_at_most(DISPATCH_CALLS) else { return false };
        let mut routes = self.routes.read().clone();
        if !Arc::ptr_eq(&routes.definitions, &gate.definitions) {
            routes = Arc::new(routes.follow(&gate.definitions));
            *self.routes.write() = routes.clone();
        }
        self.runs.dispatched(chunk.count);
        let count = routes.layout.partitions;
        let mut decoded = DecodedArguments::default();
        let mut calls = places(&chunk).map(|place| {
            let (call, _) = place.call(&chunk.work);
            let is_whole = call.key.is_some_and(|key| self.runs.keys.add(key));
            let mut partitions = routes.partitions(&call, &mut decoded);
            if is_whole {
                partitions = PartitionSet::first(count);
            } else if partitions.is_empty() {
                dispatcher.rotation = (dispatcher.rotation + 1) % count;
                partitions = PartitionSet::of(dispatcher.rotation);
            }
            Dispatched { place, partitions, is_whole }
        });
        self.division.dispatch(&chunk.work, &mut calls, &routes);
        true
    }

    fn run(&self) -> bool {
        if self.runs.is_idle() {
            return false;
        }
        let gate = self.ground().gate.read();
        let routes = self.routes.read().clone();
        self.division.take_turn(&self.runs, &gate, &routes)
    }

    /// Runs everything that was handed in before; nothing else begins until the guard is dropped.
    fn drain(&self) -> MutexGuard<'_, Dispatcher> {
        let mut dispatcher = self.dispatcher.lock();
        let count = self.intake.count();
        while !self.intake.has_begun(count) {
            self.dispatch(&mut dispatcher);
        }
        self.finish_dispatched();
        dispatcher
    }

    fn finish_dispatched(&self) {
        while !self.runs.is_idle() {
            if !self.run() {
                schedule::give_way("drain");
            }
        }
    }
}

/// Where the calls of a chunk are.
fn places(chunk: &Chunk) -> impl Iterator<Item = Place> + '_ {
    let (all, mut rest) = (chunk.calls(), chunk.calls());
    let mut number = chunk.first;
    std::iter::from_fn(move || {
        let offset = (chunk.offset() + all.len() - rest.len()) as u32;
        entry::take_call(&mut rest)?;
        number += 1;
        Some(Place { offset, number: number - 1 })
    })
}

impl Engine for PartitionedEngine {
    fn name(&self) -> &'static str {
        match self.scheme {
            Scheme::Partitioned => "partitioned",
            Scheme::Dora => "dora",
        }
    }

    fn foundation(&self) -> &Foundation {
        self.ground().foundation()
    }

    fn submit(&self, batch: Arc<Batch>) {
        if batch.count() == 0 {
            batch.complete(self.ground().now_ns());
        } else if let Err(reason) = self.intake.push(batch.clone()) {
            batch.fail(reason, self.ground().now_ns());
        }
    }

    fn admit(&self) -> bool {
        self.take_turn()
    }

    fn help(&self) -> bool {
        if self.ground().must_tidy() && self.ground().tidy(&self.ground().gate.write()) {
            return true;
        }
        self.take_turn() || self.ground().tidy_if_idle()
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        let _nothing_begins = self.drain();
        let gate = self.ground().gate.write();
        match self.intake.closed() {
            Some(reason) => Err(reason),
            None => self.ground().amend(gate, entry),
        }
    }

    fn stand(&self) -> Standpoint<'_> {
        self.ground().stand()
    }

    fn settle(&self) {
        let _nothing_begins = self.drain();
        self.ground().tidy(&self.ground().gate.write());
    }

    fn restore(&self, state: State) {
        self.ground().restore(state);
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        self.ground().replay(&Alone, first_seq, count, payload)
    }

    fn close(&self, reason: Error) {
        let _nothing_begins = self.dispatcher.lock();
        let unbegun = self.intake.close(reason.clone());
        self.finish_dispatched();
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), self.ground().now_ns()));
    }

    fn counts(&self) -> Counts {
        self.foundation().counters.counts(0)
    }
}
