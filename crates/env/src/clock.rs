//! The time of day and the time passed.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
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

/// A clock whose time of day never goes back: where the one beneath does, it stands still until that one has caught
/// up. So does it behind a time that it is told of, which another machine's clock may have given.
#[derive(Debug)]
pub struct ForwardClock {
    beneath: Arc<dyn Clock>,
    newest_us: AtomicI64,
}

impl ForwardClock {
    /// Over another.
    #[must_use]
    pub fn over(beneath: Arc<dyn Clock>) -> ForwardClock {
        ForwardClock { beneath, newest_us: AtomicI64::new(i64::MIN) }
    }

    /// Microseconds since the Unix epoch, no less than before.
    #[must_use]
    pub fn now_us(&self) -> i64 {
        let now = self.beneath.now_us();
        let newest = self.newest_us.load(Relaxed);
        // Who finds that time has not moved on writes nothing.
        if now <= newest { newest } else { now.max(self.newest_us.fetch_max(now, Relaxed)) }
    }

    /// Nanoseconds since some fixed moment, as of the clock beneath.
    #[must_use]
    pub fn monotonic_ns(&self) -> u64 {
        self.beneath.monotonic_ns()
    }

    /// Says that it was this time, somewhere: from now on it is no earlier.
    pub fn has_been(&self, time_us: i64) {
        self.newest_us.fetch_max(time_us, Relaxed);
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

    /// Goal: time of day stands still where the clock beneath is set back, or behind what others have seen.
    #[test]
    fn forward_clock_never_goes_back() {
        let beneath = Arc::new(crate::SimulatedClock::at(1_000));
        let clock = ForwardClock::over(beneath.clone());
        assert_eq!(clock.now_us(), 1_000);
        beneath.step_us(-600);
        assert_eq!(clock.now_us(), 1_000);
        beneath.step_us(601);
        assert_eq!(clock.now_us(), 1_001);
        clock.has_been(5_000);
        clock.has_been(3_000);
        assert_eq!(clock.now_us(), 5_000);
    }
}
