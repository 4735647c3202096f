//! Comparisons, kept as they are while DataFusion changes a plan.
//!
//! - DataFusion 55 takes `a = 1 AND 1 = a` for false, and `a = 1 AND CAST(a AS bigint) = 1` too: of several
//!   equalities about a column it compares the expressions, not what they say, when it moves conditions down. Of
//!   `a <= 1 AND 1 > a` it keeps the first. So right before it does, values stand on the right, and an equality of what
//!   is converted is one that it does not look into.
//! - All keys of a join are compared by `=`, or all by `IS NOT DISTINCT FROM`. Where it chooses the order of joins,
//!   or moves another condition to a join, it forgets which. So keys of the latter kind are conditions as all others
//!   until a plan is done, and the joins of `INTERSECT` and `EXCEPT`, which have some from the beginning, get no
//!   others.

use crate::amended_rule::Rule;
use datafusion::common::NullEquality;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};
use datafusion::optimizer::OptimizerConfig;
use std::sync::Arc;

/// The rule that moves conditions down, which sees them in one form.
pub(super) fn see_one_form(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let plan = with_one_form(plan)?;
    plan.transform_data(|plan| rule.rewrite(plan, config))
}

/// A plan whose conditions are in one form: its own, and those of filters right below it, which become one with it.
fn with_one_form(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Filter(filter) => {
            let is_other = has_other_form(&filter.predicate);
            let input = match filter.input.as_ref() {
                LogicalPlan::Filter(_) => with_one_form(Arc::unwrap_or_clone(filter.input))?,
                _ => Transformed::no(Arc::unwrap_or_clone(filter.input)),
            };
            let predicate = if is_other { in_one_form(filter.predicate) } else { filter.predicate };
            let plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input.data))?);
            Transformed::new_transformed(plan, is_other || input.transformed)
        }
        LogicalPlan::Join(mut join) if join.filter.as_ref().is_some_and(has_other_form) => {
            join.filter = join.filter.map(in_one_form);
            Transformed::yes(LogicalPlan::Join(join))
        }
        plan => Transformed::no(plan),
    })
}

/// The rule that makes keys of a join of its conditions, without those that compare by `IS NOT DISTINCT FROM`.
pub(super) fn make_keys_by_equality(
    rule: &Rule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
    if join.null_equality == NullEquality::NullEqualsNull {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let conditions = join.filter.take().into_iter().flat_map(split_conjunction_owned);
    let is_other = |condition: &Expr| {
        matches!(condition, Expr::BinaryExpr(BinaryExpr { op: Operator::IsNotDistinctFrom, .. }))
    };
    let (others, conditions): (Vec<Expr>, Vec<Expr>) = conditions.partition(is_other);
    join.filter = conjunction(conditions);
    rule.rewrite(LogicalPlan::Join(join), config)?.map_data(|plan| {
        let LogicalPlan::Join(mut join) = plan else { return Ok(plan) };
        join.filter = conjunction(join.filter.into_iter().flat_map(split_conjunction_owned).chain(others));
        Ok(LogicalPlan::Join(join))
    })
}

fn is_converted(expression: &Expr) -> bool {
    matches!(expression, Expr::Cast(_) | Expr::TryCast(_))
}

/// Whether a comparison among conditions is not in that form.
fn has_other_form(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            has_other_form(left) || has_other_form(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            swaps(left, *op, right) || is_apart(left, *op, right)
        }
        _ => false,
    }
}

/// Whether a value is on the left that belongs on the right.
fn swaps(left: &Expr, operator: Operator, right: &Expr) -> bool {
    let is_value = |side| matches!(side, &Expr::Literal(..));
    operator.swap().is_some() && is_value(left) && !is_value(right)
}

/// Whether this is an equality of what is converted and a value.
fn is_apart(left: &Expr, operator: Operator, right: &Expr) -> bool {
    operator == Operator::Eq && is_converted(left) && matches!(right, Expr::Literal(..))
}

fn in_one_form(conditions: Expr) -> Expr {
    let each = split_conjunction_owned(conditions).into_iter().map(|condition| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (left, op, right) = match op.swap() {
                Some(swapped) if swaps(&left, op, &right) => (right, swapped, left),
                _ => (left, op, right),
            };
            let is_apart = is_apart(&left, op, &right);
            let comparison = Expr::BinaryExpr(BinaryExpr::new(left, op, right));
            if is_apart { Expr::IsTrue(Box::new(comparison)) } else { comparison }
        }
        other => other,
    });
    conjunction(each)
        .unwrap_or_else(|| Expr::Literal(datafusion::scalar::ScalarValue::Boolean(Some(true)), None))
}
