//! The transaction initiator (LADS, sections 4.1, 4.2.1 and 4.2.4): takes calls in, gives them their
//! timestamps, logs them, and sees the batch through.
//!
//! A timestamp is the call's seq. A batch is appended to the log as one piece before anything of it is
//! executed: the calls with their arguments are its record actions, since those follow from them (command
//! logging). It is then cut into graphs, as many at a time as there are workers:
//!
//! ```text
//! batch   | graph | graph |  graph | graph |  graph |
//!         \--- round -----/\---- round ----/
//! ```
//!
//! When a graph has been executed, `promised` moves to its last call: readers see whole graphs only.

use crate::batch_size::BatchSize;
use crate::construction::Material;
use crate::crew::Crew;
use crate::decomposition::{Decompositions, Grains};
use crate::execution::Grounds;
use crate::graph::Graph;
use crate::round::Round;
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::{Chunk, Intake, Outcomes};
use fabius_engine::eager::plan::Schema;
use fabius_engine::entry::{self, Call};
use fabius_engine::returned::Returned;
use fabius_env::schedule;
use fabius_program::execute::emptied;
use fabius_value::{Result, Seq};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::OnceLock;

/// Calls of a graph, at most and at least (if there are as many).
const GRAPH_CALLS: std::ops::RangeInclusive<usize> = 16..=512;
/// Bytes of the calls of one batch, about.
const BATCH_BYTES: usize = 1 << 20;
/// Partitions for each worker: one that comes late finds something left.
const PARTITIONS_PER_WORKER: usize = 2;
/// Batches for which a worker that was there is expected to come again.
const CREW_MEMORY: usize = 8;

/// What a batch shares with the engine.
pub struct Surroundings<'e> {
    /// Definitions, log, order.
    pub ground: &'e Ground,
    /// Who works.
    pub crew: &'e Crew,
    /// Where time goes.
    pub statistics: &'e Statistics,
    /// How many partitions graphs have; `None`: as the workers need.
    pub partitions: Option<usize>,
}

/// The initiator's state; whoever holds it leads a batch.
pub struct Initiator {
    size: BatchSize,
    decompositions: Decompositions,
    payload: Vec<u8>,
    calls: Vec<(Call<'static>, Seq)>,
    arenas: Vec<Mutex<Bump>>,
    spare: Vec<Graph<'static>>,
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
            spare: Vec::new(),
            crew_sizes: [1; CREW_MEMORY],
        }
    }

    /// Runs a batch of calls that have been handed in; whether there were any.
    pub fn run(&mut self, around: &Surroundings<'_>, intake: &Intake) -> bool {
        let Surroundings { ground, .. } = around;
        let begun = ground.now_ns();
        let time_us = ground.foundation().clock.now_us();
        let (mut chunks, mut count) = (Vec::new(), 0);
        self.payload.clear();
        entry::begin_calls(time_us, &mut self.payload);
        while count < self.size.calls()
            && self.payload.len() < BATCH_BYTES
            && let Some(chunk) = intake.take_at_most(self.size.calls() - count)
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
                let encoded = chunks.iter().flat_map(|chunk| entry::calls(chunk.calls()));
                let decoded = encoded.map(|call| call.expect("batches are encoded by their builder"));
                calls.extend(decoded.zip((first.0..).map(Seq)));
                self.execute(around, &calls, time_us, &mut Answers { chunks: &chunks, answered: 0 });
                self.calls = emptied(calls);
                self.size.adapt(count, ground.now_ns() - begun);
            }
            Err(failure) => {
                for chunk in &chunks {
                    let outcomes = Outcomes { failure: Some(failure.clone()), ..Outcomes::default() };
                    if let Some(last) = chunk.end(outcomes) {
                        ground.end(last, &chunk.work.batch);
                    }
                }
            }
        }
        true
    }

    /// Runs calls that were logged before.
    ///
    /// # Errors
    /// If the bytes are not calls.
    pub fn replay(&mut self, around: &Surroundings<'_>, bytes: &[u8], time_us: i64) -> Result<()> {
        let calls = entry::calls(bytes).collect::<Result<Vec<_>>>()?;
        let sequencer = &around.ground.shared.sequencer;
        let calls: Vec<_> = calls.into_iter().map(|call| (call, sequencer.take())).collect();
        self.execute(around, &calls, time_us, &mut Answers { chunks: &[], answered: 0 });
        Ok(())
    }

    fn execute(
        &mut self,
        around: &Surroundings<'_>,
        calls: &[(Call<'_>, Seq)],
        time_us: i64,
        answers: &mut Answers<'_>,
    ) {
        let ground = around.ground;
        let schema = ground.gate.read();
        self.decompositions.follow(&schema.definitions);
        self.crew_sizes.rotate_right(1);
        self.crew_sizes[0] = around.crew.take_size();
        let workers = self.crew_sizes.into_iter().max().unwrap_or(1);
        let for_workers = if workers == 1 { 1 } else { workers * PARTITIONS_PER_WORKER };
        let partitions = around.partitions.unwrap_or(for_workers).max(1);
        let graph_calls = calls.len().div_ceil(workers).clamp(*GRAPH_CALLS.start(), *GRAPH_CALLS.end());
        for graphs in cut(calls, graph_calls).chunks(workers) {
            self.round(around, &schema, graphs, time_us, partitions, answers);
        }
        drop(schema);
        if ground.must_tidy() {
            ground.tidy(&ground.gate.write());
        }
    }

    /// Builds and executes some graphs.
    fn round(
        &mut self,
        around: &Surroundings<'_>,
        schema: &Schema,
        calls: &[&[(Call<'_>, Seq)]],
        time_us: i64,
        partitions: usize,
        answers: &mut Answers<'_>,
    ) {
        let (shared, definitions) = (&around.ground.shared, &*schema.definitions);
        let guard = crossbeam_epoch::pin();
        let procedures = calls.iter().flat_map(|calls| calls.iter().map(|(call, _)| call.procedure));
        let grains = Grains::of(&self.decompositions, procedures, definitions);
        let material = Material { definitions, decompositions: &self.decompositions, grains, guard: &guard };
        let grounds = Grounds { material: &material, shared, schema, time_us };
        let spare = self.spare.drain(..).map(Graph::emptied).collect();
        let round = Round::new(grounds, partitions, calls, &self.arenas, around.statistics, spare);
        around.crew.lead(&|worker| round.help(worker), || {
            round.lead(&mut |graph, outcomes| {
                let counters = &shared.foundation.counters;
                let independent = graph.calls.iter().filter(|node| node.is_independent).count() as u64;
                counters.committed.add(independent);
                counters.immediate.add(independent);
                let (first, last) = graph.seqs();
                schedule::point("promise");
                shared.sequencer.installed_run(first, last, &shared.foundation);
                schedule::point("promised");
                answers.of_graph(graph.calls.len() as u32, last, outcomes, around.ground);
            });
        });
        let Round { spare, graphs, .. } = round;
        let used = spare.into_inner().into_iter().chain(graphs.into_iter().filter_map(OnceLock::into_inner));
        self.spare = used.map(Graph::emptied).collect();
    }
}

/// Cuts calls into graphs of so many. A call that repeats an idempotency key is in a later graph than the
/// first with that key, whose outcome it gets.
fn cut<'c, 'b>(calls: &'c [(Call<'b>, Seq)], graph_calls: usize) -> Vec<&'c [(Call<'b>, Seq)]> {
    let mut graphs = Vec::new();
    let mut keys = HashSet::new();
    let mut start = 0;
    for (at, (call, _)) in calls.iter().enumerate() {
        let repeats = call.key.is_some_and(|key| keys.contains(key));
        if repeats || at - start == graph_calls {
            graphs.push(&calls[start..at]);
            keys.clear();
            start = at;
        }
        keys.extend(call.key);
    }
    graphs.push(&calls[start..]);
    graphs
}

/// Where the outcomes of a batch go: to the chunks that it was made of, in order.
struct Answers<'b> {
    chunks: &'b [Chunk],
    /// Calls of the first chunk that have been answered.
    answered: u32,
}

impl Answers<'_> {
    /// Passes on the outcomes of a graph of so many calls, by their numbers in it.
    fn of_graph(&mut self, mut count: u32, last: Seq, outcomes: Vec<Outcomes>, ground: &Ground) {
        let (mut aborts, mut tickets, mut returned) = (Vec::new(), Vec::new(), Vec::new());
        for outcomes in outcomes {
            aborts.extend(outcomes.aborts);
            tickets.extend(outcomes.tickets);
            returned.push(outcomes.returned);
        }
        let mut number = 0;
        while count > 0
            && let Some(chunk) = self.chunks.first()
        {
            let own = count.min(chunk.count - self.answered);
            let place = |graph_number: u32| chunk.first + self.answered + graph_number - number;
            let mut own_returned = Returned::default();
            returned.iter_mut().for_each(|all| all.move_below(number + own, &mut own_returned, place));
            let outcomes = Outcomes {
                aborts: taken(&mut aborts, number + own, place),
                tickets: taken(&mut tickets, number + own, place),
                returned: own_returned,
                last: Seq(last.0 - u64::from(count - own)),
                ..Outcomes::default()
            };
            if let Some(last) = chunk.work.end(own, outcomes) {
                ground.end(last, &chunk.work.batch);
            }
            (number, count, self.answered) = (number + own, count - own, self.answered + own);
            if self.answered == chunk.count {
                (self.chunks, self.answered) = (&self.chunks[1..], 0);
            }
        }
    }
}

/// Takes those numbered below `end`, which get other numbers.
fn taken<T>(all: &mut Vec<(u32, T)>, end: u32, place: impl Fn(u32) -> u32) -> Vec<(u32, T)> {
    all.extract_if(.., |(number, _)| *number < end).map(|(number, of)| (place(number), of)).collect()
}
