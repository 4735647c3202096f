//! Dependency graph construction (LADS, section 3.1, algorithm 1).
//!
//! One worker builds one graph, without looking at any other: calls in timestamp order, each appended to the
//! queues of the records that it will access. The edge from a record's latest action `L(r)` to the new one is
//! the link at the end of its queue; the edges between a call's own actions are their order.
//!
//! Looking records up is what takes time, one or two cache misses each, so keys are computed for some calls
//! ahead:
//!
//! ```text
//! keys of calls n .. n + 16: encode, ask for index buckets | ask for records | look up, append to queues
//! ```

use crate::decomposition::{Decompositions, Grains};
use crate::graph::{Action, CallNode, Graph, NONE, Queue, queue_hash};
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::Definitions;
use fabius_engine::entry::Call;
use fabius_program::arguments::DecodedArguments;
use fabius_storage::{chain, index::prefetch};
use fabius_value::{Key, Seq, TableId};
use std::sync::atomic::AtomicBool;

/// Calls whose keys are computed before the first of them is appended.
const AHEAD_CALLS: usize = 16;

/// What graphs are built from.
pub struct Material<'a> {
    /// Tables and procedures.
    pub definitions: &'a Definitions,
    /// What calls will access.
    pub decompositions: &'a Decompositions,
    /// How the round's calls tell records apart.
    pub grains: Grains,
    /// Keeps records where they are.
    pub guard: &'a Guard,
}

struct Pending {
    call: u32,
    table: TableId,
    is_whole: bool,
    key: Key,
    key_hash: u64,
}

/// Builds the graph of calls with consecutive timestamps; keys live in `arena`. `spare` is a graph that is no
/// more.
pub fn construct<'a>(
    material: &Material<'a>,
    calls: &[(Call<'a>, Seq)],
    arena: &'a Bump,
    spare: Graph<'a>,
) -> Graph<'a> {
    let definitions = material.definitions;
    let mut graph: Graph<'a> = spare.emptied(calls.len());
    let mut pending: Vec<Pending> = Vec::new();
    let mut decoded = DecodedArguments::default();
    for (chunk, calls) in calls.chunks(AHEAD_CALLS).enumerate() {
        pending.clear();
        let known = graph.queues.len();
        for (place, (call, _)) in calls.iter().enumerate() {
            let call_number = (chunk * AHEAD_CALLS + place) as u32;
            let Some(decomposition) = material.decompositions.get(call.procedure.0 as usize) else {
                continue;
            };
            let Ok(procedure) = definitions.procedure(call.procedure) else { continue };
            decoded.clear();
            let Ok(place) = decoded.push(&procedure.signature, call.arguments) else { continue };
            decomposition.keys.for_each(decoded.at(place), |table, values| {
                let Some(grain) = material.grains.get(table) else { return };
                let schema = definitions.table(table);
                let mut key = Key::new();
                // A key that is too long aborts its call before anything is accessed.
                if schema.encode_key(&values[..grain], &mut key).is_err() {
                    return;
                }
                let is_whole = grain == schema.schema().primary_key.len();
                let key_hash = key.hash();
                if is_whole {
                    schema.prefetch(key_hash, material.guard);
                }
                pending.push(Pending { call: call_number, table, is_whole, key, key_hash });
            });
        }
        for wanted in pending.iter().filter(|wanted| wanted.is_whole) {
            let table = definitions.table(wanted.table);
            if let Some(record) = table.likely_record(wanted.key_hash, material.guard) {
                prefetch(record);
            }
        }
        let mut next = pending.iter().peekable();
        for (place, (call, seq)) in calls.iter().enumerate() {
            let number = (chunk * AHEAD_CALLS + place) as u32;
            graph.calls.push(CallNode {
                call: *call,
                seq: *seq,
                first_action: graph.actions.len() as u32,
                is_divisible: material.grains.is_divisible(call.procedure.0 as usize, call.wants_result),
                disabled: AtomicBool::new(false),
            });
            while let Some(wanted) = next.next_if(|wanted| wanted.call == number) {
                append(&mut graph, material, wanted, arena);
            }
        }
        for queue in graph.queues[known..].iter_mut().filter(|queue| material.grains.is_still(queue.table)) {
            // SAFETY: the epoch is pinned.
            queue.record = queue.record.filter(|record| unsafe { chain::is_present(record.head()) });
        }
    }
    graph
}

/// Appends an action to its record's queue.
fn append<'a>(graph: &mut Graph<'a>, material: &Material<'a>, wanted: &Pending, arena: &'a Bump) {
    let hash = queue_hash(wanted.table, wanted.key_hash);
    let slot = graph.map.slot(&graph.queues, hash, wanted.table, wanted.key.bytes());
    let action = graph.actions.len() as u32;
    match graph.map.get(slot) {
        NONE => {
            let table = material.definitions.table(wanted.table);
            let record = if wanted.is_whole { table.find(&wanted.key, material.guard) } else { None };
            if let Some(record) = record {
                prefetch(record.head());
            }
            // A copy, since workers look at keys of records that others write.
            let key = arena.alloc_slice_copy(wanted.key.bytes());
            let number = graph.queues.len() as u32;
            graph.queues.push(Queue {
                hash,
                table: wanted.table,
                key,
                record,
                first: action,
                last: action,
                weight: 1,
                partition: 0,
                turn: 0,
            });
            graph.map.put(slot, number, &graph.queues);
            graph.actions.push(Action::new(wanted.call, number));
        }
        number => {
            let queue = &mut graph.queues[number as usize];
            let last = &mut graph.actions[queue.last as usize];
            if last.call == wanted.call {
                return;
            }
            last.next = action;
            queue.last = action;
            queue.weight += 1;
            graph.actions.push(Action::new(wanted.call, number));
        }
    }
}
