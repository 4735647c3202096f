//! What looks random, from a seed: whoever calls brings the seed along, so that every run of the call comes to the
//! same values, also one ahead of its place in the order.

/// The step between the states of a SplitMix64 generator (Steele, Lea and Flood, OOPSLA 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output of a SplitMix64 generator that has come so far.
fn mixed(seed: i64, n: i64) -> u64 {
    let mut state = (seed as u64).wrapping_add((n as u64).wrapping_add(1).wrapping_mul(STEP));
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

/// A number in [0, 1), of 53 bits.
pub(super) fn number(seed: i64, n: i64) -> f64 {
    (mixed(seed, n) >> 11) as f64 / (1u64 << 53) as f64
}

/// A UUID of version 4 (RFC 9562, section 5.4).
pub(super) fn uuid(seed: i64, n: i64) -> [u8; 16] {
    // Another sequence than that of the numbers.
    let high = mixed(!seed, n.wrapping_mul(2));
    let low = mixed(!seed, n.wrapping_mul(2).wrapping_add(1));
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    bytes[6] = 0x40 | bytes[6] & 0x0f;
    bytes[8] = 0x80 | bytes[8] & 0x3f;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Goal: the same for the same seed and place, and spread over the whole range otherwise.
    #[test]
    fn numbers_are_spread_and_repeat() {
        assert_eq!(number(7, 3).to_bits(), number(7, 3).to_bits());
        let numbers: Vec<f64> = (0..1000).map(|n| number(i64::MIN, n)).collect();
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        let uuids: BTreeSet<[u8; 16]> = (0..1000).map(|n| uuid(1, n)).collect();
        assert_eq!(uuids.len(), 1000);
        assert!(uuids.iter().all(|uuid| uuid[6] >> 4 == 4 && uuid[8] >> 6 == 2));
    }
}
