//! `CREATE EXTENSION`, `DROP EXTENSION`

use crate::connection::Connection;
use fabius_sql_meaning::catalog::extension::{EXTENSIONS, PLPGSQL, oid_of};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{Error, Result, SqlState};

impl Connection {
    /// `CREATE EXTENSION`
    pub(super) fn create_extension(&mut self, name: &str, if_not_exists: bool) -> Result<String> {
        let tag = || Ok("CREATE EXTENSION".to_string());
        let Some(extension) = EXTENSIONS.iter().find(|extension| extension.name == name) else {
            let names: Vec<&str> = EXTENSIONS.iter().map(|extension| extension.name).collect();
            return Err(Error::new(
                SqlState::NOT_SUPPORTED,
                format!("extension \"{name}\" is not available"),
            )
            .with_detail(format!("available are {}", names.join(", "))));
        };
        let database = self.database_name();
        self.catalog().require_in_database(Privilege::Create, &database)?;
        if oid_of(&self.catalog(), name).is_some() {
            let exists = |more| {
                let message = format!("extension \"{name}\" already exists{more}");
                Error::new(SqlState::DUPLICATE_OBJECT, message)
            };
            if !if_not_exists {
                return Err(exists(""));
            }
            self.session.notice(exists(", skipping"));
            return tag();
        }
        if let Some(missing) = extension.missing {
            let message = format!("{missing} will not be there");
            self.session.warn(b"01000", &format!("extension \"{name}\" is for names only: {message}"));
        }
        let oid = self.database().new_oid();
        self.record(Change::from(Object::Extension(oid, name.to_string())), false);
        tag()
    }

    /// `DROP EXTENSION`
    pub(super) fn drop_extensions(&mut self, names: &[String], if_exists: bool) -> Result<String> {
        let database = self.database_name();
        self.catalog().require_in_database(Privilege::Create, &database)?;
        for name in names {
            let missing = |more| {
                let message = format!("extension \"{name}\" does not exist{more}");
                Error::new(SqlState(*b"42704"), message)
            };
            match self.catalog().extensions.get(name).copied() {
                Some(oid) => self.record_gone(oid, false),
                None if name == PLPGSQL => {
                    return Err(Error::new(SqlState(*b"2BP01"), "PL/pgSQL is part of every database")
                        .with_hint("leave it where it is"));
                }
                None if if_exists => self.session.notice(missing(", skipping")),
                None => return Err(missing("")),
            }
        }
        Ok("DROP EXTENSION".into())
    }
}
