//! What calls tell of themselves while they run: the controls of the eager transaction.
//!
//! A call that runs has all its locks, so its control, [`Covered`], has nothing to do but to see that
//! nothing is accessed without one. In a reconnaissance run there are no locks yet; [`Recorder`] writes down
//! which ones the call would need.

use crate::footprint::{Deciding, Footprint, decide};
use crate::lock::{Lock, LockSet, Mode};
use fabius_engine::eager::Control;
use fabius_engine::eager::granule::Granules;
use fabius_engine::eager::place::Take;
use fabius_engine::eager::workspace::Workspace;
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{ColumnMask, Result, Seq, TableId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The control of a call that has its locks.
pub struct Covered<'a> {
    granules: &'a Granules,
    /// The locks of the call that runs.
    pub locks: LockSet,
    /// Whether it has locked whole tables besides.
    pub is_certain: bool,
}

impl<'a> Covered<'a> {
    /// A control whose calls run alone, until it is told otherwise.
    pub fn new(granules: &'a Granules) -> Covered<'a> {
        Covered { granules, locks: LockSet::default(), is_certain: true }
    }

    #[inline]
    fn row(&self, table: TableId, record: &Record, mode: Mode) -> Result<(), Stop> {
        if !self.is_certain {
            let lock = Lock::of_record(table, record, mode);
            assert!(self.locks.covers(lock), "a row of table {} is accessed without its lock", table.0);
        }
        Ok(())
    }

    #[inline]
    fn granule(&self, granule: &AtomicU64, mode: Mode) -> Result<(), Stop> {
        if !self.is_certain {
            let lock = Lock::of_granule(self.granules, granule, mode);
            assert!(self.locks.covers(lock), "a granule is accessed without its lock: {mode:?}");
        }
        Ok(())
    }
}

impl<'a> Control<'a> for Covered<'a> {
    fn begin_again(&mut self) {
        unreachable!("a call that has its locks is not refused")
    }

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
    fn writes(&mut self, table: TableId, record: &'a Record, _: ColumnMask) -> Result<(), Stop> {
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
    /// The procedure.
    pub footprint: Arc<Footprint>,
    /// Columns that decide what calls lock.
    pub deciding: Deciding,
    /// What the call would lock; not sealed.
    pub locks: LockSet,
    /// Places of those locks under which it has read what decides about the others.
    pub determining: Vec<u32>,
}

impl<'a> Recorder<'a> {
    /// A recorder that has recorded nothing.
    pub fn new(granules: &'a Granules) -> Recorder<'a> {
        let (footprint, deciding) = Default::default();
        Recorder { granules, footprint, deciding, locks: LockSet::default(), determining: Vec::new() }
    }

    fn add_read(&mut self, lock: Lock, is_determining: bool) -> Result<(), Stop> {
        if is_determining {
            self.determining.push(lock.place() as u32);
        }
        self.locks.add(lock);
        Ok(())
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
        let lock = Lock::of_record(table, record, self.footprint.located_mode(table));
        self.add_read(lock, self.footprint.determines_located(table))
    }

    fn scans(&mut self, _: TableId, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.add_read(Lock::of_granule(self.granules, granule, Mode::Shared), true)
    }

    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        let lock = Lock::of_record(table, record, self.footprint.scanned_mode(table));
        self.add_read(lock, self.footprint.determines_scanned(table))
    }

    fn writes(&mut self, table: TableId, record: &'a Record, columns: ColumnMask) -> Result<(), Stop> {
        let lock = Lock::of_record(table, record, Mode::Exclusive);
        self.locks.add(lock.deciding(decide(&self.deciding, table, columns)));
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
