//! `CREATE VIEW`.

use crate::connection::Connection;
use fabius_sql_meaning::catalog::named_relation::{Naming, along};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Relation, View, folded};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_query as query;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

impl Connection {
    pub(super) async fn create_view(&mut self, create: &ast::CreateView) -> Result<String> {
        let name = self.name_for_new(&create.name, create.temporary)?;
        let names: Vec<String> = create.columns.iter().map(|column| folded(&column.name)).collect();
        let too_many = "CREATE VIEW specifies more column names than columns";
        let (query, columns) = self.viewed(&create.query, &names, too_many).await?;
        let catalog = self.catalog();
        let earlier = match catalog.relation_named(&name) {
            Some(Relation::View(view)) if create.or_replace => Some(view.clone()),
            Some(_) if create.or_replace => {
                return Err(Error::new(SqlState(*b"42809"), format!("\"{}\" is not a view", name.name)));
            }
            _ => None,
        };
        if earlier.is_none() && !self.claim(&name, create.if_not_exists).await? {
            return Ok("CREATE VIEW".into());
        }
        if let Some(earlier) = &earlier {
            catalog.require_owner(earlier.oid)?;
            for (at, (old, old_type)) in earlier.columns.iter().enumerate() {
                match columns.get(at) {
                    None => return Err(invalid("cannot drop columns from view".into())),
                    Some((new, _)) if new != old => {
                        return Err(invalid(format!(
                            "cannot change name of view column \"{old}\" to \"{new}\""
                        )));
                    }
                    Some((_, new_type)) if new_type != old_type => {
                        return Err(invalid(format!(
                            "cannot change data type of view column \"{old}\" from {old_type} to {new_type}"
                        )));
                    }
                    Some(_) => {}
                }
            }
        }
        let oid = earlier.map_or_else(|| self.database().new_oid(), |view| view.oid);
        self.record(Change::from(Object::View(View { oid, name, columns, query })), create.temporary);
        Ok("CREATE VIEW".into())
    }

    /// The query of a view as it is kept, and the view's columns.
    ///
    /// # Errors
    /// What is wrong with the query; `42601` as told if more columns are named than there are.
    pub(super) async fn viewed(
        &mut self,
        query: &ast::Query,
        names: &[String],
        too_many: &str,
    ) -> Result<(String, Vec<(String, SqlType)>)> {
        // Names mean what they mean now, whoever reads the view.
        let query = written(&along(&self.catalog(), query, Naming::Whole));
        let prepared = Box::pin(self.prepare(&query, &[])).await?;
        let (catalog, session) = (self.catalog(), self.session_facts());
        let read = Tokens::of(&query)?.read(|parser| parser.parse_query())?;
        let query = written(&query::with_spelled_columns(&read, &catalog, &session)?);
        let found = prepared.columns.clone().unwrap_or_default();
        if names.len() > found.len() {
            return Err(Error::new(SqlState::SYNTAX_ERROR, too_many));
        }
        let mut columns: Vec<(String, SqlType)> = Vec::with_capacity(found.len());
        for (at, column) in found.into_iter().enumerate() {
            let name = names.get(at).cloned().unwrap_or(column.name);
            if columns.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Error::new(
                    SqlState(*b"42701"),
                    format!("column \"{name}\" specified more than once"),
                ));
            }
            let sql_type = if column.sql_type == SqlType::Unknown { SqlType::Text } else { column.sql_type };
            columns.push((name, sql_type));
        }
        Ok((query, columns))
    }
}

fn invalid(message: String) -> Error {
    Error::new(SqlState(*b"42P16"), message)
}
