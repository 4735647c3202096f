//! `CREATE INDEX`.

use super::{not_supported, storage::Filling};
use crate::catalog::{Key, folded, parts};
use crate::connection::Connection;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::ops::ControlFlow;

/// The columns of an index that is not unique; of an expression, those that it is made of: that answers the same.
fn columns_of(keys: &[ast::IndexColumn]) -> Result<Vec<String>> {
    let mut columns: Vec<String> = Vec::new();
    let mut add = |name: &ast::Ident| {
        let name = folded(name);
        if !columns.contains(&name) {
            columns.push(name);
        }
    };
    for key in keys {
        let _ = ast::visit_expressions(&key.column.expr, |part| {
            match part {
                ast::Expr::Identifier(name) => add(name),
                ast::Expr::CompoundIdentifier(names) => names.last().into_iter().for_each(&mut add),
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        });
    }
    if columns.is_empty() {
        return Err(not_supported("an index on an expression without columns"));
    }
    Ok(columns)
}

impl Connection {
    pub(super) async fn create_index(&mut self, create: &ast::CreateIndex) -> Result<String> {
        if create.predicate.is_some() && create.unique {
            // It would have to leave rows out; any other partial index answers the same with all rows in it.
            return Err(not_supported("a partial index that is unique"));
        }
        if let Some(kind) = &create.using {
            // How an index is kept cannot change an answer.
            let name = kind.to_string().to_lowercase();
            if !matches!(name.as_str(), "btree" | "hash" | "brin" | "gin" | "gist" | "spgist") {
                return Err(not_supported(format!("access method \"{name}\"")));
            }
        }
        if create.nulls_distinct == Some(false) {
            return Err(not_supported("UNIQUE NULLS NOT DISTINCT"));
        }
        let before = self.table_to_change(&create.table_name).await?;
        let columns = match create.unique {
            true => super::create_table::key_columns(&create.columns)?,
            false => columns_of(&create.columns)?,
        };
        for column in columns.iter().chain(create.include.iter().map(folded).collect::<Vec<_>>().iter()) {
            if before.column(column).is_none() {
                return Err(Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{column}\" does not exist"),
                ));
            }
        }
        let mut after = before.clone();
        let given = match &create.name {
            Some(name) => Some(parts(name)?.1),
            None => None,
        };
        if let Some(given) = &given {
            let name = crate::catalog::ObjectName { schema: before.name.schema.clone(), name: given.clone() };
            if !self.claim(&name, create.if_not_exists).await? {
                return Ok("CREATE INDEX".into());
            }
        }
        if create.unique {
            self.add_unique(&mut after, given, columns, false)?;
        } else {
            let base = format!("{}_{}_idx", before.name.name, columns.join("_"));
            let name = self.key_name(&after, given, &base)?;
            let oid = self.database().new_oid();
            after.indexes.push(Key { oid, name, columns, is_constraint: false });
        }
        self.rebuild(&before, &mut after, &Filling::default()).await?;
        self.put_table(after);
        Ok("CREATE INDEX".into())
    }
}
