//! Operators: which of the table is meant, and what it is to a back end.

use super::back_end::{BackEnd, Comparison, Like, Sense};
use crate::functions::operator::{self, BuiltIn, like_symbol};
use crate::functions::{Body, Definition, FUNCTIONS, Kind};
use crate::sql_type::SqlType;
use crate::type_rules::ANY_CHAR;
use fabius_value::{Error, SqlState};
use sqlparser::ast::Expr;

/// `left symbol right`
pub fn infix<E: BackEnd>(
    end: &mut E,
    left: E::Value,
    symbol: &str,
    right: E::Value,
) -> Result<E::Value, E::Stop> {
    let [left, right] = end.paired(left, right)?;
    let operator = resolved::<E>(symbol, &[&left, &right])?;
    let left = if is_pattern_match(operator, symbol) { with_blanks(end, left)? } else { left };
    match operator.body {
        Body::BuiltIn(BuiltIn::Comparison) => {
            let comparison = Comparison::of_symbol(symbol).unwrap_or(Comparison::Equal);
            end.compared(operator, left, comparison, right)
        }
        Body::BuiltIn(BuiltIn::Arithmetic(operation)) => {
            let left = operand(end, left, &operator.parameters[0])?;
            let right = operand(end, right, &operator.parameters[1])?;
            end.calculated(operator, left, operation, right)
        }
        Body::BuiltIn(BuiltIn::Like { ignores_case, is_negated }) => {
            end.like(left, Like { pattern: right, escape: None, ignores_case, is_negated })
        }
        Body::BuiltIn(BuiltIn::Concatenation) => end.concatenated(left, right),
        _ => end.apply(operator, vec![left, right]),
    }
}

/// `symbol operand`
pub fn prefix<E: BackEnd>(end: &mut E, symbol: &str, value: E::Value) -> Result<E::Value, E::Stop> {
    let operator = resolved::<E>(symbol, &[&value])?;
    match operator.body {
        Body::BuiltIn(BuiltIn::Identity) => operand(end, value, &operator.parameters[0]),
        Body::BuiltIn(BuiltIn::Negation) => {
            let value = operand(end, value, &operator.parameters[0])?;
            end.negated(value)
        }
        _ => end.apply(operator, vec![value]),
    }
}

/// `left IS [NOT] DISTINCT FROM right`
pub fn distinct<E: BackEnd>(
    end: &mut E,
    left: E::Value,
    right: E::Value,
    negated: bool,
) -> Result<E::Value, E::Stop> {
    let [left, right] = end.paired(left, right)?;
    let operator = resolved::<E>("=", &[&left, &right])?;
    let comparison = if negated { Comparison::NotDistinct } else { Comparison::Distinct };
    end.compared(operator, left, comparison, right)
}

/// `text [NOT] LIKE pattern`
pub(super) fn like<E: BackEnd>(
    end: &mut E,
    text: E::Value,
    like: Like<E::Value>,
) -> Result<E::Value, E::Stop> {
    let symbol = like_symbol(like.ignores_case, like.is_negated);
    let operator = resolved::<E>(symbol, &[&text, &like.pattern])?;
    match (operator.body, &like.escape) {
        (Body::BuiltIn(_), _) => {
            let text = with_blanks(end, text)?;
            end.like(text, like)
        }
        (_, None) => end.apply(operator, vec![text, like.pattern]),
        (_, Some(_)) => Err(end.declined("LIKE of bytes with another escape".into())),
    }
}

fn is_pattern_match(operator: &Definition, symbol: &str) -> bool {
    matches!(operator.body, Body::BuiltIn(BuiltIn::Like { .. }))
        || matches!(symbol, "~" | "~*" | "!~" | "!~*")
}

/// What a pattern is compared with, and whose bytes are counted: a `character` with all its blanks, which do not count
/// elsewhere.
pub(super) fn with_blanks<E: BackEnd>(end: &mut E, text: E::Value) -> Result<E::Value, E::Stop> {
    match E::argument_of(&text).sql_type {
        sql_type @ SqlType::Char(_) if *sql_type != ANY_CHAR => {
            end.apply(&FUNCTIONS["fabius_with_blanks"][0], vec![text])
        }
        _ => Ok(text),
    }
}

/// The operator of the table that takes such operands.
pub fn resolved<E: BackEnd>(symbol: &str, operands: &[&E::Value]) -> Result<&'static Definition, Error> {
    let operands: Vec<_> = operands.iter().map(|operand| E::argument_of(operand)).collect();
    operator::resolve(symbol, &operands)
}

/// An operand, which has the operator's type if it had none.
pub(super) fn operand<E: BackEnd>(
    end: &mut E,
    value: E::Value,
    parameter: &Kind,
) -> Result<E::Value, E::Stop> {
    match parameter {
        Kind::Is(sql_type) if *E::argument_of(&value).sql_type == SqlType::Unknown => {
            end.converted(value, sql_type)
        }
        _ => Ok(value),
    }
}

/// A value as a condition of `what`; 42804 if it is of another type.
pub fn condition<E: BackEnd>(end: &mut E, value: E::Value, what: &str) -> Result<E::Value, E::Stop> {
    match E::argument_of(&value).sql_type {
        SqlType::Boolean => Ok(value),
        SqlType::Unknown => end.converted(value, &SqlType::Boolean),
        other => {
            let message = format!("argument of {what} must be type boolean, not type {other}");
            Err(Error::new(SqlState::DATATYPE_MISMATCH, message).into())
        }
    }
}

/// An expression as a condition of `what`.
pub fn truth<E: BackEnd>(end: &mut E, whole: &Expr, sense: Sense, what: &str) -> Result<E::Value, E::Stop> {
    let value = end.part(whole, sense)?;
    // The innermost place is that of the condition itself.
    condition(end, value, what).map_err(|stop| end.stopped_at(stop, whole))
}
