//! The control of calls that have their partitions, or all their local locks, before they begin: there is
//! nothing left to control.
//!
//! What remains is an assertion: a call touches no row outside of the partitions that were found for it.

use crate::layout::Layout;
use crate::partition_set::PartitionSet;
use fabius_engine::eager::Control;
use fabius_program::context::Stop;
use fabius_storage::Record;
use fabius_value::TableId;

/// Whoever runs calls under this owns what they touch.
pub struct Owner<'a> {
    /// How rows are divided into partitions.
    pub layout: &'a Layout,
    /// The partitions that the calls may touch.
    pub held: PartitionSet,
}

impl Owner<'_> {
    #[inline]
    fn check(&self, table: TableId, record: &Record) {
        let partition = self.layout.partition_of_key(table, record.key());
        assert!(
            partition.is_none_or(|partition| self.held.contains(partition)),
            "a call left its partitions"
        );
    }
}

impl<'a> Control<'a> for Owner<'a> {
    // Nobody else comes to make the row that is missing.
    const RECORDS_MISSES: bool = false;
    const HAS_GRANULES: bool = false;

    #[inline]
    fn looks_up(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.check(table, record);
        Ok(())
    }

    #[inline]
    fn meets(&mut self, table: TableId, record: &'a Record) -> Result<(), Stop> {
        self.check(table, record);
        Ok(())
    }
}
