//! Equalities of a column and a value, written in one way.
//!
//! DataFusion 55 takes `a = 1 AND 1 = a` for false, and `a = 1 AND CAST(a AS bigint) = 1` too: of several equalities about a
//! column it compares the expressions, not what they say, when it moves conditions down. So before it does, values stand on the
//! right, and an equality of what is converted is one that it does not look into.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, Operator};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The rule that writes them so; it belongs right before the one that moves conditions down.
#[derive(Debug)]
pub(super) struct EqualitiesInOneForm;

impl OptimizerRule for EqualitiesInOneForm {
    fn name(&self) -> &str {
        "equalities_in_one_form"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        Ok(match plan {
            LogicalPlan::Filter(filter) if has_other_form(&filter.predicate) => {
                let predicate = in_one_form(filter.predicate);
                Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?))
            }
            LogicalPlan::Join(mut join) if join.filter.as_ref().is_some_and(has_other_form) => {
                join.filter = join.filter.map(in_one_form);
                Transformed::yes(LogicalPlan::Join(join))
            }
            plan => Transformed::no(plan),
        })
    }
}

fn is_converted(expression: &Expr) -> bool {
    matches!(expression, Expr::Cast(_) | Expr::TryCast(_))
}

/// Whether an equality among conditions is not in that form.
fn has_other_form(condition: &Expr) -> bool {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            has_other_form(left) || has_other_form(right)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            matches!(
                (left.as_ref(), right.as_ref()),
                (Expr::Literal(..), other) if !matches!(other, Expr::Literal(..))
            ) || (is_converted(left) && matches!(right.as_ref(), Expr::Literal(..)))
        }
        _ => false,
    }
}

fn in_one_form(conditions: Expr) -> Expr {
    let each = split_conjunction_owned(conditions).into_iter().map(|condition| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let swaps = matches!(left.as_ref(), Expr::Literal(..));
            let (left, right) = if swaps { (right, left) } else { (left, right) };
            let is_apart = is_converted(&left) && matches!(right.as_ref(), Expr::Literal(..));
            let equal = Expr::BinaryExpr(BinaryExpr::new(left, Operator::Eq, right));
            if is_apart { Expr::IsTrue(Box::new(equal)) } else { equal }
        }
        other => other,
    });
    conjunction(each)
        .unwrap_or_else(|| Expr::Literal(datafusion::scalar::ScalarValue::Boolean(Some(true)), None))
}
