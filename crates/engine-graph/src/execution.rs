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
//! Workers take no locks and never wait for each other before the end of the graph. The call with the lowest
//! timestamp of all that are left is at the head of all its queues, so somebody can always go on.

use crate::composite::InTurn;
use crate::construction::Material;
use crate::graph::{Executable, Graph, NONE, Queue};
use crate::record_action::ActionRunner;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::eager::intake::Outcomes;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::Shared;
use fabius_engine::eager::turn::{Order, Turn};
use fabius_env::schedule;
use fabius_storage::Record;
use fabius_storage::index::prefetch;
use std::sync::atomic::Ordering::AcqRel;

/// Queues between one stage of bringing rows near and the next.
const STRIDE: usize = 4;
/// The same of calls.
const CALL_STRIDE: u32 = 2;

/// What the execution of a graph stands on.
#[derive(Clone, Copy)]
pub struct Grounds<'a> {
    /// What graphs are built from.
    pub material: &'a Material<'a>,
    /// What calls share.
    pub shared: &'a Shared,
    /// The definitions in force.
    pub schema: &'a Schema,
    /// The logged time of the calls.
    pub time_us: i64,
}

/// A thread that executes parts of a graph.
pub struct Worker<'w> {
    graph: &'w Graph<'w>,
    calls: Turn<'w, InTurn>,
    actions: ActionRunner<'w>,
}

impl<'w> Worker<'w> {
    /// A worker with memory for the graph's time.
    pub fn new(grounds: Grounds<'w>, graph: &'w Graph<'w>, guard: &'w Guard, arena: &'w Bump) -> Worker<'w> {
        let Grounds { material, shared, schema, time_us } = grounds;
        Worker {
            graph,
            calls: Turn::new(shared, schema, guard, arena, Order::Logged, time_us, InTurn),
            actions: ActionRunner::new(material, guard, arena, time_us, shared.collect()),
        }
    }

    /// Executes what is executable of the partitions that nobody is at, `first` to begin with; whether there was
    /// anything.
    pub fn work(&mut self, first: usize) -> bool {
        let count = self.graph.partitions.len();
        let mut any = false;
        for partition in (first..first + count).map(|number| &self.graph.partitions[number % count]) {
            let Some(mut begun) = partition.begun.try_lock() else { continue };
            loop {
                let next = match partition.inbox.pop() {
                    Some(message) => message,
                    None if *begun < partition.starts.len() => {
                        *begun += 1;
                        let later = |ahead: usize| partition.starts.get(*begun - 1 + ahead * STRIDE).copied();
                        self.bring_near(|ahead| {
                            later(ahead).filter(|later| matches!(later, Executable::Actions(_)))
                        });
                        partition.starts[*begun - 1]
                    }
                    None => break,
                };
                self.execute(next);
                any = true;
            }
        }
        any
    }

    /// Ends with the graph: gives the outcomes of calls, by their numbers in it.
    pub fn end(self) -> Outcomes {
        self.actions.end();
        self.calls.end()
    }

    /// Asks for the rows of what is executed soon, step by step.
    fn bring_near(&self, later: impl Fn(usize) -> Option<Executable>) {
        let records = |ahead: usize, visit: &dyn Fn(&Record)| {
            if let Some(later) = later(ahead) {
                self.queues(later, |queue| queue.record.into_iter().for_each(visit));
            }
        };
        records(3, &|record| prefetch(record));
        records(2, &|record| prefetch(record.head()));
        records(1, &|record| {
            // What is below is looked at when a version is put on top.
            // SAFETY: linked versions stay readable while the epoch is pinned.
            if let Some(head) = unsafe { record.head().as_ref() } {
                prefetch(head.base());
                prefetch(head.next());
            }
        });
    }

    fn queues(&self, of: Executable, visit: impl FnMut(&Queue<'w>)) {
        let actions = match of {
            Executable::Call(call) => self.graph.actions_of(call),
            Executable::Actions(first) => &self.graph.actions[first as usize..=first as usize],
        };
        actions.iter().map(|action| self.graph.queue_of(action)).for_each(visit);
    }

    fn execute(&mut self, what: Executable) {
        let graph = self.graph;
        let ended = match what {
            Executable::Call(call) => {
                schedule::point("call");
                // Calls that wait for others come in their order, most often.
                self.bring_near(|ahead| {
                    let later = call + ahead as u32 * CALL_STRIDE;
                    graph.calls.get(later as usize).map(|_| Executable::Call(later))
                });
                let node = &graph.calls[call as usize];
                self.calls.run_in_turn(node.seq, &node.call, call);
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
                        ended += 1;
                        (action, node)
                    })
                });
                self.actions.run(graph.queue_of(&graph.actions[first as usize]), actions);
                self.reach(next);
                ended
            }
        };
        graph.open.fetch_sub(ended, AcqRel);
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
