//! Conditions stay above aggregates that give a row for no rows.
//!
//! DataFusion 55 moves a condition below an aggregate if all of its columns are grouped by, and one without columns
//! has none that is not: `SELECT count(*) FROM t HAVING current_setting('a') = 'b'` counts no rows then, where it has
//! no row. Without `GROUP BY`, and with grouping sets, of which one may be empty, such conditions are kept from that
//! rule.

use crate::amended_rule::Rule;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;
use std::sync::Arc;

/// The rule that moves conditions down, but not those.
pub(super) fn move_down(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let Some(aggregate) = row_of_nothing(&plan) else { return rule.rewrite(plan, config) };
    let conditions = conditions_of(&plan);
    let (about_rows, others): (Vec<Expr>, Vec<Expr>) =
        conditions.into_iter().partition(|condition| !condition.column_refs().is_empty());
    let Some(others) = conjunction(others) else { return rule.rewrite(plan, config) };
    let below = match conjunction(about_rows) {
        Some(condition) => {
            let filter = Filter::try_new(condition, Arc::new(aggregate.clone()))?;
            rule.rewrite(LogicalPlan::Filter(filter), config)?.data
        }
        None => aggregate.clone(),
    };
    let kept = LogicalPlan::Filter(Filter::try_new(others, Arc::new(below))?);
    let is_changed = kept != plan;
    Ok(Transformed::new_transformed(kept, is_changed))
}

/// The aggregate below conditions, if it gives a row for no rows.
fn row_of_nothing(plan: &LogicalPlan) -> Option<&LogicalPlan> {
    let LogicalPlan::Filter(filter) = plan else { return None };
    match filter.input.as_ref() {
        input @ LogicalPlan::Filter(_) => row_of_nothing(input),
        input @ LogicalPlan::Aggregate(aggregate) => {
            let has_sets = aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_)));
            (aggregate.group_expr.is_empty() || has_sets).then_some(input)
        }
        _ => None,
    }
}

/// All conditions on top of a plan, the lowest first.
fn conditions_of(plan: &LogicalPlan) -> Vec<Expr> {
    let LogicalPlan::Filter(filter) = plan else { return Vec::new() };
    let mut conditions = conditions_of(&filter.input);
    conditions.extend(split_conjunction_owned(filter.predicate.clone()));
    conditions
}
