//! Index joins: what a loop over a range looks up for each of its rows, brought near for some rows at a time.
//!
//! A lookup is some cache misses in a row, and begins when the scanned row is known that leads to it. At a snapshot
//! rows can be taken from a range before they are asked for, so that the misses of several lookups overlap:
//!
//! ```text
//! for ol in order_line[...] {                  16 rows taken: their buckets, then records, then versions asked for
//!     stock[w, ol.ol_i_id].s_quantity          looked up 16 times
//! ```

use crate::Definitions;
use crate::expected::{ExpectedRow, ExpectedRows, expect};
use crate::room::Room;
use crossbeam_epoch::Guard;
use fabius_program::context::{Join, Joins, KeyColumn};
use fabius_storage::chain::{self, Visible};
use fabius_storage::scan::RowScan;
use fabius_storage::{Cell, Table};
use fabius_value::{Datum, Key, Result, Seq};

/// Rows of a range that are taken together.
const ROWS_MAX: usize = 16;
/// A reader that is no deferred call.
const NOBODY: *mut () = std::ptr::null_mut();

/// A scan at a snapshot, and what is looked up by its rows.
pub struct JoinScan<'a> {
    rows: RowScan<'a>,
    joins: Vec<Join<'a>>,
    /// Rows that were taken from the range.
    near: [Visible; ROWS_MAX],
    /// How many.
    filled: usize,
    /// How many of them were given out.
    given: usize,
    /// How many are taken at once.
    take: usize,
}

impl<'a> JoinScan<'a> {
    /// A scan of which about so many rows will be asked for, or all of them. Joins with tables that are small are left
    /// out.
    pub fn new(
        rows: RowScan<'a>,
        limit: Option<u64>,
        joins: Joins<'_, 'a>,
        definitions: &Definitions,
    ) -> JoinScan<'a> {
        JoinScan {
            rows: rows.expecting(limit),
            joins: joins.with(|table| definitions.table(table).is_worth_prefetching()).collect(),
            near: [Visible::default(); ROWS_MAX],
            filled: 0,
            given: 0,
            take: limit.map_or(ROWS_MAX, |limit| limit.clamp(1, ROWS_MAX as u64) as usize),
        }
    }

    /// Whether it has joins.
    pub fn has_joins(&self) -> bool {
        !self.joins.is_empty()
    }

    /// Takes the next row from the range that is there at `seq`.
    ///
    /// # Errors
    /// As [`Room::look`].
    #[inline]
    pub fn take_row(&mut self, seq: Seq, room: &mut Room) -> Result<Option<Visible>> {
        // SAFETY: an epoch is pinned during 'a.
        let next = unsafe { self.rows.next_row(|record| room.look().map(|()| record.visible(seq))) }?;
        Ok(next.map(|(_, version)| Visible(version)))
    }
}

/// The rows that rows of a scan lead to.
#[derive(Default)]
pub struct Nearby<'a> {
    /// In the order in which they will be looked up.
    pub expected: ExpectedRows<'a>,
    columns: Vec<Datum<'a>>,
    key: Key,
}

impl<'a> Nearby<'a> {
    /// The next row of a scan with joins, at `seq`. If rows have to be taken for that, what they lead to is brought
    /// near.
    ///
    /// # Errors
    /// As [`Room::look`].
    pub fn next_row(
        &mut self,
        scan: &mut JoinScan<'a>,
        seq: Seq,
        room: &mut Room,
        definitions: &'a Definitions,
        guard: &'a Guard,
    ) -> Result<Option<Visible>> {
        if scan.given == scan.filled {
            (scan.given, scan.filled) = (0, 0);
            while scan.filled < scan.take
                && let Some(row) = scan.take_row(seq, room)?
            {
                scan.near[scan.filled] = row;
                scan.filled += 1;
            }
            self.bring_near(scan, definitions, guard);
        }
        let row = scan.near[..scan.filled].get(scan.given).copied();
        scan.given += usize::from(row.is_some());
        Ok(row)
    }

    fn bring_near(&mut self, scan: &JoinScan<'a>, definitions: &'a Definitions, guard: &'a Guard) {
        self.expected.clear();
        for row in &scan.near[..scan.filled] {
            for join in &scan.joins {
                if self.compute_key(join, scan.rows.table(), *row) {
                    let table = definitions.table(join.table);
                    expect(&mut self.expected.rows, table, &self.columns, &mut self.key, guard);
                }
            }
        }
        let rows = &mut self.expected.rows;
        rows.iter_mut().for_each(|row| row.find_record(definitions, guard));
        rows.iter_mut().for_each(ExpectedRow::find_version);
    }

    /// Computes the key of a lookup by a row of the scan; false if it is not known, or null.
    fn compute_key(&mut self, join: &Join<'a>, scanned: &Table, row: Visible) -> bool {
        self.columns.clear();
        for part in &join.key {
            let value = match *part {
                KeyColumn::Value(value) => value,
                KeyColumn::OfRow(column) => {
                    let data_type = scanned.types()[usize::from(column.0)];
                    // SAFETY: an epoch is pinned during 'a.
                    match unsafe { chain::read(row.0, column, data_type, NOBODY) } {
                        Cell::Value(value) => value,
                        Cell::Pending(_) | Cell::Absent => return false,
                    }
                }
            };
            self.columns.push(value);
        }
        !self.columns.iter().any(|value| value.is_null())
    }
}
