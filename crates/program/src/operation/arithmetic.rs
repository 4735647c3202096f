//! Exact and floating arithmetic, with the errors that PostgreSQL gives.
//!
//! Integers are computed in 64 bits and must fit their type; numerics are scaled 128-bit integers
//! that must fit the precision of the result's type. Doubles report overflow to infinity and
//! underflow to zero instead of carrying on with them.

use fabius_value::decimal;
use fabius_value::{DataType, Error, Result, SqlState};

/// The width of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `smallint`.
    Small,
    /// `int`.
    Int,
    /// `bigint`.
    Big,
}

impl Width {
    /// The width of an integer type.
    pub fn of(data_type: DataType) -> Option<Width> {
        match data_type {
            DataType::SmallInt => Some(Width::Small),
            DataType::Int => Some(Width::Int),
            DataType::BigInt => Some(Width::Big),
            _ => None,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Width::Small => DataType::SmallInt,
            Width::Int => DataType::Int,
            Width::Big => DataType::BigInt,
        }
    }

    /// `left + right`.
    #[inline]
    pub fn add(self, left: i64, right: i64) -> Result<i64> {
        self.fit(left.checked_add(right))
    }

    /// `left - right`.
    #[inline]
    pub fn subtract(self, left: i64, right: i64) -> Result<i64> {
        self.fit(left.checked_sub(right))
    }

    /// `left * right`.
    #[inline]
    pub fn multiply(self, left: i64, right: i64) -> Result<i64> {
        self.fit(left.checked_mul(right))
    }

    /// Whether the number fits.
    #[inline]
    pub fn has(self, number: i64) -> bool {
        match self {
            Width::Big => true,
            Width::Int => i32::try_from(number).is_ok(),
            Width::Small => i16::try_from(number).is_ok(),
        }
    }

    /// The number, if it has not overflowed and fits.
    #[inline]
    pub fn fit(self, number: Option<i64>) -> Result<i64> {
        match number {
            Some(number) if self.has(number) => Ok(number),
            _ => Err(out_of_range(self.data_type())),
        }
    }
}

/// The precision and scale of a numeric result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// Digits in all.
    pub precision: u8,
    /// Digits after the point.
    pub scale: u8,
}

impl Digits {
    /// The digits of a numeric type.
    pub fn of(data_type: DataType) -> Option<Digits> {
        match data_type {
            DataType::Numeric { precision, scale } => Some(Digits { precision, scale }),
            _ => None,
        }
    }

    /// `left + right` on one scale, the result's.
    #[inline]
    pub fn add(self, left: i128, right: i128) -> Result<i128> {
        self.fit(left.checked_add(right))
    }

    /// `left - right` likewise.
    #[inline]
    pub fn subtract(self, left: i128, right: i128) -> Result<i128> {
        self.fit(left.checked_sub(right))
    }

    /// Whether the mantissa fits.
    #[inline]
    pub fn has(self, mantissa: i128) -> bool {
        mantissa.unsigned_abs() < POWERS[usize::from(self.precision)]
    }

    /// The mantissa, if it has not overflowed and fits.
    #[inline]
    pub fn fit(self, mantissa: Option<i128>) -> Result<i128> {
        match mantissa {
            Some(mantissa) if self.has(mantissa) => Ok(mantissa),
            _ => Err(out_of_range(DataType::Numeric { precision: self.precision, scale: self.scale })),
        }
    }
}

/// Powers of ten: computing one takes longer than the addition it checks.
static POWERS: [u128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < 39 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

/// `left * right`, where `scale` is the sum of the operands' scales, brought to the result's scale.
#[inline]
pub fn multiply_numerics(left: i128, right: i128, scale: u8, to: Digits) -> Result<i128> {
    let product = left.checked_mul(right);
    if scale == to.scale {
        return to.fit(product);
    }
    to.fit(product.and_then(|product| rescale(product, scale, to.scale)))
}

/// The mantissa at another scale, rounded half away from zero; `None` if it does not fit 128 bits.
#[inline]
pub fn rescale(mantissa: i128, from: u8, to: u8) -> Option<i128> {
    if from == to {
        return Some(mantissa);
    }
    let factor = POWERS.get(usize::from(from.abs_diff(to)));
    match (from < to, factor, i64::try_from(mantissa)) {
        (true, Some(factor), _) => mantissa.checked_mul(*factor as i128),
        (true, None, _) => (mantissa == 0).then_some(0),
        // Machine division when it can be: the 128-bit one takes several times as long.
        (false, Some(factor), Ok(small)) if *factor <= i64::MAX as u128 => {
            let (factor, magnitude) = (*factor as u64, small.unsigned_abs());
            let rest = magnitude % factor;
            let rounded = (magnitude / factor + u64::from(rest >= factor - rest)) as i128;
            Some(if small < 0 { -rounded } else { rounded })
        }
        (false, Some(factor), _) => Some(decimal::divide_rounded(mantissa, *factor as i128)),
        // More digits are dropped than a mantissa has.
        (false, None, _) => Some(0),
    }
}

/// `left / right` rounded to the result's scale. `shift` is the power of ten that brings the
/// quotient of the mantissas to that scale.
pub fn divide_numerics(left: i128, right: i128, shift: i8, to: Digits) -> Result<i128> {
    if right == 0 {
        return Err(division_by_zero());
    }
    let (dividend, divisor) = (left.unsigned_abs(), right.unsigned_abs());
    let power = POWERS.get(usize::from(shift.unsigned_abs())).copied();
    let quotient = if shift >= 0 {
        match power.and_then(|power| dividend.checked_mul(power)) {
            Some(scaled) => Some(divide_rounded(scaled, divisor)),
            None => divide_long(dividend, divisor, shift.unsigned_abs()),
        }
    } else {
        // A divisor beyond 128 bits is more than three times any dividend: zero after rounding.
        let divisor = power.and_then(|power| divisor.checked_mul(power));
        Some(divisor.map_or(0, |divisor| divide_rounded(dividend, divisor)))
    };
    let signed = quotient.and_then(|quotient| i128::try_from(quotient).ok());
    to.fit(signed.map(|quotient| if (left < 0) == (right < 0) { quotient } else { -quotient }))
}

fn divide_rounded(dividend: u128, divisor: u128) -> u128 {
    let rest = dividend % divisor;
    dividend / divisor + u128::from(rest >= divisor - rest)
}

/// Long division for dividends that do not fit 128 bits once scaled: a decimal digit at a time.
fn divide_long(dividend: u128, divisor: u128, digits: u8) -> Option<u128> {
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    for _ in 0..digits {
        // `10 * rest` may not fit either, so it is added up, taking the divisor off as it goes.
        let (mut digit, mut sum) = (0, 0u128);
        for _ in 0..10 {
            sum += rest;
            if sum >= divisor {
                sum -= divisor;
                digit += 1;
            }
        }
        quotient = quotient.checked_mul(10)?.checked_add(digit)?;
        rest = sum;
    }
    quotient.checked_add(u128::from(rest >= divisor - rest))
}

/// The remainder with the dividend's sign.
#[inline]
pub fn modulo(left: i128, right: i128) -> Result<i128> {
    if right == 0 { Err(division_by_zero()) } else { Ok(left.wrapping_rem(right)) }
}

/// An operator on doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoubleOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// Arithmetic on doubles with PostgreSQL's checks (its `float8_pl` and friends).
pub fn doubles(operator: DoubleOperator, left: f64, right: f64) -> Result<f64> {
    use DoubleOperator::{Add, Divide, Modulo, Multiply, Subtract};
    if matches!(operator, Divide | Modulo) && right == 0.0 && !left.is_nan() {
        return Err(division_by_zero());
    }
    let result = match operator {
        Add => left + right,
        Subtract => left - right,
        Multiply => left * right,
        Divide => left / right,
        Modulo => left % right,
    };
    if result.is_infinite() && !left.is_infinite() && !right.is_infinite() {
        return Err(Error::new(SqlState::OUT_OF_RANGE, "value out of range: overflow"));
    }
    let vanished = match operator {
        Multiply => result == 0.0 && left != 0.0 && right != 0.0,
        Divide => result == 0.0 && left != 0.0 && !right.is_infinite(),
        Add | Subtract | Modulo => false,
    };
    if vanished {
        Err(Error::new(SqlState::OUT_OF_RANGE, "value out of range: underflow"))
    } else {
        Ok(result)
    }
}

/// 22003 for a type.
#[cold]
pub fn out_of_range(data_type: DataType) -> Error {
    data_type.out_of_range()
}

/// 22012.
#[cold]
pub fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDEST: Digits = Digits { precision: 38, scale: 0 };

    /// Goal: division rounds half away from zero at every sign, and needs no more room than its
    /// operands and result have.
    #[test]
    fn division_rounds_half_away_from_zero() {
        for (left, right, shift, expected) in [
            (7, 2, 0, 4),
            (-7, 2, 0, -4),
            (7, -2, 0, -4),
            (1, 3, 4, 3333),
            (2, 3, 4, 6667),
            (125, 1, -2, 1),
            (150, 1, -2, 2),
            (10i128.pow(37), 10i128.pow(37) * 4, 2, 25),
            (5, 2 * 10i128.pow(30), 30, 3),
            (1, 10i128.pow(38) - 1, 38, 1),
        ] {
            assert_eq!(divide_numerics(left, right, shift, WIDEST).unwrap(), expected, "{left} / {right}");
        }
        let state = |result: Result<i128>| result.unwrap_err().state();
        assert_eq!(state(divide_numerics(1, 0, 0, WIDEST)), SqlState::DIVISION_BY_ZERO);
        assert_eq!(state(divide_numerics(10, 1, 38, WIDEST)), SqlState::OUT_OF_RANGE);
    }

    proptest! {
        /// Goal: the short ways of rescaling give what the vocabulary's way gives.
        #[test]
        fn rescaling_agrees(mantissa in prop_oneof![-2_000i128..2_000, any::<i64>().prop_map(i128::from),
                                                    -decimal::MANTISSA_MAX..decimal::MANTISSA_MAX],
                            from in 0u8..=38, to in 0u8..=38) {
            let fits = |mantissa: &i128| mantissa.abs() <= decimal::MANTISSA_MAX;
            prop_assert_eq!(rescale(mantissa, from, to).filter(fits), decimal::rescale(mantissa, from, to));
        }

        /// Goal: the long way and the short way divide alike.
        #[test]
        fn long_division_agrees_with_short(dividend in 0u128..1 << 60, divisor in 1u128..1 << 60, digits in 0u8..18) {
            let short = divide_rounded(dividend * POWERS[usize::from(digits)], divisor);
            prop_assert_eq!(divide_long(dividend, divisor, digits), Some(short));
        }
    }

    /// Goal: a double operation never yields infinity or zero that its operands do not explain.
    #[test]
    fn doubles_report_overflow_underflow_and_zero_divisors() {
        use DoubleOperator::{Add, Divide, Modulo, Multiply};
        let state = |operator, l, r| doubles(operator, l, r).map_err(|error| error.state());
        assert_eq!(state(Add, f64::MAX, f64::MAX), Err(SqlState::OUT_OF_RANGE));
        assert_eq!(state(Multiply, 1e-200, 1e-200), Err(SqlState::OUT_OF_RANGE));
        assert_eq!(state(Divide, 1.0, 0.0), Err(SqlState::DIVISION_BY_ZERO));
        assert_eq!(state(Modulo, 1.0, 0.0), Err(SqlState::DIVISION_BY_ZERO));
        assert_eq!(state(Divide, 1.0, f64::INFINITY), Ok(0.0));
        assert!(doubles(Divide, f64::NAN, 0.0).unwrap().is_nan());
    }
}
