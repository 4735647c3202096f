//! The graph engine behind the contract.

use crate::batch_size::BatchSize;
use crate::crew::Crew;
use crate::initiator::{Initiator, Means};
use crate::statistics::Statistics;
use fabius_engine::batch::Outcomes;
use fabius_engine::checkpoint::State;
use fabius_engine::eager::intake::Intake;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::{Ground, Runner};
use fabius_engine::{Foundation, Standpoint};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use fabius_value::Seq;
use parking_lot::{MutexGuard, RwLockWriteGuard};
use std::sync::Arc;

/// How the graph engine is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Partitions of each graph; `None`: as many as the threads that are lent need.
    pub partitions: Option<usize>,
    /// Threads that work on a batch, at most.
    pub workers_max: usize,
    /// Calls of a batch, at most.
    pub batch_calls_max: u32,
    /// How long a batch should take, at most, in microseconds: while batches take longer, they become smaller, down to
    /// [`BatchSize::CALLS_MIN`].
    pub latency_target_us: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        Settings {
            partitions: None,
            workers_max: cores,
            batch_calls_max: BatchSize::CALLS_MAX,
            latency_target_us: 10_000,
        }
    }
}

/// The graph engine.
pub struct GraphEngine {
    means: Means,
    /// Whoever holds this leads a batch.
    initiator: Mutex<Initiator>,
}

impl GraphEngine {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, settings: Settings) -> GraphEngine {
        let size = BatchSize::new(settings.batch_calls_max, settings.latency_target_us);
        GraphEngine {
            means: Means {
                ground: Ground::new(foundation),
                intake: Intake::default(),
                crew: Crew::default(),
                statistics: Statistics::default(),
                partitions: settings.partitions,
            },
            initiator: Mutex::new(Initiator::new(size, settings.workers_max)),
        }
    }

    /// Sets how many calls a batch takes at the most; the batch in progress ends first.
    pub fn set_batch_calls_max(&self, calls: u32) {
        self.initiator.lock().set_batch_calls_max(calls);
    }

    /// The seq that comes next.
    pub(crate) fn next_seq(&self) -> Seq {
        self.means.ground.shared.sequencer.next()
    }

    /// Runs calls that come next in the log, by logged time, and leaves none.
    pub(crate) fn replay_calls(&self, calls: &mut Vec<(i64, &[u8])>) {
        self.initiator.lock().replay(&self.means, calls.drain(..));
    }

    /// Leads a batch, if calls wait and nobody else leads; whether it did.
    fn lead(&self) -> bool {
        if self.means.intake.is_empty() {
            return false;
        }
        let Some(mut initiator) = self.initiator.try_lock() else { return false };
        schedule::point("initiator");
        initiator.run(&self.means)
    }
}

impl Runner for GraphEngine {
    type Rest<'a> = MutexGuard<'a, Initiator>;

    fn name(&self) -> &'static str {
        "graph"
    }

    fn ground(&self) -> &Ground {
        &self.means.ground
    }

    fn intake(&self) -> &Intake {
        &self.means.intake
    }

    /// Leads a batch, or works on the one in progress.
    fn take_turn(&self) -> bool {
        self.lead() || self.means.crew.join()
    }

    /// Whoever leads a batch does; the others are for its crew.
    fn tidies_itself(&self) -> bool {
        true
    }

    fn come_to_rest(&self) -> (RwLockWriteGuard<'_, Schema>, MutexGuard<'_, Initiator>) {
        let mut initiator = self.initiator.lock();
        let count = self.means.intake.count();
        while !self.means.intake.has_begun(count) && self.means.ground.foundation().failure().is_none() {
            initiator.run(&self.means);
        }
        (self.means.ground.gate.write(), initiator)
    }

    fn finish(&self) {
        drop(self.initiator.lock());
    }

    fn stand(&self) -> Standpoint<'_> {
        // A checkpoint stands between two batches of the log, and calls become visible graph by graph.
        let _between_batches = self.initiator.lock();
        self.means.ground.stand()
    }

    fn restore(&self, state: State) {
        self.initiator.lock().restore(&state);
        self.means.ground.restore(state);
    }

    fn take_calls(&self, calls: &[u8], count: u32, time_us: i64) -> Outcomes {
        self.initiator.lock().take(&self.means, calls, count, time_us)
    }

    fn times(&self) -> Vec<(&'static str, u64)> {
        self.means.statistics.times()
    }
}
