//! The dependency graph of some calls (LADS, section 3.1).
//!
//! A vertex is a record action: what a call does to a record (or to a coarser part of a table). Temporal
//! dependencies are the order of a record's *action queue*, in timestamp order. Logical dependencies are those between
//! the actions of a call. Without them its actions are *independent*: each is executed when its own turn comes.
//! *Dependent* ones wait for others too. A call that is not taken apart is executed *whole*, at the head of all its
//! queues.
//!
//! ```text
//!            accounts[1003]   accounts[1005]        queue = what is partitioned
//! call 2          (2) ---------->  (2)              --> logical
//! call 6          (6)               |               |   temporal
//! call 8           v (8) --------> (8)
//! ```

use crate::handed::Handed;
use crate::range::{Ranges, StretchId};
use crate::standing::{Next, Standing};
use crate::turns::Turns;
use crossbeam_queue::SegQueue;
use fabius_engine::eager::intake::Work;
use fabius_engine::entry::Call;
use fabius_env::sync::Mutex;
use fabius_program::execute::emptied;
use fabius_storage::{Record, Table};
use fabius_value::{ColumnMask, Seq};
use hashbrown::HashTable;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire},
};
use std::sync::{Arc, OnceLock};

/// No action, or no queue.
pub const NONE: u32 = u32::MAX;

/// A call that has its timestamp.
#[derive(Clone, Copy)]
pub struct Stamped<'a> {
    /// What is called.
    pub call: Call<'a>,
    /// The call's timestamp.
    pub seq: Seq,
    /// The time that it was logged with, in microseconds since 1970.
    pub time_us: i64,
    /// Who has handed it in, and its place there; nobody if it comes from the log.
    pub batch: Option<(&'a Arc<Work>, u32)>,
}

/// How a call is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Action by action, in any order.
    Independent,
    /// Action by action, each after those that it depends on.
    Dependent,
    /// In one piece.
    Whole,
}

/// A call of the graph.
pub struct CallNode<'a> {
    /// The call.
    pub stamped: Stamped<'a>,
    /// The place of the call's first action; its actions end where the next call's begin.
    pub first_action: u32,
    /// How it is executed.
    pub kind: Kind,
    /// The partition where it is executed, if it is executed in one piece.
    pub home: u32,
    /// Of a whole call, queues at whose head it is not yet; of a dependent one that wants its result, actions that have
    /// not left their queues.
    pub waits: AtomicU32,
    /// The place of its first action's standing, if it is dependent.
    pub first_standing: u32,
    /// The place of the first value that its actions hand over.
    pub first_handed: u32,
    /// The place of its layout, if it is dependent and its actions have turns,
    pub first_layout: u32,
    /// and that of the turns of its first action.
    pub first_turns: u32,
    /// Where the scalars behind the lists begin among the bytes of its arguments.
    pub behind: u32,
    /// Whether whoever has handed it in knows what has become of it.
    pub is_answered: AtomicBool,
}

impl<'a> CallNode<'a> {
    /// A call that has no actions yet.
    pub fn new(stamped: Stamped<'a>, kind: Kind) -> CallNode<'a> {
        CallNode {
            stamped,
            first_action: 0,
            kind,
            home: 0,
            waits: AtomicU32::new(0),
            first_standing: 0,
            first_handed: 0,
            first_layout: 0,
            first_turns: 0,
            behind: 0,
            is_answered: AtomicBool::new(false),
        }
    }
}

/// A vertex: a call's turn at a queue.
pub struct Action {
    /// The call.
    pub call: u32,
    /// The queue.
    pub queue: u32,
    /// The next action of the queue.
    pub next: u32,
    /// Which of its call's actions it is, if that depends on others; otherwise 0.
    pub slice: u16,
    /// The list among the parameters whose element it is about; `u16::MAX` if it is about none.
    pub list: u16,
    /// Where the element begins among the bytes of the arguments.
    pub begin: u32,
}

impl Action {
    /// The element of the call's arguments that it is about: of which list, and where it begins among the bytes.
    #[inline]
    pub fn element(&self) -> Option<(u16, u32)> {
        (self.list != u16::MAX).then_some((self.list, self.begin))
    }
}

/// A record's action queue; or that of a coarser part of a table, or of an idempotency key.
pub struct Queue<'a> {
    /// Of the table and the key.
    pub hash: u64,
    /// The table; none has idempotency keys.
    pub table: Option<&'a Arc<Table>>,
    /// What its actions are about.
    pub subject: Subject<'a>,
    /// The first action.
    pub first: u32,
    /// The last action: L(r) of algorithm 1.
    pub last: u32,
    /// The first eight bytes of the key, which tell enough of where it is along the range of keys.
    pub place: u64,
    /// How many actions.
    pub weight: u32,
    /// Where it is executed.
    pub partition: u32,
    /// Whether an action writes the record that is not part of a whole call.
    pub is_written: bool,
    /// The stretch of a range that it is in, if it is in any.
    pub stretch: Option<StretchId>,
}

/// What actions of a queue have written while later ones are waited for.
#[derive(Default)]
pub struct Unwritten {
    /// Values for the record.
    pub values: Kept,
    /// Values that the action at the head holds until its call has been decided.
    pub held: Kept,
}

/// Values of some columns.
#[derive(Default)]
pub struct Kept {
    /// Which columns.
    pub columns: ColumnMask,
    /// Their values, in ascending order of columns.
    pub values: Vec<Handed>,
    /// Whether the row is there, if that has changed.
    pub is_there: Option<bool>,
    /// Who has written last.
    pub writer: Seq,
}

/// What the actions of a queue are about.
pub enum Subject<'a> {
    /// A record: the key is whole, and there was a row when the graph was built, or rows of the table may go.
    Record(&'a Record),
    /// The leading columns of a primary key, encoded; or an idempotency key.
    Key(Box<[u8]>),
}

impl<'a> Queue<'a> {
    /// The record, if it is known.
    #[inline]
    pub fn record(&self) -> Option<&'a Record> {
        match self.subject {
            Subject::Record(record) => Some(record),
            Subject::Key(_) => None,
        }
    }

    /// The leading columns of the primary key, encoded.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match &self.subject {
            Subject::Record(record) => record.key(),
            Subject::Key(key) => key,
        }
    }

    /// Whether it is that of this table and key.
    #[inline]
    pub fn is_of(&self, table: Option<&Arc<Table>>, key: &[u8]) -> bool {
        self.table.map(Arc::as_ptr) == table.map(Arc::as_ptr) && self.key() == key
    }
}

/// What can be executed at once: nothing that it depends on is left.
#[derive(Clone, Copy, Debug)]
pub enum Executable {
    /// A call in one piece.
    Call(u32),
    /// A queue from this action on, up to the first that waits for others.
    Actions(u32),
    /// A queue from this action on, which writes what it holds.
    Write(u32),
    /// A queue from this action on, which comes to nothing.
    Leave(u32),
}

/// What has been written in queues, by their numbers and hashes.
pub type UnwrittenByQueue = HashTable<(u32, Box<Unwritten>)>;

/// How far the execution of a partition is.
#[derive(Default)]
pub struct Progress {
    /// How much of what is executable from the beginning has begun.
    pub begun: usize,
    /// What has been written that is not in the records yet.
    pub unwritten: UnwrittenByQueue,
}

/// A part of the graph that one worker at a time executes.
#[derive(Default)]
pub struct Partition {
    /// What is executable from the beginning.
    pub starts: Vec<Executable>,
    /// How far it is; whoever holds this executes the partition.
    pub progress: Mutex<Progress>,
    /// What has become executable, as messages.
    pub inbox: SegQueue<Executable>,
}

/// The dependency graph of consecutive calls.
#[derive(Default)]
pub struct Graph<'a> {
    /// Calls in timestamp order.
    pub calls: Vec<CallNode<'a>>,
    /// Actions, call by call.
    pub actions: Vec<Action>,
    /// How far dependent actions are, call by call.
    pub standings: Vec<Standing>,
    /// What dependent actions hand over, call by call.
    pub handed: Vec<OnceLock<Handed>>,
    /// Layouts of dependent calls whose actions have turns.
    pub layouts: Vec<u32>,
    /// How far the turns are, of all actions of such calls.
    pub turns: Vec<Turns>,
    /// Action queues.
    pub queues: Vec<Queue<'a>>,
    /// The queues by table and key; of those of a range's stretches the last.
    pub map: HashTable<u32>,
    /// The ranges that coarse actions have their turns at, where records in them have queues too.
    pub ranges: Ranges<'a>,
    /// What it has been divided into.
    pub partitions: Vec<Partition>,
    /// Actions of calls that are taken apart, and whole calls, that have not ended.
    pub open: AtomicUsize,
}

impl<'a> Graph<'a> {
    /// A graph without calls, in the memory of one that is no more: fresh memory is dear.
    pub fn emptied<'b>(mut self) -> Graph<'b> {
        self.map.clear();
        for partition in &mut self.partitions {
            partition.starts.clear();
            let mut progress = partition.progress.lock();
            progress.begun = 0;
            progress.unwritten.clear();
        }
        Graph {
            calls: emptied(self.calls),
            actions: emptied(self.actions),
            standings: emptied(self.standings),
            handed: emptied(self.handed),
            layouts: emptied(self.layouts),
            turns: emptied(self.turns),
            queues: emptied(self.queues),
            map: self.map,
            ranges: self.ranges.emptied(),
            partitions: self.partitions,
            open: AtomicUsize::new(0),
        }
    }

    /// The queues that can be executed when a queue has ended, since their stretch of a range begins by that.
    pub fn follow(&self, ended: u32) -> impl Iterator<Item = &Queue<'a>> {
        let stretch = self.queues[ended as usize].stretch;
        let begun = stretch.into_iter().flat_map(|stretch| self.ranges.end(stretch));
        begun.map(|number| &self.queues[number as usize])
    }

    /// The actions of a call.
    #[inline]
    pub fn actions_of(&self, call: u32) -> &[Action] {
        let end =
            self.calls.get(call as usize + 1).map_or(self.actions.len(), |next| next.first_action as usize);
        &self.actions[self.calls[call as usize].first_action as usize..end]
    }

    /// The queue of an action.
    #[inline]
    pub fn queue_of(&self, action: &Action) -> &Queue<'a> {
        &self.queues[action.queue as usize]
    }

    /// The action, if there is one, has come to the head of its queue: gives what becomes executable by that, and in
    /// which partition.
    #[inline]
    pub fn reach(&self, action: u32) -> Option<(u32, Executable)> {
        let at = self.actions.get(action as usize)?;
        let node = &self.calls[at.call as usize];
        let next = match node.kind {
            Kind::Independent => Next::Run,
            Kind::Dependent => self.standing(node, action - node.first_action).reach(),
            Kind::Whole => {
                let is_last = node.waits.fetch_sub(1, AcqRel) == 1;
                return is_last.then_some((node.home, Executable::Call(at.call)));
            }
        };
        let executable = match next {
            Next::Run => Executable::Actions(action),
            Next::Leave => Executable::Leave(action),
            Next::Nothing | Next::End => return None,
        };
        Some((self.queue_of(at).partition, executable))
    }

    /// How far a dependent call's action is, by its number in the call.
    #[inline]
    pub fn standing(&self, node: &CallNode<'_>, number: u32) -> &Standing {
        &self.standings[(node.first_standing + number) as usize]
    }

    /// How far the turns of a dependent call's action are.
    #[inline]
    pub fn turns_of(&self, node: &CallNode<'_>, action: u16) -> &Turns {
        &self.turns[(node.first_turns + u32::from(action)) as usize]
    }

    /// So many actions of calls that are taken apart, and whole calls, have ended; whether those were the last.
    pub fn end(&self, count: usize) -> bool {
        self.open.fetch_sub(count, AcqRel) == count
    }

    /// Whether all of it has been executed.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.open.load(Acquire) == 0
    }

    /// Whether something has become executable that no worker has taken yet.
    pub fn has_messages(&self) -> bool {
        self.partitions.iter().any(|partition| !partition.inbox.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::{queue_of, with_graph};
    use std::sync::atomic::Ordering::Relaxed;

    /// Goal: a call in one piece is executable once, when the last of its actions is at the head of its queue; an
    /// independent action is when its own is.
    #[test]
    fn a_call_waits_for_all_its_heads() {
        with_graph(3, &[("move", &[0, 1, 2]), ("set", &[0, 1])], |graph| {
            let count = graph.actions_of(0).len() as u32;
            graph.calls[0].waits.store(count, Relaxed);
            graph.calls[0].home = 7;
            assert!(graph.reach(0).is_none() && graph.reach(2).is_none());
            assert!(matches!(graph.reach(1), Some((7, Executable::Call(0)))));
            let behind =
                graph.actions[graph.queues[queue_of(graph, 1).expect("it has one")].first as usize].next;
            assert!(matches!(graph.reach(behind), Some((0, Executable::Actions(at))) if at == behind));
            assert!(graph.reach(NONE).is_none(), "nothing is behind the last");
        });
    }
}
