//! The later-phase's view of the database: the state just before its call, and its own versions.
//!
//! Rows that the now-phase captured come with the version to begin at, so no index is searched for
//! them and newer versions on top cost nothing. A sticky of another call ends the step with
//! [`Stop::Blocked`]; the substantiation loop runs that call and comes back.

use crate::deferred::{CapturedRow, Deferred};
use crossbeam_epoch::Guard;
use fabius_engine::{Definitions, random::CallRandom};
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_storage::{
    Cell, chain, slot,
    table::{Range, RowScan},
};
use fabius_value::{ColumnId, Datum, Error, Key, Result, SqlState, TableId};

/// A row as the later-phase knows it: the newest version it sees, null if the row is missing.
pub type LaterRow = *const fabius_storage::Version;

/// The context of one deferred call while it runs.
pub struct LaterContext<'a> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    deferred: &'a Deferred,
    values: std::slice::Iter<'a, Datum<'static>>,
    rows: std::slice::Iter<'a, CapturedRow>,
    random: CallRandom,
    replaced: Vec<u64>,
    key: Key,
    /// The call whose sticky ended the last step.
    pub blocked_on: *mut (),
}

impl<'a> LaterContext<'a> {
    /// The context for a call that the caller has claimed.
    pub fn new(definitions: &'a Definitions, guard: &'a Guard, deferred: &'a Deferred) -> LaterContext<'a> {
        // SAFETY: the captured lists live in the chunk, which outlives the pinned epoch.
        let (values, rows) = unsafe { (deferred.values.as_ref(), deferred.rows.as_ref()) };
        LaterContext {
            definitions,
            guard,
            deferred,
            values: values.iter(),
            rows: rows.iter(),
            random: CallRandom::new(deferred.seq),
            replaced: Vec::new(),
            key: Key::new(),
            blocked_on: std::ptr::null_mut(),
        }
    }

    fn own(&self) -> *mut () {
        std::ptr::from_ref(self.deferred).cast_mut().cast()
    }
}

impl Drop for LaterContext<'_> {
    fn drop(&mut self) {
        for block in self.replaced.drain(..) {
            // SAFETY: replaced by a later fill; the frame that read it is over.
            unsafe { slot::free(block) };
        }
    }
}

impl<'a> Context<'a> for LaterContext<'a> {
    type Row = LaterRow;
    type Scan = RowScan<'a>;

    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<LaterRow, Stop> {
        let table = self.definitions.table(table);
        table.encode_key(key, &mut self.key)?;
        let record = table.find(&self.key, self.guard);
        // SAFETY: the epoch is pinned during 'a.
        Ok(record.map_or(std::ptr::null(), |record| unsafe { record.visible(self.deferred.seq) }))
    }

    fn exists(&mut self, _: TableId, row: LaterRow) -> Result<bool, Stop> {
        // SAFETY: as above.
        Ok(unsafe { chain::is_present(row) })
    }

    #[inline]
    fn read(&mut self, table: TableId, row: LaterRow, column: ColumnId) -> Result<Datum<'a>, Stop> {
        let data_type = self.definitions.table(table).types()[column.0 as usize];
        // SAFETY: as above; captured versions outlive their call.
        match unsafe { chain::read(row, column, data_type, self.own()) } {
            Cell::Value(value) => Ok(value),
            Cell::Pending(deferred) => {
                self.blocked_on = deferred;
                Err(Stop::Blocked)
            }
            Cell::Absent => Ok(Datum::Null),
        }
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<RowScan<'a>, Stop> {
        let ScanRange { table, index, equal, lower, upper, descending, .. } = range;
        let range = Range { index, equal, lower, upper, descending };
        Ok(RowScan::open(self.definitions.table(table), &range, self.guard)?)
    }

    fn scan_next(&mut self, scan: &mut RowScan<'a>) -> Result<Option<LaterRow>, Stop> {
        // SAFETY: the epoch is pinned during 'a.
        Ok(unsafe { scan.next_row(|record| record.visible(self.deferred.seq)) }.map(|(_, version)| version))
    }

    fn insert(&mut self, _: TableId, _: WriteSet<'_, 'a>) -> Result<LaterRow, Stop> {
        unreachable!("keys are placed in the now-phase")
    }

    fn update(&mut self, _: TableId, _: LaterRow, _: WriteSet<'_, 'a>) -> Result<(), Stop> {
        unreachable!("the later-phase fills what the now-phase has placed")
    }

    fn delete(&mut self, _: TableId, _: LaterRow) -> Result<(), Stop> {
        unreachable!("rows are deleted in the now-phase")
    }

    fn now(&self) -> i64 {
        self.deferred.time_us
    }

    fn random(&mut self) -> f64 {
        self.random.next()
    }

    #[inline]
    fn restore(&mut self) -> Datum<'a> {
        *self.values.next().expect("what is restored was captured")
    }

    #[inline]
    fn restore_row(&mut self) -> LaterRow {
        self.rows.next().expect("what is restored was captured").version
    }

    fn fill(&mut self, table: TableId, row: LaterRow, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        let types = self.definitions.table(table).types();
        // SAFETY: a row that is filled was written by this call, so it has a version.
        let version = unsafe { row.as_ref() }.expect("the now-phase wrote this row");
        if version.seq() != self.deferred.seq || version.is_tombstone() {
            // The same call deleted the row afterwards: nobody will read the values.
            return Ok(());
        }
        for (column, &value) in write.columns.iter().zip(write.values) {
            if version.sticky().contains(column) {
                self.replaced.extend(version.fill(column, value, types[column.0 as usize]));
            }
        }
        Ok(())
    }

    fn is_missing(&self, row: LaterRow) -> bool {
        row.is_null()
    }
}

/// The error of a later-phase that could not keep its promise: a bug, reported with all that is
/// needed to find it.
pub fn broken_promise(deferred: &Deferred, program: &str, error: &Error) -> Error {
    Error::new(SqlState(*b"XX000"), "a promised call failed in its later-phase")
        .with_detail(format!("call {} of procedure {program}: {error:?}", deferred.seq))
        .with_hint("this is a defect of Fabius; please report it with the log")
}
