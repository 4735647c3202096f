//! The tables of the storage that hold rows; copying between them.

use super::not_supported;
use crate::connection::{Connection, SqlDatabase};
use fabius_sql_meaning::catalog::{ROW_NUMBER, Table};
use fabius_value::{DataType, Error, Result, SqlState, Value, limit};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Where columns of the next form of a table get their values, if not from the column of the same name.
#[derive(Default)]
pub(crate) struct Filling {
    /// New column to old column.
    pub renamed: BTreeMap<String, String>,
    /// Values of columns that are new.
    pub values: BTreeMap<String, Value>,
    /// Columns that are new and numbered: the first number and the step.
    pub numbered: BTreeMap<String, (i64, i64)>,
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn stored(table: &Table, name: &str) -> Result<(DataType, bool)> {
    if name == ROW_NUMBER {
        return Ok((DataType::BigInt, false));
    }
    let column = table.column(name).ok_or_else(|| table.no_column(name))?;
    let data_type = column
        .sql_type
        .storage()
        .ok_or_else(|| not_supported(format!("a column of type {}", column.sql_type)))?;
    Ok((data_type, column.nullable))
}

/// The columns of a table's storage: its own, and the hidden one if it has no primary key.
fn columns(table: &Table) -> Vec<&str> {
    let hidden = table.primary_key.is_none().then_some(ROW_NUMBER);
    table.columns.iter().map(|column| column.name.as_str()).chain(hidden).collect()
}

/// The definition of the table of the storage that holds a table's rows, as text.
pub(super) fn definition(table: &Table) -> Result<String> {
    let mut text = format!("table {} {{ ", quoted(&table.storage));
    let names = columns(table);
    if names.len() > limit::COLUMNS {
        return Err(Error::new(
            SqlState(*b"54011"),
            format!("tables can have at most {} columns", limit::COLUMNS),
        ));
    }
    for name in names {
        let (data_type, nullable) = stored(table, name)?;
        let _ = write!(text, "{}: {data_type}{}, ", quoted(name), if nullable { " null" } else { "" });
    }
    let list = |columns: &[String]| columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    match &table.primary_key {
        Some(key) => drop(write!(text, "primary key ({})", list(&key.columns))),
        None => drop(write!(text, "primary key ({})", quoted(ROW_NUMBER))),
    }
    for (keys, word) in [(&table.unique, "unique index"), (&table.indexes, "index")] {
        for key in keys {
            let _ = write!(text, ", {word} {} ({})", quoted(&key.name), list(&key.columns));
        }
    }
    text.push_str(" }");
    Ok(text)
}

impl SqlDatabase {
    /// Drops a table of the storage.
    ///
    /// # Errors
    /// If the log does not take it.
    pub(crate) fn drop_storage(&self, name: &str) -> Result<()> {
        self.database().define(&format!("drop table `{name}`"))
    }
}

impl Connection {
    /// Makes the storage of a table that is new.
    ///
    /// # Errors
    /// What the storage does not take.
    pub(crate) fn make_storage(&mut self, table: &mut Table) -> Result<()> {
        table.storage = self.database().new_storage(&table.name.name);
        let text = definition(table)?;
        self.database().database().define(&text)?;
        self.transaction.note_made(table.storage.clone());
        Ok(())
    }

    /// Makes the storage of a table's next form, and brings its rows over.
    ///
    /// # Errors
    /// Rows that do not fit the next form.
    pub(crate) async fn rebuild(
        &mut self,
        before: &Table,
        after: &mut Table,
        filling: &Filling,
    ) -> Result<()> {
        self.make_storage(after)?;
        self.transaction.note_left(before.storage.clone());
        let (text, arguments) = self.copying(before, after, filling).await?;
        let statement = self.database().database().statement_text(&text)?;
        let outcome = self.submit_aside(&statement, &arguments).await;
        outcome.map(drop).map_err(|error| reworded(error, after))
    }

    /// The program that copies rows, as text, and its arguments.
    async fn copying(
        &mut self,
        before: &Table,
        after: &Table,
        filling: &Filling,
    ) -> Result<(String, Vec<Value>)> {
        let mut parameters = Vec::new();
        let mut arguments = Vec::new();
        let mut counters = String::new();
        let mut steps = String::new();
        let mut values = Vec::new();
        let before_columns = columns(before);
        for name in columns(after) {
            let (data_type, nullable) = stored(after, name)?;
            let old = filling.renamed.get(name).map_or(name, String::as_str);
            let at = values.len();
            let value = if let Some(value) = filling.values.get(name) {
                if value.is_null() && !nullable {
                    // Only an empty table can get it.
                    parameters.push(format!("p{at}: {data_type} null"));
                } else {
                    parameters.push(format!("p{at}: {data_type}{}", if nullable { " null" } else { "" }));
                }
                arguments.push(value.clone());
                format!("p{at}")
            } else if let Some((first, step)) = filling.numbered.get(name) {
                parameters.push(format!("p{at}: bigint"));
                arguments.push(Value::BigInt(*first));
                let _ = write!(counters, " var n{at}: bigint = p{at} ");
                let _ = write!(steps, " n{at} = n{at} + ({step}) ");
                format!("n{at}::{data_type}")
            } else if before_columns.contains(&old) {
                let (was, _) = stored(before, old)?;
                match was == data_type {
                    true => format!("row.{}", quoted(old)),
                    false => format!("row.{}::{data_type}", quoted(old)),
                }
            } else if name == ROW_NUMBER {
                // A block that no row of a table in memory outgrows.
                let first = self.database().row_numbers(after.oid, 1 << 40).await?;
                parameters.push(format!("p{at}: bigint"));
                arguments.push(Value::BigInt(first));
                let _ = write!(counters, " var n{at}: bigint = p{at} ");
                let _ = write!(steps, " n{at} = n{at} + 1 ");
                format!("n{at}")
            } else {
                return Err(before.no_column(old));
            };
            values.push(format!("{}: {value}", quoted(name)));
        }
        let text = format!(
            "procedure copy({}) {{ {counters} for row in {} {{ insert {} {{ {} }} {steps} }} }}",
            parameters.join(", "),
            quoted(&before.storage),
            quoted(&after.storage),
            values.join(", ")
        );
        Ok((text, arguments))
    }
}

/// Why an index is not made of rows that have one of its keys twice.
pub(super) fn not_unique(error: &Error, name: &str) -> Error {
    let reworded =
        Error::new(SqlState::UNIQUE_VIOLATION, format!("could not create unique index \"{name}\""));
    let detail = error.detail().map(|detail| detail.replace(" already exists.", " is duplicated."));
    detail.into_iter().fold(reworded, Error::with_detail)
}

/// What stops a copy, as PostgreSQL words it.
fn reworded(error: Error, table: &Table) -> Error {
    match error.state() {
        SqlState::UNIQUE_VIOLATION => {
            // The constraint is the storage's: an index has the key's name, the primary key one of its own.
            let violated = error.place().and_then(|place| place.constraint.clone()).unwrap_or_default();
            let key = table.unique.iter().find(|key| key.name == violated).or(table.primary_key.as_ref());
            let name = key.map(|key| key.name.clone()).unwrap_or_default();
            not_unique(&error, &name)
        }
        SqlState::NOT_NULL_VIOLATION => {
            let behind = error.message().split_once("in column \"").map_or("", |(_, behind)| behind);
            let name = behind.split_once("\" of relation").map_or(behind, |(name, _)| name).to_string();
            Error::new(
                SqlState::NOT_NULL_VIOLATION,
                format!("column \"{name}\" of relation \"{}\" contains null values", table.name.name),
            )
        }
        _ => error,
    }
}
