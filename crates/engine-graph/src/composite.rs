//! Calls that are one composite action (LADS, section 3.3.2).
//!
//! A call with logical dependencies is executed in one piece, once it is at the head of all its record queues: no
//! other call is at them until it has ended. So nothing that it does is controlled any further, and an abort
//! has no consequences for others (section 3.3.1).

use fabius_engine::eager::Control;
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{ColumnMask, TableId};
use std::sync::atomic::AtomicU64;

/// The control of a call whose turn has come at all that it accesses.
pub struct InTurn;

impl<'a> Control<'a> for InTurn {
    // Nobody else comes to make the row that is missing.
    const RECORDS_MISSES: bool = false;
    const HAS_GRANULES: bool = false;

    fn begin_again(&mut self) {
        unreachable!("nothing is refused")
    }

    #[inline]
    fn looks_up(&mut self, _: TableId, _: &'a Record) -> Result<(), Stop> {
        Ok(())
    }

    fn scans(&mut self, _: TableId, _: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn meets(&mut self, _: TableId, _: &'a Record) -> Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn writes(&mut self, _: TableId, _: &'a Record, _: ColumnMask) -> Result<(), Stop> {
        Ok(())
    }

    fn changes(&mut self, _: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    fn claims(&mut self, _: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    /// Readers see whole graphs: of the versions that a graph leaves of a record, the last is enough (section 4.2.2).
    fn holds_back(&self) -> bool {
        true
    }
}
