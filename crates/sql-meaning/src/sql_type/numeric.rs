//! Digits of numeric types: how many a type has, and what of them a client sees.

use super::SqlType;
use fabius_value::value_text::numeric_overflow;
use fabius_value::{DataType, Decimal, Result};

/// Digits after the point of a `numeric` that does not say.
pub const FREE_SCALE: u8 = 10;

/// The scale of a quotient before PostgreSQL's choice of digits is made: see [`QUOTIENT`].
pub const QUOTIENT_SCALE: u8 = 20;

/// The type of a `numeric` quotient or average. How many digits it shows depends on its value, as in PostgreSQL;
/// no column can have 39 digits, so the type is not mistaken for another.
pub const QUOTIENT: SqlType = SqlType::Numeric(Some((39, QUOTIENT_SCALE)));

/// Digits of a numeric type whose digits after the point nobody has chosen; no column can have so many either.
const FREE: u8 = 40;

impl SqlType {
    /// The type of what is computed from numbers, with so many digits after the point. If it is free, the zeros at its
    /// end are nobody's: one of the numbers was of a `numeric` without modifiers.
    pub fn computed(scale: u8, is_free: bool) -> SqlType {
        match (is_free, scale) {
            (true, FREE_SCALE) => SqlType::Numeric(None),
            (true, scale) => SqlType::Numeric(Some((FREE, scale))),
            (false, scale) => SqlType::Numeric(Some((38, scale))),
        }
    }

    /// Whether nobody has chosen the digits after the point.
    pub fn is_free(&self) -> bool {
        matches!(self, SqlType::Numeric(None | Some((FREE, _))))
    }

    /// Digits after the point of a numeric type; 0 for others.
    pub fn scale(&self) -> u8 {
        match self {
            SqlType::Numeric(Some((_, scale))) => *scale,
            SqlType::Numeric(None) => FREE_SCALE,
            _ => 0,
        }
    }

    /// A decimal as this numeric type has it, rounded to its scale.
    ///
    /// # Errors
    /// `22003` for one with too many digits.
    pub fn fit(&self, decimal: Decimal) -> Result<Decimal> {
        let precision =
            if let SqlType::Numeric(Some((precision @ 1..=38, _))) = self { *precision } else { 38 };
        let scale = self.scale();
        let most = 10u128.pow(precision.into());
        let fitted = decimal.rescale(scale).filter(|decimal| decimal.mantissa.unsigned_abs() < most);
        fitted.ok_or_else(|| match precision {
            38 => numeric_overflow(),
            _ => DataType::Numeric { precision, scale }.out_of_range(),
        })
    }

    /// A value of this numeric type as clients see it: of a `numeric` without modifiers without the zeros that only
    /// fill its places, of a quotient with PostgreSQL's choice of digits.
    pub fn shown(&self, decimal: Decimal) -> Decimal {
        match self {
            SqlType::Numeric(None) if decimal.scale == FREE_SCALE => decimal.trimmed(),
            SqlType::Numeric(Some((FREE, scale))) if decimal.scale == *scale => decimal.trimmed(),
            quotient if *quotient == QUOTIENT => shown_quotient(decimal),
            _ => decimal,
        }
    }
}

/// A quotient with as many digits as PostgreSQL gives it: about 16 significant ones, in steps of four
/// (`select_div_scale` in its numeric.c).
fn shown_quotient(decimal: Decimal) -> Decimal {
    if decimal.scale != QUOTIENT_SCALE {
        // It has been shown before.
        return decimal;
    }
    let whole = decimal.mantissa.unsigned_abs() / 10u128.pow(decimal.scale.into());
    let scale = match whole {
        0 => 20,
        1..10_000 => 16,
        10_000..100_000_000 => 12,
        100_000_000..1_000_000_000_000 => 8,
        1_000_000_000_000..10_000_000_000_000_000 => 4,
        _ => 0,
    };
    decimal.rescale(scale).unwrap_or(decimal)
}
