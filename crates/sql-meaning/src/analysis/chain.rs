//! Long chains of operators, of `AND` and of `OR`, as generated statements have them: they are followed, not nested.

use super::back_end::{BackEnd, Sense};
use super::operator::infix;
use super::operator::truth;
use super::row_value::{compared, row_of};
use sqlparser::ast::{BinaryOperator as B, Expr};

/// The symbol of an operator: `<>` for `!=` too.
pub(super) fn symbol_of(operator: &B) -> String {
    match operator {
        B::PGCustomBinaryOperator(parts) => parts.last().cloned().unwrap_or_default(),
        B::Custom(symbol) => symbol.clone(),
        B::NotEq => "<>".into(),
        other => other.to_string(),
    }
}

/// `a + b * c || d`: operators from left to right.
pub(super) fn operators<E: BackEnd>(end: &mut E, whole: &Expr) -> Result<E::Value, E::Stop> {
    let (mut links, mut at) = (Vec::new(), whole);
    while let Expr::BinaryOp { left, op, right } = at
        && !matches!(op, B::And | B::Or)
        && (links.is_empty() || end.at_hand(at).is_none())
    {
        if row_of(left).is_some() || row_of(right).is_some() {
            let result = compared(end, left, &symbol_of(op), right)?;
            return followed(end, result, links);
        }
        links.push((op, right.as_ref()));
        at = left;
    }
    let first = end.value(at)?;
    followed(end, first, links)
}

/// The first operand of a chain with the operators behind it, the last of which comes first.
fn followed<E: BackEnd>(end: &mut E, first: E::Value, links: Vec<(&B, &Expr)>) -> Result<E::Value, E::Stop> {
    links.into_iter().rev().try_fold(first, |left, (operator, right)| {
        let right = end.value(right)?;
        infix(end, left, &symbol_of(operator), right)
    })
}

/// `a AND b AND c`, or the same with `OR`.
pub(super) fn conditions<E: BackEnd>(
    end: &mut E,
    whole: &Expr,
    is_and: bool,
    sense: Sense,
) -> Result<E::Value, E::Stop> {
    let what = if is_and { "AND" } else { "OR" };
    let conditions = parts(whole, is_and).into_iter().map(|part| truth(end, part, sense, what));
    let conditions = conditions.collect::<Result<_, _>>()?;
    end.joined(conditions, is_and)
}

/// The parts of a chain, in order; parentheses around some of them say nothing.
fn parts(whole: &Expr, is_and: bool) -> Vec<&Expr> {
    let (mut parts, mut open) = (Vec::new(), vec![whole]);
    while let Some(part) = open.pop() {
        let mut inner = part;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        match inner {
            Expr::BinaryOp { left, op: B::And, right } if is_and => open.extend([right.as_ref(), left]),
            Expr::BinaryOp { left, op: B::Or, right } if !is_and => open.extend([right.as_ref(), left]),
            _ => parts.push(part),
        }
    }
    parts
}
