//! Rounding, bits and functions of doubles.
//!
//! What a call computes is the same on every machine and in every build, as replay and replicas need it
//! (`docs/decisions/doubles-are-the-same-everywhere.md`): powers and logarithms of the platform's library differ in
//! their last digits, so they come from a crate; square roots, sums and products are rounded correctly wherever there
//! is IEEE 754.

use crate::ir::{Bits, Function, Rounding};
use crate::operation::arithmetic::Width;
use fabius_value::{DataType, Datum, Error, Result, SqlState, decimal};

/// Computes a function of [`SIGNATURES`](super::SIGNATURES) whose arguments are doubles; `None` for
/// other functions.
///
/// # Errors
/// `2201F` and `2201E` outside the function's domain, `22003` for results too large or too small.
pub(super) fn apply<'a>(function: Function, arguments: &[Datum<'_>]) -> Result<Option<Datum<'a>>> {
    let result = match (function, arguments) {
        (Function::Power, [Datum::Double(base), Datum::Double(exponent)]) => power(*base, *exponent)?,
        (Function::SquareRoot, [Datum::Double(v)]) if *v < 0.0 => {
            return Err(Error::new(SqlState::INVALID_POWER, "cannot take square root of a negative number"));
        }
        (Function::SquareRoot, [Datum::Double(v)]) => v.sqrt(),
        (Function::CubeRoot, [Datum::Double(v)]) => pxfm::f_cbrt(*v),
        (Function::Exponential, [Datum::Double(v)]) => {
            let result = pxfm::f_exp(*v);
            checked(result, v.is_infinite())?
        }
        (Function::NaturalLogarithm, [Datum::Double(v)]) => logarithm(*v, pxfm::f_log)?,
        (Function::DecimalLogarithm, [Datum::Double(v)]) => logarithm(*v, pxfm::f_log10)?,
        _ => return Ok(None),
    };
    Ok(Some(Datum::Double(result)))
}

/// The result, unless it is infinite or zero and nothing excuses it.
fn checked(result: f64, excused: bool) -> Result<f64> {
    match excused {
        false if result.is_infinite() => {
            Err(Error::new(SqlState::OUT_OF_RANGE, "value out of range: overflow"))
        }
        false if result == 0.0 => Err(Error::new(SqlState::OUT_OF_RANGE, "value out of range: underflow")),
        _ => Ok(result),
    }
}

/// The nearest number of 32 bits.
///
/// # Errors
/// `22003` if it leaves their range, or becomes zero without being it.
pub fn round_single(number: f64) -> Result<f64> {
    let single = f64::from(number as f32);
    checked(single, single == number || number.is_infinite() || number.is_nan())
}

fn power(base: f64, exponent: f64) -> Result<f64> {
    let refuse = |message| Err(Error::new(SqlState::INVALID_POWER, message));
    if base == 0.0 && exponent < 0.0 {
        return refuse("zero raised to a negative power is undefined");
    }
    if base < 0.0 && exponent.is_finite() && exponent.floor() != exponent {
        return refuse("a negative number raised to a non-integer power yields a complex result");
    }
    checked(pxfm::f_pow(base, exponent), base == 0.0 || base.is_infinite() || exponent.is_infinite())
}

fn logarithm(value: f64, of: impl Fn(f64) -> f64) -> Result<f64> {
    if value == 0.0 {
        return Err(Error::new(SqlState::INVALID_LOGARITHM, "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(Error::new(SqlState::INVALID_LOGARITHM, "cannot take logarithm of a negative number"));
    }
    Ok(of(value))
}

/// A double without digits after the point; halves go to the even number.
pub(super) fn round_double(rounding: Rounding, value: f64) -> f64 {
    match rounding {
        Rounding::Nearest | Rounding::NearestEven => value.round_ties_even(),
        Rounding::TowardZero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

/// The largest mantissa of a number of Python's `decimal`, which has 28 digits.
const PYTHON_MANTISSA_MAX: i128 = 10_i128.pow(28) - 1;

/// `mantissa / unit`, rounded to the nearest, and of two as near to the even one. `unit` is above zero.
fn divide_to_even(mantissa: i128, unit: i128) -> i128 {
    let (quotient, rest) = (mantissa.div_euclid(unit), mantissa.rem_euclid(unit));
    let is_up = rest > unit - rest || rest == unit - rest && quotient % 2 != 0;
    quotient + i128::from(is_up)
}

/// A mantissa of scale `from` with `digits` digits after the point (before it, if negative), as one
/// of scale `to`; halves go away from zero, or to the even one.
///
/// # Errors
/// `22003` if it does not fit 38 digits, or the 28 of Python's numbers.
pub fn round_numeric(rounding: Rounding, mantissa: i128, from: u8, digits: i64, to: u8) -> Result<i128> {
    let most = i64::from(from);
    let kept = digits.clamp(-38, most);
    let dropped = (most - kept) as u8;
    // Beyond 38 digits only the sign is left, and it decides only up and down.
    let unit = decimal::power_of_ten(dropped.min(38));
    let units = match rounding {
        _ if dropped == 0 => mantissa,
        Rounding::Down => mantissa.div_euclid(unit),
        Rounding::Up => -(-mantissa).div_euclid(unit),
        _ if dropped > 38 => 0,
        Rounding::Nearest => decimal::divide_rounded(mantissa, unit),
        Rounding::NearestEven => divide_to_even(mantissa, unit),
        Rounding::TowardZero => mantissa / unit,
    };
    let largest = if rounding == Rounding::NearestEven { PYTHON_MANTISSA_MAX } else { decimal::MANTISSA_MAX };
    // `units` counts ten to the power of `-kept`.
    let scaled = match i64::from(to) - kept {
        up @ 0..=38 => units.checked_mul(decimal::power_of_ten(up as u8)),
        39.. => (units == 0).then_some(0),
        _ => decimal::rescale(units, kept.max(0) as u8, to),
    };
    scaled.filter(|scaled| scaled.abs() <= largest).ok_or_else(|| {
        crate::operation::arithmetic::out_of_range(DataType::Numeric { precision: 38, scale: to })
    })
}

/// Bits of integers of one width. Shifts take the count modulo the width (32 for smallints), as the
/// machine does.
pub(super) fn bits(operator: Bits, width: Width, left: i64, right: i64) -> i64 {
    match operator {
        Bits::And => left & right,
        Bits::Or => left | right,
        Bits::Xor => left ^ right,
        Bits::Left => match width {
            Width::Small => i64::from((left as i32).wrapping_shl(right as u32) as i16),
            Width::Int => i64::from((left as i32).wrapping_shl(right as u32)),
            Width::Big => left.wrapping_shl(right as u32),
        },
        Bits::Right => match width {
            Width::Small | Width::Int => i64::from((left as i32).wrapping_shr(right as u32)),
            Width::Big => left.wrapping_shr(right as u32),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numerics are rounded by their digits, as PostgreSQL 15 rounds them.
    #[test]
    fn numerics_are_rounded() {
        let round =
            |rounding, mantissa, digits, to| round_numeric(rounding, mantissa, 2, digits, to).unwrap();
        assert_eq!(round(Rounding::Nearest, 12_345, 1, 1), 1235);
        assert_eq!(round(Rounding::Nearest, -12_345, 1, 1), -1235);
        assert_eq!(round(Rounding::TowardZero, -12_349, 1, 1), -1234);
        assert_eq!(round(Rounding::Nearest, 123_450, -2, 0), 1200);
        assert_eq!(round(Rounding::Down, -150, 0, 0), -2);
        assert_eq!(round(Rounding::Up, -150, 0, 0), -1);
        assert_eq!(round(Rounding::Up, 151, 0, 0), 2);
        assert_eq!(round(Rounding::Nearest, 12_345, 9, 4), 1_234_500);
        assert_eq!(round(Rounding::Nearest, 12_345, i64::MIN, 0), 0);
        assert_eq!(round(Rounding::Nearest, decimal::MANTISSA_MAX, -37, 2), 0);
        assert!(round_numeric(Rounding::Nearest, decimal::MANTISSA_MAX, 0, 0, 2).is_err());
        let halves = [-350, -250, -150, -50, 50, 150, 250, 350, 351, 249];
        let even = halves.map(|half| round(Rounding::NearestEven, half, 0, 0));
        assert_eq!(even, [-4, -2, -2, 0, 0, 2, 2, 4, 4, 2]);
        assert_eq!(round(Rounding::NearestEven, 10_i128.pow(28) - 51, 0, 0), 10_i128.pow(26) - 1);
        assert!(round_numeric(Rounding::NearestEven, 10_i128.pow(28), 2, 2, 2).is_err());
    }

    /// Goal: shifts wrap as PostgreSQL's do on the usual machines.
    #[test]
    fn shifts() {
        assert_eq!(bits(Bits::Left, Width::Int, 1, 33), 2);
        assert_eq!(bits(Bits::Left, Width::Small, 1, 17), 0);
        assert_eq!(bits(Bits::Left, Width::Big, 1, 65), 2);
        assert_eq!(bits(Bits::Right, Width::Int, -1, 1), -1);
        assert_eq!(bits(Bits::Left, Width::Int, 1, -1), -2_147_483_648);
    }

    /// Goal: powers and logarithms are rounded correctly, to the last bit, whatever the platform's library makes of
    /// them.
    #[test]
    fn doubles_are_the_same_everywhere() {
        let bits = |function, arguments: &[f64]| {
            let arguments: Vec<Datum<'_>> = arguments.iter().map(|v| Datum::Double(*v)).collect();
            match apply(function, &arguments) {
                Ok(Some(Datum::Double(v))) => v.to_bits(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(bits(Function::Exponential, &[1.0]), 0x4005_bf0a_8b14_5769);
        assert_eq!(bits(Function::NaturalLogarithm, &[10.0]), 0x4002_6bb1_bbb5_5516);
        assert_eq!(bits(Function::DecimalLogarithm, &[1000.0]), 3f64.to_bits());
        assert_eq!(bits(Function::CubeRoot, &[27.0]), 3f64.to_bits());
        assert_eq!(bits(Function::Power, &[2.0, 0.5]), 2f64.sqrt().to_bits());
        assert_eq!(bits(Function::Power, &[10.0, 22.0]), 1e22f64.to_bits());
        assert_eq!(bits(Function::Power, &[1.1, 10.0]), 0x4004_bffc_0c03_023e);
    }

    /// Goal: domains and ranges of functions of doubles.
    #[test]
    fn doubles() {
        let call = |function, arguments: &[f64]| {
            let arguments: Vec<Datum<'_>> = arguments.iter().map(|v| Datum::Double(*v)).collect();
            match apply(function, &arguments) {
                Ok(Some(Datum::Double(v))) => v.to_string(),
                Ok(other) => format!("{other:?}"),
                Err(error) => format!("{} {}", error.state(), error.message()),
            }
        };
        assert_eq!(call(Function::SquareRoot, &[2.0]), "1.4142135623730951");
        assert_eq!(call(Function::Power, &[2.0, 10.0]), "1024");
        assert_eq!(call(Function::Power, &[0.0, 2.0]), "0");
        assert_eq!(call(Function::Power, &[2.0, f64::NEG_INFINITY]), "0");
        assert_eq!(call(Function::Power, &[0.0, -1.0]), "2201F zero raised to a negative power is undefined");
        assert_eq!(call(Function::Power, &[10.0, 1000.0]), "22003 value out of range: overflow");
        assert_eq!(call(Function::Exponential, &[-1000.0]), "22003 value out of range: underflow");
        assert_eq!(call(Function::DecimalLogarithm, &[1000.0]), "3");
        assert_eq!(call(Function::NaturalLogarithm, &[0.0]), "2201E cannot take logarithm of zero");
    }
}
