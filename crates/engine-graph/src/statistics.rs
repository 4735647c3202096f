//! The statistics manager (LADS, sections 4.1 and 5.8): where time goes.

use fabius_engine::Counter;

/// Sums over all workers, in nanoseconds of their time.
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
}

impl Statistics {
    /// The sums so far, by phase.
    pub fn times(&self) -> Vec<(&'static str, u64)> {
        let phases = [
            ("construction", &self.construction_ns),
            ("partitioning", &self.partitioning_ns),
            ("execution", &self.execution_ns),
            ("communication", &self.communication_ns),
        ];
        phases.into_iter().map(|(phase, time)| (phase, time.get())).collect()
    }
}
