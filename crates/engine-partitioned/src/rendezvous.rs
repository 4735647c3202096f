//! Logical partitions: a call's accesses as actions, dispatched to owners, with rendezvous points between
//! its phases (DORA, as LADS describes it in sections 2.2 and 5).
//!
//! ```text
//!            phase 1: actions                      phase 2                phase 3
//! call a --> partition 3: lock 17, 42 --\
//!        --> partition 8: lock 5      ----> rendezvous: run, commit --> 3: release 17, 42
//!                                                                   \-> 8: release 5
//! ```
//!
//! 1. Dispatch puts an action into the queue of every partition that the call touches, into all of them
//!    before anything of another call (LADS: it latches all their incoming queues). The owner of a partition
//!    takes actions in that order and locks their records in its own table ([`crate::local_lock`]).
//! 2. The last grant is the first rendezvous point. The call is run as a whole by whoever comes by, holding its
//!    locks, and commits.
//! 3. All its partitions are told, and their owners release the locks.
//!
//! In DORA owners also do the accesses, each those in its partition; here the thread that runs the call does
//! them. What LADS finds to limit DORA is all there: the dispatch to all queues at once, local locks,
//! and messages to all partitions at the end.

use crate::division::Division;
use crate::flow::{Demand, Flow};
use crate::local_lock::{Action, LockTable};
use crate::partition_set::PartitionSet;
use crate::rotation::Rotation;
use crate::route::Routes;
use crate::run::{Dispatched, Place, RUN_CALLS, Runs};
use fabius_engine::eager::intake::Work;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::queue::Queue;
use fabius_engine::entry::Call;
use fabius_env::{schedule, sync};
use fabius_program::arguments::DecodedArguments;
use fabius_value::Key;
use std::sync::Arc;
use std::sync::atomic::Ordering::AcqRel;

/// What an owner is told.
enum Message {
    /// An action comes in.
    Dispatched(Action),
    /// The call has committed.
    Completed(Action),
}

#[derive(Default)]
struct Partition {
    inbox: Queue<Message>,
    /// Whoever holds this is the owner.
    locks: sync::Mutex<LockTable>,
}

/// All logical partitions.
pub struct LogicalPartitions {
    list: Rotation<Partition>,
    /// Calls at their rendezvous.
    ready: Queue<Arc<Flow>>,
}

impl LogicalPartitions {
    /// So many partitions.
    pub fn new(count: usize) -> LogicalPartitions {
        LogicalPartitions { list: Rotation::new(count), ready: Queue::default() }
    }

    fn tell_all(&self, flow: &Arc<Flow>, message: fn(Action) -> Message) {
        for (number, (partition, _)) in flow.demands.iter().enumerate() {
            self.list[*partition].inbox.push(message(Action { flow: flow.clone(), number }));
        }
    }

    fn read_messages(&self, locks: &mut LockTable, messages: Vec<Message>) {
        let mut ready = Vec::new();
        let mut granted = |flow: &Arc<Flow>| {
            if flow.missing.fetch_sub(1, AcqRel) == 1 {
                ready.push(flow.clone());
            }
        };
        for message in messages {
            match message {
                Message::Dispatched(action) => locks.request(action, &mut granted),
                Message::Completed(action) => locks.release(&action, &mut granted),
            }
        }
        if !ready.is_empty() {
            self.ready.extend(ready);
        }
    }

    /// Runs the next calls that are ready, as far as they are of one batch, and tells their partitions; whether
    /// there were any.
    fn run_ready(&self, runs: &Runs, schema: &Schema, routes: &Routes) -> bool {
        let mut batch = None;
        let mut room = 0..RUN_CALLS;
        let taken = self.ready.take_while(|next| {
            let work = Arc::as_ptr(&next.work);
            room.next().is_some() && *batch.get_or_insert(work) == work
        });
        let Some(first) = taken.first() else { return false };
        let places: Vec<Place> = taken.iter().map(|flow| flow.place).collect();
        let mut held = PartitionSet::EMPTY;
        taken.iter().flat_map(|flow| flow.partitions.iter()).for_each(|partition| held.insert(partition));
        runs.run(schema, &routes.layout, &first.work, &places, held);
        taken.iter().for_each(|flow| self.tell_all(flow, Message::Completed));
        true
    }
}

impl Division for LogicalPartitions {
    /// Sends the actions of calls to the owners.
    fn dispatch(&self, work: &Arc<Work>, calls: &mut dyn Iterator<Item = Dispatched>, routes: &Routes) {
        let mut decoded = DecodedArguments::default();
        for dispatched in calls {
            let Dispatched { place, partitions, is_whole } = dispatched;
            let (call, _) = place.call(work);
            let demands = demands(&call, &mut decoded, partitions, is_whole, routes);
            let missing = demands.iter().map(|(_, demand)| demand.grants()).sum::<u32>().into();
            let flow = Arc::new(Flow { work: work.clone(), place, partitions, demands, missing });
            self.tell_all(&flow, Message::Dispatched);
        }
    }

    /// Runs calls that have all their locks, or claims a partition and reads its messages.
    fn take_turn(&self, runs: &Runs, schema: &Schema, routes: &Routes) -> bool {
        if self.run_ready(runs, schema, routes) {
            return true;
        }
        let claimed = self.list.claim(|partition| {
            if partition.inbox.is_empty() {
                return None;
            }
            schedule::point("claim");
            Some((partition, partition.locks.try_lock()?))
        });
        let Some((_, (partition, mut locks))) = claimed else { return false };
        self.read_messages(&mut locks, partition.inbox.take(|all| all));
        true
    }
}

/// What a call demands of each of its partitions: records if its arguments say which, else all.
fn demands<'c>(
    call: &Call<'c>,
    decoded: &mut DecodedArguments<'c>,
    partitions: PartitionSet,
    is_whole: bool,
    routes: &Routes,
) -> Vec<(usize, Demand)> {
    let mut records: Vec<(usize, Vec<(u64, bool)>)> =
        partitions.iter().map(|partition| (partition, Vec::new())).collect();
    let mut encoded = Key::new();
    let are_told = !is_whole
        && routes.visit_records(call, decoded, |partition, table, key, exclusively| {
            let (_, list) = records
                .iter_mut()
                .find(|(of, _)| *of == partition)
                .expect("records are in the partitions that the call touches");
            // A key that is too long aborts the call when it gets there.
            if routes.definitions.table(table).encode_key(key, &mut encoded).is_ok() {
                list.push((encoded.hash() ^ u64::from(table.0), exclusively));
            }
        });
    let demand = |(partition, mut list): (usize, Vec<(u64, bool)>)| {
        if !are_told {
            return (partition, Demand::Whole);
        }
        // Of two accesses to one record, the exclusive one comes first.
        list.sort_unstable_by_key(|(hash, exclusively)| (*hash, !*exclusively));
        list.dedup_by_key(|(hash, _)| *hash);
        (partition, Demand::Records(list))
    };
    records.into_iter().map(demand).collect()
}
