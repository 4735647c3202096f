//! Rows that more than one part of a statement would write.
//!
//! All parts of a statement see the tables as they were before it, and a row is written once: what a part has inserted
//! or changed, those behind it leave as it is (PostgreSQL 15, 7.8.4, and the comments of `ExecUpdate`).
//!
//! ```text
//! WITH new AS (INSERT INTO t ... RETURNING id) UPDATE t SET a = 1 WHERE b
//!   1. INSERT INTO t ... RETURNING id, t.key                    --> rows
//!   2. UPDATE t SET a = 1 WHERE (b) AND t.key NOT IN (SELECT key FROM these rows)
//! ```

use fabius_sql_meaning::catalog::{Catalog, ObjectName, Relation, folded};
use fabius_sql_syntax::part;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The table that a part of a statement writes.
pub(super) struct Target {
    pub(super) table: ObjectName,
    /// What the part calls it.
    called: String,
    /// The columns of the primary key; none without one.
    key: Vec<String>,
    /// Whether rows are changed, not inserted.
    finds_rows: bool,
    /// Whether the table is joined with others.
    merges: bool,
    /// Whether the part's rows end with the keys of what it has written, for a part behind it.
    gives_keys: bool,
}

/// The relation of an `UPDATE` or `DELETE`, its condition, and what it returns.
struct Parts<'p> {
    relation: &'p ast::TableFactor,
    condition: &'p mut Option<ast::Expr>,
    returning: &'p mut Option<Vec<ast::SelectItem>>,
}

fn parts(statement: &mut ast::Statement) -> Option<Parts<'_>> {
    match statement {
        ast::Statement::Update(update) => Some(Parts {
            relation: &update.table.relation,
            condition: &mut update.selection,
            returning: &mut update.returning,
        }),
        ast::Statement::Delete(delete) => {
            let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
            let relation = &from.first()?.relation;
            Some(Parts { relation, condition: &mut delete.selection, returning: &mut delete.returning })
        }
        _ => None,
    }
}

fn statement_in(body: &mut ast::SetExpr) -> Option<&mut ast::Statement> {
    match body {
        ast::SetExpr::Insert(own)
        | ast::SetExpr::Update(own)
        | ast::SetExpr::Delete(own)
        | ast::SetExpr::Merge(own) => Some(own),
        _ => None,
    }
}

impl Target {
    /// The table that a part writes; `None` for one that reads, and for what is refused when it is planned.
    fn of(catalog: &Catalog, body: &mut ast::SetExpr) -> Option<Target> {
        let statement = statement_in(body)?;
        let merges = matches!(statement, ast::Statement::Merge(_));
        let (name, alias, finds_rows) = match statement {
            ast::Statement::Insert(ast::Insert {
                table: ast::TableObject::TableName(name),
                table_alias,
                ..
            }) => (&*name, table_alias.as_ref().map(|alias| &alias.alias), false),
            ast::Statement::Merge(ast::Merge {
                table: ast::TableFactor::Table { name, alias, .. }, ..
            }) => (&*name, alias.as_ref().map(|alias| &alias.name), false),
            other => match parts(other)?.relation {
                ast::TableFactor::Table { name, alias, .. } => {
                    (name, alias.as_ref().map(|alias| &alias.name), true)
                }
                _ => return None,
            },
        };
        let table = catalog.table(name).ok()?;
        let key = table.primary_key.as_ref().map(|key| key.columns.clone()).unwrap_or_default();
        let called = alias.map_or_else(|| table.name.name.clone(), folded);
        Some(Target { table: table.name.clone(), called, key, finds_rows, merges, gives_keys: false })
    }

    fn key(&self) -> impl Iterator<Item = ast::Expr> {
        self.key.iter().map(|column| part::column(&self.called, column))
    }

    /// Whether its statement asks a table for more than the rows that it writes, and the keys that these refer to, as
    /// far as names tell.
    pub(super) fn asks(&self, catalog: &Catalog, statement: &ast::Statement, asked: &ObjectName) -> bool {
        let mut times = 0;
        let _ = ast::visit_relations(statement, |name| {
            match catalog.relation(name) {
                Ok(Some(Relation::Table(table))) => times += usize::from(table.name == *asked),
                // It may ask any table.
                Ok(Some(Relation::View(_))) => times += 2,
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        });
        times > usize::from(*asked == self.table && !self.merges)
    }

    /// How many columns at the end of the part's rows are a key.
    pub(super) fn keys(&self) -> usize {
        if self.gives_keys { self.key.len() } else { 0 }
    }
}

/// The tables that a statement or parts of it write.
pub(super) fn written_tables(catalog: &Catalog, query: &ast::Query) -> Vec<ObjectName> {
    let mut query = query.clone();
    let commons = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
    let bodies = commons.map(|common| &mut common.query.body).chain([&mut query.body]);
    bodies.filter_map(|body| Some(Target::of(catalog, body)?.table)).collect()
}

/// The tables that a query names; `None` if it names a view, which may name any.
pub(super) fn named_tables(catalog: &Catalog, query: &ast::Query) -> Option<BTreeSet<ObjectName>> {
    let mut all = BTreeSet::new();
    let views = ast::visit_relations(query, |name| match catalog.relation(name) {
        Ok(Some(Relation::View(_))) => ControlFlow::Break(()),
        Ok(Some(Relation::Table(table))) => {
            all.insert(table.name.clone());
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    });
    views.is_continue().then_some(all)
}

/// The tables that the parts of a statement write, one for each part. Parts whose rows others would write too return
/// the keys of these rows behind all else from now on.
///
/// # Errors
/// `0A000` if such a table has no key.
pub(super) fn targets(catalog: &Catalog, query: &mut ast::Query) -> Result<Vec<Option<Target>>> {
    let commons = query.with.iter_mut().flat_map(|with| &mut with.cte_tables);
    let mut bodies: Vec<&mut ast::SetExpr> = commons.map(|common| common.query.body.as_mut()).collect();
    bodies.push(query.body.as_mut());
    let mut all: Vec<Option<Target>> = bodies.iter_mut().map(|body| Target::of(catalog, body)).collect();
    for place in (0..all.len()).rev() {
        let Some((Some(target), later)) = all.get_mut(place..).and_then(<[_]>::split_first_mut) else {
            continue;
        };
        target.gives_keys =
            later.iter().flatten().any(|later| later.finds_rows && later.table == target.table);
        if !target.gives_keys {
            continue;
        }
        if target.key.is_empty() {
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                format!(
                    "changing rows of table \"{}\", which has no primary key, in a statement that writes it \
                     elsewhere too is not supported",
                    target.table.name
                ),
            ));
        }
        let returning =
            bodies.get_mut(place).and_then(|body| statement_in(body)).and_then(|statement| match statement {
                ast::Statement::Insert(insert) => Some(&mut insert.returning),
                other => parts(other).map(|parts| parts.returning),
            });
        if let Some(returning) = returning {
            returning.get_or_insert_default().extend(target.key().map(ast::SelectItem::UnnamedExpr));
        }
    }
    Ok(all)
}

/// Leaves the rows to others that they have written: queries of the keys of these.
pub(super) fn leave(body: &mut ast::SetExpr, target: &Target, others: impl Iterator<Item = ast::Query>) {
    let Some(parts) = statement_in(body).and_then(parts).filter(|_| target.finds_rows) else { return };
    for keys in others {
        let others_alone = ast::Expr::InSubquery {
            expr: Box::new(one_or_row(target.key().collect())),
            subquery: Box::new(keys),
            negated: true,
        };
        *parts.condition = Some(match parts.condition.take() {
            None => others_alone,
            Some(condition) => ast::Expr::BinaryOp {
                left: Box::new(ast::Expr::Nested(Box::new(condition))),
                op: ast::BinaryOperator::And,
                right: Box::new(others_alone),
            },
        });
    }
}

fn one_or_row(mut values: Vec<ast::Expr>) -> ast::Expr {
    match values.len() {
        1 => values.remove(0),
        _ => ast::Expr::Tuple(values),
    }
}
