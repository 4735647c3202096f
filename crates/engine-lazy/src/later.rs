//! The later-phase's view of the database: the state just before its call, and its own versions.
//!
//! Rows that the now-phase captured come with the version to begin at, so no index is searched for
//! them and newer versions on top cost nothing. A sticky of another call ends the step with
//! [`Stop::Blocked`]; the substantiation loop runs that call and comes back.

use crate::captured::Rows;
use crate::deferred::Deferred;
use crossbeam_epoch::Guard;
use fabius_engine::Definitions;
use fabius_engine::join::JoinScan;
use fabius_engine::reader::SnapshotContext;
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_storage::{chain::Visible, slot};
use fabius_value::{ColumnId, Datum, Error, Result, SqlState, TableId};

/// The context of one deferred call while it runs.
pub struct LaterContext<'a> {
    view: SnapshotContext<'a>,
    definitions: &'a Definitions,
    deferred: &'a Deferred,
    values: std::slice::Iter<'a, Datum<'static>>,
    rows: Rows<'a>,
    replaced: Vec<u64>,
}

impl<'a> LaterContext<'a> {
    /// The context for a call that the caller has claimed.
    pub fn new(definitions: &'a Definitions, guard: &'a Guard, deferred: &'a Deferred) -> LaterContext<'a> {
        let own = std::ptr::from_ref(deferred).cast_mut().cast();
        LaterContext {
            view: SnapshotContext::new(definitions, guard, deferred.seq, deferred.time_us())
                .on_behalf_of(own),
            definitions,
            deferred,
            values: deferred.values().iter(),
            rows: deferred.rows(),
            replaced: Vec::new(),
        }
    }

    /// The call whose sticky ended the last step.
    pub fn blocked_on(&self) -> *mut () {
        self.view.blocked_on
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
    type Row = Visible;
    type Scan = JoinScan<'a>;

    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Visible, Stop> {
        self.view.locate(table, key)
    }

    fn exists(&mut self, table: TableId, row: Visible) -> Result<bool, Stop> {
        self.view.exists(table, row)
    }

    #[inline]
    fn read(&mut self, table: TableId, row: Visible, column: ColumnId) -> Result<Datum<'a>, Stop> {
        self.view.read(table, row, column)
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<JoinScan<'a>, Stop> {
        self.view.scan_open(range)
    }

    fn scan_next(&mut self, scan: &mut JoinScan<'a>) -> Result<Option<Visible>, Stop> {
        self.view.scan_next(scan)
    }

    fn insert(&mut self, _: TableId, _: WriteSet<'_, 'a>) -> Result<Visible, Stop> {
        unreachable!("keys are placed in the now-phase")
    }

    fn update(&mut self, _: TableId, _: Visible, _: WriteSet<'_, 'a>) -> Result<(), Stop> {
        unreachable!("the later-phase fills what the now-phase has placed")
    }

    fn delete(&mut self, _: TableId, _: Visible) -> Result<(), Stop> {
        unreachable!("rows are deleted in the now-phase")
    }

    fn now(&self) -> i64 {
        self.view.now()
    }

    fn random(&mut self) -> f64 {
        self.view.random()
    }

    #[inline]
    fn restore(&mut self) -> Datum<'a> {
        *self.values.next().expect("what is restored was captured")
    }

    #[inline]
    fn restore_row(&mut self) -> Visible {
        Visible(self.rows.next().expect("what is restored was captured").version)
    }

    fn fill(&mut self, table: TableId, row: Visible, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        let types = self.definitions.table(table).types();
        // SAFETY: a row that is filled was written by this call, so it has a version.
        let version = unsafe { row.0.as_ref() }.expect("the now-phase wrote this row");
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

    fn is_missing(&self, row: Visible) -> bool {
        row.0.is_null()
    }
}

/// The error of a later-phase that could not keep its promise: a bug, reported with all that is
/// needed to find it.
pub fn broken_promise(deferred: &Deferred, program: &str, error: &Error) -> Error {
    Error::new(SqlState(*b"XX000"), "a promised call failed in its later-phase")
        .with_detail(format!("call {} of procedure {program}: {error:?}", deferred.seq))
        .with_hint("this is a defect of Fabius; please report it with the log")
}
