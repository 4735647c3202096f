//! Exact and floating arithmetic, with the errors that PostgreSQL gives.
//!
//! Integers are computed in 64 bits and must fit their type; numerics are scaled 128-bit integers
//! that must fit the precision of the result's type. Doubles report overflow to infinity and
//! underflow to zero instead of carrying on with them.

use fabius_value::decimal::{self, power_of_ten};
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

    /// The number, if it has not overflowed and fits.
    #[inline]
    pub fn fit(self, number: Option<i64>) -> Result<i64> {
        match (self, number) {
            (Width::Big, Some(number)) => Ok(number),
            (Width::Int, Some(number)) if i32::try_from(number).is_ok() => Ok(number),
            (Width::Small, Some(number)) if i16::try_from(number).is_ok() => Ok(number),
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

    /// The mantissa, if it has not overflowed and fits.
    #[inline]
    pub fn fit(self, mantissa: Option<i128>) -> Result<i128> {
        match mantissa {
            Some(mantissa) if mantissa.unsigned_abs() < POWERS[usize::from(self.precision)] => Ok(mantissa),
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

/// `left * right`, where the product of the scales' sum is brought to the result's scale.
pub fn multiply_numerics(left: i128, right: i128, scale: u8, to: Digits) -> Result<i128> {
    let product = left.checked_mul(right);
    if scale == to.scale {
        return to.fit(product);
    }
    to.fit(product.and_then(|product| rescale(product, scale, to.scale)))
}

/// [`decimal::rescale`] for products, whose scale can exceed 38.
fn rescale(mantissa: i128, from: u8, to: u8) -> Option<i128> {
    if from > to && from - to > 38 { Some(0) } else { decimal::rescale_wide(mantissa, from, to) }
}

/// `left / right` rounded to the result's scale. `shift` is what to scale the left mantissa by.
pub fn divide_numerics(left: i128, right: i128, shift: i8, to: Digits) -> Result<i128> {
    if right == 0 {
        return Err(division_by_zero());
    }
    let magnitude = shift.unsigned_abs();
    if magnitude > 38 {
        // Only reached with scales far apart; nothing but zero survives either way.
        return if left == 0 || shift < 0 { Ok(0) } else { to.fit(None) };
    }
    let factor = power_of_ten(magnitude);
    if shift >= 0 {
        to.fit(left.checked_mul(factor).map(|scaled| decimal::divide_rounded(scaled, right)))
    } else {
        match right.checked_mul(factor) {
            Some(divisor) => to.fit(Some(decimal::divide_rounded(left, divisor))),
            None => Ok(0),
        }
    }
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
        return Err(Error::new(SqlState::OUT_OF_RANGE, "double precision overflow"));
    }
    let vanished = match operator {
        Multiply => result == 0.0 && left != 0.0 && right != 0.0,
        Divide => result == 0.0 && left != 0.0 && !right.is_infinite(),
        Add | Subtract | Modulo => false,
    };
    if vanished { Err(Error::new(SqlState::OUT_OF_RANGE, "double precision underflow")) } else { Ok(result) }
}

/// 22003 for a type.
#[cold]
pub fn out_of_range(data_type: DataType) -> Error {
    Error::new(SqlState::OUT_OF_RANGE, format!("{data_type} out of range"))
}

/// 22012.
#[cold]
pub fn division_by_zero() -> Error {
    Error::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}
