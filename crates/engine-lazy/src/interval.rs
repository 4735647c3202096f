//! What values a numeric column can have: the ground on which promises stand.
//!
//! A later-phase must not fail (DESIGN, section 5). Arithmetic on columns is proven not to overflow by
//! intervals: for each exact-number column the lane keeps one that contains every value promised so
//! far, *current*, and a wider one that proofs may assume, *assumed*:
//!
//! ```text
//! assumed   [-1024 ............................. 4095]     proofs hold inside it
//! current        [0 ............... 2100]                  grows with every call
//! ```
//!
//! When a call would push current out of assumed, assumed becomes much wider and all proofs are made again:
//! 256 times as wide as current while that is far from what the type can hold, twice as wide near it. So
//! that happens about ten times per column and end. A column whose interval has grown as
//! wide as its type has no proof any more: operations on it run in the now-phase.

use fabius_program::catalog::Catalog;
use fabius_program::slice::Interval;
use fabius_value::{ColumnId, ColumnMask, Datum, TableId};

#[derive(Clone, Copy)]
struct Column {
    current: Interval,
    assumed: Interval,
    limit: Interval,
}

/// What is known of the columns of a table.
#[derive(Default)]
struct Columns {
    /// By column: numbers between these are no news. Apart from the rest, because every write asks.
    near: Vec<(i64, i64)>,
    /// By column: nothing if it is not an exact number.
    exact: Vec<Option<Column>>,
}

/// The intervals of all columns.
#[derive(Default)]
pub struct Intervals {
    tables: Vec<Columns>,
    version: u64,
}

impl Intervals {
    /// Adds the tables that the catalog has and this does not.
    pub fn follow(&mut self, catalog: &Catalog) {
        const ZERO: Interval = Interval { low: 0, high: 0 };
        for (_, table) in catalog.table_numbers().skip(self.tables.len()) {
            let mut columns = Columns::default();
            for column in &table.columns {
                let range = column.data_type.exact_range();
                columns.near.push(range.map_or((i64::MIN, i64::MAX), |_| (0, 0)));
                columns.exact.push(range.map(|(low, high)| Column {
                    current: ZERO,
                    assumed: ZERO,
                    limit: Interval { low, high },
                }));
            }
            self.tables.push(columns);
        }
    }

    /// Changes whenever a column has gone beyond what was assumed of it.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn exact(&self, table: TableId, column: ColumnId) -> Option<Column> {
        self.tables[table.0 as usize].exact[column.0 as usize]
    }

    /// What proofs may assume of a column.
    pub fn assumed(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        self.exact(table, column).map(|column| column.assumed)
    }

    /// What values a column has had so far.
    pub fn current(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        self.exact(table, column).map(|column| column.current)
    }

    /// Notes values that are stored.
    #[inline]
    pub fn widen(&mut self, table: TableId, columns: ColumnMask, values: &[Datum<'_>]) {
        let known = &mut self.tables[table.0 as usize];
        for (column, &value) in columns.iter().zip(values) {
            let (low, high) = known.near[usize::from(column.0)];
            let number = match value {
                Datum::Int(number) if (low..=high).contains(&number) => continue,
                Datum::Numeric(number) if i128::from(low) <= number && number <= i128::from(high) => continue,
                Datum::Int(number) => number.into(),
                Datum::Numeric(number) => number,
                _ => continue,
            };
            self.version += u64::from(known.include(column, Interval::only(number)));
        }
    }

    /// Notes that a column may have values of an interval.
    pub fn include(&mut self, table: TableId, column: ColumnId, interval: Interval) {
        self.version += u64::from(self.tables[table.0 as usize].include(column, interval));
    }

    /// Notes that every value of a column may have moved by an amount of an interval.
    #[inline]
    pub fn shift(&mut self, table: TableId, column: ColumnId, by: Interval) {
        let Some(known) = self.exact(table, column) else { return };
        let low = known.current.low.saturating_add(by.low.min(0)).max(known.limit.low);
        let high = known.current.high.saturating_add(by.high.max(0)).min(known.limit.high);
        self.include(table, column, Interval { low, high });
    }
}

impl Columns {
    /// Notes that a column may have values of an interval; whether that is beyond what was assumed.
    #[cold]
    fn include(&mut self, column: ColumnId, interval: Interval) -> bool {
        let at = usize::from(column.0);
        let Some(known) = &mut self.exact[at] else { return false };
        known.current.low = known.current.low.min(interval.low);
        known.current.high = known.current.high.max(interval.high);
        let clamped = |bound: i128| bound.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        self.near[at] = (clamped(known.current.low), clamped(known.current.high));
        let is_beyond = known.current.low < known.assumed.low || known.current.high > known.assumed.high;
        if is_beyond {
            known.assumed = known.current.with_room(known.limit);
        }
        is_beyond
    }
}
