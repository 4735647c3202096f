//! The phases that graphs go through, with a barrier between them (LADS, sections 3.3 and 4.1).
//!
//! ```text
//! worker 0   build graph 0, divide | execute graph 0, write | execute graph 1, write
//! worker 1   build graph 1, divide |    "                   |    "
//!                               barrier                  barrier, promise
//! ```
//!
//! Graphs are built side by side, one worker each, and executed one after the other, all workers together: so
//! conflicts between graphs need no edges.

use crate::construction::{Material, construct};
use crate::execution::Execution;
use crate::graph::Graph;
use crate::partitioning::partition;
use crate::statistics::Statistics;
use bumpalo::Bump;
use fabius_engine::entry::Call;
use fabius_env::{Clock, schedule};
use fabius_value::Seq;
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// So often a worker looks again before it lets the system run others.
const SPINS: u32 = 1 << 8;

/// What a round stands on.
pub struct Grounds<'a> {
    /// What graphs are built from.
    pub material: Material<'a>,
    /// The calls of each graph.
    pub calls: Vec<&'a [(Call<'a>, Seq)]>,
    /// For each partition: memory of its worker.
    pub arenas: &'a [Bump],
    /// For each graph: memory for its keys.
    pub key_arenas: &'a [Bump],
    /// The logged time of the calls.
    pub time_us: i64,
    /// Nobody reads below.
    pub collected: Seq,
    /// Where time goes.
    pub statistics: &'a Statistics,
    /// Measures it.
    pub clock: &'a dyn Clock,
    /// Graphs that are no more, whose memory new ones take.
    pub spare: Mutex<Vec<Graph<'a>>>,
    /// Graphs, as they are built.
    pub graphs: Vec<OnceLock<Graph<'a>>>,
}

// SAFETY: arenas are used by one thread each: that of a graph by the worker that takes its number, that of a
// partition as `Execution` says. The epoch's guard is only a witness that it is pinned.
unsafe impl Sync for Grounds<'_> {}

/// A round in progress.
pub struct Round<'g, 'a> {
    grounds: &'g Grounds<'a>,
    taken: AtomicUsize,
    built: AtomicUsize,
    executions: Vec<OnceLock<Execution<'g, 'a>>>,
    /// Graphs whose execution has begun.
    begun: AtomicUsize,
    over: AtomicBool,
}

impl<'g, 'a> Round<'g, 'a> {
    /// A round of the grounds' graphs.
    pub fn new(grounds: &'g Grounds<'a>) -> Round<'g, 'a> {
        Round {
            grounds,
            taken: AtomicUsize::new(0),
            built: AtomicUsize::new(0),
            executions: grounds.calls.iter().map(|_| OnceLock::new()).collect(),
            begun: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    fn now(&self) -> u64 {
        self.grounds.clock.monotonic_ns()
    }

    /// What a helper does until the round is over.
    pub fn help(&self, worker: usize) {
        self.build();
        let mut next = 0;
        loop {
            let begun = self.wait(|| {
                if self.over.load(Acquire) {
                    Some(0)
                } else {
                    Some(self.begun.load(Acquire)).filter(|n| *n > next)
                }
            });
            if begun == 0 {
                return;
            }
            self.execute(begun - 1, worker);
            next = begun;
        }
    }

    /// What the leader does: everything, with whoever helps. `begin` is told of each graph before it is
    /// executed, `conclude` of its execution after.
    pub fn lead(
        &self,
        begin: &mut dyn FnMut(&Graph<'a>),
        conclude: &mut dyn FnMut(&Graph<'a>, &Execution<'_, 'a>),
    ) {
        struct Over<'r>(&'r AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Release);
            }
        }
        let _over = Over(&self.over);
        self.build();
        let Grounds { graphs, arenas, time_us, .. } = self.grounds;
        self.wait(|| (self.built.load(Acquire) == graphs.len()).then_some(()));
        for (number, graph) in graphs.iter().enumerate() {
            let graph = graph.get().expect("all graphs are built");
            begin(graph);
            let execution = self.executions[number].get_or_init(|| Execution::new(graph, arenas, *time_us));
            self.begun.store(number + 1, Release);
            self.execute(number, 0);
            self.wait(|| execution.is_finished().then_some(()));
            conclude(graph, execution);
        }
    }

    /// Builds and divides graphs that nobody has taken.
    fn build(&self) {
        loop {
            let number = self.taken.fetch_add(1, Relaxed);
            let Some(calls) = self.grounds.calls.get(number) else { return };
            schedule::point("construct");
            let begun = self.now();
            let mut graph = construct(
                &self.grounds.material,
                calls,
                &self.grounds.key_arenas[number],
                self.grounds.spare.lock().pop().unwrap_or_default(),
            );
            let constructed = self.now();
            partition(&mut graph, self.grounds.arenas.len() as u32);
            let statistics = self.grounds.statistics;
            statistics.construction_ns.add(constructed - begun);
            statistics.partitioning_ns.add(self.now() - constructed);
            assert!(self.grounds.graphs[number].set(graph).is_ok(), "each graph is built once");
            self.built.fetch_add(1, AcqRel);
        }
    }

    /// Works on a graph until all of it has been executed, and its records are written or being written.
    fn execute(&self, number: usize, worker: usize) {
        let execution = self.executions[number].get().expect("its execution has begun");
        let begun = self.now();
        let mut waited = 0;
        while !execution.has_ended() {
            if execution.execute(&self.grounds.material, worker) {
                continue;
            }
            let before = self.now();
            // Once at least: what there is may be in somebody's hands already.
            for times in 0.. {
                self.wait_once(times);
                if execution.has_ended() || execution.has_messages() {
                    break;
                }
            }
            waited += self.now() - before;
        }
        while execution.write_records(self.grounds.collected) {}
        let statistics = self.grounds.statistics;
        statistics.execution_ns.add(self.now() - begun - waited);
        statistics.communication_ns.add(waited);
    }

    /// Waits for others at the end of a phase.
    fn wait<T>(&self, ended: impl Fn() -> Option<T>) -> T {
        if let Some(answer) = ended() {
            return answer;
        }
        let begun = self.now();
        for times in 0.. {
            self.wait_once(times);
            if let Some(answer) = ended() {
                self.grounds.statistics.communication_ns.add(self.now() - begun);
                return answer;
            }
        }
        unreachable!("whoever is waited for goes on")
    }

    /// Others are at work, or what is missing is on its way: mostly a matter of a microsecond.
    fn wait_once(&self, times: u32) {
        if times < SPINS && !schedule::is_simulated() {
            std::hint::spin_loop();
        } else {
            schedule::give_way("barrier");
        }
    }
}
