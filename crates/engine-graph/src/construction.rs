//! Dependency graph construction (LADS, section 3.1, algorithm 1).
//!
//! One worker builds one graph, without looking at any other: calls in timestamp order, each appended to the
//! queues of the records that it will access. The edge from a record's latest action `L(r)` to the new one is
//! the link at the end of its queue.
//!
//! Looking records up is what takes time, one or two cache misses each, so keys are computed for some calls
//! ahead:
//!
//! ```text
//! keys of calls n .. n + 16: encode, ask for index buckets | ask for records | append to queues | look at rows
//! ```

use crate::decomposition::{Decompositions, Dependent, Prefixes};
use crate::graph::{Action, CallNode, Graph, Kind, NONE, Queue, Stamped, Subject};
use crate::standing::Standing;
use crate::turns::Turns;
use crossbeam_epoch::Guard;
use fabius_engine::Definitions;
use fabius_program::arguments::DecodedArguments;
use fabius_storage::{Record, Table, chain, index::prefetch};
use fabius_value::{Datum, Key, Result, limit};
use hashbrown::hash_table::Entry;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Calls whose keys are computed before the first of them is appended.
const AHEAD_CALLS: usize = 16;

/// An action that is about no element.
const NO_ELEMENT: (u16, u32) = (u16::MAX, 0);

/// What graphs are built from.
pub struct Material<'a> {
    /// Tables and procedures.
    pub definitions: &'a Definitions,
    /// What calls will access.
    pub decompositions: &'a Decompositions,
    /// How the batch's calls tell records apart.
    pub prefixes: Prefixes,
}

/// An action to be appended.
struct Pending<'a> {
    call: u32,
    /// Which of its call's actions it is, if that depends on others,
    slice: u16,
    /// and about which element of the arguments, as an [`Action`] has it.
    element: (u16, u32),
    /// Whether it writes the record, if its call is taken apart.
    writes: bool,
    /// Whether its call is taken apart only if there is a row.
    needs_row: bool,
    /// None, if it is about an idempotency key.
    table: Option<&'a Arc<Table>>,
    /// Among the bytes of the keys.
    key: Range<usize>,
    /// Of the key.
    hash: u64,
    is_whole: bool,
    /// How many bytes of it name a range, if there are coarse actions beside those on records.
    range: Option<u16>,
    /// The record that the key most likely leads to, if it is whole.
    likely: Option<&'a Record>,
}

/// Builds the graph of calls with consecutive timestamps; it is empty before. No records are freed during `'a`.
pub fn construct<'a>(material: &Material<'a>, calls: &[Stamped<'a>], graph: &mut Graph<'a>) {
    let guard = crossbeam_epoch::pin();
    let mut construction = Construction {
        material,
        guard: &guard,
        graph,
        decoded: DecodedArguments::default(),
        rows: Vec::new(),
        keys: Vec::new(),
        pending: Vec::new(),
        key: Key::new(),
    };
    for calls in calls.chunks(AHEAD_CALLS) {
        construction.add(calls);
    }
}

struct Construction<'m, 'a> {
    material: &'m Material<'a>,
    guard: &'m Guard,
    graph: &'m mut Graph<'a>,
    decoded: DecodedArguments<'a>,
    /// Of the arguments' lists: which, and where each row begins among the bytes.
    rows: Vec<(u16, u32)>,
    keys: Vec<u8>,
    pending: Vec<Pending<'a>>,
    key: Key,
}

impl<'a> Construction<'_, 'a> {
    fn add(&mut self, calls: &[Stamped<'a>]) {
        self.keys.clear();
        self.pending.clear();
        let (first_call, first_queue) = (self.graph.calls.len(), self.graph.queues.len());
        calls.iter().for_each(|stamped| self.decompose(*stamped));
        for wanted in self.pending.iter_mut().filter(|wanted| wanted.is_whole) {
            let likely = wanted.table.and_then(|table| table.likely_record(wanted.hash, self.guard));
            wanted.likely = likely.map(kept);
            wanted.likely.into_iter().for_each(Record::prefetch);
        }
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.iter().peekable();
        for call in first_call..self.graph.calls.len() {
            self.graph.calls[call].first_action = self.graph.actions.len() as u32;
            while let Some(wanted) = rest.next_if(|wanted| wanted.call as usize == call) {
                self.append(wanted);
            }
        }
        self.pending = pending;
        for queue in first_queue..self.graph.queues.len() {
            self.look(queue);
        }
        for call in first_call..self.graph.calls.len() {
            self.bind(call);
        }
    }

    /// Adds a call, and what it will access to what is to be appended.
    fn decompose(&mut self, stamped: Stamped<'a>) {
        let Material { definitions, decompositions, prefixes } = self.material;
        let (call, number) = (&stamped.call, self.graph.calls.len() as u32);
        let Construction { guard, decoded, rows, keys, pending, key, .. } = self;
        let Graph { calls, layouts, .. } = &mut *self.graph;
        let mut add = |table: Option<&'a Arc<Table>>,
                       key: &Key,
                       (is_whole, range),
                       (slice, element),
                       (writes, needs_row)| {
            let (begin, hash) = (keys.len(), key.hash());
            keys.extend_from_slice(key.bytes());
            let key = begin..keys.len();
            pending.push(Pending {
                call: number,
                slice,
                element,
                writes,
                needs_row,
                table,
                key,
                hash,
                is_whole,
                range,
                likely: None,
            });
        };
        if let Some(bytes) = call.key {
            // Who repeats it gets the first one's outcome.
            key.clear();
            key.extend(bytes);
            add(None, key, (false, None), (0, NO_ELEMENT), (false, true));
        }
        rows.clear();
        decoded.clear();
        let place = definitions.procedure(call.procedure).ok().and_then(|procedure| {
            let note = |parameter: usize, begin: usize| rows.push((parameter as u16, begin as u32));
            decoded.push_from(&procedure.signature, call.arguments, note).ok()
        });
        // An element takes a byte at least, and gives a turn of a loop.
        let has_turns = call.arguments.len() as u64 <= limit::LOOP_TURNS;
        let mut kind = match prefixes.kind(call) {
            Kind::Independent if !has_turns => Kind::Whole,
            kind if place.is_some() => kind,
            _ => Kind::Whole,
        };
        let (first_layout, mut behind) = (layouts.len() as u32, 0);
        // Arguments that cannot be decoded abort a call before it accesses anything.
        if let (Some(decomposition), Some(place)) = (decompositions.get(call.procedure), place) {
            // The list whose elements keys vary with, where its rows begin, and whether actions about them write.
            let (mut list, mut begin, mut writes_each) = (u16::MAX, 0, false);
            let writes_once = decomposition.writes_at(None);
            if let Some(behind_lists) = decomposition.behind {
                behind = rows[rows.partition_point(|(parameter, _)| *parameter < behind_lists)].1;
            }
            let dependent = decomposition.dependent.as_ref().filter(|_| kind == Kind::Dependent);
            let mut turns = dependent.map(|dependent| TurnCount { dependent, begun: 0, turns: 0 });
            let (mut slice, mut fits) = (0, true);
            let has_all = decomposition.keys.for_each_element(decoded.at(place), |table, values, element| {
                // Of dependent actions each has a place of its own, also at rows that nobody writes.
                let own = turns.as_mut().map(|turns| {
                    slice = turns.next(element.is_none_or(|(_, row)| row == 0), layouts);
                    let action = &turns.dependent.actions[slice];
                    (action.writes, action.needs_row)
                });
                let whole = definitions.table(table).schema().primary_key.len();
                let told = prefixes.get(decomposition, table).or(own.map(|_| (whole, None)));
                let Some((prefix, range)) = told else { return };
                let table = definitions.table(table);
                // A key that is too long has no row; its call aborts if it gets there, and may access others before.
                let Ok(range) = encode(table, &values[..prefix], range, key) else {
                    fits = false;
                    return;
                };
                let is_whole = prefix == table.schema().primary_key.len();
                if is_whole {
                    table.prefetch(key.hash(), guard);
                }
                let element = element.map(|(of, row)| {
                    if of != list {
                        list = of;
                        begin = rows.partition_point(|(parameter, _)| *parameter < of);
                        writes_each = decomposition.writes_at(Some(of));
                    }
                    rows[begin + row]
                });
                let own = own.unwrap_or((if element.is_some() { writes_each } else { writes_once }, true));
                add(Some(table), key, (is_whole, range), (slice as u16, element.unwrap_or(NO_ELEMENT)), own);
            });
            if !(has_all && fits && turns.as_ref().is_none_or(|turns| turns.fit(call.arguments))) {
                kind = Kind::Whole;
            }
            if let (Some(turns), Kind::Dependent) = (turns, kind) {
                turns.end(layouts);
            } else {
                layouts.truncate(first_layout as usize);
            }
        }
        calls.push(CallNode { first_layout, behind, ..CallNode::new(stamped, kind) });
    }

    /// Appends an action to its record's queue.
    fn append(&mut self, wanted: &Pending<'a>) {
        let key = &self.keys[wanted.key.clone()];
        let table = wanted.table.map_or(u32::MAX, |table| table.id().0);
        let hash = wanted.hash ^ u64::from(table).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Graph { calls, actions, queues, map, ranges, .. } = &mut *self.graph;
        let (action, node) = (actions.len() as u32, &mut calls[wanted.call as usize]);
        let is_coarse = !wanted.is_whole;
        let stretch = match (wanted.range, wanted.table) {
            (Some(bytes), Some(table)) => Some(ranges.stretch(table, &key[..usize::from(bytes)], is_coarse)),
            _ => None,
        };
        let queue = |number: &u32| &queues[*number as usize];
        let is_it = |number: &u32| queue(number).hash == hash && queue(number).is_of(wanted.table, key);
        let number = match map.entry(hash, is_it, |number| queue(number).hash) {
            Entry::Occupied(found) if queues[*found.get() as usize].stretch == stretch => {
                let queue = &mut queues[*found.get() as usize];
                let last = &mut actions[queue.last as usize];
                if last.call == wanted.call {
                    // Two actions of a call on one record are one.
                    node.kind = Kind::Whole;
                    return;
                }
                last.next = action;
                queue.last = action;
                queue.weight += 1;
                queue.is_written |= wanted.writes;
                *found.get()
            }
            entry => {
                let likely = wanted.likely.filter(|record| record.key() == key);
                let record = likely.or_else(|| {
                    self.key.clear();
                    self.key.extend(key);
                    wanted.table.filter(|_| wanted.is_whole)?.find(&self.key, self.guard).map(kept)
                });
                if let Some(record) = record {
                    prefetch(record.head());
                }
                queues.push(Queue {
                    hash,
                    table: wanted.table,
                    subject: record.map_or_else(|| Subject::Key(key.into()), Subject::Record),
                    first: action,
                    last: action,
                    place: place(key),
                    weight: 1,
                    partition: 0,
                    is_written: wanted.writes,
                    stretch,
                });
                let number = queues.len() as u32 - 1;
                stretch.into_iter().for_each(|stretch| ranges.add(stretch, number));
                *entry.insert(number).get()
            }
        };
        if wanted.needs_row && queues[number as usize].record().is_none() {
            node.kind = Kind::Whole;
        }
        let Pending { call, slice, element: (list, begin), .. } = *wanted;
        actions.push(Action { call, queue: number, next: NONE, slice, list, begin });
    }

    /// Looks whether there is a row, where one that is there stays; if there is none, calls that need it are whole.
    fn look(&mut self, number: usize) {
        let Graph { calls, actions, queues, .. } = &mut *self.graph;
        let queue = &mut queues[number];
        let (Some(record), Some(table)) = (queue.record(), queue.table) else { return };
        // SAFETY: the epoch is pinned.
        if self.material.prefixes.keeps_rows(table.id()) && !unsafe { chain::is_present(record.head()) } {
            queue.subject = Subject::Key(record.key().into());
            let mut at = queue.first;
            while let Some(action) = actions.get(at as usize) {
                let node = &mut calls[action.call as usize];
                let needs_row = match node.kind {
                    Kind::Dependent => {
                        let decomposition = self.material.decompositions.get(node.stamped.call.procedure);
                        let dependent = decomposition.and_then(|of| of.dependent.as_ref());
                        dependent.is_none_or(|of| of.actions[usize::from(action.slice)].needs_row)
                    }
                    Kind::Independent | Kind::Whole => true,
                };
                if needs_row {
                    node.kind = Kind::Whole;
                }
                at = action.next;
            }
        }
    }

    /// Notes what a dependent call's actions wait for, and makes room for what they hand over.
    fn bind(&mut self, call: usize) {
        let Graph { calls, standings, handed, layouts, turns, .. } = &mut *self.graph;
        let node = &mut calls[call];
        if node.kind == Kind::Dependent {
            let decomposition = self.material.decompositions.get(node.stamped.call.procedure);
            let dependent = decomposition.and_then(|of| of.dependent.as_ref()).expect("it is taken apart");
            let layout = dependent.layout(layouts, node.first_layout);
            (node.first_standing, node.first_handed) = (standings.len() as u32, handed.len() as u32);
            node.first_turns = turns.len() as u32;
            if dependent.has_turns {
                for (action, number) in dependent.actions.iter().zip(0..) {
                    let count = layout.turns_of(number).len();
                    standings.extend((0..count).map(|_| Standing::new(action.before)));
                    turns.push(Turns::new(count as u32));
                }
            } else {
                standings.extend(dependent.actions.iter().map(|action| Standing::new(action.before)));
            }
            handed.extend((0..dependent.handed_by(layout)).map(|_| OnceLock::new()));
        }
    }
}

/// Counts the turns of a dependent call's actions, in the order of its keys.
struct TurnCount<'d> {
    dependent: &'d Dependent,
    /// Actions so far,
    begun: usize,
    /// and all their turns.
    turns: u32,
}

impl TurnCount<'_> {
    /// Comes to the next turn, the first of an action or a further one; gives which action it is.
    #[inline]
    fn next(&mut self, is_first: bool, places: &mut Vec<u32>) -> usize {
        if is_first {
            self.begun += 1;
            if self.dependent.has_turns {
                places.push(self.turns);
            }
        }
        self.turns += 1;
        // An element that names no row may be the first; then the call is not taken apart.
        self.begun.saturating_sub(1)
    }

    /// Whether each action has turns, which a list without elements does not give, and there are not too many.
    fn fit(&self, arguments: &[u8]) -> bool {
        let has_each = self.begun == self.dependent.actions.len();
        has_each && self.dependent.loops * arguments.len() as u64 <= limit::LOOP_TURNS
    }

    fn end(self, places: &mut Vec<u32>) {
        if self.dependent.has_turns {
            self.dependent.add_places(places, self.turns);
        }
    }
}

/// Encodes the first columns of a key; gives how many bytes the columns take that name a range.
#[inline]
fn encode(table: &Table, values: &[Datum<'_>], range: Option<usize>, key: &mut Key) -> Result<Option<u16>> {
    let mut in_range = None;
    if let Some(columns) = range {
        table.encode_key(&values[..columns], key)?;
        in_range = Some(key.bytes().len() as u16);
    }
    table.encode_key(values, key)?;
    Ok(in_range)
}

/// A record that stays where it is for longer than the epoch is pinned.
fn kept<'a>(record: &Record) -> &'a Record {
    // SAFETY: records are freed when no batch is in progress (`Ground::tidy`), and a graph is that of a batch.
    unsafe { &*std::ptr::from_ref(record) }
}

/// The first eight bytes of a key, as a number in the same order.
fn place(key: &[u8]) -> u64 {
    let mut word = [0; 8];
    let length = key.len().min(8);
    word[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use crate::accounts::{FIRST, calls_at, queue_of, with_graph};
    use crate::graph::{Kind, NONE, Queue};
    use fabius_env::Random;
    use fabius_value::Seq;
    use std::iter::successors;

    /// Goal: temporal dependencies are the order of seqs in an account's queue (definition 3); each action is linked to
    /// the one that was the queue's last, L(r), and is last itself then (algorithm 1, lines 6 and 7).
    #[test]
    fn a_queue_is_in_the_order_of_seqs() {
        let calls: [(&str, &[i32]); 5] =
            [("move", &[5]), ("set", &[0, 1]), ("move", &[3]), ("move", &[1]), ("move", &[3, 5])];
        with_graph(6, &calls, |graph| {
            assert_eq!(calls_at(graph, 0), [1]);
            assert_eq!(calls_at(graph, 1), [1, 3]);
            assert_eq!(calls_at(graph, 3), [2, 4]);
            assert_eq!(calls_at(graph, 5), [0, 4]);
            assert_eq!((graph.queues.len(), graph.actions.len()), (4, 7), "one queue for each account");
            let queue = &graph.queues[queue_of(graph, 3).expect("it has one")];
            assert_eq!(graph.actions[queue.last as usize].call, 4);
            assert_eq!(queue.weight, 2);
        });
    }

    /// Goal: every call has one turn at each of its accounts, behind all calls with lower seqs.
    #[test]
    fn every_action_has_its_turn() {
        let mut random = Random::seeded(3);
        let lists: Vec<Vec<i32>> = (0..200)
            .map(|_| (0..1 + random.below(4)).map(|_| random.below(20) as i32).collect::<Vec<_>>())
            .collect();
        let calls: Vec<(&str, &[i32])> = lists
            .iter()
            .map(|ids| (if random.chance(1, 2) { "set" } else { "move" }, ids.as_slice()))
            .collect();
        with_graph(20, &calls, |graph| {
            for account in 0..20 {
                let expected =
                    (0..calls.len() as u32).filter(|call| calls[*call as usize].1.contains(&account));
                assert!(calls_at(graph, account).into_iter().eq(expected), "account {account}");
            }
            let seqs = graph.calls.iter().map(|node| node.stamped.seq);
            assert!(seqs.eq((FIRST..).map(Seq).take(calls.len())));
        });
    }

    /// Goal: a range coarsens only what it meets (section 3.3.2): calls at records are taken apart as without it, and
    /// their queues begin anew behind it.
    #[test]
    fn a_range_has_its_place_among_records() {
        let calls: [(&str, &[i32]); 7] = [
            ("set", &[0, 1]),
            ("set", &[1]),
            ("level", &[1]),
            ("level", &[0]),
            ("set", &[1, 2]),
            ("pay", &[2, 0]),
            ("level", &[2]),
        ];
        with_graph(3, &calls, |graph| {
            let kinds: Vec<Kind> = graph.calls.iter().map(|node| node.kind).collect();
            let (apart, whole, pay) = (Kind::Independent, Kind::Whole, Kind::Dependent);
            assert_eq!(kinds, [apart, apart, whole, whole, apart, pay, whole]);
            let calls_of = |queue: &Queue<'_>| {
                let next = |at: &u32| Some(graph.actions[*at as usize].next).filter(|next| *next != NONE);
                let calls = successors(Some(queue.first), next).map(|at| graph.actions[at as usize].call);
                (queue.stretch.expect("all are in the range").place(), calls.collect::<Vec<_>>())
            };
            let found: Vec<(usize, Vec<u32>)> = graph.queues.iter().map(calls_of).collect();
            let expected: [(usize, &[u32]); 7] =
                [(0, &[0]), (0, &[0, 1]), (1, &[2, 3]), (2, &[4]), (2, &[4, 5]), (2, &[5]), (3, &[6])];
            assert_eq!(found, expected.map(|(stretch, calls)| (stretch, calls.to_vec())));
            assert_eq!(graph.follow(0).count(), 0, "another queue of the stretch is left");
            let next: Vec<u32> = graph.follow(1).map(|queue| queue.first).collect();
            assert_eq!(next, [graph.queues[2].first]);
            assert_eq!(graph.follow(2).count(), 3);
            assert!((3..5).all(|queue| graph.follow(queue).count() == 0));
            assert_eq!(graph.follow(5).count(), 1);
            assert_eq!(graph.follow(6).count(), 0);
        });
    }

    /// Goal: a call is taken apart only if each of its actions has a record of its own, that is there.
    #[test]
    fn actions_are_bound_together_where_they_need_each_other() {
        let calls: [(&str, &[i32]); 4] =
            [("set", &[0, 1]), ("move", &[0, 1]), ("set", &[0, 9]), ("set", &[1, 1])];
        with_graph(2, &calls, |graph| {
            let kinds: Vec<Kind> = graph.calls.iter().map(|node| node.kind).collect();
            assert_eq!(kinds, [Kind::Independent, Kind::Whole, Kind::Whole, Kind::Whole]);
        });
    }
}
