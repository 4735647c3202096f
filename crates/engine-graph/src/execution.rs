//! Transaction execution (LADS, section 3.3, algorithm 3).
//!
//! Each partition of the graph is executed by one worker at a time: whoever lends a thread and claims it. A call
//! whose actions are independent is executed in parts, one for each partition that it has actions in, which
//! know nothing of each other. Any other call is executed in one piece, action by action: it goes to the worker
//! of the queue that it comes to next, and waits there for its turn:
//!
//! ```text
//! partition 0   starts: 1, 4, 7     call 1: a | b ->     call 4: d |        call 7 (part): ...
//!                                             |             |
//!               messages               Arrive(1)         Ended(5)
//!                                             v             v
//! partition 1   starts: 2, 3, 5, 7            call 1: c | end -> Ended(1)   call 7 (part): ...
//! ```
//!
//! A worker goes on with whatever is executable. It takes no lock and never waits: what one partition has to
//! know of another comes as a message. A call with the lowest timestamp of all that have not ended is, or
//! will be, at the head of all its queues, so somebody can always go on.
//!
//! An action is done when its call, or its part, has ended, because it may abort until then; so no abort ever
//! cascades (section 3.3.1): parts abort for what all of them know, their arguments and which rows there are.
//! Ending a call disables what it has not come to: the branches not taken (section 4.2.3), and everything
//! behind the action that aborted.

use crate::call_context::{CallContext, Progress};
use crate::construction::Material;
use crate::graph::{ActionState, Graph, NONE};
use crate::overlay::{self, Overlay};
use bumpalo::Bump;
use crossbeam_queue::SegQueue;
use fabius_engine::Ticket;
use fabius_engine::eager::commit;
use fabius_engine::eager::workspace::{Entry, Image, Write};
use fabius_env::schedule;
use fabius_env::sync::Mutex;
use fabius_program::compile::Code;
use fabius_program::context::Stop;
use fabius_program::execute::{self, FrameFor};
use fabius_storage::fold::Retired;
use fabius_storage::index::prefetch;
use fabius_storage::{Record, Table};
use fabius_value::{Error, Key, Seq};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// Calls of one partition that have begun and not ended, at most: few enough that what they have in hand stays
/// in the cache. The oldest call that has not ended is always among them, so somebody can go on.
const OPEN_MAX: usize = 128;
/// Calls between one stage of bringing records near and the next.
const STRIDE: usize = 2;

/// A call that has begun and not ended.
#[derive(Default)]
struct Running<'a> {
    /// The partition where it has begun.
    home: u32,
    progress: Progress<'a>,
    frame: FrameFor<'a, CallContext<'a, 'a>>,
    code: Option<&'a Code>,
}

/// What one worker tells another.
enum Message<'a> {
    /// A call has come to an action of yours.
    Arrive(Box<Running<'a>>),
    /// A call has ended: its actions are done, or disabled.
    Ended(u32),
}

/// What became of a call that did not simply commit.
pub struct Outcome {
    /// The call, by its place in the graph.
    pub call: u32,
    /// Why it aborted, if it did.
    pub abort: Option<Error>,
    /// Its result, if it wants one.
    pub ticket: Option<Arc<Ticket>>,
}

/// What executing a partition leaves for the end of the graph.
#[derive(Default)]
pub struct Left<'a> {
    /// What became of calls.
    pub outcomes: Vec<Outcome>,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that aborted.
    pub aborted: u64,
    /// Index entries that may be wrong.
    pub entries: Vec<Entry<'a>>,
    /// Records that may have no row.
    pub records: Vec<(&'a Arc<Table>, &'a Record)>,
    /// Versions that nobody needs any more.
    pub retired: Retired,
    written: Vec<&'a Overlay<'a>>,
}

/// What the worker of a partition works with.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "calls go from worker to worker in their boxes")]
struct Workplace<'a> {
    executable: Vec<Box<Running<'a>>>,
    parked: HashMap<u32, Box<Running<'a>>>,
    spare: Vec<Box<Running<'a>>>,
    key: Key,
    left: Left<'a>,
}

// SAFETY: as for `Execution`, below.
unsafe impl Send for Workplace<'_> {}

struct Partition<'g, 'a> {
    messages: SegQueue<Message<'a>>,
    starts: &'g [u32],
    arena: &'a Bump,
    /// Calls of `starts` that have begun.
    begun: AtomicUsize,
    /// Calls of `starts` that have ended, wherever.
    ended: AtomicUsize,
    workplace: Mutex<Workplace<'a>>,
}

impl Partition<'_, '_> {
    /// Whether another call may begin.
    #[inline]
    fn may_begin(&self) -> bool {
        let begun = self.begun.load(Relaxed);
        begun < self.starts.len() && begun - self.ended.load(Relaxed).min(begun) < OPEN_MAX
    }
}

/// The execution of one graph.
pub struct Execution<'g, 'a> {
    graph: &'g Graph<'a>,
    partitions: Vec<Partition<'g, 'a>>,
    time_us: i64,
    /// Calls, and parts of calls, that have not ended.
    open: AtomicUsize,
    /// Partitions whose records somebody writes.
    written: AtomicUsize,
    /// Partitions whose records have been written.
    finished: AtomicUsize,
}

// SAFETY: what is not `Sync` of its own is `Bump`, overlays and the epoch's guard. An arena is used by the
// worker of its partition alone, under the workplace's mutex. An overlay is used by the call that has the turn
// at its record, and turns go from worker to worker by messages. The guard is a witness that the epoch is
// pinned: only its own thread does more with it.
unsafe impl Sync for Execution<'_, '_> {}
// SAFETY: as above.
unsafe impl Send for Execution<'_, '_> {}

impl<'g, 'a> Execution<'g, 'a> {
    /// Prepares the execution of a graph, with memory for each partition.
    pub fn new(graph: &'g Graph<'a>, arenas: &'a [Bump], time_us: i64) -> Execution<'g, 'a> {
        let partitions: Vec<Partition<'g, 'a>> = arenas
            .iter()
            .zip(&graph.starts)
            .map(|(arena, starts)| Partition {
                messages: SegQueue::new(),
                starts,
                arena,
                begun: AtomicUsize::new(0),
                ended: AtomicUsize::new(0),
                workplace: Mutex::default(),
            })
            .collect();
        Execution {
            graph,
            partitions,
            time_us,
            open: AtomicUsize::new(graph.starts.iter().map(Vec::len).sum()),
            written: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
        }
    }

    /// Whether all calls have ended.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.open.load(Acquire) == 0
    }

    /// Whether some call waits for a worker of some partition.
    pub fn has_messages(&self) -> bool {
        self.partitions.iter().any(|partition| !partition.messages.is_empty() || partition.may_begin())
    }

    /// Whether all records have been written too.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Acquire) == self.partitions.len()
    }

    /// Executes what is executable of some partition, `first` to begin with, that nobody is at; whether there
    /// was anything.
    pub fn execute(&self, material: &Material<'a>, first: usize) -> bool {
        let count = self.partitions.len();
        let guard = crossbeam_epoch::pin();
        let mut any = false;
        for number in (first..first + count).map(|number| number % count) {
            let partition = &self.partitions[number];
            if let Some(mut workplace) = partition.workplace.try_lock() {
                let worker =
                    Worker { execution: self, material, partition, number: number as u32, own_guard: &guard };
                any |= worker.work(&mut workplace);
            }
        }
        any
    }

    /// Writes the records of a partition that nobody writes yet (section 4.2.2); whether there was one.
    pub fn write_records(&self, collected: Seq) -> bool {
        let Some(partition) = self.partitions.get(self.written.fetch_add(1, Relaxed)) else { return false };
        let guard = crossbeam_epoch::pin();
        let mut workplace = partition.workplace.lock();
        let left = &mut workplace.left;
        for overlay in std::mem::take(&mut left.written) {
            let Overlay { table, record, .. } = *overlay;
            let write = Write { table, record, image: overlay.image() };
            overlay::forget(record);
            // SAFETY: nobody else writes the records of this partition's calls; this engine leaves nothing
            // unsettled.
            unsafe { commit::put(&write, overlay.seq(), collected, &mut left.retired) };
            if matches!(write.image, Image::Gone) {
                left.records.push((table, record));
            }
        }
        left.retired.hand_over(&guard);
        drop(workplace);
        self.finished.fetch_add(1, AcqRel);
        true
    }

    /// What the partitions leave; once, at the end.
    pub fn take_left(&self) -> impl Iterator<Item = Left<'a>> {
        self.partitions.iter().map(|partition| std::mem::take(&mut partition.workplace.lock().left))
    }
}

/// A thread at a partition.
struct Worker<'w, 'a> {
    execution: &'w Execution<'w, 'a>,
    material: &'w Material<'a>,
    partition: &'w Partition<'w, 'a>,
    number: u32,
    own_guard: &'w crossbeam_epoch::Guard,
}

impl<'a> Worker<'_, 'a> {
    /// Goes on until nothing is executable.
    fn work(&self, place: &mut Workplace<'a>) -> bool {
        let mut any = false;
        loop {
            if let Some(message) = self.partition.messages.pop() {
                match message {
                    Message::Ended(call) => {
                        self.end_own_actions(place, call);
                    }
                    Message::Arrive(running) => self.arrive(place, running),
                }
            } else if let Some(running) = place.executable.pop() {
                self.go_on(place, running);
            } else if self.partition.may_begin() {
                let begun = self.partition.begun.load(Relaxed);
                self.partition.begun.store(begun + 1, Relaxed);
                self.bring_near(begun);
                self.begin(place, self.partition.starts[begun]);
            } else {
                return any;
            }
            any = true;
        }
    }

    /// Asks for the records of calls that begin soon.
    fn bring_near(&self, begun: usize) {
        let graph = self.execution.graph;
        let records = |ahead: usize| {
            let call = self.partition.starts.get(begun + ahead).copied();
            let actions = call.map_or(0..0, |call| graph.actions_of(call));
            let queues = actions.map(|action| graph.queue_of(action));
            queues.filter(|queue| queue.partition == self.number).filter_map(|queue| queue.record)
        };
        records(2 * STRIDE).for_each(|record| prefetch(record.head()));
        for record in records(STRIDE) {
            // SAFETY: linked versions stay readable while the epoch is pinned.
            if let Some(head) = unsafe { record.head().as_ref() } {
                prefetch(head.base());
            }
        }
    }

    fn begin(&self, place: &mut Workplace<'a>, call: u32) {
        schedule::point("call");
        let node = &self.execution.graph.calls[call as usize];
        if node.disabled.load(Acquire) {
            self.end_actions(place, call, self.number);
            return;
        }
        let mut running = place.spare.pop().unwrap_or_default();
        running.home = self.number;
        running.progress.begin(call, node.is_divisible);
        let started = self.material.definitions.procedure(node.call.procedure).and_then(|procedure| {
            running.code = Some(&procedure.whole);
            running.frame.start(&procedure.whole, node.call.arguments, self.partition.arena)
        });
        match started {
            Ok(()) => self.go_on(place, running),
            Err(error) => self.end(place, running, Some(error)),
        }
    }

    /// A call has come to an action of this partition.
    fn arrive(&self, place: &mut Workplace<'a>, running: Box<Running<'a>>) {
        let graph = self.execution.graph;
        let wanted = running.progress.wanted;
        let action = &graph.actions[wanted as usize];
        let turn = &graph.turns[graph.queues[action.queue as usize].turn as usize];
        if turn.head.load(Relaxed) == wanted {
            turn.give(action.call);
            self.go_on(place, running);
        } else {
            action.set(ActionState::Parked);
            place.parked.insert(wanted, running);
        }
    }

    /// Executes a call up to an action whose turn has not come, or to its end.
    fn go_on(&self, place: &mut Workplace<'a>, mut running: Box<Running<'a>>) {
        let Running { progress, frame, code, .. } = &mut *running;
        let code = code.expect("a call that has begun has its code");
        let mut context = CallContext {
            graph: self.execution.graph,
            material: self.material,
            own_guard: self.own_guard,
            arena: self.partition.arena,
            partition: self.number,
            time_us: self.execution.time_us,
            key: &mut place.key,
            progress,
        };
        match execute::run(frame, code, &mut context, self.partition.arena) {
            Ok(()) => self.end(place, running, None),
            Err(Stop::Abort(error)) => self.end(place, running, Some(error)),
            Err(Stop::Blocked) => self.send(place, running),
            Err(Stop::Restart) => unreachable!("nothing makes a call give up"),
        }
    }

    /// Sends a call to the worker of the action that it waits for.
    fn send(&self, place: &mut Workplace<'a>, running: Box<Running<'a>>) {
        let partition = self.execution.graph.queue_of(running.progress.wanted).partition;
        if partition == self.number {
            self.arrive(place, running);
        } else {
            self.execution.partitions[partition as usize].messages.push(Message::Arrive(running));
            schedule::point("arrive");
        }
    }

    /// Ends a call: what it has written counts from now on, or never.
    fn end(&self, place: &mut Workplace<'a>, mut running: Box<Running<'a>>, abort: Option<Error>) {
        let call = running.progress.call;
        let node = &self.execution.graph.calls[call as usize];
        let workspace = &mut running.progress.workspace;
        let left = &mut place.left;
        left.entries.append(&mut workspace.entered);
        left.records.append(&mut workspace.touched);
        if abort.is_none() {
            left.entries.append(&mut workspace.left);
            for write in &workspace.writes {
                // SAFETY: the call has its turn at every record that it has written.
                let new = unsafe {
                    overlay::write(write.table, write.record, write.image, node.seq, self.partition.arena)
                };
                left.written.extend(new);
            }
        }
        workspace.clear();
        let home = running.home;
        if !node.is_divisible || self.speaks_for(call) {
            self.answer(left, &running, abort);
        }
        place.spare.push(running);
        self.end_actions(place, call, home);
    }

    /// Whether what this partition finds out about a call that is executed in parts counts for all of it.
    fn speaks_for(&self, call: u32) -> bool {
        let mut actions = self.execution.graph.actions_of(call);
        actions.next().is_none_or(|first| self.execution.graph.queue_of(first).partition == self.number)
    }

    /// Notes what became of a call.
    fn answer(&self, left: &mut Left<'a>, running: &Running<'a>, abort: Option<Error>) {
        let call = running.progress.call;
        let node = &self.execution.graph.calls[call as usize];
        match abort {
            None => left.committed += 1,
            Some(_) => left.aborted += 1,
        }
        let ticket = (node.call.wants_result && abort.is_none()).then(|| {
            let results = running.code.and_then(|code| running.frame.results(code));
            Arc::new(Ticket::ready(Ok(results.unwrap_or_default())))
        });
        if abort.is_some() || ticket.is_some() {
            left.outcomes.push(Outcome { call, abort, ticket });
        }
    }

    /// Says that a call, or its part, has ended: its actions are done, or disabled.
    fn end_actions(&self, place: &mut Workplace<'a>, call: u32, home: u32) {
        let elsewhere = self.end_own_actions(place, call);
        if !self.execution.graph.calls[call as usize].is_divisible {
            let partitions = self.execution.partitions.iter().enumerate();
            for (_, partition) in partitions.filter(|(number, _)| elsewhere & 1 << number != 0) {
                partition.messages.push(Message::Ended(call));
            }
        }
        self.execution.partitions[home as usize].ended.fetch_add(1, AcqRel);
        self.execution.open.fetch_sub(1, AcqRel);
    }

    /// A call's actions in this partition are done; which others it has actions in, as bits.
    fn end_own_actions(&self, place: &mut Workplace<'a>, call: u32) -> u64 {
        let graph = self.execution.graph;
        let mut elsewhere = 0;
        for action in graph.actions_of(call) {
            let partition = graph.queue_of(action).partition;
            if partition == self.number {
                self.end_action(place, action);
            } else {
                elsewhere |= 1 << partition;
            }
        }
        elsewhere
    }

    /// An action of this partition is done: the next of its queue may be executed.
    fn end_action(&self, place: &mut Workplace<'a>, action: u32) {
        let graph = self.execution.graph;
        let ended = &graph.actions[action as usize];
        let turn = &graph.turns[graph.queues[ended.queue as usize].turn as usize];
        if turn.head.load(Relaxed) != action {
            ended.set(ActionState::Done);
            return;
        }
        let mut head = ended.next;
        while head != NONE && graph.actions[head as usize].is(ActionState::Done) {
            head = graph.actions[head as usize].next;
        }
        turn.head.store(head, Relaxed);
        if head != NONE && graph.actions[head as usize].is(ActionState::Parked) {
            turn.give(graph.actions[head as usize].call);
            let running = place.parked.remove(&head).expect("a parked action has its call");
            place.executable.push(running);
        }
    }
}
