//! `CREATE ROLE`, `ALTER ROLE`, `DROP ROLE`, `GRANT role TO member`, `REASSIGN OWNED`, `DROP OWNED`.

use crate::connection::Connection;
use crate::lock::{LockKey, LockMode};
use crate::settings::Settings;
use fabius_sql_meaning::catalog::role::{BOOTSTRAP, Membership, POSTGRES, Role};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Oid, input_types};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::Fit;
use fabius_sql_meaning::text_format::{self, TextStyle};
use fabius_sql_syntax::command::{RoleCommand, RoleName, RoleOptions};
use fabius_sql_syntax::privilege::Class;
use fabius_value::Value;
use fabius_value::{Error, Result, SqlState};
use postgres_protocol::password;

fn denied(message: impl Into<String>) -> Error {
    Error::new(SqlState(*b"42501"), message)
}

impl Connection {
    /// Does what a statement about roles says.
    pub(super) async fn change_roles(&mut self, command: &RoleCommand) -> Result<String> {
        self.lock_all(&[LockKey::Name(place_of_roles())], LockMode::AccessExclusive).await?;
        match command {
            RoleCommand::Create { name, options } => self.create_role(name, options),
            RoleCommand::Alter { role, options } => self.alter_role(role, options),
            RoleCommand::Rename { from, to } => self.rename_role(from, to),
            RoleCommand::Setting { role, name, value } => {
                self.set_for_role(role, name.as_deref(), value.as_deref())
            }
            RoleCommand::Drop { names, if_exists } => self.drop_roles(names, *if_exists),
            RoleCommand::Membership { gives, roles, members, admin } => {
                self.change_members(*gives, roles, members, *admin)
            }
            RoleCommand::Reassign { from, to } => self.reassign(from, to),
            RoleCommand::DropOwned { by, cascades } => self.drop_owned(by, *cascades).await,
        }
    }

    /// Whether the current role may make roles, and change those that are no superusers.
    pub(super) fn creates_roles(&mut self) -> bool {
        let (role, roles) = (self.current_role(), self.roles());
        roles.is_superuser(role) || roles.get(role).is_some_and(|role| role.creates_roles)
    }

    fn is_superuser(&mut self) -> bool {
        let (role, roles) = (self.current_role(), self.roles());
        roles.is_superuser(role)
    }

    fn put_role(&mut self, role: Role) {
        self.record(Change::from(Object::Role(role)), false);
    }

    /// # Errors
    /// `42710` if there is a role of the name.
    fn claim_role(&mut self, name: &str) -> Result<()> {
        let is_taken = self.roles().named(name).is_some() || name == POSTGRES;
        match is_taken {
            true => Err(Error::new(SqlState(*b"42710"), format!("role \"{name}\" already exists"))),
            false => Ok(()),
        }
    }

    fn create_role(&mut self, name: &str, options: &RoleOptions) -> Result<String> {
        let powers = [
            (options.is_superuser, "superuser"),
            (options.replicates, "replication"),
            (options.bypasses_row_security, "bypassrls"),
        ];
        for (power, word) in powers {
            if power == Some(true) && !self.is_superuser() {
                return Err(denied(format!("must be superuser to create {word} users")));
            }
        }
        if !self.creates_roles() {
            return Err(denied("permission denied to create role"));
        }
        self.claim_role(name)?;
        let mut role = Role::new(self.database().new_oid(), name);
        apply(&mut role, options)?;
        let (oid, grantor) = (role.oid, self.current_role());
        self.put_role(role);
        self.admit(&options.member_of, &[oid], false, grantor)?;
        let own = [name.to_string()];
        for (members, admin) in [(&options.members, false), (&options.admins, true)] {
            for member in members {
                let member = self.named_role(&RoleName::Named(member.clone()))?;
                self.admit(&own, &[member], admin, grantor)?;
            }
        }
        Ok("CREATE ROLE".into())
    }

    /// # Errors
    /// `42501` unless the current role may change this one.
    fn check_change(&mut self, role: &Role) -> Result<()> {
        if role.is_superuser && !self.is_superuser() {
            return Err(denied("must be superuser to alter superuser roles or change superuser attribute"));
        }
        match self.creates_roles() {
            true => Ok(()),
            false => Err(denied("permission denied")),
        }
    }

    fn alter_role(&mut self, name: &RoleName, options: &RoleOptions) -> Result<String> {
        let old = self.changeable_role(name)?;
        let is_own_password = old.oid == self.current_role()
            && *options == RoleOptions { password: options.password.clone(), ..RoleOptions::default() };
        if options.is_superuser.is_some() && !self.is_superuser() {
            return Err(denied("must be superuser to alter superuser roles or change superuser attribute"));
        }
        let special = options.replicates.is_some() || options.bypasses_row_security.is_some();
        if special && !self.is_superuser() {
            return Err(denied("must be superuser to change replication or bypassrls attribute"));
        }
        if !is_own_password {
            self.check_change(&old)?;
        }
        let mut role = (*old).clone();
        apply(&mut role, options)?;
        let grantor = self.current_role();
        self.put_role(role);
        for member in &options.members {
            let member = self.named_role(&RoleName::Named(member.clone()))?;
            self.admit(std::slice::from_ref(&old.name), &[member], false, grantor)?;
        }
        Ok("ALTER ROLE".into())
    }

    fn rename_role(&mut self, from: &str, to: &str) -> Result<String> {
        let old = self.changeable_role(&RoleName::Named(from.to_string()))?;
        let roles = self.roles();
        for (role, what) in [(self.session.session_role(&roles), "session"), (self.current_role(), "current")]
        {
            if role == old.oid {
                return Err(Error::new(SqlState::NOT_SUPPORTED, format!("{what} user cannot be renamed")));
            }
        }
        self.check_change(&old)?;
        self.claim_role(to)?;
        self.put_role(Role { name: to.to_string(), ..(*old).clone() });
        Ok("ALTER ROLE".into())
    }

    /// `ALTER ROLE ... SET`, `RESET`
    fn set_for_role(
        &mut self,
        name: &RoleName,
        setting: Option<&str>,
        value: Option<&str>,
    ) -> Result<String> {
        let old = self.changeable_role(name)?;
        if old.oid != self.current_role() {
            self.check_change(&old)?;
        }
        let mut role = (*old).clone();
        match setting {
            None => role.settings.clear(),
            Some(setting) => {
                // A value that no session could have is refused now.
                Settings::new(&role.name, false, true).set(setting, value, false)?;
                let key = Settings::name(setting);
                let place = role.settings.iter().position(|(known, _)| *known == key);
                match (place, value) {
                    (Some(at), Some(value)) => role.settings[at].1 = value.to_string(),
                    (None, Some(value)) => role.settings.push((key, value.to_string())),
                    (Some(at), None) => drop(role.settings.remove(at)),
                    (None, None) => {}
                }
            }
        }
        self.put_role(role);
        Ok("ALTER ROLE".into())
    }

    fn drop_roles(&mut self, names: &[RoleName], if_exists: bool) -> Result<String> {
        if !self.creates_roles() {
            return Err(denied("permission denied to drop role"));
        }
        let mut gone = Vec::new();
        for name in names {
            let role = match self.changeable_role(name) {
                Err(error) if if_exists && error.state() == SqlState(*b"42704") => {
                    let message = format!("{}, skipping", error.message());
                    self.session.notice(Error::new(SqlState(*b"00000"), message));
                    continue;
                }
                found => found?,
            };
            let roles = self.roles();
            for (own, what) in
                [(self.current_role(), "current"), (self.session.session_role(&roles), "session")]
            {
                if own == role.oid {
                    return Err(Error::new(SqlState(*b"55006"), format!("{what} user cannot be dropped")));
                }
            }
            if role.is_superuser && !self.is_superuser() {
                return Err(denied("must be superuser to drop superusers"));
            }
            gone.push(role);
        }
        for role in gone {
            self.refuse_while_needed(&role)?;
            let roles = self.roles();
            let members = roles.iter().filter(|other| other.member_of.iter().any(|of| of.role == role.oid));
            for member in members.cloned().collect::<Vec<_>>() {
                let mut member = (*member).clone();
                member.member_of.retain(|of| of.role != role.oid);
                self.put_role(member);
            }
            self.record_gone(role.oid, false);
        }
        Ok("DROP ROLE".into())
    }

    /// # Errors
    /// `2BP01` if objects belong to a role, or something was granted to it or by it.
    fn refuse_while_needed(&mut self, role: &Role) -> Result<()> {
        let (within, own) = (self.within(), self.catalog());
        let mut reasons = Vec::new();
        for (name, committed) in self.database().catalogs() {
            if committed.database == within {
                reasons.extend(uses(&own, &name, role.oid));
                continue;
            }
            let whole = format!(" database {name}");
            let all = uses(&committed, &name, role.oid);
            let (whole, inside): (Vec<_>, Vec<_>) = all.into_iter().partition(|why| why.ends_with(&whole));
            reasons.extend(whole);
            match inside.len() {
                0 => {}
                1 => reasons.push(format!("1 object in database {name}")),
                count => reasons.push(format!("{count} objects in database {name}")),
            }
        }
        match reasons.is_empty() {
            true => Ok(()),
            false => {
                let message =
                    format!("role \"{}\" cannot be dropped because some objects depend on it", role.name);
                Err(Error::new(SqlState(*b"2BP01"), message).with_detail(reasons.join("\n")))
            }
        }
    }

    fn change_members(
        &mut self,
        gives: bool,
        roles: &[String],
        members: &[RoleName],
        admin: bool,
    ) -> Result<String> {
        let grantor = self.current_role();
        let members = members.iter().map(|name| self.named_role(name)).collect::<Result<Vec<Oid>>>()?;
        if gives {
            self.admit(roles, &members, admin, grantor)?;
            return Ok("GRANT ROLE".into());
        }
        for name in roles {
            let of = self.role_to_admit_to(name)?;
            for member in &members {
                let all = self.roles();
                let Some(old) = all.get(*member) else { return Err(self.bootstrap_is_no_member()) };
                let mut role = (**old).clone();
                match role.member_of.iter_mut().find(|membership| membership.role == of) {
                    Some(membership) if admin => membership.admin = false,
                    Some(_) => role.member_of.retain(|membership| membership.role != of),
                    None => {
                        let message = format!("role \"{}\" is not a member of role \"{name}\"", role.name);
                        self.session.warn(b"01000", &message);
                        continue;
                    }
                }
                self.put_role(role);
            }
        }
        Ok("REVOKE ROLE".into())
    }

    fn bootstrap_is_no_member(&self) -> Error {
        Error::new(SqlState::NOT_SUPPORTED, "the superuser of the beginning is a member of no role")
            .with_detail("It may do everything already.")
    }

    /// # Errors
    /// `42704` if there is no such role, `42501` if the current one may make no members of it.
    fn role_to_admit_to(&mut self, name: &str) -> Result<Oid> {
        let of = self.named_role(&RoleName::Named(name.to_string()))?;
        let (role, roles) = (self.current_role(), self.roles());
        if roles.may_admit(role, of) {
            return Ok(of);
        }
        Err(match roles.is_superuser(of) {
            true => denied("must be superuser to alter superusers"),
            false => denied(format!("must have admin option on role \"{name}\"")),
        })
    }

    /// Makes roles members of others.
    fn admit(&mut self, roles: &[String], members: &[Oid], admin: bool, grantor: Oid) -> Result<()> {
        for name in roles {
            let of = self.role_to_admit_to(name)?;
            for member in members {
                let all = self.roles();
                // A superuser is a member of everything without being told.
                let Some(old) = all.get(*member) else { return Err(self.bootstrap_is_no_member()) };
                let is_circle = *member == of
                    || of != BOOTSTRAP && !all.is_superuser(of) && all.is_member(of, *member)
                    || all.get(of).is_some_and(|of| of.member_of.iter().any(|of| of.role == *member));
                if is_circle {
                    let message = format!("role \"{name}\" is a member of role \"{}\"", old.name);
                    return Err(Error::new(SqlState(*b"0LP01"), message));
                }
                let mut role = (**old).clone();
                match role.member_of.iter_mut().find(|membership| membership.role == of) {
                    Some(membership) if membership.admin || !admin => {
                        let message =
                            format!("role \"{}\" is already a member of role \"{name}\"", role.name);
                        self.session.notice(Error::new(SqlState(*b"00000"), message));
                        continue;
                    }
                    Some(membership) => membership.admin = true,
                    None => role.member_of.push(Membership { role: of, admin, grantor }),
                }
                self.put_role(role);
            }
        }
        Ok(())
    }

    /// # Errors
    /// `42501` unless the current role may act as these.
    fn acting_as(&mut self, names: &[RoleName]) -> Result<Vec<Oid>> {
        let roles = names.iter().map(|name| self.named_role(name)).collect::<Result<Vec<Oid>>>()?;
        let (current, all) = (self.current_role(), self.roles());
        match roles.iter().all(|role| all.is_member(current, *role)) {
            true => Ok(roles),
            false => Err(denied("permission denied to drop objects")),
        }
    }

    fn reassign(&mut self, from: &[RoleName], to: &RoleName) -> Result<String> {
        let from = self.acting_as(from)?;
        let to = self.acting_as(std::slice::from_ref(to))?[0];
        let catalog = self.catalog();
        for (class, oid, _) in catalog.securables() {
            // Objects of the superuser of the beginning are the system's.
            let owner = catalog.access(class, oid).owner;
            if owner != BOOTSTRAP && from.contains(&owner) {
                self.give_to(class, oid, to);
            }
        }
        Ok("REASSIGN OWNED".into())
    }

    async fn drop_owned(&mut self, by: &[RoleName], cascades: bool) -> Result<String> {
        let by = self.acting_as(by)?;
        if by.contains(&BOOTSTRAP) {
            let message = "cannot drop objects owned by the superuser of the beginning";
            return Err(Error::new(SqlState(*b"2BP01"), message)
                .with_detail("they are required by the database system"));
        }
        self.revoke_all(&by)?;
        Box::pin(self.drop_all_of(&by, cascades)).await?;
        Ok("DROP OWNED".into())
    }
}

/// The types of a function's arguments, in parentheses.
fn arguments_of(catalog: &Catalog, oid: Oid) -> String {
    let function = catalog.functions.values().flatten().find(|function| function.oid == oid);
    let types = function.iter().flat_map(|function| input_types(&function.parameters));
    format!("({})", types.map(ToString::to_string).collect::<Vec<_>>().join(","))
}

/// What in the catalog of a database of this name needs a role, in PostgreSQL's words.
fn uses(catalog: &Catalog, called: &str, role: Oid) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut objects = catalog.securables();
    objects.sort_by_key(|(_, oid, _)| *oid);
    for (class, oid, name) in objects {
        let Some(access) = catalog.access.get(&oid) else { continue };
        let is_found = name.schema.is_empty() || catalog.search_path.contains(&name.schema);
        let arguments = match class {
            Class::Function => arguments_of(catalog, oid),
            _ => String::new(),
        };
        let name = ObjectName { name: format!("{}{arguments}", name.name), ..name };
        let shown = match class {
            Class::Database => format!("database {called}"),
            _ if is_found => format!("{} {}", catalog.kind_of(class, &name), name.name),
            _ => format!("{} {}.{}", catalog.kind_of(class, &name), name.schema, name.name),
        };
        let grants = access.grants.iter().flatten();
        if access.owner == role {
            reasons.push(format!("owner of {shown}"));
        } else if grants.into_iter().any(|grant| grant.grantee == role || grant.grantor == role) {
            reasons.push(format!("privileges for {shown}"));
        }
    }
    for said in catalog.default_access.values() {
        let new = match said.class {
            Class::Table => "relations".to_string(),
            class => format!("{}s", class.word()),
        };
        let names_it = said.grants.iter().any(|grant| grant.grantee == role);
        if said.role == role || names_it {
            let of = if said.role == role { "owner of" } else { "privileges for" };
            let by = catalog.roles.get(said.role).map_or("postgres", |role| &role.name);
            let within = catalog.schemas.iter().find(|(_, oid)| **oid == said.schema);
            let within = within.map_or(String::new(), |(name, _)| format!(" in schema {name}"));
            reasons.push(format!("{of} default privileges on new {new} belonging to role {by}{within}"));
        }
    }
    reasons
}

/// What options make of a role.
fn apply(role: &mut Role, options: &RoleOptions) -> Result<()> {
    let flags = [
        (&mut role.is_superuser, options.is_superuser),
        (&mut role.inherits, options.inherits),
        (&mut role.creates_roles, options.creates_roles),
        (&mut role.creates_databases, options.creates_databases),
        (&mut role.can_login, options.can_login),
        (&mut role.replicates, options.replicates),
        (&mut role.bypasses_row_security, options.bypasses_row_security),
    ];
    for (flag, said) in flags {
        *flag = said.unwrap_or(*flag);
    }
    if let Some(limit) = options.connection_limit {
        role.connection_limit = i32::try_from(limit).ok().filter(|limit| *limit >= -1).ok_or_else(|| {
            Error::new(SqlState::INVALID_PARAMETER, format!("invalid connection limit: {limit}"))
        })?;
    }
    if let Some(password) = &options.password {
        role.verifier = password.as_deref().filter(|password| !password.is_empty()).map(verifier);
    }
    if let Some(until) = &options.valid_until {
        role.valid_until_us = moment(until)?;
    }
    Ok(())
}

/// The verifier of a password, or the one that is given in its place.
fn verifier(password: &str) -> String {
    match password.starts_with("SCRAM-SHA-256$") {
        true => password.to_string(),
        false => password::scram_sha_256(password.as_bytes()),
    }
}

/// Microseconds since 1970 in UTC; `None` for `infinity`.
fn moment(text: &str) -> Result<Option<i64>> {
    if text.trim().eq_ignore_ascii_case("infinity") {
        return Ok(None);
    }
    match text_format::read(text, &SqlType::TimestampTz, &TextStyle::default(), Fit::Store)? {
        Value::Timestamp(micros) => Ok(Some(micros)),
        _ => Ok(None),
    }
}

/// What statements about roles lock.
fn place_of_roles() -> ObjectName {
    ObjectName { schema: "pg_authid".into(), name: String::new() }
}
