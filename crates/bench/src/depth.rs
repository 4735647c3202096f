//! How many batches a client has on the way.

use crate::settings::Settings;
use fabius::Durability;

/// A batch that took longer than this has been waiting in a queue, not only for the disk.
const QUEUED_NS: u64 = 40_000_000;

/// Batches on the way per client. With fsync as many as it takes to keep busy during a flush, found
/// out as the run goes on; never more than the workload allows.
pub struct Depth {
    /// Batches that may be on the way now.
    pub now: usize,
    min: usize,
    max: usize,
    may_grow: bool,
}

impl Depth {
    /// By the settings; at most `calls_max` calls.
    pub fn new(settings: &Settings, durability: Durability, batch: usize, calls_max: usize) -> Depth {
        let (min, max) = match (settings.auto("in_flight"), durability) {
            (Some(depth), _) => (depth as usize, depth as usize),
            (None, _) if batch == 1 => (1, 1),
            (None, Durability::Fsync) => (4, (65_536 / batch).max(4)),
            (None, Durability::None) => (4, 4),
        };
        let most = (calls_max / batch).max(1);
        Depth { now: min.min(most), min: min.min(most), max: max.min(most), may_grow: true }
    }

    /// A batch took so long.
    pub fn heard(&mut self, latency_ns: u64) {
        if latency_ns > QUEUED_NS {
            self.now = (self.now - 1).max(self.min);
        }
        self.may_grow = latency_ns < QUEUED_NS / 2;
    }

    /// Everything handed in waits for the log, and there is nothing else to do.
    pub fn starved(&mut self) {
        if std::mem::take(&mut self.may_grow) {
            self.now = (self.now + 1).min(self.max);
        }
    }
}
