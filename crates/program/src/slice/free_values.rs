//! What costs nothing to know now.
//!
//! A value that depends on arguments, constants and values that the now-phase has anyway need not be
//! deferred: storing it is as cheap as storing a sticky, and nobody has to come back for it. In
//!
//! ```text
//! insert orders { id: number, entered: now(), lines: count(lines), total: total }
//! ```
//!
//! only `total`, which depends on prices, is left for later.
//!
//! A variable is *available* if all steps that assign it could run now without reading anything that
//! the now-phase does not read. This is a greatest fixpoint (assume all, strike out), so that a sum
//! over an argument's elements is available although it depends on itself.

use super::now_slice::{AT_HAND, NowSlice, Why};
use super::outline::{used_variables, variables};
use crate::ir::{Expression, RowId, StepId, StepKind, VariableId};
use fabius_value::ColumnId;

/// By variable: whether its value is at hand in the now-phase.
pub(super) struct Available(Vec<bool>);

impl Available {
    /// What is available next to a slice.
    pub fn of(slice: &NowSlice<'_, '_>) -> Available {
        let outline = slice.outline;
        let count = outline.program.variables.len();
        let mut available = Available(vec![true; count]);
        let fixed = |at: usize| slice.variables[at] || at < outline.program.parameter_count;
        loop {
            let mut changed = false;
            for at in (0..count).filter(|at| !fixed(*at)) {
                let free = outline.assignments[at]
                    .iter()
                    .all(|step| available.step_is_free(slice, *step, VariableId(at as u16)));
                if available.0[at] && !free {
                    available.0[at] = false;
                    changed = true;
                }
            }
            if !changed {
                return available;
            }
        }
    }

    /// Whether an expression can be evaluated now.
    pub fn has(&self, expression: &Expression) -> bool {
        let mut all = true;
        variables(expression, &mut |variable| all &= self.has_variable(variable));
        all
    }

    fn has_variable(&self, variable: VariableId) -> bool {
        self.0[usize::from(variable.0)]
    }

    fn step_is_free(&self, slice: &NowSlice<'_, '_>, step: StepId, variable: VariableId) -> bool {
        let outline = slice.outline;
        let is_now = |step: StepId| slice.steps[usize::from(step.0)];
        let inputs = match &outline.at(step).step.kind {
            StepKind::Assign { value, .. } => self.has(value),
            StepKind::Append { values, .. } => values.iter().all(|value| self.has(value)),
            StepKind::Clear { .. } | StepKind::Sort { .. } => true,
            StepKind::Exists { row, .. } => {
                outline.handles[usize::from(row.0)].iter().all(|step| is_now(*step))
            }
            StepKind::Read { row, columns } => columns
                .iter()
                .filter(|(_, into)| *into == variable)
                .all(|(column, _)| is_known_column(slice, step, *row, *column)),
            _ => self.control_is_free(slice, step),
        };
        inputs && outline.around(step).all(|(parent, _)| self.control_is_free(slice, parent))
    }

    fn control_is_free(&self, slice: &NowSlice<'_, '_>, step: StepId) -> bool {
        slice.steps[usize::from(step.0)]
            || match &slice.outline.at(step).step.kind {
                StepKind::If { condition, .. } => self.has(condition),
                StepKind::ForList { list, .. } => self.has_variable(*list),
                StepKind::ForRange { from, to, .. } => self.has(from) && self.has(to),
                _ => false,
            }
    }

    /// Moves into the slice every write that is free, and the results if they are. Returns (by shape)
    /// the deltas that should be ordinary values: their operand is not at hand, or everything that
    /// the program writes to their column is known anyway.
    pub fn store_now(&self, slice: &mut NowSlice<'_, '_>) -> Vec<usize> {
        let outline = slice.outline;
        let deltas: Vec<usize> = (0..slice.shapes.len()).filter(|at| !slice.choices.ordinary[*at]).collect();
        let unwanted = |at: &&usize| {
            let shape = &slice.shapes[**at];
            let column = (shape.site.table, shape.site.column);
            let mut of_column = outline.writes.iter().filter(|site| (site.table, site.column) == column);
            !self.has(&shape.operand) || of_column.all(|site| self.has(outline.written_value(*site)))
        };
        let unwanted: Vec<usize> = deltas.iter().filter(unwanted).copied().collect();
        if !unwanted.is_empty() {
            return unwanted;
        }
        for at in deltas {
            slice.need_expression(&slice.shapes[at].operand, &Why::new("operand of a delta, at hand"));
        }
        for site in &outline.writes {
            let postponed = slice.choices.postponed[usize::from(site.step.0)].contains(site.column);
            if !postponed && slice.delta(*site).is_none() && self.has(outline.written_value(*site)) {
                slice.need_write(*site, Why::new(AT_HAND));
            }
        }
        for &step in &outline.order {
            let node = outline.at(step).step;
            let results = matches!(node.kind, StepKind::Return { .. });
            if results && used_variables(node).into_iter().all(|used| self.has_variable(used)) {
                slice.need_step(step, Why::new("results at hand"));
            }
        }
        slice.close();
        Vec::new()
    }
}

/// Whether the now-phase has read this column of this row already, and anything written to it since
/// is known: reading it again meets no sticky.
fn is_known_column(slice: &NowSlice<'_, '_>, step: StepId, row: RowId, column: ColumnId) -> bool {
    let outline = slice.outline;
    let relocated = |earlier: StepId| {
        outline.handles[usize::from(row.0)].iter().any(|handle| {
            let at = outline.at(*handle).position;
            outline.at(earlier).position < at && at < outline.at(step).position
        })
    };
    let read_before = outline.order.iter().any(|earlier| {
        let same_row = matches!(&outline.at(*earlier).step.kind, StepKind::Read { row: r, .. } if *r == row);
        same_row
            && slice.reads[usize::from(earlier.0)].contains(column)
            && outline.dominates(*earlier, step)
            && !relocated(*earlier)
    });
    let table = outline.table(row);
    read_before
        && outline
            .writes
            .iter()
            .filter(|site| (site.table, site.column) == (table, column))
            .all(|site| slice.is_known(*site) || !outline.can_follow(site.step, step))
}
