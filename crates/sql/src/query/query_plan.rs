//! A query that is ready to run.

use crate::catalog::{Catalog, ObjectName};
use crate::lowered::OutputColumn;
use crate::parameter_types::ParameterTypes;
use crate::query::row_source::RowSource;
use crate::query::session_facts::SessionFacts;
use fabius_value::{Error, Result, SqlState, Value};
use futures::stream::BoxStream;
use sqlparser::ast;
use std::sync::Arc;

/// A query that is bound: names and types are settled. It holds as long as the catalog has its version.
pub struct QueryPlan {
    /// The columns of its result.
    pub columns: Vec<OutputColumn>,
    /// Tables that it reads.
    pub reads: Vec<ObjectName>,
    /// `FOR UPDATE`, `FOR SHARE`: see [`crate::query::TableScan::locks_rows`].
    pub locks_rows: bool,
}

/// Binds a query. Parameters without a type get one from where they stand.
///
/// # Errors
/// What is wrong with it: PostgreSQL's codes; `0A000` for what is not supported.
pub async fn plan(
    _query: &ast::Query,
    _catalog: &Arc<Catalog>,
    _types: &mut ParameterTypes,
    _session: &Arc<dyn SessionFacts>,
) -> Result<QueryPlan> {
    Err(Error::new(SqlState::NOT_SUPPORTED, "queries are not supported yet"))
}

impl QueryPlan {
    /// Runs it with values for its parameters, in their storage types. Rows come in the storage types of
    /// [`QueryPlan::columns`]; an array is a list of rows with one field, an interval its text.
    ///
    /// # Errors
    /// Why it cannot begin; what fails later comes in the stream.
    pub async fn run(
        &self,
        _parameters: &[Value],
        _source: Arc<dyn RowSource>,
    ) -> Result<BoxStream<'static, Result<Vec<Value>>>> {
        Err(Error::new(SqlState::NOT_SUPPORTED, "queries are not supported yet"))
    }
}
