//! `LIMIT`, `OFFSET` and `FETCH`: which of a query's rows are kept.

use super::back_end::BackEnd;
use crate::sql_type::SqlType;
use crate::type_rules::{Context, converts};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Expr};

/// A window's clause that counts rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowCount {
    /// `LIMIT`, and `FETCH`, which means it.
    Limit,
    /// `OFFSET`
    Offset,
}

impl RowCount {
    /// The clause.
    pub fn word(self) -> &'static str {
        match self {
            RowCount::Limit => "LIMIT",
            RowCount::Offset => "OFFSET",
        }
    }

    /// The SQLSTATE of a count that is negative: `2201W`, `2201X`.
    pub fn state_of_negative(self) -> SqlState {
        match self {
            RowCount::Limit => SqlState(*b"2201W"),
            RowCount::Offset => SqlState(*b"2201X"),
        }
    }

    /// That a count is negative, in words.
    pub fn is_negative(self) -> String {
        format!("{} must not be negative", self.word())
    }
}

/// How many rows are kept, and how many are left out before them; all without a `limit`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowWindow {
    /// The count of `LIMIT`, or of `FETCH`.
    pub limit: Option<Expr>,
    /// The count of `OFFSET`.
    pub offset: Option<Expr>,
    /// Whether rows that sort as the last one does are kept too: `WITH TIES`.
    pub with_ties: bool,
}

impl RowWindow {
    /// The window of a query, as it is written.
    ///
    /// # Errors
    /// `42601` for what PostgreSQL does not read.
    pub fn of(query: &ast::Query) -> Result<RowWindow> {
        let wrong = |message: &str| Error::new(SqlState::SYNTAX_ERROR, message);
        let mut window = match &query.limit_clause {
            None => RowWindow::default(),
            Some(ast::LimitClause::LimitOffset { limit, offset, limit_by: _ }) => {
                let is_all = |limit: &&Expr| {
                    matches!(limit, Expr::Identifier(name)
                        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("all"))
                };
                RowWindow {
                    limit: limit.as_ref().filter(|limit| !is_all(limit)).cloned(),
                    offset: offset.as_ref().map(|offset| offset.value.clone()),
                    with_ties: false,
                }
            }
            Some(ast::LimitClause::OffsetCommaLimit { .. }) => {
                return Err(wrong("LIMIT #,# syntax is not supported")
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
        };
        let Some(fetch) = &query.fetch else { return Ok(window) };
        if fetch.with_ties && !is_ordered(query) {
            return Err(wrong("WITH TIES cannot be specified without ORDER BY clause"));
        }
        window.with_ties = fetch.with_ties;
        // So a count in parentheses is spelled.
        let is_spelled = fetch.with_ties
            && matches!(&fetch.quantity, Some(Expr::Value(count)) if count.value == ast::Value::Null);
        match window.limit {
            Some(_) if is_spelled => {}
            Some(_) => return Err(wrong("multiple LIMIT clauses not allowed")),
            None => {
                let one = || Expr::value(ast::Value::Number("1".into(), false));
                window.limit = Some(fetch.quantity.clone().unwrap_or_else(one));
            }
        }
        Ok(window)
    }
}

/// Whether a query's rows come in an order, perhaps that of a query in parentheses which is all of it.
fn is_ordered(query: &ast::Query) -> bool {
    query.order_by.is_some() || matches!(&*query.body, ast::SetExpr::Query(inner) if is_ordered(inner))
}

/// A count of rows, as a `bigint`.
///
/// # Errors
/// `42804` if it is none; what is wrong with the expression.
pub fn row_count<E: BackEnd>(end: &mut E, count: &Expr, clause: RowCount) -> Result<E::Value, E::Stop> {
    let value = end.value(count)?;
    let found = E::argument_of(&value).sql_type;
    if *found != SqlType::Unknown && !converts(found, &SqlType::BigInt, Context::Assignment) {
        let clause = clause.word();
        let message = format!("argument of {clause} must be type bigint, not type {found}");
        return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).into());
    }
    end.converted(value, &SqlType::BigInt)
}
