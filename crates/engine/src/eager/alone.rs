//! The control of calls that run one after the other: there is nothing to control.

use crate::eager::Control;
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{ColumnMask, TableId};
use std::sync::atomic::AtomicU64;

/// One thread runs calls, and no other does: how a log is replayed.
pub struct Alone;

impl<'a> Control<'a> for Alone {
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
}
