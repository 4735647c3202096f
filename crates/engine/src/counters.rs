//! What an engine has done so far.
//!
//! Counted where it happens, without sharing: each counter is padded to a cache line of its own, and
//! engines add in bulk (per batch, per run of the substantiation loop), not per call.

use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One number that only grows.
#[derive(Default)]
pub struct Counter(CachePadded<AtomicU64>);

impl Counter {
    /// Adds.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// An engine's counters.
#[derive(Default)]
pub struct Counters {
    /// Calls whose outcome is decided: committed.
    pub committed: Counter,
    /// Calls whose outcome is decided: aborted by their own program or arguments.
    pub aborted: Counter,
    /// Deferred calls whose later-phase has run.
    pub substantiated: Counter,
    /// Those of them that ran while the lane waited, because a now-phase read what they write.
    pub substantiated_in_lane: Counter,
    /// Deferred calls that were dropped without running, because nobody could read what they write.
    pub skipped: Counter,
    /// Calls that needed no later-phase.
    pub immediate: Counter,
    /// Deltas merged into one that stood there already.
    pub merged: Counter,
    /// Attempts given up and repeated (locking and optimistic engines).
    pub retries: Counter,
    /// Bytes appended to the log.
    pub log_bytes: Counter,
    /// Times that callers were slowed down for want of memory.
    pub slowed: Counter,
}

/// The counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in `Counters`")]
pub struct Counts {
    pub committed: u64,
    pub aborted: u64,
    pub substantiated: u64,
    pub substantiated_in_lane: u64,
    pub skipped: u64,
    pub immediate: u64,
    pub merged: u64,
    pub retries: u64,
    pub log_bytes: u64,
    pub slowed: u64,
    /// Deferred calls that are neither run nor dropped yet.
    pub backlog: u64,
}

impl Counters {
    /// The counters now, with the backlog that the engine knows.
    pub fn counts(&self, backlog: u64) -> Counts {
        Counts {
            committed: self.committed.get(),
            aborted: self.aborted.get(),
            substantiated: self.substantiated.get(),
            substantiated_in_lane: self.substantiated_in_lane.get(),
            skipped: self.skipped.get(),
            immediate: self.immediate.get(),
            merged: self.merged.get(),
            retries: self.retries.get(),
            log_bytes: self.log_bytes.get(),
            slowed: self.slowed.get(),
            backlog,
        }
    }
}
