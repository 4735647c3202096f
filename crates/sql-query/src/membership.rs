//! `x IN (SELECT ...)` where a value is wanted, of a subquery that asks nothing about the row: one join instead of a
//! run for each row. It says whether the value is there; what null makes of it, the binder has asked for apart.
//!
//! ```text
//! input, x --left join--> the subquery's values, once each, without nulls;   found := there is one
//! ```

use datafusion::common::{Column, JoinType};
use datafusion::error::{DataFusionError, Result as FusionResult};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator};

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// A plan with a column of this name: whether the value that is sought is in a set.
pub(super) fn beside(
    input: LogicalPlan,
    set: &LogicalPlan,
    sought: Expr,
    found: &str,
) -> FusionResult<LogicalPlan> {
    let item = || {
        let first = set.schema().iter().next().map(Expr::from);
        first.ok_or_else(|| DataFusionError::Plan("a subquery without columns".into()))
    };
    let [member, value] = ["member", "value"].map(|part| format!("{part} of {found}"));
    let members = LogicalPlanBuilder::from(set.clone())
        .project([item()?.alias(member.clone())])?
        .filter(column(&member).is_not_null())?
        .distinct()?
        .build()?;
    let own: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
    let with_value = own.iter().cloned().chain([sought.alias(value.clone())]).collect::<Vec<_>>();
    let equal = crate::bind::plain_binary(column(&value), Operator::Eq, column(&member));
    let answer = column(&member).is_not_null().alias(found);
    LogicalPlanBuilder::from(input)
        .project(with_value)?
        .join_on(members, JoinType::Left, [equal])?
        .project(own.into_iter().chain([answer]).collect::<Vec<_>>())?
        .build()
}
