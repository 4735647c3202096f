//! Record actions one after the other on a record, which is written once (LADS, sections 3.1 and 4.2.2).
//!
//! An independent action is its call's program, run for one element of its arguments on one record: what the program
//! does to other records is done by their actions, elsewhere. A dependent one has code of its own, which takes values
//! from other actions and hands values over. What the actions of a queue write stays here until the last of them, so
//! the record gets one version:
//!
//! ```text
//! queue of usertable[7, 42]     write 3    read    write 9    write 4 --> one version {value: 4}
//! values here                      {3}      {3}       {9}        {4}      with the seq of the last writer
//! ```
//!
//! Where an action waits for others, what has been written stays with the partition
//! ([`Progress::unwritten`](crate::graph::Progress)); a whole call finds it in the record. A row that comes or goes
//! does so there as well ([`Before::replace`]); until then the run knows.

use crate::decomposition::{Decompositions, Dependent, DependentAction, Layout};
use crate::graph::{Action, CallNode, Graph, Kept, Queue, Stamped, Unwritten};
use crate::handed::Handed;
use crate::row_change::{Before, Means};
use crate::turns::Rank;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::constraint::{PRIMARY_KEY, duplicate};
use fabius_engine::eager::commit;
use fabius_engine::eager::shared::Shared;
use fabius_engine::eager::trail::Trail;
use fabius_engine::eager::workspace::{Image, Write};
use fabius_program::compile::Code;
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_program::execute::{self, ElementPlace, Frame};
use fabius_storage::{Cell, Record, Table, chain};
use fabius_value::{ColumnId, ColumnMask, Datum, Error, IndexId, Key, Seq, TableId, Value};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What runs actions on one thread.
pub struct ActionRunner<'a> {
    decompositions: &'a Decompositions,
    graph: &'a Graph<'a>,
    guard: &'a Guard,
    arena: &'a Bump,
    shared: &'a Shared,
    frame: Frame<'a, Row, Infallible>,
    /// Not while a run is in progress.
    buffers: Option<Box<Buffers<'a>>>,
    trail: Trail<'a>,
}

/// A call whose actions depend on each other.
#[derive(Clone, Copy)]
pub struct DependentCall<'a> {
    /// The call.
    pub node: &'a CallNode<'a>,
    /// What its program is taken apart into.
    pub dependent: &'a Dependent,
    layout: Layout<'a>,
}

impl<'a> DependentCall<'a> {
    /// What an action of the call is.
    #[inline]
    pub fn slice_of(&self, action: &Action) -> &'a DependentAction {
        &self.dependent.actions[usize::from(action.slice)]
    }

    /// Where the turns of an action of the program are among the graph's actions.
    #[inline]
    pub fn turns_of(&self, action: u32) -> Range<u32> {
        let turns = self.layout.turns_of(action);
        self.node.first_action + turns.start..self.node.first_action + turns.end
    }

    /// The number of the turn that an action of the graph is.
    #[inline]
    pub fn turn(&self, action: &Action, at: u32) -> u32 {
        at - self.turns_of(action.slice.into()).start
    }
}

/// Room for what a run of actions needs.
#[derive(Default)]
struct Buffers<'a> {
    /// By column, if it has been written.
    values: Vec<Datum<'a>>,
    /// By column, if the action that runs, or holds, has written it, and nobody may see that yet.
    own: Vec<Datum<'a>>,
    disabled: Vec<u16>,
    key: Key,
    /// Room for what stays with queues.
    #[allow(clippy::vec_box, reason = "queues have boxes")]
    spare: Vec<Box<Unwritten>>,
}

impl<'a> ActionRunner<'a> {
    /// A runner for the calls of a graph, with memory until its end.
    pub fn new(
        decompositions: &'a Decompositions,
        graph: &'a Graph<'a>,
        (guard, arena): (&'a Guard, &'a Bump),
        shared: &'a Shared,
    ) -> ActionRunner<'a> {
        let (frame, trail) = Default::default();
        let buffers = Some(Box::default());
        ActionRunner { decompositions, graph, guard, arena, shared, frame, buffers, trail }
    }

    /// What a dependent call is taken apart into.
    #[inline]
    pub fn dependent(&self, call: u32) -> DependentCall<'a> {
        let node = &self.graph.calls[call as usize];
        let decomposition = self.decompositions.get(node.stamped.call.procedure);
        let dependent = decomposition.and_then(|of| of.dependent.as_ref());
        let dependent = dependent.expect("it was there when the graph was built");
        DependentCall { node, dependent, layout: dependent.layout(&self.graph.layouts, node.first_layout) }
    }

    /// Begins a run of actions of a queue, from its head on.
    #[inline]
    pub fn begin(&mut self, queue: &'a Queue<'a>) -> Run<'a> {
        let table = queue.table.expect("an action of a call that is taken apart has a table");
        Run {
            table,
            queue,
            record: queue.record().or_else(|| self.find(table, queue.key())),
            is_sole: false,
            has_row: true,
            is_tentative: false,
            time_us: 0,
            written: ColumnMask::EMPTY,
            is_there: None,
            written_own: ColumnMask::EMPTY,
            is_there_own: None,
            seq: Seq::ZERO,
            writer: Seq::ZERO,
            handed: &[],
            layout: Layout::PLAIN,
            buffers: self.buffers.take().expect("one run is in progress at a time"),
        }
    }

    /// The record of a key that had no row when the graph was built.
    #[cold]
    fn find(&self, table: &'a Table, key: &[u8]) -> Option<&'a Record> {
        let mut whole = Key::new();
        whole.extend(key);
        table.find(&whole, self.guard)
    }

    /// Takes up what an earlier run of the queue has left.
    pub fn resume(&self, run: &mut Run<'a>, mut unwritten: Box<Unwritten>) {
        let Unwritten { values, held } = &mut *unwritten;
        (run.writer, run.seq) = (values.writer, held.writer);
        (run.is_there, run.is_there_own) = (values.is_there, held.is_there);
        run.written = restore(values, &mut run.buffers.values, self.arena);
        run.written_own = restore(held, &mut run.buffers.own, self.arena);
        run.buffers.spare.push(unwritten);
    }

    /// Runs an independent action at the head of the queue.
    #[inline]
    pub fn run_independent(&mut self, run: &mut Run<'a>, action: &Action, node: &CallNode<'a>) {
        let Stamped { call, seq, time_us, .. } = &node.stamped;
        let decomposition = self.decompositions.get(call.procedure);
        let decomposition = decomposition.expect("it was there when the graph was built");
        let place = ElementPlace { element: action.element(), turn: 0, behind: node.behind };
        let code = decomposition.action(place.element);
        (run.is_sole, run.has_row) = (decomposition.is_sole, true);
        (run.is_tentative, run.seq, run.time_us) = (false, *seq, *time_us);
        let started = self.frame.start_action(code, call.arguments, place, self.arena);
        started.expect("the arguments of independent actions are well-formed");
        let ended = execute::run(&mut self.frame, code, run, self.arena);
        ended.expect("nothing makes an independent action abort");
    }

    /// Runs a dependent action at the head of the queue, which is the turn of this number; what it has written is held
    /// if it `holds`.
    ///
    /// # Errors
    /// Why its call aborts, and where in the text; it has written nothing then.
    pub fn run_dependent(
        &mut self,
        run: &mut Run<'a>,
        action: &Action,
        turn: u32,
        call: DependentCall<'a>,
    ) -> Result<(), (Rank, Error)> {
        let DependentAction { code, decides, holds, needs_row, .. } = call.slice_of(action);
        (run.is_sole, run.has_row) = (true, *needs_row);
        (run.is_tentative, run.seq) = (*decides || *holds, call.node.stamped.seq);
        let place = ElementPlace { element: action.element(), turn, behind: call.node.behind };
        self.start_dependent(run, code, place, call);
        match execute::run(&mut self.frame, code, run, self.arena) {
            Ok(()) if *holds => {}
            Ok(()) => run.write_held(),
            Err(Stop::Abort(error)) => {
                run.drop_held();
                return Err(((code.loop_bounds_before(self.frame.stopped_at()), turn), error));
            }
            Err(Stop::Restart | Stop::Blocked) => unreachable!("an action has every value"),
        }
        Ok(())
    }

    fn start_dependent(
        &mut self,
        run: &mut Run<'a>,
        code: &Code,
        place: ElementPlace,
        call: DependentCall<'a>,
    ) {
        run.handed = &self.graph.handed[call.node.first_handed as usize..];
        run.layout = call.layout;
        run.time_us = call.node.stamped.time_us;
        let started = self.frame.start_action(code, call.node.stamped.call.arguments, place, self.arena);
        started.expect("the arguments of dependent actions are well-formed");
    }

    /// The results of a dependent call whose actions have ended, the last of them in this run.
    pub fn results(&mut self, run: &mut Run<'a>, call: DependentCall<'a>) -> impl Iterator<Item = Value> {
        let code = &call.dependent.results;
        let place = ElementPlace { behind: call.node.behind, ..ElementPlace::default() };
        self.start_dependent(run, code, place, call);
        let ended = execute::run(&mut self.frame, code, run, self.arena);
        ended.expect("computing results of a call that is taken apart cannot fail");
        self.frame.returned(code)
    }

    /// Ends a run of actions, and writes the record if any of them has.
    pub fn write(&mut self, run: Run<'a>) {
        let Run { table, queue, record, is_there, written: columns, writer, mut buffers, .. } = run;
        if let Some(is_there) = is_there {
            let values = is_there.then(|| &buffers.values[..columns.len()]);
            let means = Means { shared: self.shared, guard: self.guard, arena: self.arena };
            Before { table, key: queue.key(), record }.replace(values, writer, means, &mut self.trail);
        } else if let (Some(record), false) = (record, columns.is_empty()) {
            // In place: a column's rank is never above its number.
            for (rank, column) in columns.iter().enumerate() {
                buffers.values[rank] = buffers.values[usize::from(column.0)];
            }
            let image = Image::Columns(columns, &buffers.values[..columns.len()]);
            let write = Write { table, record, image };
            // SAFETY: nobody else writes or reads the record before its next action, but for readers at their seqs, and
            // this engine leaves nothing unsettled.
            if let Some(pushed) =
                unsafe { commit::put_in_turns(&write, writer, self.shared.collected(), &mut self.trail) }
            {
                self.trail.push(table, record, pushed);
            }
        }
        self.buffers = Some(buffers);
    }

    /// Ends a run of actions before one that waits; gives what they have written, which is for the next run.
    pub fn keep(&mut self, run: Run<'a>) -> Option<Box<Unwritten>> {
        let Run { written, is_there, written_own, is_there_own, writer, seq, mut buffers, .. } = run;
        let has_written = !written.is_empty() || !written_own.is_empty();
        let left = (has_written || is_there.is_some() || is_there_own.is_some()).then(|| {
            let mut unwritten = buffers.spare.pop().unwrap_or_default();
            keep(&mut unwritten.values, written, &buffers.values, writer);
            keep(&mut unwritten.held, written_own, &buffers.own, seq);
            (unwritten.values.is_there, unwritten.held.is_there) = (is_there, is_there_own);
            unwritten
        });
        self.buffers = Some(buffers);
        left
    }

    /// Ends with the graph, whose calls have been committed: versions that nobody needs any more go, below `collected`.
    pub fn end(self, collected: Seq, guard: &Guard) {
        self.trail.end(collected, guard);
    }
}

fn keep(kept: &mut Kept, columns: ColumnMask, values: &[Datum<'_>], writer: Seq) {
    (kept.columns, kept.writer) = (columns, writer);
    kept.values.extend(columns.iter().map(|column| Handed::from(values[usize::from(column.0)])));
}

/// Takes values out that were kept, by column; gives which.
fn restore<'a>(kept: &mut Kept, values: &mut Vec<Datum<'a>>, arena: &'a Bump) -> ColumnMask {
    for (column, value) in kept.columns.iter().zip(kept.values.drain(..)) {
        put(values, column, value.in_arena(arena));
    }
    kept.columns
}

fn put<'a>(values: &mut Vec<Datum<'a>>, column: ColumnId, value: Datum<'a>) {
    let at = usize::from(column.0);
    if values.len() <= at {
        values.resize(at + 1, Datum::Null);
    }
    values[at] = value;
}

/// A run of actions on a record. What an action sees is the record, as the actions before have left it.
pub struct Run<'a> {
    table: &'a Arc<Table>,
    queue: &'a Queue<'a>,
    /// The key's record, if there is one.
    record: Option<&'a Record>,
    /// Whether the action can mean no other record.
    is_sole: bool,
    /// Whether it is known that the row is there.
    has_row: bool,
    /// Whether what it writes may have to be dropped, or to wait.
    is_tentative: bool,
    /// When the call of the action was logged.
    time_us: i64,
    /// What is written in the end.
    written: ColumnMask,
    /// Whether the row is there in the end, if it has come or gone; then all of its columns are written.
    is_there: Option<bool>,
    /// What the action that runs, or holds, has written, if that is tentative,
    written_own: ColumnMask,
    /// and whether the row has come or gone.
    is_there_own: Option<bool>,
    /// The action's timestamp.
    seq: Seq,
    /// That of the last one that has written.
    writer: Seq,
    /// What the actions of its call hand over,
    handed: &'a [OnceLock<Handed>],
    /// and where that is.
    layout: Layout<'a>,
    buffers: Box<Buffers<'a>>,
}

impl<'a> Run<'a> {
    /// The call of the action has been decided, and commits.
    pub fn write_held(&mut self) {
        if let Some(is_there) = self.is_there_own.take() {
            // What has been written before is gone.
            (self.written, self.is_there, self.writer) = (ColumnMask::EMPTY, Some(is_there), self.seq);
        }
        if !self.written_own.is_empty() {
            for column in self.written_own.iter() {
                put(&mut self.buffers.values, column, self.buffers.own[usize::from(column.0)]);
            }
            self.written = self.written.union(self.written_own);
            (self.writer, self.written_own) = (self.seq, ColumnMask::EMPTY);
        }
    }

    /// The call of the action aborts.
    pub fn drop_held(&mut self) {
        (self.written_own, self.is_there_own) = (ColumnMask::EMPTY, None);
    }

    /// Notes values of the row.
    #[inline(always)]
    fn store(&mut self, write: WriteSet<'_, 'a>) {
        let Buffers { values, own, .. } = &mut *self.buffers;
        let values = if self.is_tentative { own } else { values };
        values.resize(self.table.types().len().max(values.len()), Datum::Null);
        for (column, value) in write.columns.iter().zip(write.values) {
            values[usize::from(column.0)] = *value;
        }
        if self.is_tentative {
            self.written_own = self.written_own.union(write.columns);
        } else {
            self.written = self.written.union(write.columns);
            self.writer = self.seq;
        }
    }

    /// Whether the row is there, as the actions before and this one have left it.
    #[inline(never)]
    fn is_there(&self) -> bool {
        // SAFETY: the epoch is pinned.
        let has_row = |record: &Record| unsafe { chain::is_present(record.head()) };
        self.is_there_own.or(self.is_there).unwrap_or_else(|| self.record.is_some_and(has_row))
    }

    /// The row has come, or gone, with what was written of it.
    fn note_presence(&mut self, is_there: bool) {
        if self.is_tentative {
            (self.written_own, self.is_there_own) = (ColumnMask::EMPTY, Some(is_there));
        } else {
            (self.written, self.is_there, self.writer) = (ColumnMask::EMPTY, Some(is_there), self.seq);
        }
    }

    /// Actions of the same call that come to nothing, as the last one has found.
    pub fn disabled(&mut self) -> impl Iterator<Item = u32> {
        self.buffers.disabled.drain(..).map(u32::from)
    }
}

/// A row that the program names.
#[derive(Clone, Copy, Default)]
pub enum Row {
    /// There is none, since its key is null.
    #[default]
    Missing,
    /// The action's own.
    Own,
    /// There is one, which is another action's.
    Elsewhere,
}

impl<'a> Context<'a> for Run<'a> {
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
        self.table.encode_key(key, &mut self.buffers.key)?;
        Ok(if self.buffers.key.bytes() == self.queue.key() { Row::Own } else { Row::Elsewhere })
    }

    #[inline]
    fn exists(&mut self, _: TableId, row: Row) -> Result<bool, Stop> {
        Ok(self.has_row || !matches!(row, Row::Own) || self.is_there())
    }

    /// What is read elsewhere goes into nothing that is written here.
    #[inline]
    fn read(&mut self, _: TableId, row: Row, column: ColumnId) -> Result<Datum<'a>, Stop> {
        if !matches!(row, Row::Own) {
            return Ok(Datum::Null);
        }
        if self.written_own.contains(column) {
            return Ok(self.buffers.own[usize::from(column.0)]);
        }
        if self.written.contains(column) {
            return Ok(self.buffers.values[usize::from(column.0)]);
        }
        let data_type = self.table.types()[usize::from(column.0)];
        let record = self.record.expect("a row that is there has a record, or has just been inserted");
        // SAFETY: the epoch is pinned.
        match unsafe { chain::read(record.head(), column, data_type, std::ptr::null_mut()) } {
            Cell::Value(value) => Ok(value),
            Cell::Absent | Cell::Pending(_) => unreachable!("a row that is there has every value"),
        }
    }

    #[inline]
    fn update(&mut self, _: TableId, row: Row, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        if !matches!(row, Row::Own) {
            return Ok(());
        }
        self.store(write);
        Ok(())
    }

    fn scan_open(&mut self, _: ScanRange<'_, 'a>) -> Result<Infallible, Stop> {
        unreachable!("a scan is a coarse action")
    }

    fn scan_next(&mut self, scan: &mut Infallible) -> Result<Option<Row>, Stop> {
        match *scan {}
    }

    #[inline(never)]
    fn insert(&mut self, _: TableId, write: WriteSet<'_, 'a>) -> Result<Row, Stop> {
        let table = self.table;
        let value = |column: ColumnId| write.values[usize::from(column.0)];
        if self.is_there() {
            let columns = &table.schema().primary_key;
            let values: Vec<Datum<'a>> = columns.iter().map(|column| value(*column)).collect();
            return Err(duplicate(table.schema(), columns, &values, PRIMARY_KEY).into());
        }
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            // An entry may be too long.
            table.encode_entry(index, value, self.queue.key(), &mut self.buffers.key)?;
        }
        self.note_presence(true);
        self.store(write);
        Ok(Row::Own)
    }

    #[inline(never)]
    fn delete(&mut self, _: TableId, _: Row) -> Result<(), Stop> {
        self.note_presence(false);
        Ok(())
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        unreachable!("calls that draw random numbers are executed in one piece")
    }

    #[inline]
    fn give(&mut self, number: u16, turn: u32, value: Datum<'a>) {
        let given = self.handed[self.layout.value(number, turn)].set(value.into());
        assert!(given.is_ok(), "a step of an action runs once");
    }

    #[inline]
    fn take(&mut self, number: u16, turn: u32) -> Datum<'a> {
        let taken = self.handed[self.layout.value(number, turn)].get();
        taken.expect("an action comes after those that it takes values from").datum()
    }

    fn disable(&mut self, action: u16) {
        self.buffers.disabled.push(action);
    }

    fn is_missing(&self, row: Row) -> bool {
        matches!(row, Row::Missing)
    }
}
