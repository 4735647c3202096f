//! Compiled code: instructions and the tables beside them.

use super::instruction::{Instruction, ListSlot, Register};
use crate::abort::Operation;
use crate::arguments::EncodedType;
use crate::ir::{Aggregate, Field, SortKey};
use crate::operation::Cast;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, DeltaOperator, IndexId, SqlState, TableId};
use std::fmt;

/// A program, or one phase of it, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The program's name.
    pub(crate) name: String,
    /// What to do; the last instruction is `Done`.
    pub(crate) instructions: Vec<Instruction>,
    /// By instruction: the line of the text that it came from.
    pub(crate) lines: Vec<u32>,
    /// Operations that can fail, by their instructions in order: for messages only.
    pub(crate) operations: Vec<(u32, Operation, Box<[DataType]>)>,
    /// Scalars that a frame holds.
    pub(crate) register_count: usize,
    /// Row handles that a frame holds.
    pub(crate) row_count: usize,
    /// Lists that a frame holds.
    pub(crate) list_count: usize,
    /// Where each argument goes.
    pub(crate) parameters: Vec<Parameter>,
    /// How many of them it takes to come to the last scalar that the code uses.
    pub(crate) parameters_used: usize,
    /// Of a record action: where the fields of its element go,
    pub(crate) element: Box<[Register]>,
    /// and the element's number, if the code uses it.
    pub(crate) turn: Option<Register>,
    /// Of a record action: where the loops begin and end of which it runs one turn.
    pub(crate) loop_bounds: Vec<u32>,
    /// Registers that hold a constant throughout.
    pub(crate) constants: Constants,
    /// Conversions.
    pub(crate) casts: Vec<Cast>,
    /// Aggregates.
    pub(crate) aggregates: Vec<AggregatePlan>,
    /// Variables that a loop over a list assigns.
    pub(crate) list_fields: Vec<Box<[Register]>>,
    /// Orders of lists.
    pub(crate) sorts: Vec<SortPlan>,
    /// Ranges.
    pub(crate) scans: Vec<ScanPlan>,
    /// Writes and fills.
    pub(crate) writes: Vec<WritePlan>,
    /// Columns that must not be null: table and column names.
    pub(crate) columns: Vec<(String, String)>,
    /// Requires.
    pub(crate) failures: Vec<Failure>,
    /// Rows that must be there.
    pub(crate) missing_rows: Vec<MissingRow>,
    /// What the program returns; `None` if this code does not compute it.
    pub(crate) results: Option<Vec<ResultPlan>>,
}

impl Code {
    /// Whether there is anything in it that writes columns of a row.
    pub fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }
}

/// A parameter: its name for messages, type and place.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: String,
    pub place: ParameterPlace,
}

/// Where an argument goes; nowhere if the code does not use it.
#[derive(Clone, Debug)]
pub(crate) enum ParameterPlace {
    Scalar(EncodedType, Option<Register>),
    List(Box<[EncodedType]>, Option<ListSlot>),
}

/// Constants by representation, text and bytes apart: they are copied into a run's arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    pub scalars: Vec<(Register, Datum<'static>)>,
    pub texts: Vec<(Register, Box<str>)>,
    pub bytes: Vec<(Register, Box<[u8]>)>,
}

/// An aggregate over a field of a list whose rows have `width` values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AggregatePlan {
    pub aggregate: Aggregate,
    pub field: u16,
    pub width: u16,
    pub field_type: DataType,
    pub result_type: DataType,
}

/// How a list whose rows have `width` values is sorted.
#[derive(Clone, Debug)]
pub(crate) struct SortPlan {
    pub width: usize,
    pub keys: Box<[SortKey]>,
}

/// A range, with its bounds in registers.
#[derive(Clone, Debug)]
pub(crate) struct ScanPlan {
    pub table: TableId,
    pub index: Option<IndexId>,
    pub equal: Register,
    pub equal_count: u16,
    pub lower: Option<(Register, bool)>,
    pub upper: Option<(Register, bool)>,
    pub descending: bool,
    /// A limit that no filter lengthens.
    pub limit_hint: Option<Register>,
    /// What is looked up for each row.
    pub joins: Box<[JoinPlan]>,
}

/// A lookup that is made for each row of a scan.
#[derive(Clone, Debug)]
pub(crate) struct JoinPlan {
    pub table: TableId,
    pub key: Box<[KeyColumnPlan]>,
}

/// Where a column of such a lookup's key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyColumnPlan {
    /// A register, before the scan and during it.
    Register(Register),
    /// A column of the scan's row.
    OfRow(ColumnId),
}

/// A write set: values from `first` on in column order, then the operands of the deltas.
#[derive(Clone, Debug)]
pub(crate) struct WritePlan {
    pub first: Register,
    pub columns: ColumnMask,
    /// How many columns there are.
    pub values: u16,
    pub sticky: ColumnMask,
    pub deltas: Box<[(ColumnId, DeltaOperator)]>,
}

/// A require: its state, and where what the caller is told comes from.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub state: SqlState,
    pub message: FailureMessage,
    pub detail: Option<Register>,
    pub hint: Option<Register>,
}

/// The message of a [`Failure`].
#[derive(Clone, Debug)]
pub(crate) enum FailureMessage {
    /// With what the condition mentions, which is the detail unless one is computed.
    Fixed(String, Vec<Mention>),
    Computed(Register),
}

/// A variable to show the value of.
#[derive(Clone, Debug)]
pub(crate) enum Mention {
    Scalar { name: String, data_type: DataType, register: Register },
    List { name: String, fields: Vec<Field>, list: ListSlot },
}

/// A row that must be there: how to name it.
#[derive(Clone, Debug)]
pub(crate) struct MissingRow {
    pub table: String,
    /// The key's registers and types; `None` if the row was not found by key.
    pub key: Option<(Register, Box<[DataType]>)>,
}

/// Where a result is when the run has ended.
#[derive(Clone, Debug)]
pub(crate) enum ResultPlan {
    Scalar(Register, DataType),
    List(ListSlot, Vec<Field>),
}

impl Code {
    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many instructions there are, without the closing `Done`.
    pub fn len(&self) -> usize {
        self.instructions.len() - 1
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Of the loops that the code runs one turn of: how many beginnings and ends come before the instruction where a
    /// run has stopped.
    pub fn loop_bounds_before(&self, at: u32) -> usize {
        self.loop_bounds.partition_point(|bound| *bound <= at)
    }

    /// Whether a run of this code leaves the program's results in its frame.
    pub fn computes_results(&self) -> bool {
        self.results.is_some()
    }
}

impl fmt::Display for Code {
    /// One instruction to a line, with the line of the text it came from.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (instruction, line)) in self.instructions.iter().zip(&self.lines).enumerate() {
            writeln!(f, "{at:4}  line {line:<3} {instruction:?}")?;
        }
        Ok(())
    }
}
