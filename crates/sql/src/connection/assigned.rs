//! What assignments give columns.

use fabius_sql_meaning::catalog::Table;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{self, Context};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

pub(super) fn not_supported(what: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported"))
}

/// What an assignment gives each of its columns.
pub(super) fn assigned(assignment: &ast::Assignment) -> Result<Vec<(ast::ObjectName, ast::Expr)>> {
    let columns = match &assignment.target {
        ast::AssignmentTarget::ColumnName(name) => {
            return Ok(vec![(name.clone(), assignment.value.clone())]);
        }
        ast::AssignmentTarget::Tuple(columns) => columns,
    };
    let values = match &assignment.value {
        ast::Expr::Tuple(values) => values.clone(),
        ast::Expr::Subquery(query) => {
            (0..columns.len()).map(|at| column_of(query, at)).collect::<Result<_>>()?
        }
        _ => return Err(not_supported("this form of UPDATE with a list of columns")),
    };
    if values.len() != columns.len() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "number of columns does not match number of values"));
    }
    Ok(columns.iter().cloned().zip(values).collect())
}

/// One column of a query of several, as a query of its own.
fn column_of(query: &ast::Query, at: usize) -> Result<ast::Expr> {
    let mut query = query.clone();
    let ast::SetExpr::Select(select) = query.body.as_mut() else {
        return Err(not_supported("this form of UPDATE with a list of columns"));
    };
    let is_plain = |item: &ast::SelectItem| {
        matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. })
    };
    if !select.projection.iter().all(is_plain) {
        return Err(not_supported("* in an UPDATE with a list of columns"));
    }
    match select.projection.get(at).cloned() {
        Some(item) => select.projection = vec![item],
        None => {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "number of columns does not match number of values",
            ));
        }
    }
    Ok(ast::Expr::Subquery(Box::new(query)))
}

/// The types that values of a query have once they are converted for the columns that they are assigned to, which are
/// the columns' own. What does not convert stays what it is; the program says so.
pub(super) fn stored_types(given: &[OutputColumn], places: &[usize], table: &Table) -> Vec<SqlType> {
    let stored = given.iter().zip(places).map(|(given, place)| {
        let column = &table.columns[*place].sql_type;
        let converts = type_rules::converts(&given.sql_type, column, Context::Assignment);
        if converts { column } else { &given.sql_type }.clone()
    });
    stored.collect()
}
