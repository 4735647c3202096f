//! Rows that are not known yet: a range of a table, and what a transaction over future values can make of it.

use super::expression::{FutureValue, Node};
use fabius_value::DataType;

/// Rows of a table, in the order of its primary key or of an index.
///
/// ```
/// use fabius::RowRange;
///
/// // lines[7, 2 .. 5], and the last row of stock by its index on quantity
/// let lines = RowRange::of("lines").equal([7]).from(2).to(5);
/// let most = RowRange::of("stock").by("by_quantity").descending().limit(1);
/// ```
#[derive(Clone, Debug)]
pub struct RowRange {
    pub(super) table: String,
    pub(super) index: Option<String>,
    pub(super) equal: Vec<FutureValue>,
    pub(super) lower: Option<FutureValue>,
    pub(super) upper: Option<FutureValue>,
    pub(super) descending: bool,
    pub(super) limit: Option<i64>,
}

impl RowRange {
    /// All rows of a table, by its primary key.
    pub fn of(table: impl Into<String>) -> RowRange {
        let (index, equal, lower, upper) = (None, Vec::new(), None, None);
        RowRange { table: table.into(), index, equal, lower, upper, descending: false, limit: None }
    }

    /// The rows in the order of a secondary index.
    #[must_use]
    pub fn by(mut self, index: impl Into<String>) -> RowRange {
        self.index = Some(index.into());
        self
    }

    /// Rows whose leading columns, of the key or of the index, have these values.
    #[must_use]
    pub fn equal<V: Into<FutureValue>>(mut self, values: impl IntoIterator<Item = V>) -> RowRange {
        self.equal = values.into_iter().map(Into::into).collect();
        self
    }

    /// Rows whose next column has at least this value.
    #[must_use]
    pub fn from(mut self, value: impl Into<FutureValue>) -> RowRange {
        self.lower = Some(value.into());
        self
    }

    /// Rows whose next column has at most this value.
    #[must_use]
    pub fn to(mut self, value: impl Into<FutureValue>) -> RowRange {
        self.upper = Some(value.into());
        self
    }

    /// The rows from the upper end down.
    #[must_use]
    pub fn descending(mut self) -> RowRange {
        self.descending = true;
        self
    }

    /// No more than so many rows.
    #[must_use]
    pub fn limit(mut self, count: u32) -> RowRange {
        self.limit = Some(i64::from(count));
        self
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &FutureValue> {
        self.equal.iter().chain(&self.lower).chain(&self.upper)
    }
}

/// The rows of a [`RowRange`] at one point of a transaction. Nothing of them is known before somebody asks.
#[derive(Clone, Debug)]
pub struct FutureRows {
    pub(super) step: usize,
    pub(super) columns: Vec<(String, DataType)>,
}

impl FutureRows {
    /// How many rows there are.
    pub fn count(&self) -> FutureValue {
        FutureValue::new(Node::Aggregate("count", self.step, None))
    }

    /// The sum of one of the columns that are read; null if there is no row.
    pub fn sum(&self, column: &str) -> FutureValue {
        FutureValue::new(Node::Aggregate("sum", self.step, Some(column.to_string())))
    }

    /// The least value of one of the columns that are read; null if there is no row.
    pub fn min(&self, column: &str) -> FutureValue {
        FutureValue::new(Node::Aggregate("min", self.step, Some(column.to_string())))
    }

    /// The greatest value of one of the columns that are read; null if there is no row.
    pub fn max(&self, column: &str) -> FutureValue {
        FutureValue::new(Node::Aggregate("max", self.step, Some(column.to_string())))
    }
}
