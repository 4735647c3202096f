//! A clock that moves only when told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use crate::Clock;

/// A clock that stands still between calls of [`advance`](Self::advance). Clones show the same time.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    hands: Arc<Hands>,
}

#[derive(Debug)]
struct Hands {
    /// The epoch time when monotonic time was zero, moved by [`SimulatedClock::step_us`].
    epoch_us: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl SimulatedClock {
    /// A clock standing at `now_us` microseconds since the Unix epoch, with monotonic time zero.
    #[must_use]
    pub fn at(now_us: i64) -> Self {
        Self { hands: Arc::new(Hands { epoch_us: AtomicI64::new(now_us), monotonic_ns: AtomicU64::new(0) }) }
    }

    /// Lets `duration` pass on both clocks.
    pub fn advance(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.hands.monotonic_ns.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Sets the time of day forwards or backwards, as an operator or NTP would; monotonic time
    /// does not notice.
    pub fn step_us(&self, difference_us: i64) {
        self.hands.epoch_us.fetch_add(difference_us, Ordering::SeqCst);
    }
}

impl Clock for SimulatedClock {
    fn now_us(&self) -> i64 {
        let passed_us = self.monotonic_ns() / 1_000;
        self.hands
            .epoch_us
            .load(Ordering::SeqCst)
            .saturating_add(i64::try_from(passed_us).unwrap_or(i64::MAX))
    }

    fn monotonic_ns(&self) -> u64 {
        self.hands.monotonic_ns.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: time passes only by `advance`, and setting the time of day leaves monotonic time.
    #[test]
    fn stands_still_until_advanced() {
        let clock = SimulatedClock::at(1_000);
        assert_eq!((clock.now_us(), clock.monotonic_ns()), (1_000, 0));
        clock.clone().advance(Duration::from_micros(5));
        assert_eq!((clock.now_us(), clock.monotonic_ns()), (1_005, 5_000));
        clock.step_us(-10);
        assert_eq!((clock.now_us(), clock.monotonic_ns()), (995, 5_000));
    }
}
