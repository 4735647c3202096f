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

use crate::ir::{Block, Program, RowId, StepKind};
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

    /// At the head of a loop, whose body may have run before.
    pub fn forget_deleted_in(&mut self, program: &Program, body: &Block) {
        for step in body {
            match &step.kind {
                StepKind::Delete { row } => self.forget(program, program.rows[usize::from(row.0)].table),
                StepKind::If { then, otherwise, .. } => {
                    self.forget_deleted_in(program, then);
                    self.forget_deleted_in(program, otherwise);
                }
                StepKind::ForList { body, .. }
                | StepKind::ForRange { body, .. }
                | StepKind::ForScan { body, .. } => self.forget_deleted_in(program, body),
                _ => {}
            }
        }
    }
}
