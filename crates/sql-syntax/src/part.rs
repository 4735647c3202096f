//! Parts of statements that are made of others, without a text in between.

use crate::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use sqlparser::ast::helpers::attached_token::AttachedToken;

/// What names of relations of rows that were found before begin with: no table is named so.
const GIVEN: &str = " given ";

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

/// `left op right`
pub fn binary(left: ast::Expr, op: ast::BinaryOperator, right: ast::Expr) -> ast::Expr {
    ast::Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

/// The parameter of a place, counted from 0.
pub fn parameter(at: usize) -> ast::Expr {
    ast::Expr::Value(ast::Value::Placeholder(format!("${}", at + 1)).into())
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

/// The relation of rows that were found before, which have these columns' types. Whoever runs the query has them under
/// the number; the columns are named [`given_column`].
///
/// # Errors
/// `42601` if a name is that of no type.
pub fn given<'t>(number: u64, types: impl Iterator<Item = &'t str>) -> Result<ast::TableFactor> {
    let column = |(at, name): (usize, &str)| {
        let data_type = Tokens::of(name)?.read(|parser| parser.parse_data_type())?;
        Ok(ast::TableAliasColumnDef { name: quoted(&given_column(at)), data_type: Some(data_type) })
    };
    let columns = types.enumerate().map(column).collect::<Result<_>>()?;
    let mut relation = table(&format!("{GIVEN}{number}"));
    if let ast::TableFactor::Table { alias, .. } = &mut relation {
        *alias = Some(ast::TableAlias { columns, ..called(GIVEN) });
    }
    Ok(relation)
}

/// The number of a relation that [`given`] has made.
#[must_use]
pub fn given_number(name: &str) -> Option<u64> {
    name.strip_prefix(GIVEN)?.parse().ok()
}

/// What a column of rows that were found before is called, by its place.
#[must_use]
pub fn given_column(at: usize) -> String {
    format!("column {}", at + 1)
}

/// A table by its name alone.
#[must_use]
pub fn table(name: &str) -> ast::TableFactor {
    ast::TableFactor::Table {
        name: ast::ObjectName(vec![name_part(name)]),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

/// `SELECT * FROM "function"(arguments)`
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn rows_of(function: &str, arguments: Vec<ast::Expr>) -> Result<ast::Query> {
    let mut relation = table(function);
    if let ast::TableFactor::Table { args, .. } = &mut relation {
        let unnamed = |argument| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument));
        let arguments = arguments.into_iter().map(unnamed).collect();
        *args = Some(ast::TableFunctionArgs { args: arguments, settings: None });
    }
    select(None, vec![all_columns()], vec![alone(relation)], None)
}

/// `AS "name"`
#[must_use]
pub fn called(name: &str) -> ast::TableAlias {
    ast::TableAlias { explicit: true, name: quoted(name), columns: Vec::new(), at: None }
}

/// `WITH "name" AS (query)`, as one of the common table expressions.
#[must_use]
pub fn common(name: &str, query: ast::Query) -> ast::Cte {
    ast::Cte {
        alias: called(name),
        query: Box::new(query),
        from: None,
        materialized: None,
        closing_paren_token: AttachedToken::empty(),
    }
}

/// `WITH` of common table expressions; `None` of none.
#[must_use]
pub fn with(recursive: bool, cte_tables: Vec<ast::Cte>) -> Option<ast::With> {
    let with_token = AttachedToken::empty();
    (!cte_tables.is_empty()).then_some(ast::With { with_token, recursive, cte_tables })
}

/// A relation of `FROM` that nothing is joined to.
#[must_use]
pub fn alone(relation: ast::TableFactor) -> ast::TableWithJoins {
    ast::TableWithJoins { relation, joins: Vec::new() }
}

/// `*`
#[must_use]
pub fn all_columns() -> ast::SelectItem {
    ast::SelectItem::Wildcard(ast::WildcardAdditionalOptions::default())
}

/// A part of a name of several.
pub fn name_part(name: &str) -> ast::ObjectNamePart {
    ast::ObjectNamePart::Identifier(quoted(name))
}

/// A name as it is: with quotes.
#[must_use]
pub fn quoted(name: &str) -> ast::Ident {
    ast::Ident::with_quote('"', name)
}
