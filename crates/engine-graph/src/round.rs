//! The phases that graphs go through, with a barrier between them (LADS, sections 3.3 and 4.1).
//!
//! ```text
//! worker 0   build graph 0, divide | execute graph 0 | execute graph 1
//! worker 1   build graph 1, divide |    "            |    "
//!                               barrier           barrier, promise
//! ```
//!
//! Graphs are built side by side, one worker each, and executed one after the other, all workers together: so
//! conflicts between graphs need no edges.

use crate::construction::construct;
use crate::execution::{Grounds, Worker};
use crate::graph::Graph;
use crate::partitioning::partition;
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::eager::intake::Outcomes;
use fabius_engine::entry::Call;
use fabius_env::{Clock, schedule};
use fabius_value::Seq;
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
};

/// So often a worker looks again before it lets the system run others.
const SPINS: u32 = 1 << 8;

/// A round in progress.
pub struct Round<'a> {
    grounds: Grounds<'a>,
    partitions: usize,
    /// The calls of each graph.
    calls: &'a [&'a [(Call<'a>, Seq)]],
    /// Memory for each worker.
    arenas: &'a [Mutex<Bump>],
    statistics: &'a Statistics,
    /// Graphs that are no more, whose memory new ones take.
    pub spare: Mutex<Vec<Graph<'a>>>,
    /// Graphs, as they are built.
    pub graphs: Vec<OnceLock<Graph<'a>>>,
    /// Graphs that somebody builds, or has built.
    taken: AtomicUsize,
    built: AtomicUsize,
    /// Graphs whose execution has begun.
    begun: AtomicUsize,
    /// Workers that execute.
    inside: AtomicUsize,
    /// What became of the calls of the graph that is executed.
    outcomes: Mutex<Vec<Outcomes>>,
    over: AtomicBool,
}

// SAFETY: what is not `Sync` of its own is the epoch's guard of the leader, a witness that it is pinned: whoever
// defers or repins has a guard of its own.
unsafe impl Sync for Round<'_> {}

impl<'a> Round<'a> {
    /// A round of graphs of these calls.
    pub fn new(
        grounds: Grounds<'a>,
        partitions: usize,
        calls: &'a [&'a [(Call<'a>, Seq)]],
        arenas: &'a [Mutex<Bump>],
        statistics: &'a Statistics,
        spare: Vec<Graph<'a>>,
    ) -> Round<'a> {
        Round {
            grounds,
            partitions,
            calls,
            arenas,
            statistics,
            spare: Mutex::new(spare),
            graphs: calls.iter().map(|_| OnceLock::new()).collect(),
            taken: AtomicUsize::new(0),
            built: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            outcomes: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        let clock: &dyn Clock = &*self.grounds.shared.foundation.clock;
        clock.monotonic_ns()
    }

    /// What a helper does until the round is over.
    pub fn help(&self, worker: usize) {
        self.build();
        let mut next = 0;
        while let Some(begun) = self.wait(|| match (self.over.load(Acquire), self.begun.load(Acquire)) {
            (true, _) => Some(None),
            (false, begun) => (begun > next).then_some(Some(begun)),
        }) {
            self.execute(begun - 1, worker);
            next = begun;
        }
    }

    /// What the leader does: everything, with whoever helps. `conclude` is told of each graph when it has been
    /// executed.
    pub fn lead(&self, conclude: &mut dyn FnMut(&Graph<'a>, Vec<Outcomes>)) {
        struct Over<'r>(&'r AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Release);
            }
        }
        let _over = Over(&self.over);
        self.build();
        self.wait(|| (self.built.load(Acquire) == self.graphs.len()).then_some(()));
        for number in 0..self.graphs.len() {
            self.begun.store(number + 1, Release);
            self.execute(number, 0);
            self.wait(|| (self.inside.load(SeqCst) == 0).then_some(()));
            conclude(self.graph(number), std::mem::take(&mut *self.outcomes.lock()));
        }
    }

    fn graph(&self, number: usize) -> &Graph<'a> {
        self.graphs[number].get().expect("all graphs are built")
    }

    /// Builds and divides graphs that nobody has taken.
    fn build(&self) {
        loop {
            let number = self.taken.fetch_add(1, Relaxed);
            let Some(calls) = self.calls.get(number) else { return };
            schedule::point("construct");
            let begun = self.now();
            let spare = self.spare.lock().pop().unwrap_or_default();
            let mut graph = construct(self.grounds.material, calls, spare);
            let constructed = self.now();
            partition(&mut graph, self.partitions);
            self.statistics.construction_ns.add(constructed - begun);
            self.statistics.partitioning_ns.add(self.now() - constructed);
            assert!(self.graphs[number].set(graph).is_ok(), "each graph is built once");
            self.built.fetch_add(1, AcqRel);
        }
    }

    /// Works on a graph until all of it has been executed.
    fn execute(&self, number: usize, worker: usize) {
        let graph = self.graph(number);
        self.inside.fetch_add(1, SeqCst);
        if !graph.has_ended() {
            let begun = self.now();
            let mut waited = 0;
            let mut arena = self.arenas.iter().find_map(Mutex::try_lock).expect("an arena for each worker");
            arena.reset();
            let guard = crossbeam_epoch::pin();
            let mut worker_at = Worker::new(self.grounds, graph, &guard, &arena);
            while !graph.has_ended() {
                if worker_at.work(worker) {
                    continue;
                }
                let before = self.now();
                // Once at least: what there is may be in somebody's hands already.
                for times in 0.. {
                    wait_once(times);
                    if graph.has_ended() || graph.has_messages() {
                        break;
                    }
                }
                waited += self.now() - before;
            }
            self.outcomes.lock().push(worker_at.end());
            self.statistics.execution_ns.add(self.now() - begun - waited);
            self.statistics.communication_ns.add(waited);
        }
        self.inside.fetch_sub(1, SeqCst);
    }

    /// Waits until there is an answer.
    fn wait<R>(&self, answer: impl Fn() -> Option<R>) -> R {
        if let Some(answer) = answer() {
            return answer;
        }
        let begun = self.now();
        for times in 0.. {
            wait_once(times);
            if let Some(answer) = answer() {
                self.statistics.communication_ns.add(self.now() - begun);
                return answer;
            }
        }
        unreachable!("whoever is waited for goes on")
    }
}

/// Others are at work, or what is missing is on its way: mostly a matter of a microsecond.
fn wait_once(times: u32) {
    if times < SPINS && !schedule::is_simulated() {
        std::hint::spin_loop();
    } else {
        schedule::give_way("barrier");
    }
}
