//! Parts of statements that are made of others, without a text in between.

use crate::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

/// `CAST (value AS type)`, of a type by its name.
///
/// # Errors
/// `42601` if the name is that of no type.
pub fn cast(value: ast::Expr, type_name: &str) -> Result<ast::Expr> {
    let mut cast = Tokens::of(&format!("CAST(NULL AS {type_name})"))?.read(|parser| parser.parse_expr())?;
    if let ast::Expr::Cast { expr, .. } = &mut cast {
        **expr = value;
    }
    Ok(cast)
}

/// A query by its text.
///
/// # Errors
/// `42601` if the text is none.
pub fn query(text: &str) -> Result<ast::Query> {
    match Tokens::of(text)?.sql()? {
        ast::Statement::Query(query) => Ok(*query),
        _ => Err(Error::new(SqlState::SYNTAX_ERROR, format!("this is no query: {text}"))),
    }
}

/// `"relation"."column"`
pub fn column(relation: &str, name: &str) -> ast::Expr {
    ast::Expr::CompoundIdentifier(vec![quoted(relation), quoted(name)])
}

/// `value AS "name"`
pub fn named(expr: ast::Expr, name: &str) -> ast::SelectItem {
    ast::SelectItem::ExprWithAlias { expr, alias: quoted(name) }
}

/// `WITH with SELECT items FROM tables WHERE condition`
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn select(
    with: Option<&ast::With>,
    items: Vec<ast::SelectItem>,
    tables: Vec<ast::TableWithJoins>,
    condition: Option<&ast::Expr>,
) -> Result<ast::Query> {
    let mut query = query("SELECT 1")?;
    if let ast::SetExpr::Select(select) = query.body.as_mut() {
        (select.projection, select.from, select.selection) = (items, tables, condition.cloned());
    }
    query.with = with.cloned();
    Ok(query)
}

/// A part of a name of several.
pub fn name_part(name: &str) -> ast::ObjectNamePart {
    ast::ObjectNamePart::Identifier(quoted(name))
}

/// A name as it is: with quotes.
fn quoted(name: &str) -> ast::Ident {
    ast::Ident::with_quote('"', name)
}
