//! Row values: `(a, b) < (c, d)`, `(a, b) IS NULL`, `(a, b) OVERLAPS (c, d)`.

use super::back_end::{BackEnd, Comparison, Many};
use super::operator::infix;
use fabius_value::{Error, SqlState};
use sqlparser::ast::Expr;

/// Fields of rows that are compared one by one.
const FEW_FIELDS: usize = 8;

/// The parts of a row value.
pub fn row_of(expression: &Expr) -> Option<&[Expr]> {
    match expression {
        Expr::Tuple(values) => Some(values),
        Expr::Nested(inner) => row_of(inner),
        _ => None,
    }
}

/// A comparison of two values or two rows.
pub(super) fn compared<E: BackEnd>(
    end: &mut E,
    left: &Expr,
    symbol: &str,
    right: &Expr,
) -> Result<E::Value, E::Stop> {
    let syntax = |message: &str| Err(Error::new(SqlState::SYNTAX_ERROR, message).into());
    match (row_of(left), row_of(right)) {
        (None, None) => {
            let (left, right) = (end.value(left)?, end.value(right)?);
            infix(end, left, symbol, right)
        }
        (left, right) if symbol == "OVERLAPS" => match (left, right) {
            (Some([from, to]), Some([other_from, other_to])) => {
                let left = [end.value(from)?, end.value(to)?];
                let right = [end.value(other_from)?, end.value(other_to)?];
                end.overlaps(left, right)
            }
            _ => syntax("wrong number of parameters on OVERLAPS expression"),
        },
        (Some(_), Some(_)) if Comparison::of_symbol(symbol).is_none() => {
            Err(end.declined(format!("the operator {symbol} of row values")))
        }
        (Some(left), Some(right)) => {
            if left.len() != right.len() {
                return syntax("unequal number of entries in row expressions");
            }
            if left.is_empty() {
                return syntax("a row has no entries");
            }
            end.bounded(Many::Fields, left.len())?;
            rows_compared(end, left, symbol, right)
        }
        (row, _) => match right {
            Expr::Subquery(query) if symbol == "=" && row.is_some() => end.equal_row(left, query),
            _ => Err(end.declined("a comparison of a row value with another".into())),
        },
    }
}

/// `a < c OR a = c AND b < d`: the same of halves, so that many fields nest little.
fn rows_compared<E: BackEnd>(
    end: &mut E,
    left: &[Expr],
    symbol: &str,
    right: &[Expr],
) -> Result<E::Value, E::Stop> {
    if let ([left], [right]) = (left, right) {
        let (left, right) = (end.value(left)?, end.value(right)?);
        return infix(end, left, symbol, right);
    }
    if matches!(symbol, "=" | "<>") {
        let pairs = left.iter().zip(right).map(|(left, right)| {
            let (left, right) = (end.value(left)?, end.value(right)?);
            infix(end, left, symbol, right)
        });
        let pairs = pairs.collect::<Result<_, _>>()?;
        return end.joined(pairs, symbol == "=");
    }
    // One field at a time as long as there are few: conditions on the first find their index.
    let first = if left.len() <= FEW_FIELDS { 1 } else { left.len() / 2 };
    let (left, left_rest) = left.split_at(first);
    let (right, right_rest) = right.split_at(first);
    let before = rows_compared(end, left, symbol.trim_end_matches('='), right)?;
    let equal = rows_compared(end, left, "=", right)?;
    let rest = rows_compared(end, left_rest, symbol, right_rest)?;
    let then = end.joined(vec![equal, rest], true)?;
    end.joined(vec![before, then], false)
}

/// Whether all values of a row are null, or all are not.
pub(super) fn is_null_of_row<E: BackEnd>(
    end: &mut E,
    row: &[Expr],
    negated: bool,
) -> Result<E::Value, E::Stop> {
    end.bounded(Many::Fields, row.len())?;
    let mut all = Vec::with_capacity(row.len());
    for field in row {
        let field = end.value(field)?;
        all.push(end.is_null(field, negated)?);
    }
    end.joined(all, true)
}
