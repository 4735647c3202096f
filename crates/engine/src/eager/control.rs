//! What tells eager engines apart: how they keep calls that run side by side from each other
//! (concurrency control).
//!
//! [`crate::eager`] runs calls, and says to a [`Control`] what a call is about to do. Whatever a control
//! answers with [`Stop::Restart`] ends the attempt: nothing of it is seen, and the call begins again.

use crate::eager::place::Take;
use crate::eager::plan::{Plan, Schema};
use crate::eager::shared::Shared;
use crate::eager::workspace::Workspace;
use fabius_program::context::Stop;
use fabius_storage::{Record, Version};
use fabius_value::{ColumnMask, Key, Result, Seq, TableId};
use std::sync::atomic::AtomicU64;

/// Calls that are not running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Put off to the next phase.
    pub put_off: usize,
    /// Put off in the phase before, and not begun again.
    pub resumed: usize,
    /// Whether none of the others waits.
    pub is_idle: bool,
}

/// A way to keep calls apart, shared by all that run.
pub trait Protocol: Send + Sync + 'static {
    /// The engine's name, as users give it.
    const NAME: &'static str;

    /// One thread's part of it, for the calls of one turn.
    type Control<'a>: Control<'a>
    where
        Self: 'a;

    /// Lets one more thread run calls, under the number that it gets; `None` if as many run as can.
    fn enter(&self) -> Option<usize>;

    /// Ends what [`Protocol::enter`] began.
    fn leave(&self, number: usize);

    /// Wakes threads that sleep for what a call has: the engine has stopped. From now on whatever would wait is
    /// refused.
    fn rouse(&self) {}

    /// Whether calls run in phases: some may be put off to the next one.
    const HAS_PHASES: bool = false;

    /// Whether readers see what calls of this phase have written only when it has ended.
    fn holds_back(&self) -> bool {
        false
    }

    /// Whether it is time for the next phase.
    fn is_phase_due(&self, _waiting: &Waiting, _now_ns: u64) -> bool {
        false
    }

    /// Begins the next phase. No call runs. What was held back so far is in its place afterwards.
    fn change_phase(&self, _shared: &Shared, _schema: &Schema, _now_ns: u64) {}

    /// The control of the thread that has entered under `number`.
    fn control<'a>(&'a self, number: usize) -> Self::Control<'a>;
}

/// What a call tells of itself while it runs, on one thread.
///
/// *Granules* are words that stand for parts of indexes, unique values and idempotency keys
/// ([`crate::eager::granule`]). Everything that is not refused stays as it is, for this call, until
/// [`Control::release`]; or the control refuses the call in the end, at [`Control::certify`]. A control that says
/// nothing refuses nothing.
pub trait Control<'a> {
    /// Whether a lookup that finds nothing makes a record, so that what is missing is under control too.
    const RECORDS_MISSES: bool = true;
    /// Whether granules matter to it.
    const HAS_GRANULES: bool = true;

    /// After so many refused attempts a call runs alone, and is not refused any more.
    fn attempts_max(&self) -> u32 {
        u32::MAX
    }

    /// A call begins.
    fn begin(&mut self) {}

    /// The call begins again, after it was refused.
    fn begin_again(&mut self) {
        unreachable!("nothing is refused")
    }

    /// The call runs this program.
    fn runs(&mut self, _plan: &'a Plan) {}

    /// The call has looked a record up and is going to read it.
    ///
    /// # Errors
    /// [`Stop::Restart`], here and below.
    #[inline]
    fn looks_up(&mut self, _table: TableId, _record: &'a Record) -> Result<(), Stop> {
        Ok(())
    }

    /// The call, which has told of the record, now reads this version, the newest
    /// (`None` if there is none); or it is going to insert where this is the newest.
    /// Gives the version to read instead, or the same.
    fn observes(
        &mut self,
        _table: TableId,
        _record: &'a Record,
        version: Option<&'a Version>,
    ) -> Option<&'a Version> {
        version
    }

    /// The call is going to scan below a prefix of a table's primary key, of so many columns; then it tells of the
    /// granule.
    fn scans_below(&mut self, _table: TableId, _prefix: &Key, _columns: usize) {}

    /// The call is going to read what is in a granule of a table's index.
    #[inline]
    fn scans(&mut self, _table: TableId, _granule: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    /// The call has found a row by a scan and is going to read it.
    #[inline]
    fn meets(&mut self, _table: TableId, _record: &'a Record) -> Result<(), Stop> {
        Ok(())
    }

    /// The call is going to write these columns of a record, insert or delete it.
    #[inline]
    fn writes(&mut self, _table: TableId, _record: &'a Record, _columns: ColumnMask) -> Result<(), Stop> {
        Ok(())
    }

    /// The call is going to change what is in a granule.
    #[inline]
    fn changes(&mut self, _granule: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    /// The call wants a value or a key that only one call can have.
    #[inline]
    fn claims(&mut self, _granule: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    /// The serialisation point: `take` gives the call its place in the order, and in the log, if what it is asked with
    /// it holds then; `None` refuses the call. A call that aborts comes here too, with no writes.
    ///
    /// # Errors
    /// That of `take`.
    fn certify(&mut self, _workspace: &Workspace<'a>, take: &mut Take<'_>) -> Result<Option<Seq>> {
        take(&mut || true)
    }

    /// The call is going to abort.
    ///
    /// # Errors
    /// As above, if that may not be so.
    fn aborts(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// Whether the call, which has run and is going to commit, conflicts with no call of this phase, so
    /// that it may take its place later in the turn, without being certified.
    fn commutes(&self, _workspace: &Workspace<'a>) -> bool {
        false
    }

    /// The call commits, at this place, or at one that does not matter (`Seq::ZERO`): takes those writes out of its
    /// workspace that are not going to be installed.
    ///
    /// # Errors
    /// As above, only for calls that were not certified.
    fn takes(&mut self, _workspace: &mut Workspace<'a>, _at: Seq) -> Result<(), Stop> {
        Ok(())
    }

    /// Whether readers see what calls of this phase have written only when it has ended.
    fn holds_back(&self) -> bool {
        false
    }

    /// Whether the phase ends, so that no further call of the turn should begin.
    fn is_ending(&self) -> bool {
        false
    }

    /// Whether what was refused is not to be tried again before the next phase.
    fn is_put_off(&self) -> bool {
        false
    }

    /// The call has ended, well or not, and its writes are in their place or forgotten.
    fn release(&mut self) {}
}
