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
    layout: &'a Layout,
    held: PartitionSet,
    /// The number that the last row's key began with: the next one's most often does too.
    last: Option<i64>,
}

impl<'a> Owner<'a> {
    /// Of calls that may touch these partitions.
    pub fn new(layout: &'a Layout, held: PartitionSet) -> Owner<'a> {
        Owner { layout, held, last: None }
    }

    #[inline]
    fn check(&mut self, table: TableId, record: &Record) {
        let number = self.layout.first_number(table, record.key());
        if number.is_some() && number != self.last {
            let partition = number.map(|number| self.layout.partition_of_number(number));
            assert!(partition.is_some_and(|one| self.held.contains(one)), "a call left its partitions");
            self.last = number;
        }
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
