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
//! *granted* to it, whole, until the call has ended. Whoever grants the last one runs it.
//!
//! **Why there is no deadlock.** Calls are dispatched one after the other, into all their queues at once
//! ([`crate::engine`]), so every queue holds its calls in one global order, and grants follow it: partition
//! locks are acquired in an order that is the same for all. The oldest call that has not ended is
//! first in each of its queues, so nothing keeps it from being granted them all.
//!
//! **What an owner does whose partition is granted** to a call that still needs others ([`Waiting`]): it leaves, and
//! lends its thread elsewhere, if there is work; or it blocks until the call has ended and goes on as the owner, as
//! H-Store's threads do. Threads of ours are their callers', and there may be fewer of them than partitions. So one
//! that blocks does the work of those partitions of the call that nobody owns, but only what comes before the call:
//! what comes behind it may need the partition that this very thread holds.
//!
//! A call in front of another that touches one of its partitions also runs before it. So calls of one batch,
//! and of batches handed in one after the other, are in order wherever it could matter.

use crate::division::Division;
use crate::partition_set::PartitionSet;
use crate::policy::Waiting;
use crate::rotation::Rotation;
use crate::route::Routes;
use crate::run::{Dispatched, Place, RUN_CALLS, Runs};
use fabius_engine::eager::intake::Work;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::queue::Queue;
use fabius_env::schedule;
use fabius_env::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::time::Duration;

/// Whoever owns another partition of a call may have left, since threads are lent: after this time one that blocks
/// looks whether there is work that nobody does.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// What stands in a partition's queue.
enum Entry {
    /// Calls of one batch that touch this partition alone.
    Run(Arc<Work>, Vec<Place>),
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
    has_ended: Mutex<bool>,
    ending: Condvar,
}

impl Crossing {
    fn has_ended(&self) -> bool {
        *self.has_ended.lock()
    }

    /// Sleeps until the call has ended, or for some time.
    fn sleep(&self) {
        let mut has_ended = self.has_ended.lock();
        if !*has_ended {
            self.ending.wait_for(&mut has_ended, LOOK_AGAIN);
        }
    }

    fn end(&self) {
        *self.has_ended.lock() = true;
        self.ending.notify_all();
    }
}

#[derive(Default)]
struct Partition {
    queue: Queue<Entry>,
    /// Whether a thread owns it, or a crossing call has been granted it.
    is_taken: AtomicBool,
}

impl Partition {
    /// Takes the partition, and the first of its work, if there is any.
    fn claim(&self) -> Option<Entry> {
        self.claim_if(|| true)
    }

    /// Takes the partition as [`Partition::claim`] does, as long as something holds that can only end while somebody
    /// else has it.
    fn claim_if(&self, holds: impl FnOnce() -> bool) -> Option<Entry> {
        if self.queue.is_empty() {
            return None;
        }
        schedule::point("claim");
        if self.is_taken.load(Relaxed) || self.is_taken.swap(true, Acquire) {
            return None;
        }
        let entry = if holds() { self.queue.pop() } else { None };
        if entry.is_none() {
            self.give_back();
        }
        entry
    }

    fn give_back(&self) {
        self.is_taken.store(false, Release);
    }
}

/// All partitions.
pub struct Partitions {
    partitions: Rotation<Partition>,
    waiting: Waiting,
}

impl Partitions {
    /// So many partitions.
    pub fn new(count: usize, waiting: Waiting) -> Partitions {
        Partitions { partitions: Rotation::new(count), waiting }
    }

    /// Puts calls that touch this partition alone into its queue, behind what is there.
    fn flush(&self, partition: usize, work: &Arc<Work>, gathered: &mut Vec<Place>) {
        if !gathered.is_empty() {
            self.partitions[partition].queue.push(Entry::Run(work.clone(), std::mem::take(gathered)));
        }
    }

    /// Does what was claimed of a partition.
    fn work_off(&self, number: usize, entry: Entry, runs: &Runs, schema: &Schema, routes: &Routes) {
        match entry {
            Entry::Run(work, places) => {
                runs.run(schema, &routes.layout, &work, &places, PartitionSet::of(number));
            }
            Entry::Crossing(crossing) => {
                schedule::point("granted");
                let Crossing { work, place, partitions, missing, .. } = &*crossing;
                let has_all = missing.fetch_sub(1, AcqRel) == 1;
                if has_all {
                    runs.run(schema, &routes.layout, work, &[*place], *partitions);
                    crossing.end();
                }
                if self.waiting == Waiting::Lends {
                    // Nobody has owned them since they were granted.
                    if has_all {
                        partitions.iter().for_each(|partition| self.partitions[partition].give_back());
                    }
                    return;
                }
                self.block(&crossing, runs, schema, routes);
            }
        }
        self.partitions[number].give_back();
    }

    /// Blocks until a call has ended that this thread has granted a partition. What it does meanwhile comes before
    /// that call, and so needs nothing that this thread has already. Within each other a thread blocks at most once
    /// for each partition.
    fn block(&self, crossing: &Crossing, runs: &Runs, schema: &Schema, routes: &Routes) {
        let has_stopped = || runs.ground.foundation().failure().is_some();
        while !crossing.has_ended() && !has_stopped() {
            let claim = |number: usize| self.partitions[number].claim_if(|| !crossing.has_ended());
            match crossing.partitions.iter().find_map(|number| Some((number, claim(number)?))) {
                Some((number, entry)) => self.work_off(number, entry, runs, schema, routes),
                None => crossing.sleep(),
            }
        }
    }
}

impl Division for Partitions {
    fn dispatch(&self, work: &Arc<Work>, calls: &mut dyn Iterator<Item = Dispatched>, _: &Routes) {
        let mut gathered = vec![Vec::new(); self.partitions.len()];
        for Dispatched { place, partitions, .. } in calls {
            if let Some(only) = partitions.single() {
                gathered[only].push(place);
                if gathered[only].len() == RUN_CALLS {
                    self.flush(only, work, &mut gathered[only]);
                }
                continue;
            }
            let missing = AtomicU32::new(partitions.len() as u32);
            let (has_ended, ending) = (Mutex::default(), Condvar::default());
            let crossing =
                Arc::new(Crossing { work: work.clone(), place, partitions, missing, has_ended, ending });
            for partition in partitions.iter() {
                self.flush(partition, work, &mut gathered[partition]);
                self.partitions[partition].queue.push(Entry::Crossing(crossing.clone()));
            }
        }
        for (partition, places) in gathered.iter_mut().enumerate() {
            self.flush(partition, work, places);
        }
    }

    /// Claims a partition that has work, and does the first of it.
    fn take_turn(&self, runs: &Runs, schema: &Schema, routes: &Routes) -> bool {
        let claimed = self.partitions.claim(Partition::claim);
        let did = claimed.is_some();
        if let Some((number, entry)) = claimed {
            self.work_off(number, entry, runs, schema, routes);
        }
        did
    }
}
