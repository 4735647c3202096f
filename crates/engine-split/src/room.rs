//! How far the cores may move a split column in a phase, so that no order of their operations leaves its range.
//!
//! The room of a phase is computed when it begins, and no core has any of it then. A core takes as much as its next
//! operation needs, and keeps that as its *share* until the phase ends. So room follows the cores that run calls, and
//! a factor of two splits on two cores as on two hundred.
//!
//! ```text
//! an int at 2^28, multiplied      left    shares
//!                                 7       -   -   -
//! core 0    * 2                   3       2   -   -
//! core 2    * 3                   1       2   -   3
//! core 1    * 2: stashed          1       2   -   3
//! ```
//!
//! **Invariant**: what is left and all shares come to the whole room at most; of sums their sum does, of factors their
//! product. A core's operands, by their sizes, come to its share at most. So those of all cores, or of some of them in
//! any order, move the column by no more than the room.
//!
//! A core takes room for sums by large pieces: each comes here a few times in a phase. Of factors it takes what it
//! needs: there are 62 of two or more in the room of a bigint.

use parking_lot::Mutex;

/// The part of what is left that a core takes for sums, if it needs no more: of so many cores each gets some.
const PARTS: i128 = 256;

/// What is left of a column's room.
#[derive(Debug)]
pub struct Room {
    left: Mutex<i128>,
}

impl Room {
    /// The whole room: how much all operands may come to.
    pub fn new(whole: i128) -> Room {
        Room { left: Mutex::new(whole) }
    }

    /// Makes a core's share of a sum at least `needed`, which is more than it is; gives the new share, or `None` if
    /// too little is left.
    pub fn extend_sum(&self, share: i128, needed: i128) -> Option<i128> {
        let mut left = self.left.lock();
        let more = needed - share;
        if more > *left {
            return None;
        }
        let taken = more.max(*left / PARTS);
        *left -= taken;
        Some(share + taken)
    }

    /// As [`Room::extend_sum`], of a product. A share of 0 is that of a core that has not multiplied: it needs room
    /// for 1 too, which the lowest number of a type does not have.
    pub fn extend_product(&self, share: i128, needed: i128) -> Option<i128> {
        let mut left = self.left.lock();
        let share = share.max(1);
        let times = needed / share + i128::from(needed % share > 0);
        if times > *left {
            return None;
        }
        *left /= times;
        Some(share * times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::Random;

    /// Goal: shares and what is left never come to more than the whole, and a core gets what it asks for as long as
    /// so much is left.
    #[test]
    fn shares_stay_within_the_room() {
        for seed in 0..200 {
            let mut random = Random::seeded(seed);
            let whole = random.below(100_000) as i128;
            let (sum, product) = (Room::new(whole), Room::new(whole));
            let (mut sums, mut products) = ([0i128; 8], [0i128; 8]);
            for _ in 0..100 {
                let core = random.below(8) as usize;
                let left = *sum.left.lock();
                let more = 1 + random.below(5_000) as i128;
                let extended = sum.extend_sum(sums[core], sums[core] + more);
                assert_eq!(extended.is_some(), more <= left);
                sums[core] = extended.unwrap_or(sums[core]);
                let left = *product.left.lock();
                let factor = 1 + random.below(9) as i128;
                let extended = product.extend_product(products[core], products[core].max(1) * factor);
                assert_eq!(extended.is_some(), factor <= left);
                products[core] = extended.unwrap_or(products[core]);
            }
            assert_eq!(sums.iter().sum::<i128>() + *sum.left.lock(), whole);
            let taken: i128 = products.iter().map(|share| share.max(&1)).product();
            assert!(taken * *product.left.lock() <= whole || taken == 1);
        }
    }

    /// Goal: a share that does not divide what is needed is rounded up, not down.
    #[test]
    fn factors_are_rounded_up() {
        assert_eq!(Room::new(100).extend_product(4, 6), Some(8));
        assert_eq!(Room::new(1).extend_product(4, 6), None);
        assert_eq!((Room::new(1).extend_product(0, 1), Room::new(0).extend_product(0, 1)), (Some(1), None));
    }
}
