//! When calls arrive: a load over time, in even steps or at random.

use std::time::Duration;

/// Load over time.
#[derive(Clone, Debug)]
pub struct Arrivals {
    /// Calls per second outside the spike.
    pub base_tps: f64,
    /// The spike's rate is this many times the base.
    pub spike: f64,
    /// When the spike begins and ends, as parts of the whole time.
    pub spike_between: (f64, f64),
    /// Calls waiting for their outcome before more are refused.
    pub queue_calls: usize,
    /// Whether gaps are random (Poisson), or calls come in even steps.
    pub is_random: bool,
}

impl Arrivals {
    /// This load at all times.
    pub fn steady(tps: f64) -> Arrivals {
        Arrivals {
            base_tps: tps,
            spike: 1.0,
            spike_between: (0.0, 0.0),
            queue_calls: usize::MAX,
            is_random: true,
        }
    }

    /// This load for a time.
    pub fn over(&self, time: Duration) -> Offered {
        Offered { arrivals: self.clone(), time }
    }
}

/// A load for a time.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The load.
    pub arrivals: Arrivals,
    /// For how long.
    pub time: Duration,
}

impl Offered {
    /// Calls per second at a moment.
    pub fn rate(&self, elapsed: Duration) -> f64 {
        let part = elapsed.as_secs_f64() / self.time.as_secs_f64();
        let (begin, end) = self.arrivals.spike_between;
        if part >= begin && part < end {
            self.arrivals.base_tps * self.arrivals.spike
        } else {
            self.arrivals.base_tps
        }
    }
}
