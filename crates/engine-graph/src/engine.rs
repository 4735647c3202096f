//! The graph engine behind the contract.

use crate::batch_size::BatchSize;
use crate::crew::Crew;
use crate::initiator::{Initiator, Surroundings};
use crate::statistics::Statistics;
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::Intake;
use fabius_engine::entry::{self, Entries};
use fabius_engine::{Batch, Engine, Foundation, Standpoint};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use fabius_value::{Error, Result, Seq};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// How the graph engine is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Partitions of each graph; `None`: as many as the threads that are lent need.
    pub partitions: Option<usize>,
    /// Threads that work on a batch, at most.
    pub workers_max: usize,
    /// How long a batch should take, at most.
    pub latency_target_us: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        Settings { partitions: None, workers_max: cores, latency_target_us: 10_000 }
    }
}

/// The graph engine.
pub struct GraphEngine {
    ground: Ground,
    intake: Intake,
    /// Whoever holds this leads a batch.
    initiator: Mutex<Initiator>,
    crew: Crew,
    partitions: Option<usize>,
    statistics: Statistics,
}

impl GraphEngine {
    /// An engine with the foundation's definitions.
    pub fn new(foundation: Arc<Foundation>, settings: Settings) -> GraphEngine {
        let size = BatchSize::new(settings.latency_target_us);
        GraphEngine {
            ground: Ground::new(foundation),
            intake: Intake::default(),
            initiator: Mutex::new(Initiator::new(size, settings.workers_max)),
            crew: Crew::new(settings.workers_max),
            partitions: settings.partitions,
            statistics: Statistics::default(),
        }
    }

    fn surroundings(&self) -> Surroundings<'_> {
        let GraphEngine { ground, crew, statistics, .. } = self;
        Surroundings { ground, crew, statistics, partitions: self.partitions }
    }

    /// Leads a batch, if calls wait and nobody else leads; or works on the one in progress.
    fn take_part(&self) -> bool {
        self.lead() || self.crew.join()
    }

    fn lead(&self) -> bool {
        if self.intake.is_empty() {
            return false;
        }
        let Some(mut initiator) = self.initiator.try_lock() else { return false };
        schedule::point("initiator");
        initiator.run(&self.surroundings(), &self.intake)
    }

    /// Runs everything that was handed in before; nothing else begins until the guard is dropped.
    fn drain(&self) -> MutexGuard<'_, Initiator> {
        let mut initiator = self.initiator.lock();
        let count = self.intake.count();
        while !self.intake.has_begun(count) {
            initiator.run(&self.surroundings(), &self.intake);
        }
        initiator
    }
}

impl Engine for GraphEngine {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn foundation(&self) -> &Foundation {
        self.ground.foundation()
    }

    fn submit(&self, batch: Arc<Batch>) {
        if batch.count() == 0 {
            batch.complete(self.ground.now_ns());
            return;
        }
        schedule::point("submit");
        if let Err(reason) = self.intake.push(batch.clone()) {
            batch.fail(reason, self.ground.now_ns());
        }
    }

    fn admit(&self) -> bool {
        self.take_part()
    }

    fn help(&self) -> bool {
        self.take_part() || self.ground.tidy_if_idle()
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        let nothing_begins = self.drain();
        if let Some(reason) = self.intake.closed() {
            return Err(reason);
        }
        let seq = self.ground.amend(self.ground.gate.write(), entry)?;
        drop(nothing_begins);
        self.foundation().wait_durable(seq)
    }

    fn stand(&self) -> Standpoint<'_> {
        let _between_batches = self.initiator.lock();
        self.ground.stand()
    }

    fn settle(&self) {
        let _nothing_begins = self.drain();
        self.ground.tidy(&self.ground.gate.write());
    }

    fn restore(&self, state: State) {
        self.ground.restore(state);
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        let mut initiator = self.initiator.lock();
        let expected = self.ground.shared.sequencer.next();
        match entry::decode_next(payload, first_seq, count, expected)? {
            Entries::Definition(_) | Entries::KeyWindow(_) => {
                self.ground.replay_definition(first_seq, payload)
            }
            Entries::Calls { time_us, bytes } => initiator.replay(&self.surroundings(), bytes, time_us),
        }
    }

    fn close(&self, reason: Error) {
        let _nothing_begins = self.initiator.lock();
        let now = self.ground.now_ns();
        let unbegun = self.intake.close(reason.clone());
        unbegun.iter().for_each(|work| work.batch.fail(reason.clone(), now));
    }

    fn counts(&self) -> Counts {
        self.foundation().counters.counts(0)
    }

    fn times(&self) -> Vec<(&'static str, u64)> {
        self.statistics.times()
    }
}
