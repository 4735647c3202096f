//! Columns that are read where their value is used.
//!
//! A `Read` step reads all columns that the next statement mentions, but the statement may need one of
//! them only:
//!
//! ```text
//! let info = if d = 1 then stock[i].dist_01     Locate, RequireRow
//!            else if d = 2 then stock[i].dist_02     JumpCompare d = 1
//!            ...                                     Read dist_01 into info
//! ```
//!
//! A variable that one place of the program uses is *late* if nothing between its `Read` and that place,
//! in the same block, can change the row or the handle: then its column is read there, if control comes
//! that way, into the register that wants it.

use crate::ir::{Block, Expression, RowId, Step, StepKind, VariableId};
use crate::slice::outline::{Outline, mentions, used_variables};

/// By variable: whether its column is read where it is used.
pub(super) struct LateReads(Vec<bool>);

impl LateReads {
    pub fn of(outline: &Outline<'_>) -> LateReads {
        let program = outline.program;
        let mut uses = vec![0u32; program.variables.len()];
        for &step in &outline.order {
            used_variables(outline.at(step).step).iter().for_each(|used| uses[usize::from(used.0)] += 1);
        }
        let assigned = outline.assignments.iter().map(Vec::len);
        let mut search = Search {
            is_used_once: uses.iter().zip(assigned).map(|counts| counts == (&1, 1)).collect(),
            late: LateReads(vec![false; program.variables.len()]),
        };
        search.block(&program.body, None);
        search.late
    }

    pub fn contains(&self, variable: VariableId) -> bool {
        self.0[usize::from(variable.0)]
    }
}

struct Search {
    /// By variable: whether one step sets it, and one place uses it.
    is_used_once: Vec<bool>,
    late: LateReads,
}

impl Search {
    /// Looks at the reads of a block, behind whose last step `condition` is evaluated.
    fn block(&mut self, block: &Block, condition: Option<&Expression>) {
        for (at, step) in block.iter().enumerate() {
            match &step.kind {
                StepKind::Read { row, columns } => {
                    for &(_, variable) in columns {
                        let of = usize::from(variable.0);
                        self.late.0[of] =
                            self.is_used_once[of] && is_met(variable, *row, &block[at + 1..], condition);
                    }
                }
                StepKind::If { then, otherwise, .. } => {
                    self.block(then, None);
                    self.block(otherwise, None);
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => self.block(body, None),
                StepKind::ForScan { scan, body, .. } => {
                    if let Some(filter) = &scan.filter {
                        self.block(&filter.steps, Some(&filter.condition));
                    }
                    self.block(body, None);
                }
                _ => {}
            }
        }
    }
}

/// Whether control that goes on with `rest` meets the variable's use before anything that could change
/// the row.
fn is_met(variable: VariableId, row: RowId, rest: &[Step], condition: Option<&Expression>) -> bool {
    for step in rest {
        if used_variables(step).contains(&variable) {
            // What a `Require` mentions is shown when it is not met, and bounds of loops are kept.
            return matches!(
                step.kind,
                StepKind::Assign { .. }
                    | StepKind::Append { .. }
                    | StepKind::Locate { .. }
                    | StepKind::If { .. }
                    | StepKind::Insert { .. }
                    | StepKind::Update { .. }
                    | StepKind::Return { .. }
            );
        }
        match &step.kind {
            StepKind::Locate { row: other, .. } if *other != row => {}
            StepKind::Assign { .. }
            | StepKind::Append { .. }
            | StepKind::Clear { .. }
            | StepKind::Sort { .. }
            | StepKind::RequireRow { .. }
            | StepKind::Exists { .. }
            | StepKind::Read { .. }
            | StepKind::Require { .. } => {}
            _ => return false,
        }
    }
    condition.is_some_and(|condition| mentions(condition, variable))
}
