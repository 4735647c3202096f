//! Queries within expressions.

use super::expression::{false_literal, row_of};
use super::operator::plain_binary;
use super::{Binder, Flavor, Relation, Typed};
use crate::query::failure::inbound;
use crate::sql_type::SqlType;
use datafusion::common::Spans;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

impl Binder<'_> {
    /// Binds a query in here: it sees the columns of the queries around it.
    pub(super) fn subquery(&mut self, query: &ast::Query) -> Result<Relation> {
        self.deeper(|binder| binder.query(query))
    }

    /// `value IN (SELECT ...)`.
    pub(super) fn in_subquery(
        &mut self,
        expression: &ast::Expr,
        query: &ast::Query,
        not: bool,
    ) -> Result<Typed> {
        let values: Vec<Typed> = match row_of(expression) {
            Some(row) => row.iter().map(|value| self.expression(value)).collect::<Result<_>>()?,
            None => vec![self.expression(expression)?],
        };
        let relation = self.subquery(query)?;
        if relation.columns.len() != values.len() {
            let few = if relation.columns.len() > values.len() { "many" } else { "few" };
            return Err(Error::new(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns")));
        }
        if values.len() > 1 {
            // `(a, b) IN (SELECT c, d ...)` is a question of existence.
            let mut condition: Option<Expr> = None;
            for (value, column) in values.into_iter().zip(&relation.columns) {
                let value = Typed { expr: to_outer(value.expr.clone(), &value.sql_type), ..value };
                let equal = self.comparison(value, "=", column.typed())?.expr;
                condition = Some(match condition {
                    None => equal,
                    Some(before) => plain_binary(before, Operator::And, equal),
                });
            }
            let plan = LogicalPlanBuilder::from(relation.plan)
                .filter(condition.unwrap_or(false_literal()))
                .and_then(LogicalPlanBuilder::build)
                .map_err(inbound)?;
            let exists = Exists { subquery: nested(plan), negated: not };
            return Ok(Typed::new(Expr::Exists(exists), SqlType::Boolean));
        }
        let (Some(value), Some(column)) = (values.into_iter().next(), relation.columns.first()) else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "subquery has too few columns"));
        };
        let types = (value.sql_type.clone(), column.sql_type.clone());
        let Some(both) = self.align(value, column.typed()) else {
            return Err(super::operator::no_operator("=", &types.0, &types.1));
        };
        let (value, inner, _) = both?;
        let plan = self.with_column(relation.plan, inner.expr)?;
        let within = InSubquery::new(Box::new(value.expr), nested(plan), not);
        Ok(Typed::new(Expr::InSubquery(within), SqlType::Boolean))
    }

    /// A plan that gives one expression over another.
    fn with_column(&mut self, plan: LogicalPlan, expression: Expr) -> Result<LogicalPlan> {
        let is_all = matches!(&expression, Expr::Column(_)) && plan.schema().fields().len() == 1;
        if is_all {
            return Ok(plan);
        }
        let name = self.fresh("c");
        LogicalPlanBuilder::from(plan)
            .project([expression.alias(name)])
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)
    }

    /// A subquery of one value.
    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Typed> {
        let relation = self.subquery(query)?;
        let [column] = relation.columns.as_slice() else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "subquery must return only one column"));
        };
        let column = column.clone();
        let plan = self.with_column(relation.plan, Expr::Column(column.column.clone()))?;
        let typed = column.typed();
        Ok(Typed { expr: Expr::ScalarSubquery(nested(plan)), origin: (0, 0), ..typed })
    }

    /// `ARRAY (SELECT ...)`.
    pub(super) fn array_subquery(&mut self, query: &ast::Query) -> Result<Typed> {
        let relation = self.subquery(query)?;
        let [column] = relation.columns.as_slice() else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "subquery must return only one column"));
        };
        let element = match &column.sql_type {
            SqlType::Unknown => SqlType::Text,
            other => other.clone(),
        };
        let flavor = column.flavor;
        let mut item = column.typed();
        if let Flavor::Named(_) = flavor {
            item = self.cast(item, &SqlType::Text)?;
        }
        let element = if let Flavor::Named(_) = flavor { SqlType::Text } else { element };
        // The order is the subquery's: it is what the aggregate meets.
        let all = datafusion::functions_aggregate::array_agg::array_agg(item.expr);
        let name = self.fresh("c");
        let sql_type = SqlType::Array(Box::new(element));
        let empty = crate::query::arrow_column::scalar(&fabius_value::Value::List(Vec::new()), &sql_type)?;
        let column = datafusion::common::Column::new_unqualified(name.clone());
        let whole = datafusion::functions::core::expr_fn::coalesce(vec![
            Expr::Column(column),
            Expr::Literal(empty, None),
        ]);
        let result = self.fresh("c");
        let plan = LogicalPlanBuilder::from(relation.plan)
            .aggregate(Vec::<Expr>::new(), [all.alias(name)])
            .and_then(|builder| builder.project([whole.alias(result)]))
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Typed::new(Expr::ScalarSubquery(nested(plan)), sql_type))
    }
}

/// A plan as a subquery, with what it says of the queries around it.
pub(in crate::query) fn nested(plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}

/// An expression of this query as one that a query in it sees.
fn to_outer(expression: Expr, sql_type: &SqlType) -> Expr {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let data_type = crate::query::arrow_column::arrow_type(sql_type);
    let changed = expression.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field =
                    datafusion::arrow::datatypes::Field::new(column.name.clone(), data_type.clone(), true);
                Transformed::yes(Expr::OuterReferenceColumn(field.into(), column))
            }
            other => Transformed::no(other),
        })
    });
    changed.map(|changed| changed.data).unwrap_or(expression)
}
