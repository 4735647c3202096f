//! Who a session is: the role of the session, and the one whose privileges count (`SET ROLE`, `SET SESSION
//! AUTHORIZATION`).

use super::Connection;
use super::session::Session;
use super::sql_database::{Perspective, SqlDatabase};
use fabius_sql_meaning::catalog::Oid;
use fabius_sql_meaning::catalog::role::{BOOTSTRAP, PUBLIC, Role, Roles};
use fabius_sql_syntax::command::RoleName;
use fabius_sql_syntax::privilege::{Class, Privilege};
use fabius_value::{Error, Result, SqlState};
use std::sync::Arc;

/// A role that there is not: that of sessions whose role is gone.
const NOBODY: Oid = Oid::MAX;

/// `role "x" does not exist`
pub(crate) fn no_role(name: &str) -> Error {
    Error::new(SqlState(*b"42704"), format!("role \"{name}\" does not exist"))
}

impl SqlDatabase {
    /// The role that has a name, as this node of a cluster knows it.
    ///
    /// # Errors
    /// Why the node has stopped.
    pub async fn role_of_user(&self, user: &str) -> Result<Option<Arc<Role>>> {
        self.come_up_to_date(true).await?;
        Ok(self.roles().named(user).cloned())
    }

    /// Lets a user into a database, who has proved to be that user: how the user's sessions begin.
    ///
    /// # Errors
    /// `28000` if its role cannot log in, `53300` if it has sessions enough, `42501` if the database is closed to it.
    pub fn admit(&self, user: &str, (database, name): &(Oid, String)) -> Result<Vec<(String, String)>> {
        let roles = self.roles();
        let Some(role) = roles.named(user) else { return Ok(Vec::new()) };
        if !role.can_login {
            let message = format!("role \"{user}\" is not permitted to log in");
            return Err(Error::new(SqlState(*b"28000"), message));
        }
        let sessions = self.sessions.lock().values().filter(|presence| presence.user == user).count();
        let limit = usize::try_from(role.connection_limit).ok().filter(|_| !role.is_superuser);
        if limit.is_some_and(|limit| sessions >= limit) {
            return Err(Error::new(SqlState(*b"53300"), format!("too many connections for role \"{user}\"")));
        }
        let catalog = self.catalog(*database, Perspective::along(&[]));
        if !catalog.may(role.oid, Class::Database, *database, Privilege::Connect) {
            return Err(Error::new(
                SqlState(*b"42501"),
                format!("permission denied for database \"{name}\""),
            )
            .with_detail("User does not have CONNECT privilege."));
        }
        Ok(role.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}

impl Session {
    /// The role of the session: as whom it logged in, or what `SET SESSION AUTHORIZATION` says.
    pub(crate) fn session_role(&self, roles: &Roles) -> Oid {
        let login = &self.login;
        match self.settings.get("session_authorization") {
            Some(name) if name != login.user => login.find(&name, roles).unwrap_or(NOBODY),
            _ if login.role == BOOTSTRAP || roles.get(login.role).is_some() => login.role,
            _ => NOBODY,
        }
    }

    /// The role whose privileges count.
    pub(super) fn role_among(&self, roles: &Roles) -> Oid {
        match self.settings.get("role") {
            Some(name) if name != "none" => self.login.find(&name, roles).unwrap_or(NOBODY),
            _ => self.session_role(roles),
        }
    }

    /// As [`Session::role_among`], with all superusers as one: they see the same.
    pub(super) fn seen_as(&self, roles: &Roles) -> Oid {
        let role = self.role_among(roles);
        if roles.is_superuser(role) { BOOTSTRAP } else { role }
    }
}

impl Connection {
    /// Roles as this session sees them.
    pub(crate) fn roles(&mut self) -> Arc<Roles> {
        self.catalog().roles.clone()
    }

    /// The role whose privileges count, who owns what is made.
    pub(crate) fn current_role(&mut self) -> Oid {
        let roles = self.roles();
        self.session.role_among(&roles)
    }

    /// What a role is called.
    pub(crate) fn role_name(&mut self, role: Oid) -> String {
        let roles = self.roles();
        self.session.login.name(role, &roles)
    }

    /// The role that a statement names.
    ///
    /// # Errors
    /// `42704` if there is none.
    pub(crate) fn named_role(&mut self, name: &RoleName) -> Result<Oid> {
        let roles = self.roles();
        match name {
            RoleName::Named(name) => self.session.login.find(name, &roles).ok_or_else(|| no_role(name)),
            RoleName::Current => Ok(self.session.role_among(&roles)),
            RoleName::Session => Ok(self.session.session_role(&roles)),
            RoleName::Public => Err(no_role("public")),
        }
    }

    /// As [`Connection::named_role`], or everybody.
    ///
    /// # Errors
    /// `42704` if there is no such role.
    pub(crate) fn grantee(&mut self, name: &RoleName) -> Result<Oid> {
        match name {
            RoleName::Public => Ok(PUBLIC),
            name => self.named_role(name),
        }
    }

    /// The role of a name that `ALTER` and `DROP` change, which is none of the system's.
    ///
    /// # Errors
    /// `42704` if there is none, `42939` if it cannot be changed.
    pub(crate) fn changeable_role(&mut self, name: &RoleName) -> Result<Arc<Role>> {
        let oid = self.named_role(name)?;
        let roles = self.roles();
        match roles.get(oid) {
            Some(role) if !role.name.starts_with("pg_") => Ok(role.clone()),
            Some(role) => {
                Err(Error::new(SqlState(*b"42939"), format!("role name \"{}\" is reserved", role.name))
                    .with_detail("Role names starting with \"pg_\" are reserved."))
            }
            None => Err(Error::new(
                SqlState::NOT_SUPPORTED,
                format!("role \"{}\" is not one of the database's", self.session.login.superuser()),
            )
            .with_detail(
                "The server lets in who is no role as a superuser, by its file of users or as anyone.",
            )
            .with_hint("make a role of this name with CREATE ROLE, and connect again")),
        }
    }

    /// `SET ROLE`, `SET SESSION AUTHORIZATION`: whether the session may be somebody else.
    ///
    /// # Errors
    /// `22023` for a role that there is not, `42501` for one that it may not be.
    pub(super) fn check_becoming(&mut self, setting: &str, name: &str) -> Result<()> {
        let roles = self.roles();
        let Some(wanted) = self
            .session
            .login
            .find(name, &roles)
            .or((name == self.session.login.user).then_some(self.session.login.role))
        else {
            return Err(Error::new(SqlState(*b"22023"), format!("role \"{name}\" does not exist")));
        };
        let (may, what) = match setting {
            "role" => (roles.is_member(self.session.session_role(&roles), wanted), "role"),
            _ => {
                let is_same = wanted == self.session.login.role;
                (is_same || roles.is_superuser(self.session.login.role), "session authorization")
            }
        };
        match may {
            true => Ok(()),
            false => {
                Err(Error::new(SqlState(*b"42501"), format!("permission denied to set {what} \"{name}\"")))
            }
        }
    }
}
