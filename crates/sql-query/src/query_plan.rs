//! A query that is ready to run.

use crate::arrow_column::{rows, scalar};
use crate::bind::{Binder, Flavor, Typed};
use crate::failure::inbound;
use crate::machine;
use crate::row_source::RowSource;
use datafusion::common::ParamValues;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use fabius::Allowance;
use fabius_sql_meaning::catalog::{Catalog, ObjectName};
use fabius_sql_meaning::functions::Environment;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState, Value};
use futures::StreamExt;
use futures::stream::BoxStream;
use sqlparser::ast;
use std::sync::Arc;

/// A query that is bound: names and types are settled. It holds as long as the catalog has its version.
pub struct QueryPlan {
    /// The columns of its result.
    pub columns: Vec<OutputColumn>,
    /// Tables that it reads.
    pub reads: Vec<ObjectName>,
    /// Whether it has `FOR UPDATE` or `FOR SHARE`: see [`crate::TableScan::row_lock`].
    pub locks_rows: bool,
    /// The types of its parameters.
    parameters: Vec<SqlType>,
    /// The types of its columns before they are shown.
    types: Vec<SqlType>,
    plan: LogicalPlan,
}

/// Binds a query. Parameters without a type get one from where they stand.
///
/// # Errors
/// What is wrong with it: PostgreSQL's codes; `0A000` for what is not supported.
pub fn plan(
    query: &ast::Query,
    catalog: &Arc<Catalog>,
    types: &mut ParameterTypes,
    session: &Arc<dyn SessionFacts>,
) -> Result<QueryPlan> {
    let environment = Arc::new(Environment {
        catalog: catalog.clone(),
        session: session.clone(),
        style: session.text_style(),
    });
    let mut binder = Binder::new(environment, types);
    let relation = binder.query(query)?;
    // What is an identifier inside shows as a name outside, a vector without braces.
    let mut expressions = Vec::with_capacity(relation.columns.len());
    let mut columns = Vec::with_capacity(relation.columns.len());
    let mut kept = Vec::with_capacity(relation.columns.len());
    let mut has_names = false;
    for output in relation.columns {
        let mut typed = output.typed();
        if matches!(typed.flavor, Flavor::Named(_) | Flavor::Vector) {
            has_names = true;
            typed = binder.cast(typed, &SqlType::Text)?;
        }
        if typed.sql_type == SqlType::Unknown {
            typed = Typed { sql_type: SqlType::Text, ..typed };
        }
        let shown = match &typed.sql_type {
            // Modifiers belong to columns, not to what is computed of them.
            SqlType::Numeric(_) if typed.origin == (0, 0) => SqlType::Numeric(None),
            other => other.clone(),
        };
        columns.push(OutputColumn { name: output.name, sql_type: shown, origin: typed.origin });
        kept.push(typed.sql_type);
        expressions.push(typed.expr);
    }
    let mut plan = relation.plan;
    if has_names || plan.schema().fields().len() != expressions.len() {
        let named = expressions.into_iter().enumerate().map(|(at, expr)| expr.alias(format!("out {at}")));
        plan = LogicalPlanBuilder::from(plan)
            .project(named.collect::<Vec<_>>())
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
    }
    let (reads, locks_rows) = (std::mem::take(&mut binder.reads), binder.locks_rows);
    let parameters = types.clone().finish();
    Ok(QueryPlan { columns, reads, locks_rows, parameters, types: kept, plan })
}

impl QueryPlan {
    /// Runs it with values for its parameters, in their storage types. Rows come in the storage types of
    /// [`QueryPlan::columns`]; an array is a list of rows with one field, an interval its text, a `numeric` has the
    /// digits after the point that PostgreSQL shows. Its operators hold no more than they are allowed.
    ///
    /// # Errors
    /// Why it cannot begin; what fails later comes in the stream.
    pub async fn run(
        &self,
        parameters: &[Value],
        source: Arc<dyn RowSource>,
        memory: &Arc<Allowance>,
    ) -> Result<BoxStream<'static, Result<Vec<Value>>>> {
        let operators = machine::operators(&self.with_parameters(parameters)?, memory).await?;
        let stream = machine::run(operators, machine::context(source, memory))?;
        let types = Arc::new(self.types.clone());
        let rows = stream.flat_map(move |batch| match batch {
            Ok(batch) => futures::stream::iter(rows(&batch, &types)).map(Ok).left_stream(),
            Err(error) => futures::stream::iter([Err(inbound(error))]).right_stream(),
        });
        Ok(rows.boxed())
    }

    fn with_parameters(&self, parameters: &[Value]) -> Result<LogicalPlan> {
        if self.parameters.is_empty() {
            return Ok(self.plan.clone());
        }
        if parameters.len() < self.parameters.len() {
            return Err(Error::new(
                SqlState(*b"08P01"),
                format!(
                    "the query has {} parameters, but {} were given",
                    self.parameters.len(),
                    parameters.len()
                ),
            ));
        }
        let values = parameters
            .iter()
            .zip(&self.parameters)
            .map(|(value, sql_type)| scalar(value, sql_type).map(ScalarAndMetadata::from))
            .collect::<Result<Vec<_>>>()?;
        self.plan.clone().replace_params_with_values(&ParamValues::List(values)).map_err(inbound)
    }

    /// The plan as text, for `EXPLAIN`.
    ///
    /// # Errors
    /// As [`QueryPlan::run`].
    pub async fn explain(&self, parameters: &[Value], memory: &Arc<Allowance>) -> Result<Vec<String>> {
        let operators = machine::operators(&self.with_parameters(parameters)?, memory).await?;
        let text = datafusion::physical_plan::displayable(operators.as_ref()).indent(false).to_string();
        Ok(text.lines().map(String::from).collect())
    }
}
