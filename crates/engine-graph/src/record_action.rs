//! Record actions one after the other on a record, which is written once (LADS, sections 3.1 and 4.2.2).
//!
//! A call's record action is its program, run for one element of its arguments on one record: what the program does
//! to other records is done by their actions, elsewhere. What the actions of a queue write stays here until the
//! last of them, so the record gets one version:
//!
//! ```text
//! queue of usertable[7, 42]     write 3    read    write 9    write 4 --> one version {value: 4}
//! values here                      {3}      {3}       {9}        {4}      with the seq of the last writer
//! ```

use crate::decomposition::Decompositions;
use crate::graph::{Action, CallNode, Queue, Stamped};
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::eager::commit;
use fabius_engine::eager::shared::Shared;
use fabius_engine::eager::trail::Trail;
use fabius_engine::eager::workspace::{Image, Write};
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_program::execute::{self, Frame};
use fabius_storage::{Cell, Record, Table, chain};
use fabius_value::{ColumnId, ColumnMask, Datum, Key, Seq, TableId};
use std::convert::Infallible;
use std::sync::Arc;

/// What runs actions on one thread.
pub struct ActionRunner<'a> {
    decompositions: &'a Decompositions,
    arena: &'a Bump,
    shared: &'a Shared,
    frame: Frame<'a, Row, Infallible>,
    time_us: i64,
    /// By column, if an action has written it.
    values: Vec<Datum<'a>>,
    key: Key,
    trail: Trail<'a>,
}

impl<'a> ActionRunner<'a> {
    /// A runner for calls that were logged at a time, with memory until the end of the graph.
    pub fn new(
        decompositions: &'a Decompositions,
        arena: &'a Bump,
        time_us: i64,
        shared: &'a Shared,
    ) -> ActionRunner<'a> {
        let (frame, values, key, trail) = Default::default();
        ActionRunner { decompositions, arena, shared, frame, time_us, values, key, trail }
    }

    /// Runs actions of a queue, which are at its head, and writes the record, if any of them has.
    pub fn run(&mut self, queue: &Queue<'a>, actions: impl Iterator<Item = (&'a Action, &'a CallNode<'a>)>) {
        let (Some(table), Some(record)) = (queue.table, queue.record()) else {
            unreachable!("an independent action has a record");
        };
        let mut context = RecordContext {
            table,
            record,
            is_sole: false,
            time_us: self.time_us,
            written: ColumnMask::EMPTY,
            seq: Seq::ZERO,
            writer: Seq::ZERO,
            values: &mut self.values,
            key: &mut self.key,
        };
        for (action, node) in actions {
            let Stamped { call, seq, .. } = &node.stamped;
            let decomposition = self.decompositions.get(call.procedure);
            let decomposition = decomposition.expect("it was there when the graph was built");
            let code = decomposition.action(action.element);
            context.is_sole = decomposition.is_sole;
            context.seq = *seq;
            let started = self.frame.start_action(code, call.arguments, action.element, self.arena);
            started.expect("the arguments of independent actions are well-formed");
            let ended = execute::run(&mut self.frame, code, &mut context, self.arena);
            ended.expect("nothing makes an independent action abort");
        }
        let RecordContext { written: columns, writer, values, .. } = context;
        if columns.is_empty() {
            return;
        }
        // In place: a column's rank is never above its number.
        for (rank, column) in columns.iter().enumerate() {
            values[rank] = values[usize::from(column.0)];
        }
        let write = Write { table, record, image: Image::Columns(columns, &values[..columns.len()]) };
        // SAFETY: nobody else writes or reads the record before its next action, but for readers at their seqs, and
        // this engine leaves nothing unsettled.
        if let Some(pushed) =
            unsafe { commit::put_in_turns(&write, writer, self.shared.collected(), &mut self.trail) }
        {
            self.trail.push(table, record, pushed);
        }
    }

    /// Ends with the graph, whose calls have been committed: versions that nobody needs any more go, below `collected`.
    pub fn end(self, collected: Seq, guard: &Guard) {
        self.trail.end(collected, guard);
    }
}

/// What an action sees: its record, as the actions before have left it.
struct RecordContext<'r, 'a> {
    table: &'a Arc<Table>,
    record: &'a Record,
    /// Whether the action can mean no other record.
    is_sole: bool,
    time_us: i64,
    written: ColumnMask,
    /// The action's timestamp.
    seq: Seq,
    /// That of the last one that has written.
    writer: Seq,
    values: &'r mut Vec<Datum<'a>>,
    key: &'r mut Key,
}

/// A row that the program names.
#[derive(Clone, Copy, Default)]
enum Row {
    /// There is none, since its key is null.
    #[default]
    Missing,
    /// The action's own.
    Own,
    /// There is one, which is another action's.
    Elsewhere,
}

impl<'a> Context<'a> for RecordContext<'_, 'a> {
    type Row = Row;
    type Scan = Infallible;

    #[inline]
    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Row, Stop> {
        if self.is_sole {
            return Ok(Row::Own);
        }
        if table != self.table.id() {
            return Ok(Row::Elsewhere);
        }
        self.table.encode_key(key, self.key)?;
        Ok(if self.key.bytes() == self.record.key() { Row::Own } else { Row::Elsewhere })
    }

    #[inline]
    fn exists(&mut self, _: TableId, _: Row) -> Result<bool, Stop> {
        Ok(true)
    }

    /// What is read elsewhere goes into nothing that is written here.
    #[inline]
    fn read(&mut self, _: TableId, row: Row, column: ColumnId) -> Result<Datum<'a>, Stop> {
        if !matches!(row, Row::Own) {
            return Ok(Datum::Null);
        }
        if self.written.contains(column) {
            return Ok(self.values[usize::from(column.0)]);
        }
        let data_type = self.table.types()[usize::from(column.0)];
        // SAFETY: the epoch is pinned.
        match unsafe { chain::read(self.record.head(), column, data_type, std::ptr::null_mut()) } {
            Cell::Value(value) => Ok(value),
            Cell::Absent | Cell::Pending(_) => unreachable!("a row that is there has every value"),
        }
    }

    #[inline]
    fn update(&mut self, _: TableId, row: Row, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        if matches!(row, Row::Own) {
            self.values.resize(self.table.types().len().max(self.values.len()), Datum::Null);
            for (column, value) in write.columns.iter().zip(write.values) {
                self.values[usize::from(column.0)] = *value;
            }
            self.written = self.written.union(write.columns);
            self.writer = self.seq;
        }
        Ok(())
    }

    fn scan_open(&mut self, _: ScanRange<'_, 'a>) -> Result<Infallible, Stop> {
        unreachable!("a scan is a coarse action")
    }

    fn scan_next(&mut self, scan: &mut Infallible) -> Result<Option<Row>, Stop> {
        match *scan {}
    }

    fn insert(&mut self, _: TableId, _: WriteSet<'_, 'a>) -> Result<Row, Stop> {
        unreachable!("calls that insert are executed in one piece")
    }

    fn delete(&mut self, _: TableId, _: Row) -> Result<(), Stop> {
        unreachable!("calls that delete are executed in one piece")
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        unreachable!("calls that draw random numbers are executed in one piece")
    }

    fn is_missing(&self, row: Row) -> bool {
        matches!(row, Row::Missing)
    }
}
