//! The graph engine behind the contract.

use crate::batch_size::BatchSize;
use crate::crew::Crew;
use crate::initiator::{Initiator, Surroundings};
use crate::statistics::Statistics;
use crossbeam_queue::SegQueue;
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::entry::{self, Entries};
use fabius_engine::{Batch, Definitions, Engine, Foundation, Standpoint};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use fabius_value::{Error, Result, Seq, SqlState};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// Bytes of the calls of one batch, about: batches that callers hand in are not divided.
const BATCH_BYTES: usize = 1 << 20;

/// How the graph engine is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Partitions of each graph; `None`: one for each thread that is lent.
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
    foundation: Arc<Foundation>,
    queue: SegQueue<Arc<Batch>>,
    initiator: Mutex<Initiator>,
    crew: Crew,
    partitions: Option<usize>,
    statistics: Statistics,
    closed: AtomicBool,
}

fn closed() -> Error {
    Error::new(SqlState::SHUTDOWN, "the database is closed")
}

impl GraphEngine {
    /// An engine without definitions.
    pub fn new(foundation: Arc<Foundation>, settings: Settings) -> GraphEngine {
        GraphEngine {
            foundation,
            queue: SegQueue::new(),
            initiator: Mutex::new(Initiator::new(BatchSize::new(settings.latency_target_us))),
            crew: Crew::new(settings.workers_max),
            partitions: settings.partitions,
            statistics: Statistics::default(),
            closed: AtomicBool::new(false),
        }
    }

    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            foundation: &self.foundation,
            crew: &self.crew,
            statistics: &self.statistics,
            partitions: self.partitions,
        }
    }

    /// Leads a batch, if calls wait and nobody else leads; or works on the one in progress.
    fn take_part(&self) -> bool {
        self.lead() || self.crew.join()
    }

    fn lead(&self) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        let Some(mut initiator) = self.initiator.try_lock() else { return false };
        schedule::point("initiator");
        let mut batches = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        while count < initiator.size.calls() && bytes < BATCH_BYTES {
            let Some(batch) = self.queue.pop() else { break };
            count += batch.count();
            bytes += batch.calls().len();
            batches.push(batch);
        }
        if batches.is_empty() {
            return false;
        }
        initiator.run(&self.surroundings(), &batches);
        true
    }

    fn drain(&self, place: &'static str) {
        while !self.queue.is_empty() && !self.closed.load(Acquire) {
            if !self.take_part() {
                schedule::give_way(place);
            }
        }
    }

    fn take_in(&self, initiator: &mut Initiator, definitions: Definitions) -> Seq {
        let seq = initiator.follow(&definitions);
        self.foundation.set_definitions(Arc::new(definitions));
        self.foundation.set_promised(seq);
        seq
    }
}

impl Engine for GraphEngine {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn foundation(&self) -> &Foundation {
        &self.foundation
    }

    fn submit(&self, batch: Arc<Batch>) {
        let now = self.foundation.clock.monotonic_ns();
        if self.closed.load(Acquire) {
            batch.fail(closed(), now);
        } else if batch.count() == 0 {
            batch.complete(now);
        } else {
            schedule::point("submit");
            self.queue.push(batch);
        }
    }

    fn admit(&self) -> bool {
        self.take_part()
    }

    fn help(&self) -> bool {
        self.take_part()
            || self.initiator.try_lock().is_some_and(|mut initiator| initiator.purge(&self.foundation))
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        self.drain("definition");
        let mut initiator = self.initiator.lock();
        if self.closed.load(Acquire) {
            return Err(closed());
        }
        let seq = initiator.next_seq();
        let definitions = self.foundation.definitions().with(seq, entry)?;
        self.foundation.append(seq, 1, entry)?;
        self.take_in(&mut initiator, definitions);
        drop(initiator);
        self.foundation.wait_durable(seq)
    }

    fn stand(&self) -> Standpoint<'_> {
        let _initiator = self.initiator.lock();
        Standpoint::whole(&self.foundation)
    }

    fn settle(&self) {
        self.drain("settle");
        self.initiator.lock().purge(&self.foundation);
    }

    fn restore(&self, state: State) {
        let mut initiator = self.initiator.lock();
        assert_eq!(initiator.next_seq(), Seq(1), "an engine begins with a checkpoint or not at all");
        initiator.restore(state.seq, &state.definitions);
        self.foundation.restore(state);
    }

    fn replay(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        let mut initiator = self.initiator.lock();
        match entry::decode_next(payload, first_seq, count, initiator.next_seq())? {
            Entries::Definition(_) | Entries::KeyWindow(_) => {
                let definitions = self.foundation.definitions().with(first_seq, payload)?;
                self.take_in(&mut initiator, definitions);
            }
            Entries::Calls { time_us, bytes } => {
                initiator.replay(&self.surroundings(), bytes, time_us)?;
            }
        }
        Ok(())
    }

    fn close(&self, reason: Error) {
        self.closed.store(true, Release);
        let _initiator = self.initiator.lock();
        let now = self.foundation.clock.monotonic_ns();
        while let Some(batch) = self.queue.pop() {
            batch.fail(reason.clone(), now);
        }
    }

    fn counts(&self) -> Counts {
        self.foundation.counters.counts(0)
    }

    fn times(&self) -> Vec<(&'static str, u64)> {
        self.statistics.times()
    }
}
