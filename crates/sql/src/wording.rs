//! What a program aborts with, as PostgreSQL words it: tables and constraints by the names that SQL has for them.

use crate::catalog::{Catalog, Table};
use fabius_value::{Error, SqlState};

/// An error of a program that SQL was made into, in PostgreSQL's words.
pub fn in_words(error: Error, catalog: &Catalog) -> Error {
    // `duplicate key in <table of the storage>`; the detail begins with the index.
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
    let key = table.unique.iter().find(|key| detail.contains(&key.name)).or(table.primary_key.as_ref());
    let Some(key) = key else { return error.clone() };
    let message = format!("duplicate key value violates unique constraint \"{}\"", key.name);
    let worded = Error::new(SqlState::UNIQUE_VIOLATION, message)
        .with_table(&table.name.schema, &table.name.name)
        .with_constraint(&key.name);
    match detail.rsplit_once('(').and_then(|(_, values)| values.split_once(')')) {
        Some((values, _)) => {
            worded.with_detail(format!("Key ({})=({values}) already exists.", key.columns.join(", ")))
        }
        None if detail.is_empty() => worded,
        None => worded.with_detail(detail),
    }
}
