//! The errors of constraints that engines check, so that all engines say the same.

use fabius_value::{ColumnId, Datum, Error, SqlState, TableSchema};

/// The error for a key that is taken: its columns, their values, and the constraint's name.
pub fn duplicate(table: &TableSchema, columns: &[ColumnId], values: &[Datum<'_>], constraint: &str) -> Error {
    let names: Vec<&str> =
        columns.iter().map(|column| table.columns[usize::from(column.0)].name.as_str()).collect();
    let shown: Vec<String> = columns
        .iter()
        .zip(values)
        .map(|(column, value)| value.to_value(table.data_type(*column)).to_string())
        .collect();
    Error::new(SqlState::UNIQUE_VIOLATION, format!("duplicate key in {}", table.name)).with_detail(format!(
        "({}) = ({}) is there already ({constraint})",
        names.join(", "),
        shown.join(", ")
    ))
}
