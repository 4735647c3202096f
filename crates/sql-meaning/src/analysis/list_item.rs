//! What an item of `ORDER BY`, `GROUP BY` or `DISTINCT ON` stands for: a place in the select list, a name, an
//! expression.

use crate::catalog::folded;
use fabius_value::{Error, SqlState};
use sqlparser::ast::{self, Expr, UnaryOperator};

/// What an item stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListItem {
    /// What the list has at this place, from 0.
    Place(usize),
    /// What the list, or a relation, has of this name.
    Name(String),
    /// A value of its own.
    Expression,
}

/// What an item of a clause stands for, beside a list of so many columns.
///
/// # Errors
/// `42P10` for a place that the list does not have, `42601` for a constant that is none.
pub fn list_item(item: &Expr, width: usize, clause: &str) -> Result<ListItem, Error> {
    let number = |text: &str| match text.parse::<i32>() {
        Ok(number) => match usize::try_from(number).ok().and_then(|number| number.checked_sub(1)) {
            Some(place) if place < width => Ok(ListItem::Place(place)),
            _ => {
                let message = format!("{clause} position {number} is not in select list");
                Err(Error::new(SqlState(*b"42P10"), message))
            }
        },
        Err(_) => Err(Error::new(SqlState::SYNTAX_ERROR, format!("non-integer constant in {clause}"))),
    };
    match item {
        Expr::Nested(inner) => list_item(inner, width, clause),
        Expr::Identifier(name) => Ok(ListItem::Name(folded(name))),
        Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(_) => Ok(ListItem::Expression),
            ast::Value::Number(text, _) => number(text),
            _ => number(""),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Expr::Value(value) => match &value.value {
                ast::Value::Number(text, _) => number(&format!("-{text}")),
                _ => Ok(ListItem::Expression),
            },
            _ => Ok(ListItem::Expression),
        },
        _ => Ok(ListItem::Expression),
    }
}

/// The place of a name in a list, if it is there; columns of one name have to be the same.
///
/// # Errors
/// `42702` if they are not.
pub fn place_of_name<'l, C: 'l>(
    list: &'l [C],
    has_name: impl Fn(&C) -> bool,
    are_same: impl Fn(&C, &C) -> bool,
    (name, clause): (&str, &str),
) -> Result<Option<usize>, Error> {
    let mut named = list.iter().enumerate().filter(|(_, column)| has_name(column));
    let Some((place, first)) = named.next() else { return Ok(None) };
    match named.any(|(_, other)| !are_same(first, other)) {
        true => Err(Error::new(SqlState(*b"42702"), format!("{clause} \"{name}\" is ambiguous"))),
        false => Ok(Some(place)),
    }
}
