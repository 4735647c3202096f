//! Long chains of `AND` and `OR`.
//!
//! DataFusion takes a chain apart and puts it together again as `((a AND b) AND c) AND d`, and goes through that by
//! recursion. What does not fit the stack like that is hidden from it: conditions behind the first ones are arguments
//! of a function, [`together`]. Of so many at a time, so that those behind them are not asked where they decide.
//!
//! ```text
//! c1 AND ... AND c255 AND (all_of(c256, ..., c319) AND ... AND all_of(..., c5000))
//! ```

use super::{Binder, plain_binary};
use crate::functions::operator::together;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, Operator};
use fabius_sql_syntax::dialect::balanced;

/// Conditions of one chain that DataFusion sees, at most.
const SEEN: usize = 256;
/// Conditions of all chains of a statement that it sees, about: they may all meet at one table.
const SEEN_OF_ALL: usize = 1024;
/// Conditions that are hidden together.
const TOGETHER: usize = 64;
/// Conditions of one chain that it sees however many there are.
const SEEN_ALWAYS: usize = 8;

impl Binder<'_> {
    /// Conditions as one, joined by `AND` or `OR`.
    pub(super) fn chained(&mut self, conditions: Vec<Expr>, operator: Operator) -> Expr {
        let seen = match self.conditions < SEEN_OF_ALL {
            true => SEEN,
            false => SEEN_ALWAYS,
        };
        self.conditions += conditions.len().min(seen);
        low(conditions, operator, seen)
    }
}

/// Conditions as a chain of which DataFusion sees so many.
fn low(conditions: Vec<Expr>, operator: Operator, seen: usize) -> Expr {
    let join = |left, right| plain_binary(left, operator, right);
    let balanced = |conditions| balanced(conditions, join).unwrap_or_else(super::scope::false_literal);
    if conditions.len() <= seen {
        return balanced(conditions);
    }
    let mut hidden = Vec::new();
    let mut kept = Vec::new();
    for condition in conditions {
        // Subqueries become joins, for which they have to be seen.
        match kept.len() + 1 < seen || has_subquery(&condition) {
            true => kept.push(condition),
            false => hidden.push(condition),
        }
    }
    let is_all = operator == Operator::And;
    let mut groups = Vec::with_capacity(hidden.len().div_ceil(TOGETHER));
    while !hidden.is_empty() {
        let rest = hidden.split_off(hidden.len().min(TOGETHER));
        groups.push(together(std::mem::replace(&mut hidden, rest), is_all));
    }
    // Hidden as a whole too.
    kept.push(if groups.len() > 1 { together(vec![balanced(groups)], is_all) } else { balanced(groups) });
    balanced(kept)
}

fn has_subquery(condition: &Expr) -> bool {
    let is_subquery =
        |part: &Expr| Ok(matches!(part, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_)));
    condition.exists(is_subquery).unwrap_or(true)
}
