//! `CREATE INDEX`.

use super::{not_supported, storage::Filling};
use crate::catalog::{Key, folded, parts};
use crate::connection::Connection;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

impl Connection {
    pub(super) async fn create_index(&mut self, create: &ast::CreateIndex) -> Result<String> {
        if create.predicate.is_some() {
            return Err(not_supported("a partial index"));
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
        let columns = super::create_table::key_columns(&create.columns)?;
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
