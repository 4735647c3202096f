//! The order of values: what `=`, `<`, `least`, `min` and `count(distinct)` agree on.
//!
//! Numbers by value (a double's NaN equals itself and is greatest, -0 equals 0, as in PostgreSQL),
//! text and bytes by their bytes (the "C" collation), false before true, earlier before later.

use crate::ir::BinaryOperator;
use fabius_value::Datum;
use std::cmp::Ordering;

/// The order of two values of one type; `None` if either is null.
#[inline]
pub fn compare(left: Datum<'_>, right: Datum<'_>) -> Option<Ordering> {
    match (left, right) {
        (Datum::Int(l), Datum::Int(r)) => Some(l.cmp(&r)),
        (Datum::Numeric(l), Datum::Numeric(r)) => Some(l.cmp(&r)),
        (Datum::Text(l), Datum::Text(r)) => Some(l.cmp(r)),
        (Datum::Bytes(l), Datum::Bytes(r)) => Some(l.cmp(r)),
        (Datum::Boolean(l), Datum::Boolean(r)) => Some(l.cmp(&r)),
        (Datum::Double(l), Datum::Double(r)) => Some(compare_doubles(l, r)),
        _ => {
            super::null_of(&"comparison", &[left, right]);
            None
        }
    }
}

fn compare_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// A comparison operator, as the set of orderings that satisfy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison(u8);

impl Comparison {
    /// The comparison that an operator makes, if it is one.
    pub fn of(operator: BinaryOperator) -> Option<Comparison> {
        const LESS: u8 = 1;
        const EQUAL: u8 = 2;
        const GREATER: u8 = 4;
        let orderings = match operator {
            BinaryOperator::Equal => EQUAL,
            BinaryOperator::NotEqual => LESS | GREATER,
            BinaryOperator::Less => LESS,
            BinaryOperator::LessEqual => LESS | EQUAL,
            BinaryOperator::Greater => GREATER,
            BinaryOperator::GreaterEqual => GREATER | EQUAL,
            _ => return None,
        };
        Some(Comparison(orderings))
    }

    /// The comparison that holds between non-null values exactly when this does not.
    pub fn negated(self) -> Comparison {
        Comparison(!self.0 & 7)
    }

    /// Whether the comparison holds; `None` if either value is null.
    #[inline]
    pub fn holds(self, left: Datum<'_>, right: Datum<'_>) -> Option<bool> {
        compare(left, right).map(|ordering| self.has(ordering))
    }

    /// Whether an ordering satisfies it.
    #[inline]
    pub fn has(self, ordering: Ordering) -> bool {
        self.0 >> (ordering as i8 + 1) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: doubles are totally ordered, so indexes, sorting and `=` agree.
    #[test]
    fn nan_is_equal_to_itself_and_greatest() {
        let nan = Datum::Double(f64::NAN);
        assert_eq!(compare(nan, nan), Some(Ordering::Equal));
        assert_eq!(compare(nan, Datum::Double(f64::INFINITY)), Some(Ordering::Greater));
        assert_eq!(compare(Datum::Double(-0.0), Datum::Double(0.0)), Some(Ordering::Equal));
        assert_eq!(compare(Datum::Null, nan), None);
    }

    /// Goal: a comparison and its negation split all pairs of values.
    #[test]
    fn negation_is_the_complement() {
        let all = [
            (BinaryOperator::Equal, BinaryOperator::NotEqual),
            (BinaryOperator::Less, BinaryOperator::GreaterEqual),
            (BinaryOperator::LessEqual, BinaryOperator::Greater),
        ];
        for (one, other) in all {
            let (one, other) = (Comparison::of(one).unwrap(), Comparison::of(other).unwrap());
            assert_eq!(one.negated(), other);
            for (l, r) in [(1, 2), (2, 2), (3, 2)] {
                let (l, r) = (Datum::Int(l), Datum::Int(r));
                assert_ne!(one.holds(l, r), other.holds(l, r));
                assert_eq!(one.holds(l, Datum::Null), None);
            }
        }
    }
}
