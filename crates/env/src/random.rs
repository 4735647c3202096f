//! One small seeded generator.
//!
//! xoshiro256++ seeded by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", 2021). It is written out here, not taken from a library, because a seed printed by
//! a failing test has to give the same sequence for ever, on every platform and version.

/// A seeded random number generator; not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of `seed`. Any seed is good, also zero.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut spread = seed;
        Self { state: std::array::from_fn(|_| splitmix64(&mut spread)) }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        // The reference's steps (its `s[0]` to `s[3]`), with its `t = s[1] << 17` folded in.
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number in `0..bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        // Multiply and shift: the bias is below bound / 2^64, which no simulation can see.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// An index in `0..bound`; [`below`](Self::below) for lengths.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// True `numerator` times in `denominator`.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// A number in `0.0..1.0`.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Fills `bytes` with random bits.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// A generator of its own for one part of a simulation, so that how much one part draws does
    /// not shift what the others see.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self::seeded(self.next_u64())
    }
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the sequence of a state is that of the published reference (the values are those of
    /// `rand_xoshiro`'s own reference test, state 1, 2, 3, 4).
    #[test]
    fn agrees_with_the_reference() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205];
        for value in expected {
            assert_eq!(random.next_u64(), value);
        }
    }

    /// Goal: equal seeds give equal sequences, different seeds different ones.
    #[test]
    fn a_seed_is_a_reproduction() {
        let draw = |seed| {
            let mut random = Random::seeded(seed);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    /// Goal: bounded draws stay in bounds and reach every value.
    #[test]
    fn bounded_draws_cover_their_range() {
        let mut random = Random::seeded(0);
        let mut seen = [false; 10];
        for _ in 0..1_000 {
            seen[random.index(10)] = true;
            assert!((0.0..1.0).contains(&random.unit_f64()));
        }
        assert_eq!(seen, [true; 10]);
        let hits = (0..10_000).filter(|_| random.chance(1, 4)).count();
        assert!((2_200..2_800).contains(&hits), "{hits}");
    }

    /// Goal: filling is the same bytes whatever the length asked for is a prefix of.
    #[test]
    fn fill_handles_odd_lengths() {
        let mut short = [0; 11];
        let mut long = [0; 16];
        Random::seeded(3).fill(&mut short);
        Random::seeded(3).fill(&mut long);
        assert_eq!(short, long[..11]);
    }
}
