//! What values a numeric column can have: the ground on which promises stand.
//!
//! A later-phase must not fail (`ARCHITECTURE.md`, invariants). Arithmetic on columns is proven not to overflow by
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
    /// Whether calls move its values.
    is_moved: bool,
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
    news: u64,
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
                    is_moved: false,
                }));
            }
            self.tables.push(columns);
        }
    }

    /// Changes whenever a column has gone beyond what was assumed of it.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Changes whenever a column that calls move the values of may have got one that is none of those it had, moved.
    pub fn news(&self) -> u64 {
        self.news
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
        for (column, &value) in columns.iter().zip(values) {
            let (low, high) = self.tables[table.0 as usize].near[usize::from(column.0)];
            let number = match value {
                Datum::Int(number) if (low..=high).contains(&number) => continue,
                Datum::Numeric(number) if i128::from(low) <= number && number <= i128::from(high) => continue,
                Datum::Int(number) => number.into(),
                Datum::Numeric(number) => number,
                _ => continue,
            };
            self.include(table, column, Interval::only(number));
        }
    }

    /// Notes that a column may have values of an interval.
    #[cold]
    pub fn include(&mut self, table: TableId, column: ColumnId, interval: Interval) {
        let columns = &mut self.tables[table.0 as usize];
        let Some(known) = &mut columns.exact[usize::from(column.0)] else { return };
        self.version += u64::from(known.include(interval));
        self.news += u64::from(known.is_moved);
        let clamped = |bound: i128| bound.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        columns.near[usize::from(column.0)] = (clamped(known.current.low), clamped(known.current.high));
    }

    /// Notes that every value of a column may be moved so many times by an amount of an interval, until there is
    /// [news](Intervals::news).
    pub fn shift(&mut self, table: TableId, column: ColumnId, by: Interval, times: i128) {
        let Some(known) = &mut self.tables[table.0 as usize].exact[usize::from(column.0)] else { return };
        let moved = |from: i128, by: i128| from.saturating_add(by.saturating_mul(times));
        let low = moved(known.current.low, by.low.min(0)).max(known.limit.low);
        let high = moved(known.current.high, by.high.max(0)).min(known.limit.high);
        known.is_moved = true;
        // What is near stays: a value beyond it is news, from which others may move on.
        self.version += u64::from(known.include(Interval { low, high }));
    }
}

impl Column {
    /// Notes that it may have values of an interval; whether that is beyond what was assumed of it.
    fn include(&mut self, interval: Interval) -> bool {
        self.current = self.current.hull(interval);
        let is_beyond = !self.assumed.covers(self.current);
        if is_beyond {
            self.assumed = self.current.with_room(self.limit);
        }
        is_beyond
    }
}
