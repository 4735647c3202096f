//! Which row handles are known to be of rows that are there.
//!
//! Reading a row that may be missing asks first whether it exists. After `RequireRow`, in a scan's
//! body and after an insert the answer is known, until a delete in the same table:
//!
//! ```text
//! Locate r0 := accounts[src]
//! RequireRow r0                 r0 is there
//! if x { Delete r1 }            r1 may be the same row: r0 may be missing
//! Read v := r0.balance          asks first
//! ```

use crate::ir::{Program, RowId, Step, StepKind};
use fabius_value::TableId;

/// By row handle: whether its row is known to be there.
#[derive(Clone)]
pub(super) struct Presence(Vec<bool>);

impl Presence {
    pub fn nothing(program: &Program) -> Presence {
        Presence(vec![false; program.rows.len()])
    }

    pub fn knows(&self, row: RowId) -> bool {
        self.0[usize::from(row.0)]
    }

    pub fn set(&mut self, row: RowId, present: bool) {
        self.0[usize::from(row.0)] = present;
    }

    /// After a delete in a table.
    pub fn forget(&mut self, program: &Program, table: TableId) {
        for (known, row) in self.0.iter_mut().zip(&program.rows) {
            *known &= row.table != table;
        }
    }

    /// After either of two ways.
    pub fn meet(&mut self, other: &Presence) {
        self.0.iter_mut().zip(&other.0).for_each(|(one, other)| *one &= other);
    }

    /// At the head of a loop, whose body may have run before, and wherever a block may have run.
    pub fn forget_changed_in(&mut self, program: &Program, block: &[Step]) {
        for step in block {
            match &step.kind {
                StepKind::Delete { row } => self.forget(program, program.rows[usize::from(row.0)].table),
                StepKind::Locate { row, .. } => self.set(*row, false),
                StepKind::If { then, otherwise, .. } => {
                    self.forget_changed_in(program, then);
                    self.forget_changed_in(program, otherwise);
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => {
                    self.forget_changed_in(program, body);
                }
                StepKind::ForScan { row, scan, body } => {
                    self.set(*row, false);
                    if let Some(filter) = &scan.filter {
                        self.forget_changed_in(program, &filter.steps);
                    }
                    self.forget_changed_in(program, body);
                }
                _ => {}
            }
        }
    }
}

/// By row handle: how many `Locate` steps set it.
pub(super) fn locates(program: &Program) -> Vec<usize> {
    fn walk(block: &[Step], counts: &mut [usize]) {
        for step in block {
            match &step.kind {
                StepKind::Locate { row, .. } => counts[usize::from(row.0)] += 1,
                StepKind::If { then, otherwise, .. } => {
                    walk(then, counts);
                    walk(otherwise, counts);
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => walk(body, counts),
                StepKind::ForScan { scan, body, .. } => {
                    if let Some(filter) = &scan.filter {
                        walk(&filter.steps, counts);
                    }
                    walk(body, counts);
                }
                _ => {}
            }
        }
    }
    let mut counts = vec![0; program.rows.len()];
    walk(&program.body, &mut counts);
    counts
}
