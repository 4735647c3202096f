//! What a program aborts with, as PostgreSQL words it: tables and constraints by the names that SQL has for them.

use crate::catalog::{Catalog, Table};
use fabius_value::{Error, SqlState};

/// An error of a program that SQL was made into, in PostgreSQL's words.
pub fn in_words(error: Error, catalog: &Catalog) -> Error {
    // `duplicate key in <table>`, detail `(a, b) = (1, 2) is there already (index)`.
    if error.state() == SqlState::UNIQUE_VIOLATION
        && let Some(storage) = error.message().strip_prefix("duplicate key in ")
        && let Some(table) = catalog.table_of_storage(storage)
    {
        return duplicate(&error, table);
    }
    error
}

fn duplicate(error: &Error, table: &Table) -> Error {
    let detail = error.detail().unwrap_or_default();
    let (columns, rest) = detail.split_once(" = (").unwrap_or_default();
    let (values, constraint) = rest.split_once(") is there already (").unwrap_or_default();
    let unique = table.unique.iter().find(|key| constraint.trim_end_matches(')') == key.name);
    let Some(key) = unique.or(table.primary_key.as_ref()) else { return error.clone() };
    Error::new(
        SqlState::UNIQUE_VIOLATION,
        format!("duplicate key value violates unique constraint \"{}\"", key.name),
    )
    .with_detail(format!("Key {columns}=({values}) already exists."))
    .with_table(&table.name.schema, &table.name.name)
    .with_constraint(&key.name)
}
