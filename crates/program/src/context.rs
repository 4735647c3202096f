//! What a running program asks of its engine.
//!
//! Code runs over a [`Context`]: an engine's view of the rows at one call's place in the order. The
//! same trait serves whole programs (oracle, eager engines), the two phases of the lazy engine, and record
//! actions; the methods below the lines are reached from their code only.
//!
//! A method that cannot answer yet returns [`Stop::Blocked`]: the executor keeps its frame as it is,
//! and running the frame again repeats the very same request.

use crate::compile::code::{JoinPlan, KeyColumnPlan};
use crate::ir::{RowId, StepId};
use fabius_value::{ColumnId, ColumnMask, Datum, Error, IndexId, TableId};
pub use fabius_value::{DeltaOperator, Deltas};

/// Why a run ended before the end of its code.
#[derive(Debug)]
pub enum Stop {
    /// The program aborts: its own `require`, a constraint, or an error in its arguments.
    Abort(Error),
    /// Something has to be computed first; the context knows what. Run the frame again afterwards.
    Blocked,
    /// The engine gave this attempt up (a wounded transaction): start again from the beginning.
    Restart,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Abort(error)
    }
}

/// A range of an index with its bounds evaluated.
#[derive(Clone, Copy, Debug)]
pub struct ScanRange<'r, 'a> {
    /// The table.
    pub table: TableId,
    /// A secondary index, or `None` for the primary key.
    pub index: Option<IndexId>,
    /// Values of the leading columns; none is null.
    pub equal: &'r [Datum<'a>],
    /// Bound on the next column and whether it is inclusive; not null.
    pub lower: Option<(Datum<'a>, bool)>,
    /// Upper bound likewise.
    pub upper: Option<(Datum<'a>, bool)>,
    /// From the upper end down.
    pub descending: bool,
    /// The code will ask for about this many rows, if known: a hint.
    pub limit_hint: Option<u64>,
    /// What it will look up for each row: a hint.
    pub joins: Joins<'r, 'a>,
}

/// The lookups that code makes for each row of a scan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joins<'r, 'a> {
    pub(crate) plans: &'r [JoinPlan],
    pub(crate) registers: &'r [Datum<'a>],
}

/// One lookup for each row of a scan.
#[derive(Clone, Debug)]
pub struct Join<'a> {
    /// The table, which has a hash index.
    pub table: TableId,
    /// The columns of the key.
    pub key: Vec<KeyColumn<'a>>,
}

/// Where a column of such a lookup's key comes from.
#[derive(Clone, Copy, Debug)]
pub enum KeyColumn<'a> {
    /// It is the same for all rows of the scan.
    Value(Datum<'a>),
    /// It is this column of the scan's row.
    OfRow(ColumnId),
}

impl<'a> Joins<'_, 'a> {
    /// The lookups in tables of which `is_wanted`, in the order in which they are made.
    pub fn with(&self, is_wanted: impl Fn(TableId) -> bool) -> impl Iterator<Item = Join<'a>> {
        self.plans.iter().filter(move |plan| is_wanted(plan.table)).map(|plan| {
            let column = |column: &KeyColumnPlan| match *column {
                KeyColumnPlan::Register(register) => {
                    KeyColumn::Value(self.registers[usize::from(register.0)])
                }
                KeyColumnPlan::OfRow(column) => KeyColumn::OfRow(column),
            };
            Join { table: plan.table, key: plan.key.iter().map(column).collect() }
        })
    }
}

/// The columns that one write step stores, in ascending column order.
#[derive(Clone, Copy, Debug)]
pub struct WriteSet<'r, 'a> {
    /// Which columns have values in `values`.
    pub columns: ColumnMask,
    /// Their values, of exactly the columns' types.
    pub values: &'r [Datum<'a>],
    /// Columns changed by an operation with a known operand (phase code only).
    pub deltas: Deltas<'r, 'a>,
    /// Columns whose values the later-phase will [`fill`](Context::fill) (phase code only).
    pub sticky: ColumnMask,
}

/// An engine's view of the database at one call's place in the order.
///
/// `'a` is how long text and bytes that the context hands out stay valid: until the run's frame is
/// dropped.
pub trait Context<'a> {
    /// A located row, or the knowledge that it is missing. Cheap to copy. The default is a row that is
    /// missing, whoever asks.
    type Row: Copy + Default;
    /// An open scan.
    type Scan;

    /// Looks a row up by primary key (one datum per key column, none null).
    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Self::Row, Stop>;

    /// Whether the row is there, seen after the call's own earlier writes.
    fn exists(&mut self, table: TableId, row: Self::Row) -> Result<bool, Stop>;

    /// One column of a row that is there, seen after the call's own earlier writes.
    fn read(&mut self, table: TableId, row: Self::Row, column: ColumnId) -> Result<Datum<'a>, Stop>;

    /// Opens a scan of the rows there are, or may be, in the range.
    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<Self::Scan, Stop>;

    /// The next row that is there and in the range, or `None`.
    fn scan_next(&mut self, scan: &mut Self::Scan) -> Result<Option<Self::Row>, Stop>;

    /// Adds a row. The write set covers every column. Aborts with 23505 if a unique key is taken.
    fn insert(&mut self, table: TableId, write: WriteSet<'_, 'a>) -> Result<Self::Row, Stop>;

    /// Writes columns of a row that is there.
    fn update(&mut self, table: TableId, row: Self::Row, write: WriteSet<'_, 'a>) -> Result<(), Stop>;

    /// Deletes a row that is there.
    fn delete(&mut self, table: TableId, row: Self::Row) -> Result<(), Stop>;

    /// An element comes into one of the run's lists: a reader may have no room for it.
    ///
    /// # Errors
    /// Why the run ends here.
    #[inline]
    fn keep(&mut self, _element: &[Datum<'a>]) -> Result<(), Stop> {
        Ok(())
    }

    /// One of the lists, with these values, is emptied.
    #[inline]
    fn let_go(&mut self, _list: &[Datum<'a>]) {}

    /// The call's logged time in microseconds since 1970-01-01.
    fn now(&self) -> i64;

    /// The call's next random number in [0, 1).
    fn random(&mut self) -> f64;

    // ---- phase code only ----

    /// Now-phase: keeps a value for the later-phase, which [`restore`](Context::restore)s in the
    /// same order.
    fn capture(&mut self, _value: Datum<'a>) {
        unreachable!("only phase code captures")
    }

    /// Now-phase: keeps a row handle (possibly missing) for the later-phase.
    fn capture_row(&mut self, _row: Self::Row) {
        unreachable!("only phase code captures")
    }

    /// Later-phase: the next captured value.
    fn restore(&mut self) -> Datum<'a> {
        unreachable!("only phase code restores")
    }

    /// Later-phase: the next captured row handle.
    fn restore_row(&mut self) -> Self::Row {
        unreachable!("only phase code restores")
    }

    /// Later-phase: computes sticky columns of a row that the now-phase wrote.
    fn fill(&mut self, _table: TableId, _row: Self::Row, _write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        unreachable!("only phase code fills")
    }

    // ---- code of record actions only ----

    /// Hands a value to other actions of the call, by its number and the turn's.
    fn give(&mut self, _number: u16, _turn: u32, _value: Datum<'a>) {
        unreachable!("only record actions hand values over")
    }

    /// The value that another action has handed over, by its number and the turn's.
    fn take(&mut self, _number: u16, _turn: u32) -> Datum<'a> {
        unreachable!("only record actions take values")
    }

    /// Another action of the call comes to nothing.
    fn disable(&mut self, _action: u16) {
        unreachable!("only record actions disable others")
    }

    /// Whether a row handle is the default one: known to be missing. Code sets it for a null key and
    /// asks nothing of it; on a capture tape it marks the end of a replayed scan.
    fn is_missing(&self, row: Self::Row) -> bool;
}

/// Where in a program an abort arose, for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The step.
    pub step: StepId,
    /// The place's line in the text.
    pub line: u32,
    /// The row it concerns, if any.
    pub row: Option<RowId>,
}
