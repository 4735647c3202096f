//! What a subquery asks of the rows around it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use std::sync::Arc;

/// Whether a subquery of a subquery is about rows around them both: DataFusion sees one level at a time, and takes
/// such a reference for one to a row that is not there.
pub(super) fn reaches_far(plan: &LogicalPlan) -> bool {
    let mut is_far = false;
    each_subquery(plan, &mut |subquery| {
        each_subquery(subquery, &mut |within| {
            is_far |= references(within).iter().any(|column| !has_column(subquery, column));
        });
        is_far |= reaches_far(subquery);
    });
    is_far
}

/// Whether a subquery asks about rows around it where an outer join may miss a row, or where `EXCEPT` and `INTERSECT`
/// look for one: DataFusion would ask above that join.
pub(super) fn asks_beneath_outer_join(plan: &LogicalPlan) -> bool {
    let mut found = false;
    each_subquery(plan, &mut |subquery| {
        let _ = subquery.apply(|node| {
            if let LogicalPlan::Join(join) = node {
                let missed: &[&Arc<LogicalPlan>] = match join.join_type {
                    JoinType::Left | JoinType::LeftAnti | JoinType::LeftSemi => &[&join.right],
                    JoinType::Right | JoinType::RightAnti | JoinType::RightSemi => &[&join.left],
                    JoinType::Full => &[&join.left, &join.right],
                    _ => &[],
                };
                found |= missed.iter().any(|side| !references(side).is_empty());
                // A condition that does not hold leaves a row without another, not out.
                found |= join.join_type != JoinType::Inner && names_outside(node);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        found |= asks_beneath_outer_join(subquery);
    });
    found
}

/// Whether a plan's own expressions are about a row around it.
fn names_outside(node: &LogicalPlan) -> bool {
    let is_outside = |expr: &Expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..)));
    node.expressions().iter().any(|expr| expr.exists(is_outside).unwrap_or(true))
}

/// Whether a subquery that asks about a row around it has functions over windows: DataFusion would make a join of it,
/// and the windows would be of all rows instead of those that the subquery has for that row.
pub(super) fn has_own_windows(plan: &LogicalPlan) -> bool {
    let mut found = false;
    each_subquery(plan, &mut |subquery| {
        let has_window = || subquery.exists(|node| Ok(matches!(node, LogicalPlan::Window(_))));
        found |= asks_outside(subquery) && has_window().unwrap_or(true);
        found |= has_own_windows(subquery);
    });
    found
}

/// Whether `EXISTS` or `IN` asks about a row around it with a query that groups all of its rows, which gives a group
/// even where there are none, or that passes over some: DataFusion would make a join of it, which finds no group there,
/// and passes over none.
pub(super) fn counts_rows(plan: &LogicalPlan) -> bool {
    let is_counted = |node: &LogicalPlan| match node {
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.iter().all(|key| matches!(key, Expr::GroupingSet(_)))
        }
        LogicalPlan::Limit(limit) => limit.skip.is_some(),
        _ => false,
    };
    let counts = |subquery: &LogicalPlan| {
        asks_outside(subquery) && subquery.exists(|node| Ok(is_counted(node))).unwrap_or(true)
    };
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                found |= match expr {
                    Expr::Exists(exists) => counts(&exists.subquery.subquery),
                    Expr::InSubquery(within) => counts(&within.subquery.subquery),
                    _ => false,
                };
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    found
}

/// Whether something lateral that asks about the row beside it, otherwise than by an equality of a column, gives each
/// of its rows or groups once: DataFusion would make a join of it, and rows that are told apart by what was asked would
/// each be there.
pub(super) fn has_own_distinct(plan: &LogicalPlan) -> bool {
    let asks_equally = |condition: &Expr| {
        split_conjunction(condition).into_iter().all(|part| match part {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                let is_asked = |side: &Expr| matches!(side, Expr::OuterReferenceColumn(..));
                let is_column = |side: &Expr| matches!(side, Expr::Column(_));
                !part.contains_outer()
                    || is_asked(left) && is_column(right)
                    || is_asked(right) && is_column(left)
            }
            other => !other.contains_outer(),
        })
    };
    let asks_otherwise = |node: &LogicalPlan| match node {
        LogicalPlan::Filter(filter) => !asks_equally(&filter.predicate),
        other => other.contains_outer_reference(),
    };
    let gives_once = |node: &LogicalPlan| match node {
        LogicalPlan::Distinct(_) => true,
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.aggr_expr.is_empty() && !aggregate.group_expr.is_empty()
        }
        _ => false,
    };
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Subquery(lateral) = node {
            let _ = lateral.subquery.apply(|node| {
                found |=
                    gives_once(node) && node.exists(|beneath| Ok(asks_otherwise(beneath))).unwrap_or(true);
                Ok(TreeNodeRecursion::Continue)
            });
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

pub(super) fn each_subquery(plan: &LogicalPlan, act: &mut dyn FnMut(&LogicalPlan)) {
    let _ = plan.apply(|node| {
        if let LogicalPlan::Subquery(lateral) = node {
            act(&lateral.subquery);
        }
        node.apply_subqueries(|subquery| {
            if let LogicalPlan::Subquery(subquery) = subquery {
                act(&subquery.subquery);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    });
}

/// Whether a column is of a row somewhere in a plan; names of columns are unique.
pub(super) fn has_column(plan: &LogicalPlan, column: &Column) -> bool {
    let mut found = false;
    let _ = plan.apply_with_subqueries(|node| {
        found |= node.schema().has_column(column);
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// Whether a plan asks for columns of rows around it, at any depth.
pub(super) fn asks_outside(plan: &LogicalPlan) -> bool {
    references(plan).iter().any(|column| !has_column(plan, column))
}

/// The columns of rows around a plan that it asks for, at any depth.
pub(super) fn references(plan: &LogicalPlan) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let _ = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::OuterReferenceColumn(_, column) = expr
                    && !columns.contains(column)
                {
                    columns.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    columns
}
