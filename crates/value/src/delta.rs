//! Commutative operations that a version can hold instead of a value (Doppel, section 4).

use crate::{ColumnId, ColumnMask, DataType, Datum};

/// An operation that can stand in a version without being applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaOperator {
    /// `x = x + operand`, on exact numbers of the column's type and scale.
    Add,
    /// `x = greatest(x, operand)`.
    Max,
    /// `x = least(x, operand)`.
    Min,
}

/// Operations on columns of a row, in ascending order of the columns, and the operand of each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deltas<'r, 'a> {
    /// Which columns, and how each is changed.
    pub operations: &'r [(ColumnId, DeltaOperator)],
    /// As many operands.
    pub operands: &'r [Datum<'a>],
}

impl<'r, 'a> Deltas<'r, 'a> {
    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The columns.
    #[inline]
    pub fn mask(&self) -> ColumnMask {
        self.operations.iter().map(|operation| operation.0).collect()
    }

    /// Column by column.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (ColumnId, DeltaOperator, Datum<'a>)> + Clone + use<'r, 'a> {
        self.operations
            .iter()
            .zip(self.operands)
            .map(|(&(column, operator), &operand)| (column, operator, operand))
    }
}

impl DeltaOperator {
    /// Applies the operand, an exact number that is not null; so is the value, but for `Add`: null plus anything is
    /// null.
    ///
    /// The sum is inside the column's range: whoever stored the delta has proven it, since a promise must
    /// be keepable (`ARCHITECTURE.md`, invariants), so an overflow here is a broken invariant.
    pub fn apply<'a>(self, value: Datum<'a>, operand: Datum<'a>, data_type: DataType) -> Datum<'a> {
        match (self, value, operand) {
            (DeltaOperator::Add, Datum::Null, _) => Datum::Null,
            (DeltaOperator::Add, Datum::Int(a), Datum::Int(b)) => {
                let sum = a.checked_add(b).expect("a promised delta stays in range");
                if let Some((low, high)) = data_type.exact_range() {
                    assert!((low..=high).contains(&sum.into()), "a promised delta stays in range");
                }
                Datum::Int(sum)
            }
            (DeltaOperator::Add, a, b) => {
                let sum = a.exact() + b.exact();
                if let Some((low, high)) = data_type.exact_range() {
                    assert!((low..=high).contains(&sum), "a promised delta stays in range");
                }
                Datum::Numeric(sum)
            }
            (DeltaOperator::Max, a, b) => {
                if b.exact() > a.exact() {
                    b
                } else {
                    a
                }
            }
            (DeltaOperator::Min, a, b) => {
                if b.exact() < a.exact() {
                    b
                } else {
                    a
                }
            }
        }
    }

    /// One operand that does what `first` and then `second` do. Sums of operands may leave the
    /// column's range for a moment (adding and taking away), but never 64 or 128 bits.
    pub fn combine<'a>(self, first: Datum<'a>, second: Datum<'a>) -> Option<Datum<'a>> {
        match (self, first, second) {
            (DeltaOperator::Add, Datum::Int(a), Datum::Int(b)) => a.checked_add(b).map(Datum::Int),
            (DeltaOperator::Add, a, b) => a.exact().checked_add(b.exact()).map(Datum::Numeric),
            (DeltaOperator::Max, a, b) => Some(if b.exact() > a.exact() { b } else { a }),
            (DeltaOperator::Min, a, b) => Some(if b.exact() < a.exact() { b } else { a }),
        }
    }
}
