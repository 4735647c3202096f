//! The order that a subquery has given its rows, for aggregates that show it: `string_agg (x, ',')` over `(SELECT ...
//! ORDER BY y)`.
//!
//! DataFusion drops a sort that nothing above asks for, so such aggregates ask for it by the subquery's own keys.

use crate::failure::inbound;
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result as FusionResult;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use fabius_value::Result;
use std::sync::Arc;

/// Gives the aggregates of a `SELECT` that have no order of their own that of the rows they read.
pub(super) fn order_aggregates(plan: LogicalPlan, all: &mut [&mut Expr]) -> Result<LogicalPlan> {
    let (mut any, mut has_own) = (false, false);
    for expr in all.iter() {
        let seen = expr.exists(|expr| {
            if let Expr::AggregateFunction(call) = expr {
                any |= shows_order(call.func.name()) && !call.params.distinct;
                has_own |= !call.params.order_by.is_empty();
            }
            Ok(false)
        });
        seen.map_err(inbound)?;
    }
    if !any || has_own {
        return Ok(plan);
    }
    let Some((plan, order)) = with_keys(&plan).map_err(inbound)? else { return Ok(plan) };
    for expr in all.iter_mut() {
        let taken = std::mem::take(&mut **expr);
        let ordered = taken.transform(|expr| {
            Ok(match expr {
                Expr::AggregateFunction(mut call)
                    if shows_order(call.func.name()) && !call.params.distinct =>
                {
                    call.params.order_by = order.clone();
                    Transformed::yes(Expr::AggregateFunction(call))
                }
                other => Transformed::no(other),
            })
        });
        **expr = ordered.map_err(inbound)?.data;
    }
    Ok(plan)
}

/// Sort keys without those that stand among them before, by which aggregates of DataFusion fail.
pub(super) fn each_once(keys: Vec<Sort>) -> Vec<Sort> {
    let mut once: Vec<Sort> = Vec::with_capacity(keys.len());
    for key in keys {
        if once.iter().all(|other| other.expr != key.expr) {
            once.push(key);
        }
    }
    once
}

fn shows_order(aggregate: &str) -> bool {
    matches!(aggregate, "array_agg" | "string_agg")
}

/// A plan whose rows are sorted, with the columns that they are sorted by, and those keys; `None` if they are not.
pub(super) fn with_keys(plan: &LogicalPlan) -> FusionResult<Option<(LogicalPlan, Vec<Sort>)>> {
    match plan {
        LogicalPlan::Sort(sort) => Ok(Some((plan.clone(), each_once(sort.expr.clone())))),
        LogicalPlan::Filter(_) | LogicalPlan::Limit(_) => {
            let Some(input) = plan.inputs().first().copied() else { return Ok(None) };
            let Some((input, keys)) = with_keys(input)? else { return Ok(None) };
            Ok(Some((plan.with_new_exprs(plan.expressions(), vec![input])?, keys)))
        }
        LogicalPlan::Projection(projection) => {
            let Some((input, keys)) = with_keys(&projection.input)? else { return Ok(None) };
            let mut shown = projection.expr.clone();
            let keys = keys.into_iter().map(|key| {
                let expr = key.expr.transform(|expr| {
                    Ok(match expr {
                        Expr::Column(column) => Transformed::yes(Expr::Column(shown_as(&column, &mut shown))),
                        other => Transformed::no(other),
                    })
                })?;
                Ok(Sort { expr: expr.data, ..key })
            });
            let keys = keys.collect::<FusionResult<Vec<_>>>()?;
            let plan = LogicalPlanBuilder::from(Arc::new(input)).project(shown)?.build()?;
            Ok(Some((plan, keys)))
        }
        _ => Ok(None),
    }
}

/// What a column is called above a projection, which gets it if it has it not.
fn shown_as(column: &Column, shown: &mut Vec<Expr>) -> Column {
    for expr in shown.iter() {
        match expr {
            Expr::Column(own) if own == column => return own.clone(),
            Expr::Alias(alias) if matches!(&*alias.expr, Expr::Column(own) if own == column) => {
                return Column::new_unqualified(alias.name.clone());
            }
            _ => {}
        }
    }
    shown.push(Expr::Column(column.clone()));
    column.clone()
}
