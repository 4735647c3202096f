//! How many columns a subquery may have where it stands.

use super::row_of;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::Expr;

/// That a subquery which is a value, or an array's elements, has more columns than one, or none.
pub fn only_one_column() -> Error {
    Error::new(SqlState::SYNTAX_ERROR, "subquery must return only one column")
}

/// What stands before `IN (SELECT ...)`: the fields of a row, or one value.
pub fn operands(expression: &Expr) -> &[Expr] {
    row_of(expression).unwrap_or(std::slice::from_ref(expression))
}

/// Refuses a subquery behind `IN` whose columns are not as many as the values before it.
///
/// # Errors
/// `42601`
pub fn refuse_other_width(operands: usize, columns: usize) -> Result<()> {
    let few = match columns.cmp(&operands) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Less => "few",
        std::cmp::Ordering::Greater => "many",
    };
    Err(Error::new(SqlState::SYNTAX_ERROR, format!("subquery has too {few} columns")))
}
