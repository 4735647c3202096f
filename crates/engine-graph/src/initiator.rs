//! The transaction initiator (LADS, sections 4.1, 4.2.1 and 4.2.4): takes calls in, gives them their
//! timestamps, logs them, and sees the batch through.
//!
//! A timestamp is the call's seq. A batch is appended to the log as one piece before anything of it is
//! executed: the calls with their arguments are its record actions, since those follow from them (command
//! logging). It is then cut into graphs, of which one may be built while another is executed.

use crate::batch_size::BatchSize;
use crate::construction::Material;
use crate::crew::Crew;
use crate::decomposition::{Decompositions, Prefixes};
use crate::execution::Grounds;
use crate::graph::{Graph, Stamped};
use crate::round::Round;
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::checkpoint::State;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::{Chunk, Intake, Outcomes, Work};
use fabius_engine::entry::Call;
use fabius_engine::{Batch, batch, entry};
use fabius_env::schedule;
use fabius_program::execute::emptied;
use fabius_value::Seq;
use parking_lot::Mutex;
use std::sync::Arc;

/// Calls of a graph, at most and at least (if there are as many).
const GRAPH_CALLS: std::ops::RangeInclusive<usize> = 16..=512;
/// Bytes of the calls of one batch, about.
const BATCH_BYTES: usize = 1 << 20;
/// Graphs for each worker, if there are enough calls: while one is executed, another is built.
const GRAPHS_PER_WORKER: usize = 4;
/// Partitions for each worker: one that comes late finds something left.
const PARTITIONS_PER_WORKER: usize = 2;
/// Workers for each partition while a log is replayed: there are always more graphs to be built ahead.
const REPLAYING_WORKERS_PER_PARTITION: usize = 2;
/// Batches for which a worker that was there is expected to come again.
const CREW_MEMORY: usize = 16;

/// What batches are run with.
pub struct Means {
    /// Definitions, log, order.
    pub ground: Ground,
    /// Calls that have not begun.
    pub intake: Intake,
    /// Who works.
    pub crew: Crew,
    /// Where time goes.
    pub statistics: Statistics,
    /// Partitions of each graph; `None`: as many as the threads that are lent need.
    pub partitions: Option<usize>,
}

/// The initiator's state; whoever holds it leads a batch.
pub struct Initiator {
    size: BatchSize,
    decompositions: Decompositions,
    payload: Vec<u8>,
    calls: Vec<Stamped<'static>>,
    arenas: Vec<Mutex<Bump>>,
    spare: Mutex<Vec<Graph<'static>>>,
    crew_sizes: [usize; CREW_MEMORY],
}

impl Initiator {
    /// An initiator for so many workers at the most.
    pub fn new(size: BatchSize, workers_max: usize) -> Initiator {
        Initiator {
            size,
            decompositions: Decompositions::default(),
            payload: Vec::new(),
            calls: Vec::new(),
            arenas: (0..workers_max.max(1)).map(|_| Mutex::default()).collect(),
            spare: Mutex::default(),
            crew_sizes: [1; CREW_MEMORY],
        }
    }

    /// Sets how many calls a batch takes at the most.
    pub fn set_batch_calls_max(&mut self, calls: u32) {
        self.size.set_calls_max(calls);
    }

    /// Goes on behind a checkpoint.
    pub fn restore(&mut self, state: &State) {
        self.decompositions.begin(&state.definitions.catalog, &state.ranges);
    }

    /// Runs a batch of calls that have been handed in; whether there were any.
    pub fn run(&mut self, means: &Means) -> bool {
        let ground = &means.ground;
        let begun = ground.now_ns();
        let time_us = ground.foundation().clock.now_us();
        let (mut chunks, mut count) = (Vec::<Chunk>::new(), 0);
        self.payload.clear();
        entry::begin_calls(time_us, &mut self.payload);
        while count < self.size.calls()
            && self.payload.len() < BATCH_BYTES
            && let Some(chunk) = means
                .intake
                .take_at_most(self.size.calls() - count, BATCH_BYTES.saturating_sub(self.payload.len()))
        {
            count += chunk.count;
            self.payload.extend_from_slice(chunk.calls());
            chunks.push(chunk);
        }
        if chunks.is_empty() {
            return false;
        }
        match ground.shared.sequencer.append_run(ground.foundation(), count, &self.payload) {
            Ok(first) => {
                schedule::point("logged");
                let mut calls = emptied(std::mem::take(&mut self.calls));
                let mut seqs = (first.0..).map(Seq);
                for chunk in &chunks {
                    let encoded = entry::calls(chunk.calls()).zip(&mut seqs).zip(chunk.first..);
                    calls.extend(encoded.map(|((call, seq), place)| {
                        let call = call.expect("batches are encoded by their builder");
                        Stamped { call, seq, time_us, batch: Some((&chunk.work, place)) }
                    }));
                }
                self.execute(means, &calls, self.partitions());
                self.calls = emptied(calls);
                self.size.adapt(count, ground.now_ns() - begun);
            }
            Err(failure) => {
                for chunk in &chunks {
                    let outcomes = Outcomes { failure: Some(failure.clone()), ..Outcomes::default() };
                    ground.end(&chunk.work, chunk.count, outcomes);
                }
            }
        }
        true
    }

    /// Runs so many calls that have their places in the order; gives what has become of them.
    pub fn take(&mut self, means: &Means, calls: &[u8], count: u32, time_us: i64) -> batch::Outcomes {
        let work = Arc::new(Work::new(Batch::of(calls.to_vec(), count), 0));
        let calls: Vec<_> = entry::calls(work.batch.calls())
            .zip(0..)
            .map(|(call, place)| Stamped {
                call: call.expect("calls are checked when they are taken"),
                seq: means.ground.shared.sequencer.take(),
                time_us,
                batch: Some((&work, place)),
            })
            .collect();
        self.execute(means, &calls, self.partitions());
        std::mem::take(&mut *work.batch.outcomes())
    }

    /// Runs calls of consecutive entries that have their places in the order, each entry's with their logged time;
    /// nobody is told what has become of them.
    pub fn replay<'c>(&mut self, means: &Means, entries: impl Iterator<Item = (i64, &'c [u8])>) {
        let sequencer = &means.ground.shared.sequencer;
        let mut calls = emptied(std::mem::take(&mut self.calls));
        for (time_us, encoded) in entries {
            calls.extend(entry::calls(encoded).map(|call| {
                let call = call.expect("calls are checked when they are taken");
                // What is remembered under a key is remembered with its result.
                let call = Call { wants_result: call.wants_result && call.key.is_some(), ..call };
                Stamped { call, seq: sequencer.take(), time_us, batch: None }
            }));
        }
        if !calls.is_empty() {
            self.execute(means, &calls, self.workers() / REPLAYING_WORKERS_PER_PARTITION);
        }
        self.calls = emptied(calls);
    }

    /// Workers that are expected.
    fn workers(&self) -> usize {
        self.crew_sizes.into_iter().max().unwrap_or(1)
    }

    /// Partitions for them, while callers wait.
    fn partitions(&self) -> usize {
        let workers = self.workers();
        if workers == 1 { 1 } else { workers * PARTITIONS_PER_WORKER }
    }

    /// Builds graphs of calls, and executes them in so many partitions.
    fn execute(&mut self, means: &Means, calls: &[Stamped<'_>], partitions: usize) {
        let workers = self.workers();
        let Initiator { decompositions, arenas, spare, .. } = self;
        let ground = &means.ground;
        let schema = ground.gate.read();
        let definitions = &*schema.definitions;
        decompositions.follow(definitions, calls.last().map_or(Seq::ZERO, |stamped| stamped.seq));
        let partitions = means.partitions.unwrap_or(partitions).max(1);
        let graph_calls =
            (calls.len() / (workers * GRAPHS_PER_WORKER)).clamp(*GRAPH_CALLS.start(), *GRAPH_CALLS.end());
        let procedures = calls.iter().map(|stamped| stamped.call.procedure);
        let prefixes = Prefixes::of(decompositions, procedures, definitions);
        let material = Material { definitions, decompositions, prefixes };
        let grounds = Grounds { material: &material, ground, schema: &schema };
        let graphs = calls.chunks(graph_calls).collect();
        let round = Round::new(grounds, partitions, graphs, arenas, spare, &means.statistics);
        means.crew.lead(&|| round.take_part());
        self.crew_sizes.rotate_right(1);
        self.crew_sizes[0] = round.end();
        drop(schema);
        while ground.must_tidy() && ground.tidy(&ground.gate.write()) {}
    }
}
