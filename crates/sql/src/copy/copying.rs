//! A `COPY` that takes rows in, as far as it has come.

use super::lines::Lines;
use fabius_sql_meaning::catalog::{Catalog, Table};
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_syntax::copy::CopyOptions;
use fabius_value::Value;
use std::sync::Arc;

/// A `COPY ... FROM STDIN` under way.
pub(crate) struct Copying {
    pub(super) table: Table,
    pub(super) columns: Vec<String>,
    pub(super) options: CopyOptions,
    pub(super) insert: BulkWrite,
    pub(super) catalog: Arc<Catalog>,
    pub(super) lines: Lines,
    pub(super) rows: Vec<Vec<Value>>,
    pub(super) count: u64,
    pub(super) bytes: usize,
    /// Whether rows go to a table of the storage that nobody else sees.
    pub(super) is_aside: bool,
    /// Whether the transaction is of this statement.
    pub(super) is_alone: bool,
    pub(super) has_begun: bool,
}
