//! Generated columns: computed from the others of their row whenever it is written.

use super::binder::Binder;
use super::bound::Bound;
use super::condition::columns_used;
use super::scope::{Relation, Row};
use super::stop::{Bind, Place, wrong};
use fabius_sql_meaning::catalog::{Column, Table};
use fabius_value::{Error, Result};
use std::sync::Arc;

impl Binder<'_> {
    /// Computes the generated columns of a row anew that depend on what is `changed`, and says which they are.
    /// `values` are those of all columns, settled; what is computed takes its place among them, null or not.
    pub(super) fn generate(
        &mut self,
        table: &Arc<Table>,
        values: &mut [Bound],
        changed: &mut [bool],
    ) -> Bind<Vec<usize>> {
        let mut computed = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let Some(text) = &column.generated else { continue };
            let expression = self.parsed(text)?;
            let relation = Relation { row: Row::Values(values.to_vec()), ..Relation::table(table, None) };
            let depends = columns_used(&expression, &relation).iter().any(|used| changed[*used]);
            if !depends && !changed[at] {
                continue;
            }
            let inline = std::mem::replace(&mut self.inline, true);
            let value = self.with_only(vec![relation], |binder| binder.operand(&expression));
            self.inline = inline;
            let value = self.stored(value?, &column.name, &column.sql_type)?;
            values[at] = match value.is_null() {
                true => self.resolve(value, &column.sql_type)?,
                false => self.named(value, "g")?,
            };
            changed[at] = true;
            computed.push(at);
        }
        Ok(computed)
    }

    /// The generated columns that depend on others.
    pub(super) fn generated_from(&self, table: &Arc<Table>, columns: &[usize]) -> Bind<Vec<usize>> {
        let mut all = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let Some(text) = &column.generated else { continue };
            let relation = Relation::table(table, None);
            let used = columns_used(&self.parsed(text)?, &relation);
            if used.iter().any(|used| columns.contains(used)) {
                all.push(at);
            }
        }
        Ok(all)
    }

    /// Refuses a value that a statement gives for a column that only the database gives values to.
    pub(super) fn refuse_given<T>(&self, column: &Column, place: Place) -> Bind<T> {
        Err(self.error(given_always(column), place))
    }
}

/// Refuses values for columns that only the database gives values to.
///
/// # Errors
/// `428C9`
pub fn refuse_given<'c>(mut columns: impl Iterator<Item = &'c Column>) -> Result<()> {
    columns.find(|column| column.is_always_generated()).map_or(Ok(()), |column| Err(given_always(column)))
}

/// Refuses a value for a column that takes none.
///
/// # Errors
/// `428C9`
pub fn refuse_updated(column: &Column) -> Result<()> {
    if !column.is_always_generated() {
        return Ok(());
    }
    let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
    Err(wrong(b"428C9", message).with_detail(always_generated(column)))
}

fn given_always(column: &Column) -> Error {
    let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
    let error = wrong(b"428C9", message).with_detail(always_generated(column));
    match column.generated {
        Some(_) => error,
        None => error.with_hint("Use OVERRIDING SYSTEM VALUE to override."),
    }
}

/// Why a column takes no values.
pub(super) fn always_generated(column: &Column) -> String {
    match column.generated {
        Some(_) => format!("Column \"{}\" is a generated column.", column.name),
        None => format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name),
    }
}
