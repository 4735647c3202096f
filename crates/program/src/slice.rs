//! Which phase each part of a program runs in, and why.
//!
//! *Now*: everything that a `require`, an insert's uniqueness, a write's key, the existence of a
//! row that must be there, or a branch or loop around a write depends on, and every operation that
//! could fail and is not proven not to (a hidden `require`). *Later*: the rest (DESIGN section 5;
//! lazy evaluation, sections 2.3 and 2.3.1). What costs nothing to do now, because it depends on
//! nothing but arguments and values that the now-phase has anyway, is not deferred.
//!
//! The answer is a [`Phases`]: for every step whether it runs now, later or in both; for every write
//! and column how it is stored; and the *capture tape*: which variables and row handles the
//! now-phase hands to the later-phase. Both phases walk the same control structure around what they
//! have in common, so a value captured at some step is restored at that very step.

use crate::context::DeltaOperator;
use crate::ir::{Expression, RowId, StepId, VariableId};
use fabius_value::{ColumnId, ColumnMask, TableId};

/// A closed interval of exact numbers (numerics as scaled integers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Least value.
    pub low: i128,
    /// Greatest value.
    pub high: i128,
}

/// What is assumed of the data when a program is sliced: what the interval proofs start from.
pub trait Assumptions {
    /// The values that the exact-number column can have; `None` if nothing beyond its type is known.
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval>;

    /// The values that a parameter (field 0 for scalars, else the list's field) can have; `None` if
    /// nothing beyond its type is known.
    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval>;
}

/// Nothing is known beyond the types.
pub struct TypesOnly;

impl Assumptions for TypesOnly {
    fn column(&self, _: TableId, _: ColumnId) -> Option<Interval> {
        None
    }

    fn parameter(&self, _: VariableId, _: u16) -> Option<Interval> {
        None
    }
}

/// The phases a step takes part in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepPhase {
    /// It has a part in the now-phase.
    pub now: bool,
    /// It has a part in the later-phase.
    pub later: bool,
}

/// How a write step stores one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPhase {
    /// The value is computed and stored in the now-phase.
    Now,
    /// A delta: the operand (see [`Phases::delta_operands`]) is computed now and stored as an operation.
    Delta(DeltaOperator),
    /// A sticky: the later-phase computes the value.
    Later,
}

/// The answer for one program.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// By step number.
    pub steps: Vec<StepPhase>,
    /// By step number: the columns of an `Insert` or `Update` and how each is stored, in ascending
    /// column order; empty for other steps.
    pub writes: Vec<Vec<(ColumnId, ColumnPhase)>>,
    /// By step number: the operands of an `Update`'s delta columns, of the columns' types, in
    /// ascending column order.
    pub delta_operands: Vec<Vec<(ColumnId, Expression)>>,
    /// By step number: for a `Read`, the columns the now-phase reads; the later-phase reads the rest
    /// of those that are needed at all.
    pub reads_now: Vec<ColumnMask>,
    /// By step number: for a `Read`, the columns the later-phase reads.
    pub reads_later: Vec<ColumnMask>,
    /// Variables assigned in the now-phase that the later-phase needs and cannot compute from
    /// parameters alone: captured after each step that assigns them.
    pub captured_variables: Vec<VariableId>,
    /// Row handles located in the now-phase that the later-phase needs.
    pub captured_rows: Vec<RowId>,
    /// Whether there is anything to do later besides computing results.
    pub has_later_writes: bool,
    /// Whether the program writes at all.
    pub writes_anything: bool,
    /// Why each step's now part is now (and each later part later): one line each, for `explain`.
    pub reasons: Vec<String>,
    /// Intervals that each call may add to columns by writes that were proven with assumptions:
    /// (table, column, interval of values written). The caller widens its column intervals by these.
    pub written: Vec<(TableId, ColumnId, Interval)>,
    /// Intervals of delta operands per call: (table, column, interval added).
    pub added: Vec<(TableId, ColumnId, Interval)>,
    /// Parameter intervals that the proofs relied on; a call outside them needs other phases.
    pub relied_on: Vec<(VariableId, u16, Interval)>,
    /// For `explain`: hidden requires that could not be proven, with their step and reason.
    pub hidden_requires: Vec<(StepId, String)>,
}
