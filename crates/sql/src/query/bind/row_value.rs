//! Row values: `(a, b) < (c, d)`, `(a, b) IS NULL`, `(a, b) OVERLAPS (c, d)`.

use super::expression::false_literal;
use super::operator::plain_binary;
use super::{Binder, Sense, Typed};
use crate::query::failure::{inbound, unsupported};
use crate::sql_type::SqlType;
use datafusion::logical_expr::{Expr, Operator, when};
use datafusion::scalar::ScalarValue;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, BinaryOperator};

/// Fields of rows that are compared one by one.
const FEW_FIELDS: usize = 8;

impl Binder<'_> {
    /// Whether all values of a row are null, or all are not.
    pub(super) fn row_is_null(&mut self, row: &ast::Expr, wrap: fn(Box<Expr>) -> Expr) -> Result<Typed> {
        let mut all: Option<Expr> = None;
        for value in row_of(row).unwrap_or_default() {
            let typed = self.expression(value)?;
            let one = wrap(Box::new(self.known(typed)?.expr));
            all = Some(match all {
                None => one,
                Some(before) => plain_binary(before, Operator::And, one),
            });
        }
        Ok(Typed::new(all.unwrap_or(false_literal()), SqlType::Boolean))
    }

    pub(super) fn row_comparison(
        &mut self,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Typed> {
        let name = if *op == BinaryOperator::NotEq { "<>".to_string() } else { op.to_string() };
        self.row_operator(left, &name, right)
    }

    /// A comparison of row values: `(a, b) < (c, d)`.
    pub(super) fn row_operator(&mut self, left: &ast::Expr, name: &str, right: &ast::Expr) -> Result<Typed> {
        if name == "OVERLAPS" {
            return self.overlaps(left, right);
        }
        let (left, right) = match (row_of(left), row_of(right)) {
            (Some(left), Some(right)) => (left, right),
            (Some(left), None) if matches!(right, ast::Expr::Subquery(_)) && name == "=" => {
                let ast::Expr::Subquery(query) = right else { return Err(unsupported("row values")) };
                let tuple = ast::Expr::Tuple(left.to_vec());
                return self.in_subquery(&tuple, query, false, Sense::Value);
            }
            _ => return Err(unsupported("row values are supported in comparisons with row values only")),
        };
        if left.len() != right.len() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "unequal number of entries in row expressions"));
        }
        if left.is_empty() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "a row has no entries"));
        }
        Ok(Typed::new(self.rows_compared(left, name, right)?, SqlType::Boolean))
    }

    /// `a < c OR a = c AND b < d`: the same of halves, so that many fields nest little.
    pub(super) fn rows_compared(
        &mut self,
        left: &[ast::Expr],
        name: &str,
        right: &[ast::Expr],
    ) -> Result<Expr> {
        if let ([left], [right]) = (left, right) {
            let (left, right) = (self.expression(left)?, self.expression(right)?);
            return self.comparison(left, name, right).map(|typed| typed.expr);
        }
        if matches!(name, "=" | "<>") {
            let pairs = left.iter().zip(right).map(|(left, right)| {
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                Ok(self.comparison(left, name, right)?.expr)
            });
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            return Ok(self.chained(pairs, if name == "=" { Operator::And } else { Operator::Or }));
        }
        // One field at a time as long as there are few: conditions on the first find their index.
        let first = if left.len() <= FEW_FIELDS { 1 } else { left.len() / 2 };
        let (left, left_rest) = left.split_at(first);
        let (right, right_rest) = right.split_at(first);
        let before = self.rows_compared(left, name.trim_end_matches('='), right)?;
        let equal = self.rows_compared(left, "=", right)?;
        let rest = self.rows_compared(left_rest, name, right_rest)?;
        Ok(plain_binary(before, Operator::Or, plain_binary(equal, Operator::And, rest)))
    }

    /// `(start, end) OVERLAPS (start, end)`: each begins before the other ends.
    pub(super) fn overlaps(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Typed> {
        let (Some([from, to]), Some([other_from, other_to])) = (row_of(left), row_of(right)) else {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "wrong number of parameters on OVERLAPS expression",
            ));
        };
        let mut period = |from: &ast::Expr, to: &ast::Expr| -> Result<(Typed, Typed)> {
            let start = self.expression(from)?;
            let end = self.expression(to)?;
            let start = if start.sql_type == SqlType::Unknown {
                self.coerce(start, &SqlType::TimestampTz)?
            } else {
                start
            };
            let end = match end.sql_type {
                SqlType::Interval => self.operator(start.clone(), "+", end)?,
                SqlType::Unknown => self.coerce(end, &start.sql_type.clone())?,
                _ => end,
            };
            // One that is known on one side only begins there and has no end.
            let is_null = |typed: &Typed| Expr::IsNull(Box::new(typed.expr.clone()));
            let is_open = plain_binary(is_null(&start), Operator::Or, is_null(&end));
            let first = self.choice("least", vec![start.clone(), end.clone()])?;
            let last = self.choice("greatest", vec![start, end])?;
            let last_if_closed = when(Expr::Not(Box::new(is_open)), last.expr).end().map_err(inbound)?;
            Ok((first, Typed { expr: last_if_closed, ..last }))
        };
        let (left, right) = (period(from, to)?, period(other_from, other_to)?);
        let truth = |value| Expr::Literal(ScalarValue::Boolean(value), None);
        let is_null = |typed: &Typed| Expr::IsNull(Box::new(typed.expr.clone()));
        let is_open = plain_binary(is_null(&left.1), Operator::Or, is_null(&right.1));
        // The one that begins later, if it begins before the other ends.
        let mut later = |begin: &Typed, end: &Typed| -> Result<Expr> {
            let before = self.comparison(begin.clone(), "<", end.clone())?.expr;
            when(before, truth(Some(true)))
                .when(is_open.clone(), truth(None))
                .otherwise(truth(Some(false)))
                .map_err(inbound)
        };
        let (left_later, right_later) = (later(&left.0, &right.1)?, later(&right.0, &left.1)?);
        let after = self.comparison(left.0.clone(), ">", right.0.clone())?.expr;
        let before = self.comparison(left.0.clone(), "<", right.0.clone())?.expr;
        let together = self.comparison(left.0, "=", right.0)?.expr;
        let both = when(is_open, truth(None)).otherwise(truth(Some(true))).map_err(inbound)?;
        let mut overlap = when(after, left_later).when(before, right_later).when(together, both);
        let overlap = overlap.otherwise(truth(None)).map_err(inbound)?;
        Ok(Typed::new(overlap, SqlType::Boolean))
    }
}

/// The parts of a row value.
pub(super) fn row_of(expression: &ast::Expr) -> Option<&[ast::Expr]> {
    match expression {
        ast::Expr::Tuple(values) => Some(values),
        ast::Expr::Nested(inner) => row_of(inner),
        _ => None,
    }
}
