//! Table definitions to schemas.

use super::RENAME;
use crate::catalog::Catalog;
use crate::syntax::tree::Name;
use crate::syntax::{Diagnostic, Diagnostics, TableDefinition};
use fabius_value::{Column, ColumnId, IndexSchema, SqlState, TableSchema, limit};

/// Verifies a table.
///
/// # Errors
/// A name that is taken or given twice, a key or index over columns that do not exist, a table
/// without primary key, whatever [`TableSchema::validate`] finds.
pub fn table(definition: &TableDefinition, catalog: &Catalog) -> Result<TableSchema, Diagnostics> {
    let mut errors = Vec::new();
    let schema = schema(definition, catalog, &mut errors);
    if errors.is_empty()
        && let Err(error) = schema.validate()
    {
        errors.push(Diagnostic::new(error.state(), definition.name.span, error.message()));
    }
    if errors.is_empty() {
        Ok(schema)
    } else {
        Err(Diagnostics { source: definition.source.clone(), list: errors })
    }
}

fn schema(definition: &TableDefinition, catalog: &Catalog, errors: &mut Vec<Diagnostic>) -> TableSchema {
    let table = &definition.name.text;
    let duplicate = |name: &Name, message| Diagnostic::new(SqlState::DUPLICATE_OBJECT, name.span, message);
    if catalog.find_table(table).is_some() {
        errors.push(
            duplicate(&definition.name, format!("table {table} exists already"))
                .with_hint(format!("give it another name, or drop the one there is: drop table {table}")),
        );
    }
    let mut schema = TableSchema {
        name: table.clone(),
        columns: Vec::new(),
        primary_key: Vec::new(),
        hash: definition.hash,
        indexes: Vec::new(),
    };
    for column in &definition.columns {
        if schema.columns.len() == limit::COLUMNS {
            let message = format!("a table has at most {} columns", limit::COLUMNS);
            let error = Diagnostic::new(SqlState::PROGRAM_LIMIT, column.name.span, message);
            errors.push(error.with_hint("keep the others in a second table with the same key"));
            break;
        }
        if schema.column(&column.name.text).is_some() {
            let message = format!("table {table} has two columns named {}", column.name.text);
            errors.push(duplicate(&column.name, message).with_hint(RENAME));
        }
        schema.columns.push(Column {
            name: column.name.text.clone(),
            data_type: column.scalar.data_type,
            nullable: column.scalar.nullable,
        });
    }
    if definition.primary_key.is_empty() {
        let message = format!("table {table} has no primary key");
        let error = Diagnostic::new(SqlState::INVALID_DEFINITION, definition.name.span, message);
        errors.push(error.with_hint("add a line: primary key (column)"));
    }
    schema.primary_key = columns(&definition.primary_key, &schema, errors);
    for name in &definition.primary_key {
        if schema.column(&name.text).is_some_and(|column| schema.columns[usize::from(column.0)].nullable) {
            let message = format!("primary key column {table}.{} can be null", name.text);
            let error = Diagnostic::new(SqlState::INVALID_DEFINITION, name.span, message);
            errors.push(error.with_hint("leave null out of the column's type"));
        }
    }
    for index in &definition.indexes {
        let columns = columns(&index.columns, &schema, errors);
        if schema.index(&index.name.text).is_some() {
            let message = format!("table {table} has two indexes named {}", index.name.text);
            errors.push(duplicate(&index.name, message).with_hint(RENAME));
        }
        schema.indexes.push(IndexSchema { name: index.name.text.clone(), columns, unique: index.unique });
    }
    schema
}

fn columns(names: &[Name], schema: &TableSchema, errors: &mut Vec<Diagnostic>) -> Vec<ColumnId> {
    let mut columns = Vec::new();
    for name in names {
        match schema.column(&name.text) {
            Some(column) if columns.contains(&column) => {
                let message = format!("column {} is named twice", name.text);
                let error = Diagnostic::new(SqlState::INVALID_DEFINITION, name.span, message);
                errors.push(error.with_hint("leave one of the two out"));
            }
            Some(column) => columns.push(column),
            None => errors.push(unknown_column(name, schema)),
        }
    }
    columns
}

/// A column that the table does not have.
pub(super) fn unknown_column(name: &Name, schema: &TableSchema) -> Diagnostic {
    let message = format!("table {} has no column {}", schema.name, name.text);
    let names = || schema.columns.iter().map(|column| column.name.as_str());
    Diagnostic::new(SqlState::UNDEFINED_COLUMN, name.span, message).did_you_mean(&name.text, names(), || {
        Some(format!("its columns are {}", names().collect::<Vec<_>>().join(", ")))
    })
}
