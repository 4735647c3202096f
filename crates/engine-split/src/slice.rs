//! What a core has done to the split records in this phase: Doppel's per-core slices.
//!
//! Each operation can be summarised: however many were applied, one value per column stands for all.

use fabius_value::{Datum, DeltaOperator};

/// A column of a split record, the same for all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What calls of this phase do to it.
    pub operator: DeltaOperator,
    /// What changes nothing: the column's value in the stand-in.
    pub identity: i128,
    /// How much one core may add and take away in all: then no order of the operations of all cores leaves
    /// the column's range.
    pub room: i128,
}

/// The operations of one core on one column, summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    operation: Operation,
    value: i128,
    /// The sum of the sizes of all operands added.
    moved: i128,
}

impl Summary {
    /// Nothing done yet.
    pub fn new(operation: Operation) -> Summary {
        Summary { operation, value: operation.identity, moved: 0 }
    }

    /// Whether there is room for an operand.
    #[inline]
    pub fn has_room(&self, operand: Datum<'_>) -> bool {
        match self.operation.operator {
            DeltaOperator::Add => {
                let moved = operand.exact().checked_abs().and_then(|size| self.moved.checked_add(size));
                moved.is_some_and(|moved| moved <= self.operation.room)
            }
            DeltaOperator::Max | DeltaOperator::Min => true,
        }
    }

    /// Applies an operand that there is room for.
    #[inline]
    pub fn apply(&mut self, operand: Datum<'_>) {
        let operand = operand.exact();
        if self.operation.operator == DeltaOperator::Add {
            self.moved += operand.abs();
        }
        self.value = combine(self.operation.operator, self.value, operand);
    }

    /// Takes in what another core has done.
    pub fn merge(&mut self, other: &Summary) {
        self.value = combine(self.operation.operator, self.value, other.value);
    }

    /// The column's value after all of this, if it was `before`.
    pub fn applied_to(&self, before: i128) -> i128 {
        combine(self.operation.operator, before, self.value)
    }
}

fn combine(operator: DeltaOperator, one: i128, other: i128) -> i128 {
    match operator {
        DeltaOperator::Add => one + other,
        DeltaOperator::Max => one.max(other),
        DeltaOperator::Min => one.min(other),
    }
}

/// One core's part of a split record.
#[derive(Clone, Debug)]
pub struct Slice {
    /// By place among the record's split columns.
    pub columns: Vec<Summary>,
    /// Calls that have applied operations to it.
    pub applied: u64,
    /// Calls that were stashed because of it.
    pub stashed: u64,
}

impl Slice {
    /// A slice on which nothing was done.
    pub fn new(operations: impl Iterator<Item = Operation>) -> Slice {
        Slice { columns: operations.map(Summary::new).collect(), applied: 0, stashed: 0 }
    }

    /// Takes in another core's slice of the same record.
    pub fn merge(&mut self, other: &Slice) {
        self.columns.iter_mut().zip(&other.columns).for_each(|(mine, theirs)| mine.merge(theirs));
        self.applied += other.applied;
        self.stashed += other.stashed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stop_where_the_room_ends() {
        let operation = Operation { operator: DeltaOperator::Add, identity: 0, room: 10 };
        let mut one = Summary::new(operation);
        for operand in [4, -3] {
            assert!(one.has_room(Datum::Int(operand)));
            one.apply(Datum::Int(operand));
        }
        assert!(one.has_room(Datum::Int(3)) && !one.has_room(Datum::Int(-4)));
        let mut other = Summary::new(operation);
        other.apply(Datum::Int(5));
        one.merge(&other);
        assert_eq!(one.applied_to(100), 106);
    }

    #[test]
    fn extremes_keep_the_furthest() {
        let operation = Operation { operator: DeltaOperator::Max, identity: i64::MIN.into(), room: 0 };
        let mut summary = Summary::new(operation);
        assert_eq!(summary.applied_to(5), 5);
        [3, 9, 7].iter().for_each(|operand| summary.apply(Datum::Int(*operand)));
        assert_eq!((summary.applied_to(5), summary.applied_to(50)), (9, 50));
    }
}
