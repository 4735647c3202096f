//! Dependency graph partitioning (LADS, section 3.2, algorithm 2).
//!
//! What is partitioned is the weighted graph of record queues: a vertex is a queue and weighs as much as it
//! has actions; an edge weighs as much as there are logical dependencies between two queues. The queues are
//! divided evenly along the key range first; then the vertex whose move takes away most of the cut's weight
//! is moved to the other side of its edge, as long as that is a gain and the balance bound holds:
//!
//! ```text
//! w(V_k) <= (1 + epsilon) * w(V) / n      for every partition k
//! ```

use crate::graph::{Graph, Turn};
use std::collections::BinaryHeap;

/// How much heavier than its share a partition may become: epsilon.
const EPSILON: f64 = 0.1;
/// Moves that are made at the most, for each hundred queues.
const MOVES_PER_HUNDRED: usize = 10;

/// Divides the graph's queues, and with them its calls, among so many partitions.
pub fn partition(graph: &mut Graph<'_>, partitions: u32) {
    if partitions > 1 && !graph.queues.is_empty() {
        let mut weights = by_key_range(graph, partitions);
        improve(graph, &mut weights);
    }
    lay_out(graph, partitions);
    begin(graph, partitions);
}

/// Puts the turns of each partition's queues next to each other.
fn lay_out(graph: &mut Graph<'_>, partitions: u32) {
    let mut next = 0;
    for partition in 0..partitions {
        for queue in graph.queues.iter_mut().filter(|queue| queue.partition == partition) {
            queue.turn = next;
            graph.turns.push(Turn::new(queue.first));
            next += 1;
        }
    }
}

/// Says where calls begin: at their first action, or, if their actions are independent of each other, in every
/// partition that has any.
fn begin(graph: &mut Graph<'_>, partitions: u32) {
    let mut starts = std::mem::take(&mut graph.starts);
    starts.resize_with(partitions as usize, Vec::new);
    starts.iter_mut().for_each(Vec::clear);
    for number in 0..graph.calls.len() as u32 {
        let is_divisible = graph.calls[number as usize].is_divisible;
        let actions = graph.actions_of(number);
        if actions.is_empty() {
            starts[(number % partitions) as usize].push(number);
        }
        for action in if is_divisible { actions } else { actions.start..actions.end.min(actions.start + 1) } {
            let start = &mut starts[graph.queue_of(action).partition as usize];
            if start.last() != Some(&number) {
                start.push(number);
            }
        }
    }
    graph.starts = starts;
}

/// Divides the queues along keys into partitions of about the same weight; gives their weights. Rows of several
/// tables that begin with the same key (a warehouse and what is in it) come together.
fn by_key_range(graph: &mut Graph<'_>, partitions: u32) -> Vec<u64> {
    let mut order: Vec<(u64, u32, u32)> = Vec::with_capacity(graph.queues.len());
    for (number, queue) in graph.queues.iter().enumerate() {
        // Eight bytes of the key tell enough of its range.
        let mut word = [0; 8];
        let length = queue.key.len().min(8);
        word[..length].copy_from_slice(&queue.key[..length]);
        order.push((u64::from_be_bytes(word), queue.table.0, number as u32));
    }
    order.sort_unstable();
    let total = graph.actions.len() as u64;
    let mut weights = vec![0; partitions as usize];
    let mut before = 0;
    for (_, _, number) in order {
        let queue = &mut graph.queues[number as usize];
        let middle = before + u64::from(queue.weight) / 2;
        queue.partition =
            (middle * u64::from(partitions) / total.max(1)).min(u64::from(partitions) - 1) as u32;
        weights[queue.partition as usize] += u64::from(queue.weight);
        before += u64::from(queue.weight);
    }
    weights
}

/// The edges of the weighted graph, from each queue. Actions that are independent have none.
struct Edges {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Edges {
    fn of(graph: &Graph<'_>) -> Edges {
        let pairs = || {
            let calls = 0..graph.calls.len() as u32;
            calls.filter(|call| !graph.calls[*call as usize].is_divisible).flat_map(|call| {
                let actions = &graph.actions
                    [graph.actions_of(call).start as usize..graph.actions_of(call).end as usize];
                actions.windows(2).map(|pair| (pair[0].queue as usize, pair[1].queue as usize))
            })
        };
        let mut starts = vec![0u32; graph.queues.len() + 1];
        for (one, other) in pairs() {
            starts[one] += 1;
            starts[other] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut ends = vec![0; sum as usize];
        for (one, other) in pairs() {
            starts[one] -= 1;
            ends[starts[one] as usize] = other as u32;
            starts[other] -= 1;
            ends[starts[other] as usize] = one as u32;
        }
        Edges { starts, ends }
    }

    fn from(&self, queue: u32) -> &[u32] {
        &self.ends[self.starts[queue as usize] as usize..self.starts[queue as usize + 1] as usize]
    }
}

/// The best partition to move a queue to, by how much of the cut's weight that takes away.
fn benefit(graph: &Graph<'_>, edges: &Edges, queue: u32, count: &mut [i64]) -> (i64, u32) {
    count.fill(0);
    for &end in edges.from(queue) {
        count[graph.queues[end as usize].partition as usize] += 1;
    }
    let own = graph.queues[queue as usize].partition;
    let others = (0..count.len() as u32).filter(|partition| *partition != own);
    let best = others.max_by_key(|partition| count[*partition as usize]).expect("there are two partitions");
    (count[best as usize] - count[own as usize], best)
}

/// Moves queues across the cut.
fn improve(graph: &mut Graph<'_>, weights: &mut [u64]) {
    let edges = Edges::of(graph);
    if edges.ends.is_empty() {
        return;
    }
    let partitions = weights.len();
    let bound = ((1.0 + EPSILON) * graph.actions.len() as f64 / partitions as f64) as u64;
    let mut count = vec![0; partitions];
    let mut benefits: BinaryHeap<(i64, u32, u32)> = BinaryHeap::new();
    for queue in 0..graph.queues.len() as u32 {
        let own = graph.queues[queue as usize].partition;
        if edges.from(queue).iter().any(|end| graph.queues[*end as usize].partition != own) {
            let (benefit, to) = benefit(graph, &edges, queue, &mut count);
            if benefit > 0 {
                benefits.push((benefit, queue, to));
            }
        }
    }
    let mut moves = graph.queues.len() * MOVES_PER_HUNDRED / 100 + 1;
    while let Some((claimed, queue, to)) = benefits.pop() {
        let (now, best) = benefit(graph, &edges, queue, &mut count);
        if now <= 0 {
            continue;
        }
        if (now, best) != (claimed, to) {
            // Its neighbours have moved since.
            benefits.push((now, queue, best));
            continue;
        }
        let weight = u64::from(graph.queues[queue as usize].weight);
        if weights[to as usize] + weight > bound {
            continue;
        }
        weights[graph.queues[queue as usize].partition as usize] -= weight;
        weights[to as usize] += weight;
        graph.queues[queue as usize].partition = to;
        moves -= 1;
        if moves == 0 {
            break;
        }
        for &end in edges.from(queue) {
            let (benefit, to) = benefit(graph, &edges, end, &mut count);
            if benefit > 0 {
                benefits.push((benefit, end, to));
            }
        }
    }
}
