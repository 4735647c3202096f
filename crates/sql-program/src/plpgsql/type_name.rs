//! Names of types in headers and declarations: SQL's own, `table.column%TYPE`, rows of tables, `record`.

use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Table};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::cursor::Cursor;
use fabius_sql_syntax::plpgsql::piece;
use fabius_value::{Result, SqlState};
use sqlparser::ast;

/// What a name of a type stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    /// One value.
    Scalar(SqlType),
    /// A row of a table: names and types of its columns.
    Row(Vec<(String, SqlType)>),
    /// A row whose columns are not said.
    Record,
}

/// The type that is written at a place.
///
/// # Errors
/// `42704` if it does not exist, `42601` if it is none.
pub fn data_type(cursor: &Cursor<'_>, span: Span, catalog: &Catalog) -> Result<Named> {
    let text = cursor.text(span).trim();
    let lower = text.to_lowercase();
    if lower == "record" {
        return Ok(Named::Record);
    }
    if let Some((path, which)) = lower.split_once('%') {
        let parts: Vec<String> =
            path.split('.').map(|part| part.trim().trim_matches('"').to_string()).collect();
        let found = match which.trim() {
            "type" => column_type(catalog, &parts).map(Named::Scalar),
            "rowtype" => table(catalog, &parts).map(row),
            _ => None,
        };
        let message = format!("relation \"{path}\" does not exist");
        return found.ok_or_else(|| cursor.error(SqlState::UNDEFINED_TABLE, span, message));
    }
    if lower == "void" {
        return Ok(Named::Scalar(SqlType::Void));
    }
    let tree = piece::data_type(cursor.source, span)?;
    named(&tree, catalog).map_err(|error| error.at_line(cursor.source.line(span.start)))
}

/// What a type's name, as the SQL parser reads it, stands for: a type, or a table for its rows.
///
/// # Errors
/// `42704` if it does not exist.
pub fn named(tree: &ast::DataType, catalog: &Catalog) -> Result<Named> {
    if let ast::DataType::Custom(name, modifiers) = tree
        && modifiers.is_empty()
    {
        let parts: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(identifier).collect();
        if let Some(table) = table(catalog, &parts) {
            return Ok(row(table));
        }
    }
    catalog.type_of(tree).map(Named::Scalar)
}

/// An identifier as it compares.
pub fn identifier(identifier: &ast::Ident) -> String {
    match identifier.quote_style {
        Some(_) => identifier.value.clone(),
        None => identifier.value.to_lowercase(),
    }
}

/// The table of a name, with or without its schema.
pub fn table<'a>(catalog: &'a Catalog, parts: &[String]) -> Option<&'a Table> {
    let name = match parts {
        [name] => ObjectName { schema: "public".into(), name: name.clone() },
        [schema, name] => ObjectName { schema: schema.clone(), name: name.clone() },
        _ => return None,
    };
    catalog.tables.get(&name).map(AsRef::as_ref)
}

/// The type of `table.column`.
pub fn column_type(catalog: &Catalog, parts: &[String]) -> Option<SqlType> {
    let (column, table_name) = parts.split_last()?;
    let table = table(catalog, table_name)?;
    table.columns.iter().find(|known| known.name == *column).map(|known| known.sql_type.clone())
}

/// The row of a table.
pub fn row(table: &Table) -> Named {
    Named::Row(table.visible().map(|column| (column.name.clone(), column.sql_type.clone())).collect())
}
