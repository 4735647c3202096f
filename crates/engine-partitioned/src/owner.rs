//! The control of calls that have their partitions, or all their local locks, before they begin: there is
//! nothing left to control.
//!
//! What remains is an assertion: a call touches no row outside of the partitions that were found for it.

use crate::layout::Layout;
use crate::partition_set::PartitionSet;
use fabius_engine::eager::{Control, Protocol};
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::{ColumnMask, TableId};
use std::sync::atomic::AtomicU64;

/// Whoever runs calls under this owns what they touch.
pub struct Owner<'a> {
    /// The partitions that the calls may touch, in which layout; `None` if no other call runs.
    pub held: Option<(&'a Layout, PartitionSet)>,
}

impl Owner<'_> {
    #[inline]
    fn check(&self, table: TableId, record: &Record) {
        if let Some((layout, held)) = self.held {
            let partition = layout.partition_of_key(table, record.key());
            assert!(partition.is_none_or(|partition| held.contains(partition)), "a call left its partitions");
        }
    }
}

impl<'a> Control<'a> for Owner<'a> {
    // Nobody else comes to make the row that is missing.
    const RECORDS_MISSES: bool = false;
    const HAS_GRANULES: bool = false;

    fn begin_again(&mut self) {
        unreachable!("nothing is refused")
    }

    #[inline]
    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.check(table, record);
        Ok(())
    }

    fn scans(&mut self, _: TableId, _: &'a AtomicU64) -> Result<(), Stop> {
        Ok(())
    }

    #[inline]
    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.check(table, record);
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

/// One thread alone: how the log is replayed.
pub struct Alone;

impl Protocol for Alone {
    const NAME: &'static str = "partitioned";

    type Control<'a> = Owner<'a>;

    fn enter(&self) -> Option<usize> {
        Some(0)
    }

    fn leave(&self, _: usize) {}

    fn control<'a>(&'a self, _: usize) -> Owner<'a> {
        Owner { held: None }
    }
}
