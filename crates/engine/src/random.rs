//! The random numbers of a call: the same for every engine and every replay.

use fabius_value::Seq;

/// A splitmix64 generator seeded by a call's seq.
#[derive(Clone, Debug)]
pub struct CallRandom(u64);

impl CallRandom {
    /// The generator of the call at `seq`.
    pub fn new(seq: Seq) -> CallRandom {
        CallRandom(seq.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// The next number, at least 0 and below 1.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ bits >> 31) as f64 / 2f64.powi(64) * (1.0 - f64::EPSILON)
    }
}
