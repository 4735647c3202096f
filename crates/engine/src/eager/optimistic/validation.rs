//! What a call has seen and is going to write, and how it commits: Silo's three phases.

use crate::eager::Control;
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
    attempts_max: u32,
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
    /// The control of the thread with this number, below [`word::SLOTS_MAX`].
    /// A call that was refused so often runs alone.
    pub fn new(number: usize, attempts_max: u32) -> Optimistic<'a> {
        Optimistic {
            owner: Owner::of_slot(number),
            attempts_max,
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
        if schedule::is_simulated() {
            // Which lock is found taken first is the same each time only if addresses do not say it.
            self.write_set.sort_unstable_by_key(|(table, record)| (*table, record.key()));
        } else {
            self.write_set.sort_unstable_by_key(|(_, record)| std::ptr::from_ref(*record).addr());
        }
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
    fn attempts_max(&self) -> u32 {
        self.attempts_max
    }

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

    fn aborts(&mut self) -> Result<(), Stop> {
        // Rows that were never there together may be why. It has nothing to lock, and takes no seq if so.
        self.validate().map_err(|conflict| {
            self.conflict = conflict;
            Stop::Restart
        })
    }

    fn certify(&mut self, workspace: &Workspace<'a>, take: &mut Take<'_>) -> Result<Option<Seq>> {
        schedule::point("lock");
        if !self.lock_write_set(workspace) {
            return Ok(None);
        }
        schedule::point("validate");
        // What is refused here takes no seq.
        if !workspace.writes.is_empty()
            && let Err(conflict) = self.validate()
        {
            self.conflict = conflict;
            return Ok(None);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eager::optimistic::ATTEMPTS_MAX;
    use std::ptr::NonNull;

    const TABLE: TableId = TableId(3);

    /// A record without versions.
    struct Missing(NonNull<Record>);

    impl Missing {
        fn new() -> Missing {
            Missing(Record::create(b"key"))
        }

        fn record(&self) -> &Record {
            // SAFETY: it lives as long as this.
            unsafe { self.0.as_ref() }
        }
    }

    impl Drop for Missing {
        fn drop(&mut self) {
            let head = NonNull::new(self.record().head().cast_mut());
            // SAFETY: nobody else has seen it or its only version, which has no values.
            head.into_iter().for_each(|version| unsafe { Version::free(version, ColumnMask::EMPTY) });
            // SAFETY: nobody else has seen it.
            unsafe { Record::free(self.0) };
        }
    }

    /// The place that a call gets which has nothing to write, if what it has seen is as it was.
    fn certify<'a>(call: &mut Optimistic<'a>) -> Option<Seq> {
        let seq = call.certify(&Workspace::default(), &mut |is_valid| Ok(is_valid().then_some(Seq(9))));
        seq.expect("there is no log to end")
    }

    fn reader<'a>(record: &'a Record) -> Optimistic<'a> {
        let mut call = Optimistic::new(1, ATTEMPTS_MAX);
        call.begin();
        call.looks_up(TABLE, record).expect("a lookup is not refused");
        call.observes(TABLE, record, None);
        call
    }

    /// Goal: a call is refused for a record of its read set that has another TID, or that another call has locked, and
    /// says for which; not for its own lock, nor for one that was given back without a new version.
    #[test]
    fn a_read_set_that_has_changed_is_refused() {
        let (missing, other) = (Missing::new(), Owner::of_slot(2));
        let record = missing.record();
        let mut call = reader(record);
        assert!(word::try_lock(record.lock(), other));
        assert_eq!(certify(&mut call), None);
        assert!(call.conflict().is_some_and(|(table, at)| table == TABLE && std::ptr::eq(at, record)));
        word::unlock(record.lock());
        assert_eq!(certify(&mut call), Some(Seq(9)));
        call.release();

        let mut call = reader(record);
        assert!(word::try_lock(record.lock(), call.owner));
        assert_eq!(certify(&mut call), Some(Seq(9)), "the lock is its own");
        word::unlock(record.lock());
        record.push(Version::create_tombstone(Seq(4)));
        assert_eq!(certify(&mut call), None, "there is a version now");
        assert!(call.conflict().is_some_and(|(_, at)| std::ptr::eq(at, record)));
        call.release();
        assert!(call.is_free());
    }

    /// Goal: a call is refused for a granule of its node set that has been changed or is being changed, and for no
    /// record then; not for a change that was given up.
    #[test]
    fn a_node_set_that_has_changed_is_refused() {
        let granule = AtomicU64::new(0);
        let mut call = Optimistic::new(1, ATTEMPTS_MAX);
        call.begin();
        call.scans(TABLE, &granule).expect("nobody changes it");
        assert_eq!(certify(&mut call), Some(Seq(9)));
        word::raise(&granule);
        assert_eq!(certify(&mut call), None, "a change is under way");
        word::lower(&granule, false);
        assert_eq!(certify(&mut call), Some(Seq(9)), "it was given up");
        word::raise(&granule);
        word::lower(&granule, true);
        assert_eq!(certify(&mut call), None, "a change was made");
        assert!(call.conflict().is_none());
        call.release();
        word::raise(&granule);
        assert!(matches!(call.scans(TABLE, &granule), Err(Stop::Restart)), "it is not begun then");
    }
}
