//! Substantiation: running deferred calls, dependencies first, without recursion.
//!
//! ```text
//! wanted: T5          stack, top on the right
//!                     T5                     reads a sticky of T4
//! T5 -> T4 -> T1      T5 T4                  reads a sticky of T1
//!  \--> T2            T5 T4 T1               nothing pending: claim, run, settle, pop
//!                     T5 T4                  nothing pending: claim, run, settle, pop
//!                     T5 T2  ...             T5's next dependency
//! ```
//!
//! (Lazy evaluation, section 3.2.) A call is claimed only when the rows its now-phase captured have no
//! open stickies any more, so a chain of a million calls costs a million small stack entries, not
//! frames. A read that the now-phase could not foresee may still meet a sticky: then the run is
//! suspended with its frame, and resumed.
//!
//! Waiting for a call that another worker runs cannot deadlock: whoever waits, waits for a call with a
//! smaller seq than anything it holds itself.
//!
//! If a run panics, it and those that were suspended for it have failed, and the engine stops. Readers of what they
//! should have written are told so, and everything else can be read.

use crate::captured::{CapturedRow, Rows};
use crate::deferred::{Claim, Deferred, State};
use crate::later::{LaterContext, broken_promise};
use crate::now::deferred_at;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::Definitions;
use fabius_env::schedule;
use fabius_program::context::Stop;
use fabius_program::execute::{FrameFor, run};
use fabius_storage::{Version, chain, index::prefetch};
use fabius_value::ColumnMask;
use std::ptr::NonNull;

/// One entry of the stack.
enum Entry<'a> {
    /// Not claimed yet; all but these rows are known to have no open stickies.
    Wanted { deferred: &'a Deferred, rows: Rows<'a> },
    /// Claimed and run up to a sticky.
    Suspended { claim: Claim<'a>, frame: Box<FrameFor<'a, LaterContext<'a>>>, context: Box<LaterContext<'a>> },
}

/// How near a call's memory is brought.
#[derive(Clone, Copy)]
enum Stage {
    /// The call itself.
    Call,
    /// The versions it begins at.
    Versions,
    /// What is below them.
    Below,
    /// Long values there.
    Values,
}

/// A call whose values will never be known, because a run has panicked.
#[derive(Debug)]
pub struct Failed;

/// A worker's tools for one stretch of substantiation under one pinned epoch.
pub struct Substantiation<'a> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    arena: &'a Bump,
    stack: Vec<Entry<'a>>,
    frame: Option<Box<FrameFor<'a, LaterContext<'a>>>>,
    /// Calls run.
    pub run: u64,
}

impl<'a> Substantiation<'a> {
    /// Tools for calls whose definitions are all in `definitions`.
    pub fn new(definitions: &'a Definitions, guard: &'a Guard, arena: &'a Bump) -> Substantiation<'a> {
        Substantiation { definitions, guard, arena, stack: Vec::new(), frame: None, run: 0 }
    }

    /// Returns when the call at this address is done or dropped.
    ///
    /// # Errors
    /// If it has failed, or one that it needs.
    ///
    /// # Safety
    /// The address was read, under this epoch or a chunk's own reference, from an open sticky, a
    /// ticket or a chunk.
    pub unsafe fn substantiate(&mut self, address: *mut ()) -> Result<(), Failed> {
        // SAFETY: it was read from what is still there in this epoch, as whoever calls this sees to.
        let deferred = unsafe { deferred_at(address) };
        let bottom = self.stack.len();
        self.want(deferred);
        self.step_down_to(bottom)
    }

    /// Puts a call on the stack that was met on the way, and asks for all that it will read at once.
    fn want(&mut self, deferred: &'a Deferred) {
        for stage in [Stage::Versions, Stage::Below, Stage::Values] {
            // SAFETY: a call whose address was read under this epoch has its chunk.
            unsafe { self.bring_near(deferred, stage) };
        }
        self.stack.push(Entry::Wanted { deferred, rows: deferred.rows() });
    }

    /// Runs what is on the stack above `bottom`.
    fn step_down_to(&mut self, bottom: usize) -> Result<(), Failed> {
        while self.stack.len() > bottom {
            if let Err(failed) = self.step() {
                // What was suspended for it fails with it.
                self.stack.truncate(bottom);
                return Err(failed);
            }
        }
        Ok(())
    }

    /// Substantiates calls that are known together, bringing near what each will read while those
    /// before it run.
    ///
    /// # Safety
    /// The calls' chunks are alive.
    pub unsafe fn substantiate_all(&mut self, calls: &[NonNull<Deferred>]) -> Result<(), Failed> {
        for (at, call) in calls.iter().enumerate() {
            // SAFETY: the calls' chunks are alive, as whoever calls this sees to.
            unsafe {
                for (stage, distance) in
                    [(Stage::Call, 6), (Stage::Versions, 4), (Stage::Below, 2), (Stage::Values, 1)]
                {
                    if let Some(later) = calls.get(at + distance) {
                        self.bring_near(later.as_ref(), stage);
                    }
                }
                let deferred = deferred_at(call.as_ptr().cast());
                let bottom = self.stack.len();
                self.stack.push(Entry::Wanted { deferred, rows: deferred.rows() });
                self.step_down_to(bottom)?;
            }
        }
        Ok(())
    }

    /// Asks for the memory that a call's run will read, one step of indirection at a time.
    ///
    /// # Safety
    /// The call's chunk is alive.
    unsafe fn bring_near(&self, deferred: &Deferred, stage: Stage) {
        if let Stage::Call = stage {
            prefetch(deferred);
            return;
        }
        if deferred.state() != State::Pending {
            return;
        }
        for row in deferred.rows() {
            // SAFETY: captured versions outlive their pending call, and the epoch is pinned.
            let Some(version) = (unsafe { row.version.as_ref() }) else { continue };
            match stage {
                Stage::Call | Stage::Versions => version.prefetch(),
                Stage::Below => {
                    Version::prefetch_at(version.next());
                    Version::prefetch_at(row_below(version));
                }
                Stage::Values => {
                    // SAFETY: what is below a captured version outlives the pending call too, and the epoch is pinned.
                    if let Some(row_below) = unsafe { row_below(version).as_ref() } {
                        let long_columns = self.definitions.table(row.table).long_columns();
                        // SAFETY: seen not done above.
                        let reads = unsafe { reads(deferred, row) };
                        row_below.prefetch_values(reads.intersection(long_columns));
                    }
                }
            }
        }
    }

    /// Takes the top of the stack one step further.
    fn step(&mut self) -> Result<(), Failed> {
        let Some(top) = self.stack.last_mut() else { return Ok(()) };
        if let Entry::Wanted { deferred, rows } = top {
            let deferred = *deferred;
            match deferred.state() {
                State::Done | State::Dropped => {
                    self.stack.pop();
                    return Ok(());
                }
                State::Running => {
                    deferred.wait();
                    return Ok(());
                }
                State::Failed => return Err(Failed),
                State::Pending => {}
            }
            let own = std::ptr::from_ref(deferred).cast_mut().cast();
            let mut left = rows.clone();
            while let Some(row) = left.next() {
                // SAFETY: captured versions outlive their call, which is not done; the epoch is pinned.
                if let Some(address) = unsafe { chain::first_pending(row.version, reads(deferred, row), own) }
                {
                    // SAFETY: read from an open sticky under this epoch.
                    let deferred = unsafe { deferred_at(address) };
                    self.want(deferred);
                    return Ok(());
                }
                *rows = left.clone();
            }
            schedule::point("claim");
            let Some(claim) = deferred.claim() else { return Ok(()) };
            let mut frame = self.frame.take().unwrap_or_default();
            let context = Box::new(LaterContext::new(self.definitions, self.guard, deferred));
            // SAFETY: its code lives as long as the call is not done, its arguments as long as the chunk.
            let (code, arguments) = unsafe { (code_of(deferred), deferred.arguments()) };
            frame.start(code, arguments, self.arena).expect("a promised call has well-formed arguments");
            self.stack.pop();
            self.advance(claim, frame, context);
        } else if let Some(Entry::Suspended { claim, frame, context }) = self.stack.pop() {
            self.advance(claim, frame, context);
        }
        Ok(())
    }

    /// Runs a claimed call to its end, or to a sticky.
    fn advance(
        &mut self,
        claim: Claim<'a>,
        mut frame: Box<FrameFor<'a, LaterContext<'a>>>,
        mut context: Box<LaterContext<'a>>,
    ) {
        let deferred = claim.call();
        // SAFETY: the call is not done, so its code is there.
        let code = unsafe { code_of(deferred) };
        match run(&mut frame, code, &mut *context, self.arena) {
            Ok(()) => {
                schedule::point("fulfil");
                if let Some(ticket) = &deferred.ticket {
                    ticket.fulfil(Ok(frame.results(code).unwrap_or_default()));
                }
                claim.settle(self.definitions);
                self.run += 1;
                self.frame = Some(frame);
            }
            Err(Stop::Blocked) => {
                // SAFETY: read from an open sticky under this epoch.
                let wanted = unsafe { deferred_at(context.blocked_on()) };
                self.stack.push(Entry::Suspended { claim, frame, context });
                self.want(wanted);
            }
            Err(Stop::Abort(error)) => {
                // SAFETY: the call was seen not done, so its variant is there.
                let program = unsafe { &deferred.variant.as_ref().procedure.program.name };
                panic!("{:?}", broken_promise(deferred, program, &error));
            }
            Err(Stop::Restart) => unreachable!("a later-phase has nothing to give up"),
        }
    }
}

/// Where most of a row is that is read from this version down: other calls may have written columns in between.
#[inline]
fn row_below(version: &Version) -> *const Version {
    if version.is_whole() { version.next() } else { version.base() }
}

/// The columns that a call may read of a row that it has captured.
///
/// # Safety
/// The call was seen not done in the epoch that is pinned.
#[inline]
unsafe fn reads(deferred: &Deferred, row: CapturedRow) -> ColumnMask {
    // SAFETY: the call was seen not done in the epoch that is pinned, so its variant is there.
    let reads = unsafe { &deferred.variant.as_ref().reads };
    reads.get(row.table.0 as usize).copied().unwrap_or_default()
}

/// The later-phase code of a call.
///
/// # Safety
/// The call is not done while the result is used.
unsafe fn code_of<'a>(deferred: &Deferred) -> &'a fabius_program::compile::Code {
    // SAFETY: the call is not done, so its variant is there, as whoever calls this sees to.
    let variant = unsafe { &*deferred.variant.as_ptr() };
    if deferred.ticket.is_some() { &variant.later_with_results } else { &variant.later }
}
