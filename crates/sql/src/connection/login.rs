//! As whom a client logged in.

use fabius_sql_meaning::catalog::Oid;
use fabius_sql_meaning::catalog::role::{BOOTSTRAP, POSTGRES, Roles};

/// As whom a client logged in.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    /// What the client called itself.
    pub user: String,
    /// The role of that name; the [superuser of the beginning](BOOTSTRAP) if there is none.
    pub role: Oid,
}

impl Login {
    pub(super) fn of(user: &str, roles: &Roles) -> Login {
        Login { user: user.to_string(), role: roles.named(user).map_or(BOOTSTRAP, |role| role.oid) }
    }

    /// What the superuser of the beginning is called.
    pub(crate) fn superuser(&self) -> &str {
        if self.role == BOOTSTRAP { &self.user } else { POSTGRES }
    }

    /// The role of a name.
    pub(super) fn find(&self, name: &str, roles: &Roles) -> Option<Oid> {
        roles.find(name, self.superuser())
    }

    /// What a role is called.
    pub(super) fn name(&self, role: Oid, roles: &Roles) -> String {
        roles.name(role, self.superuser())
    }
}
