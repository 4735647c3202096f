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
use crate::execution::{Execution, Outcome};
use crate::graph::Graph;
use crate::round::{Grounds, Round};
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::entry::{self, Call};
use fabius_engine::idempotency::First;
use fabius_engine::{Batch, Definitions, Foundation};
use fabius_env::schedule;
use fabius_storage::chain;
use fabius_storage::fold::Retired;
use fabius_storage::purge::Purge;
use fabius_value::{Result, Seq};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// Calls of a graph, at most and at least (if there are as many).
const GRAPH_CALLS: std::ops::RangeInclusive<usize> = 16..=512;
/// Keys purged per batch, at most: a bound on the pause.
const PURGES_MAX: usize = 4096;
/// Partitions at the most: as many as an integer has bits.
const PARTITIONS_MAX: usize = 64;
/// Batches for which a worker that was there is expected to come again.
const CREW_MEMORY: usize = 8;

/// What a batch shares with the engine.
pub struct Surroundings<'e> {
    /// Definitions, log, snapshots.
    pub foundation: &'e Foundation,
    /// Who works.
    pub crew: &'e Crew,
    /// Where time goes.
    pub statistics: &'e Statistics,
    /// How many partitions graphs have; `None`: one for each worker.
    pub partitions: Option<usize>,
}

/// The initiator's state; whoever holds it leads a batch.
pub struct Initiator {
    next_seq: Seq,
    /// The bound on a batch.
    pub size: BatchSize,
    decompositions: Decompositions,
    purge: Purge,
    payload: Vec<u8>,
    arenas: Vec<Bump>,
    key_arenas: Vec<Bump>,
    spare: Vec<Graph<'static>>,
    crew_sizes: [usize; CREW_MEMORY],
}

/// Where the outcomes of a batch go.
pub struct Answering<'b> {
    batches: &'b [Arc<Batch>],
    /// The batch that is being answered, and the seq of its first call.
    at: usize,
    first: Seq,
}

impl<'b> Answering<'b> {
    fn new(batches: &'b [Arc<Batch>], first: Seq) -> Answering<'b> {
        Answering { batches, at: 0, first }
    }

    /// Stores outcomes, in order of seq, and completes batches that end at or before `last`.
    fn answer(&mut self, outcomes: Vec<(Seq, Outcome)>, last: Seq, foundation: &Foundation) {
        let mut outcomes = outcomes.into_iter().peekable();
        while let Some(batch) = self.batches.get(self.at) {
            let end = Seq(self.first.0 + u64::from(batch.count()));
            let mut of_batch = batch.outcomes();
            of_batch.first_seq = Some(self.first);
            while let Some((seq, outcome)) = outcomes.next_if(|(seq, _)| *seq < end) {
                let place = (seq.0 - self.first.0) as u32;
                of_batch.aborts.extend(outcome.abort.map(|error| (place, error)));
                of_batch.tickets.extend(outcome.ticket.map(|ticket| (place, ticket)));
            }
            drop(of_batch);
            if last < end.before() {
                return;
            }
            foundation.decided(end.before(), batch.clone());
            self.first = end;
            self.at += 1;
        }
    }
}

impl Initiator {
    /// An initiator whose next call gets seq 1.
    pub fn new(size: BatchSize) -> Initiator {
        Initiator {
            next_seq: Seq(1),
            size,
            decompositions: Decompositions::default(),
            purge: Purge::default(),
            payload: Vec::new(),
            arenas: Vec::new(),
            key_arenas: Vec::new(),
            spare: Vec::new(),
            crew_sizes: [1; CREW_MEMORY],
        }
    }

    /// The seq that the next entry gets.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Takes the next seq for a definition that is in force from now on.
    pub fn follow(&mut self, definitions: &Definitions) -> Seq {
        self.decompositions.follow(definitions);
        let seq = self.next_seq;
        self.next_seq = seq.next();
        seq
    }

    /// Goes on behind a checkpoint.
    pub fn restore(&mut self, seq: Seq, definitions: &Definitions) {
        self.next_seq = seq;
        self.follow(definitions);
    }

    /// Runs batches that callers have handed in as one.
    pub fn run(&mut self, around: &Surroundings<'_>, batches: &[Arc<Batch>]) {
        let foundation = around.foundation;
        let begun = foundation.clock.monotonic_ns();
        let time_us = foundation.clock.now_us();
        let count: u32 = batches.iter().map(|batch| batch.count()).sum();
        self.payload.clear();
        entry::begin_calls(time_us, &mut self.payload);
        batches.iter().for_each(|batch| self.payload.extend_from_slice(batch.calls()));
        if let Err(error) = foundation.append(self.next_seq, count, &self.payload) {
            batches.iter().for_each(|batch| batch.fail(error.clone(), begun));
            return;
        }
        schedule::point("logged");
        let calls = batches.iter().flat_map(|batch| entry::calls(batch.calls()));
        let calls = calls.map(|call| call.expect("batches are encoded by their builder")).collect();
        self.execute(around, calls, time_us, Answering::new(batches, self.next_seq));
        self.size.adapt(count, foundation.clock.monotonic_ns() - begun);
    }

    /// Runs calls that were logged before.
    ///
    /// # Errors
    /// If the bytes are not calls.
    pub fn replay(&mut self, around: &Surroundings<'_>, bytes: &[u8], time_us: i64) -> Result<()> {
        let calls = entry::calls(bytes).collect::<Result<Vec<_>>>()?;
        self.execute(around, calls, time_us, Answering::new(&[], self.next_seq));
        Ok(())
    }

    fn execute(&mut self, around: &Surroundings<'_>, calls: Vec<Call<'_>>, time_us: i64, to: Answering<'_>) {
        let foundation = around.foundation;
        let definitions = foundation.definitions();
        let first = self.next_seq.0;
        self.next_seq = Seq(first + calls.len() as u64);
        let seqs = (first..).map(Seq);
        let calls: Vec<(Call<'_>, Seq)> = calls.into_iter().zip(seqs).collect();
        let partitions = self.partitions(around);
        let graph_calls = calls.len().div_ceil(partitions).clamp(*GRAPH_CALLS.start(), *GRAPH_CALLS.end());
        let graphs = cut(&calls, graph_calls);
        let mut to = to;
        for graphs in graphs.chunks(partitions) {
            self.round(around, &definitions, graphs, time_us, partitions, &mut to);
        }
    }

    /// How many partitions the next graphs have.
    fn partitions(&mut self, around: &Surroundings<'_>) -> usize {
        self.crew_sizes.rotate_right(1);
        self.crew_sizes[0] = around.crew.take_size();
        let workers = self.crew_sizes.into_iter().max().unwrap_or(1);
        around.partitions.unwrap_or(workers).clamp(1, PARTITIONS_MAX)
    }

    /// Builds and executes some graphs.
    fn round(
        &mut self,
        around: &Surroundings<'_>,
        definitions: &Definitions,
        calls: &[&[(Call<'_>, Seq)]],
        time_us: i64,
        partitions: usize,
        to: &mut Answering<'_>,
    ) {
        let guard = crossbeam_epoch::pin();
        let collected = self.tidy(around.foundation, &guard);
        for (arenas, count) in [(&mut self.arenas, partitions), (&mut self.key_arenas, calls.len())] {
            arenas.resize_with(count.max(arenas.len()), Bump::new);
            arenas.iter_mut().for_each(Bump::reset);
        }
        let procedures =
            calls.iter().flat_map(|calls| calls.iter().map(|(call, _)| call.procedure.0 as usize));
        let grains = Grains::of(&self.decompositions, procedures, definitions);
        let grounds = Grounds {
            material: Material { definitions, decompositions: &self.decompositions, grains, guard: &guard },
            calls: calls.to_vec(),
            arenas: &self.arenas[..partitions],
            key_arenas: &self.key_arenas,
            time_us,
            collected,
            statistics: around.statistics,
            clock: &*around.foundation.clock,
            spare: Mutex::new(self.spare.drain(..).map(|graph| graph.emptied(0)).collect()),
            graphs: calls.iter().map(|_| OnceLock::new()).collect(),
        };
        let round = Round::new(&grounds);
        let purge = &mut self.purge;
        let mut repeated: Vec<Outcome> = Vec::new();
        let (foundation, labour) = (around.foundation, |worker| round.help(worker));
        around.crew.lead(&labour, || {
            let (repeated, guard) = (std::cell::RefCell::new(&mut repeated), &guard);
            round.lead(
                &mut |graph| **repeated.borrow_mut() = repetitions(graph, foundation, definitions),
                &mut |graph, execution| {
                    let repeated = std::mem::take(&mut **repeated.borrow_mut());
                    let outcomes = conclude(graph, execution, foundation, definitions, repeated, purge);
                    schedule::point("promise");
                    foundation.set_promised(graph.last_seq());
                    schedule::point("promised");
                    to.answer(outcomes, graph.last_seq(), foundation);
                    guard.flush();
                },
            );
        });
        drop(round);
        let Grounds { spare, graphs, .. } = grounds;
        let used = spare.into_inner().into_iter().chain(graphs.into_iter().filter_map(OnceLock::into_inner));
        self.spare = used.map(|graph| graph.emptied(0)).collect();
    }

    /// Takes keys out of indexes that nobody searches for any more; gives up to where nobody reads.
    fn tidy(&mut self, foundation: &Foundation, guard: &crossbeam_epoch::Guard) -> Seq {
        let collected = foundation.snapshots.collect(foundation.promised());
        let mut retired = Retired::default();
        self.purge.run(|_| collected, collected, PURGES_MAX, &mut retired, guard);
        retired.hand_over(guard);
        collected
    }

    /// Work without calls; whether there was any.
    pub fn purge(&mut self, foundation: &Foundation) -> bool {
        let before = self.purge.len();
        if before > 0 {
            self.tidy(foundation, &crossbeam_epoch::pin());
        }
        before != self.purge.len()
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

/// Disables calls that repeat the idempotency key of an earlier one; gives their outcomes.
fn repetitions(graph: &Graph<'_>, foundation: &Foundation, definitions: &Definitions) -> Vec<Outcome> {
    let mut repeated = Vec::new();
    for (number, node) in graph.calls.iter().enumerate() {
        let Some(key) = node.call.key else { continue };
        let oldest = definitions.key_window.oldest(node.seq);
        let first = foundation.keys.lock().get(key, oldest).cloned();
        if let Some(First { abort, ticket, .. }) = first {
            graph.disable(number);
            repeated.push(Outcome { call: number as u32, abort, ticket });
        }
    }
    repeated
}

/// Gathers what the execution of a graph has left; gives its calls' outcomes, in order.
fn conclude(
    graph: &Graph<'_>,
    execution: &Execution<'_, '_>,
    foundation: &Foundation,
    definitions: &Definitions,
    repeated: Vec<Outcome>,
    purge: &mut Purge,
) -> Vec<(Seq, Outcome)> {
    let last = graph.last_seq();
    let mut outcomes = Vec::new();
    let (mut committed, mut aborted) = (0, 0);
    let mut records = Vec::new();
    for left in execution.take_left() {
        committed += left.committed;
        aborted += left.aborted;
        outcomes.extend(left.outcomes);
        for entry in left.entries {
            let head = entry.record.head();
            // SAFETY: the epoch is pinned.
            let is_right = unsafe {
                chain::is_present(head) && entry.table.entry_is_current(entry.index, &entry.key, head)
            };
            if !is_right {
                purge.entry(last, entry.table, entry.record, entry.index, *entry.key);
            }
        }
        records.extend(left.records);
    }
    // Entries before records: a note about a record may free it.
    for (table, record) in records {
        // SAFETY: as above.
        if !unsafe { chain::is_present(record.head()) } {
            purge.record(last, table, record);
        }
    }
    let counters = &foundation.counters;
    counters.committed.add(committed);
    counters.immediate.add(committed);
    counters.aborted.add(aborted);
    outcomes.sort_unstable_by_key(|outcome| outcome.call);
    remember(graph, foundation, definitions, &outcomes);
    if !repeated.is_empty() {
        outcomes.extend(repeated);
        outcomes.sort_unstable_by_key(|outcome| outcome.call);
    }
    outcomes.into_iter().map(|outcome| (graph.calls[outcome.call as usize].seq, outcome)).collect()
}

/// Remembers the outcomes of calls with idempotency keys, which are sorted by call.
fn remember(graph: &Graph<'_>, foundation: &Foundation, definitions: &Definitions, outcomes: &[Outcome]) {
    for (number, node) in graph.calls.iter().enumerate() {
        let Some(key) = node.call.key else { continue };
        if node.disabled.load(std::sync::atomic::Ordering::Acquire) {
            continue;
        }
        let place = outcomes.binary_search_by_key(&(number as u32), |outcome| outcome.call);
        let outcome = place.ok().map(|place| &outcomes[place]);
        let first = First {
            seq: node.seq,
            abort: outcome.and_then(|outcome| outcome.abort.clone()),
            ticket: outcome.and_then(|outcome| outcome.ticket.clone()),
        };
        let oldest = definitions.key_window.oldest(node.seq);
        foundation.keys.lock().remember(key, first, oldest);
    }
}
