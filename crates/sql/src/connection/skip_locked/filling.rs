//! Queries that skip within a statement, and their rows in their places.

use super::super::given_rows::{literal, query_of};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::ops::ControlFlow;

/// Whether a query skips rows.
pub(super) fn skips(query: &ast::Query) -> bool {
    query.locks.iter().any(|lock| lock.nonblock == Some(ast::NonBlock::SkipLocked))
}

fn wait_instead(query: &mut ast::Query) {
    query.locks.iter_mut().for_each(|lock| lock.nonblock = None);
}

/// Whether a statement, or a query within it, skips rows.
pub(in crate::connection) fn has_skips(statement: &ast::Statement) -> bool {
    struct Any;
    impl ast::Visitor for Any {
        type Break = ();
        fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
            if skips(query) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    ast::Visit::visit(statement, &mut Any).is_break()
}

/// A statement that waits where this one skips rows.
pub(in crate::connection) fn waiting(statement: &ast::Statement) -> ast::Statement {
    struct Each;
    impl ast::VisitorMut for Each {
        type Break = ();
        fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
            wait_instead(query);
            ControlFlow::Continue(())
        }
    }
    let mut statement = statement.clone();
    let _ = ast::VisitMut::visit(&mut statement, &mut Each);
    statement
}

/// The rows of a query.
pub(super) type Found = (Vec<OutputColumn>, Vec<Vec<Value>>);

/// Goes to the queries of a statement that skip, in their order; those whose rows are there become these rows, the
/// next is taken out.
struct Filling<'f> {
    found: std::slice::Iter<'f, Found>,
    next: Option<ast::Query>,
}

impl Filling<'_> {
    /// The rows of a query, unless it is the next to be run.
    fn of(&mut self, query: &ast::Query) -> Option<&Found> {
        let found = self.found.next();
        if found.is_none() && self.next.is_none() {
            self.next = Some(query.clone());
        }
        found
    }

    fn fill(&mut self, expression: &mut ast::Expr) -> Result<()> {
        match expression {
            ast::Expr::Subquery(query) if skips(query) => {
                wait_instead(query);
                let Some((columns, rows)) = self.of(&query.clone()) else { return Ok(()) };
                if rows.len() > 1 {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(Error::new(SqlState(*b"21000"), message));
                }
                if let [column] = columns.as_slice() {
                    let value = rows.first().and_then(|row| row.first()).unwrap_or(&Value::Null);
                    *expression = value_of(value, column)?;
                }
            }
            ast::Expr::InSubquery { expr, subquery, negated } if skips(subquery) => {
                wait_instead(subquery);
                let Some((columns, rows)) = self.of(&subquery.clone()) else { return Ok(()) };
                let [column] = columns.as_slice() else { return Ok(()) };
                let values = rows.iter().filter_map(|row| row.first());
                let list = values.map(|value| value_of(value, column)).collect::<Result<Vec<_>>>()?;
                *expression = match list.is_empty() {
                    true => ast::Expr::Value(ast::Value::Boolean(*negated).into()),
                    false => ast::Expr::InList { expr: expr.clone(), list, negated: *negated },
                };
            }
            ast::Expr::AnyOp { left, compare_op: ast::BinaryOperator::Eq, right, .. } => {
                if let ast::Expr::Subquery(query) = right.as_ref()
                    && skips(query)
                {
                    let (expr, subquery) = (left.clone(), query.clone());
                    *expression = ast::Expr::InSubquery { expr, subquery, negated: false };
                    return self.fill(expression);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl ast::VisitorMut for Filling<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Error> {
        match self.fill(expression) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Error> {
        if !skips(query) {
            return ControlFlow::Continue(());
        }
        wait_instead(query);
        if let Some((columns, rows)) = self.of(&query.clone()) {
            match query_of(columns, rows) {
                Ok(rows) => *query = rows,
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

/// A value as an expression of its column's type.
fn value_of(value: &Value, column: &OutputColumn) -> Result<ast::Expr> {
    let text = match (value, &column.sql_type) {
        // As they are written mostly, so that statements that differ in them only share a plan.
        (Value::Int(_) | Value::BigInt(_), SqlType::Int | SqlType::BigInt)
            if value.as_integer().is_some_and(|value| value >= 0) =>
        {
            value.as_integer().unwrap_or_default().to_string()
        }
        _ => literal(value, column),
    };
    Tokens::of(&text)?.read(|parser| parser.parse_expr())
}

/// A statement with the rows of the first queries that skip in their places; the query that is the next.
pub(super) fn filled(
    statement: &ast::Statement,
    found: &[Found],
) -> Result<(ast::Statement, Option<ast::Query>)> {
    let mut statement = statement.clone();
    let mut filling = Filling { found: found.iter(), next: None };
    match ast::VisitMut::visit(&mut statement, &mut filling) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => {
            // What was taken out of it to be run skips, as it did.
            let next = filling.next.map(|mut query| {
                query.locks.iter_mut().for_each(|lock| lock.nonblock = Some(ast::NonBlock::SkipLocked));
                query
            });
            Ok((statement, next))
        }
    }
}
