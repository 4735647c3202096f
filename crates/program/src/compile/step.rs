//! Steps to instructions, by phase.
//!
//! Every part of a program is compiled by the same walk. At each step it asks whether the part has
//! something to do there; in the now-phase it then captures what the [`tape`](super::tape) says, in
//! the later-phase it restores that instead of computing it.

use super::builder::RowRead;
use super::code::{Failure, FailureMessage, Mention, MissingRow, ResultPlan, SortPlan};
use super::instruction::{Instruction, Register, RowSlot, Truth};
use super::tape::Captured;
use super::{Compiler, Part};
use crate::ir::{
    self, Block, Expression, ExpressionKind, Message, Returned, RowId, Step, StepKind, Type, VariableId,
};
use crate::slice::outline::Part as Branch;
use fabius_value::{Result, TableId};

impl<'p> Compiler<'p> {
    pub(super) fn block(&mut self, block: &'p Block) -> Result<()> {
        block.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &'p Step) -> Result<()> {
        self.builder.line = step.line;
        let mark = self.builder.mark();
        match self.part {
            Part::Whole | Part::Action { .. } => self.compute(step)?,
            Part::Effects => {
                if self.concerns(step) {
                    self.compute(step)?;
                }
            }
            Part::Slice { .. } => self.slice_step(step)?,
            Part::Now => {
                if self.concerns(step) {
                    self.compute(step)?;
                }
                self.capture(step);
            }
            Part::Later { .. } => {
                if !self.restore(step) && self.concerns(step) {
                    self.compute(step)?;
                }
            }
        }
        self.builder.release(mark);
        self.note_presence(step);
        Ok(())
    }

    /// Whether the part has anything to do at the step or inside it.
    pub(super) fn concerns(&self, step: &Step) -> bool {
        if let Some(effects) = self.effects {
            return effects.steps[usize::from(step.id.0)];
        }
        match (&self.tape, self.part) {
            (Some(tape), Part::Now) => tape.concerns_now(step),
            (Some(tape), Part::Later { .. }) => tape.concerns_later(step),
            _ => true,
        }
    }

    /// Now-phase: puts on the tape what the step captures.
    fn capture(&mut self, step: &Step) {
        let captures = self.tape.as_ref().map(|tape| tape.captures(step)).unwrap_or_default();
        match &mut self.waiting {
            Some(waiting) => waiting.extend(captures),
            None => captures.into_iter().for_each(|captured| self.capture_one(captured)),
        }
    }

    pub(super) fn capture_one(&mut self, captured: Captured) {
        match captured {
            Captured::Variable(variable) => {
                let value = self.builder.variable(variable);
                self.builder.emit(Instruction::Capture { value });
            }
            Captured::Row(row) => {
                let row = self.builder.row(row);
                self.builder.emit(Instruction::CaptureRow { row });
            }
        }
    }

    /// Later-phase: takes off the tape what the step captured. Whether that is all there is to it.
    fn restore(&mut self, step: &Step) -> bool {
        let captures = self.tape.as_ref().map(|tape| tape.captures(step)).unwrap_or_default();
        for captured in &captures {
            match captured {
                Captured::Variable(variable) => {
                    let to = self.builder.variable(*variable);
                    self.builder.emit(Instruction::Restore { to });
                }
                Captured::Row(row) => {
                    let row = self.builder.row(*row);
                    self.builder.emit(Instruction::RestoreRow { row });
                }
            }
        }
        // A read may have more columns to read, an insert values to fill in.
        !captures.is_empty() && !matches!(step.kind, StepKind::Read { .. } | StepKind::Insert { .. })
    }

    pub(super) fn compute(&mut self, step: &'p Step) -> Result<()> {
        let later = matches!(self.part, Part::Later { .. });
        // A call whose actions are independent is taken apart if all its rows are there.
        let has_rows = matches!(self.part, Part::Action { .. });
        match &step.kind {
            StepKind::Assign { variable, value } => {
                let to = self.builder.variable(*variable);
                self.builder.compute(value, to)?;
            }
            StepKind::Clear { list } => {
                let list = self.builder.list(*list);
                self.builder.emit(Instruction::Clear { list });
            }
            StepKind::Append { list, values } => {
                let first = self.builder.block(values)?;
                let (list, count) = (self.builder.list(*list), self.builder.number(values.len()));
                self.builder.emit(Instruction::Append { list, first, count });
            }
            StepKind::Sort { list, keys } => {
                let width = match &self.program.variables[usize::from(list.0)].ty {
                    Type::List(fields) => fields.len(),
                    Type::Scalar(_) => unreachable!("only lists are sorted"),
                };
                let plan = self.builder.number(self.builder.code.sorts.len());
                self.builder.code.sorts.push(SortPlan { width, keys: keys.clone().into() });
                let list = self.builder.list(*list);
                self.builder.emit(Instruction::Sort { list, plan });
            }
            StepKind::Locate { row, key } => self.locate(*row, key)?,
            StepKind::RequireRow { row } if !later && !has_rows => self.require_row(*row),
            StepKind::Exists { variable, row } => {
                let (to, (row, table)) = (self.builder.variable(*variable), self.row(*row));
                self.builder.emit(Instruction::Exists { to, row, table });
            }
            StepKind::Read { .. } => self.read(step),
            StepKind::Require { condition, failure } if !later => self.require(condition, failure)?,
            StepKind::If { condition, then, otherwise } => {
                self.branch(step, condition, (then, otherwise))?;
            }
            StepKind::ForList { list, fields, body } => self.for_list(step, *list, fields, body)?,
            StepKind::ForRange { variable, from, to, body } => {
                self.for_range(step, *variable, (from, to), body)?
            }
            StepKind::ForScan { row, scan, body } => self.for_scan(step, *row, scan, body)?,
            StepKind::Insert { row, .. } | StepKind::Update { row, .. } if later => self.fill(step, *row)?,
            StepKind::Insert { row, .. } => {
                let write = self.write(step)?;
                let (row, table) = self.row(*row);
                self.builder.emit(Instruction::Insert { row, write, table });
            }
            StepKind::Update { row, .. } => {
                let write = self.write(step)?;
                let (row, table) = self.row(*row);
                self.builder.emit(Instruction::Update { row, write, table });
            }
            StepKind::Delete { row } if !later => {
                let (row, table) = self.row(*row);
                self.builder.emit(Instruction::Delete { row, table });
            }
            StepKind::Return { values } => self.results(step, values)?,
            // The now-phase saw to these, or whoever takes calls apart.
            StepKind::RequireRow { .. } | StepKind::Require { .. } | StepKind::Delete { .. } => {}
        }
        Ok(())
    }

    /// What the step says about which rows are there, whether or not this part computes it.
    fn note_presence(&mut self, step: &Step) {
        match &step.kind {
            StepKind::Locate { row, .. } => self.presence.set(*row, false),
            StepKind::RequireRow { row } | StepKind::Insert { row, .. } => self.presence.set(*row, true),
            StepKind::Delete { row } => {
                self.presence.forget(self.program, self.program.rows[usize::from(row.0)].table);
            }
            // Compiled or not, what was known before holds afterwards except for what changes inside.
            StepKind::If { .. }
            | StepKind::ForList { .. }
            | StepKind::ForRange { .. }
            | StepKind::ForScan { .. } => {
                self.presence.forget_changed_in(self.program, std::slice::from_ref(step));
            }
            _ => {}
        }
    }

    pub(super) fn row(&mut self, row: RowId) -> (RowSlot, TableId) {
        (self.builder.row(row), self.program.rows[usize::from(row.0)].table)
    }

    fn locate(&mut self, row: RowId, key: &[Expression]) -> Result<()> {
        let first = match key {
            // Nobody changes it between here and the message that shows it.
            [only] if self.is_fixed(only) && self.locates[usize::from(row.0)] == 1 => {
                self.builder.operand(only)?
            }
            _ => {
                let first = self.key_registers(row, key.len());
                for (at, value) in key.iter().enumerate() {
                    self.builder.compute(value, Register(first.0.saturating_add(at as u16)))?;
                }
                first
            }
        };
        self.keys.insert(row, first);
        let (row, table) = self.row(row);
        self.builder.emit(Instruction::Locate { row, key: first, count: key.len() as u8, table });
        Ok(())
    }

    /// Registers for a row's key that stay untouched until its next `Locate`.
    fn key_registers(&mut self, row: RowId, count: usize) -> Register {
        match self.key_blocks.get(&row) {
            Some(first) => *first,
            None => *self.key_blocks.entry(row).or_insert(self.builder.permanent(count)),
        }
    }

    /// Whether the expression is a constant, or a parameter: no step assigns those.
    fn is_fixed(&self, expression: &Expression) -> bool {
        match &expression.kind {
            ExpressionKind::Constant(_) => true,
            ExpressionKind::Variable(variable) => usize::from(variable.0) < self.program.parameter_count,
            _ => false,
        }
    }

    fn require_row(&mut self, row: RowId) {
        let table = self.catalog.table(self.program.rows[usize::from(row.0)].table);
        let key = self
            .keys
            .get(&row)
            .map(|first| (*first, table.primary_key.iter().map(|column| table.data_type(*column)).collect()));
        let failure = self.builder.number(self.builder.code.missing_rows.len());
        self.builder.code.missing_rows.push(MissingRow { table: table.name.clone(), key });
        let (row, table) = self.row(row);
        self.builder.emit(Instruction::RequireRow { row, failure, table });
    }

    fn read(&mut self, step: &Step) {
        let StepKind::Read { row, columns } = &step.kind else { return };
        let wanted = match (&self.tape, self.part) {
            (Some(tape), Part::Now) => tape.phases.reads_now[usize::from(step.id.0)],
            (Some(tape), Part::Later { .. }) => tape.phases.reads_later[usize::from(step.id.0)],
            _ => match self.effects {
                Some(effects) => effects.reads[usize::from(step.id.0)],
                None => columns.iter().map(|(column, _)| *column).collect(),
            },
        };
        let captures = self.tape.as_ref().map(|tape| tape.captures(step)).unwrap_or_default();
        let known = self.presence.knows(*row);
        let (row, table) = self.row(*row);
        for &(column, variable) in columns.iter().filter(|(column, _)| wanted.contains(*column)) {
            let read = RowRead { column, row, table, known };
            if self.late_reads.contains(variable) && !captures.contains(&Captured::Variable(variable)) {
                self.builder.read_late(variable, read);
            } else {
                let to = self.builder.variable(variable);
                self.builder.read(read, to);
            }
        }
    }

    fn require(&mut self, condition: &Expression, failure: &ir::Failure) -> Result<()> {
        let met = self.builder.label();
        self.builder.jump(condition, Truth::True, met)?;
        let mut text = |expression: &Option<Expression>| {
            expression.as_ref().map(|expression| self.builder.operand(expression)).transpose()
        };
        let (detail, hint) = (text(&failure.detail)?, text(&failure.hint)?);
        let message = match &failure.message {
            Message::Fixed(message) => FailureMessage::Fixed(message.clone(), self.mentions(condition)),
            Message::Computed(message) => FailureMessage::Computed(self.builder.operand(message)?),
        };
        let number = self.builder.number(self.builder.code.failures.len());
        self.builder.code.failures.push(Failure { state: failure.state, message, detail, hint });
        self.builder.emit(Instruction::Fail { failure: number });
        self.builder.place(met);
        Ok(())
    }

    fn mentions(&mut self, condition: &Expression) -> Vec<Mention> {
        mentioned(condition)
            .into_iter()
            .map(|variable| {
                let declared = &self.program.variables[usize::from(variable.0)];
                let name = declared.name.clone();
                match &declared.ty {
                    Type::Scalar(scalar) => {
                        let register = self.builder.variable(variable);
                        Mention::Scalar { name, data_type: scalar.data_type, register }
                    }
                    Type::List(fields) => {
                        Mention::List { name, fields: fields.clone(), list: self.builder.list(variable) }
                    }
                }
            })
            .collect()
    }

    fn branch(
        &mut self,
        step: &Step,
        condition: &Expression,
        (then, otherwise): (&'p Block, &'p Block),
    ) -> Result<()> {
        let (other, end) = (self.builder.label(), self.builder.label());
        self.builder.jump(condition, Truth::NotTrue, other)?;
        let before = self.presence.clone();
        self.disable(step, Branch::Then);
        self.block(then)?;
        if !otherwise.is_empty() || self.disables(step, Branch::Otherwise) {
            self.builder.emit(Instruction::Jump { target: end });
        }
        self.builder.place(other);
        let after_then = std::mem::replace(&mut self.presence, before);
        self.disable(step, Branch::Otherwise);
        self.block(otherwise)?;
        self.presence.meet(&after_then);
        self.builder.place(end);
        Ok(())
    }

    fn results(&mut self, step: &Step, values: &[Returned]) -> Result<()> {
        let later = self.tape.as_ref().is_some_and(|tape| tape.phase(step).later);
        let wanted = match self.part {
            // Without results it is computed if that can abort the call.
            Part::Whole | Part::Effects => true,
            Part::Now => !later,
            Part::Later { results } => results,
            Part::Action { .. } => false,
            Part::Slice { results } => results,
        };
        if !wanted {
            return Ok(());
        }
        let mut plans = Vec::with_capacity(values.len());
        for value in values {
            plans.push(match value {
                Returned::Scalar(value) => {
                    let register = self.builder.permanent(1);
                    self.builder.compute(value, register)?;
                    ResultPlan::Scalar(register, value.ty.data_type)
                }
                Returned::List(list) => {
                    let Type::List(fields) = &self.program.variables[usize::from(list.0)].ty else {
                        unreachable!("a returned list is a list")
                    };
                    ResultPlan::List(self.builder.list(*list), fields.clone())
                }
            });
        }
        self.builder.code.results = Some(plans);
        Ok(())
    }
}

/// The variables of an expression, in the order in which the text first mentions them.
pub(crate) fn mentioned(expression: &Expression) -> Vec<VariableId> {
    fn walk(expression: &Expression, found: &mut Vec<VariableId>) {
        let mut mention = |variable: VariableId| {
            if !found.contains(&variable) {
                found.push(variable);
            }
        };
        match &expression.kind {
            ExpressionKind::Constant(_) | ExpressionKind::Now | ExpressionKind::Random => {}
            ExpressionKind::Variable(variable) => mention(*variable),
            ExpressionKind::Aggregate { list, .. } => mention(*list),
            ExpressionKind::Element { list, index, .. } => {
                mention(*list);
                walk(index, found);
            }
            ExpressionKind::Unary(_, inner) | ExpressionKind::Cast(inner) => walk(inner, found),
            ExpressionKind::Binary(_, left, right) => {
                walk(left, found);
                walk(right, found);
            }
            ExpressionKind::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    walk(condition, found);
                    walk(value, found);
                }
                walk(otherwise, found);
            }
            ExpressionKind::Call(_, arguments) => arguments.iter().for_each(|argument| walk(argument, found)),
        }
    }
    let mut found = Vec::new();
    walk(expression, &mut found);
    found
}
