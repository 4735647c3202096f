//! Transaction execution (LADS, section 3.3, algorithm 3).
//!
//! A worker executes whatever of its partition is executable, that is, has no in-edges any more. What was the head of
//! its queue is removed then, and the next in the queue may become executable, perhaps in another partition, whose
//! worker is sent a message:
//!
//! ```text
//! partition 0   queue a: (1) (2) [5] (7)     (independent)  [of a whole call]
//! partition 1   queue b: [5] (8)
//!
//! worker 0      run 1, 2 on a; write a   [5] is at all its heads: run it   7 on a
//! worker 1                                                        \--> message: run 8 on b
//! ```
//!
//! Workers take no locks on records or keys, and never wait for a call before the end of the graph. The call with the
//! lowest timestamp of all that are left is at the head of all its queues, so somebody can always go on. What is left
//! of latches: whoever is at a partition holds its mutex, which others try and go past ([`Partition::begun`]); a call
//! in one piece that inserts rows latches indexes for as long as a key goes in.

use crate::composite::InTurn;
use crate::construction::Material;
use crate::graph::{Action, Executable, Graph, NONE, Partition, Stamped};
use crate::record_action::ActionRunner;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::eager::Ground;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::turn::{Order, Turn};
use fabius_env::schedule;
use fabius_storage::index::prefetch;

/// Queues between one stage of bringing rows near and the next.
const STRIDE: usize = 4;
/// Calls between one stage of bringing rows near and the next.
const CALL_STRIDE: u32 = 2;

/// What the execution of a graph stands on.
#[derive(Clone, Copy)]
pub struct Grounds<'a> {
    /// What graphs are built from.
    pub material: &'a Material<'a>,
    /// Order, log, answers.
    pub ground: &'a Ground,
    /// The definitions in force.
    pub schema: &'a Schema,
    /// The logged time of the calls.
    pub time_us: i64,
}

/// A thread that executes parts of a graph.
pub struct Worker<'w> {
    graph: &'w Graph<'w>,
    ground: &'w Ground,
    guard: &'w Guard,
    calls: Turn<'w, InTurn>,
    actions: ActionRunner<'w>,
}

impl<'w> Worker<'w> {
    /// A worker with memory for the graph's time.
    pub fn new(grounds: Grounds<'w>, graph: &'w Graph<'w>, guard: &'w Guard, arena: &'w Bump) -> Worker<'w> {
        let Grounds { material, ground, schema, time_us } = grounds;
        let shared = &ground.shared;
        Worker {
            graph,
            ground,
            calls: Turn::new(shared, schema, guard, arena, Order::Logged, time_us, InTurn),
            actions: ActionRunner::new(material.decompositions, arena, time_us, shared),
            guard,
        }
    }

    /// Executes what is executable of the partitions that nobody is at, `first` to begin with; how many independent
    /// actions and whole calls that was.
    pub fn work(&mut self, first: usize) -> usize {
        let count = self.graph.partitions.len();
        let mut ended = 0;
        for partition in (first..first + count).map(|number| &self.graph.partitions[number % count]) {
            let Some(mut begun) = partition.begun.try_lock() else { continue };
            while let Some(next) = self.next(partition, &mut begun) {
                ended += self.execute(next);
            }
        }
        ended
    }

    /// Ends with the graph, whose calls have been committed.
    pub fn end(self) {
        self.actions.end(self.ground.shared.collect(), self.guard);
        self.calls.end();
    }

    /// What comes next in a partition of which so much has begun.
    fn next(&self, partition: &Partition, begun: &mut usize) -> Option<Executable> {
        let Some(next) = partition.starts.get(*begun) else { return partition.inbox.pop() };
        self.bring_near(|ahead| match partition.starts.get(*begun + ahead * STRIDE)? {
            Executable::Actions(first) => Some(&self.graph.actions[*first as usize..][..1]),
            Executable::Call(_) => None,
        });
        *begun += 1;
        Some(*next)
    }

    /// Asks for the rows of actions that are executed soon, step by step; for what is written to be this core's alone:
    /// whoever built the graph may have looked at it on another.
    fn bring_near(&self, later: impl Fn(usize) -> Option<&'w [Action]>) {
        let records = |ahead: usize| {
            let queues = later(ahead).unwrap_or_default().iter().map(|action| self.graph.queue_of(action));
            queues.filter_map(|queue| Some((queue.record()?, queue.is_written)))
        };
        for (record, is_written) in records(2) {
            if is_written { record.prefetch_to_write() } else { record.prefetch() }
        }
        for (record, is_written) in records(1) {
            // SAFETY: linked versions stay readable while the epoch is pinned.
            let Some(newest) = (unsafe { record.head().as_ref() }) else { continue };
            if is_written { newest.prefetch_twins() } else { newest.prefetch() }
        }
    }

    /// Executes what is executable, and all that is so behind it in its queue; how much that was.
    fn execute(&mut self, what: Executable) -> usize {
        let graph = self.graph;
        match what {
            Executable::Call(call) => {
                schedule::point("call");
                // Calls that wait for others come in their order, most often.
                self.bring_near(|ahead| {
                    let later = call + ahead as u32 * CALL_STRIDE;
                    graph.calls.get(later as usize).map(|_| graph.actions_of(later))
                });
                let Stamped { call: what, seq, batch } = &graph.calls[call as usize].stamped;
                let place = batch.map_or(0, |(_, place)| place);
                let outcomes = self.calls.run_in_turn(*seq, what, place);
                if let Some((work, _)) = batch {
                    self.ground.end(work, 1, outcomes);
                }
                graph.actions_of(call).iter().for_each(|action| self.reach(action.next));
                1
            }
            Executable::Actions(first) => {
                let mut next = first;
                let mut ended = 0;
                let actions = std::iter::from_fn(|| {
                    let action = graph.actions.get(next as usize)?;
                    let node = &graph.calls[action.call as usize];
                    node.is_independent.then(|| {
                        next = action.next;
                        if let Some(later) = graph.actions.get(next as usize) {
                            prefetch(later);
                        }
                        ended += 1;
                        (action, node)
                    })
                });
                self.actions.run(graph.queue_of(&graph.actions[first as usize]), actions);
                self.reach(next);
                ended
            }
        }
    }

    /// An action has come to the head of its queue.
    fn reach(&self, action: u32) {
        if action != NONE
            && let Some((partition, executable)) = self.graph.reach(action)
        {
            self.graph.partitions[partition as usize].inbox.push(executable);
            schedule::point("message");
        }
    }
}
