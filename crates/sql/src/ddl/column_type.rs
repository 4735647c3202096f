//! `ALTER COLUMN ... TYPE`: what a column's values become.
//!
//! Where values are stored alike, or the storage converts them as SQL does, they are brought over as they are. Else
//! the table gets a column beside the old one for a while, which an `UPDATE` fills.

use super::not_supported;
use super::storage::Filling;
use crate::connection::Connection;
use fabius_sql_meaning::catalog::{Column, Table, folded};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{Context, converts, is_integer, is_text};
use fabius_sql_syntax::written::{quoted, quoted_object, written};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation};
use std::ops::ControlFlow;

/// Whether the storage converts values as SQL does.
fn is_of_storage(from: &SqlType, to: &SqlType) -> bool {
    let is_exact = |of: &SqlType| is_integer(of) || matches!(of, SqlType::Numeric(_));
    from.of_values() == *to
        || is_text(from) && is_text(to) && !matches!(to, SqlType::Name)
        || is_exact(from) && is_exact(to)
        || matches!((from, to), (SqlType::Date, SqlType::Timestamp) | (SqlType::Json, SqlType::Text))
}

/// Whether an expression is the column itself, perhaps cast to the type that it gets anyway.
fn is_column(expression: &ast::Expr, name: &str) -> bool {
    match expression {
        ast::Expr::Nested(inner) => is_column(inner, name),
        ast::Expr::Identifier(ident) => folded(ident) == name,
        _ => false,
    }
}

impl Connection {
    /// Computes the columns whose types change in a way that the storage does not know. Gives the table as it is until
    /// all operations are done, and notes where the new values are.
    pub(super) async fn convert_columns(
        &mut self,
        table: &Table,
        operations: &[AlterTableOperation],
        filling: &mut Filling,
    ) -> Result<Table> {
        let mut wider = table.clone();
        let mut values = Filling::default();
        let mut set = Vec::new();
        for operation in operations {
            let AlterTableOperation::AlterColumn {
                column_name,
                op: AlterColumnOperation::SetDataType { data_type, using, .. },
            } = operation
            else {
                continue;
            };
            let name = folded(column_name);
            let from = &table.columns[table.place_of(&name)?].sql_type;
            let to = self.catalog().type_of(data_type)?;
            if to.storage().is_none() {
                return Err(not_supported(format!("a column of type {to}")));
            }
            let is_plain = using.as_ref().is_none_or(|using| is_column(using, &name));
            if is_plain && !converts(from, &to, Context::Assignment) {
                let message = format!("column \"{name}\" cannot be cast automatically to type {to}");
                let hint = format!("You might need to specify \"USING {}::{to}\".", quoted(&name));
                return Err(Error::new(SqlState::DATATYPE_MISMATCH, message).with_hint(hint));
            }
            if is_plain && is_of_storage(from, &to) {
                continue;
            }
            let value = using.as_ref().map_or_else(|| Ok(quoted(&name)), transformed)?;
            let beside = format!("fabius new {name}");
            set.push(format!("{} = {value}", quoted(&beside)));
            values.values.insert(beside.clone(), Value::Null);
            wider.columns.push(Column::plain(beside.clone(), to));
            filling.renamed.insert(name, beside);
        }
        if set.is_empty() {
            return Ok(wider);
        }
        self.rebuild(table, &mut wider, &values).await?;
        self.put_table(wider.clone());
        let text = format!("UPDATE {} SET {}", quoted_object(&wider.name), set.join(", "));
        Box::pin(self.write_aside(&text)).await?;
        Ok(wider)
    }
}

/// What `USING` says, as text.
///
/// # Errors
/// `0A000` for what asks other tables, as in PostgreSQL.
fn transformed(using: &ast::Expr) -> Result<String> {
    let asks = ast::visit_expressions(using, |part| match part {
        ast::Expr::Subquery(_) | ast::Expr::InSubquery { .. } | ast::Expr::Exists { .. } => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    match asks {
        ControlFlow::Break(()) => {
            Err(Error::new(SqlState::NOT_SUPPORTED, "cannot use subquery in transform expression"))
        }
        ControlFlow::Continue(()) => Ok(written(using)),
    }
}
