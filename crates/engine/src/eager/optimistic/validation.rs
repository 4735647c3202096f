//! What a call has seen and is going to write, and how it commits: Silo's three phases.

use crate::eager::Control;
use crate::eager::optimistic::ATTEMPTS_MAX;
use crate::eager::optimistic::backoff::Backoff;
use crate::eager::optimistic::word::{self, Claim, Count, Owner};
use crate::eager::place::Take;
use crate::eager::workspace::Workspace;
use fabius_env::schedule;
use fabius_program::context::Stop;
use fabius_storage::{Record, Version};
use fabius_value::{ColumnMask, Result, Seq, TableId};
use std::sync::atomic::AtomicU64;

/// How often a call that is going to read a record looks whether its new version is installed.
const SPINS: u32 = 100;

/// A record as a call has seen it.
struct Read<'a> {
    table: TableId,
    record: &'a Record,
    /// The newest version, which has its TID; null if there was none.
    version: *const Version,
}

/// The optimistic control of the calls that one thread runs.
pub struct Optimistic<'a> {
    owner: Owner,
    backoff: Backoff,
    read_set: Vec<Read<'a>>,
    node_set: Vec<(&'a AtomicU64, Count)>,
    change_set: Vec<&'a AtomicU64>,
    claims: Vec<&'a AtomicU64>,
    /// The records of the write set; of these, so many are locked.
    write_set: Vec<(TableId, &'a Record)>,
    locked: usize,
    is_raised: bool,
    is_valid: bool,
    conflict: Option<(TableId, &'a Record)>,
}

impl<'a> Optimistic<'a> {
    /// The control of the thread with this number, at most 254.
    pub fn new(number: usize) -> Optimistic<'a> {
        Optimistic {
            owner: Owner::of_slot(number),
            backoff: Backoff::new(number),
            read_set: Vec::new(),
            node_set: Vec::new(),
            change_set: Vec::new(),
            claims: Vec::new(),
            write_set: Vec::new(),
            locked: 0,
            is_raised: false,
            is_valid: false,
            conflict: None,
        }
    }

    /// The record for whose sake the last attempt was refused, if it was for one.
    pub fn conflict(&self) -> Option<(TableId, &'a Record)> {
        self.conflict
    }

    /// Whether the call has seen nothing that could change, and holds nothing.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.read_set.is_empty()
            && self.node_set.is_empty()
            && self.change_set.is_empty()
            && self.claims.is_empty()
    }

    /// Phase 1: locks the write set, in the order of addresses, so that of two calls that want the same
    /// records the first to lock one gets all. It does not wait: whoever has a lock is going to install a
    /// version that this call has not seen. Split records ([`word::split`]) have no lock.
    ///
    /// Whether all are locked.
    fn lock_write_set(&mut self, workspace: &Workspace<'a>) -> bool {
        let writes = workspace.writes.iter().filter(|write| word::split_place(write.record.lock()).is_none());
        self.write_set.extend(writes.map(|write| (write.table.id(), write.record)));
        self.write_set.sort_unstable_by_key(|(_, record)| std::ptr::from_ref(*record).addr());
        for at in 0..self.write_set.len() {
            let (table, record) = self.write_set[at];
            if !word::try_lock(record.lock(), self.owner) {
                self.conflict = Some((table, record));
                return false;
            }
            self.locked = at + 1;
        }
        if !workspace.writes.is_empty() && !self.change_set.is_empty() {
            self.change_set.sort_unstable_by_key(|granule| std::ptr::from_ref(*granule).addr());
            self.change_set.dedup_by_key(|granule| std::ptr::from_ref(*granule).addr());
            self.change_set.iter().for_each(|granule| word::raise(granule));
            self.is_raised = true;
        }
        true
    }

    /// Phase 2, without taking the seq: whether all that was seen still is as it was; if not, where.
    fn validate(&self) -> std::result::Result<(), Option<(TableId, &'a Record)>> {
        for read in &self.read_set {
            // The lock first: once it is given back, the new version is there.
            if word::is_locked_by_other(read.record.lock(), self.owner) || read.record.head() != read.version
            {
                return Err(Some((read.table, read.record)));
            }
        }
        let is_own = |granule: &AtomicU64| {
            let address = |granule: &AtomicU64| std::ptr::from_ref(granule).addr();
            self.is_raised
                && self.change_set.binary_search_by_key(&address(granule), |own| address(own)).is_ok()
        };
        let is_unchanged =
            |(granule, count): &(&AtomicU64, Count)| word::is_unchanged(granule, *count, is_own(granule));
        if self.node_set.iter().all(is_unchanged) { Ok(()) } else { Err(None) }
    }

    /// Whoever has locked a record has its seq, or gets it soon, and is going to unlock the record then.
    #[inline]
    fn await_writer(&self, record: &Record) {
        let mut spins = if schedule::is_simulated() { SPINS } else { 0 };
        while spins < SPINS && word::is_locked_by_other(record.lock(), self.owner) {
            std::hint::spin_loop();
            spins += 1;
        }
    }
}

impl<'a> Control<'a> for Optimistic<'a> {
    const ATTEMPTS_MAX: u32 = ATTEMPTS_MAX;

    fn begin(&mut self) {
        self.backoff.reset();
    }

    fn begin_again(&mut self) {
        self.conflict = None;
        self.backoff.wait();
    }

    #[inline]
    fn looks_up(&mut self, _: TableId, record: &'a Record) -> Result<(), Stop> {
        schedule::point("read");
        self.await_writer(record);
        Ok(())
    }

    #[inline]
    fn observes(
        &mut self,
        table: TableId,
        record: &'a Record,
        version: Option<&'a Version>,
    ) -> Option<&'a Version> {
        let seen = version.map_or(std::ptr::null(), std::ptr::from_ref);
        self.read_set.push(Read { table, record, version: seen });
        version
    }

    fn scans(&mut self, _: TableId, granule: &'a AtomicU64) -> Result<(), Stop> {
        schedule::point("scan");
        let count = word::observe(granule).ok_or(Stop::Restart)?;
        self.node_set.push((granule, count));
        Ok(())
    }

    #[inline]
    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.looks_up(table, record)
    }

    #[inline]
    fn writes(&mut self, _: TableId, _: &'a Record, _: ColumnMask) -> Result<(), Stop> {
        Ok(())
    }

    fn changes(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.change_set.push(granule);
        Ok(())
    }

    fn claims(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        schedule::point("claim");
        match word::claim(granule, self.owner) {
            Claim::Taken => self.claims.push(granule),
            Claim::Held => {}
            Claim::Refused => return Err(Stop::Restart),
        }
        Ok(())
    }

    fn certify(&mut self, workspace: &Workspace<'a>, take: &mut Take<'_>) -> Result<Option<Seq>> {
        schedule::point("lock");
        if !self.lock_write_set(workspace) {
            return Ok(None);
        }
        schedule::point("validate");
        let mut conflict = None;
        let seq = take(&mut || self.validate().map_err(|at| conflict = at).is_ok())?;
        self.conflict = conflict;
        self.is_valid = seq.is_some();
        Ok(seq)
    }

    fn release(&mut self) {
        for (_, record) in &self.write_set[..self.locked] {
            word::unlock(record.lock());
        }
        if self.is_raised {
            self.change_set.iter().for_each(|granule| word::lower(granule, self.is_valid));
        }
        self.claims.drain(..).for_each(word::disclaim);
        self.read_set.clear();
        self.node_set.clear();
        self.change_set.clear();
        self.write_set.clear();
        self.locked = 0;
        self.is_raised = false;
        self.is_valid = false;
    }
}
