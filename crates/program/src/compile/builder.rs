//! The state of a compilation: instructions so far, labels, and who has which register.
//!
//! Variables, rows and lists get a place when they are first mentioned, so that phase code, which
//! mentions few of them, has small frames. Constants keep their register for the whole run.
//! Temporaries come in blocks of neighbouring registers and are reused once a step is through:
//!
//! ```text
//! let mark = builder.mark();
//! let block = builder.temporaries(2);     // a two-column key
//! ...
//! builder.release(mark);                  // the next step may have them
//! ```

use super::code::{Code, Parameter, ParameterPlace};
use super::instruction::{Instruction, ListSlot, Register, RowSlot, Target};
use crate::abort::Operation;
use crate::arguments::EncodedType;
use crate::ir::{Expression, Program, RowId, Type, VariableId};
use fabius_value::{ColumnId, DataType, Datum, Error, Result, SqlState, TableId, Value};
use std::collections::HashMap;

/// How many temporaries were taken at some point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

/// A constant's representation, as the key for finding its register again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ConstantKey {
    Null,
    Boolean(bool),
    Int(i64),
    Numeric(i128),
    Double(u64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A column to be read of a row, which may be known to be there.
#[derive(Clone, Copy)]
pub(super) struct RowRead {
    pub column: ColumnId,
    pub row: RowSlot,
    pub table: TableId,
    pub known: bool,
}

/// Builds one [`Code`].
pub(super) struct Builder<'p> {
    pub program: &'p Program,
    pub code: Code,
    /// The line that instructions come from now.
    pub line: u32,
    variables: Vec<Option<Register>>,
    /// By variable: the column to read when it is used.
    late_reads: Vec<Option<RowRead>>,
    lists: Vec<Option<ListSlot>>,
    rows: Vec<Option<RowSlot>>,
    constants: HashMap<ConstantKey, Register>,
    casts: HashMap<(DataType, DataType), u16>,
    labels: Vec<Option<u32>>,
    /// Released blocks by size.
    free: HashMap<usize, Vec<Register>>,
    taken: Vec<(Register, usize)>,
    /// Something did not fit in 16 bits.
    overflowed: bool,
}

impl<'p> Builder<'p> {
    pub fn new(program: &'p Program) -> Builder<'p> {
        Builder {
            program,
            code: Code { name: program.name.clone(), ..Code::default() },
            line: 0,
            variables: vec![None; program.variables.len()],
            late_reads: vec![None; program.variables.len()],
            lists: vec![None; program.variables.len()],
            rows: vec![None; program.rows.len()],
            constants: HashMap::new(),
            casts: HashMap::new(),
            labels: Vec::new(),
            free: HashMap::new(),
            taken: Vec::new(),
            overflowed: false,
        }
    }

    /// Resolves labels and places parameters.
    pub fn finish(mut self) -> Result<Code> {
        self.emit(Instruction::Done);
        for instruction in &mut self.code.instructions {
            if let Some(target) = instruction.target_mut() {
                target.0 = self.labels[target.0 as usize].expect("every label is placed");
            }
        }
        let parameters = &self.program.variables[..self.program.parameter_count];
        for (at, parameter) in parameters.iter().enumerate() {
            let place = match &parameter.ty {
                Type::Scalar(scalar) => ParameterPlace::Scalar(EncodedType::new(*scalar), self.variables[at]),
                Type::List(fields) => {
                    let types = fields.iter().map(|field| EncodedType::new(field.scalar)).collect();
                    ParameterPlace::List(types, self.lists[at])
                }
            };
            self.code.parameters.push(Parameter { name: parameter.name.clone(), place });
        }
        let is_used = |parameter: &Parameter| matches!(parameter.place, ParameterPlace::Scalar(_, Some(_)));
        self.code.parameters_used = self.code.parameters.iter().rposition(is_used).map_or(0, |last| last + 1);
        if self.overflowed {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT,
                format!("program {} is too large", self.program.name),
            )
            .with_detail("it needs more than 65535 registers or table entries")
            .with_hint("split it into several procedures"));
        }
        Ok(self.code)
    }

    pub fn emit(&mut self, instruction: Instruction) {
        self.code.instructions.push(instruction);
        self.code.lines.push(self.line);
    }

    /// Notes what the next instruction computes, for messages.
    pub fn note(&mut self, operation: Operation, operands: &[&Expression]) {
        let at = self.code.instructions.len() as u32;
        let types = operands.iter().map(|operand| operand.ty.data_type).collect();
        self.code.operations.push((at, operation, types));
    }

    // ---- reads ----

    pub fn read(&mut self, read: RowRead, to: Register) {
        let RowRead { column, row, table, known } = read;
        self.emit(match known {
            true => Instruction::Read { column, to, row, table },
            false => Instruction::ReadIfThere { column, to, row, table },
        });
    }

    /// Leaves a read to the place where the variable is used.
    pub fn read_late(&mut self, variable: VariableId, read: RowRead) {
        self.late_reads[usize::from(variable.0)] = Some(read);
    }

    /// The read that was left to where the variable is used.
    pub fn late_read(&self, variable: VariableId) -> Option<RowRead> {
        self.late_reads[usize::from(variable.0)]
    }

    // ---- labels ----

    pub fn label(&mut self) -> Target {
        self.labels.push(None);
        Target(self.labels.len() as u32 - 1)
    }

    pub fn place(&mut self, label: Target) {
        self.labels[label.0 as usize] = Some(self.code.instructions.len() as u32);
    }

    /// A label right here.
    pub fn label_here(&mut self) -> Target {
        let label = self.label();
        self.place(label);
        label
    }

    // ---- places ----

    /// The number of something in a table of the code.
    pub fn number(&mut self, at: usize) -> u16 {
        u16::try_from(at).unwrap_or_else(|_| {
            self.overflowed = true;
            0
        })
    }

    fn fresh(&mut self, count: usize) -> Register {
        let first = self.number(self.code.register_count + count - 1);
        self.code.register_count += count;
        Register(first.saturating_sub(count as u16 - 1))
    }

    pub fn variable(&mut self, variable: VariableId) -> Register {
        let at = usize::from(variable.0);
        if let Some(register) = self.variables[at] {
            return register;
        }
        let register = self.fresh(1);
        self.variables[at] = Some(register);
        register
    }

    pub fn list(&mut self, list: VariableId) -> ListSlot {
        let at = usize::from(list.0);
        let next = ListSlot(self.code.list_count as u16);
        *self.lists[at].get_or_insert_with(|| {
            self.code.list_count += 1;
            next
        })
    }

    pub fn row(&mut self, row: RowId) -> RowSlot {
        let next = RowSlot(self.code.row_count as u16);
        *self.rows[usize::from(row.0)].get_or_insert_with(|| {
            self.code.row_count += 1;
            next
        })
    }

    pub fn constant(&mut self, value: &Value) -> Register {
        let key = match Datum::from_value(value) {
            Datum::Null => ConstantKey::Null,
            Datum::Boolean(v) => ConstantKey::Boolean(v),
            Datum::Int(v) => ConstantKey::Int(v),
            Datum::Numeric(v) => ConstantKey::Numeric(v),
            Datum::Double(v) => ConstantKey::Double(v.to_bits()),
            Datum::Text(v) => ConstantKey::Text(v.into()),
            Datum::Bytes(v) => ConstantKey::Bytes(v.into()),
        };
        if let Some(register) = self.constants.get(&key) {
            return *register;
        }
        let register = self.fresh(1);
        let constants = &mut self.code.constants;
        match &key {
            ConstantKey::Null => constants.scalars.push((register, Datum::Null)),
            ConstantKey::Boolean(v) => constants.scalars.push((register, Datum::Boolean(*v))),
            ConstantKey::Int(v) => constants.scalars.push((register, Datum::Int(*v))),
            ConstantKey::Numeric(v) => constants.scalars.push((register, Datum::Numeric(*v))),
            ConstantKey::Double(v) => constants.scalars.push((register, Datum::Double(f64::from_bits(*v)))),
            ConstantKey::Text(v) => constants.texts.push((register, v.as_str().into())),
            ConstantKey::Bytes(v) => constants.bytes.push((register, v.as_slice().into())),
        }
        self.constants.insert(key, register);
        register
    }

    pub fn cast(&mut self, from: DataType, to: DataType) -> u16 {
        if let Some(at) = self.casts.get(&(from, to)) {
            return *at;
        }
        let at = self.number(self.code.casts.len());
        self.code.casts.push(crate::operation::Cast::of(from, to));
        self.casts.insert((from, to), at);
        at
    }

    // ---- temporaries ----

    pub fn mark(&self) -> Mark {
        Mark(self.taken.len())
    }

    /// A block of `count` neighbouring registers, until released.
    pub fn temporaries(&mut self, count: usize) -> Register {
        if count == 0 {
            return Register(0);
        }
        let register = match self.free.get_mut(&count).and_then(Vec::pop) {
            Some(register) => register,
            None => self.fresh(count),
        };
        self.taken.push((register, count));
        register
    }

    /// A block that is never released.
    pub fn permanent(&mut self, count: usize) -> Register {
        if count == 0 { Register(0) } else { self.fresh(count) }
    }

    /// Gives back what was taken since the mark.
    pub fn release(&mut self, mark: Mark) {
        for (register, count) in self.taken.drain(mark.0..) {
            self.free.entry(count).or_default().push(register);
        }
    }
}
