//! The now-phase's view of the database: the newest state, and a place to leave stickies.
//!
//! The lane runs now-phases one after another in log order, so a now-phase sees everything there is
//! and is the only writer of chains and indexes. What it writes can be undone as long as its own call
//! has not ended: an abort takes back, newest first, what [`Undo`] lists.

use crate::deferred::Deferred;
use crossbeam_epoch::Guard;
use fabius_engine::{
    Definitions,
    constraint::{PRIMARY_KEY, check_unique, duplicate, entry_of},
    expected::{Cursor, ExpectedRow},
    random::CallRandom,
};
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_storage::fold::{Retired, fold_with_others};
use fabius_storage::purge::Purge;
use fabius_storage::{
    Cell, Record, Table, Version, chain,
    scan::{Range, RowScan},
    version::Contents,
};
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, Deltas, IndexId, Key, Result, Seq, TableId};
use std::convert::Infallible;
use std::ptr::NonNull;
use std::sync::Arc;

/// A row as the now-phase knows it.
#[derive(Clone, Copy)]
pub struct NowRow<'a> {
    /// The row's record, `None` if the key was never seen.
    pub record: Option<&'a Record>,
    /// The row's table.
    pub table: TableId,
}

impl Default for NowRow<'_> {
    fn default() -> Self {
        NowRow { record: None, table: TableId(0) }
    }
}

/// Something that an abort takes back.
enum Undo<'a> {
    /// A version on top of a record.
    Pushed { table: &'a Arc<Table>, record: &'a Record },
    /// A version that took another one's place in the same call.
    Replaced { table: &'a Arc<Table>, record: &'a Record, before: NonNull<Version> },
    /// A delta merged into a version that stood there.
    Merged { version: &'a Version, column: ColumnId, slot: u64, seq: Seq },
    /// Index entries made for a row.
    Entered { table: &'a Arc<Table>, record: &'a Record, index: IndexId, key: Box<Key> },
    /// A record that was inserted into (again).
    Inserted { table: &'a Arc<Table>, record: &'a Record },
    /// Entries that became stale: notes to write if the call commits.
    Stale { table: &'a Arc<Table>, record: &'a Record, index: IndexId, key: Box<Key> },
    /// A deletion: a note to write if the call commits.
    Deleted { table: &'a Arc<Table>, record: &'a Record },
}

/// A version that the call wrote.
#[derive(Clone, Copy)]
pub struct Written<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The record it is on.
    pub record: &'a Record,
    /// The version.
    pub version: NonNull<Version>,
}

/// What outlives one call: the lane's tools, borrowed for one turn.
pub struct Tools<'t> {
    /// Versions unlinked in this turn.
    pub retired: &'t mut Retired,
    /// Keys to take out of indexes later.
    pub purge: &'t mut Purge,
    /// By table and column: the newest call whose later-phase may read it.
    pub later_reader: &'t mut Vec<Box<[Seq]>>,
    /// The column intervals that promises rely on.
    pub intervals: &'t mut crate::interval::Intervals,
    /// Behind this, chains may be folded.
    pub collected: Seq,
    /// Whether there is a long backlog, whose calls' chains are shortened as they are done.
    pub is_far_behind: bool,
    /// Whether calls are run as soon as they are promised, and their chains shortened then.
    pub is_eager: bool,
    /// The first seq of this turn: what has it or a later one is invisible to snapshots.
    pub turn: Seq,
    /// Deltas merged in this turn.
    pub merged: u64,
}

/// The context of one call's now-phase.
pub struct NowContext<'a, 't> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    tools: Tools<'t>,
    seq: Seq,
    time_us: i64,
    random: CallRandom,
    key: Key,
    /// Rows that the call is expected to look up, and where it is among them.
    expected: &'t [ExpectedRow<'a>],
    cursor: Cursor,
    undo: Vec<Undo<'a>>,
    /// Versions written by the call.
    pub written: Vec<Written<'a>>,
    /// Captured values, in order.
    pub values: Vec<Datum<'a>>,
    /// Captured rows, in order.
    pub rows: Vec<NowRow<'a>>,
    /// The call whose sticky ended the last step.
    pub blocked_on: *mut (),
    /// What was read there.
    pub blocked_at: (TableId, ColumnId),
}

impl<'a, 't> NowContext<'a, 't> {
    /// A context for the calls of one turn.
    pub fn new(definitions: &'a Definitions, guard: &'a Guard, tools: Tools<'t>) -> NowContext<'a, 't> {
        NowContext {
            definitions,
            guard,
            tools,
            seq: Seq::ZERO,
            time_us: 0,
            random: CallRandom::new(Seq::ZERO),
            key: Key::new(),
            expected: &[],
            cursor: Cursor::default(),
            undo: Vec::new(),
            written: Vec::new(),
            values: Vec::new(),
            rows: Vec::new(),
            blocked_on: std::ptr::null_mut(),
            blocked_at: (TableId(0), ColumnId(0)),
        }
    }

    /// Begins a call that is expected to look these rows up.
    pub fn begin(&mut self, seq: Seq, time_us: i64, expected: &'t [ExpectedRow<'a>]) {
        self.expected = expected;
        self.cursor = Cursor::default();
        self.seq = seq;
        self.time_us = time_us;
        self.random = CallRandom::new(seq);
        self.undo.clear();
        self.written.clear();
        self.values.clear();
        self.rows.clear();
    }

    /// The lane's tools.
    pub fn tools(&mut self) -> &mut Tools<'t> {
        &mut self.tools
    }

    /// Ends a call that commits: what it left behind in indexes is noted for purging.
    pub fn commit(&mut self) {
        for undo in self.undo.drain(..) {
            match undo {
                Undo::Stale { table, record, index, key } => {
                    self.tools.purge.entry(self.seq, table, record, index, *key);
                }
                Undo::Deleted { table, record } => self.tools.purge.record(self.seq, table, record),
                Undo::Replaced { table, before, .. } => {
                    // SAFETY: unlinked: the version that has replaced it stays on top, and nobody reads below that.
                    unsafe { self.tools.retired.version(before, table.types()) };
                }
                _ => {}
            }
        }
    }

    /// Ends a call that aborts: takes everything back, newest first.
    pub fn roll_back(&mut self) {
        for undo in self.undo.drain(..).rev() {
            match undo {
                Undo::Pushed { table, record } => {
                    // SAFETY: the version this call pushed is on top; the lane alone changes heads.
                    let top = unsafe { &*record.head() };
                    record.set_head(top.next());
                    // SAFETY: unlinked by the line above.
                    unsafe { self.tools.retired.version(top.owner(), table.types()) };
                }
                Undo::Replaced { table, record, before } => {
                    // SAFETY: the version this call put there is on top; the lane alone changes heads.
                    let top = unsafe { &*record.head() };
                    record.set_head(before.as_ptr());
                    // SAFETY: unlinked by the line above.
                    unsafe { self.tools.retired.version(top.owner(), table.types()) };
                }
                Undo::Merged { version, column, slot, seq } => version.restore_delta(seq, column, slot),
                Undo::Entered { table, record, index, key } => {
                    self.tools.purge.entry(self.seq, table, record, index, *key);
                }
                Undo::Inserted { table, record } => self.tools.purge.record(self.seq, table, record),
                Undo::Stale { .. } | Undo::Deleted { .. } => {}
            }
        }
        self.written.clear();
    }

    fn later_reader(&self, table: &Table, column: ColumnId) -> Seq {
        self.tools.later_reader[table.id().0 as usize][column.0 as usize]
    }

    fn head(&self, row: NowRow<'a>) -> *const Version {
        row.record.map_or(std::ptr::null(), Record::head)
    }

    fn read_column(
        &mut self,
        row: NowRow<'a>,
        column: ColumnId,
        data_type: DataType,
    ) -> Result<Datum<'a>, Stop> {
        // SAFETY: the epoch is pinned during 'a. No call's own deferred exists yet in the now-phase;
        // slicing makes now everything whose value a now-phase reads back.
        match unsafe { chain::read(self.head(row), column, data_type, std::ptr::null_mut()) } {
            Cell::Value(value) => Ok(value),
            Cell::Pending(deferred) => {
                assert!(!deferred.is_null(), "a now-phase does not read its own stickies");
                self.blocked_on = deferred;
                self.blocked_at = (row.table, column);
                Err(Stop::Blocked)
            }
            Cell::Absent => Ok(Datum::Null),
        }
    }

    /// The encoded entry of a row in an index, with `changes` on top of what is stored.
    fn entry_key(
        &mut self,
        table: &'a Arc<Table>,
        record: &'a Record,
        index: IndexId,
        changes: Option<&WriteSet<'_, 'a>>,
    ) -> Result<Key, Stop> {
        let mut key = Key::new();
        for &column in table.index_columns(index) {
            let data_type = table.types()[column.0 as usize];
            let value = match changes {
                Some(write) if write.columns.contains(column) => write.values[write.columns.rank(column)],
                _ => {
                    self.read_column(NowRow { record: Some(record), table: table.id() }, column, data_type)?
                }
            };
            key.push(value, data_type, table.schema().columns[column.0 as usize].nullable)?;
        }
        Ok(key)
    }

    /// Adds the entries of a row to the indexes in `indexes`.
    fn enter(
        &mut self,
        table: &'a Arc<Table>,
        record: &'a Record,
        index: IndexId,
        write: &WriteSet<'_, 'a>,
    ) -> Result<(), Stop> {
        let key = self.entry_key(table, record, index, Some(write))?;
        if table.is_unique(index) {
            let mut values = Vec::new();
            for &column in table.index_columns(index) {
                let data_type = table.types()[column.0 as usize];
                values.push(if write.columns.contains(column) {
                    write.values[write.columns.rank(column)]
                } else {
                    self.read_column(NowRow { record: Some(record), table: table.id() }, column, data_type)?
                });
            }
            check_unique(table, index, &values, self.guard, |other, entry| {
                let head = other.head();
                // SAFETY: the epoch is pinned; indexed columns are never stickies.
                !std::ptr::eq(other, record)
                    && unsafe { chain::is_present(head) && table.entry_is_current(index, entry, head) }
            })?;
        }
        let key = entry_of(table, index, key, record)?;
        if table.add_entry(index, &key, record, self.guard) {
            self.undo.push(Undo::Entered { table, record, index, key: Box::new(key) });
        }
        Ok(())
    }

    /// Whether the call made this version. One that it only merged a delta into has its seq too, but an
    /// earlier call of the turn made it, and those in between may have captured it: it has to stay.
    fn wrote(&self, version: &Version) -> bool {
        version.seq() == self.seq
            && self.written.iter().rev().any(|written| written.version == NonNull::from(version))
    }

    fn push(&mut self, table: &'a Arc<Table>, record: &'a Record, version: NonNull<Version>) {
        record.push(version);
        self.undo.push(Undo::Pushed { table, record });
        self.written.push(Written { table, record, version });
    }

    /// Folds the record's chain if that is due again after a push.
    #[inline]
    fn fold(&mut self, table: &Arc<Table>, record: &Record, has_sticky: bool) {
        let collected = self.tools.collected;
        let is_due = match self.tools.is_far_behind || self.tools.is_eager && has_sticky {
            true => record.is_fold_overdue(collected),
            false => record.is_fold_due(collected),
        };
        if !is_due {
            return;
        }
        // SAFETY: the lane is the records' writer; `collected` is behind all readers and open calls.
        unsafe { fold_with_others(record, collected, table.types(), self.tools.retired) };
        if self.tools.retired.is_full() {
            self.tools.retired.hand_over_unsaid(self.guard);
        }
    }

    /// Merges deltas into the version on top, if no one can tell the difference: it is of this turn, it
    /// has just these deltas, and no later-phase of a call in between may read the columns.
    fn merge(&mut self, table: &'a Arc<Table>, record: &'a Record, write: &WriteSet<'_, 'a>) -> bool {
        // SAFETY: the epoch is pinned.
        let Some(top) = (unsafe { record.head().as_ref() }) else { return false };
        let at = top.seq();
        let mask = write.deltas.mask();
        if at < self.tools.turn
            || top.columns() != mask
            || top.deltas() != mask
            || mask.iter().any(|column| self.later_reader(table, column) >= at)
            || write.deltas.operations.iter().any(|delta| top.operator(delta.0) != delta.1)
        {
            return false;
        }
        for (done, (column, _, operand)) in write.deltas.iter().enumerate() {
            let slot = top.slot(column).load(std::sync::atomic::Ordering::Relaxed);
            if !top.merge_delta(self.seq, column, operand, table.types()[column.0 as usize]) {
                for _ in 0..done {
                    if let Some(Undo::Merged { version, column, slot, seq }) = self.undo.pop() {
                        version.restore_delta(seq, column, slot);
                    }
                }
                return false;
            }
            self.undo.push(Undo::Merged { version: top, column, slot, seq: at });
        }
        self.tools.merged += 1;
        true
    }

    /// Puts a write of a call that has written the same row before into one version with it.
    fn rewrite(
        &mut self,
        table: &'a Arc<Table>,
        record: &'a Record,
        top: &'a Version,
        write: &WriteSet<'_, 'a>,
    ) -> Result<(), Stop> {
        let types = table.types();
        let mut values_mask = ColumnMask::EMPTY;
        let mut values = Vec::new();
        let (mut operations, mut operands) = (Vec::new(), Vec::new());
        let mut sticky = top.sticky().union(write.sticky);
        let delta_of = |column: ColumnId| write.deltas.iter().find(|delta| delta.0 == column);
        let all = top.columns().union(write.columns).union(write.sticky).union(write.deltas.mask());
        for column in all.iter() {
            let data_type = types[column.0 as usize];
            // SAFETY: the version stays until the epoch has ended.
            let before = |column| unsafe { top.value(column, data_type) };
            let has_value = top.columns().without(top.deltas()).without(top.sticky()).contains(column);
            if write.columns.contains(column) {
                values_mask.insert(column);
                values.push(write.values[write.columns.rank(column)]);
                sticky = sticky.without(ColumnMask::of(column));
            } else if sticky.contains(column) {
                // A delta on top of a sticky of the same call cannot be: slicing stores all writes of
                // a column in one way.
                debug_assert!(delta_of(column).is_none());
            } else if let Some((_, operator, operand)) = delta_of(column) {
                if has_value {
                    values_mask.insert(column);
                    values.push(operator.apply(before(column), operand, data_type));
                } else if top.deltas().contains(column) {
                    let combined =
                        operator.combine(before(column), operand).ok_or_else(|| data_type.out_of_range())?;
                    operations.push((column, operator));
                    operands.push(combined);
                } else {
                    operations.push((column, operator));
                    operands.push(operand);
                }
            } else if has_value {
                values_mask.insert(column);
                values.push(before(column));
            } else {
                operations.push((column, top.operator(column)));
                operands.push(before(column));
            }
        }
        let contents = Contents {
            seq: self.seq,
            values_mask,
            values: &values,
            deltas: Deltas { operations: &operations, operands: &operands },
            sticky,
            deferred: std::ptr::null_mut(),
        };
        let version = Version::create(&contents, types);
        // SAFETY: ours alone until published.
        unsafe { version.as_ref().place_above(top.next()) };
        record.set_head(version.as_ptr());
        let before = top.owner();
        self.undo.push(Undo::Replaced { table, record, before });
        match self.written.iter_mut().find(|written| written.version == before) {
            Some(written) => written.version = version,
            None => self.written.push(Written { table, record, version }),
        }
        Ok(())
    }

    fn widen(&mut self, table: &Table, write: &WriteSet<'_, 'a>) {
        self.tools.intervals.widen(table.id(), write.columns, write.values);
    }
}

impl<'a> Context<'a> for NowContext<'a, '_> {
    type Row = NowRow<'a>;
    type Scan = RowScan<'a>;

    #[inline]
    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<NowRow<'a>, Stop> {
        let rows = self.definitions.table(table);
        let expected = self.cursor.find(self.expected, table, key);
        let record = expected.or_else(|| rows.find_short(&rows.short_key(key)?, self.guard));
        if record.is_some() {
            return Ok(NowRow { record, table });
        }
        rows.encode_key(key, &mut self.key)?;
        Ok(NowRow { record: rows.find(&self.key, self.guard), table })
    }

    #[inline]
    fn exists(&mut self, _: TableId, row: NowRow<'a>) -> Result<bool, Stop> {
        // SAFETY: the epoch is pinned during 'a.
        Ok(unsafe { chain::is_present(self.head(row)) })
    }

    #[inline]
    fn read(&mut self, table: TableId, row: NowRow<'a>, column: ColumnId) -> Result<Datum<'a>, Stop> {
        let data_type = self.definitions.table(table).types()[column.0 as usize];
        self.read_column(row, column, data_type)
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<RowScan<'a>, Stop> {
        let ScanRange { table, index, equal, lower, upper, descending, limit_hint, .. } = range;
        let range = Range { index, equal, lower, upper, descending };
        Ok(RowScan::open(self.definitions.table(table), &range, self.guard)?.expecting(limit_hint))
    }

    fn scan_next(&mut self, scan: &mut RowScan<'a>) -> Result<Option<NowRow<'a>>, Stop> {
        let table = scan.table().id();
        // SAFETY: the epoch is pinned during 'a.
        let Ok(next) = unsafe { scan.next_row(|record| Ok::<_, Infallible>(record.head())) };
        Ok(next.map(|(record, _)| NowRow { record: Some(record), table }))
    }

    fn insert(&mut self, table: TableId, write: WriteSet<'_, 'a>) -> Result<NowRow<'a>, Stop> {
        let table = self.definitions.table(table);
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let is_settled = write.sticky.is_empty();
        for &column in &table.schema().primary_key {
            let at = if is_settled { usize::from(column.0) } else { write.columns.rank(column) };
            key.push(write.values[at], table.types()[column.0 as usize], false)?;
        }
        let (record, is_new) = table.find_or_create(&key, self.guard);
        self.key = key;
        // SAFETY: the epoch is pinned.
        if !is_new && unsafe { chain::is_present(record.head()) } {
            let columns = &table.schema().primary_key;
            let values: Vec<Datum<'a>> =
                columns.iter().map(|&column| write.values[write.columns.rank(column)]).collect();
            return Err(duplicate(table.schema(), columns, &values, PRIMARY_KEY).into());
        }
        self.undo.push(Undo::Inserted { table, record });
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            self.enter(table, record, index, &write)?;
        }
        self.widen(table, &write);
        let contents = Contents {
            seq: self.seq,
            values_mask: write.columns,
            values: write.values,
            deltas: Deltas::default(),
            sticky: write.sticky,
            deferred: std::ptr::null_mut(),
        };
        self.push(table, record, Version::create(&contents, table.types()));
        if !is_new {
            self.fold(table, record, !write.sticky.is_empty());
        }
        Ok(NowRow { record: Some(record), table: table.id() })
    }

    fn update(&mut self, table: TableId, row: NowRow<'a>, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        let table = self.definitions.table(table);
        let record = row.record.expect("a row that is updated is there");
        if table.index_count() > 0 {
            let touched: Vec<IndexId> = table.indexes_of(write.columns).collect();
            for index in touched {
                let mut old = self.entry_key(table, record, index, None)?;
                let new = self.entry_key(table, record, index, Some(&write))?;
                if old != new {
                    table.mark_stale(index);
                    self.enter(table, record, index, &write)?;
                    old.extend(record.key());
                    self.undo.push(Undo::Stale { table, record, index, key: Box::new(old) });
                }
            }
        }
        self.widen(table, &write);
        // SAFETY: the epoch is pinned; the row is there, so it has a version.
        let top = unsafe { &*record.head() };
        if self.wrote(top) {
            return self.rewrite(table, record, top, &write);
        }
        if write.columns.is_empty() && write.sticky.is_empty() && self.merge(table, record, &write) {
            return Ok(());
        }
        let contents = Contents {
            seq: self.seq,
            values_mask: write.columns,
            values: write.values,
            deltas: write.deltas,
            sticky: write.sticky,
            deferred: std::ptr::null_mut(),
        };
        let key = if write.deltas.is_empty() {
            table.lacks_only_key(write.columns.union(write.sticky))
        } else {
            None
        };
        let version = match key.and_then(|key| Some((key, top.whole_row(key)?))) {
            Some((key, row)) => Version::create_over(&contents, key, row, table.types()),
            None => Version::create(&contents, table.types()),
        };
        self.push(table, record, version);
        self.fold(table, record, !write.sticky.is_empty());
        Ok(())
    }

    fn delete(&mut self, table: TableId, row: NowRow<'a>) -> Result<(), Stop> {
        let table = self.definitions.table(table);
        let record = row.record.expect("a row that is deleted is there");
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            let mut key = self.entry_key(table, record, index, None)?;
            // At once, since the call itself may insert the row again, with other values.
            table.mark_stale(index);
            key.extend(record.key());
            self.undo.push(Undo::Stale { table, record, index, key: Box::new(key) });
        }
        self.undo.push(Undo::Deleted { table, record });
        // SAFETY: the epoch is pinned; the row is there, so it has a version.
        let top = unsafe { &*record.head() };
        let tombstone = Version::create_tombstone(self.seq);
        if self.wrote(top) {
            // SAFETY: ours alone until published.
            unsafe { tombstone.as_ref().place_above(top.next()) };
            record.set_head(tombstone.as_ptr());
            let before = top.owner();
            self.undo.push(Undo::Replaced { table, record, before });
            self.written.retain(|written| written.version != before);
            self.written.push(Written { table, record, version: tombstone });
        } else {
            self.push(table, record, tombstone);
            self.fold(table, record, false);
        }
        Ok(())
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        self.random.next()
    }

    #[inline]
    fn capture(&mut self, value: Datum<'a>) {
        self.values.push(value);
    }

    #[inline]
    fn capture_row(&mut self, row: NowRow<'a>) {
        self.rows.push(row);
    }

    fn is_missing(&self, row: NowRow<'a>) -> bool {
        row.record.is_none()
    }
}

/// The deferred call at an address that a version names.
///
/// # Safety
/// The address was read from an open sticky while an epoch was pinned that still is.
pub unsafe fn deferred_at<'a>(address: *mut ()) -> &'a Deferred {
    // SAFETY: chunks are freed only after the epochs in which their addresses were read, as whoever calls this sees to.
    unsafe { &*address.cast::<Deferred>() }
}
