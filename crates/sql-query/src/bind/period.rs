//! Periods: `(start, end) OVERLAPS (start, end)`.

use super::operator::plain_binary;
use super::{Binder, Typed};
use crate::failure::inbound;
use datafusion::logical_expr::{Expr, Operator, when};
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::Choice;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::Result;

impl Binder<'_> {
    /// `(start, end) OVERLAPS (start, end)`: each begins before the other ends.
    pub(super) fn periods_overlap(&mut self, left: [Typed; 2], right: [Typed; 2]) -> Result<Typed> {
        let mut period = |[start, end]: [Typed; 2]| -> Result<(Typed, Typed)> {
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
            let first = self.chosen(Choice::Least, vec![start.clone(), end.clone()])?;
            let last = self.chosen(Choice::Greatest, vec![start, end])?;
            let last_if_closed = when(Expr::Not(Box::new(is_open)), last.expr).end().map_err(inbound)?;
            Ok((first, Typed { expr: last_if_closed, ..last }))
        };
        let (left, right) = (period(left)?, period(right)?);
        let truth = |value| Expr::Literal(ScalarValue::Boolean(value), None);
        let is_null = |typed: &Typed| Expr::IsNull(Box::new(typed.expr.clone()));
        let is_open = plain_binary(is_null(&left.1), Operator::Or, is_null(&right.1));
        // The one that begins later, if it begins before the other ends.
        let mut later = |begin: &Typed, end: &Typed| -> Result<Expr> {
            let before = self.operator(begin.clone(), "<", end.clone())?.expr;
            when(before, truth(Some(true)))
                .when(is_open.clone(), truth(None))
                .otherwise(truth(Some(false)))
                .map_err(inbound)
        };
        let (left_later, right_later) = (later(&left.0, &right.1)?, later(&right.0, &left.1)?);
        let after = self.operator(left.0.clone(), ">", right.0.clone())?.expr;
        let before = self.operator(left.0.clone(), "<", right.0.clone())?.expr;
        let together = self.operator(left.0, "=", right.0)?.expr;
        let both = when(is_open, truth(None)).otherwise(truth(Some(true))).map_err(inbound)?;
        let mut overlap = when(after, left_later).when(before, right_later).when(together, both);
        let overlap = overlap.otherwise(truth(None)).map_err(inbound)?;
        Ok(Typed::new(overlap, SqlType::Boolean))
    }
}
