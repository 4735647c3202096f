//! `x IN (SELECT ...)` as a value, of a subquery that asks nothing about the row: one join instead of a run for each row.
//!
//! ```text
//! input, x --left join--> the subquery's values, once each, without nulls --cross join--> how many there are, and how many known
//!       found := there is one: true | none at all: false | x or one of them is null: null | else false
//! ```

use datafusion::common::{Column, JoinType};
use datafusion::error::{DataFusionError, Result as FusionResult};
use datafusion::functions_aggregate::count::count;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, when};
use datafusion::scalar::ScalarValue;

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn truth(value: Option<bool>) -> Expr {
    Expr::Literal(ScalarValue::Boolean(value), None)
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
    let of = |part: &str| format!("{part} of {found}");
    let (member, value, rows, known) = (of("member"), of("value"), of("rows"), of("known"));
    let members = LogicalPlanBuilder::from(set.clone())
        .project([item()?.alias(member.clone())])?
        .filter(column(&member).is_not_null())?
        .distinct()?
        .build()?;
    let one = Expr::Literal(ScalarValue::Int64(Some(1)), None);
    let counts = LogicalPlanBuilder::from(set.clone())
        .project([item()?.alias(known.clone())])?
        .aggregate(
            Vec::<Expr>::new(),
            [count(one).alias(rows.clone()), count(column(&known)).alias(known.clone())],
        )?
        .build()?;
    let own: Vec<Expr> = input.schema().iter().map(Expr::from).collect();
    let with_value = own.iter().cloned().chain([sought.alias(value.clone())]).collect::<Vec<_>>();
    let equal = crate::query::bind::plain_binary(column(&value), Operator::Eq, column(&member));
    let none = column(&rows).eq(Expr::Literal(ScalarValue::Int64(Some(0)), None));
    let answer = when(column(&member).is_not_null(), truth(Some(true)))
        .when(none, truth(Some(false)))
        .when(column(&value).is_null().or(column(&rows).gt(column(&known))), truth(None))
        .otherwise(truth(Some(false)))?;
    LogicalPlanBuilder::from(input)
        .project(with_value)?
        .join_on(members, JoinType::Left, [equal])?
        .cross_join(counts)?
        .project(own.into_iter().chain([answer.alias(found)]).collect::<Vec<_>>())?
        .build()
}
