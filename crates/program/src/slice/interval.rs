//! Closed intervals of exact numbers, and arithmetic on them.
//!
//! An interval stands for every value an expression may have when it is not null, numerics as scaled
//! integers. Bounds saturate at the ends of `i128`, which lie outside every type's range, so a
//! saturated result never counts as proven to fit:
//!
//! ```
//! use fabius_program::slice::Interval;
//! let quantity = Interval { low: 10, high: 100 };
//! let ordered = Interval { low: 1, high: 10 };
//! assert_eq!(quantity.minus(ordered), Interval { low: 0, high: 99 });
//! assert!(Interval::EVERY.plus(Interval::EVERY) == Interval::EVERY);
//! ```
//!
//! Invariant: every operation's interval holds the results of the operation on all members of its
//! operands' intervals (checked by enumeration in the tests below).

use fabius_value::decimal::{divide_rounded, power_of_ten};
use std::fmt;

/// A closed interval of exact numbers (numerics as scaled integers). Empty if `low > high`: no value
/// other than null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Least value.
    pub low: i128,
    /// Greatest value.
    pub high: i128,
}

impl Interval {
    /// Every number: nothing is known.
    pub const EVERY: Interval = Interval { low: i128::MIN, high: i128::MAX };
    /// No number: null at most.
    pub const EMPTY: Interval = Interval { low: 1, high: 0 };

    /// The numbers from `low` to `high`.
    pub fn new(low: i128, high: i128) -> Interval {
        Interval { low, high }
    }

    /// One number.
    pub fn only(value: i128) -> Interval {
        Interval { low: value, high: value }
    }

    /// Whether there is no number in it.
    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    /// Whether the number is in it.
    pub fn has(self, value: i128) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether all of `other` is in it.
    pub fn covers(self, other: Interval) -> bool {
        other.is_empty() || (self.low <= other.low && other.high <= self.high)
    }

    /// The least interval around both.
    pub fn hull(self, other: Interval) -> Interval {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Interval::new(self.low.min(other.low), self.high.max(other.high)),
        }
    }

    /// The numbers in both.
    pub fn meet(self, other: Interval) -> Interval {
        let both = Interval::new(self.low.max(other.low), self.high.min(other.high));
        if both.is_empty() || self.is_empty() || other.is_empty() { Interval::EMPTY } else { both }
    }

    /// A wider interval within `limit`, with much room to grow: 256 times as wide while that is far from the limit,
    /// twice near it.
    pub fn with_room(self, limit: Interval) -> Interval {
        Interval::new(lower_step(self.low, limit.low), upper_step(self.high, limit.high))
    }

    /// How many numbers are in it.
    pub fn width(self) -> u128 {
        if self.is_empty() {
            return 0;
        }
        self.high.wrapping_sub(self.low).cast_unsigned().saturating_add(1)
    }

    /// Sums.
    pub fn plus(self, other: Interval) -> Interval {
        self.with(other, |a, b| {
            Interval::new(saturate_add(a.low, b.low, false), saturate_add(a.high, b.high, true))
        })
    }

    /// Differences.
    pub fn minus(self, other: Interval) -> Interval {
        self.plus(other.negated())
    }

    /// Negatives.
    pub fn negated(self) -> Interval {
        if self.is_empty() {
            return self;
        }
        Interval::new(saturate_negate(self.high), saturate_negate(self.low))
    }

    /// Magnitudes.
    pub fn magnitude(self) -> Interval {
        if self.is_empty() || self.low >= 0 {
            self
        } else if self.high <= 0 {
            self.negated()
        } else {
            Interval::new(0, self.high.max(saturate_negate(self.low)))
        }
    }

    /// Products.
    pub fn times(self, other: Interval) -> Interval {
        self.with(other, |a, b| corners(a, b, i128::saturating_mul))
    }

    /// Quotients, truncated or rounded, by divisors other than zero.
    pub fn over(self, divisor: Interval) -> Interval {
        self.with(divisor, |a, b| {
            let halves = [b.meet(Interval::new(i128::MIN, -1)), b.meet(Interval::new(1, i128::MAX))];
            let quotients = halves.into_iter().filter(|half| !half.is_empty()).map(|half| {
                let rounded = corners(a, half, |x, y| match x.checked_div(y) {
                    Some(_) if x != i128::MIN && y != i128::MIN => divide_rounded(x, y),
                    Some(quotient) => quotient,
                    None => i128::MAX,
                });
                rounded.hull(corners(a, half, |x, y| x.checked_div(y).unwrap_or(i128::MAX)))
            });
            quotients.fold(Interval::EMPTY, Interval::hull)
        })
    }

    /// Remainders, with the dividend's sign, by divisors other than zero.
    pub fn modulo(self, divisor: Interval) -> Interval {
        self.with(divisor, |a, b| {
            let most = b.magnitude().high.saturating_sub(1).max(0);
            let high = if a.high > 0 { most.min(a.high) } else { 0 };
            let low = if a.low < 0 { saturate_negate(most).max(a.low) } else { 0 };
            Interval::new(low, high)
        })
    }

    /// These numbers at another scale, rounded half away from zero.
    pub fn rescaled(self, from: u8, to: u8) -> Interval {
        if self.is_empty() || from == to {
            return self;
        }
        let factor = power_of_ten(from.abs_diff(to).min(38));
        if to > from {
            return Interval::new(self.low.saturating_mul(factor), self.high.saturating_mul(factor));
        }
        Interval::new(divide_rounded(self.low.max(-i128::MAX), factor), divide_rounded(self.high, factor))
    }

    /// What is left of this interval in numbers of scale `from` that are in `bounds` at the greater
    /// scale `to`: the inverse of [`rescaled`](Interval::rescaled) upwards.
    pub fn unscaled(self, from: u8, to: u8) -> Interval {
        if self.is_empty() || from == to {
            return self;
        }
        let factor = power_of_ten((to - from).min(38));
        let low = self.low.div_euclid(factor) + i128::from(self.low.rem_euclid(factor) != 0);
        Interval::new(low, self.high.div_euclid(factor))
    }

    /// Sums of up to `count` members, the sum of none included.
    pub fn repeated(self, count: u128) -> Interval {
        let count = i128::try_from(count).unwrap_or(i128::MAX);
        self.times(Interval::new(0, count)).hull(Interval::only(0))
    }

    fn with(self, other: Interval, compute: impl Fn(Interval, Interval) -> Interval) -> Interval {
        if self.is_empty() || other.is_empty() { Interval::EMPTY } else { compute(self, other) }
    }
}

impl fmt::Display for Interval {
    /// `[0, 100]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.low, self.high)
    }
}

/// An end that has saturated stays: it stands for something beyond `i128`.
fn saturate_add(a: i128, b: i128, upper: bool) -> i128 {
    let end = if upper { i128::MAX } else { i128::MIN };
    if a == end || b == end { end } else { a.saturating_add(b) }
}

fn saturate_negate(value: i128) -> i128 {
    match value {
        i128::MIN => i128::MAX,
        i128::MAX => i128::MIN,
        value => -value,
    }
}

fn corners(a: Interval, b: Interval, compute: impl Fn(i128, i128) -> i128) -> Interval {
    let all =
        [compute(a.low, b.low), compute(a.low, b.high), compute(a.high, b.low), compute(a.high, b.high)];
    let low = all.iter().copied().min().expect("four corners");
    let high = all.iter().copied().max().expect("four corners");
    Interval::new(low, high)
}

/// A bound at or above `value` that leaves room to grow: a power of two, less one, or `limit`.
fn upper_step(value: i128, limit: i128) -> i128 {
    if value <= 0 {
        return 0.min(limit);
    }
    let bits = 128 - value.leading_zeros();
    let limit_bits = 128 - limit.max(1).leading_zeros();
    // Proofs need room below the limit: add two numbers, and they have one bit more.
    let bits = (bits + 8).min(limit_bits.saturating_sub(4)).max(bits + 1);
    if bits > 126 { limit } else { ((1i128 << bits) - 1).min(limit) }
}

/// A bound at or below `value`, likewise.
fn lower_step(value: i128, limit: i128) -> i128 {
    if value >= 0 { 0.max(limit) } else { (-upper_step(value.saturating_neg(), -(limit + 1)) - 1).max(limit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the widest interval has no more room, and making some does not overflow.
    #[test]
    fn the_widest_interval_stays_as_it_is() {
        let widest = Interval::new(i128::MIN, i128::MAX);
        assert_eq!(widest.with_room(widest), widest);
        let below = Interval::new(i128::MIN + 1, 0);
        assert!(below.with_room(widest).covers(below));
    }

    /// Goal: each operation's interval holds every result of the operation on members.
    #[test]
    fn operations_hold_all_results() {
        let intervals: Vec<Interval> =
            (-4..5).flat_map(|low| (low..5).map(move |high| Interval::new(low, high))).collect();
        for &a in &intervals {
            for &b in &intervals {
                for x in a.low..=a.high {
                    for y in b.low..=b.high {
                        assert!(a.plus(b).has(x + y) && a.minus(b).has(x - y) && a.times(b).has(x * y));
                        assert!(a.hull(b).has(x) && a.hull(b).has(y) && a.magnitude().has(x.abs()));
                        assert_eq!(a.meet(b).has(x), b.has(x));
                        if y != 0 {
                            assert!(a.over(b).has(x / y) && a.over(b).has(divide_rounded(x, y)));
                            assert!(a.modulo(b).has(x % y), "{a} % {b} has {x} % {y}");
                        }
                    }
                    for (from, to) in [(0, 1), (1, 0), (2, 0)] {
                        let scaled = fabius_value::decimal::rescale(x, from, to).unwrap();
                        assert!(a.rescaled(from, to).has(scaled));
                    }
                }
                assert!(a.repeated(3).has(a.low * 3) && a.repeated(3).has(a.high * 2));
            }
        }
    }

    /// Goal: what does not fit 128 bits never looks small, and nulls stay nulls.
    #[test]
    fn ends_saturate() {
        let wide = Interval::new(-i128::MAX, i128::MAX);
        assert_eq!(wide.times(wide).high, i128::MAX);
        assert_eq!(Interval::EVERY.minus(Interval::only(5)), Interval::EVERY);
        assert_eq!(Interval::EVERY.negated(), Interval::EVERY);
        assert_eq!(Interval::EVERY.width(), u128::MAX);
        assert_eq!(Interval::new(-3, 5).width(), 9);
        assert!(Interval::EMPTY.plus(wide).is_empty());
        assert_eq!(Interval::EMPTY.repeated(9), Interval::only(0));
        assert_eq!(Interval::new(15, 29).unscaled(0, 1), Interval::new(2, 2));
        assert_eq!(Interval::new(-15, -11).unscaled(0, 1), Interval::new(-1, -2));
    }

    const LOW: i128 = i64::MIN as i128;
    const HIGH: i128 = i64::MAX as i128;

    #[test]
    fn steps_leave_room_and_contain_their_value() {
        for value in [1i128, 2, 3, 100, 1 << 40, 1 << 60] {
            assert!(upper_step(value, HIGH) >= 2 * value - 1, "{value}");
            assert!(lower_step(-value, LOW) < -value);
        }
        assert_eq!((upper_step(HIGH, HIGH), lower_step(LOW, LOW)), (HIGH, LOW));
        assert_eq!((upper_step(999, 999), lower_step(-999, -999)), (999, -999));
        assert_eq!((upper_step(0, HIGH), lower_step(0, LOW)), (0, 0));
        assert_eq!((upper_step(-5, HIGH), lower_step(5, LOW)), (0, 0));
    }

    #[test]
    fn a_counter_takes_few_steps_to_its_limit() {
        let (mut value, mut steps) = (1, 0);
        while value < HIGH {
            value = upper_step(value, HIGH) + 1;
            steps += 1;
        }
        assert!(steps <= 12, "{steps}");
    }
}
