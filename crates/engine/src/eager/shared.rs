//! What the calls of an eager engine share, whatever keeps them apart.

use crate::Foundation;
use crate::eager::granule::Granules;
use crate::eager::sequencer::Sequencer;
use fabius_env::sync::RwLock;
use fabius_storage::fold::Retired;
use fabius_storage::purge::Purge;
use fabius_value::Seq;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};

/// Mutexes for making records, by key.
const CREATION_MUTEXES: usize = 64;
/// So many notes about keys stop the calls to purge them.
pub const PURGE_AT: usize = 4096;

/// What the calls share.
pub struct Shared {
    /// Definitions, log, clock, snapshots.
    pub foundation: Arc<Foundation>,
    /// Words for what is not a record.
    pub granules: Granules,
    /// One thread at a time makes the record of a key.
    pub creation: [Mutex<()>; CREATION_MUTEXES],
    /// The order.
    pub sequencer: Sequencer,
    /// Keys to take out of indexes.
    pub purge: Mutex<Purge>,
    /// Held exclusively by a call that has to run alone.
    pub alone: RwLock<()>,
    collector: Mutex<()>,
    collected: AtomicU64,
}

impl Shared {
    /// The start, on a foundation.
    pub fn new(foundation: Arc<Foundation>) -> Shared {
        Shared {
            foundation,
            granules: Granules::default(),
            creation: std::array::from_fn(|_| Mutex::new(())),
            sequencer: Sequencer::default(),
            purge: Mutex::default(),
            alone: RwLock::default(),
            collector: Mutex::default(),
            collected: AtomicU64::new(0),
        }
    }

    /// Up to where nobody reads any more; finds out anew unless another thread is at it.
    pub fn collect(&self) -> Seq {
        if let Some(_collector) = self.collector.try_lock() {
            let collected = self.foundation.snapshots.collect(self.foundation.promised());
            self.collected.store(collected.0, Release);
        }
        self.collected()
    }

    /// Up to where nobody reads any more, as it was found last.
    pub fn collected(&self) -> Seq {
        Seq(self.collected.load(Acquire))
    }

    /// Takes keys out of indexes that no reader can need; whether there were any. No call runs meanwhile.
    pub fn tidy(&self) -> bool {
        let mut purge = self.purge.lock();
        let before = purge.len();
        let guard = crossbeam_epoch::pin();
        let mut retired = Retired::default();
        let collected = self.collect();
        purge.run(|_| collected, collected, PURGE_AT, &mut retired, &guard);
        retired.hand_over(&guard);
        purge.len() != before
    }
}
