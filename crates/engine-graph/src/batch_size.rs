//! How many calls a batch takes (LADS, sections 3.1 and 5.6).
//!
//! Below saturation a batch is whatever waits. Above, larger batches give more throughput and longer waits:
//! the bound is doubled while batches fill it and stay within the latency target, and halved when they do not.

/// The bound on a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchSize {
    calls: u32,
    latency_target_ns: u64,
}

impl BatchSize {
    /// Calls of a batch at the least.
    pub const CALLS_MIN: u32 = 128;
    /// Calls of a batch at the most: the default of the paper's experiments, about (section 5.7).
    pub const CALLS_MAX: u32 = 4096;

    /// A bound for batches that take no longer than this.
    pub fn new(latency_target_us: u64) -> BatchSize {
        BatchSize { calls: 1024, latency_target_ns: latency_target_us * 1000 }
    }

    /// The bound now.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Learns from a batch of so many calls that has taken so long.
    pub fn adapt(&mut self, calls: u32, taken_ns: u64) {
        if taken_ns > self.latency_target_ns {
            self.calls = (self.calls / 2).max(BatchSize::CALLS_MIN);
        } else if calls >= self.calls && taken_ns < self.latency_target_ns / 2 {
            self.calls = (self.calls * 2).min(BatchSize::CALLS_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: full batches that are quick make room for larger ones; slow ones do not stay.
    #[test]
    fn the_bound_follows_load_and_latency() {
        let mut size = BatchSize::new(1000);
        size.adapt(10, 1000);
        assert_eq!(size.calls(), 1024);
        size.adapt(1024, 100_000);
        assert_eq!(size.calls(), 2048);
        (0..10).for_each(|_| size.adapt(4096, 2_000_000));
        assert_eq!(size.calls(), BatchSize::CALLS_MIN);
    }
}
