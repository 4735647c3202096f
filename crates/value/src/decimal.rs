//! Exact numerics: a 128-bit integer and a scale.
//!
//! `Decimal { mantissa: 12345, scale: 2 }` is 123.45. A program knows scales before it runs, so it
//! computes with mantissas alone through the functions of this module; a [`Decimal`] carries its
//! scale for callers. Every result has at most 38 digits; rounding is half away from zero, as
//! PostgreSQL rounds `numeric`.

use std::fmt;

/// An exact decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The number times ten to the scale.
    pub mantissa: i128,
    /// Digits after the point.
    pub scale: u8,
}

/// The largest magnitude a mantissa may have: 38 nines.
pub const MANTISSA_MAX: i128 = 10i128.pow(38) - 1;

/// Ten to the power `exponent`, up to 38.
pub fn power_of_ten(exponent: u8) -> i128 {
    10i128.pow(exponent.into())
}

/// `mantissa / divisor`, rounded half away from zero. `divisor` is not zero.
pub fn divide_rounded(mantissa: i128, divisor: i128) -> i128 {
    let quotient = mantissa / divisor;
    let remainder = (mantissa % divisor).unsigned_abs();
    if remainder >= divisor.unsigned_abs() - remainder {
        quotient + if (mantissa < 0) == (divisor < 0) { 1 } else { -1 }
    } else {
        quotient
    }
}

/// Changes a mantissa's scale; `None` if it no longer fits 38 digits.
pub fn rescale(mantissa: i128, from: u8, to: u8) -> Option<i128> {
    let scaled = match to.cmp(&from) {
        std::cmp::Ordering::Equal => mantissa,
        // More digits than a mantissa has: zero, or nothing.
        _ if mantissa == 0 || from.saturating_sub(to) > 38 => 0,
        _ if to.saturating_sub(from) > 38 => return None,
        std::cmp::Ordering::Greater => mantissa.checked_mul(power_of_ten(to - from))?,
        std::cmp::Ordering::Less => divide_rounded(mantissa, power_of_ten(from - to)),
    };
    fits(scaled)
}

/// `left + right` on one scale; `None` on overflow.
pub fn add(left: i128, right: i128) -> Option<i128> {
    left.checked_add(right).and_then(fits)
}

/// `left * right`; the scales add. `None` on overflow.
pub fn multiply(left: i128, right: i128) -> Option<i128> {
    left.checked_mul(right).and_then(fits)
}

/// `left / right` where both have one scale, giving `scale` digits after the point; `None` on
/// overflow. `right` is not zero.
pub fn divide(left: i128, right: i128, scale: u8) -> Option<i128> {
    fits(divide_rounded(left.checked_mul(power_of_ten(scale))?, right))
}

fn fits(mantissa: i128) -> Option<i128> {
    (-MANTISSA_MAX..=MANTISSA_MAX).contains(&mantissa).then_some(mantissa)
}

impl Decimal {
    /// The number at another scale, rounded; `None` if it does not fit 38 digits.
    pub fn rescale(self, scale: u8) -> Option<Decimal> {
        rescale(self.mantissa, self.scale, scale).map(|mantissa| Decimal { mantissa, scale })
    }

    /// The number without zeros at the end of its fraction.
    pub fn trimmed(self) -> Decimal {
        let Decimal { mut mantissa, mut scale } = self;
        while scale > 0 && mantissa % 10 == 0 {
            (mantissa, scale) = (mantissa / 10, scale - 1);
        }
        Decimal { mantissa, scale }
    }

    /// Reads `-12.50` or `1.5e3`; `None` if it is no decimal, or one that needs more than 38 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let Some((digits, exponent)) = text.split_once(['e', 'E']) else { return Decimal::parse_plain(text) };
        let decimal = Decimal::parse_plain(digits)?;
        let scale = i32::from(decimal.scale).checked_sub(exponent.parse().ok()?)?;
        match u8::try_from(scale) {
            Ok(scale) if scale <= 38 => Some(Decimal { scale, ..decimal }),
            _ if decimal.mantissa == 0 => Some(Decimal { mantissa: 0, scale: 0 }),
            _ => {
                let factor = 10i128.checked_pow(u32::try_from(scale.checked_neg()?).ok()?)?;
                Some(Decimal { mantissa: fits(decimal.mantissa.checked_mul(factor)?)?, scale: 0 })
            }
        }
    }

    fn parse_plain(text: &str) -> Option<Decimal> {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.len() > 38 {
            return None;
        }
        let mut mantissa = 0i128;
        for byte in whole.bytes().chain(fraction.bytes()) {
            let digit = byte.is_ascii_digit().then(|| i128::from(byte - b'0'))?;
            mantissa = fits(mantissa.checked_mul(10)?.checked_add(digit)?)?;
        }
        Some(Decimal { mantissa: if negative { -mantissa } else { mantissa }, scale: fraction.len() as u8 })
    }

    /// The nearest binary64.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().expect("a decimal reads as a number")
    }

    /// The number with `scale` digits after the point; `None` if it is not finite or does not fit.
    pub fn from_f64(value: f64, scale: u8) -> Option<Decimal> {
        // Through the shortest decimal form, so that 0.1 is 0.1 and not its binary neighbour.
        let text = format!("{value}");
        Decimal::parse(&text)
            .or_else(|| {
                value
                    .is_finite()
                    .then(|| format!("{value:.*}", usize::from(scale)))
                    .and_then(|text| Decimal::parse(&text))
            })?
            .rescale(scale)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = self.mantissa.unsigned_abs();
        if self.scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0width$}", width = usize::from(self.scale) + 1);
        let (whole, fraction) = digits.split_at(digits.len() - usize::from(self.scale));
        write!(f, "{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_rounding_is_half_away_from_zero() {
        for text in ["0", "-1", "12.50", "0.001", "-0.05", "99999999999999999999999999999999999999"] {
            assert_eq!(Decimal::parse(text).unwrap().to_string(), text);
        }
        for (text, plain) in
            [("1e5", "100000"), ("-1.5E3", "-1500"), ("12.5e-1", "1.25"), ("+5e-2", "0.05"), ("0e99", "0")]
        {
            assert_eq!(Decimal::parse(text).unwrap().to_string(), plain);
        }
        for bad in [
            "",
            ".",
            "-",
            "1.2.3",
            "999999999999999999999999999999999999999",
            "é",
            "1e",
            "e5",
            "1e5e",
            "1e38",
            "1e-39",
            "1e99999999999",
            "1e 5",
        ] {
            assert_eq!(Decimal::parse(bad), None, "{bad}");
        }
        assert_eq!(rescale(125, 2, 1), Some(13));
        assert_eq!(rescale(-125, 2, 1), Some(-13));
        assert_eq!(rescale(124, 2, 1), Some(12));
        assert_eq!(divide_rounded(-7, 2), -4);
        assert_eq!(divide_rounded(7, -2), -4);
        assert_eq!(rescale(MANTISSA_MAX, 0, 1), None);
        assert_eq!(rescale(MANTISSA_MAX, 255, 2), Some(0));
        assert_eq!(rescale(1, 0, 39), None);
        assert_eq!(Decimal { mantissa: -7, scale: 40 }.to_string(), format!("-0.{}7", "0".repeat(39)));
        assert_eq!(Decimal::from_f64(0.1, 3).unwrap().to_string(), "0.100");
        assert_eq!(Decimal::from_f64(f64::NAN, 3), None);
        assert_eq!(Decimal::from_f64(1e-300, 2).unwrap().to_string(), "0.00");
    }
}
