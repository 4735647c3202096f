//! One turn of the lane: the now-phases of its calls, and what they leave for later.
//!
//! ```text
//! call --> variant --> now-phase --> commit --> doom what it overwrote --> deferred call, if it has left anything
//!             ^            |
//!             |            +--> reads a sticky: that call is run first; or aborts: all is taken back
//!             +-- sliced again where its proofs do not hold for this call
//! ```

use crate::awaited::Awaited;
use crate::captured::{CapturedRow, RowList};
use crate::deferred::{Chunk, Deferred, Leavings};
use crate::doomed::Doomed;
use crate::intake::Intake;
use crate::now::{NowContext, NowRow, Written};
use crate::substantiate::Substantiation;
use crate::variant::{Variant, Variants};
use bumpalo::Bump;
use fabius_engine::entry::Call;
use fabius_engine::idempotency::{First, KeyWindow, Keys};
use fabius_engine::{Definitions, Foundation, Ticket};
use fabius_program::arguments::Arguments;
use fabius_program::context::Stop;
use fabius_program::execute::{FrameFor, run};
use fabius_storage::{Record, Version};
use fabius_value::{Datum, Error, Result, Seq, TableId};
use std::ptr::NonNull;
use std::sync::Arc;

/// What became of one call.
pub struct Outcome {
    /// Why it aborted, if it did.
    pub abort: Option<Error>,
    /// Where its result will be, if it wants one and committed.
    pub ticket: Option<Arc<Ticket>>,
}

/// What a turn leaves behind.
#[derive(Default)]
pub struct Left {
    /// Deferred calls, oldest first.
    pub calls: Vec<NonNull<Deferred>>,
    /// The places of those that should not wait.
    pub urgent: Vec<u32>,
    /// Calls that committed.
    pub committed: u64,
    /// Calls that aborted.
    pub aborted: u64,
    /// Calls that left nothing for later.
    pub immediate: u64,
    /// Deferred calls of before that were run, since a now-phase read what they write.
    pub substantiated: u64,
    /// The next call's place in the order.
    pub seq: Seq,
}

/// One turn in progress.
pub struct Turn<'a, 'l, 't> {
    /// What says why the engine has stopped.
    pub foundation: &'l Foundation,
    /// Where a now-phase says that it had to wait.
    pub awaited: &'l Awaited,
    /// Procedures and tables.
    pub definitions: &'a Definitions,
    /// For what lives as long as the turn.
    pub arena: &'a Bump,
    /// Where deferred calls are put.
    pub chunk: &'l Arc<Chunk>,
    /// The calls that a record may have before one is urgent.
    pub chain_bound: u32,
    /// What now-phases are run with.
    pub variants: &'l mut Variants,
    /// Idempotency keys,
    pub keys: &'l mut Keys,
    /// and how long they are kept.
    pub key_window: KeyWindow,
    /// By table: the newest call whose later-phase searches it.
    pub later_searcher: &'l mut Vec<Seq>,
    /// What blind writes make pointless.
    pub doomed: &'l mut Doomed,
    /// What now-phases see.
    pub context: &'l mut NowContext<'a, 't>,
    /// What they run in.
    pub frame: FrameFor<'a, NowContext<'a, 't>>,
    /// The rows that the last one has left.
    pub rows: RowList,
    /// For deferred calls that they wait for.
    pub substantiation: Substantiation<'a>,
    /// What is left so far.
    pub left: Left,
    /// When the turn was logged.
    pub time_us: i64,
}

impl<'a, 't> Turn<'a, '_, 't> {
    /// Ends it.
    pub fn end(mut self) -> Left {
        // SAFETY: this is the lane; the epoch was pinned before the turn.
        unsafe { self.doomed.end_walks() };
        self.left.substantiated = self.substantiation.run;
        self.left
    }

    /// Runs the now-phase of the call at a place of the intake.
    pub fn run(&mut self, intake: &'t Intake<'a>, at: usize) -> Outcome {
        let (call, arguments, expected) = intake.call(at);
        let seq = self.left.seq;
        self.left.seq = seq.next();
        let oldest = self.key_window.oldest(seq);
        if let Some(first) = call.key.and_then(|key| self.keys.get(key, oldest)) {
            return Outcome { abort: first.abort.clone(), ticket: first.ticket.clone() };
        }
        let ticket = call.wants_result.then(|| Arc::new(Ticket::default()));
        self.context.begin(seq, self.time_us, expected);
        let abort = self.run_program(seq, call, arguments, ticket.as_ref()).err();
        match &abort {
            None => self.left.committed += 1,
            Some(_) => self.left.aborted += 1,
        }
        let ticket = ticket.filter(|_| abort.is_none());
        if let Some(key) = call.key {
            let first = First { seq, abort: abort.clone(), ticket: ticket.clone() };
            self.keys.remember(key, first, oldest);
        }
        Outcome { abort, ticket }
    }

    fn run_program(
        &mut self,
        seq: Seq,
        call: &Call<'_>,
        arguments: Result<Arguments<'_, 'a>>,
        ticket: Option<&Arc<Ticket>>,
    ) -> Result<()> {
        let procedure = self.definitions.procedure(call.procedure)?;
        let arguments = arguments?;
        let intervals = &mut *self.context.tools().intervals;
        let variant = self.variants.choose(seq, procedure, self.definitions, intervals, arguments)?;
        // SAFETY: a variant lives as long as a call may point to it.
        let code = unsafe { &(*variant.as_ptr()).now };
        self.frame.begin(code, arguments, self.arena);
        loop {
            match run(&mut self.frame, code, self.context, self.arena) {
                Ok(()) => break,
                Err(Stop::Blocked) => {
                    self.awaited.note(call.procedure, self.context.blocked_at);
                    // SAFETY: read from an open sticky under this epoch.
                    if unsafe { self.substantiation.substantiate(self.context.blocked_on) }.is_err() {
                        // Whoever ran that call stops the engine; the turn cannot go on, and has to stop it too.
                        panic!("{:?}", self.foundation.why_stopped());
                    }
                }
                Err(Stop::Abort(error)) => {
                    self.context.roll_back();
                    return Err(error);
                }
                Err(Stop::Restart) => unreachable!("nothing makes a now-phase give up"),
            }
        }
        self.context.commit();
        // Results that the now-phase had to compute anyway need no later-phase; nor do those of a program that has
        // none.
        let has_none = procedure.program.results.is_empty();
        let ticket = ticket.filter(|ticket| match self.frame.results(code).or(has_none.then(Vec::new)) {
            Some(values) => {
                ticket.fulfil(Ok(values));
                false
            }
            None => true,
        });
        // SAFETY: a variant lives as long as a call may point to it.
        self.defer(seq, call, unsafe { &*variant.as_ptr() }, variant, ticket);
        Ok(())
    }

    /// Makes a committed call a deferred one if it has left anything for later.
    fn defer(
        &mut self,
        seq: Seq,
        call: &Call<'_>,
        variant: &Variant,
        pointer: NonNull<Variant>,
        ticket: Option<&Arc<Ticket>>,
    ) {
        // SAFETY: the call's own versions.
        let is_sticky = |written: &&Written<'_>| !unsafe { written.version.as_ref() }.sticky().is_empty();
        let leaves_stickies = self.context.written.iter().any(|written| is_sticky(&written));
        // SAFETY: this is the lane; the epoch was pinned before the turn.
        unsafe { self.doomed.overwrite(&self.context.written, seq, variant, self.later_searcher) };
        if !leaves_stickies && ticket.is_none() {
            self.left.immediate += 1;
            return;
        }
        let open = || self.context.written.iter().filter(is_sticky);
        let stickies = open().count() as u32;
        self.rows.clear();
        self.context.rows.iter().for_each(|&row| self.rows.push(capture(row, seq)));
        for written in open() {
            // SAFETY: the call's own version, not published yet.
            if unsafe { written.version.as_ref() }.deferred().is_null() {
                self.rows.push(to_fill(written.version.as_ptr(), written.record, written.table.id()));
            }
        }
        let arena = self.chunk.arena();
        let deferred = self.chunk.defer(Leavings {
            seq,
            variant: pointer,
            ticket: ticket.cloned(),
            values: self.context.values.iter().map(|&value| keep(value, arena)),
            rows: &self.rows,
            stickies,
            arguments: call.arguments,
        });
        let address: *mut () = deferred.as_ptr().cast();
        let is_all = stickies == 1 && ticket.is_none();
        for written in open() {
            // SAFETY: pushed by this call, in the lane, which alone changes heads.
            unsafe { written.version.as_ref() }.set_deferred(address, is_all);
        }
        if let Some(ticket) = ticket {
            ticket.set_source(address);
        }
        let place = self.left.calls.len() as u32;
        self.left.calls.push(deferred);
        for table in &variant.tables_read {
            let readers = &mut self.context.tools().later_reader[table.0 as usize];
            for column in variant.reads[table.0 as usize].iter() {
                readers[column.0 as usize] = seq;
            }
        }
        for table in &variant.tables_searched {
            self.later_searcher[table.0 as usize] = seq;
        }
        let bound = self.chain_bound;
        let mut is_urgent = bound <= 1;
        for written in self.context.written.iter().filter(is_sticky) {
            if written.record.count_pending() >= bound {
                written.record.reset_pending();
                is_urgent = true;
            }
        }
        if is_urgent {
            self.left.urgent.push(place);
        }
    }
}

/// Copies what a captured value refers to into the chunk.
fn keep(value: Datum<'_>, arena: &Bump) -> Datum<'static> {
    // SAFETY: deferred calls and what they captured live and die with the chunk's arena.
    unsafe {
        match value {
            Datum::Text(text) => Datum::Text(&*std::ptr::from_ref(arena.alloc_str(text))),
            Datum::Bytes(bytes) => Datum::Bytes(&*std::ptr::from_ref(arena.alloc_slice_copy(bytes))),
            Datum::Null => Datum::Null,
            Datum::Boolean(v) => Datum::Boolean(v),
            Datum::Int(v) => Datum::Int(v),
            Datum::Numeric(v) => Datum::Numeric(v),
            Datum::Double(v) => Datum::Double(v),
        }
    }
}

/// The version at which a captured row begins for the call at `seq`, marked if the call will read
/// stickies of others there. The first time that the call has captured its own, with the record.
fn capture(row: NowRow<'_>, seq: Seq) -> CapturedRow {
    let missing = CapturedRow { version: std::ptr::null(), table: row.table, record: None };
    let Some(record) = row.record else { return missing };
    // SAFETY: the lane reads its own chains under a pinned epoch.
    let Some(head) = (unsafe { record.head().as_ref() }) else { return missing };
    let is_open = !head.sticky().is_empty();
    if head.seq() == seq {
        if is_open && head.deferred().is_null() {
            return to_fill(head, record, row.table);
        }
    } else if head.is_tombstone() {
        // A tombstone may be purged before the call runs; a missing row means the same.
        return missing;
    } else if is_open {
        head.mark_read_elsewhere();
    }
    CapturedRow { version: head, ..missing }
}

/// A row that the call is to fill, which is noted in its version until that has the call's address.
fn to_fill(version: *const Version, record: &Record, table: TableId) -> CapturedRow {
    // SAFETY: the call's own version, not published yet.
    unsafe { &*version }.set_deferred(NonNull::dangling().as_ptr(), false);
    CapturedRow { version, table, record: Some(NonNull::from(record)) }
}
