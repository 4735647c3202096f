//! Steps of a record action's slice: what it does to its own row, and what it knows of others.
//!
//! ```text
//! Read   v3 := r0.balance      its own:     Read, and Give if others take it       another's:  Take
//! If     v3 > 10               Disable actions that stand in the other branch only
//! ```

use super::Compiler;
use super::builder::RowRead;
use super::instruction::Instruction;
use crate::ir::{Step, StepId, StepKind};
use crate::slice::outline::Part as Branch;
use fabius_value::{Result, Value};

impl<'p> Compiler<'p> {
    pub(super) fn slice_step(&mut self, step: &'p Step) -> Result<()> {
        let slice = self.slice.expect("the code of a slice has one");
        if !slice.steps[usize::from(step.id.0)] {
            return Ok(());
        }
        match &step.kind {
            // A call is taken apart if all its rows are there.
            StepKind::Exists { variable, .. } => {
                let (to, from) =
                    (self.builder.variable(*variable), self.builder.constant(&Value::Boolean(true)));
                self.builder.emit(Instruction::Move { to, from });
            }
            StepKind::Read { .. } => self.slice_read(step),
            _ => self.compute(step)?,
        }
        Ok(())
    }

    fn slice_read(&mut self, step: &'p Step) {
        let slice = self.slice.expect("the code of a slice has one");
        let StepKind::Read { row, columns } = &step.kind else { return };
        let known = self.presence.knows(*row);
        let wanted = columns.iter().filter(|(_, variable)| slice.reads.contains(&(step.id, *variable)));
        for &(column, variable) in wanted {
            if let Some(&number) = slice.takes.get(&(step.id, variable)) {
                let to = self.builder.variable(variable);
                self.builder.emit(Instruction::Take { to, number });
                continue;
            }
            let (row, table) = self.row(*row);
            let read = RowRead { column, row, table, known };
            let given = slice.gives.get(&(step.id, variable));
            if given.is_none() && self.late_reads.contains(variable) {
                self.builder.read_late(variable, read);
                continue;
            }
            let value = self.builder.variable(variable);
            self.builder.read(read, value);
            if let Some(&number) = given {
                self.builder.emit(Instruction::Give { value, number });
            }
        }
    }

    /// Says which actions come to nothing in this branch.
    pub(super) fn disable(&mut self, branch: &Step, part: Branch) {
        for (_, _, action) in self.disabled(branch, part) {
            self.builder.emit(Instruction::Disable { action: *action });
        }
    }

    /// Whether any does.
    pub(super) fn disables(&self, branch: &Step, part: Branch) -> bool {
        self.disabled(branch, part).next().is_some()
    }

    fn disabled(
        &self,
        branch: &Step,
        part: Branch,
    ) -> impl Iterator<Item = &'p (StepId, Branch, u16)> + use<'p> {
        let disables = self.slice.map_or(&[][..], |slice| &slice.disables);
        let of = branch.id;
        disables.iter().filter(move |(branch, way, _)| (*branch, *way) == (of, part))
    }
}
