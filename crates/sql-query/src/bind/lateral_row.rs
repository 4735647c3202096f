//! `LATERAL` of one row that is computed of the row beside it, `LATERAL (SELECT a.x + 1 AS y)`: columns of that row.
//!
//! What is applied row by row cannot change places with joins; what is a projection can.

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

/// The left side with the columns of a lateral query that always gives one row; `None` if the query is another.
pub(super) fn beside(left: &LogicalPlan, lateral: &LogicalPlan) -> FusionResult<Option<LogicalPlan>> {
    let Some(own) = one_row(lateral)? else { return Ok(None) };
    let mut columns: Vec<Expr> = left.schema().iter().map(Expr::from).collect();
    for expr in own {
        let settled = expr.transform(|expr| {
            Ok(match expr {
                Expr::OuterReferenceColumn(_, column) if left.schema().has_column(&column) => {
                    Transformed::yes(Expr::Column(column))
                }
                other => Transformed::no(other),
            })
        });
        columns.push(settled?.data);
    }
    LogicalPlanBuilder::from(left.clone()).project(columns)?.build().map(Some)
}

/// The columns of a query without tables, each as an expression of rows around it.
fn one_row(plan: &LogicalPlan) -> FusionResult<Option<Vec<Expr>>> {
    let LogicalPlan::Projection(projection) = plan else { return Ok(None) };
    if !projection.expr.iter().all(is_plain) {
        return Ok(None);
    }
    let inner = match projection.input.as_ref() {
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Vec::new(),
        input => match one_row(input)? {
            Some(inner) => inner,
            None => return Ok(None),
        },
    };
    let named = |column: &Column| inner.iter().find(|expr| expr.schema_name().to_string() == column.name);
    let shown = projection.expr.iter().map(|expr| {
        let name = expr.schema_name().to_string();
        let replaced = expr.clone().unalias().transform_down(|expr| {
            Ok(match &expr {
                Expr::Column(column) => match named(column) {
                    Some(inner) => Transformed::new(inner.clone().unalias(), true, TreeNodeRecursion::Jump),
                    None => Transformed::no(expr),
                },
                _ => Transformed::no(expr),
            })
        })?;
        Ok(replaced.data.alias(name))
    });
    shown.collect::<FusionResult<Vec<_>>>().map(Some)
}

/// Whether an expression is computed of values alone, the same each time.
fn is_plain(expr: &Expr) -> bool {
    let is_other = expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Unnest(_)
        ))
    });
    !is_other.unwrap_or(true) && !expr.is_volatile()
}
