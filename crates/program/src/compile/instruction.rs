//! The instructions of compiled code.
//!
//! One instruction has at most 12 bytes; what does not fit stands in a table of the
//! [`Code`](super::Code) beside it. Each instruction asks at most one thing of its context that can
//! block, before it changes anything: running it again repeats that request.

use crate::operation::arithmetic::{Digits, Width};
use crate::operation::{BinaryOperation, Comparison, FunctionOperation, UnaryOperation};
use fabius_value::{ColumnId, TableId};

/// A place for one scalar in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Register(pub u16);

/// A place for one row handle in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSlot(pub u16);

/// A place for one list in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListSlot(pub u16);

/// The address of an instruction; while code is built, the number of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(pub u32);

/// What a jump asks of a three-valued condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// It is true.
    True,
    /// It is false or null.
    NotTrue,
    /// It is false.
    False,
    /// It is true or null.
    NotFalse,
}

/// One instruction. `to` is written, other registers are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction {
    // ---- values ----
    /// Copies.
    Move { to: Register, from: Register },
    /// Computes an operator on two operands.
    Binary { operation: BinaryOperation, to: Register, left: Register, right: Register },
    /// `+` on integers: has an instruction of its own, like the next four, because it is so common.
    AddIntegers { width: Width, to: Register, left: Register, right: Register },
    /// `-` on integers.
    SubtractIntegers { width: Width, to: Register, left: Register, right: Register },
    /// `*` on integers.
    MultiplyIntegers { width: Width, to: Register, left: Register, right: Register },
    /// `+` on numerics.
    AddNumerics { digits: Digits, to: Register, left: Register, right: Register },
    /// `-` on numerics.
    SubtractNumerics { digits: Digits, to: Register, left: Register, right: Register },
    /// Computes an operator on one operand.
    Unary { operation: UnaryOperation, to: Register, from: Register },
    /// Converts; `cast` is a place in [`Code::casts`](super::Code).
    Cast { cast: u16, to: Register, from: Register },
    /// Computes a function of `count` registers from `first`.
    Function { operation: FunctionOperation, to: Register, first: Register, count: u16 },
    /// Computes an aggregate; `plan` is a place in [`Code::aggregates`](super::Code).
    Aggregate { plan: u16, to: Register, list: ListSlot },
    /// Takes a field of a list's element at a 1-based index.
    Element { to: Register, list: ListSlot, index: Register, field: u16, width: u16 },
    /// The call's time.
    Now { to: Register },
    /// The call's next random number.
    Random { to: Register },

    // ---- control ----
    /// Goes elsewhere.
    Jump { target: Target },
    /// Goes elsewhere if whether the comparison holds (null: it does not) equals `when`.
    JumpCompare { comparison: Comparison, when: bool, left: Register, right: Register, target: Target },
    /// Goes elsewhere depending on a boolean.
    JumpTruth { truth: Truth, condition: Register, target: Target },
    /// Goes elsewhere if whether the value is null equals `when`.
    JumpNull { when: bool, value: Register, target: Target },
    /// Aborts if the value is null; `column` is a place in [`Code::columns`](super::Code).
    CheckNotNull { value: Register, column: u16 },
    /// Aborts; `failure` is a place in [`Code::failures`](super::Code).
    Fail { failure: u16 },
    /// Starts counting from one number to another; goes elsewhere if either is null.
    RangeStart { next: Register, last: Register, target: Target },
    /// Counts the turns that the range will take.
    EnterRange { next: Register, last: Register },
    /// Counts the turns that a loop over the list will take; its rows have `width` values.
    EnterList { list: ListSlot, width: u16 },
    /// The next number of the range, or goes elsewhere.
    RangeNext { to: Register, next: Register, last: Register, target: Target },
    /// The next row of a list into variables, or goes elsewhere; `fields` is a place in
    /// [`Code::list_fields`](super::Code).
    ListNext { list: ListSlot, cursor: Register, fields: u16, target: Target },
    /// Empties a list.
    Clear { list: ListSlot },
    /// Sorts a list; `plan` is a place in [`Code::sorts`](super::Code).
    Sort { list: ListSlot, plan: u16 },
    /// Appends `count` registers from `first`.
    Append { list: ListSlot, first: Register, count: u16 },

    // ---- the database ----
    /// Looks a row up by `count` key registers from `key`; a null finds none.
    Locate { row: RowSlot, key: Register, count: u8, table: TableId },
    /// Aborts if the row is missing; `failure` is a place in [`Code::missing_rows`](super::Code).
    RequireRow { row: RowSlot, failure: u16, table: TableId },
    /// Whether the row is there.
    Exists { to: Register, row: RowSlot, table: TableId },
    /// Reads a column of a row that is there.
    Read { column: ColumnId, to: Register, row: RowSlot, table: TableId },
    /// Reads a column of a row, null if it is missing.
    ReadIfThere { column: ColumnId, to: Register, row: RowSlot, table: TableId },
    /// Checks a scan's limit and makes it a count of rows to go.
    LimitStart { limit: Register },
    /// Goes elsewhere if no rows are to go.
    LimitCheck { limit: Register, target: Target },
    /// One row fewer to go.
    LimitTake { limit: Register },
    /// Opens a scan, a place in [`Code::scans`](super::Code), or goes elsewhere if a bound is null.
    ScanOpen { scan: u16, target: Target },
    /// The next row of the innermost open scan, or goes elsewhere.
    ScanNext { row: RowSlot, target: Target },
    /// Closes the innermost open scan.
    ScanClose,
    /// Inserts; `write` is a place in [`Code::writes`](super::Code).
    Insert { row: RowSlot, write: u16, table: TableId },
    /// Updates.
    Update { row: RowSlot, write: u16, table: TableId },
    /// Deletes.
    Delete { row: RowSlot, table: TableId },

    // ---- phases ----
    /// Computes sticky columns.
    Fill { row: RowSlot, write: u16, table: TableId },
    /// Hands a value to the later-phase.
    Capture { value: Register },
    /// Hands a row to the later-phase.
    CaptureRow { row: RowSlot },
    /// Hands the end of a scan to the later-phase.
    CaptureEnd,
    /// Takes a value from the now-phase.
    Restore { to: Register },
    /// Takes a row from the now-phase.
    RestoreRow { row: RowSlot },
    /// Takes a scanned row from the now-phase, or goes elsewhere at the end of the scan.
    ReplayNext { row: RowSlot, target: Target },

    // ---- record actions ----
    /// The number of the element that a loop over a list is at; the list's rows have `width` values.
    Turn { to: Register, cursor: Register, width: u16 },
    /// Hands a value to other actions of the call, as the turn's of that number.
    Give { value: Register, number: u16, turn: Register },
    /// Takes a value that another action of the call has handed over in the turn of that number.
    Take { to: Register, number: u16, turn: Register },
    /// Says that another action of the call comes to nothing.
    Disable { action: u16 },
    /// Ends the run.
    Done,
}

impl Instruction {
    /// Computes an operator on two operands.
    pub(super) fn binary(
        operation: BinaryOperation,
        to: Register,
        left: Register,
        right: Register,
    ) -> Instruction {
        match operation {
            BinaryOperation::AddIntegers(width) => Instruction::AddIntegers { width, to, left, right },
            BinaryOperation::SubtractIntegers(width) => {
                Instruction::SubtractIntegers { width, to, left, right }
            }
            BinaryOperation::MultiplyIntegers(width) => {
                Instruction::MultiplyIntegers { width, to, left, right }
            }
            BinaryOperation::AddNumerics(digits) => Instruction::AddNumerics { digits, to, left, right },
            BinaryOperation::SubtractNumerics(digits) => {
                Instruction::SubtractNumerics { digits, to, left, right }
            }
            operation => Instruction::Binary { operation, to, left, right },
        }
    }

    /// Where it may go, if it is a jump.
    pub(super) fn target_mut(&mut self) -> Option<&mut Target> {
        match self {
            Instruction::Jump { target }
            | Instruction::JumpCompare { target, .. }
            | Instruction::JumpTruth { target, .. }
            | Instruction::JumpNull { target, .. }
            | Instruction::RangeStart { target, .. }
            | Instruction::RangeNext { target, .. }
            | Instruction::ListNext { target, .. }
            | Instruction::LimitCheck { target, .. }
            | Instruction::ScanOpen { target, .. }
            | Instruction::ScanNext { target, .. }
            | Instruction::ReplayNext { target, .. } => Some(target),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    /// Goal: five instructions to a cache line.
    #[test]
    fn an_instruction_is_small() {
        assert_eq!(size_of::<super::Instruction>(), 12);
    }
}
