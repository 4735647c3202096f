//! Roles, which are those of all databases: who there is, and as whom each may act.

use super::Oid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The superuser that is there from the beginning: whoever the server lets in and no role is called like.
pub const BOOTSTRAP: Oid = 10;
/// What [`BOOTSTRAP`] is called by those who do not know better.
pub const POSTGRES: &str = "postgres";
/// Everybody.
pub const PUBLIC: Oid = 0;
/// The owner of the database.
pub const DATABASE_OWNER: Oid = 6171;
/// Whoever may read all rows.
pub const READ_ALL_DATA: Oid = 6181;
/// Whoever may write all rows.
pub const WRITE_ALL_DATA: Oid = 6182;
/// Whoever may end others' statements and sessions.
pub const SIGNAL_BACKEND: Oid = 4200;
/// Whoever may make checkpoints.
pub const CHECKPOINT: Oid = 4544;
/// Whoever may see what others run.
pub const READ_ALL_STATS: Oid = 3375;

/// The roles that PostgreSQL has from the beginning (its documentation, 22.5 "Predefined Roles").
const PREDEFINED: [(Oid, &str, &[Oid]); 12] = [
    (DATABASE_OWNER, "pg_database_owner", &[]),
    (READ_ALL_DATA, "pg_read_all_data", &[]),
    (WRITE_ALL_DATA, "pg_write_all_data", &[]),
    (3373, "pg_monitor", &[3374, READ_ALL_STATS, 3377]),
    (3374, "pg_read_all_settings", &[]),
    (READ_ALL_STATS, "pg_read_all_stats", &[]),
    (3377, "pg_stat_scan_tables", &[]),
    (4569, "pg_read_server_files", &[]),
    (4570, "pg_write_server_files", &[]),
    (4571, "pg_execute_server_program", &[]),
    (SIGNAL_BACKEND, "pg_signal_backend", &[]),
    (CHECKPOINT, "pg_checkpoint", &[]),
];

/// A role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// The role's number.
    pub oid: Oid,
    /// The role's name.
    pub name: String,
    /// Whether it may do everything.
    pub is_superuser: bool,
    /// Whether it has the privileges of the roles that it is a member of without `SET ROLE`.
    pub inherits: bool,
    /// Whether it makes roles.
    pub creates_roles: bool,
    /// Whether it makes databases.
    pub creates_databases: bool,
    /// Whether it can connect.
    pub can_login: bool,
    /// `REPLICATION`, which means nothing here.
    pub replicates: bool,
    /// `BYPASSRLS`, which means nothing here.
    pub bypasses_row_security: bool,
    /// How many sessions it may have; -1 for as many as there are.
    pub connection_limit: i32,
    /// What proves that a client is it: the verifier of SCRAM-SHA-256 (RFC 5803), which does not tell the password.
    pub verifier: Option<String>,
    /// Until when that does, microseconds since 1970 in UTC.
    pub valid_until_us: Option<i64>,
    /// The roles that it is a member of.
    pub member_of: Vec<Membership>,
    /// How its sessions begin: settings and their values.
    pub settings: Vec<(String, String)>,
}

/// That a role is a member of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// Of which.
    pub role: Oid,
    /// Whether it may make others members.
    pub admin: bool,
    /// Who made it one.
    pub grantor: Oid,
}

impl Role {
    /// A role of which nothing is said.
    pub fn new(oid: Oid, name: &str) -> Role {
        Role {
            oid,
            name: name.to_string(),
            is_superuser: false,
            inherits: true,
            creates_roles: false,
            creates_databases: false,
            can_login: false,
            replicates: false,
            bypasses_row_security: false,
            connection_limit: -1,
            verifier: None,
            valid_until_us: None,
            member_of: Vec::new(),
            settings: Vec::new(),
        }
    }
}

/// All roles but the [superuser of the beginning](BOOTSTRAP), by their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Roles(BTreeMap<Oid, Arc<Role>>);

impl Default for Roles {
    fn default() -> Roles {
        let predefined = PREDEFINED.iter().map(|(oid, name, within)| {
            let member = |role: &Oid| Membership { role: *role, admin: false, grantor: BOOTSTRAP };
            let member_of = within.iter().map(member).collect();
            (*oid, Arc::new(Role { member_of, ..Role::new(*oid, name) }))
        });
        Roles(predefined.collect())
    }
}

impl Roles {
    /// Puts a role in, in place of the one with its number.
    pub(super) fn put(&mut self, role: Role) {
        self.0.insert(role.oid, Arc::new(role));
    }

    /// Takes a role out.
    pub(super) fn take_out(&mut self, oid: Oid) {
        self.0.remove(&oid);
    }

    /// All, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Role>> {
        self.0.values()
    }

    /// The role of a number.
    pub fn get(&self, oid: Oid) -> Option<&Arc<Role>> {
        self.0.get(&oid)
    }

    /// The role of a name.
    pub fn named(&self, name: &str) -> Option<&Arc<Role>> {
        self.0.values().find(|role| role.name == name)
    }

    /// The role of a name, where the superuser of the beginning is called `superuser`.
    pub fn find(&self, name: &str, superuser: &str) -> Option<Oid> {
        let is_bootstrap = name == superuser || name == POSTGRES;
        self.named(name).map(|role| role.oid).or(is_bootstrap.then_some(BOOTSTRAP))
    }

    /// What a role is called, where the superuser of the beginning is called `superuser`.
    pub fn name(&self, oid: Oid, superuser: &str) -> String {
        match self.get(oid) {
            Some(role) => role.name.clone(),
            None if oid == BOOTSTRAP => superuser.to_string(),
            None => format!("unknown (OID={oid})"),
        }
    }

    /// Whether a role may do everything.
    pub fn is_superuser(&self, oid: Oid) -> bool {
        oid == BOOTSTRAP || self.get(oid).is_some_and(|role| role.is_superuser)
    }

    /// The role and all that it belongs to, directly or through others; with `inherits`, only those whose privileges
    /// it has without `SET ROLE`.
    fn reached(&self, from: Oid, inherits: bool) -> BTreeSet<Oid> {
        let mut reached = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            let Some(role) = self.get(next) else { continue };
            if inherits && !role.inherits {
                continue;
            }
            open.extend(role.member_of.iter().map(|of| of.role).filter(|of| reached.insert(*of)));
        }
        reached
    }

    /// The roles whose privileges a role has.
    pub fn acting(&self, oid: Oid) -> BTreeSet<Oid> {
        self.reached(oid, true)
    }

    /// Whether a role is another, or belongs to it.
    pub fn is_member(&self, oid: Oid, of: Oid) -> bool {
        self.is_superuser(oid) || self.reached(oid, false).contains(&of)
    }

    /// Whether a role may make others members of one, or no longer.
    pub fn may_admit(&self, oid: Oid, to: Oid) -> bool {
        if self.is_superuser(oid) {
            return true;
        }
        let creates = self.get(oid).is_some_and(|role| role.creates_roles);
        let admin = |role: &Oid| {
            let of = self.get(*role).map(|role| role.member_of.as_slice()).unwrap_or_default();
            of.iter().any(|of| of.role == to && of.admin)
        };
        creates && !self.is_superuser(to) && PREDEFINED.iter().all(|(oid, ..)| *oid != to)
            || self.acting(oid).iter().any(admin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(oid: Oid, of: &[Oid]) -> Role {
        let of = of.iter().map(|role| Membership { role: *role, admin: false, grantor: BOOTSTRAP });
        Role { member_of: of.collect(), ..Role::new(oid, &format!("r{oid}")) }
    }

    #[test]
    fn privileges_are_inherited_along_members_that_inherit() {
        let mut roles = Roles::default();
        roles.put(member(20_001, &[20_002]));
        roles.put(Role { inherits: false, ..member(20_002, &[20_003]) });
        roles.put(member(20_003, &[]));
        assert_eq!(roles.acting(20_001), BTreeSet::from([20_001, 20_002]));
        assert!(roles.is_member(20_001, 20_003), "it may act as it by SET ROLE");
        assert!(!roles.is_member(20_003, 20_001));
        assert!(roles.acting(3373).contains(&3375), "pg_monitor has what pg_read_all_stats has");
    }
}
