//! The phases that graphs go through, with a barrier between them (LADS, sections 3.3 and 4.1).
//!
//! ```text
//! worker 0   build graph 0, divide | execute graph 0 | execute graph 1
//! worker 1   build graph 1, divide |    "            |    "
//!                               barrier      barrier, commit    barrier, commit
//! ```
//!
//! Graphs are built side by side, one worker each, and executed one after the other, all workers together: so
//! conflicts between graphs need no edges. When a graph has been executed its calls commit as a group: `promised`
//! moves to the last of them, so readers see whole graphs only.

use crate::construction::construct;
use crate::execution::{Grounds, Worker};
use crate::graph::{Graph, Stamped};
use crate::partitioning::partition;
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::eager::intake::Outcomes;
use fabius_env::schedule;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

/// A round in progress.
pub struct Round<'a> {
    grounds: Grounds<'a>,
    partitions: usize,
    /// The calls of each graph.
    calls: &'a [&'a [Stamped<'a>]],
    /// Memory for each worker.
    arenas: &'a [Mutex<Bump>],
    statistics: &'a Statistics,
    graphs: Vec<RwLock<Graph<'a>>>,
    /// Graphs that somebody builds, or has built.
    taken: AtomicUsize,
    built: AtomicUsize,
    /// Graphs whose execution has begun.
    begun: AtomicUsize,
    /// Workers that execute.
    inside: AtomicUsize,
    /// Workers so far, the leader included.
    workers: AtomicUsize,
    over: AtomicBool,
}

// SAFETY: what is not `Sync` of its own is the epoch's guard of the leader, a witness that it is pinned: whoever
// defers or repins has a guard of its own.
unsafe impl Sync for Round<'_> {}

impl<'a> Round<'a> {
    /// A round of graphs of these calls, built in the memory of graphs that are no more.
    pub fn new(
        grounds: Grounds<'a>,
        partitions: usize,
        calls: &'a [&'a [Stamped<'a>]],
        arenas: &'a [Mutex<Bump>],
        statistics: &'a Statistics,
        spare: &mut Vec<Graph<'static>>,
    ) -> Round<'a> {
        Round {
            grounds,
            partitions,
            calls,
            arenas,
            statistics,
            graphs: calls.iter().map(|_| RwLock::new(spare.pop().unwrap_or_default())).collect(),
            taken: AtomicUsize::new(0),
            built: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            workers: AtomicUsize::new(1),
            over: AtomicBool::new(false),
        }
    }

    /// Ends the round: how many workers there were, and the memory of the graphs.
    pub fn end(self) -> (usize, impl Iterator<Item = Graph<'static>>) {
        let workers = self.workers.into_inner().min(self.arenas.len());
        (workers, self.graphs.into_iter().map(|graph| graph.into_inner().emptied()))
    }

    fn now(&self) -> u64 {
        self.grounds.ground.now_ns()
    }

    /// What a helper does until the round is over; whether there was a place for one more.
    pub fn help(&self) -> bool {
        let worker = self.workers.fetch_add(1, Relaxed);
        if worker >= self.arenas.len() {
            return false;
        }
        self.build();
        let mut next = 0;
        loop {
            self.wait(|| self.over.load(Acquire) || self.begun.load(Acquire) > next);
            if self.over.load(Acquire) {
                return true;
            }
            next = self.begun.load(Acquire);
            self.execute(next - 1, worker);
        }
    }

    /// What the leader does: everything, with whoever helps.
    pub fn lead(&self) {
        struct Over<'r>(&'r AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Release);
            }
        }
        let _over = Over(&self.over);
        self.build();
        self.wait(|| self.built.load(Acquire) == self.graphs.len());
        for number in 0..self.graphs.len() {
            self.begun.store(number + 1, Release);
            self.execute(number, 0);
            self.wait(|| self.inside.load(SeqCst) == 0);
            self.commit(&self.graphs[number].read());
        }
    }

    /// Builds and divides graphs that nobody has taken.
    fn build(&self) {
        loop {
            let number = self.taken.fetch_add(1, Relaxed);
            let Some(calls) = self.calls.get(number) else { return };
            schedule::point("construct");
            let begun = self.now();
            let mut graph = self.graphs[number].write();
            construct(self.grounds.material, calls, &mut graph);
            let constructed = self.now();
            partition(&mut graph, self.partitions);
            self.statistics.construction_ns.add(constructed - begun);
            self.statistics.partitioning_ns.add(self.now() - constructed);
            drop(graph);
            self.built.fetch_add(1, AcqRel);
        }
    }

    /// Works on a graph until all of it has been executed.
    fn execute(&self, number: usize, worker: usize) {
        self.inside.fetch_add(1, SeqCst);
        let graph = self.graphs[number].read();
        if !graph.has_ended() {
            let begun = self.now();
            let mut waited = 0;
            let mut arena = self.arenas.iter().find_map(Mutex::try_lock).expect("an arena for each worker");
            arena.reset();
            let guard = crossbeam_epoch::pin();
            let mut worker_at = Worker::new(self.grounds, &graph, &guard, &arena);
            while !graph.has_ended() {
                if !worker_at.work(worker) {
                    // What there is may be in somebody's hands already.
                    schedule::give_way("graph");
                    waited += self.wait(|| graph.has_ended() || graph.has_messages());
                }
            }
            worker_at.end();
            self.statistics.execution_ns.add(self.now() - begun - waited);
        }
        drop(graph);
        self.inside.fetch_sub(1, SeqCst);
    }

    /// Waits until a condition holds that others bring about, mostly within a microsecond; gives how long.
    fn wait(&self, condition: impl Fn() -> bool + Sync) -> u64 {
        if condition() {
            return 0;
        }
        let begun = self.now();
        schedule::wait_until("barrier", condition);
        let waited = self.now() - begun;
        self.statistics.communication_ns.add(waited);
        waited
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
            let independent = calls.iter().filter(|node| node.is_independent).count() as u32;
            foundation.counters.committed.add(independent.into());
            foundation.counters.immediate.add(independent.into());
            if let (Some((work, _)), true) = (calls[0].stamped.batch, independent > 0) {
                let last = calls[calls.len() - 1].stamped.seq;
                ground.end(work, independent, Outcomes { last, ..Outcomes::default() });
            }
        }
        ground.answer();
    }
}
