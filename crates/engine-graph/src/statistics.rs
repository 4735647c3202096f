//! The statistics manager (LADS, sections 4.1 and 5.8): where time goes.

use fabius_engine::Counter;

/// Sums over all workers, in nanoseconds of their time where not said otherwise.
#[derive(Default)]
pub struct Statistics {
    /// Building dependency graphs.
    pub construction_ns: Counter,
    /// Dividing them.
    pub partitioning_ns: Counter,
    /// Executing record actions, and writing records.
    pub execution_ns: Counter,
    /// Waiting for other workers: for messages, and at the ends of phases.
    pub communication_ns: Counter,
    /// Graphs.
    pub graphs: Counter,
    /// Record actions.
    pub actions: Counter,
    /// Record queues.
    pub queues: Counter,
    /// Logical dependencies between partitions.
    pub cut: Counter,
}

/// The statistics at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in `Statistics`")]
pub struct Report {
    pub construction_ns: u64,
    pub partitioning_ns: u64,
    pub execution_ns: u64,
    pub communication_ns: u64,
    pub graphs: u64,
    pub actions: u64,
    pub queues: u64,
    pub cut: u64,
}

impl Statistics {
    /// The sums so far.
    pub fn report(&self) -> Report {
        Report {
            construction_ns: self.construction_ns.get(),
            partitioning_ns: self.partitioning_ns.get(),
            execution_ns: self.execution_ns.get(),
            communication_ns: self.communication_ns.get(),
            graphs: self.graphs.get(),
            actions: self.actions.get(),
            queues: self.queues.get(),
            cut: self.cut.get(),
        }
    }
}
