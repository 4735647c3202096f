//! How many calls a batch takes (LADS, sections 3.1 and 5.6).
//!
//! Below saturation a batch is whatever waits. Above, larger batches give more throughput and longer waits:
//! the bound is doubled while batches fill it and stay within the latency target, and halved when they do not. It never
//! exceeds the maximum that the user has set.

/// The bound on a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize {
    calls: u32,
    calls_max: u32,
    latency_target_ns: u64,
}

impl BatchSize {
    /// Calls to which the latency target reduces a batch at the least, unless the maximum is below.
    pub const CALLS_MIN: u32 = 128;
    /// The usual maximum: that of the paper's experiments, about (section 5.7).
    pub const CALLS_MAX: u32 = 4096;
    /// Calls that the first batch takes at the most, unless the maximum is below.
    const CALLS_FIRST: u32 = 1024;

    /// A bound of so many calls at the most, for batches that take no longer than this.
    pub fn new(calls_max: u32, latency_target_us: u64) -> BatchSize {
        let calls_max = calls_max.max(1);
        let calls = BatchSize::CALLS_FIRST.min(calls_max);
        BatchSize { calls, calls_max, latency_target_ns: latency_target_us * 1000 }
    }

    /// Sets another maximum. A bound above it is lowered at once; one below it grows as batches fill it.
    pub fn set_calls_max(&mut self, calls_max: u32) {
        self.calls_max = calls_max.max(1);
        self.calls = self.calls.min(self.calls_max);
    }

    /// The bound now.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Learns from a batch of so many calls that has taken so long.
    pub fn adapt(&mut self, calls: u32, taken_ns: u64) {
        if taken_ns > self.latency_target_ns {
            self.calls = (self.calls / 2).max(BatchSize::CALLS_MIN).min(self.calls_max);
        } else if calls >= self.calls && taken_ns < self.latency_target_ns / 2 {
            self.calls = (self.calls.saturating_mul(2)).min(self.calls_max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: full batches that are quick make room for larger ones; slow ones do not stay.
    #[test]
    fn the_bound_follows_load_and_latency() {
        let mut size = BatchSize::new(BatchSize::CALLS_MAX, 1000);
        size.adapt(10, 1000);
        assert_eq!(size.calls(), 1024);
        size.adapt(1024, 100_000);
        assert_eq!(size.calls(), 2048);
        (0..10).for_each(|_| size.adapt(4096, 2_000_000));
        assert_eq!(size.calls(), BatchSize::CALLS_MIN);
    }

    /// Goal: no batch exceeds the maximum, however small it is and however quick or slow batches are.
    #[test]
    fn the_maximum_is_kept() {
        let mut size = BatchSize::new(16, 1000);
        assert_eq!(size.calls(), 16);
        size.adapt(16, 1);
        assert_eq!(size.calls(), 16);
        size.adapt(16, 2_000_000);
        assert_eq!(size.calls(), 16);
        size.set_calls_max(1 << 14);
        assert_eq!(size.calls(), 16);
        (0..20).for_each(|_| size.adapt(1 << 14, 1));
        assert_eq!(size.calls(), 1 << 14);
        size.set_calls_max(100);
        assert_eq!(size.calls(), 100);
        assert_eq!(BatchSize::new(0, 1000).calls(), 1, "a batch has a call");
    }
}
