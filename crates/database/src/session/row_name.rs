//! A row's name in messages.

use super::condition_lock::RowKey;
use fabius_engine::Definitions;
use fabius_value::key;

/// `stock (item) = (1)`.
pub(crate) fn row_name(definitions: &Definitions, row: &RowKey) -> String {
    let schema = definitions.table(row.0).schema();
    let columns = schema.primary_key.iter();
    let names: Vec<&str> =
        columns.clone().map(|column| schema.columns[usize::from(column.0)].name.as_str()).collect();
    let types: Vec<_> = columns.map(|column| schema.data_type(*column)).collect();
    let values = key::decode(&row.1, &types).map_or_else(
        || "?".to_string(),
        |values| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    );
    format!("{} ({}) = ({values})", schema.name, names.join(", "))
}
