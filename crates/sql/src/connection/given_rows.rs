//! Rows that were found before as parts of a statement.

use super::held_rows::HeldRows;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::text_format::{self, TextStyle};
use fabius_sql_syntax::part;
use fabius_sql_syntax::written::quoted;
use fabius_value::{Result, Value};
use sqlparser::ast;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Rows that parts of the statement have found, by their numbers.
#[derive(Clone, Default)]
pub(super) struct GivenRows(BTreeMap<u64, Arc<HeldRows>>);

impl GivenRows {
    pub(super) fn insert(&mut self, number: u64, rows: HeldRows) {
        self.0.insert(number, Arc::new(rows));
    }

    /// Some columns of the rows of a number.
    pub(super) fn get(&self, number: u64, columns: &[usize]) -> Option<Vec<Vec<Value>>> {
        let chosen =
            |row: &Vec<Value>| columns.iter().map(|at| row.get(*at).cloned().unwrap_or_default()).collect();
        Some(self.0.get(&number)?.rows.iter().map(chosen).collect())
    }
}

/// A number that no other rows have.
pub(super) fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed)
}

/// A value as a literal of its column's type.
pub(super) fn literal(value: &Value, column: &OutputColumn) -> String {
    let text = match text_format::text(value, &column.sql_type, &TextStyle::default()) {
        Some(text) => format!("'{}'", text.replace('\'', "''")),
        None => "NULL".to_string(),
    };
    format!("CAST({text} AS {})", column.sql_type.written())
}

/// Rows as a query; all values are literals.
pub(super) fn query_of(columns: &[OutputColumn], rows: &[Vec<Value>]) -> Result<ast::Query> {
    let row = |row: &[Value]| {
        let values = row.iter().zip(columns).map(|(value, column)| literal(value, column));
        values.collect::<Vec<_>>().join(", ")
    };
    let nulls = vec![Value::Null; columns.len()];
    let all: Vec<String> = match rows {
        [] => vec![row(&nulls)],
        rows => rows.iter().map(|values| row(values)).collect(),
    };
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let condition = if rows.is_empty() { " WHERE false" } else { "" };
    let text =
        format!("SELECT * FROM (VALUES ({})) AS part ({}){condition}", all.join("), ("), names.join(", "));
    part::query(&text)
}
