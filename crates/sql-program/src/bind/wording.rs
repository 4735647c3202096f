//! Errors of programs in the words of SQL: a program knows tables of the storage, the client tables of SQL.

use fabius_sql_meaning::catalog::{Catalog, Table};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, TextStyle};
use fabius_value::{DataType, Error, SqlState, Value};

/// `(a, b) = (1, 2)` as PostgreSQL writes it, and with what the user has declared the key as.
fn key_in_words(key: &str, name: &str, table: &Table) -> String {
    let Some((columns, values)) = key.split_once(" = ") else { return key.to_string() };
    let declared = table.unique.iter().find(|key| key.name == name);
    let columns = match declared.filter(|key| key.written.is_some()) {
        Some(key) => format!("({})", key.keys().collect::<Vec<_>>().join(", ")),
        None => columns.to_string(),
    };
    let single = table.key(name).filter(|key| key.columns.len() == 1);
    let of = single.and_then(|key| table.column(&key.columns[0])).map(|column| &column.sql_type);
    let stored = values.trim_matches(['(', ')']);
    // What is stored as a number or bytes is something else to users.
    let value = match of {
        Some(SqlType::Enumeration(_) | SqlType::Time) => Value::parse(stored, DataType::BigInt).ok(),
        Some(SqlType::Uuid | SqlType::Inet | SqlType::Cidr) => Value::parse(stored, DataType::Bytea).ok(),
        _ => None,
    };
    let shown = of.zip(value).and_then(|(of, value)| text_format::text(&value, of, &TextStyle::default()));
    shown.map_or_else(|| format!("{columns}={values}"), |shown| format!("{columns}=({shown})"))
}

/// The error with the names of SQL in it, and with the table, column and constraint that it is about.
pub fn in_words(error: Error, catalog: &Catalog) -> Error {
    if [SqlState::SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE].contains(&error.state()) {
        return about_rows(error, catalog);
    }
    let storage = error.place().and_then(|place| place.table.clone()).or_else(|| table_in(error.message()));
    let table = storage.as_deref().and_then(|storage| {
        catalog.tables.values().find(|table| table.storage == storage).map(|table| (storage, &**table))
    });
    let Some((storage, table)) = table else { return plain(error, catalog) };
    let state = error.state();
    let mut message = renamed(error.message(), storage, table);
    let mut constraint = error.place().and_then(|place| place.constraint.clone());
    let mut column = error.place().and_then(|place| place.column.clone());
    let mut detail = error.detail().map(|detail| renamed(detail, storage, table));
    if state == SqlState::UNIQUE_VIOLATION
        && message.starts_with("duplicate key in ")
        && let Some((key, name)) = error.detail().and_then(|detail| detail.split_once(" is there already ("))
    {
        let name = name.trim_end_matches(')');
        let name = match &table.primary_key {
            Some(key) if name == "primary key" => key.name.clone(),
            _ => name.to_string(),
        };
        message = format!("duplicate key value violates unique constraint \"{name}\"");
        detail = Some(format!("Key {} already exists.", key_in_words(key, &name, table)));
        constraint = Some(name);
    }
    if let Some(found) = &mut constraint
        && *found == format!("{storage}_pkey")
        && let Some(key) = &table.primary_key
    {
        found.clone_from(&key.name);
    }
    if state == SqlState::NOT_NULL_VIOLATION && !message.contains("not-null constraint") {
        column = message.strip_prefix("null value in column ").and_then(|rest| {
            let (column, _) = rest.split_once(" of ")?;
            Some(column.trim_matches('"').to_string())
        });
        if let Some(column) = &column {
            message = format!(
                "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
                table.name.name
            );
        }
    }
    let mut words = Error::new(state, message).with_table(&table.name.schema, &table.name.name);
    if let Some(constraint) = constraint {
        words = words.with_constraint(constraint);
    }
    if let Some(column) = column {
        words = words.with_column(column);
    }
    if let Some(detail) = detail {
        words = words.with_detail(detail);
    }
    if let Some(hint) = error.hint() {
        words = words.with_hint(hint);
    }
    match error.position() {
        Some(position) => words.at_position(position),
        None => words,
    }
}

/// An error that names rows of any tables: `stock #1 (item) = (5)`.
fn about_rows(error: Error, catalog: &Catalog) -> Error {
    let Some(detail) = error.detail() else { return error };
    let mut words = detail.to_string();
    for table in catalog.tables.values().filter(|table| detail.contains(&table.storage)) {
        words = words.replace(&format!("{} (", table.storage), &format!("{} (", table.name.name));
    }
    error.with_detail(words)
}

/// The table of the storage that a message names.
fn table_in(message: &str) -> Option<String> {
    let after = ["of relation ", "of table ", "duplicate key in "];
    let rest = after.iter().find_map(|words| message.split_once(words))?.1;
    let name = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(" violates").next()?,
    };
    Some(name.trim().to_string())
}

/// A text with the table's own names for those of the storage.
fn renamed(text: &str, storage: &str, table: &Table) -> String {
    let mut text = text.to_string();
    if let Some(key) = &table.primary_key {
        text = text.replace(&format!("\"{storage}_pkey\""), &format!("\"{}\"", key.name));
    }
    text.replace(&format!("\"{storage}\""), &format!("\"{}\"", table.name.name))
}

/// Errors that are about no table.
fn plain(error: Error, catalog: &Catalog) -> Error {
    match error.message() {
        "limit must not be negative" => Error::new(SqlState(*b"2201W"), "LIMIT must not be negative"),
        // Lines are those of the program, which nobody has written.
        message if error.state() == SqlState::NOT_NULL_VIOLATION && message.contains(" of relation \"") => {
            let mut quoted = message.split('"').skip(1).step_by(2);
            let (column, relation) = (quoted.next().unwrap_or_default(), quoted.next().unwrap_or_default());
            let mut named = catalog.tables.keys().filter(|name| name.name == relation);
            let schema = named.next().map(|name| name.schema.clone()).unwrap_or_default();
            let (column, relation) = (column.to_string(), relation.to_string());
            error.without_line().with_table(schema, relation).with_column(column)
        }
        _ => match constraint_in(error.message(), catalog) {
            Some((table, constraint)) => {
                let (name, constraint) = (&table.name, constraint.to_string());
                error.without_line().with_table(&name.schema, &name.name).with_constraint(constraint)
            }
            None => error.without_line(),
        },
    }
}

/// The table and its CHECK or REFERENCES that a message says is violated.
fn constraint_in<'m, 'c>(message: &'m str, catalog: &'c Catalog) -> Option<(&'c Table, &'m str)> {
    let kinds = [" violates check constraint \"", " violates foreign key constraint \""];
    let (before, after) = kinds.iter().find_map(|kind| message.split_once(kind))?;
    let constraint = after.split('"').next()?;
    let named = before.split('"').nth(1)?;
    let has = |table: &Table| {
        table.checks.iter().any(|check| check.name == constraint)
            || table.foreign_keys.iter().any(|key| key.name == constraint)
    };
    // Of a row that is still referred to, the message ends with the table that refers.
    let named = [after.split('"').nth(2).filter(|_| after.contains(" on table ")), Some(named)];
    named.into_iter().flatten().find_map(|name| {
        let mut tables = catalog.tables.values();
        tables.find(|table| table.name.name == name && has(table)).map(|table| (&**table, constraint))
    })
}
