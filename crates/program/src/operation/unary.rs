//! Operators on one operand.

use super::arithmetic::Width;
use super::{ill_typed, null_of};
use crate::ir::UnaryOperator;
use fabius_value::data_type::Family;
use fabius_value::{DataType, Datum, Result};

/// A unary operator resolved for the type of its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOperation {
    /// `-` on an integer; overflows at the lowest.
    NegateInteger(Width),
    /// `-` on a numeric.
    NegateNumeric,
    /// `-` on a double.
    NegateDouble,
    /// `not`.
    Not,
    /// `is null`.
    IsNull,
}

impl UnaryOperation {
    /// Resolves an operator.
    ///
    /// # Errors
    /// `42804` if the operator does not exist for this type; a verified program has no such.
    pub fn of(operator: UnaryOperator, operand: DataType) -> Result<UnaryOperation> {
        match (operator, operand.family()) {
            (UnaryOperator::Negate, Family::Integer) => {
                Width::of(operand).map(UnaryOperation::NegateInteger).ok_or_else(|| ill_typed(operand))
            }
            (UnaryOperator::Negate, Family::Numeric) => Ok(UnaryOperation::NegateNumeric),
            (UnaryOperator::Negate, Family::Double) => Ok(UnaryOperation::NegateDouble),
            (UnaryOperator::Not, Family::Boolean) => Ok(UnaryOperation::Not),
            (UnaryOperator::IsNull, _) => Ok(UnaryOperation::IsNull),
            _ => Err(ill_typed(format_args!("{operator:?} {operand}"))),
        }
    }

    /// Whether it can fail on an operand of its type.
    pub fn can_fail(self) -> bool {
        matches!(self, UnaryOperation::NegateInteger(_))
    }

    /// Computes the operator.
    ///
    /// # Errors
    /// `22003` for the negative of the lowest integer.
    #[inline]
    pub fn apply<'a>(self, operand: Datum<'a>) -> Result<Datum<'a>> {
        Ok(match (self, operand) {
            (UnaryOperation::IsNull, operand) => Datum::Boolean(operand.is_null()),
            (UnaryOperation::Not, Datum::Boolean(v)) => Datum::Boolean(!v),
            (UnaryOperation::NegateInteger(width), Datum::Int(v)) => Datum::Int(width.fit(v.checked_neg())?),
            (UnaryOperation::NegateNumeric, Datum::Numeric(v)) => Datum::Numeric(-v),
            (UnaryOperation::NegateDouble, Datum::Double(v)) => Datum::Double(-v),
            _ => null_of(&self, &[operand]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each operator on a value, at its edge, and on null.
    #[test]
    fn values_edges_and_nulls() {
        let apply = |operator, ty, operand| UnaryOperation::of(operator, ty).unwrap().apply(operand);
        let negate = UnaryOperator::Negate;
        assert_eq!(apply(negate, DataType::Int, Datum::Int(5)).unwrap(), Datum::Int(-5));
        assert!(apply(negate, DataType::Int, Datum::Int(i32::MIN.into())).is_err());
        assert!(apply(negate, DataType::BigInt, Datum::Int(i64::MIN)).is_err());
        assert_eq!(apply(negate, DataType::Int, Datum::Null).unwrap(), Datum::Null);
        assert_eq!(apply(UnaryOperator::Not, DataType::Boolean, Datum::Null).unwrap(), Datum::Null);
        assert_eq!(apply(UnaryOperator::IsNull, DataType::Date, Datum::Null).unwrap(), Datum::Boolean(true));
        assert!(UnaryOperation::of(negate, DataType::TEXT).is_err());
    }
}
