//! The time of day and the time passed.

use std::fmt::Debug;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Debug + Send + Sync {
    /// Microseconds since the Unix epoch. May step backwards when the machine's clock is set.
    fn now_us(&self) -> i64;

    /// Nanoseconds since some fixed moment; never steps backwards. Only differences mean anything.
    fn monotonic_ns(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy)]
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    /// A clock whose monotonic time starts at zero now.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now_us(&self) -> i64 {
        // A clock set before 1970 is a negative time, not an error.
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        }
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the real clock is in this century and never runs backwards.
    #[test]
    fn real_clock_moves_forward() {
        let clock = RealClock::new();
        let year_2020_us = 1_577_836_800_000_000;
        assert!(clock.now_us() > year_2020_us);
        let first = clock.monotonic_ns();
        assert!(clock.monotonic_ns() >= first);
    }
}
