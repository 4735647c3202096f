//! The local lock table of a logical partition: only its owner looks at it, so it needs no latch (DORA;
//! LADS, sections 2.2 and 5.4).
//!
//! ```text
//! entered: 3 actions        records   17: exclusive [waits: exclusive, shared]
//! queue: [whole] [records]            42: shared, shared
//! ```
//!
//! An action demands some records, each shared or exclusively, or the whole partition (a scan, a new row,
//! keys that are not known before). Whoever demands the whole waits until no action is inside, and whoever comes
//! behind waits for it. Requests come in the order of dispatch, and no lock is granted out of that order,
//! so the oldest call that has not ended lacks no lock: there is no deadlock.

use crate::flow::{Demand, Flow};
use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// An action: a call, and which of its demands.
#[derive(Clone)]
pub struct Action {
    /// The call.
    pub flow: Arc<Flow>,
    /// The place of the demand among those of the call.
    pub number: usize,
}

impl Action {
    fn demand(&self) -> &Demand {
        self.flow.demand(self.number)
    }
}

/// The locks of one partition.
#[derive(Default)]
pub struct LockTable {
    /// Actions on records that were let in and have not completed.
    entered: usize,
    /// Whether an action has the whole partition.
    is_whole: bool,
    /// Actions that were not let in, in order.
    queue: VecDeque<Action>,
    records: HashMap<u64, RecordLock, BuildHasherDefault<AsIs>>,
}

#[derive(Default)]
struct RecordLock {
    shared: u32,
    is_exclusive: bool,
    /// Calls that wait, in order, and whether exclusively.
    queue: VecDeque<(Arc<Flow>, bool)>,
}

impl RecordLock {
    fn take(&mut self, exclusively: bool) -> bool {
        if self.is_exclusive || exclusively && self.shared > 0 {
            return false;
        }
        if exclusively {
            self.is_exclusive = true;
        } else {
            self.shared += 1;
        }
        true
    }
}

impl LockTable {
    /// Requests what an action demands; `granted` is told of the call at each grant.
    pub fn request(&mut self, action: Action, granted: &mut impl FnMut(&Arc<Flow>)) {
        if self.is_whole || !self.queue.is_empty() || !self.lets_in(&action) {
            self.queue.push_back(action);
        } else {
            self.enter(&action, granted);
        }
    }

    fn lets_in(&self, action: &Action) -> bool {
        !self.is_whole && (self.entered == 0 || matches!(action.demand(), Demand::Records(_)))
    }

    fn enter(&mut self, action: &Action, granted: &mut impl FnMut(&Arc<Flow>)) {
        match action.demand() {
            Demand::Whole => self.is_whole = true,
            Demand::Records(records) => {
                self.entered += 1;
                for (hash, exclusively) in records {
                    let lock = self.records.entry(*hash).or_default();
                    if lock.queue.is_empty() && lock.take(*exclusively) {
                        granted(&action.flow);
                    } else {
                        lock.queue.push_back((action.flow.clone(), *exclusively));
                    }
                }
            }
        }
        granted(&action.flow);
    }

    /// Releases what an action was granted, because its call has completed; `granted` as above.
    pub fn release(&mut self, action: &Action, granted: &mut impl FnMut(&Arc<Flow>)) {
        match action.demand() {
            Demand::Whole => self.is_whole = false,
            Demand::Records(records) => {
                self.entered -= 1;
                records.iter().for_each(|(hash, exclusively)| self.give_back(*hash, *exclusively, granted));
            }
        }
        while let Some(action) = self.queue.front().filter(|action| self.lets_in(action)).cloned() {
            self.queue.pop_front();
            self.enter(&action, granted);
        }
    }

    fn give_back(&mut self, hash: u64, exclusively: bool, granted: &mut impl FnMut(&Arc<Flow>)) {
        let Entry::Occupied(mut entry) = self.records.entry(hash) else { unreachable!("it was granted") };
        let lock = entry.get_mut();
        if exclusively {
            lock.is_exclusive = false;
        } else {
            lock.shared -= 1;
        }
        while let Some((_, exclusively)) = lock.queue.front() {
            if !lock.take(*exclusively) {
                return;
            }
            lock.queue.pop_front().inspect(|(flow, _)| granted(flow));
        }
        if lock.shared == 0 && !lock.is_exclusive {
            entry.remove();
        }
    }
}

/// A hasher of what is a hash already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes are whole words")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
