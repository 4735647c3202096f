//! What the figures of Doppel have in common.

use crate::claim::Reasons;

/// Doppel, its optimistic base, and two-phase locking, by the names of their engines here.
pub const ENGINES: &[&str] = &["split", "occ", "2pl"];
/// The paper's numbers of cores, and those below that machines like ours have.
pub const THREADS: [usize; 7] = [1, 2, 4, 10, 20, 40, 80];
/// Batches that each client has on the way: a phase ends when nothing is left to begin, and answers wait for its end.
pub const IN_FLIGHT: usize = 16;
/// How often each point is measured: the differences that these figures are about are smaller than those between one
/// minute of a shared machine and the next.
pub const ROUNDS: usize = 3;
/// How many times as fast as occ splitting may be here: as often as the paper's 80 cores make it there.
pub const MOST: f64 = 40.0;
/// Why splitting may not pay with few cores, or more than in the paper.
pub const REASONS: Reasons<'static> = Reasons {
    fails: "with two cores conflicts are few: what splitting saves shows in full where many cores wait for one row",
    differs: "occ runs calls again that the paper's would let wait",
};
