//! Literals and parameters that are given to columns: they have no type of their own, and take the column's.
//!
//! Said in the syntax tree, by casts, so that it is the same for programs and queries:
//!
//! ```text
//! INSERT INTO t (id, name) SELECT $1, 'x' FROM ...     SELECT CAST($1 AS integer), CAST('x' AS text) FROM ...
//! ```

use fabius_sql_meaning::catalog::{Column, Table, folded};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::without_modifiers;
use fabius_sql_syntax::part;
use fabius_sql_syntax::tokens::Tokens;
use sqlparser::ast::{self, Expr};

/// What has no type of its own, as one of the column's type; `DEFAULT` as what it stands for.
pub fn typed(value: &Expr, column: &Column) -> Expr {
    match value {
        _ if is_default(value) => match (&column.default, &column.sequence) {
            (Some(default), _) => {
                let read = Tokens::of(default).and_then(|it| it.read(|parser| parser.parse_expr()));
                read.unwrap_or_else(|_| value.clone())
            }
            (None, None) => cast(&Expr::value(ast::Value::Null), &column.sql_type),
            (None, Some(_)) => value.clone(),
        },
        _ if is_untyped(value) => cast(value, &column.sql_type),
        _ => value.clone(),
    }
}

/// Whether a value is `DEFAULT`.
pub fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(word) if word.quote_style.is_none() && folded(word) == "default")
}

/// Gives all that a query gives for the columns at `places` their types, as [`typed`] does.
pub fn type_items(body: &mut ast::SetExpr, places: &[usize], table: &Table) {
    match body {
        ast::SetExpr::Values(values) => {
            for row in &mut values.rows {
                for (value, place) in row.content.iter_mut().zip(places) {
                    *value = typed(value, &table.columns[*place]);
                }
            }
        }
        ast::SetExpr::Select(select) => {
            for (item, place) in select.projection.iter_mut().zip(places) {
                let (ast::SelectItem::UnnamedExpr(value)
                | ast::SelectItem::ExprWithAlias { expr: value, .. }) = item
                else {
                    // More than one column: which is for which is not known here.
                    break;
                };
                if is_untyped(value) {
                    *value = cast(value, &table.columns[*place].sql_type);
                }
            }
        }
        ast::SetExpr::Query(query) => type_items(&mut query.body, places, table),
        ast::SetExpr::SetOperation { left, right, set_quantifier: ast::SetQuantifier::All, .. } => {
            type_items(left, places, table);
            type_items(right, places, table);
        }
        _ => {}
    }
}

fn is_untyped(value: &Expr) -> bool {
    match value {
        Expr::Nested(inner) => is_untyped(inner),
        Expr::Value(value) => !matches!(value.value, ast::Value::Number(..) | ast::Value::Boolean(_)),
        _ => false,
    }
}

/// As a value of the type; its modifiers are the column's to check, as a cast would cut what is too long.
fn cast(value: &Expr, to: &SqlType) -> Expr {
    let to = match to {
        SqlType::Char(_) => SqlType::Text,
        other => without_modifiers(other),
    };
    part::cast(value.clone(), &to.to_string()).unwrap_or_else(|_| value.clone())
}
