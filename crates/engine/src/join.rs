//! Index joins: what a loop over a range looks up for each of its rows, brought near for some rows at a time.
//!
//! A lookup is some cache misses in a row, and begins when the scanned row is known that leads to it. At a snapshot rows
//! can be taken from a scan before they are asked for, so that the misses of several lookups overlap:
//!
//! ```text
//! for ol in order_line[...] {                  16 rows taken: their buckets, then records, then versions asked for
//!     stock[w, ol.ol_i_id].s_quantity          looked up 16 times
//! ```
//!
//! Which of the columns that are read there are still sticky is known then, too, so that the calls that compute them
//! can be run one after the other, instead of each where it is met.

use crate::Definitions;
use crate::expected::{ExpectedRow, ExpectedRows, expect};
use crossbeam_epoch::Guard;
use fabius_program::context::{Join, JoinKey, Joins};
use fabius_storage::chain::{self, Visible};
use fabius_storage::scan::RowScan;
use fabius_storage::{Cell, Table};
use fabius_value::{Datum, Key, Seq};

/// Rows of a scan that are taken together.
const ROWS_MAX: usize = 16;
/// A reader that is no deferred call.
const NOBODY: *mut () = std::ptr::null_mut();

/// A scan at a snapshot, and what is looked up by its rows.
pub struct JoinScan<'a> {
    rows: RowScan<'a>,
    joins: Vec<Join<'a>>,
    /// Rows that were taken from the scan, and how many of them were given out.
    taken: Vec<Visible>,
    given: usize,
    /// How many are taken at once.
    take: usize,
}

impl<'a> JoinScan<'a> {
    /// A scan of which about so many rows will be asked for, or all of them. Joins with tables that are small or have
    /// no hash index are left out.
    pub fn new(
        rows: RowScan<'a>,
        limit: Option<u64>,
        joins: Joins<'_, 'a>,
        definitions: &Definitions,
    ) -> JoinScan<'a> {
        JoinScan {
            rows: rows.expecting(limit),
            joins: joins.iter().filter(|join| definitions.table(join.table).is_worth_prefetching()).collect(),
            taken: Vec::new(),
            given: 0,
            take: limit.map_or(ROWS_MAX, |limit| limit.clamp(1, ROWS_MAX as u64) as usize),
        }
    }

    /// Whether it has joins.
    pub fn has_joins(&self) -> bool {
        !self.joins.is_empty()
    }

    /// The next row that is there at `seq`, the one that the scan is at.
    #[inline]
    pub fn next_row(&mut self, seq: Seq) -> Option<Visible> {
        // SAFETY: an epoch is pinned during 'a.
        unsafe { self.rows.next_row(|record| record.visible(seq)) }.map(|(_, version)| Visible(version))
    }
}

/// What rows of a scan lead to.
#[derive(Default)]
pub struct Joined<'a> {
    /// Rows that will be looked up.
    pub expected: ExpectedRows<'a>,
    /// The calls that have to run before what is read of them is known.
    pub pending: Vec<*mut ()>,
    columns: Vec<Datum<'a>>,
    key: Key,
}

impl<'a> Joined<'a> {
    /// The next row of a scan at `seq`. If some rows have to be taken for that, what they lead to is brought near.
    pub fn next_row(
        &mut self,
        scan: &mut JoinScan<'a>,
        seq: Seq,
        definitions: &'a Definitions,
        guard: &'a Guard,
    ) -> Option<Visible> {
        if scan.given == scan.taken.len() {
            scan.given = 0;
            scan.taken.clear();
            while scan.taken.len() < scan.take
                && let Some(row) = scan.next_row(seq)
            {
                scan.taken.push(row);
            }
            self.bring_near(scan, seq, definitions, guard);
        }
        let row = scan.taken.get(scan.given).copied()?;
        scan.given += 1;
        Some(row)
    }

    fn bring_near(&mut self, scan: &JoinScan<'a>, seq: Seq, definitions: &'a Definitions, guard: &'a Guard) {
        self.expected.clear();
        self.pending.clear();
        for join in &scan.joins {
            let table = definitions.table(join.table);
            for row in &scan.taken {
                if self.compute_key(join, scan.rows.table(), *row) {
                    expect(&mut self.expected.rows, table, &self.columns, &mut self.key, guard);
                }
            }
        }
        let rows = &mut self.expected.rows;
        rows.iter_mut().for_each(|row| row.find_record(definitions, guard));
        rows.iter_mut().for_each(ExpectedRow::find_version);
        for row in rows {
            let Some(record) = row.record() else { continue };
            for join in scan.joins.iter().filter(|join| join.table == row.table) {
                // SAFETY: an epoch is pinned during 'a.
                let first = unsafe { chain::first_pending(record.visible(seq), join.reads, NOBODY) };
                self.pending.extend(first);
            }
        }
    }

    /// Computes the key of a lookup by a row of the scan; false if it is not known, or null.
    fn compute_key(&mut self, join: &Join<'a>, scanned: &Table, row: Visible) -> bool {
        self.columns.clear();
        for part in &join.key {
            let value = match *part {
                JoinKey::Value(value) => value,
                JoinKey::Column(column) => {
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
