//! Clusters of three and five nodes on a simulated network, with simulated disks and clocks, and everything that can
//! go wrong with them, from one seed.
//!
//! Nodes are real: their replicas, logs and engines are those that a server runs. One thread drives them all, a step
//! at a time, and a seed decides which step comes next: time goes on, a node ticks, hears, writes its log; a client
//! hands something in; a node is killed, loses its power, is cut off, has a bit flipped. In the end everything is
//! mended, and then it must all be well:
//!
//! - what was agreed on is the same on every node, at every index, whoever took it and in whatever life;
//! - no term has two leaders;
//! - every call that was acknowledged is there, once, with the result that was told; none is there twice;
//! - who began after another had ended comes behind it, readers too ([`ledger`]);
//! - every node has the rows that the serial oracle has after the same entries, and no two other digests on the way;
//! - the cluster answers again.

mod client;
mod ledger;
mod node;
mod world;

use fabius_testing::rig::Make;
use std::collections::BTreeMap;

/// What a run has seen.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How often each thing has happened that does not happen always.
    pub counts: BTreeMap<&'static str, u64>,
    /// A number made of everything that happened; runs of one seed have equal ones.
    pub history: u64,
}

/// What does not happen always, and has to happen in so many seeds that one can rely on them.
pub const RARE: [&str; 34] = [
    "a bit of a checkpoint was flipped",
    "a bit was flipped",
    "a clock was set",
    "a damaged node began anew",
    "a fenced proposal was refused",
    "a link was cut one way",
    "a node began another life",
    "a node had run what was not agreed on",
    "a node learned that it was removed",
    "a node learned that it was too far behind",
    "a node lost its power",
    "a node stopped because its disk failed",
    "a node was cut off",
    "a node was filled from a checkpoint",
    "a node was given a vote",
    "a node was killed",
    "a node was let in",
    "a node was removed",
    "a proposal came twice or too late",
    "a proposal was lost with its leader",
    "a proposal was sent again to the same leader",
    "a read was asked for again",
    "a successor came closer to its seat",
    "an entry could not be proposed at once",
    "an entry was read from the segments",
    "damage kept a node out",
    "digests were compared",
    "doubled",
    "entries were cut off a log",
    "late across lives",
    "lost",
    "reordered",
    "the lead was to be handed on",
    "unread at a crash",
];

/// A rule of agreement that is broken on purpose: runs have to notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// The first node takes itself for the only member.
    MajorityTooSmall,
    /// A node that begins another life has forgotten its vote and term.
    VoteForgotten,
    /// What a node has synced is lost when its power is.
    SyncLeftOut,
    /// The last node takes entries as soon as they are in its log.
    TakenBeforeAgreement,
    /// Readers read at once.
    StaleRead,
    /// The last node leaves calls out of what it executes.
    CallLeftOut,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 6] = [
        Mutation::MajorityTooSmall,
        Mutation::VoteForgotten,
        Mutation::SyncLeftOut,
        Mutation::TakenBeforeAgreement,
        Mutation::StaleRead,
        Mutation::CallLeftOut,
    ];
}

/// Runs one seed.
///
/// # Errors
/// What was not as it must be.
pub fn run(seed: u64, make: Make<'_>) -> Result<Report, String> {
    world::World::new(seed, make, None).run()
}

/// Runs one seed with a rule broken.
///
/// # Errors
/// What was not as it must be.
pub fn run_mutated(seed: u64, make: Make<'_>, mutation: Mutation) -> Result<Report, String> {
    world::World::new(seed, make, Some(mutation)).run()
}
