//! How rows are divided, and how calls are kept apart.

use crate::partition_set::PARTITIONS_MAX;

/// How calls of one database are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// H-Store: a partition runs one call at a time, and a call that crosses has all its partitions.
    #[default]
    Partitioned,
    /// DORA: the owners of logical partitions lock records for the calls, in tables of their own.
    Dora,
}

/// What the owner of a static partition does that is granted to a call which still needs others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Lends its thread elsewhere.
    #[default]
    Lends,
    /// Blocks until the call has ended, as in H-Store.
    Blocks,
}

/// How the engine is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// How calls are kept apart.
    pub scheme: Scheme,
    /// How many partitions there are, 1 to 64. H-Store has as many as threads, TPC-C as many as warehouses;
    /// DORA's are logical, and more.
    pub partitions: usize,
    /// What owners of static partitions do while a call that crosses waits for others.
    pub waiting: Waiting,
}

/// Logical partitions for each core.
const LOGICAL_PER_CORE: usize = 8;

impl Policy {
    /// The usual number of partitions for a scheme: one for each core, or some logical ones.
    pub fn of(scheme: Scheme) -> Policy {
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        let partitions = match scheme {
            Scheme::Partitioned => cores,
            Scheme::Dora => cores * LOGICAL_PER_CORE,
        };
        Policy { scheme, partitions: partitions.min(PARTITIONS_MAX), waiting: Waiting::default() }
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::of(Scheme::default())
    }
}
