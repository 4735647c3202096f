//! The phases that graphs go through (LADS, sections 3.1, 3.3 and 4.1).
//!
//! ```text
//! worker 0   build 0, divide | execute 0 | build 2, divide | execute 1 ..| execute 2
//! worker 1   build 1, divide | execute 0 ................. | execute 1   | execute 2
//!                                                       commit 0      commit 1
//! ```
//!
//! Graphs are built side by side, one worker each, and executed one after the other, all workers together: so
//! conflicts between graphs need no edges. A worker that finds nothing executable in the graph whose turn it is builds
//! one that comes later. Whoever executes the last of a graph commits its calls as a group: `promised` moves to the
//! last of them, so readers see whole graphs only.

use crate::construction::construct;
use crate::execution::{Grounds, Worker};
use crate::graph::{CallNode, Graph, Kind, Stamped};
use crate::partitioning::partition;
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::eager::intake::Outcomes;
use fabius_env::schedule;
use parking_lot::Mutex;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

/// The graphs of a batch, and how far they are.
pub struct Round<'a> {
    grounds: Grounds<'a>,
    partitions: usize,
    /// The calls of each graph.
    calls: Vec<&'a [Stamped<'a>]>,
    /// Memory for each worker.
    arenas: &'a [Mutex<Bump>],
    /// Graphs without calls.
    spare: &'a Mutex<Vec<Graph<'static>>>,
    statistics: &'a Statistics,
    /// Those that have been built.
    graphs: Vec<OnceLock<Graph<'a>>>,
    /// Graphs that somebody builds, or has built.
    taken: AtomicUsize,
    /// The graph whose turn it is to be executed: those before have been committed.
    turn: AtomicUsize,
    /// Workers so far.
    workers: AtomicUsize,
}

impl<'a> Round<'a> {
    /// A round of graphs of these calls, built in the memory of graphs that are no more.
    pub fn new(
        grounds: Grounds<'a>,
        partitions: usize,
        calls: Vec<&'a [Stamped<'a>]>,
        arenas: &'a [Mutex<Bump>],
        spare: &'a Mutex<Vec<Graph<'static>>>,
        statistics: &'a Statistics,
    ) -> Round<'a> {
        let graphs = calls.iter().map(|_| OnceLock::new()).collect();
        let (taken, turn, workers) = Default::default();
        Round { grounds, partitions, calls, arenas, spare, statistics, graphs, taken, turn, workers }
    }

    /// Ends the round; gives how many workers there were.
    pub fn end(self) -> usize {
        let graphs = self.graphs.into_iter().filter_map(OnceLock::into_inner);
        self.spare.lock().extend(graphs.map(Graph::emptied));
        self.workers.into_inner().min(self.arenas.len())
    }

    /// What each worker does, until all graphs have been committed or the engine has stopped; whether there was a
    /// place for one more.
    pub fn take_part(&self) -> bool {
        // Others wait for what one does who panics, and he for them to leave.
        self.grounds.ground.foundation().watched(|| self.work())
    }

    fn has_stopped(&self) -> bool {
        self.grounds.ground.foundation().failure().is_some()
    }

    fn work(&self) -> bool {
        let worker = self.workers.fetch_add(1, Relaxed);
        let Some(arena) = self.arenas.get(worker) else { return false };
        let mut arena = arena.lock();
        loop {
            if self.has_stopped() {
                return true;
            }
            let turn = self.turn.load(Acquire);
            let Some(graph) = self.graphs.get(turn) else { return true };
            if let Some(graph) = graph.get() {
                arena.reset();
                self.execute(turn, graph, worker, &arena);
            } else if !self.build() {
                self.wait(|| graph.get().is_some());
            }
        }
    }

    /// Builds and divides a graph that nobody has taken; whether there was one.
    fn build(&self) -> bool {
        let number = self.taken.fetch_add(1, Relaxed);
        let Some(calls) = self.calls.get(number) else { return false };
        schedule::point("construct");
        let begun = self.now();
        let mut graph: Graph<'a> = self.spare.lock().pop().unwrap_or_default();
        construct(self.grounds.material, calls, &mut graph);
        let constructed = self.now();
        partition(&mut graph, self.partitions);
        self.statistics.construction_ns.add(constructed - begun);
        self.statistics.partitioning_ns.add(self.now() - constructed);
        assert!(self.graphs[number].set(graph).is_ok(), "one worker builds a graph");
        true
    }

    /// Works on a graph until it has been committed.
    fn execute(&self, number: usize, graph: &Graph<'a>, worker: usize, arena: &Bump) {
        let guard = crossbeam_epoch::pin();
        let mut hand = Worker::new(self.grounds, graph, &guard, arena);
        while !graph.has_ended() && !self.has_stopped() {
            let begun = self.now();
            let ended = hand.work(worker);
            self.statistics.execution_ns.add(self.now() - begun);
            if ended > 0 && graph.end(ended) {
                self.commit(graph);
                self.turn.store(number + 1, Release);
            } else if ended == 0 && !self.build() {
                // What there is may be in somebody's hands already.
                schedule::give_way("graph");
                self.wait(|| graph.has_ended() || graph.has_messages());
            }
        }
        self.wait(|| self.turn.load(Acquire) > number);
        if !self.has_stopped() {
            hand.end();
        }
    }

    /// Waits until a condition holds that others bring about, mostly within a microsecond, or the engine has stopped.
    fn wait(&self, condition: impl Fn() -> bool + Sync) {
        if !condition() {
            let begun = self.now();
            schedule::wait_until("barrier", || condition() || self.has_stopped());
            self.statistics.communication_ns.add(self.now() - begun);
        }
    }

    fn now(&self) -> u64 {
        self.grounds.ground.now_ns()
    }

    /// Commits the calls of a graph that has been executed.
    fn commit(&self, graph: &Graph<'_>) {
        let Grounds { ground, .. } = self.grounds;
        let foundation = ground.foundation();
        let (Some(first), Some(last)) = (graph.calls.first(), graph.calls.last()) else { return };
        schedule::point("promise");
        ground.shared.sequencer.installed_run(first.stamped.seq, last.stamped.seq, foundation);
        schedule::point("promised");
        let batch = |stamped: &Stamped<'_>| stamped.batch.map(|(work, _)| Arc::as_ptr(work));
        for calls in graph.calls.chunk_by(|one, next| batch(&one.stamped) == batch(&next.stamped)) {
            // Nobody has been told of these yet.
            let is_open = |node: &&CallNode<'_>| node.kind != Kind::Whole && !node.is_answered.load(Acquire);
            let open = calls.iter().filter(is_open).count() as u32;
            foundation.counters.committed.add(open.into());
            foundation.counters.immediate.add(open.into());
            if let (Some((work, _)), true) = (calls[0].stamped.batch, open > 0) {
                let last = calls[calls.len() - 1].stamped.seq;
                ground.end(work, open, Outcomes { last, ..Outcomes::default() });
            }
        }
        ground.answer();
    }
}
