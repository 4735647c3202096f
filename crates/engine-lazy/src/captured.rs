//! Rows that a now-phase captured, as a deferred call keeps them: in a word or two each, since a backlog is mostly
//! rows.
//!
//! ```text
//!  63   62        48 47                              0
//! +----+------------+---------------------------------+
//! |fill| table      | where the version begins        |   always; 0 for a missing row
//! +----+------------+---------------------------------+
//! |                 | where its record begins         |   if the call is to fill the version
//! +-----------------+---------------------------------+
//! |                             table                 |   if it has more than 15 bits, which are all set then
//! +---------------------------------------------------+
//! ```

use fabius_storage::index::ADDRESS_BITS;
use fabius_storage::{Record, Version};
use fabius_value::TableId;
use std::ptr::NonNull;

const FILL: u64 = 1 << 63;
const TABLE_BEHIND: u64 = (FILL - 1) >> ADDRESS_BITS;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// A row that the now-phase captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedRow {
    /// The newest version that the call sees, its own if it wrote the row; null if the row was
    /// missing.
    pub version: *const Version,
    /// The captured row's table.
    pub table: TableId,
    /// The record that the version is on, if the call is to fill it. A row that is captured again has none.
    pub record: Option<NonNull<Record>>,
}

/// A version with open columns of a deferred call.
#[derive(Clone, Copy)]
pub struct Sticky {
    /// The version.
    pub version: NonNull<Version>,
    /// The record that it is on.
    pub record: NonNull<Record>,
    /// The sticky's table.
    pub table: TableId,
}

/// A list of rows while it is made.
#[derive(Default)]
pub struct RowList(Vec<u64>);

impl RowList {
    /// Begins another one.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: CapturedRow) {
        let table = u64::from(row.table.0);
        let fill = if row.record.is_some() { FILL } else { 0 };
        self.0.push(address(row.version) | table.min(TABLE_BEHIND) << ADDRESS_BITS | fill);
        self.0.extend(row.record.map(|record| address(record.as_ptr())));
        if table >= TABLE_BEHIND {
            self.0.push(table);
        }
    }

    /// The list as words.
    pub fn words(&self) -> &[u64] {
        &self.0
    }
}

/// An address that [`pointer`] makes a pointer of again.
#[inline]
fn address<T>(pointer: *const T) -> u64 {
    let address = pointer.expose_provenance() as u64;
    assert!(address <= ADDRESS, "addresses have {ADDRESS_BITS} bits");
    address
}

#[inline]
fn pointer<T>(word: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut((word & ADDRESS) as usize)
}

/// The rows of a list, in order.
#[derive(Clone)]
pub struct Rows<'a>(std::slice::Iter<'a, u64>);

impl<'a> Rows<'a> {
    /// Those in the words of a [`RowList`].
    #[inline]
    pub fn new(words: &'a [u64]) -> Rows<'a> {
        Rows(words.iter())
    }

    /// Those that the call is to fill.
    #[inline]
    pub fn stickies(self) -> impl Iterator<Item = Sticky> + 'a {
        self.filter_map(|row| {
            let version = NonNull::new(row.version.cast_mut())?;
            Some(Sticky { version, record: row.record?, table: row.table })
        })
    }
}

impl Iterator for Rows<'_> {
    type Item = CapturedRow;

    #[inline]
    fn next(&mut self) -> Option<CapturedRow> {
        let word = *self.0.next()?;
        let record =
            if word & FILL == 0 { None } else { self.0.next().and_then(|&at| NonNull::new(pointer(at))) };
        let mut table = word >> ADDRESS_BITS & TABLE_BEHIND;
        if table == TABLE_BEHIND {
            table = *self.0.next()?;
        }
        Some(CapturedRow { version: pointer(word), table: TableId(table as u32), record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::Seq;

    /// Goal: rows come back as they were put in, missing ones and those of tables with large numbers too.
    #[test]
    fn rows_come_back() {
        let record = Record::create(b"key");
        let version = Version::create_tombstone(Seq(1));
        let mut list = RowList::default();
        let mut rows = Vec::new();
        for table in [0, 1, 32_766, 32_767, 32_768, u32::MAX] {
            for version in [version.as_ptr().cast_const(), std::ptr::null()] {
                for record in [None, Some(record)] {
                    rows.push(CapturedRow { version, table: TableId(table), record });
                }
            }
        }
        rows.iter().for_each(|&row| list.push(row));
        assert!(Rows::new(list.words()).eq(rows.iter().copied()));
        let stickies: Vec<Sticky> = Rows::new(list.words()).stickies().collect();
        assert_eq!(stickies.len(), 6, "of those with a version");
        assert!(stickies.iter().all(|sticky| sticky.version == version && sticky.record == record));
        list.clear();
        assert!(Rows::new(list.words()).next().is_none());
        // SAFETY: nothing refers to them any more.
        unsafe {
            Version::free(version, fabius_value::ColumnMask::EMPTY);
            Record::free(record);
        }
    }
}
