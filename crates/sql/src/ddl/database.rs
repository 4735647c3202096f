//! `CREATE DATABASE`, `DROP DATABASE`, `ALTER DATABASE`.
//!
//! A database is a catalog of its own over the same storage, log and sessions.

use crate::connection::Connection;
use crate::connection::sql_database::Perspective;
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog::store::{Change, MAIN_DATABASE, Object};
use fabius_sql_meaning::catalog::{ObjectName, Oid};
use fabius_sql_syntax::command::DatabaseChange;
use fabius_sql_syntax::command::RoleName;
use fabius_sql_syntax::privilege::Class;
use fabius_value::{Error, Result, SqlState};
use std::time::Duration;

/// How often it is looked whether the sessions of a database have ended, and how long between.
const LOOKS: usize = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

impl Connection {
    pub(super) async fn create_database(
        &mut self,
        name: &str,
        template: Option<&str>,
        owner: Option<&str>,
    ) -> Result<String> {
        let (role, roles) = (self.current_role(), self.roles());
        if !roles.is_superuser(role) && !roles.get(role).is_some_and(|role| role.creates_databases) {
            return Err(Error::new(SqlState(*b"42501"), "permission denied to create database"));
        }
        let owner = match owner {
            Some(name) => self.role_to_own(&RoleName::Named(name.to_string()))?,
            None => role,
        };
        self.claim_database(name).await?;
        match template {
            None | Some("template0" | "template1") => {}
            Some(other) if self.database().known_database(other).is_none() => {
                let message = format!("template database \"{other}\" does not exist");
                return Err(Error::new(SqlState(*b"3D000"), message));
            }
            Some(other) => {
                let message = format!("CREATE DATABASE ... TEMPLATE {other} is not supported");
                return Err(Error::new(SqlState::NOT_SUPPORTED, message).with_hint(
                    "create an empty database, and fill it with what pg_dump writes of the other",
                ));
            }
        }
        let (oid, public) = (self.database().new_oid(), self.database().new_oid());
        self.record(Change::from(Object::Database(oid, name.to_string())), false);
        let public = Object::Schema(public, "public".into());
        self.record(Change::from(Object::Within(oid, Box::new(public))), false);
        if owner != role {
            self.give_to(Class::Database, oid, owner);
        }
        Ok("CREATE DATABASE".into())
    }

    pub(super) async fn change_database(&mut self, name: &str, change: &DatabaseChange) -> Result<String> {
        let verb = if matches!(change, DatabaseChange::Rename(_)) { "rename" } else { "drop" };
        let Some(oid) = self.database().known_database(name) else {
            let message = format!("database \"{name}\" does not exist");
            if matches!(change, DatabaseChange::Drop { if_exists: true, .. }) {
                self.session.notice(Error::new(SqlState(*b"00000"), format!("{message}, skipping")));
                return Ok("DROP DATABASE".into());
            }
            return Err(Error::new(SqlState(*b"3D000"), message));
        };
        self.require_database_owner(oid, name)?;
        if oid == self.within() {
            let what = if verb == "drop" { "the currently open database" } else { "current database" };
            let state = if verb == "drop" { *b"55006" } else { *b"0A000" };
            let message = match verb {
                "drop" => format!("cannot drop {what}"),
                _ => format!("{what} cannot be renamed"),
            };
            return Err(Error::new(SqlState(state), message));
        }
        if oid == MAIN_DATABASE {
            return Err(Error::new(SqlState::NOT_SUPPORTED, format!("cannot {verb} database \"{name}\""))
                .with_detail("It is the one that the server was started with."));
        }
        self.lock_all(&[LockKey::Name(place_of(name))], LockMode::AccessExclusive).await?;
        let is_forced = matches!(change, DatabaseChange::Drop { is_forced: true, .. });
        self.wait_for_sessions(oid, name, is_forced).await?;
        match change {
            DatabaseChange::Rename(to) => {
                self.claim_database(to).await?;
                self.record(Change::from(Object::Database(oid, to.clone())), false);
                Ok("ALTER DATABASE".into())
            }
            DatabaseChange::Drop { .. } => {
                self.forget_database(oid);
                Ok("DROP DATABASE".into())
            }
        }
    }

    /// # Errors
    /// `42501` unless the current role owns the database.
    fn require_database_owner(&mut self, oid: Oid, name: &str) -> Result<()> {
        let role = self.current_role();
        match self.database().catalog(oid, Perspective::along(&[])).owns(role, Class::Database, oid) {
            true => Ok(()),
            false => Err(Error::new(SqlState(*b"42501"), format!("must be owner of database {name}"))),
        }
    }

    /// Takes a name for a database.
    ///
    /// # Errors
    /// `42P04` if it is taken.
    async fn claim_database(&mut self, name: &str) -> Result<()> {
        self.lock_all(&[LockKey::Name(place_of(name))], LockMode::AccessExclusive).await?;
        match self.database().known_database(name) {
            Some(_) => Err(Error::new(SqlState(*b"42P04"), format!("database \"{name}\" already exists"))),
            None => Ok(()),
        }
    }

    /// Waits for the sessions of a database to end, or ends them.
    ///
    /// # Errors
    /// `55006` if they go on.
    async fn wait_for_sessions(&mut self, oid: Oid, name: &str, is_forced: bool) -> Result<()> {
        let mut left = Vec::new();
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
            left = self.database().sessions_of(oid);
            if left.is_empty() {
                return Ok(());
            }
            if is_forced && look == 0 {
                for process in &left {
                    // It may have ended by itself.
                    let _ = self.database().interrupt(*process, true);
                }
            }
        }
        let detail = match left.len() {
            1 => "There is 1 other session using the database.".to_string(),
            count => format!("There are {count} other sessions using the database."),
        };
        let message = format!("database \"{name}\" is being accessed by other users");
        Err(Error::new(SqlState(*b"55006"), message).with_detail(detail))
    }

    /// Everything of a database is gone.
    fn forget_database(&mut self, oid: Oid) {
        let catalog = self.database().catalog(oid, Perspective::along(&[]));
        for table in catalog.tables.values() {
            self.transaction.note_left(table.storage.clone());
        }
        for row in catalog.rows() {
            self.record(Change { row, object: None }, false);
        }
        self.record(Change::gone(oid), false);
    }
}

/// Where the names of databases are.
fn place_of(name: &str) -> ObjectName {
    ObjectName { schema: "pg_database".into(), name: name.to_string() }
}
