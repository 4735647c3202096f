//! Scans over a range of an index: its records, or the rows that are there for some reader.

use crate::index::{AnyCursor, prefetch};
use crate::{Record, Table, Version, chain};
use crossbeam_epoch::Guard;
use fabius_value::{Datum, IndexId, Key, Result};

/// The evaluated bounds of a scan.
#[derive(Clone, Copy, Debug)]
pub struct Range<'r, 'a> {
    /// A secondary index, or `None` for the primary key.
    pub index: Option<IndexId>,
    /// Values of the leading columns; none is null.
    pub equal: &'r [Datum<'a>],
    /// Lower bound on the next column, and whether it is inclusive.
    pub lower: Option<(Datum<'a>, bool)>,
    /// Upper bound likewise.
    pub upper: Option<(Datum<'a>, bool)>,
    /// From the upper end down.
    pub descending: bool,
}

/// Records of a scan whose memory is asked for together.
const NEAR_MAX: usize = 16;

/// A scan in progress over the records of a range, visible or not.
pub struct TableScan<'g> {
    cursor: AnyCursor<'g>,
    /// Records that were taken from the cursor and asked for.
    near: [Option<&'g Record>; NEAR_MAX],
    /// How many.
    filled: usize,
    /// How many of them were given out.
    given: usize,
    /// How many to take next time: few at first, for scans that may stop early.
    take: usize,
}

impl<'g> TableScan<'g> {
    pub(crate) fn new(cursor: AnyCursor<'g>) -> TableScan<'g> {
        TableScan { cursor, near: [None; NEAR_MAX], filled: 0, given: 0, take: 1 }
    }

    /// This scan for someone who will ask for about so many records, or for all of them.
    #[must_use]
    pub fn expecting(mut self, records: Option<u64>) -> TableScan<'g> {
        self.take = records.map_or(NEAR_MAX, |records| records.clamp(1, NEAR_MAX as u64) as usize);
        self
    }

    /// The next record of the range.
    #[inline]
    pub fn next_record(&mut self) -> Option<&'g Record> {
        if self.given == self.filled {
            self.bring_near();
        }
        let record = self.near[..self.filled].get(self.given).copied().flatten();
        self.given += 1;
        record
    }

    /// Takes some records from the cursor, and asks for all of them and their newest versions at once.
    fn bring_near(&mut self) {
        (self.given, self.filled) = (0, 0);
        while self.filled < self.take {
            let Some(pointer) = self.cursor.next_pointer() else { break };
            pointer.prefetch();
            // SAFETY: what the index holds is readable while the epoch is pinned.
            self.near[self.filled] = Some(unsafe { &*pointer.cast::<Record>() });
            self.filled += 1;
        }
        if self.take > 1 {
            self.near[..self.filled].iter().flatten().for_each(|record| prefetch(record.head()));
        }
        self.take = (self.take * 4).min(NEAR_MAX);
    }

    /// The next record and the key of the entry that led to it.
    pub fn next_entry(&mut self) -> Option<(&'g Record, Key)> {
        let (key, pointer) = self.cursor.next_entry()?;
        // SAFETY: what the index holds is readable while the epoch is pinned.
        Some((unsafe { &*pointer.cast::<Record>() }, key))
    }
}

/// A scan over the rows that are there for some reader.
pub struct RowScan<'g> {
    table: &'g Table,
    index: Option<IndexId>,
    scan: TableScan<'g>,
}

impl<'g> RowScan<'g> {
    /// Opens a scan over a range.
    ///
    /// # Errors
    /// As [`Table::scan`].
    pub fn open(table: &'g Table, range: &Range<'_, '_>, guard: &'g Guard) -> Result<RowScan<'g>> {
        Ok(RowScan { table, index: range.index, scan: table.scan(range, guard)? })
    }

    /// See [`TableScan::expecting`].
    #[must_use]
    pub fn expecting(self, rows: Option<u64>) -> RowScan<'g> {
        RowScan { scan: self.scan.expecting(rows), ..self }
    }

    /// The table.
    pub fn table(&self) -> &'g Table {
        self.table
    }

    /// The next record whose row is there, with the version at which the reader begins; `visible`
    /// gives that version of a record, or ends the scan: of many records the row may not be there.
    ///
    /// # Errors
    /// Those of `visible`.
    ///
    /// # Safety
    /// What `visible` gives is null or readable.
    pub unsafe fn next_row<E>(
        &mut self,
        mut visible: impl FnMut(&Record) -> Result<*const Version, E>,
    ) -> Result<Option<(&'g Record, *const Version)>, E> {
        loop {
            let next = match self.index {
                None => self.scan.next_record().map(|record| (record, None)),
                Some(index) => self.scan.next_entry().map(|(record, key)| (record, Some((index, key)))),
            };
            let Some((record, entry)) = next else { return Ok(None) };
            let version = visible(record)?;
            // SAFETY: null or readable, as whoever has given `visible` sees to; indexed columns are never stickies.
            let is_there = unsafe {
                chain::is_present(version)
                    && entry.is_none_or(|(index, key)| self.table.entry_is_current(index, &key, version))
            };
            if is_there {
                return Ok(Some((record, version)));
            }
        }
    }
}
