//! Rows that were found before as parts of a statement.

use super::held_rows::HeldRows;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_syntax::part;
use fabius_value::{Result, Value};
use sqlparser::ast;
use std::collections::BTreeMap;
use std::ops::Range;
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

/// The rows of a number, which have these columns, as a query of some of them.
pub(super) fn query_of(number: u64, columns: &[OutputColumn], shown: Range<usize>) -> Result<ast::Query> {
    let types: Vec<String> = columns.iter().map(|column| column.sql_type.written()).collect();
    let relation = part::given(number, types.iter().map(String::as_str))?;
    let own = columns.iter().enumerate().skip(shown.start).take(shown.len());
    let items = own.map(|(at, column)| {
        let value = ast::Expr::Identifier(part::quoted(&part::given_column(at)));
        part::named(value, &column.name)
    });
    part::select(None, items.collect(), vec![part::alone(relation)], None)
}
