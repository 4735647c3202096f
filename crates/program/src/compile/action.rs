//! Steps of a record action's slice: what it does to its own row, and what it knows of others.
//!
//! ```text
//! Read   v3 := r0.balance      its own:     Read, and Give if others take it       another's:  Take
//! Exists v4 := r0              its own:     likewise, unless it is known           another's:  Take
//! If     v3 > 10               Disable actions that stand in the other branch only
//! for e in list                its own:     one turn; code starts with the element       another's:  all turns
//! ```

use super::Compiler;
use super::builder::RowRead;
use super::instruction::{Instruction, Register};
use crate::ir::{Block, Step, StepId, StepKind, VariableId};
use crate::slice::outline::Part as Branch;
use fabius_value::{Result, Value};

impl<'p> Compiler<'p> {
    pub(super) fn slice_step(&mut self, step: &'p Step) -> Result<()> {
        let slice = self.slice.expect("the code of a slice has one");
        if !slice.steps[usize::from(step.id.0)] {
            return Ok(());
        }
        match &step.kind {
            StepKind::Exists { variable, .. } => self.slice_exists(step, *variable)?,
            StepKind::Read { .. } => self.slice_read(step),
            _ => self.compute(step)?,
        }
        Ok(())
    }

    fn slice_exists(&mut self, step: &'p Step, variable: VariableId) -> Result<()> {
        let slice = self.slice.expect("the code of a slice has one");
        let read = (step.id, variable);
        let to = self.builder.variable(variable);
        if let Some(&number) = slice.takes.get(&read) {
            let turn = self.turn_number();
            self.builder.emit(Instruction::Take { to, number, turn });
        } else if slice.reads.contains(&read) {
            self.compute(step)?;
            if let Some(&number) = slice.gives.get(&read) {
                let turn = self.turn_number();
                self.builder.emit(Instruction::Give { value: to, number, turn });
            }
        } else {
            // It is known to be there.
            let from = self.builder.constant(&Value::Boolean(true));
            self.builder.emit(Instruction::Move { to, from });
        }
        Ok(())
    }

    fn slice_read(&mut self, step: &'p Step) {
        let slice = self.slice.expect("the code of a slice has one");
        let StepKind::Read { row, columns } = &step.kind else { return };
        let known = self.presence.knows(*row);
        let turn = self.turn_number();
        let wanted = columns.iter().filter(|(_, variable)| slice.reads.contains(&(step.id, *variable)));
        for &(column, variable) in wanted {
            if let Some(&number) = slice.takes.get(&(step.id, variable)) {
                let to = self.builder.variable(variable);
                self.builder.emit(Instruction::Take { to, number, turn });
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
                self.builder.emit(Instruction::Give { value, number, turn });
            }
        }
    }

    /// The number of the turn that values are handed over in.
    fn turn_number(&mut self) -> Register {
        self.turn.unwrap_or_else(|| self.builder.constant(&Value::BigInt(0)))
    }

    /// The one turn that a record action runs of a loop over its list; the element is where the fields of the first
    /// such loop are used.
    pub(super) fn own_turn(&mut self, fields: &[VariableId], body: &'p Block) -> Result<()> {
        let fields: Vec<Register> = fields.iter().map(|field| self.builder.variable(*field)).collect();
        if self.builder.code.loop_bounds.is_empty() {
            self.builder.code.element = fields.into();
            self.builder.code.turn = Some(self.builder.permanent(1));
        } else {
            for (at, to) in fields.into_iter().enumerate() {
                let from = self.builder.code.element[at];
                self.builder.emit(Instruction::Move { to, from });
            }
        }
        self.note_loop_bound();
        self.turn = self.builder.code.turn;
        self.block(body)?;
        self.turn = None;
        self.note_loop_bound();
        Ok(())
    }

    fn note_loop_bound(&mut self) {
        let at = self.builder.code.instructions.len() as u32;
        self.builder.code.loop_bounds.push(at);
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
