//! When a refused call begins again: after a random time, whose bound doubles with each refusal.

use fabius_env::schedule;

/// The bound on the wait after the first refusal, in turns of a loop that does nothing (some
/// nanoseconds each).
const SPINS_FIRST: u64 = 8;
/// The bound doubles so often, at most: to some microseconds, which is what a call takes.
const DOUBLINGS_MAX: u32 = 6;

/// How long to wait before the next attempt of a call.
pub struct Backoff {
    refused: u32,
    state: u64,
}

impl Backoff {
    /// For the thread with this number; threads with different numbers wait differently.
    pub fn new(number: usize) -> Backoff {
        Backoff { refused: 0, state: number as u64 + 1 }
    }

    /// The next call begins.
    #[inline]
    pub fn reset(&mut self) {
        self.refused = 0;
    }

    /// Waits before the next attempt.
    pub fn wait(&mut self) {
        schedule::point("backoff");
        let bound = SPINS_FIRST << self.refused.min(DOUBLINGS_MAX);
        self.refused += 1;
        if schedule::is_simulated() {
            return;
        }
        // Marsaglia's xorshift; its quality does not matter here.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        for _ in 0..self.state % bound {
            std::hint::spin_loop();
        }
        if self.refused > DOUBLINGS_MAX {
            // Whoever is in the way may be waiting for this core.
            std::thread::yield_now();
        }
    }
}
