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
            known.assumed = Interval {
                low: lower_step(known.current.low, known.limit.low),
                high: upper_step(known.current.high, known.limit.high),
            };
        }
        is_beyond
    }
}

/// A bound at or above `value` that leaves room to grow: a power of two, less one, or `limit`.
pub fn upper_step(value: i128, limit: i128) -> i128 {
    if value <= 0 {
        return 0.min(limit);
    }
    let bits = 128 - value.leading_zeros();
    let limit_bits = 128 - limit.max(1).leading_zeros();
    // Proofs need room below the limit: add two numbers, and they have one bit more.
    let bits = (bits + 8).min(limit_bits.saturating_sub(4)).max(bits + 1);
    if bits > 126 { limit } else { ((1i128 << bits) - 1).min(limit) }
}

/// A bound at or below `value`, likewise.
pub fn lower_step(value: i128, limit: i128) -> i128 {
    if value >= 0 { 0.max(limit) } else { (-upper_step(-value, -(limit + 1)) - 1).max(limit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: i128 = i64::MIN as i128;
    const HIGH: i128 = i64::MAX as i128;

    #[test]
    fn steps_leave_room_and_contain_their_value() {
        for value in [1i128, 2, 3, 100, 1 << 40, 1 << 60] {
            assert!(upper_step(value, HIGH) >= 2 * value - 1, "{value}");
            assert!(lower_step(-value, LOW) < -value);
        }
        assert_eq!((upper_step(HIGH, HIGH), lower_step(LOW, LOW)), (HIGH, LOW));
        assert_eq!((upper_step(999, 999), lower_step(-999, -999)), (999, -999));
        assert_eq!((upper_step(0, HIGH), lower_step(0, LOW)), (0, 0));
        assert_eq!((upper_step(-5, HIGH), lower_step(5, LOW)), (0, 0));
    }

    #[test]
    fn a_counter_takes_few_steps_to_its_limit() {
        let (mut value, mut steps) = (1, 0);
        while value < HIGH {
            value = upper_step(value, HIGH) + 1;
            steps += 1;
        }
        assert!(steps <= 12, "{steps}");
    }
}
