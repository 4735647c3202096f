//! A number that was measured in several rounds.

use std::fmt;

/// The middle of several measurements, and how far they lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Repeated {
    /// The median, or what all of them together gave.
    pub value: f64,
    /// A quarter of them are lower at most,
    pub low: f64,
    /// and a quarter higher: of three measurements these are the lowest and the highest.
    pub high: f64,
}

/// How figures explain it.
pub const SPREAD: &str = "the middle half of the rounds, of three all";

impl Repeated {
    /// The median and the quartiles, by nearest rank, of at least one measurement.
    pub fn of(mut values: Vec<f64>) -> Repeated {
        values.sort_by(f64::total_cmp);
        let rank = |quarters: usize| values[(values.len() * quarters).div_ceil(4) - 1];
        Repeated { value: values[values.len() / 2], low: rank(1), high: rank(3) }
    }

    /// What all measurements together gave, with the quartiles of each by itself.
    pub fn together(value: f64, each: Vec<f64>) -> Repeated {
        if each.len() < 2 {
            return Repeated::from(value);
        }
        let Repeated { low, high, .. } = Repeated::of(each);
        Repeated { value, low: low.min(value), high: high.max(value) }
    }

    /// Whether there is more than one value.
    pub fn has_spread(&self) -> bool {
        self.low < self.high
    }

    /// As a cell of a table: the value as `show` writes it, and how far below and above the others are.
    pub fn cell(&self, show: impl Fn(f64) -> String) -> String {
        let value = show(self.value);
        if !self.has_spread() || self.value <= 0.0 {
            return value;
        }
        let percent = |other: f64| (other / self.value - 1.0).abs() * 100.0;
        format!("{value} -{:.0}/+{:.0} %", percent(self.low), percent(self.high))
    }
}

impl From<f64> for Repeated {
    fn from(value: f64) -> Repeated {
        Repeated { value, low: value, high: value }
    }
}

impl fmt::Display for Repeated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cell(crate::table::grouped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: of three rounds all are shown, of more the middle half; one round spreads nothing.
    #[test]
    fn quartiles_by_nearest_rank() {
        let shown = |values: &[f64]| Repeated::of(values.to_vec()).to_string();
        assert_eq!(shown(&[100.0]), "100");
        assert_eq!(shown(&[110.0, 100.0, 95.0]), "100 -5/+10 %");
        assert_eq!(shown(&[1.0, 1000.0, 900.0, 1100.0, 5000.0]), "1,000 -10/+10 %");
        let together = Repeated::together(100.0, vec![110.0, 120.0]);
        assert_eq!((together.low, together.high), (100.0, 120.0));
        assert!(!Repeated::together(100.0, vec![110.0]).has_spread());
    }
}
