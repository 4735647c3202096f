//! Parts of plans that several clauses make.

use crate::failure::inbound;
use datafusion::common::{Column, NullHandling, UnnestOptions};
use datafusion::logical_expr::expr::{Sort, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, WindowFrame, WindowFunctionDefinition, WindowUDF,
};
use fabius_value::Result;
use std::sync::Arc;

/// Adds arrays to a plan and makes a row of each element; several arrays go in step. `keep` keeps rows whose array is
/// empty or null.
pub(super) fn spread(plan: LogicalPlan, arrays: Vec<(Column, Expr)>, keep: bool) -> Result<LogicalPlan> {
    let mut expressions: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
    let mut columns = Vec::with_capacity(arrays.len());
    for (column, expression) in arrays {
        expressions.push(expression.alias(column.name.clone()));
        columns.push(column);
    }
    let mut options = UnnestOptions::new();
    options.null_handling = if keep { NullHandling::PreserveAndExpandEmpty } else { NullHandling::Drop };
    LogicalPlanBuilder::from(plan)
        .project(expressions)
        .and_then(|builder| builder.unnest_columns_with_options(columns, options))
        .and_then(LogicalPlanBuilder::build)
        .map_err(inbound)
}

/// More rows than any query has; DataFusion multiplies it by the bytes of a row.
pub(super) const MOST: usize = 1 << 40;

/// A plan through which no condition is moved: one that has a limit, which is never reached.
pub(super) fn apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let limited = LogicalPlanBuilder::from(plan).limit(0, Some(MOST));
    limited.and_then(LogicalPlanBuilder::build).map_err(inbound)
}

/// `row_number()` over a partition.
pub(super) fn row_number(partition_by: Vec<Expr>, order_by: Vec<Sort>) -> Expr {
    over_window(datafusion::functions_window::row_number::row_number_udwf(), partition_by, order_by)
}

/// A function without arguments over a partition.
pub(super) fn over_window(function: Arc<WindowUDF>, partition_by: Vec<Expr>, order_by: Vec<Sort>) -> Expr {
    let window_frame = WindowFrame::new(None);
    Expr::WindowFunction(Box::new(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(function),
        params: WindowFunctionParams {
            args: Vec::new(),
            partition_by,
            order_by,
            window_frame,
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    }))
}
