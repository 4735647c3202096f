//! A call on its way through its phases, and what it demands of partitions (DORA's transaction flow graph; LADS,
//! section 2.2).

use crate::partition_set::PartitionSet;
use crate::run::Place;
use fabius_engine::eager::intake::Work;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// What an action demands of its partition.
#[derive(Debug)]
pub enum Demand {
    /// All of it, alone.
    Whole,
    /// Records, by hash, each once; whether exclusively.
    Records(Vec<(u64, bool)>),
}

impl Demand {
    /// Grants that it takes: one to enter, one for each record.
    pub fn grants(&self) -> u32 {
        match self {
            Demand::Whole => 1,
            Demand::Records(records) => 1 + records.len() as u32,
        }
    }
}

/// A call on its way through its phases (DORA's transaction flow graph).
pub struct Flow {
    /// The call, with whoever waits for it.
    pub work: Arc<Work>,
    /// The call's place in the order.
    pub place: Place,
    /// The partitions that it touches.
    pub partitions: PartitionSet,
    /// By partition, ascending.
    pub demands: Vec<(usize, Demand)>,
    /// Grants until the rendezvous.
    pub missing: AtomicU32,
}

impl Flow {
    /// What it demands of one of its partitions.
    pub fn demand(&self, number: usize) -> &Demand {
        &self.demands[number].1
    }
}
