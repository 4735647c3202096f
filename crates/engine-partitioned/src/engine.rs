//! The engine behind the contract, and dispatch: from what was handed in to the partitions.
//!
//! One thread at a time dispatches, in the order in which batches were handed in. Definitions come into
//! force while nothing that was dispatched is left, because routes depend on them.

use crate::division::Division;
use crate::partition::Partitions;
use crate::partition_set::{PARTITIONS_MAX, PartitionSet};
use crate::policy::{Policy, Scheme};
use crate::rendezvous::LogicalPartitions;
use crate::route::Routes;
use crate::run::{Dispatched, Place, Runs};
use fabius_engine::eager::intake::{Chunk, Intake};
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::{Ground, Runner};
use fabius_engine::{Foundation, entry};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use parking_lot::{MutexGuard, RwLock, RwLockWriteGuard};
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

/// Whose turn it is to dispatch.
#[derive(Default)]
pub struct Dispatcher {
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
                Scheme::Partitioned => Box::new(Partitions::new(partitions, policy.waiting)),
                Scheme::Dora => Box::new(LogicalPartitions::new(partitions)),
            },
            dispatcher: Mutex::default(),
            routes: RwLock::new(Arc::new(Routes::new(partitions))),
        }
    }

    /// Puts the next calls into the queues of the partitions that they touch; whether there were any.
    fn dispatch(&self, dispatcher: &mut Dispatcher) -> bool {
        let gate = self.ground().gate.read();
        let Some(chunk) = self.intake.take_at_most(DISPATCH_CALLS, usize::MAX) else { return false };
        let mut routes = self.routes.read().clone();
        if !Arc::ptr_eq(&routes.definitions, &gate.definitions) {
            routes = Arc::new(routes.follow(&gate.definitions));
            *self.routes.write() = routes.clone();
        }
        self.runs.dispatched(chunk.count);
        let count = routes.layout.partitions;
        let mut calls = places(&chunk).map(|place| {
            let (call, _) = place.call(&chunk.work);
            let is_whole = call.key.is_some_and(|key| self.runs.keys.add(key));
            let mut partitions = routes.partitions(&call);
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

    fn has_stopped(&self) -> bool {
        self.ground().foundation().failure().is_some()
    }

    fn finish_dispatched(&self) {
        while !self.runs.is_idle() && !self.has_stopped() {
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

impl Runner for PartitionedEngine {
    type Rest<'a> = MutexGuard<'a, Dispatcher>;

    fn name(&self) -> &'static str {
        match self.scheme {
            Scheme::Partitioned => "partitioned",
            Scheme::Dora => "dora",
        }
    }

    fn ground(&self) -> &Ground {
        &self.runs.ground
    }

    fn intake(&self) -> &Intake {
        &self.intake
    }

    /// Dispatches what was handed in, or runs some of what was dispatched.
    fn take_turn(&self) -> bool {
        let mut did = false;
        if !self.intake.is_empty()
            && let Some(mut dispatcher) = self.dispatcher.try_lock()
        {
            did = self.dispatch(&mut dispatcher);
        }
        self.run() || did
    }

    fn come_to_rest(&self) -> (RwLockWriteGuard<'_, Schema>, MutexGuard<'_, Dispatcher>) {
        let mut dispatcher = self.dispatcher.lock();
        let count = self.intake.count();
        while !self.intake.has_begun(count) && !self.has_stopped() {
            self.dispatch(&mut dispatcher);
        }
        self.finish_dispatched();
        (self.ground().gate.write(), dispatcher)
    }

    fn finish(&self) {
        let _nothing_begins = self.dispatcher.lock();
        self.finish_dispatched();
    }
}
