//! What tells eager engines apart: how they keep calls that run side by side from each other
//! (concurrency control).
//!
//! [`crate::eager`] runs calls, and says to a [`Control`] what a call is about to do. Whatever a control
//! answers with [`Stop::Restart`] ends the attempt: nothing of it is seen, and the call begins again.

use crate::eager::plan::Plan;
use crate::eager::workspace::Workspace;
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{Result, Seq, TableId};
use std::sync::atomic::AtomicU64;

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

    /// The control of the thread that has entered under `number`.
    fn control<'a>(&'a self, number: usize) -> Self::Control<'a>;
}

/// What a call tells of itself while it runs, on one thread.
///
/// *Granules* are words that stand for parts of indexes, unique values and idempotency keys
/// ([`crate::eager::granule`]). Everything that is not refused stays as it is, for this call, until
/// [`Control::release`]; or the control refuses the call in the end, at [`Control::certify`].
pub trait Control<'a> {
    /// Whether a lookup that finds nothing makes a record, so that what is missing is under control too.
    const RECORDS_MISSES: bool = true;
    /// Whether granules matter to it.
    const HAS_GRANULES: bool = true;

    /// A call begins.
    fn begin(&mut self);

    /// The call begins again, after it was refused.
    fn begin_again(&mut self);

    /// The call runs this program.
    fn runs(&mut self, plan: &'a Plan);

    /// The call has looked a record up and is going to read it.
    ///
    /// # Errors
    /// [`Stop::Restart`], here and below.
    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop>;

    /// The call is going to read what is in a granule of a table's index.
    fn scans(&mut self, table: TableId, granule: &'a AtomicU64) -> Result<(), Stop>;

    /// The call has found a row by a scan and is going to read it.
    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop>;

    /// The call is going to write, insert or delete a record.
    fn writes(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop>;

    /// The call is going to change what is in a granule.
    fn changes(&mut self, granule: &'a AtomicU64) -> Result<(), Stop>;

    /// The call wants a value or a key that only one call can have.
    fn claims(&mut self, granule: &'a AtomicU64) -> Result<(), Stop>;

    /// The serialisation point: `next` gives the call its place in the order, and in the log. If the call
    /// needs no place of its own, `next` gives one that is at or after everything it may have read.
    ///
    /// # Errors
    /// The outer error as above; then `next` was not called. The inner one is that of `next`.
    fn certify(
        &mut self,
        workspace: &Workspace<'a>,
        next: &mut dyn FnMut() -> Result<Seq>,
    ) -> Result<Result<Seq>, Stop>;

    /// The call has ended, well or not, and its writes are in their place or forgotten.
    fn release(&mut self);
}
