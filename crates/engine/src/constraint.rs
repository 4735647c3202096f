//! The errors of constraints that engines check, so that all engines say the same.

use fabius_value::{ColumnId, Datum, Error, SqlState, TableSchema};

/// The primary key as a constraint, for [`duplicate`].
pub const PRIMARY_KEY: &str = "primary key";

/// The error for a key that is taken: its columns, their values, and the index's name or [`PRIMARY_KEY`].
/// Its place has the table's name, and the index's or `TABLE_pkey`.
pub fn duplicate(table: &TableSchema, columns: &[ColumnId], values: &[Datum<'_>], constraint: &str) -> Error {
    let names: Vec<&str> =
        columns.iter().map(|column| table.columns[usize::from(column.0)].name.as_str()).collect();
    let shown: Vec<String> = columns
        .iter()
        .zip(values)
        .map(|(column, value)| value.to_value(table.data_type(*column)).to_string())
        .collect();
    let constraint = match constraint {
        PRIMARY_KEY => format!("{}_pkey", table.name),
        index => index.to_string(),
    };
    let message = format!("duplicate key value violates unique constraint \"{constraint}\"");
    Error::new(SqlState::UNIQUE_VIOLATION, message)
        .with_detail(format!("Key ({})=({}) already exists.", names.join(", "), shown.join(", ")))
        .with_table("", table.name.clone())
        .with_constraint(constraint)
}
