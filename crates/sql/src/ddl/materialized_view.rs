//! `CREATE MATERIALIZED VIEW`, `REFRESH MATERIALIZED VIEW`: a table whose rows a query gave.

use crate::connection::Connection;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Column, Materialized, Table, View};
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_syntax::command::MaterializedView;
use fabius_sql_syntax::identifier::quote_identifier;
use fabius_sql_syntax::written::quoted_object;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::BTreeMap;

impl Connection {
    pub(super) async fn create_materialized_view(&mut self, create: &MaterializedView) -> Result<String> {
        let name = self.name_for_new(&create.name, false)?;
        let too_many = "too many column names were specified";
        let (query, columns) = self.viewed(&create.query, &create.columns, too_many).await?;
        let tag = "CREATE MATERIALIZED VIEW";
        if !self.claim(&name, create.if_not_exists).await? {
            return Ok(tag.into());
        }
        let table = Table {
            oid: self.database().new_oid(),
            name,
            storage: String::new(),
            columns: columns.into_iter().map(|(name, sql_type)| Column::plain(name, sql_type)).collect(),
            primary_key: None,
            unique: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            constraint_comments: BTreeMap::new(),
            materialized: Some(Materialized { query, is_populated: false }),
        };
        let count = self.fill(table, create.with_data).await?;
        Ok(if create.with_data { format!("SELECT {count}") } else { tag.into() })
    }

    /// `REFRESH MATERIALIZED VIEW`
    pub(super) async fn refresh(
        &mut self,
        name: &ast::ObjectName,
        concurrently: bool,
        with_data: bool,
    ) -> Result<String> {
        let table = self.table_to_change(name).await?;
        let short = &table.name.name;
        let Some(view) = &table.materialized else {
            let message = format!("\"{short}\" is not a materialized view");
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        };
        if concurrently && !view.is_populated {
            let message = "CONCURRENTLY cannot be used when the materialized view is not populated";
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        }
        if concurrently && !with_data {
            let message = "CONCURRENTLY and WITH NO DATA options cannot be used together";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        if concurrently && !table.unique.iter().any(|key| key.written.is_none()) {
            let shown = [&table.name.schema, short].map(|name| quote_identifier(name)).join(".");
            let message = format!("cannot refresh materialized view \"{shown}\" concurrently");
            return Err(Error::new(SqlState(*b"55000"), message).with_hint(
                "Create a unique index with no WHERE clause on one or more columns of the materialized view.",
            ));
        }
        self.transaction.note_left(table.storage.clone());
        self.fill(table, with_data).await?;
        Ok("REFRESH MATERIALIZED VIEW".into())
    }

    /// Gives a materialized view the rows that its query gives now, or none: how many there are.
    async fn fill(&mut self, mut table: Table, with_data: bool) -> Result<usize> {
        let Some(view) = &mut table.materialized else { return Ok(0) };
        view.is_populated = with_data;
        let mut rows = Vec::new();
        if with_data {
            // While its rows are found it is a view: they are those that its owner may read.
            let (oid, name, query) = (table.oid, table.name.clone(), view.query.clone());
            let columns = table.visible().map(|column| (column.name.clone(), column.sql_type.clone()));
            let text = format!("SELECT * FROM {}", quoted_object(&name));
            let view = View { oid, name, columns: columns.collect(), query };
            self.record(Change::from(Object::View(view)), false);
            rows = Box::pin(self.query_rows(&text, &[], &[])).await?;
        }
        self.make_storage(&mut table)?;
        self.put_table(table.clone());
        let catalog = self.catalog();
        let count = rows.len();
        let names: Vec<String> = table.visible().map(|column| column.name.clone()).collect();
        let write = BulkWrite::new(self.database().database(), &catalog, &table, &names)?;
        self.write_rows(&catalog, (&write, &[]), rows, true).await?;
        Ok(count)
    }
}

/// Refuses to do with a materialized view what can be done with tables alone.
pub(super) fn refuse_materialized(table: &Table, what: &str) -> Result<()> {
    match &table.materialized {
        None => Ok(()),
        Some(_) => {
            let message = format!("{what} cannot be performed on relation \"{}\"", table.name.name);
            Err(Error::new(SqlState(*b"42809"), message)
                .with_detail("This operation is not supported for materialized views."))
        }
    }
}
