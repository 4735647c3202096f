//! Two-phase locking as the control of an eager engine.
//!
//! | access | locks |
//! |---|---|
//! | lookup by key | the record, shared; a missing one too |
//! | scan | its granule, shared; each row found, shared |
//! | insert, update, delete | the record, exclusive; granules around changed entries, intent; unique values, exclusive |
//!
//! Locks are held until the call has ended and its writes can be seen (*strict* two-phase locking), and a
//! call takes its place in the order when it has them all: so if two calls conflict, the one that had the
//! locks first comes first. Rows of tables where the program writes whatever it looks up are locked
//! exclusively at once ([`fabius_engine::eager::plan`]).

use crate::wait::{Locks, Wounded};
use fabius_engine::eager::lock_mode::Mode;
use fabius_engine::eager::plan::Plan;
use fabius_engine::eager::{Control, Protocol};
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{ColumnMask, TableId};
use std::sync::atomic::AtomicU64;

/// Strict two-phase locking with wound-wait.
#[derive(Default)]
pub struct WoundWait {
    locks: Locks,
}

impl Protocol for WoundWait {
    const NAME: &'static str = "2pl";

    type Control<'a> = Locking<'a>;

    fn enter(&self) -> Option<usize> {
        self.locks.claim()
    }

    fn leave(&self, slot: usize) {
        self.locks.leave(slot);
    }

    fn rouse(&self) {
        self.locks.stop();
    }

    fn control<'a>(&'a self, slot: usize) -> Locking<'a> {
        Locking { locks: &self.locks, slot, held: Vec::new(), plan: None }
    }
}

/// The locks of the call that a thread runs.
pub struct Locking<'a> {
    locks: &'a Locks,
    slot: usize,
    held: Vec<&'a AtomicU64>,
    plan: Option<&'a Plan>,
}

impl From<Wounded> for Stop {
    fn from(_: Wounded) -> Stop {
        Stop::Restart
    }
}

impl<'a> Locking<'a> {
    #[inline]
    fn lock(&mut self, word: &'a AtomicU64, mode: Mode) -> Result<(), Stop> {
        Ok(self.locks.take(word, self.slot, mode, &mut self.held)?)
    }

    #[inline]
    fn lock_read(&mut self, record: &'a Record, to_write: impl Fn(&Plan) -> bool) -> Result<(), Stop> {
        let mode = Mode::of_row(self.plan.is_some_and(to_write));
        self.lock(record.lock(), mode)
    }
}

impl<'a> Control<'a> for Locking<'a> {
    fn begin(&mut self) {
        self.locks.begin(self.slot);
    }

    fn begin_again(&mut self) {
        self.locks.begin_again(self.slot);
    }

    fn runs(&mut self, plan: &'a Plan) {
        self.plan = Some(plan);
    }

    #[inline]
    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.lock_read(record, |plan| plan.locates_to_write[table.0 as usize])
    }

    fn scans(&mut self, _: TableId, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.lock(granule, Mode::Shared)
    }

    #[inline]
    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.lock_read(record, |plan| plan.scans_to_write[table.0 as usize])
    }

    #[inline]
    fn writes(&mut self, _: TableId, record: &'a Record, _: ColumnMask) -> Result<(), Stop> {
        self.lock(record.lock(), Mode::Exclusive)
    }

    fn changes(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.lock(granule, Mode::Intent)
    }

    fn claims(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.lock(granule, Mode::Exclusive)
    }

    fn release(&mut self) {
        self.locks.give_back(self.slot, &mut self.held);
    }
}
