//! Where a query's rows come from: scans of tables at one moment.

use async_trait::async_trait;
use fabius_sql_meaning::catalog::{ObjectName, Table};
use fabius_sql_meaning::output::RowLock;
use fabius_value::{Error, Result, SqlState, Value};
use futures::stream::BoxStream;
use std::fmt;
use std::sync::Arc;

/// One end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The value at the end; never null.
    pub value: Value,
    /// Whether it belongs to the range.
    pub is_inclusive: bool,
}

/// What to read of one table: the rows whose key begins with `equal`, the key's next column between the bounds.
#[derive(Clone, PartialEq)]
pub struct TableScan {
    /// The table.
    pub table: Arc<Table>,
    /// The name of the key that is read along: the primary key's, or an index's; `None` reads all rows.
    pub index: Option<String>,
    /// Values that the key's first columns have, in the columns' storage types; never null.
    pub equal: Vec<Value>,
    /// The lower end of the key's next column.
    pub lower: Option<Bound>,
    /// The upper end of the key's next column.
    pub upper: Option<Bound>,
    /// The columns wanted, as places in [`Table::columns`], behind which is the hidden number of a row of a table
    /// without a primary key; each row has their values in this order.
    pub columns: Vec<usize>,
    /// No more rows than this are needed.
    pub limit: Option<usize>,
    /// The query's `FOR UPDATE` or `FOR SHARE`, if it is about this table.
    pub row_lock: Option<RowLock>,
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table.name.schema, self.table.name.name)?;
        if let Some(index) = &self.index {
            write!(f, " along {index}")?;
        }
        write!(f, " equal {:?} from {:?} to {:?} limit {:?}", self.equal, self.lower, self.upper, self.limit)
    }
}

/// Tables as they are at one moment: a snapshot, or what a transaction sees.
#[async_trait]
pub trait RowSource: Send + Sync {
    /// The rows that a scan asks for, some at a time, each with the values of its columns in their storage types. More
    /// rows than the ranges ask for may come, none may be missing; at least `limit` of those that fit, if there are.
    ///
    /// Errors in the stream say why they cannot be read.
    fn scan(self: Arc<Self>, scan: TableScan) -> BoxStream<'static, Result<Vec<Vec<Value>>>>;

    /// Why a query that reads from it is to end before it is done, if it is.
    fn over(&self) -> Option<Error> {
        None
    }

    /// Some columns of the rows that were found before under a number: see
    /// [`part::given`](fabius_sql_syntax::part::given).
    ///
    /// # Errors
    /// There are none.
    fn given(&self, _number: u64, _columns: &[usize]) -> Result<Vec<Vec<Value>>> {
        Err(Error::new(SqlState::UNDEFINED_TABLE, "these rows do not exist"))
    }

    /// The last value that a sequence gave and whether it gave any, for `SELECT last_value FROM sequence`.
    ///
    /// # Errors
    /// Why it cannot be read.
    async fn sequence(&self, _name: &ObjectName) -> Result<(i64, bool)> {
        Ok((1, false))
    }
}
