//! The errors of constraints that engines check, so that all engines say the same.

use crossbeam_epoch::Guard;
use fabius_storage::{Record, Table, scan::Range};
use fabius_value::{ColumnId, Datum, Error, IndexId, Key, Result, SqlState, TableSchema, key, limit};

/// The primary key as a constraint, for [`duplicate`].
pub const PRIMARY_KEY: &str = "primary key";

/// Aborts if an entry with these values is in a unique index; `is_taken` says of an entry and its record whether it
/// counts: the entry is current, for whoever asks, and of another row than theirs. Nulls are never equal.
///
/// # Errors
/// [`duplicate`].
pub fn check_unique<'a>(
    table: &'a Table,
    index: IndexId,
    values: &[Datum<'_>],
    guard: &'a Guard,
    mut is_taken: impl FnMut(&'a Record, &Key) -> bool,
) -> Result<()> {
    if values.iter().any(|value| value.is_null()) {
        return Ok(());
    }
    let range = Range { index: Some(index), equal: values, lower: None, upper: None, descending: false };
    let mut scan = table.scan(&range, guard)?;
    while let Some((record, entry)) = scan.next_entry() {
        if is_taken(record, &entry) {
            let name = &table.schema().indexes[usize::from(index.0)].name;
            return Err(duplicate(table.schema(), table.index_columns(index), values, name));
        }
    }
    Ok(())
}

/// The key of a row's entry in an index: the encoded columns, then the primary key.
///
/// # Errors
/// `54000` if it is too long.
pub fn entry_of(table: &Table, index: IndexId, mut columns: Key, record: &Record) -> Result<Key> {
    columns.extend(record.key());
    match columns.bytes().len() > limit::KEY_BYTES {
        true => Err(key::entry_too_long(table.schema(), index)),
        false => Ok(columns),
    }
}

/// The error for a key that is taken: its columns, their values, and the index's name or [`PRIMARY_KEY`].
/// The error's place has the table's name, and the index's or `TABLE_pkey`.
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
