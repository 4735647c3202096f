//! Queries that skip within a statement, and their rows in their places.

use super::super::plan::Rows;
use fabius_value::{Error, Result};
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

/// What stands in a statement where a query that skips did.
pub(super) enum Instead {
    /// One value, or the values of a list.
    Values(Vec<ast::Expr>),
    /// A query that does not skip.
    Query(Box<ast::Query>),
}

/// Goes to the queries of a statement that skip, in their order, but not into them.
struct Filling<F>(F);

impl<F: FnMut(ast::Query, Rows) -> Result<Instead>> Filling<F> {
    fn fill(&mut self, expression: &mut ast::Expr) -> Result<()> {
        let Filling(instead) = self;
        match expression {
            ast::Expr::Subquery(query) if skips(query) => {
                if let Instead::Values(values) = instead(*query.clone(), Rows::Value)? {
                    *expression =
                        values.into_iter().next().unwrap_or(ast::Expr::Value(ast::Value::Null.into()));
                }
            }
            // Of several columns it is a relation.
            ast::Expr::InSubquery { expr, subquery, negated }
                if skips(subquery) && !matches!(**expr, ast::Expr::Tuple(_)) =>
            {
                let Instead::Values(list) = instead(*subquery.clone(), Rows::List)? else { return Ok(()) };
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

impl<F: FnMut(ast::Query, Rows) -> Result<Instead>> ast::VisitorMut for Filling<F> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Error> {
        match self.fill(expression) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Error> {
        if skips(query) {
            match (self.0)(query.clone(), Rows::Relation) {
                Ok(Instead::Query(other)) => *query = *other,
                Ok(Instead::Values(_)) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }
}

/// A statement with something else in the places of its queries that skip.
///
/// # Errors
/// What `instead` says.
pub(super) fn filled(
    statement: &ast::Statement,
    instead: impl FnMut(ast::Query, Rows) -> Result<Instead>,
) -> Result<ast::Statement> {
    let mut statement = statement.clone();
    match ast::VisitMut::visit(&mut statement, &mut Filling(instead)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(statement),
    }
}
