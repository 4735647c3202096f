//! What a call does in a phase: optimistic control for all but split records.
//!
//! | access to a split record | in a split phase |
//! |---|---|
//! | looked up or met by a program that only applies the record's operations | reads the stand-in |
//! | updated, each column once | the operands go to the core's slice when the call commits |
//! | anything else, or an abort after it has met a stand-in | the call is stashed |

use crate::doppel::Doppel;
use crate::phase::SplitPhase;
use crate::slice::Slice;
use fabius_engine::eager::Control;
use fabius_engine::eager::optimistic::{Optimistic, word};
use fabius_engine::eager::place::Take;
use fabius_engine::eager::plan::Plan;
use fabius_engine::eager::workspace::{Image, Workspace, Write};
use fabius_program::context::Stop;
use fabius_program::slice::operation::TableOperations;
use fabius_storage::{Record, Version};
use fabius_value::{ColumnMask, Result, Seq, TableId};
use parking_lot::MutexGuard;
use std::sync::atomic::AtomicU64;

/// The control of the calls that one core runs in a turn, all of it in one phase.
pub struct Splitting<'a> {
    doppel: &'a Doppel,
    core: usize,
    phase: Option<&'a SplitPhase>,
    /// The core's slices, by the place of the split record.
    slices: MutexGuard<'a, Vec<Slice>>,
    optimistic: Optimistic<'a>,
    plan: Option<&'a Plan>,
    /// Split records that the call has met, and the columns that it has written of them.
    met: Vec<(usize, ColumnMask)>,
    is_put_off: bool,
    /// Calls so far.
    calls: u64,
}

impl<'a> Splitting<'a> {
    /// The control of the thread with this number, for one turn.
    pub fn new(doppel: &'a Doppel, core: usize) -> Splitting<'a> {
        let phase = doppel.phase();
        let slices = doppel.begin_turn(phase, core);
        let optimistic = Optimistic::new(core, doppel.policy.attempts_max);
        let (met, is_put_off) = (Vec::new(), false);
        Splitting { doppel, core, phase, slices, optimistic, plan: None, met, is_put_off, calls: 0 }
    }

    fn does(&self, table: TableId) -> Option<&'a TableOperations> {
        self.plan?.operations.iter().find(|operations| operations.table == table)
    }

    /// The place of a record that is split in this phase.
    #[inline]
    fn place(&self, record: &Record) -> Option<usize> {
        self.phase.and_then(|_| word::split_place(record.lock()))
    }

    /// The call has to wait for the joined phase.
    #[cold]
    fn stash(&mut self) -> Stop {
        self.is_put_off = true;
        Stop::Restart
    }

    #[inline]
    fn meet(&mut self, table: TableId, place: usize) -> Result<(), Stop> {
        let record = &self.phase.expect("a split phase").records[place];
        if !record.admits(self.does(table)) {
            self.slices[place].stashed += 1;
            return Err(self.stash());
        }
        if self.met.iter().all(|(met, _)| *met != place) {
            self.met.push((place, ColumnMask::EMPTY));
        }
        Ok(())
    }

    /// Sees to it that the core's slices have room for what a call has written to split records; whether they have.
    fn makes_room(&mut self, workspace: &Workspace<'a>) -> bool {
        let Some(phase) = self.phase else { return true };
        for write in &workspace.writes {
            let Some(place) = self.place(write.record) else { continue };
            let operands = self.operands(place, write);
            let slice = &mut self.slices[place];
            if !slice.makes_room(operands, &phase.records[place].rooms) {
                slice.stashed += 1;
                return false;
            }
        }
        true
    }

    /// The operands of an update of a split record, by the place of their columns.
    fn operands<'w>(
        &self,
        place: usize,
        write: &'w Write<'a>,
    ) -> impl Iterator<Item = (usize, fabius_value::Datum<'a>)> + Clone + use<'w, 'a> {
        let record = &self.phase.expect("a split phase").records[place];
        let Image::Columns(columns, values) = write.image else {
            unreachable!("split records are updated only")
        };
        columns.iter().zip(values).map(move |(column, value)| (record.place(column), *value))
    }
}

impl Drop for Splitting<'_> {
    fn drop(&mut self) {
        self.doppel.count(self.calls);
        if let Some(phase) = self.phase {
            self.doppel.end_turn(phase, self.core, &mut self.slices);
        }
    }
}

impl<'a> Control<'a> for Splitting<'a> {
    fn attempts_max(&self) -> u32 {
        self.optimistic.attempts_max()
    }

    fn begin(&mut self) {
        self.calls += 1;
        self.is_put_off = false;
        self.optimistic.begin();
    }

    fn begin_again(&mut self) {
        // What only reads does not mind a split record: it reads what was there before.
        if let Some((table, record)) = self.optimistic.conflict()
            && !self.plan.is_some_and(|plan| plan.only_reads)
        {
            self.doppel.sample(table, record, self.does(table));
        }
        self.optimistic.begin_again();
    }

    fn runs(&mut self, plan: &'a Plan) {
        self.plan = Some(plan);
    }

    #[inline]
    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        match self.place(record) {
            Some(place) => self.meet(table, place),
            None => self.optimistic.looks_up(table, record),
        }
    }

    #[inline]
    fn observes(
        &mut self,
        table: TableId,
        record: &'a Record,
        version: Option<&'a Version>,
    ) -> Option<&'a Version> {
        match (self.phase, self.place(record)) {
            (Some(phase), Some(place)) => Some(phase.records[place].stand_in()),
            _ => self.optimistic.observes(table, record, version),
        }
    }

    fn scans(&mut self, table: TableId, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.optimistic.scans(table, granule)
    }

    #[inline]
    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.looks_up(table, record)
    }

    #[inline]
    fn writes(&mut self, table: TableId, record: &'a Record, columns: ColumnMask) -> Result<(), Stop> {
        let Some(place) = self.place(record) else {
            return self.optimistic.writes(table, record, columns);
        };
        match self.met.iter_mut().find(|(met, _)| *met == place) {
            Some((_, written)) if !written.intersects(columns) => {
                *written = written.union(columns);
                Ok(())
            }
            // A sum of two operands may hide that the first alone would have been too much.
            Some(_) | None => {
                self.slices[place].stashed += 1;
                Err(self.stash())
            }
        }
    }

    fn changes(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.optimistic.changes(granule)
    }

    fn claims(&mut self, granule: &'a AtomicU64) -> Result<(), Stop> {
        self.optimistic.claims(granule)
    }

    fn certify(&mut self, workspace: &Workspace<'a>, take: &mut Take<'_>) -> Result<Option<Seq>> {
        if !self.met.is_empty() && !self.makes_room(workspace) {
            self.stash();
            return Ok(None);
        }
        self.optimistic.certify(workspace, take)
    }

    fn aborts(&mut self) -> Result<(), Stop> {
        if self.met.is_empty() { self.optimistic.aborts() } else { Err(self.stash()) }
    }

    #[inline]
    fn commutes(&self, workspace: &Workspace<'a>) -> bool {
        let Some(phase) = self.phase else { return false };
        // A call that has to be put before or after others takes a place of its own.
        !self.met.is_empty()
            && self.optimistic.is_free()
            && workspace
                .writes
                .iter()
                .all(|write| self.place(write.record).is_some_and(|place| !phase.records[place].is_ordered()))
    }

    fn takes(&mut self, workspace: &mut Workspace<'a>, at: Seq) -> Result<(), Stop> {
        let Some(phase) = self.phase.filter(|_| !self.met.is_empty()) else { return Ok(()) };
        if let [write] = &workspace.writes[..]
            && let Some(place) = self.place(write.record)
        {
            let operands = self.operands(place, write);
            let slice = &mut self.slices[place];
            if !slice.apply_within_room(operands, &phase.records[place].rooms, at) {
                slice.stashed += 1;
                return Err(self.stash());
            }
            workspace.writes.clear();
            return Ok(());
        }
        if !self.makes_room(workspace) {
            return Err(self.stash());
        }
        for write in &workspace.writes {
            let Some(place) = self.place(write.record) else { continue };
            let operands = self.operands(place, write);
            self.slices[place].apply(operands, at);
        }
        workspace.writes.retain(|write| self.place(write.record).is_none());
        Ok(())
    }

    fn holds_back(&self) -> bool {
        self.phase.is_some()
    }

    #[inline]
    fn is_ending(&self) -> bool {
        self.phase.is_some() && self.doppel.is_ending()
    }

    fn is_put_off(&self) -> bool {
        self.is_put_off
    }

    fn release(&mut self) {
        self.met.clear();
        self.optimistic.release();
    }
}
