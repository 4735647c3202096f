//! Which phase each part of a program runs in, and why.
//!
//! *Now*: everything that a `require`, an insert's uniqueness, a write's key, the existence of a
//! row that must be there, or a branch or loop around a write depends on, and every operation that
//! could fail and is not proven not to (a hidden `require`). *Later*: the rest (lazy
//! evaluation, sections 2.3 and 2.3.1). What costs nothing to do now, because it depends on
//! nothing but arguments and values that the now-phase has anyway, is not deferred.
//!
//! ```text
//! procedure sell(item: int, count: int) {
//!     require count between 1 and 10, "count"      now: decides the outcome
//!     stock[item].sold += count                    delta: adds count to stock.sold
//!     let left = stock[item].quantity - count      later
//!     stock[item].quantity =                       key now, value later: quantity is assumed in
//!         if left >= 10 then left else left + 91   [10, 100], which proves that nothing overflows
//! }
//! ```
//!
//! The answer is a [`Phases`]: for every step whether it runs now, later or in both; for every write
//! and column how it is stored; and the *capture tape*: which variables and row handles the
//! now-phase hands to the later-phase. Both phases walk the same control structure around what they
//! have in common, so a value captured at some step is restored at that very step.
//!
//! It is found in these rooms, left to right, and again from the third when the last objects:
//!
//! ```text
//! outline -> delta shapes -> now slice -> free values -> later slice -> conflict
//!         -> proofs (intervals)  ^_____________________________________|
//! ```
//!
//! Invariants:
//! - a later-phase cannot fail: each operation that could is now, or proven (`expression_range`);
//! - the later-phase reads nothing that this call's now-phase has overwritten (`conflict`);
//! - what a part needs runs in its phase, is captured, or is a parameter; what stands around it
//!   runs in its phase too.

mod action_slice;
mod column_bounds;
mod conflict;
mod deciding;
mod delta;
pub(crate) mod effects;
mod expression_range;
pub(crate) mod expression_text;
mod free_values;
mod independence;
mod interval;
mod keyed_action;
mod knowledge;
mod later_slice;
pub(crate) mod needs;
pub(crate) mod now_slice;
pub mod operation;
pub(crate) mod outline;
mod proof;
mod reliance;
mod slicing;

pub use action_slice::take_apart;
pub use column_bounds::ColumnBounds;
pub use independence::{are_independent, lists_stand_together};
pub use interval::Interval;
pub use keyed_action::Indivisible;
pub use slicing::{ActionSlice, ActionSlices};

use crate::catalog::Catalog;
use crate::context::DeltaOperator;
use crate::ir::{Expression, Program, RowId, StepId, Type, VariableId};
use delta::DeltaShape;
use fabius_value::{ColumnId, ColumnMask, DataType, TableId};
use free_values::Available;
use later_slice::LaterSlice;
use now_slice::{Choices, NowSlice};
use outline::{Outline, WriteSite};
use proof::Proofs;

/// What is assumed of the data when a program is sliced: what the interval proofs start from.
pub trait Assumptions {
    /// The values that the exact-number column can have; `None` if nothing beyond its type is known.
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval>;

    /// The values that a parameter (field 0 for scalars, else the list's field) can have; `None` if
    /// nothing beyond its type is known.
    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval>;

    /// The most elements that a list parameter can have; `None` if nothing is known.
    fn length(&self, _parameter: VariableId) -> Option<u64> {
        None
    }

    /// Whether rows of the table may go, so that one which was there before a call may be missing when it runs.
    fn loses_rows(&self, _table: TableId) -> bool {
        false
    }
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

/// Numbers have at most half the digits of their type, and lists at most a hundred elements: what an engine will find
/// in most data, for whoever explains a program without any.
pub struct Ordinary<'p> {
    /// The program that is explained.
    pub program: &'p Program,
    /// The tables that it knows.
    pub catalog: &'p Catalog,
}

impl Ordinary<'_> {
    fn numbers(data_type: DataType) -> Option<Interval> {
        let (_, high) = data_type.exact_range()?;
        let bound = high.unsigned_abs().isqrt() as i128;
        Some(Interval { low: -bound, high: bound })
    }
}

impl Assumptions for Ordinary<'_> {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        Ordinary::numbers(self.catalog.table(table).columns[usize::from(column.0)].data_type)
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval> {
        match &self.program.variables[usize::from(parameter.0)].ty {
            Type::Scalar(scalar) => Ordinary::numbers(scalar.data_type),
            Type::List(fields) => Ordinary::numbers(fields.get(usize::from(field))?.scalar.data_type),
        }
    }

    fn length(&self, _: VariableId) -> Option<u64> {
        Some(100)
    }
}

/// The phases a step takes part in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepPhase {
    /// It has a part in the now-phase.
    pub now: bool,
    /// It has a part in the later-phase. For a step that sets captured variables or a captured row
    /// and runs now, that part is restoring them. `Clear` and `Append` run in both phases if both
    /// use their list. A `Return` is in one phase: now if its results are at hand or could fail.
    pub later: bool,
}

/// How a write step stores one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnPhase {
    /// The value is computed and stored in the now-phase.
    Now,
    /// A delta: the operand (see [`Phases::delta_operands`]) is computed now and stored as an
    /// operation.
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
    /// By step number: the columns stored now for no other reason than that their values are at hand.
    pub at_hand: Vec<ColumnMask>,
    /// By step number: the columns stored as deltas and their operands, of exactly the columns' types
    /// (for `x -= e`, the operand is `-e`), in ascending column order.
    pub delta_operands: Vec<Vec<(ColumnId, Expression)>>,
    /// By step number: for a `Read`, the columns the now-phase reads; the later-phase reads the rest
    /// of those that are needed at all.
    pub reads_now: Vec<ColumnMask>,
    /// By step number: for a `Read`, the columns the later-phase reads.
    pub reads_later: Vec<ColumnMask>,
    /// Scalar variables assigned in the now-phase that the later-phase needs: captured after each
    /// `Assign`, `Read` or `Exists` that assigns them.
    pub captured_variables: Vec<VariableId>,
    /// Row handles located in the now-phase that the later-phase needs. For the row of a scan this
    /// is the sequence of rows its body ran for.
    pub captured_rows: Vec<RowId>,
    /// Whether there is anything to do later besides computing results.
    pub has_later_writes: bool,
    /// Whether the program writes at all.
    pub writes_anything: bool,
    /// By step number: whether its later part exists only to compute results.
    pub results_only: Vec<bool>,
    /// By step number: why its now part is now and what its later part is for, for `explain`. Empty
    /// for a step whose outcome nobody needs.
    pub reasons: Vec<String>,
    /// Intervals of the values that the later-phase stores to exact columns: (table, column,
    /// interval). The caller widens its column intervals by these; values stored now it sees.
    pub written: Vec<(TableId, ColumnId, Interval)>,
    /// Intervals of the sums of added delta operands per call: (table, column, interval).
    pub added: Vec<(TableId, ColumnId, Interval)>,
    /// Parameter intervals that the proofs relied on; a call outside them needs other phases.
    pub relied_on: Vec<(VariableId, u16, Interval)>,
    /// Lengths of list parameters that the proofs relied on, likewise.
    pub relied_on_lengths: Vec<(VariableId, u64)>,
    /// Column intervals that the proofs relied on: when a column's values leave its interval, the
    /// program must be sliced anew before the next call.
    pub relied_on_columns: Vec<(TableId, ColumnId, Interval)>,
    /// For `explain`: hidden requires that could not be proven, with their step and reason.
    pub hidden_requires: Vec<(StepId, String)>,
}

/// Slices a program.
pub fn slice(program: &Program, catalog: &Catalog, assumptions: &dyn Assumptions) -> Phases {
    let outline = Outline::of(program);
    let shapes = delta::delta_shapes(&outline, catalog);
    let proofs = proof::prove(&outline, catalog, &shapes, assumptions);
    let mut choices = first_choices(&outline, &shapes, &proofs);
    loop {
        let mut now = NowSlice::of(&outline, catalog, &shapes, &proofs, &choices);
        let required = now.writes.clone();
        let unwanted = Available::of(&now).store_now(&mut now);
        if !unwanted.is_empty() {
            choices = with_ordinary(&shapes, choices.clone(), &unwanted);
            continue;
        }
        let later = LaterSlice::of(&now);
        match conflict::revise(&now, &later, &required) {
            Some(revised) => choices = revised,
            None => {
                let mut phases = assemble(&now, &later, &required);
                reliance::add(&mut phases, &now, &proofs, assumptions);
                return phases;
            }
        }
    }
}

/// Deltas are what has the shape of one throughout the program and cannot fail.
fn first_choices(outline: &Outline<'_>, shapes: &[DeltaShape], proofs: &Proofs) -> Choices {
    let steps = outline.program.step_count;
    let choices = Choices {
        ordinary: vec![false; shapes.len()],
        reads: vec![ColumnMask::EMPTY; steps],
        writes: vec![ColumnMask::EMPTY; steps],
        steps: vec![false; steps],
        postponed: vec![ColumnMask::EMPTY; steps],
        everything: false,
    };
    let unfit = shapes.iter().enumerate().filter(|(at, shape)| {
        proofs.operands[*at].1
            || proofs.can_fail(shape.site.step, shape.site.index)
            || outline::draws_random(&shape.operand)
            || !delta::uniform(outline, shapes, shape)
    });
    let unfit: Vec<usize> = unfit.map(|(at, _)| at).collect();
    with_ordinary(shapes, choices, &unfit)
}

/// Makes these deltas ordinary writes, and with them all of the same columns.
fn with_ordinary(shapes: &[DeltaShape], mut choices: Choices, which: &[usize]) -> Choices {
    let column = |shape: &DeltaShape| (shape.site.table, shape.site.column);
    for &at in which {
        for (shape, ordinary) in shapes.iter().zip(&mut choices.ordinary) {
            *ordinary |= column(shape) == column(&shapes[at]);
        }
    }
    choices
}

fn assemble(now: &NowSlice<'_, '_>, later: &LaterSlice<'_, '_, '_>, required: &[ColumnMask]) -> Phases {
    let outline = now.outline;
    let steps = outline.program.step_count;
    let mut phases = Phases {
        steps: (0..steps).map(|at| StepPhase { now: now.steps[at], later: later.steps[at] }).collect(),
        writes: vec![Vec::new(); steps],
        at_hand: now.writes.iter().zip(required).map(|(all, needed)| all.without(*needed)).collect(),
        delta_operands: vec![Vec::new(); steps],
        reads_now: now.reads.clone(),
        reads_later: later.reads.clone(),
        has_later_writes: later.has_writes,
        results_only: later.results_only.clone(),
        ..Phases::default()
    };
    for site in &outline.writes {
        let at = usize::from(site.step.0);
        let phase = column_phase(now, *site);
        phases.writes[at].push((site.column, phase));
        if let (ColumnPhase::Delta(_), Some(delta)) = (phase, now.delta(*site)) {
            phases.delta_operands[at].push((site.column, delta.operand.clone()));
        }
    }
    phases.writes.iter_mut().for_each(|columns| columns.sort_by_key(|(column, _)| *column));
    phases.delta_operands.iter_mut().for_each(|columns| columns.sort_by_key(|(column, _)| *column));
    let variables = (0..outline.program.variables.len() as u16).map(VariableId);
    phases.captured_variables = variables.filter(|variable| later.is_captured(*variable)).collect();
    let rows = (0..outline.program.rows.len() as u16).map(RowId);
    phases.captured_rows = rows.filter(|row| later.captured_rows[usize::from(row.0)]).collect();
    phases.writes_anything = outline.program.writes_anything();
    phases.hidden_requires = now.hidden_requires.clone();
    phases.hidden_requires.sort_by_key(|(step, _)| *step);
    phases.reasons = (0..steps as u16).map(|at| reason(now, later, &phases, StepId(at))).collect();
    phases
}

fn column_phase(now: &NowSlice<'_, '_>, site: WriteSite) -> ColumnPhase {
    if now.writes[usize::from(site.step.0)].contains(site.column) {
        ColumnPhase::Now
    } else {
        now.delta(site).map_or(ColumnPhase::Later, |delta| ColumnPhase::Delta(delta.operator))
    }
}

/// The parts of a step's reason, joined by `; `.
fn reason(now: &NowSlice<'_, '_>, later: &LaterSlice<'_, '_, '_>, phases: &Phases, step: StepId) -> String {
    let at = usize::from(step.0);
    let mut parts = Vec::new();
    parts.extend(now.reasons[at].as_ref().map(|reason| format!("now: {reason}")));
    if !phases.at_hand[at].is_empty() {
        parts.push("now: values at hand".into());
    }
    for site in now.sites_of(step) {
        let schema = now.catalog.table(site.table);
        let column = format!("{}.{}", schema.name, schema.columns[usize::from(site.column.0)].name);
        let operand = phases.delta_operands[at].iter().find(|(of, _)| *of == site.column);
        if let (Some(delta), Some((_, operand))) = (now.delta(site), operand) {
            let operand = expression_text::expression_text(now.outline.program, operand);
            parts.push(match delta.operator {
                DeltaOperator::Add => format!("delta: adds {operand} to {column}"),
                DeltaOperator::Max => format!("delta: raises {column} to {operand}"),
                DeltaOperator::Min => format!("delta: lowers {column} to {operand}"),
            });
        }
    }
    parts.extend(later.reasons[at].as_ref().map(|reason| format!("later: {reason}")));
    parts.join("; ")
}
