//! How large a plan is: as a tree, with what it shares counted wherever it stands.
//!
//! DataFusion goes through plans and expressions by recursion, copies them, and looks at each part once for every
//! rule it has. So how deep and how large a plan may be is decided here, in one place, before it is optimised; and
//! once more behind that, since conditions that come together there become longer chains.

use crate::failure::inbound;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use fabius_sql_planning::heed;
use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;

/// Nodes within each other, of a plan and the expressions of one node of it, at most.
const HEIGHT: usize = 2_000;
/// Nodes of a plan, at most: relations, joins, selections, and subqueries wherever they stand.
const NODES: usize = 20_000;
/// What counts as small.
const SMALL_NODES: usize = 64;
const SMALL_PARTS: usize = 512;

/// How large a plan is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Nodes of the plan.
    nodes: usize,
    /// Nodes of all expressions.
    parts: usize,
}

impl Extent {
    /// Measures a plan.
    ///
    /// # Errors
    /// `54001` if it is too high or too large; what [`heed`] says.
    pub(super) fn of(plan: &LogicalPlan) -> Result<Extent> {
        let mut extent = Extent::default();
        let mut subqueries = Vec::new();
        extent.add(plan, 0, &mut subqueries)?;
        while let Some((plan, height)) = subqueries.pop() {
            extent.add(&plan, height, &mut subqueries)?;
        }
        Ok(extent)
    }

    /// Nodes of the plan.
    pub(super) fn nodes(self) -> usize {
        self.nodes
    }

    /// Whether going through it a few hundred times takes a moment.
    pub(super) fn is_small(self) -> bool {
        self.nodes <= SMALL_NODES && self.parts <= SMALL_PARTS
    }

    /// Adds a plan that stands so high; subqueries in it are still to be added.
    fn add(&mut self, plan: &LogicalPlan, height: usize, subqueries: &mut Subqueries) -> Result<()> {
        let mut open = vec![(plan, height)];
        while let Some((node, height)) = open.pop() {
            heed()?;
            self.nodes += 1;
            refuse_nodes(self.nodes)?;
            refuse_height(height)?;
            open.extend(node.inputs().into_iter().map(|input| (input, height + 1)));
            let mut added = Ok(());
            let each = |expr: &Expr| {
                added = self.add_expression(expr, height, subqueries);
                Ok(if added.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            };
            node.apply_expressions(each).map_err(inbound)?;
            added?;
        }
        Ok(())
    }

    fn add_expression(&mut self, expr: &Expr, height: usize, subqueries: &mut Subqueries) -> Result<()> {
        let mut open = vec![(expr, height + 1)];
        while let Some((part, height)) = open.pop() {
            heed()?;
            self.parts += 1;
            refuse_height(height)?;
            let subquery = match part {
                Expr::ScalarSubquery(subquery) => Some(subquery),
                Expr::Exists(exists) => Some(&exists.subquery),
                Expr::InSubquery(within) => Some(&within.subquery),
                Expr::SetComparison(comparison) => Some(&comparison.subquery),
                _ => None,
            };
            subqueries.extend(subquery.map(|subquery| (subquery.subquery.clone(), height + 1)));
            let each = |child| {
                open.push((child, height + 1));
                Ok(TreeNodeRecursion::Continue)
            };
            part.apply_children(each).map_err(inbound)?;
        }
        Ok(())
    }
}

/// Plans that stand in expressions, and how high.
type Subqueries = Vec<(Arc<LogicalPlan>, usize)>;

/// Refuses a plan of so many nodes, if they are too many.
///
/// # Errors
/// `54001`
pub(super) fn refuse_nodes(nodes: usize) -> Result<()> {
    match nodes > NODES {
        true => Err(too_large(format!(
            "its plan has more than {NODES} parts, with views and WITH queries wherever they are named"
        ))),
        false => Ok(()),
    }
}

fn refuse_height(height: usize) -> Result<()> {
    match height > HEIGHT {
        true => Err(too_large(format!("its plan is more than {HEIGHT} parts high"))),
        false => Ok(()),
    }
}

fn too_large(detail: String) -> Error {
    Error::new(SqlState(*b"54001"), "stack depth limit exceeded").with_detail(detail).with_hint(
        "divide the statement, or use fewer subqueries, joins, views and WITH queries within each other",
    )
}
