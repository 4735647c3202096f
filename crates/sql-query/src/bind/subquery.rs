//! Queries within expressions.

use super::operator::plain_binary;
use super::scope::false_literal;
use super::{Asked, Binder, Flavor, Relation, Scope, Typed};
use crate::apply::is_of_row;
use crate::arrow_column::arrow_type;
use crate::failure::{inbound, no_aggregates_in};
use crate::functions::operator::perhaps;
use datafusion::arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ExprSchema, Spans};
use datafusion::functions_aggregate::count::count;
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::utils::find_aggregate_exprs;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, when};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, Sense};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::Result;
use sqlparser::ast;
use std::sync::Arc;

/// Expressions of one query that are kept as they have been bound, at most.
const KEPT: usize = 16;

impl Binder<'_> {
    /// Binds a query in here: it sees the columns of the queries around it.
    pub(super) fn subquery(&mut self, query: &ast::Query) -> Result<Relation> {
        if self.levels.len() == 1 {
            self.names_within.clear();
        }
        self.deeper(|binder| binder.query(query))
    }

    /// A relation of a query within another, whose columns have names that no other of these queries has:
    /// DataFusion joins `EXISTS` and `IN` to the rows around under one name for all of a subquery's relations, so that
    /// it takes columns of one name for each other.
    pub(super) fn told_apart(&mut self, plan: LogicalPlan, mut scope: Scope) -> Result<(LogicalPlan, Scope)> {
        if self.levels.is_empty() {
            return Ok((plan, scope));
        }
        let mut columns = Vec::with_capacity(plan.schema().fields().len());
        let mut is_apart = true;
        for column in plan.schema().columns() {
            if self.names_within.insert(column.name.clone()) {
                columns.push(Expr::Column(column));
                continue;
            }
            is_apart = false;
            let own = self.fresh_column();
            for of_scope in scope.columns.iter_mut().filter(|of_scope| of_scope.column.column == column) {
                of_scope.column.column = own.clone();
            }
            columns.push(Expr::Column(column).alias(own.name));
        }
        if is_apart {
            return Ok((plan, scope));
        }
        let plan = LogicalPlanBuilder::from(plan).project(columns).and_then(LogicalPlanBuilder::build);
        Ok((plan.map_err(inbound)?, scope))
    }

    /// An expression that is a question to a subquery, bound once however often it stands in a query.
    pub(super) fn once(
        &mut self,
        expression: &ast::Expr,
        sense: Sense,
        bind: impl FnOnce(&mut Self) -> Result<Typed>,
    ) -> Result<Typed> {
        let level = self.levels.last();
        let known = level.and_then(|level| {
            level.subqueries.iter().find(|known| known.sense == sense && known.expression == *expression)
        });
        if let Some(known) = known {
            return match level.and_then(|level| level.clause) {
                Some(clause) if known.has_aggregate => Err(no_aggregates_in(clause)),
                _ => Ok(known.typed.clone()),
            };
        }
        let before = self.aggregates();
        let typed = bind(self)?;
        let has_aggregate = self.aggregates() > before;
        if let Some(level) = self.levels.last_mut()
            && level.subqueries.len() < KEPT
        {
            let (expression, typed) = (expression.clone(), typed.clone());
            level.subqueries.push(Asked { expression, sense, typed, has_aggregate });
        }
        Ok(typed)
    }

    /// `value IN (SELECT ...)`, also of rows.
    ///
    /// It is true if the value equals a row's, null if it might (the value or a row has a null), else false. A join
    /// that marks rows knows true and not true only; so where null differs from false it is asked for apart:
    ///
    /// | asked for | one value, of a query that stands by itself | otherwise |
    /// |---|---|---|
    /// | whether it is in | `IN` | `EXISTS` of an equal row |
    /// | whether it is not in | `NOT EXISTS` of an equal row, and that is certain | `NOT EXISTS` of a row that is not unequal |
    /// | its value | true if in, false if that is certain, else null | true if a row is equal, null if one might be |
    ///
    /// DataFusion's own `NOT IN` knows of nulls only while the value is a column; it may turn out to be a constant.
    pub(super) fn in_subquery(
        &mut self,
        expression: &ast::Expr,
        query: &ast::Query,
        not: bool,
        sense: Sense,
    ) -> Result<Typed> {
        let values = analysis::operands(expression).iter();
        let values: Vec<Typed> = values.map(|value| self.expression(value)).collect::<Result<_>>()?;
        // What is asked of its rows is a condition on its columns.
        self.is_relation = true;
        let relation = self.subquery(query)?;
        analysis::refuse_other_width(values.len(), relation.columns.len())?;
        let stands_by_itself = relation.plan.all_out_ref_exprs().is_empty();
        if let ([value], [column]) = (values.as_slice(), relation.columns.as_slice())
            && (stands_by_itself || (!not && sense != Sense::Value))
        {
            let (value, inner) = self.aligned(value.clone(), column.typed())?;
            let (value, inner) = (self.compared_by(value)?, self.compared_by(inner)?);
            let plan = self.with_column(relation.plan, inner.expr)?;
            let within = InSubquery::new(Box::new(value.expr.clone()), nested(plan.clone()), false);
            let within = Expr::InSubquery(within);
            let answer = match (sense, not) {
                (Sense::Truth, false) => within,
                (Sense::Truth, true) if is_of_row(&value.expr).map_err(inbound)? => {
                    let equal = self.equal_to(&value, &plan);
                    let equal = LogicalPlanBuilder::from(plan.clone()).filter(equal);
                    let equal = equal.and_then(LogicalPlanBuilder::build).map_err(inbound)?;
                    let out = Expr::Exists(Exists { subquery: nested(equal), negated: true });
                    plain_binary(out, Operator::And, self.is_certain(&value.expr, &plan)?)
                }
                _ => when(within, truth(Some(!not)))
                    .when(self.is_certain(&value.expr, &plan)?, truth(Some(not)))
                    .otherwise(truth(None))
                    .map_err(inbound)?,
            };
            return Ok(Typed::new(answer, SqlType::Boolean));
        }
        let mut equal: Option<Expr> = None;
        for (mut value, column) in values.into_iter().zip(&relation.columns) {
            if !find_aggregate_exprs([&value.expr]).is_empty()
                && let Some(own) = self.levels.len().checked_sub(1)
            {
                value = self.seen_within(own, value);
            }
            let value = Typed { expr: self.to_outer(&value), ..value };
            let one = self.operator(value, "=", column.typed())?.expr;
            equal = Some(match equal {
                None => one,
                Some(before) => plain_binary(before, Operator::And, one),
            });
        }
        let equal = equal.unwrap_or(false_literal());
        let exists = |condition: Expr, negated: bool| -> Result<Expr> {
            let rows = LogicalPlanBuilder::from(relation.plan.clone()).filter(condition);
            let rows = rows.and_then(LogicalPlanBuilder::build).map_err(inbound)?;
            Ok(Expr::Exists(Exists { subquery: nested(rows), negated }))
        };
        let answer = match (sense, not) {
            (Sense::Truth, false) => exists(equal, false)?,
            (Sense::Truth, true) => exists(Expr::IsNotFalse(Box::new(equal)), true)?,
            (Sense::Value, _) => {
                let might = exists(Expr::IsUnknown(Box::new(equal.clone())), false)?;
                let exact = when(exists(equal, false)?, truth(Some(!not)))
                    .when(might, truth(None))
                    .otherwise(truth(Some(not)));
                exact.map_err(inbound)?
            }
        };
        Ok(Typed::new(answer, SqlType::Boolean))
    }

    /// An expression of this query as one that a query in it sees. Columns have their own types; one that no query
    /// around names has that of the expression.
    fn to_outer(&self, typed: &Typed) -> Expr {
        let changed = typed.expr.clone().transform(|expr| {
            Ok(match expr {
                Expr::Column(column) => {
                    let sql_type = self.levels.iter().rev().find_map(|level| level.type_of(&column));
                    let data_type = arrow_type(sql_type.unwrap_or(&typed.sql_type));
                    let field = Field::new(column.name.clone(), data_type, true);
                    Transformed::yes(Expr::OuterReferenceColumn(field.into(), column))
                }
                other => Transformed::no(other),
            })
        });
        changed.map_or_else(|_| typed.expr.clone(), |changed| changed.data)
    }

    /// That a value of this query equals that of a subquery's rows, as the subquery sees it.
    fn equal_to(&self, value: &Typed, plan: &LogicalPlan) -> Expr {
        let inner = plan.schema().iter().next().map(Expr::from).unwrap_or(false_literal());
        plain_binary(self.to_outer(value), Operator::Eq, inner)
    }

    /// Whether a value that equals none of a subquery's is certain not to be among them: there are no rows, or
    /// neither it nor any of them is null. The subquery stands by itself.
    fn is_certain(&mut self, value: &Expr, plan: &LogicalPlan) -> Result<Expr> {
        let number = |number: i64| Expr::Literal(ScalarValue::Int64(Some(number)), None);
        let (rows, known) = (self.fresh_column(), self.fresh_column());
        let nulls = self.fresh_name();
        let inner = plan.schema().iter().next().map(Expr::from).unwrap_or(false_literal());
        let [all, counted] = [rows.clone(), known.clone()].map(Expr::Column);
        let none = plain_binary(all.clone(), Operator::Eq, number(0));
        // How many nulls the value may have for that: none or, without rows, one.
        let room = when(none, number(1))
            .when(plain_binary(all, Operator::Eq, counted), number(0))
            .otherwise(number(-1))
            .map_err(inbound)?;
        let plan = LogicalPlanBuilder::from(plan.clone())
            .aggregate(
                Vec::<Expr>::new(),
                [count(number(1)).alias(rows.name), count(inner).alias(known.name)],
            )
            .and_then(|builder| builder.project([room.alias(nulls)]))
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        let has = when(Expr::IsNull(Box::new(value.clone())), number(1)).otherwise(number(0));
        let room = Expr::ScalarSubquery(nested(plan));
        Ok(plain_binary(room, Operator::GtEq, has.map_err(inbound)?))
    }

    /// A plan that gives one expression over another.
    fn with_column(&mut self, plan: LogicalPlan, expression: Expr) -> Result<LogicalPlan> {
        let is_all = matches!(&expression, Expr::Column(_)) && plan.schema().fields().len() == 1;
        if is_all {
            return Ok(plan);
        }
        let name = self.fresh_name();
        LogicalPlanBuilder::from(plan)
            .project([expression.alias(name)])
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)
    }

    /// A subquery of one value.
    pub(super) fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Typed> {
        let relation = self.subquery(query)?;
        let [column] = relation.columns.as_slice() else { return Err(analysis::only_one_column()) };
        let column = column.clone();
        // Without a row it is null, which the value itself may never be, or not any more once the plan is optimized.
        let field = relation.plan.schema().field_from_column(&column.column);
        let data_type = field.map_err(inbound)?.data_type().clone();
        let value = perhaps(Expr::Column(column.column.clone()), data_type);
        let plan = self.with_column(relation.plan, value)?;
        let typed = column.typed();
        Ok(Typed { expr: Expr::ScalarSubquery(nested(plan)), origin: (0, 0), ..typed })
    }

    /// `ARRAY (SELECT ...)`.
    pub(super) fn array_subquery(&mut self, query: &ast::Query) -> Result<Typed> {
        let relation = self.subquery(query)?;
        let [column] = relation.columns.as_slice() else { return Err(analysis::only_one_column()) };
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
        let (plan, order) = match super::input_order::with_keys(&relation.plan).map_err(inbound)? {
            Some(sorted) => sorted,
            None => (relation.plan, Vec::new()),
        };
        let function = datafusion::functions_aggregate::array_agg::array_agg_udaf();
        let all = AggregateFunction::new_udf(function, vec![item.expr], false, None, order, None);
        let all = Expr::AggregateFunction(all);
        let name = self.fresh_name();
        let sql_type = SqlType::Array(Box::new(element));
        let empty = crate::arrow_column::scalar(&fabius_value::Value::List(Vec::new()), &sql_type)?;
        let column = datafusion::common::Column::new_unqualified(name.clone());
        let whole = datafusion::functions::core::expr_fn::coalesce(vec![
            Expr::Column(column),
            Expr::Literal(empty, None),
        ]);
        let result = self.fresh_name();
        let plan = LogicalPlanBuilder::from(plan)
            .aggregate(Vec::<Expr>::new(), [all.alias(name)])
            .and_then(|builder| builder.project([whole.alias(result)]))
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Typed::new(Expr::ScalarSubquery(nested(plan)), sql_type))
    }
}

fn truth(value: Option<bool>) -> Expr {
    Expr::Literal(ScalarValue::Boolean(value), None)
}

/// A plan as a subquery, with what it says of the queries around it.
pub(crate) fn nested(plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}
