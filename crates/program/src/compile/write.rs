//! Inserts, updates and fills to instructions.
//!
//! All values of a write are computed, in the order of the text, into neighbouring registers in
//! column order; then those that must not be null are checked; then one instruction hands the block
//! to the context.

use super::Compiler;
use super::code::WritePlan;
use super::instruction::{Instruction, Register};
use crate::context::DeltaOperator;
use crate::ir::{Expression, RowId, Step, StepKind};
use crate::slice::ColumnPhase;
use fabius_value::{ColumnId, ColumnMask, Result};

/// How one column of a write is treated in the phase that is being compiled.
enum Treatment<'p> {
    Value(&'p Expression),
    Delta(DeltaOperator, &'p Expression),
    Sticky,
    Skipped,
}

impl<'p> Compiler<'p> {
    /// The write of an `Insert` or `Update` as a whole or in the now-phase; the number of its plan.
    pub(super) fn write(&mut self, step: &'p Step) -> Result<u16> {
        let columns = self.columns(step, |column, value| match column {
            ColumnPhase::Now => Treatment::Value(value),
            ColumnPhase::Delta(operator) => Treatment::Delta(operator, value),
            ColumnPhase::Later => Treatment::Sticky,
        });
        self.plan(step, columns)
    }

    /// The values that the later-phase fills in, if there are any.
    pub(super) fn fill(&mut self, step: &'p Step, row: RowId) -> Result<()> {
        let columns = self.columns(step, |column, value| match column {
            ColumnPhase::Later => Treatment::Value(value),
            ColumnPhase::Now | ColumnPhase::Delta(_) => Treatment::Skipped,
        });
        if columns.iter().any(|(_, treatment)| matches!(treatment, Treatment::Value(_))) {
            let write = self.plan(step, columns)?;
            let (row, table) = self.row(row);
            self.builder.emit(Instruction::Fill { row, write, table });
        }
        Ok(())
    }

    /// The columns that a step writes, in the order of the text, with their treatment.
    fn columns(
        &self,
        step: &'p Step,
        treat: impl Fn(ColumnPhase, &'p Expression) -> Treatment<'p>,
    ) -> Vec<(ColumnId, Treatment<'p>)> {
        let sets: Vec<(ColumnId, &Expression)> = match &step.kind {
            StepKind::Insert { values, .. } => {
                values.iter().enumerate().map(|(at, value)| (ColumnId(at as u8), value)).collect()
            }
            StepKind::Update { sets, .. } => sets.iter().map(|(column, value)| (*column, value)).collect(),
            other => unreachable!("{other:?} writes no columns"),
        };
        let Some(tape) = &self.tape else {
            return sets
                .into_iter()
                .map(|(column, value)| (column, treat(ColumnPhase::Now, value)))
                .collect();
        };
        let at = usize::from(step.id.0);
        let phase_of = |column| {
            let listed = tape.phases.writes[at].iter().find(|(listed, _)| *listed == column);
            listed.expect("every written column has a phase").1
        };
        let operand_of = |column| {
            let listed = tape.phases.delta_operands[at].iter().find(|(listed, _)| *listed == column);
            &listed.expect("every delta has an operand").1
        };
        let treated = sets.into_iter().map(|(column, value)| {
            let phase = phase_of(column);
            let value = if matches!(phase, ColumnPhase::Delta(_)) { operand_of(column) } else { value };
            (column, treat(phase, value))
        });
        treated.collect()
    }

    fn plan(&mut self, step: &Step, columns: Vec<(ColumnId, Treatment<'_>)>) -> Result<u16> {
        let (mut values, mut sticky) = (ColumnMask::EMPTY, ColumnMask::EMPTY);
        let mut deltas = Vec::new();
        for (column, treatment) in &columns {
            match treatment {
                Treatment::Value(_) => values.insert(*column),
                Treatment::Sticky => sticky.insert(*column),
                Treatment::Delta(operator, _) => deltas.push((*column, *operator)),
                Treatment::Skipped => {}
            }
        }
        deltas.sort_unstable_by_key(|(column, _)| *column);
        let computed: Vec<(ColumnId, usize, &Expression)> = columns
            .iter()
            .filter_map(|(column, treatment)| match treatment {
                Treatment::Value(value) => Some((*column, values.rank(*column), *value)),
                Treatment::Delta(_, operand) => {
                    let place = deltas.iter().position(|(delta, _)| delta == column)?;
                    Some((*column, values.len() + place, *operand))
                }
                Treatment::Sticky | Treatment::Skipped => None,
            })
            .collect();
        let first = match computed.as_slice() {
            [(_, _, only)] => self.builder.operand(only)?,
            _ => {
                let first = self.builder.temporaries(computed.len());
                for (_, place, value) in &computed {
                    self.builder.compute(value, offset(first, *place))?;
                }
                first
            }
        };
        for (column, place, value) in computed {
            self.check_not_null(step, column, value, offset(first, place));
        }
        let write = self.builder.number(self.builder.code.writes.len());
        self.builder.code.writes.push(WritePlan {
            first,
            columns: values,
            values: values.len() as u16,
            sticky,
            deltas: deltas.into(),
        });
        Ok(write)
    }

    fn check_not_null(&mut self, step: &Step, column: ColumnId, value: &Expression, register: Register) {
        let (StepKind::Insert { row, .. } | StepKind::Update { row, .. }) = &step.kind else { return };
        let table = self.catalog.table(self.program.rows[usize::from(row.0)].table);
        let schema = &table.columns[usize::from(column.0)];
        if value.ty.nullable && !schema.nullable {
            let names = (table.name.clone(), schema.name.clone());
            let column = self.builder.number(self.builder.code.columns.len());
            self.builder.code.columns.push(names);
            self.builder.emit(Instruction::CheckNotNull { value: register, column });
        }
    }
}

fn offset(first: Register, by: usize) -> Register {
    Register(first.0.saturating_add(by as u16))
}
