//! What an engine can be asked to do.
//!
//! The contract: for any calls handed in, by any threads, outcomes and final rows are those of some
//! serial order that respects real time (a call that was promised before another was submitted comes
//! first), and the log, replayed by any engine, gives the same. No call is ever aborted for the
//! engine's own reasons.
//!
//! Engines own no threads. Whoever has a thread to spare (a background worker of the database, a
//! caller who waits) lends it through [`Engine::help`].

use crate::batch::Outcomes;
use crate::checkpoint::State;
use crate::counters::Counts;
use crate::reader::query_at;
use crate::speculation::{Overlay, RowAt, Speculated, row_at, speculate};
use crate::{Batch, Foundation, Procedure, Records, Room, ScanPlace, Standpoint, TableScan, Ticket, entry};
use fabius_value::{Datum, Error, Result, Seq, TableId, Value};
use std::ops::Range;
use std::sync::Arc;

/// A strategy for running ordered calls.
pub trait Engine: Send + Sync {
    /// The engine's name, as users give it: `lazy`, `2pl`.
    fn name(&self) -> &'static str;

    /// What it stands on.
    fn foundation(&self) -> &Foundation;

    /// Hands calls in. Returns at once; see [`Batch`] for what happens next.
    fn submit(&self, batch: Arc<Batch>);

    /// Takes in calls that were handed in, on the calling thread, if there are any and no other
    /// thread is at it; whether it did. What callers do who wait for their own call.
    fn admit(&self) -> bool;

    /// Does one piece of work on the calling thread (some microseconds to a few milliseconds);
    /// whether there was any.
    fn help(&self) -> bool;

    /// Adds a definition, given in canonical text, behind everything submitted so far; returns when
    /// it is in force and durable.
    ///
    /// # Errors
    /// What the definition itself has wrong, or why the log does not take it.
    fn define(&self, text: &str) -> Result<()> {
        self.amend(&entry::encode_definition(text))
    }

    /// Adds an entry other than calls ([`entry`]), likewise.
    ///
    /// # Errors
    /// As [`Engine::define`].
    fn amend(&self, entry: &[u8]) -> Result<()>;

    /// Runs a procedure that writes nothing on the newest promised state.
    ///
    /// # Errors
    /// Why the procedure aborted, or what ended the log.
    fn query(&self, procedure: &Procedure, arguments: &[u8]) -> Result<Vec<Value>> {
        let (seq, outcome) = self.query_unanswered(procedure, arguments, Room::unbounded());
        self.foundation().wait_durable(seq)?;
        outcome
    }

    /// Runs a procedure that writes nothing on the newest promised state, for a caller who sees to it that nobody is
    /// told before the seq that was read is durable; gives that seq beside the outcome. It holds no more than there
    /// is room for: `53200`.
    fn query_unanswered(
        &self,
        procedure: &Procedure,
        arguments: &[u8],
        room: Room,
    ) -> (Seq, Result<Vec<Value>>) {
        let at = Standpoint::newest(self.foundation());
        let outcome = self.query_at(&at, procedure, arguments, room);
        (at.seq(), outcome)
    }

    /// Computes the sticky that a reader has met. An engine that leaves none is never asked.
    ///
    /// # Errors
    /// Why the engine has stopped, if the value cannot be computed any more.
    ///
    /// # Safety
    /// `source` was read from an open sticky of this engine under an epoch that is still pinned.
    unsafe fn substantiate(&self, source: *mut ()) -> Result<()> {
        unreachable!("this engine leaves no stickies, but there is one: {source:?}")
    }

    /// Runs a procedure of the definitions at a standpoint, one that writes nothing, on the rows there. As it is
    /// here, of engines that leave no stickies: one that leaves some computes many of them for one query at once.
    ///
    /// # Errors
    /// Why the procedure aborted.
    fn query_at(
        &self,
        at: &Standpoint<'_>,
        procedure: &Procedure,
        arguments: &[u8],
        room: Room,
    ) -> Result<Vec<Value>> {
        query_at(self.foundation(), at, procedure, arguments, room)
    }

    /// Runs a program on the rows of one seq and a transaction's own writes, which it adds to; see
    /// [`speculation`](crate::speculation).
    ///
    /// # Errors
    /// Why the program aborted; then the overlay is as before.
    fn speculate(
        &self,
        at: Seq,
        procedure: &Procedure,
        arguments: &[u8],
        overlay: &mut Overlay,
        room: Room,
    ) -> Result<Speculated> {
        // SAFETY: a reader gives what it has read from an open sticky, and keeps its epoch meanwhile.
        let mut substantiate = |source| unsafe { self.substantiate(source) };
        speculate(self.foundation(), at, procedure, arguments, overlay, room, &mut substantiate)
    }

    /// A row at one seq, at which the caller holds a snapshot.
    ///
    /// # Errors
    /// Why the engine has stopped, if what should be there cannot be computed any more.
    fn row_at(&self, at: Seq, table: TableId, key: &[u8]) -> Result<RowAt> {
        // SAFETY: a reader gives what it has read from an open sticky, and keeps its epoch meanwhile.
        let mut substantiate = |source| unsafe { self.substantiate(source) };
        row_at(self.foundation(), at, table, key, &mut substantiate)
    }

    /// Computes what a ticket waits for.
    fn resolve(&self, _ticket: &Ticket) {}

    /// Stands at the newest promised seq, where exactly the definitions of that seq are in force: what a
    /// checkpoint is taken from. Waits for a turn that is under way, not for its later-phases.
    fn stand(&self) -> Standpoint<'_>;

    /// Rows of a table at a standpoint, with the columns asked for, in the order of the index. Computes
    /// what it needs of these columns only, and holds no epoch for long. Ends when `visit` says no.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the walk; `42P17` for an order that a table does not have.
    fn scan_at(
        &self,
        at: &Standpoint<'_>,
        scan: &TableScan,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()> {
        // SAFETY: a reader gives what it has read from an open sticky, and keeps its epoch meanwhile.
        let mut substantiate = |source| unsafe { self.substantiate(source) };
        at.scan(scan, &mut substantiate, visit)
    }

    /// Rows of a table at a standpoint, in parts: each begins where the one before has ended, which is behind the row
    /// at which `visit` said no. Not for tables without an order.
    ///
    /// # Errors
    /// As [`Engine::scan_at`].
    fn scan_on(
        &self,
        at: &Standpoint<'_>,
        scan: &TableScan,
        place: &mut ScanPlace,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()> {
        // SAFETY: a reader gives what it has read from an open sticky, and keeps its epoch meanwhile.
        let mut substantiate = |source| unsafe { self.substantiate(source) };
        at.scan_on(scan, place, &mut substantiate, visit)
    }

    /// Every row of a table at a standpoint, in key order for ordered tables.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the walk.
    fn rows_at(
        &self,
        at: &Standpoint<'_>,
        table: TableId,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<()>,
    ) -> Result<()> {
        let scan = TableScan::whole(table, at.definitions().table(table).schema());
        self.scan_at(at, &scan, &mut |row| visit(row).map(|()| true))
    }

    /// Some rows of a table at a standpoint, by their places among its [records](Standpoint::records): what is left to
    /// compute of them is computed by the thread that calls this, beside others.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the walk.
    fn rows_among(
        &self,
        at: &Standpoint<'_>,
        records: &Records<'_>,
        part: Range<usize>,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<()>,
    ) -> Result<()> {
        // SAFETY: a reader gives what it has read from an open sticky, and keeps its epoch meanwhile.
        let mut substantiate = |source| unsafe { self.substantiate(source) };
        at.scan_part(records, part, &mut substantiate, &mut |row| visit(row).map(|()| true))
    }

    /// Every row of a table on the newest promised state, in key order for ordered tables.
    ///
    /// # Errors
    /// The first error of `visit`, which ends the walk.
    fn rows(&self, table: TableId, visit: &mut dyn FnMut(Vec<Value>) -> Result<()>) -> Result<Seq> {
        let at = Standpoint::newest(self.foundation());
        let types = at.definitions().table(table).types().clone();
        self.rows_at(&at, table, &mut |row| {
            visit(row.iter().zip(&*types).map(|(value, data_type)| value.to_value(*data_type)).collect())
        })?;
        Ok(at.seq())
    }

    /// Finishes all deferred work of calls promised before this was called.
    fn settle(&self);

    /// Begins with the state of a checkpoint instead of an empty one. Called before anything else.
    fn restore(&self, state: State);

    /// Takes an entry that has its place in the order already, in the log too: it was logged before, or is agreed on.
    /// Gives what has become of its calls, by their place in the entry, once readers can see all of them. Entries
    /// come one after the other, without gaps, and nothing is [submitted](Engine::submit) beside them.
    ///
    /// # Errors
    /// `XX001` if the bytes are not what an engine logs, or not what comes next; why the engine has stopped.
    fn take(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<Outcomes>;

    /// Refuses further calls, completes or fails those handed in.
    fn close(&self, reason: Error);

    /// What it has done so far.
    fn counts(&self) -> Counts;

    /// Where its threads' time has gone so far, by phases of its own, in nanoseconds; empty if it does not tell.
    fn times(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
