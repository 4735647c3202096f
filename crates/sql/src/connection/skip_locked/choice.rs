//! A query that skips: candidates, then each by its key.

use super::super::plan::{Choice, Given, Plan};
use super::super::{Connection, Response};
use super::not_supported;
use fabius_sql_meaning::catalog::{Catalog, ROW_NUMBER, Relation, folded};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::bind::is_aggregated;
use fabius_sql_syntax::part;
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{Error, Result, SqlState, Value};
use futures::TryStreamExt;
use sqlparser::ast;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Candidates that are looked at beyond those that are wanted: so many others may be at work before more are looked at.
const SPARE: i64 = 15;

/// How many times as many candidates are looked at next, when those were not enough.
const GROWTH: i64 = 8;

impl Choice {
    /// Takes a query apart that has these parameters; `plan` says how one with more of them runs.
    pub(super) fn of(
        catalog: &Catalog,
        query: &ast::Query,
        own: &[SqlType],
        plan: &dyn Fn(ast::Query, Vec<SqlType>) -> Result<Arc<Plan>>,
    ) -> Result<Choice> {
        let ast::SetExpr::Select(select) = query.body.as_ref() else {
            return Err(not_supported("SKIP LOCKED with UNION, INTERSECT, EXCEPT or VALUES"));
        };
        if is_aggregated(select) || select.distinct.is_some() {
            return Err(not_supported("SKIP LOCKED with GROUP BY, DISTINCT or aggregates"));
        }
        let (keys, key_types): (Vec<_>, Vec<_>) = keys(catalog, query, select)?.into_iter().unzip();
        let shown = keys.iter().cloned().map(ast::SelectItem::UnnamedExpr).collect();
        let condition = select.selection.as_ref();
        let mut candidates = part::select(query.with.as_ref(), shown, select.from.clone(), condition)?;
        candidates.order_by = order_by(query, select)?;
        let bounds = bounds(query)?;
        if bounds.is_some() {
            let limit = Some(part::parameter(own.len()));
            candidates.limit_clause =
                Some(ast::LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
        }

        let mut row = query.clone();
        (row.order_by, row.limit_clause, row.fetch) = (None, None, None);
        row.locks.iter_mut().for_each(|lock| lock.nonblock = Some(ast::NonBlock::Nowait));
        if let ast::SetExpr::Select(select) = row.body.as_mut() {
            for (at, key) in keys.into_iter().enumerate() {
                let is_this = part::binary(key, ast::BinaryOperator::Eq, part::parameter(own.len() + at));
                select.selection = Some(match select.selection.take() {
                    None => is_this,
                    Some(condition) => {
                        let condition = ast::Expr::Nested(Box::new(condition));
                        part::binary(condition, ast::BinaryOperator::And, is_this)
                    }
                });
            }
        }
        let and = |more: &[SqlType]| [own, more].concat();
        let most = if bounds.is_some() { and(&[SqlType::BigInt]) } else { and(&[]) };
        Ok(Choice {
            candidates: plan(candidates, most)?,
            row: plan(row, and(&key_types))?,
            bounds: bounds.map(|bounds| plan(bounds, and(&[]))).transpose()?,
        })
    }
}

/// The keys of the rows that a query locks, and their types.
fn keys(catalog: &Catalog, query: &ast::Query, select: &ast::Select) -> Result<Vec<(ast::Expr, SqlType)>> {
    let wanted: Vec<String> = query.locks.iter().filter_map(|lock| lock.of.as_ref()).map(last_name).collect();
    let mut keys = Vec::new();
    for factor in factors(select) {
        let ast::TableFactor::Table { name, alias, .. } = factor else { continue };
        let called = alias.as_ref().map_or_else(|| last_name(name), |alias| folded(&alias.name));
        if !wanted.is_empty() && !wanted.contains(&called) {
            continue;
        }
        let table = catalog.table(name)?;
        catalog.require(&Relation::Table(table), Privilege::Update)?;
        match &table.primary_key {
            Some(key) => {
                let columns = key.columns.iter().filter_map(|name| table.column(name));
                let own = columns.map(|key| (part::column(&called, &key.name), key.sql_type.clone()));
                keys.extend(own);
            }
            None => keys.push((part::column(&called, ROW_NUMBER), SqlType::BigInt)),
        }
    }
    if keys.is_empty() {
        return Err(not_supported("SKIP LOCKED of other than tables"));
    }
    Ok(keys)
}

fn last_name(name: &ast::ObjectName) -> String {
    name.0.last().and_then(|part| part.as_ident()).map(folded).unwrap_or_default()
}

fn factors(select: &ast::Select) -> impl Iterator<Item = &ast::TableFactor> {
    select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)))
}

/// The order of a query for one that shows other columns: places and names of its columns are what they stand for.
fn order_by(query: &ast::Query, select: &ast::Select) -> Result<Option<ast::OrderBy>> {
    let Some(mut order) = query.order_by.clone() else { return Ok(None) };
    let ast::OrderByKind::Expressions(items) = &mut order.kind else {
        return Err(not_supported("ORDER BY ALL"));
    };
    for item in items {
        let named = |wanted: &ast::Ident| {
            select.projection.iter().find_map(|shown| match shown {
                ast::SelectItem::ExprWithAlias { expr, alias } if folded(alias) == folded(wanted) => {
                    Some(expr)
                }
                _ => None,
            })
        };
        let stands_for = match &item.expr {
            ast::Expr::Identifier(name) => named(name),
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(place, _) => {
                    let at = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
                    match at.and_then(|at| select.projection.get(at)) {
                        Some(
                            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. },
                        ) => Some(expr),
                        _ => return Err(not_supported("SKIP LOCKED with ORDER BY of a place in *")),
                    }
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(expression) = stands_for {
            item.expr = expression.clone();
        }
    }
    Ok(Some(order))
}

/// `SELECT limit, offset`, unless there is neither.
fn bounds(query: &ast::Query) -> Result<Option<ast::Query>> {
    let (limit, offset) = match (&query.limit_clause, &query.fetch) {
        (None, None) => return Ok(None),
        (_, Some(fetch)) if fetch.with_ties || fetch.percent => {
            return Err(not_supported("SKIP LOCKED with FETCH ... WITH TIES"));
        }
        (Some(ast::LimitClause::OffsetCommaLimit { .. }), _) => {
            return Err(not_supported("LIMIT of two numbers"));
        }
        (Some(ast::LimitClause::LimitOffset { limit, offset, .. }), fetch) => (
            limit.clone().or_else(|| fetched(fetch.as_ref())),
            offset.as_ref().map(|offset| offset.value.clone()),
        ),
        (None, fetch) => (fetched(fetch.as_ref()), None),
    };
    let number = |bound: Option<ast::Expr>| {
        let bound = bound.unwrap_or_else(|| ast::Expr::Value(ast::Value::Null.into()));
        part::cast(ast::Expr::Nested(Box::new(bound)), "bigint").map(ast::SelectItem::UnnamedExpr)
    };
    let shown = vec![number(limit)?, number(offset)?];
    part::select(None, shown, Vec::new(), None).map(Some)
}

/// `FETCH FIRST ROW` is one.
fn fetched(fetch: Option<&ast::Fetch>) -> Option<ast::Expr> {
    let one = || ast::Expr::Value(ast::Value::Number("1".into(), false).into());
    fetch.map(|fetch| fetch.quantity.clone().unwrap_or_else(one))
}

impl Connection {
    /// The rows that a query gets.
    pub(super) async fn choose(
        &mut self,
        catalog: &Arc<Catalog>,
        choice: &Choice,
        own: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let (limit, offset) = match &choice.bounds {
            None => (None, 0),
            Some(bounds) => {
                let rows = self.look(catalog, bounds, own).await?;
                let bound = |at: usize| rows.first().and_then(|row| row.get(at)).and_then(Value::as_integer);
                (bound(0), bound(1).unwrap_or_default())
            }
        };
        for (bound, code, what) in [(limit, b"2201W", "LIMIT"), (Some(offset), b"2201X", "OFFSET")] {
            if bound.is_some_and(|bound| bound < 0) {
                return Err(Error::new(SqlState(*code), format!("{what} must not be negative")));
            }
        }
        let wanted = limit.map(|limit| limit.saturating_add(offset));
        let mut looked_at = wanted.map(|wanted| wanted.saturating_add(SPARE));
        let (mut rows, mut asked) = (Vec::new(), BTreeSet::new());
        let is_enough = |rows: &Vec<_>| wanted.is_some_and(|wanted| rows.len() as i64 >= wanted);
        while !is_enough(&rows) {
            let most = choice.bounds.is_some().then(|| looked_at.map_or(Value::Null, Value::BigInt));
            let parameters: Vec<Value> = own.iter().cloned().chain(most).collect();
            let candidates = self.look(catalog, &choice.candidates, &parameters).await?;
            let is_all = looked_at.is_none_or(|most| (candidates.len() as i64) < most);
            for key in candidates {
                if !is_enough(&rows) && asked.insert(format!("{key:?}")) {
                    rows.extend(self.row_unless_locked(catalog, &choice.row, [own, &key].concat()).await?);
                }
            }
            if is_all {
                break;
            }
            looked_at = looked_at.map(|most| most.saturating_mul(GROWTH));
        }
        Ok(rows.split_off(rows.len().min(offset as usize)))
    }

    /// The rows of one key, which are locked then; none if somebody else has locked it.
    async fn row_unless_locked(
        &mut self,
        catalog: &Arc<Catalog>,
        row: &Plan,
        parameters: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>> {
        let point = self.transaction.point().await;
        let rows = match self.rows_by(catalog, row, &parameters).await {
            Err(error) if error.state() == SqlState::LOCK_NOT_AVAILABLE => Vec::new(),
            rows => rows?,
        };
        if rows.is_empty() {
            self.transaction.forget_since(point).await;
        }
        Ok(rows)
    }

    /// The rows of a query that is not held: the transaction does not depend on them.
    async fn look(
        &mut self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        parameters: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let point = self.transaction.point().await;
        self.execution.manner.is_looking = true;
        let rows = self.rows_by(catalog, plan, parameters).await;
        self.execution.manner.is_looking = false;
        self.transaction.forget_since(point).await;
        rows
    }

    async fn rows_by(
        &mut self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        parameters: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let given = Given { parameters, ..Given::default() };
        match Box::pin(self.perform(catalog, plan, given)).await? {
            Response::Rows { rows, .. } => rows.try_collect().await,
            _ => Ok(Vec::new()),
        }
    }
}
