//! Rows for queries: each scan of a table is a program that a transaction runs.

use super::run::{run_locking, unless_waited};
use super::sql_database::SqlDatabase;
use super::transaction::Running;
use crate::catalog::{ObjectName, ROW_NUMBER};
use crate::query::{RowSource, TableScan};
use async_trait::async_trait;
use fabius_value::{DataType, Error, Result, SqlState, Value};
use std::fmt::Write;
use std::sync::Arc;

/// What a transaction sees.
pub(super) struct TransactionRows {
    pub database: Arc<SqlDatabase>,
    pub running: Running,
}

/// The program of a scan, as text, and its arguments.
fn program(scan: &TableScan) -> Result<(String, Vec<Value>)> {
    let table = &scan.table;
    let unstored = || Error::new(SqlState::NOT_SUPPORTED, "a column of this type is not stored");
    let data_type = |name: &str| -> Result<DataType> {
        match table.column(name) {
            Some(column) => column.sql_type.storage().ok_or_else(unstored),
            None => Ok(DataType::BigInt),
        }
    };
    let key = scan.index.as_ref().and_then(|name| table.key(name));
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    let mut range = Vec::new();
    if let Some(key) = key {
        for (at, value) in scan.equal.iter().enumerate() {
            let Some(column) = key.columns.get(at) else { break };
            parameters.push(format!("e{at}: {}", data_type(column)?));
            arguments.push(value.clone());
            range.push(format!("e{at}"));
        }
        if let Some(column) = key.columns.get(scan.equal.len())
            && (scan.lower.is_some() || scan.upper.is_some())
        {
            let column = data_type(column)?;
            for (name, bound) in [("low", &scan.lower), ("high", &scan.upper)] {
                if let Some(bound) = bound {
                    parameters.push(format!("{name}: {column}"));
                    arguments.push(bound.value.clone());
                }
            }
            let lower = scan.lower.as_ref().map_or("", |_| "low");
            let upper = scan.upper.as_ref().map_or("", |_| "high");
            let below = if scan.lower.as_ref().is_some_and(|bound| !bound.is_inclusive) { "<" } else { "" };
            let above = if scan.upper.as_ref().is_some_and(|bound| !bound.is_inclusive) { "<" } else { "" };
            range.push(format!("{lower} {below}..{above} {upper}"));
        }
    }
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (at, place) in scan.columns.iter().enumerate() {
        let column = table.columns.get(*place);
        let name = column.map_or(ROW_NUMBER, |column| &column.name);
        let null = if column.is_some_and(|column| column.nullable) { " null" } else { "" };
        fields.push(format!("c{at}: {}{null}", data_type(name)?));
        values.push(format!("row.`{}`", name.replace('`', "``")));
    }
    if fields.is_empty() {
        fields.push("c0: boolean".into());
        values.push("true".into());
    }
    let fields = fields.join(", ");
    let mut loops = format!("for row in `{}`", table.storage);
    let is_primary = key.is_some() && key == table.primary_key.as_ref();
    if let Some(key) = key.filter(|_| !is_primary) {
        let _ = write!(loops, " by `{}`", key.name.replace('`', "``"));
    }
    if !range.is_empty() {
        let _ = write!(loops, " [{}]", range.join(", "));
    }
    if let Some(limit) = scan.limit {
        parameters.push("most: bigint".into());
        arguments.push(Value::BigInt(i64::try_from(limit).unwrap_or(i64::MAX)));
        loops.push_str(" limit most");
    }
    let text = format!(
        "procedure scan({}) -> list of ({fields}) {{ var rows: list of ({fields}) = [] {loops} {{ append rows ({}) }} return rows }}",
        parameters.join(", "),
        values.join(", ")
    );
    Ok((text, arguments))
}

#[async_trait]
impl RowSource for TransactionRows {
    async fn scan(&self, scan: &TableScan) -> Result<Vec<Vec<Value>>> {
        let (text, arguments) = program(scan)?;
        let statement = self.database.program(text)?;
        let mut running = self.running.lock().await;
        let transaction = running
            .as_mut()
            .ok_or_else(|| Error::new(SqlState(*b"25P02"), "the transaction that reads has ended"))?;
        let results = run_locking(transaction, &statement, &arguments, scan.row_lock).await;
        let results = results.map_err(|error| unless_waited(error, scan.row_lock, &scan.table.name.name))?;
        match results.into_iter().next() {
            Some(Value::List(mut rows)) => {
                if scan.columns.is_empty() {
                    rows.iter_mut().for_each(Vec::clear);
                }
                Ok(rows)
            }
            _ => Ok(Vec::new()),
        }
    }

    async fn sequence(&self, name: &ObjectName) -> Result<(i64, bool)> {
        let catalog = self.database.catalog(std::slice::from_ref(&name.schema));
        match catalog.sequences.get(name) {
            Some(sequence) => Ok(self.database.sequences.last(sequence).await),
            None => Ok((1, false)),
        }
    }
}
