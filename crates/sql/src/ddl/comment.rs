//! `COMMENT ON`, and what becomes of comments when what they are on changes.

use crate::connection::Connection;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Oid, Table, extension, folded, no_column, parts};
use fabius_sql_meaning::pg_catalog;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::command::RoleName;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

impl Connection {
    /// `COMMENT ON kind name IS comment`; a column or constraint has the name of its table before its own.
    pub(super) async fn comment(
        &mut self,
        kind: &str,
        name: &ast::ObjectName,
        comment: Option<&str>,
    ) -> Result<String> {
        let comment = comment.filter(|text| !text.is_empty());
        let (oid, column) = match kind {
            "CONSTRAINT" => return self.comment_on_constraint(name, comment).await,
            "COLUMN" => {
                let (of, column) = within(name);
                let catalog = self.catalog();
                let (oid, place) = match catalog.find_view(&of)? {
                    Some(view) => {
                        let place = view.columns.iter().position(|(name, _)| *name == column);
                        (view.oid, place.ok_or_else(|| no_column(&view.name, &column))?)
                    }
                    None => {
                        let table = catalog.table(&of)?;
                        (table.oid, table.place_of(&column)?)
                    }
                };
                (oid, place as u16 + 1)
            }
            "DATABASE" => match self.database().known_database(&parts(name)?.1) {
                Some(database) if database == self.within() => (database, 0),
                Some(_) => {
                    let message = "comments on another database are not supported";
                    return Err(
                        Error::new(SqlState::NOT_SUPPORTED, message).with_hint(format!("connect to {name}"))
                    );
                }
                None => {
                    self.session.warn(b"3D000", &format!("database \"{name}\" does not exist"));
                    return Ok("COMMENT".into());
                }
            },
            _ => (self.described(kind, name)?, 0),
        };
        if kind != "DATABASE" && kind != "ROLE" {
            self.catalog().require_owner(oid)?;
        }
        self.put_comment(oid, column, comment.map(str::to_string));
        Ok("COMMENT".into())
    }

    /// The number of what is described.
    fn described(&mut self, kind: &str, name: &ast::ObjectName) -> Result<Oid> {
        let catalog = self.catalog();
        let missing = |state: &[u8; 5], what: String| {
            Error::new(SqlState(*state), format!("{} {what} does not exist", kind.to_lowercase()))
        };
        let quoted = || parts(name).map(|(_, name)| (format!("\"{name}\""), name));
        match kind {
            "SCHEMA" => {
                let (shown, name) = quoted()?;
                catalog.schemas.get(&name).copied().ok_or_else(|| missing(b"3F000", shown))
            }
            "FUNCTION" | "PROCEDURE" | "ROUTINE" => {
                let function = catalog.functions_named(name)?.first().map(|function| function.oid);
                let missing =
                    || Error::new(SqlState::UNDEFINED_FUNCTION, format!("function {name} does not exist"));
                function.ok_or_else(missing)
            }
            "ROLE" => {
                let (_, name) = quoted()?;
                let role = self.named_role(&RoleName::Named(name))?;
                match self.creates_roles() {
                    true => Ok(role),
                    false => Err(Error::new(SqlState(*b"42501"), "permission denied")),
                }
            }
            "EXTENSION" => {
                let (shown, name) = quoted()?;
                extension::oid_of(&catalog, &name).ok_or_else(|| missing(b"42704", shown))
            }
            "DOMAIN" => {
                let (shown, _) = quoted()?;
                catalog
                    .domain(name)?
                    .map(|domain| domain.oid)
                    .ok_or_else(|| Error::new(SqlState(*b"42704"), format!("type {shown} does not exist")))
            }
            "TYPE" => {
                if let Some(of) = catalog.enumeration(name)? {
                    return Ok(of.oid);
                }
                if let Some(domain) = catalog.domain(name)? {
                    return Ok(domain.oid);
                }
                let (shown, name) = quoted()?;
                let oid = SqlType::of_name(&name)
                    .map(|sql_type| pg_catalog::type_rows::type_oid(&sql_type.internal_name()));
                oid.filter(|oid| *oid != 0).ok_or_else(|| missing(b"42704", shown))
            }
            _ => match catalog.relation(name)? {
                Some(relation) if relation.kind().eq_ignore_ascii_case(kind) => Ok(relation.oid()),
                Some(relation) => {
                    let article = if kind == "INDEX" { "an" } else { "a" };
                    let message =
                        format!("\"{}\" is not {article} {}", relation.short_name(), kind.to_lowercase());
                    Err(Error::new(SqlState(*b"42809"), message))
                }
                None => Err(catalog.missing("relation", name)),
            },
        }
    }

    async fn comment_on_constraint(
        &mut self,
        name: &ast::ObjectName,
        comment: Option<&str>,
    ) -> Result<String> {
        let (of, constraint) = within(name);
        let mut table = self.table_to_change(&of).await?;
        if !table.has_constraint(&constraint) {
            let message =
                format!("constraint \"{constraint}\" for table \"{}\" does not exist", table.name.name);
            return Err(Error::new(SqlState(*b"42704"), message));
        }
        match comment {
            Some(text) => drop(table.constraint_comments.insert(constraint, text.to_string())),
            None => drop(table.constraint_comments.remove(&constraint)),
        }
        self.put_table(table);
        Ok("COMMENT".into())
    }

    /// What is said of an object that is gone is gone too.
    pub(super) fn forget_comments(&mut self, oid: Oid) {
        for (column, _) in self.catalog().comments_on(oid) {
            self.put_comment(oid, column, None);
        }
    }

    /// Comments follow what they are on as a table becomes another.
    pub(super) fn follow_comments(&mut self, before: &Table, after: &mut Table) {
        let mut said = std::mem::take(&mut after.constraint_comments);
        said.retain(|name, _| after.has_constraint(name));
        after.constraint_comments = said;
        for key in before.keys().filter(|key| after.keys().all(|other| other.oid != key.oid)) {
            self.forget_comments(key.oid);
        }
        let is_renamed = before.columns.len() == after.columns.len();
        let now = |column: u16| {
            let place = usize::from(column) - 1;
            let named = before.columns.get(place).and_then(|column| after.position(&column.name));
            named.or(is_renamed.then_some(place)).map(|place| place as u16 + 1)
        };
        let said = self.catalog().comments_on(before.oid).into_iter().filter(|(column, _)| *column > 0);
        let moved: Vec<_> = said.filter(|(column, _)| now(*column) != Some(*column)).collect();
        for (column, _) in &moved {
            self.put_comment(before.oid, *column, None);
        }
        for (column, text) in moved {
            if let Some(now) = now(column) {
                self.put_comment(before.oid, now, Some(text));
            }
        }
    }

    fn put_comment(&mut self, oid: Oid, column: u16, comment: Option<String>) {
        let change = match comment {
            Some(text) => Change::from(Object::Comment(oid, column, text)),
            None => Change::no_comment(oid, column),
        };
        let catalog = self.catalog();
        let is_of = |table: &Table| table.oid == oid || table.keys().any(|key| key.oid == oid);
        let is_temporary = catalog.tables.values().any(|table| table.is_temporary() && is_of(table));
        self.record(change, is_temporary);
    }
}

/// A name of something within a table: the table's, and its own.
fn within(name: &ast::ObjectName) -> (ast::ObjectName, String) {
    let mut of = name.clone();
    let own = of.0.pop().and_then(|part| part.as_ident().map(folded)).unwrap_or_default();
    (of, own)
}
