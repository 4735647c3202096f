//! A place in the agreed log.

/// Where an entry of the agreed log ends: by Raft's count of entries and by Fabius' count of calls. Both begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Point {
    /// The sequence number of its last call (or definition, or what else takes one).
    pub seq: u64,
    /// The point's index.
    pub index: u64,
    /// The term in which a leader proposed it.
    pub term: u64,
}
