//! What a run gave.

use crate::recorder::Recorder;
use fabius::Counts;
use std::time::Duration;

/// What a run gave.
#[derive(Clone)]
pub struct Measured {
    /// What the clients saw.
    pub seen: Recorder,
    /// What the engine counted during the run.
    pub counts: Counts,
    /// Where the engine's time went, by its own phases, in nanoseconds; empty if it does not tell.
    pub times: Vec<(&'static str, u64)>,
    /// While calls were made.
    pub offered: Duration,
    /// Until every call made was also substantiated.
    pub elapsed: Duration,
    /// The highest resident size during the run.
    pub peak_rss_bytes: u64,
    /// Whether it was ended early.
    pub is_interrupted: bool,
}

impl Measured {
    /// Committed calls per second, counting the time until all of them were substantiated.
    pub fn throughput_tps(&self) -> f64 {
        self.seen.committed_total() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Committed calls per second while calls were made: promises.
    pub fn promised_tps(&self) -> f64 {
        self.seen.committed_total() as f64 / self.offered.as_secs_f64().max(1e-9)
    }
}

/// The run whose rate lies in the middle; there has to be one.
pub fn middle<R>(mut runs: Vec<R>, rate: impl Fn(&R) -> f64) -> R {
    runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    runs.swap_remove(runs.len() / 2)
}

/// The times that lie between two readings of an engine's phases.
pub fn times_between(
    after: Vec<(&'static str, u64)>,
    before: &[(&'static str, u64)],
) -> Vec<(&'static str, u64)> {
    after.into_iter().zip(before).map(|((phase, after), (_, before))| (phase, after - before)).collect()
}

/// What lies between two readings of an engine's counters.
pub fn difference(after: &Counts, before: &Counts) -> Counts {
    Counts {
        committed: after.committed - before.committed,
        aborted: after.aborted - before.aborted,
        substantiated: after.substantiated - before.substantiated,
        substantiated_in_lane: after.substantiated_in_lane - before.substantiated_in_lane,
        skipped: after.skipped - before.skipped,
        immediate: after.immediate - before.immediate,
        merged: after.merged - before.merged,
        retries: after.retries - before.retries,
        log_bytes: after.log_bytes - before.log_bytes,
        slowed: after.slowed - before.slowed,
        backlog: after.backlog,
    }
}
