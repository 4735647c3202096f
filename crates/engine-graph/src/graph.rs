//! The dependency graph of some calls (LADS, section 3.1).
//!
//! A vertex is a record action: a call's turn at a record (or at a coarser part of a table). Temporal
//! dependencies are the order of a record's *action queue*, in timestamp order; logical dependencies are the
//! order in which a call's program comes to its records.
//!
//! ```text
//!            accounts[1003]   accounts[1005]        queue = what is partitioned
//! call 2          (2) ---------->  (2)              --> logical
//! call 6          (6)               |               |   temporal
//! call 8           v (8) --------> (8)
//! ```
//!
//! Once it has been divided ([`crate::partitioning`]) only the [`Turn`]s of its queues and the states of its
//! actions change, and only the worker that executes a queue's partition changes them.

use fabius_engine::entry::Call;
use fabius_program::execute::emptied;
use fabius_storage::Record;
use fabius_value::{Seq, TableId};
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32,
    Ordering::{Relaxed, Release},
};

/// No action, or no call.
pub const NONE: u32 = u32::MAX;

/// A call of the graph.
pub struct CallNode<'a> {
    /// What is called.
    pub call: Call<'a>,
    /// Its timestamp.
    pub seq: Seq,
    /// Its actions begin here, and end where the next call's begin.
    pub first_action: u32,
    /// Whether its actions are independent: there are no logical dependencies among them.
    pub is_divisible: bool,
    /// It repeats an earlier call, and has nothing to do.
    pub disabled: AtomicBool,
}

/// What is known of an action while its queue is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ActionState {
    /// Nothing yet.
    Waiting,
    /// Its call has come to it, before its turn.
    Parked,
    /// Executed, or disabled.
    Done,
}

/// A vertex: a call's turn at a queue.
pub struct Action {
    /// The call.
    pub call: u32,
    /// The queue.
    pub queue: u32,
    /// The next action of the queue.
    pub next: u32,
    state: AtomicU8,
}

impl Action {
    /// A new action at the end of its queue.
    pub fn new(call: u32, queue: u32) -> Action {
        Action { call, queue, next: NONE, state: AtomicU8::new(ActionState::Waiting as u8) }
    }

    /// What is known of it (to the queue's worker).
    #[inline]
    pub fn is(&self, state: ActionState) -> bool {
        self.state.load(Relaxed) == state as u8
    }

    /// Notes it (the queue's worker only).
    #[inline]
    pub fn set(&self, state: ActionState) {
        self.state.store(state as u8, Relaxed);
    }
}

/// A record's action queue, or that of a coarser part of a table.
pub struct Queue<'a> {
    /// Of the table and the key.
    pub hash: u64,
    /// The table.
    pub table: TableId,
    /// The leading columns of the primary key, encoded.
    pub key: &'a [u8],
    /// The record, if the key is whole and there was one when the graph was built; of a table that is still:
    /// if there was a row.
    pub record: Option<&'a Record>,
    /// The first action.
    pub first: u32,
    /// The last action.
    pub last: u32,
    /// How many actions.
    pub weight: u32,
    /// Who executes it.
    pub partition: u32,
    /// Its place in [`Graph::turns`].
    pub turn: u32,
}

/// Whose turn it is at a queue. Those of one partition are next to each other, away from what others write.
pub struct Turn {
    /// The oldest action that is not done (the queue's worker only).
    pub head: AtomicU32,
    holder: AtomicU32,
}

impl Turn {
    /// The turn of a queue's first action.
    pub fn new(first: u32) -> Turn {
        Turn { head: AtomicU32::new(first), holder: AtomicU32::new(NONE) }
    }

    /// Whether it is this call's turn, and the call knows. Only the call's own answer means anything.
    #[inline]
    pub fn is_held_by(&self, call: u32) -> bool {
        self.holder.load(Relaxed) == call
    }

    /// Gives the turn to the call of the head (the queue's worker only).
    #[inline]
    pub fn give(&self, call: u32) {
        self.holder.store(call, Relaxed);
    }
}

/// The queues of a graph by table and key: open addressing, at most half full.
#[derive(Default)]
pub struct QueueMap {
    slots: Vec<u32>,
}

impl QueueMap {
    /// The same without queues, with room for so many.
    fn emptied(mut self, queues: usize) -> QueueMap {
        self.slots.clear();
        self.slots.resize((queues * 2).next_power_of_two().max(16), NONE);
        self
    }

    /// The slot of a key: taken by its queue, or free.
    #[inline]
    pub fn slot(&self, queues: &[Queue<'_>], hash: u64, table: TableId, key: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let queue = self.slots[at];
            if queue == NONE {
                return at;
            }
            let queue = &queues[queue as usize];
            if queue.hash == hash && queue.table == table && queue.key == key {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The queue in a slot, or [`NONE`].
    #[inline]
    pub fn get(&self, slot: usize) -> u32 {
        self.slots[slot]
    }

    /// Puts a queue into a free slot, and makes room for the next.
    pub fn put(&mut self, slot: usize, queue: u32, queues: &[Queue<'_>]) {
        self.slots[slot] = queue;
        if queues.len() * 2 < self.slots.len() {
            return;
        }
        let mask = self.slots.len() * 2 - 1;
        self.slots.clear();
        self.slots.resize(mask + 1, NONE);
        for (number, queue) in queues.iter().enumerate() {
            let mut at = queue.hash as usize & mask;
            while self.slots[at] != NONE {
                at = (at + 1) & mask;
            }
            self.slots[at] = number as u32;
        }
    }
}

/// The dependency graph of consecutive calls.
#[derive(Default)]
pub struct Graph<'a> {
    /// Calls in timestamp order.
    pub calls: Vec<CallNode<'a>>,
    /// Actions, call by call.
    pub actions: Vec<Action>,
    /// Action queues.
    pub queues: Vec<Queue<'a>>,
    /// The queues by key.
    pub map: QueueMap,
    /// The queues' turns, partition by partition.
    pub turns: Vec<Turn>,
    /// By partition: calls that begin there, in timestamp order.
    pub starts: Vec<Vec<u32>>,
}

impl Graph<'_> {
    /// A graph without calls, in the memory of one that is no more: fresh memory is dear.
    pub fn emptied<'b>(self, calls: usize) -> Graph<'b> {
        Graph {
            calls: emptied(self.calls),
            actions: emptied(self.actions),
            queues: emptied(self.queues),
            map: self.map.emptied(calls * 8),
            turns: emptied(self.turns),
            starts: self.starts,
        }
    }
}

impl<'a> Graph<'a> {
    /// The actions of a call.
    #[inline]
    pub fn actions_of(&self, call: u32) -> std::ops::Range<u32> {
        let end =
            self.calls.get(call as usize + 1).map_or(self.actions.len() as u32, |next| next.first_action);
        self.calls[call as usize].first_action..end
    }

    /// The queue of an action.
    #[inline]
    pub fn queue_of(&self, action: u32) -> &Queue<'a> {
        &self.queues[self.actions[action as usize].queue as usize]
    }

    /// The seq of the last call.
    pub fn last_seq(&self) -> Seq {
        self.calls.last().expect("a graph has calls").seq
    }

    /// Says that a call repeats an earlier one.
    pub fn disable(&self, call: usize) {
        self.calls[call].disabled.store(true, Release);
    }
}

/// The hash of a queue's table and key.
#[inline]
pub fn queue_hash(table: TableId, key_hash: u64) -> u64 {
    key_hash ^ u64::from(table.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
