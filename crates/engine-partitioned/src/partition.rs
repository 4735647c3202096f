//! Static partitions: a queue of calls each, and one thread at a time that owns it (H-Store).
//!
//! ```text
//! order of dispatch     a   b   C   d   e          C touches partitions 0 and 1
//!
//! partition 0           a       C       e          owner: runs a, comes to C: granted; waits
//! partition 1               b   C   d              owner: runs b, comes to C: granted; C has all, runs C
//!                                                  then d and e go on, side by side
//! ```
//!
//! A call that touches one partition runs when the owner comes to it, with no concurrency control on rows.
//! A call that crosses stands in the queue of each of its partitions. A partition whose owner comes to it is
//! *granted* to it, whole, and nothing else runs there until it has ended. Whoever grants the last one runs it.
//!
//! **Why there is no deadlock.** Calls are dispatched one after the other, into all their queues at once
//! ([`crate::dispatch`]), so every queue holds its calls in one global order, and grants follow it: partition
//! locks are acquired in an order that is the same for all. The oldest call that has not ended is
//! first in each of its queues, so nothing keeps it from being granted them all. Nobody blocks:
//! an owner whose partition is granted leaves it, and lends its thread elsewhere, if there is work.
//!
//! A call in front of another that touches one of its partitions also runs before it. So calls of one batch,
//! and of batches handed in one after the other, are in order wherever it could matter.

use crate::partition_set::PartitionSet;
use crate::route::Routes;
use crate::run::{Dispatched, Place, RUN_CALLS, Runs};
use crossbeam_utils::CachePadded;
use fabius_engine::eager::intake::Work;
use fabius_engine::eager::plan::Schema;
use fabius_env::schedule;
use fabius_env::sync;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// What stands in a partition's queue.
enum Entry {
    /// Calls of one batch that touch this partition alone.
    Run { work: Arc<Work>, places: Vec<Place>, begun: usize },
    /// A call that touches others too.
    Crossing(Arc<Crossing>),
}

/// A call that crosses partitions.
struct Crossing {
    work: Arc<Work>,
    place: Place,
    partitions: PartitionSet,
    /// Partitions that have not been granted to it.
    missing: AtomicU32,
}

#[derive(Default)]
struct Partition {
    /// What was dispatched since the owner last looked.
    inbox: Mutex<Vec<Entry>>,
    /// Entries in the inbox and in the queue.
    count: AtomicUsize,
    /// Whether a crossing call has it.
    is_granted: AtomicBool,
    /// What the owner has taken from the inbox; whoever holds this is the owner.
    queue: sync::Mutex<VecDeque<Entry>>,
}

impl Partition {
    fn push(&self, entry: Entry) {
        self.inbox.lock().push(entry);
        self.count.fetch_add(1, AcqRel);
    }

    fn has_work(&self) -> bool {
        self.count.load(Acquire) > 0 && !self.is_granted.load(Acquire)
    }
}

/// All partitions.
pub struct Partitions {
    list: Box<[CachePadded<Partition>]>,
    /// Where the next thread looks first, so that none is passed over for ever.
    next: AtomicUsize,
    /// Calls of the batch that is dispatched, by partition, not yet in the queues.
    gathered: Mutex<Vec<Vec<Place>>>,
}

impl Partitions {
    /// So many partitions.
    pub fn new(count: usize) -> Partitions {
        Partitions {
            list: (0..count).map(|_| CachePadded::default()).collect(),
            next: AtomicUsize::new(0),
            gathered: Mutex::new(vec![Vec::new(); count]),
        }
    }

    /// Puts calls of one batch into the queues; one thread at a time.
    pub fn dispatch(&self, work: &Arc<Work>, calls: impl Iterator<Item = Dispatched>) {
        let mut gathered = self.gathered.lock();
        for Dispatched { place, partitions, .. } in calls {
            if let Some(only) = partitions.single() {
                gathered[only].push(place);
                continue;
            }
            let missing = AtomicU32::new(partitions.len() as u32);
            let crossing = Arc::new(Crossing { work: work.clone(), place, partitions, missing });
            for partition in partitions.iter() {
                self.flush(partition, work, &mut gathered[partition]);
                self.list[partition].push(Entry::Crossing(crossing.clone()));
            }
        }
        for (partition, places) in gathered.iter_mut().enumerate() {
            self.flush(partition, work, places);
        }
    }

    fn flush(&self, partition: usize, work: &Arc<Work>, places: &mut Vec<Place>) {
        if !places.is_empty() {
            let places = std::mem::take(places);
            self.list[partition].push(Entry::Run { work: work.clone(), places, begun: 0 });
        }
    }

    /// Claims a partition that has work, and does some of it; whether there was one.
    pub fn take_turn(&self, runs: &Runs, schema: &Schema, routes: &Routes) -> bool {
        let first = self.next.load(Relaxed);
        let count = self.list.len();
        for number in (0..count).map(|at| (first + at) % count) {
            let partition = &self.list[number];
            if !partition.has_work() {
                continue;
            }
            schedule::point("claim");
            let Some(mut queue) = partition.queue.try_lock() else { continue };
            // It may have been granted just before it was claimed.
            if !partition.has_work() {
                continue;
            }
            self.next.store(number + 1, Relaxed);
            if queue.is_empty() {
                queue.extend(partition.inbox.lock().drain(..));
            }
            match queue.front_mut() {
                None => continue,
                Some(Entry::Run { work, places, begun }) => {
                    let end = places.len().min(*begun + RUN_CALLS);
                    runs.run(schema, routes, work, &places[*begun..end], PartitionSet::of(number));
                    *begun = end;
                    if end == places.len() {
                        queue.pop_front();
                        partition.count.fetch_sub(1, AcqRel);
                    }
                }
                Some(Entry::Crossing(crossing)) => {
                    let crossing = crossing.clone();
                    queue.pop_front();
                    partition.is_granted.store(true, Release);
                    partition.count.fetch_sub(1, AcqRel);
                    drop(queue);
                    schedule::point("granted");
                    if crossing.missing.fetch_sub(1, AcqRel) == 1 {
                        self.run_crossing(&crossing, runs, schema, routes);
                    }
                }
            }
            return true;
        }
        false
    }

    /// Runs a call that has all its partitions, and gives them back.
    fn run_crossing(&self, crossing: &Crossing, runs: &Runs, schema: &Schema, routes: &Routes) {
        let Crossing { work, place, partitions, .. } = crossing;
        runs.run(schema, routes, work, &[*place], *partitions);
        partitions.iter().for_each(|partition| self.list[partition].is_granted.store(false, Release));
    }
}
