//! What calls tell of themselves while they run: the controls of the eager transaction.
//!
//! A call that runs has all its locks, so its control, [`Covered`], has nothing to do but to see that
//! nothing is accessed without one; of a call that has locked whole tables it notes what is written. In a
//! reconnaissance run there are no locks yet; [`Recorder`] writes down which ones the call would need.

use crate::footprint::{Footprint, Footprints};
use crate::lock::{Lock, LockSet};
use fabius_engine::eager::Control;
use fabius_engine::eager::granule::Granules;
use fabius_engine::eager::lock_mode::Mode;
use fabius_engine::eager::place::Take;
use fabius_engine::eager::workspace::Workspace;
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{ColumnMask, Key, Result, Seq, TableId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The control of a call that has its locks.
pub struct Covered<'a> {
    granules: &'a Granules,
    footprints: &'a Footprints,
    /// The locks of the call that runs.
    pub locks: LockSet,
    /// Whether it has locked ranges: granules that lie in them have no locks of their own.
    pub has_ranges: bool,
    /// What it has written, if it has locked whole tables besides.
    pub written: Option<LockSet>,
}

impl<'a> Covered<'a> {
    /// A control without locks.
    pub fn new(granules: &'a Granules, footprints: &'a Footprints) -> Covered<'a> {
        Covered { granules, footprints, locks: LockSet::default(), has_ranges: false, written: None }
    }

    #[inline]
    fn row(&self, table: TableId, record: &Record, mode: Mode) -> Result<(), Stop> {
        let is_covered = self.written.is_some()
            || self.locks.covers(Lock::of_record(table, record, mode))
            || self.footprints.covers(table, record.key(), mode, self.granules, &self.locks);
        assert!(is_covered, "a row of table {} is accessed without its lock", table.0);
        Ok(())
    }

    fn granule(&mut self, granule: &AtomicU64, mode: Mode) -> Result<(), Stop> {
        let lock = Lock::of_granule(self.granules, granule, mode);
        match &mut self.written {
            Some(written) if mode != Mode::Shared => written.add(lock.deciding(true)),
            Some(_) => {}
            None => assert!(
                self.has_ranges || self.locks.covers(lock),
                "a granule is accessed without its lock: {mode:?}"
            ),
        }
        Ok(())
    }
}

impl<'a> Control<'a> for Covered<'a> {
    #[inline]
    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.row(table, record, Mode::Shared)
    }

    fn scans(&mut self, _: TableId, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.granule(granule, Mode::Shared)
    }

    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.row(table, record, Mode::Shared)
    }

    #[inline]
    fn writes(&mut self, table: TableId, record: &'a Record, columns: ColumnMask) -> Result<(), Stop> {
        if let Some(written) = &mut self.written {
            let lock = Lock::of_record(table, record, Mode::Exclusive);
            written.add(lock.deciding(self.footprints.decide(table, columns)));
        }
        self.row(table, record, Mode::Exclusive)
    }

    fn changes(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.granule(granule, Mode::Intent)
    }

    fn claims(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.granule(granule, Mode::Exclusive)
    }
}

/// The control of a reconnaissance run.
pub struct Recorder<'a> {
    granules: &'a Granules,
    footprints: &'a Footprints,
    /// The procedure.
    pub footprint: Arc<Footprint>,
    /// What the call would lock; not sealed.
    pub locks: LockSet,
    /// Places of those locks under which it has read what decides about the others.
    pub determining: Vec<u32>,
}

impl<'a> Recorder<'a> {
    /// A recorder that has recorded nothing.
    pub fn new(granules: &'a Granules, footprints: &'a Footprints) -> Recorder<'a> {
        let (footprint, locks, determining) = Default::default();
        Recorder { granules, footprints, footprint, locks, determining }
    }

    /// Adds the locks of a row, whose values may decide about the others.
    fn row(&mut self, table: TableId, record: &Record, lock: Lock, is_determining: bool) {
        let before = self.locks.len();
        self.locks.add(lock);
        let (columns, writes) = (self.footprints.key_columns(table), lock.mode() == Mode::Exclusive);
        self.footprints.lock_around(table, record.key(), columns, writes, self.granules, &mut self.locks);
        if is_determining {
            self.determine(before);
        }
    }

    /// What was read under the locks that have been added since decides about the others.
    fn determine(&mut self, before: usize) {
        self.determining.extend(self.locks.iter().skip(before).map(|lock| lock.place() as u32));
    }
}

impl<'a> Control<'a> for Recorder<'a> {
    fn begin(&mut self) {
        self.locks.clear();
        self.determining.clear();
    }

    fn begin_again(&mut self) {
        self.begin();
    }

    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        let mode = Mode::of_row(self.footprint.writes_located(table));
        let lock = Lock::of_record(table, record, mode);
        self.row(table, record, lock, self.footprint.determines_located(table));
        Ok(())
    }

    fn scans_below(&mut self, table: TableId, prefix: &Key, columns: usize) {
        let before = self.locks.len();
        self.footprints.lock_around(table, prefix.bytes(), columns, false, self.granules, &mut self.locks);
        self.determine(before);
    }

    fn scans(&mut self, _: TableId, granule: &'a AtomicU64) -> Result<(), Stop> {
        let before = self.locks.len();
        self.locks.add(Lock::of_granule(self.granules, granule, Mode::Shared));
        self.determine(before);
        Ok(())
    }

    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        let mode = Mode::of_row(self.footprint.writes_scanned(table));
        let lock = Lock::of_record(table, record, mode);
        self.row(table, record, lock, self.footprint.determines_scanned(table));
        Ok(())
    }

    fn writes(&mut self, table: TableId, record: &'a Record, columns: ColumnMask) -> Result<(), Stop> {
        let lock = Lock::of_record(table, record, Mode::Exclusive);
        self.row(table, record, lock.deciding(self.footprints.decide(table, columns)), false);
        Ok(())
    }

    fn changes(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.locks.add(Lock::of_granule(self.granules, granule, Mode::Intent).deciding(true));
        Ok(())
    }

    fn claims(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.locks.add(Lock::of_granule(self.granules, granule, Mode::Exclusive).deciding(true));
        Ok(())
    }

    fn certify(&mut self, _: &Workspace<'a>, _: &mut Take<'_>) -> Result<Option<Seq>> {
        unreachable!("reconnaissance comes to nothing")
    }
}
