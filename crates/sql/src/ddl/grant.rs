//! `GRANT`, `REVOKE`, `ALTER DEFAULT PRIVILEGES`, `ALTER ... OWNER TO`: who owns what, and who may do what with it.

use crate::connection::Connection;
use crate::connection::sql_database::Perspective;
use fabius_sql_meaning::catalog::access::{self, Access, DefaultAccess, Grant, usual_grants};
use fabius_sql_meaning::catalog::role::{BOOTSTRAP, PUBLIC};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Oid, Relation, TEMPORARY, input_types, parts};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::command::RoleName;
use fabius_sql_syntax::command::{Granting, Objects, Securable};
use fabius_sql_syntax::privilege::{Class, Privilege, Privileges};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::BTreeSet;

/// An object that a statement names.
struct Found {
    class: Class,
    oid: Oid,
    /// What messages call its kind.
    kind: &'static str,
    name: String,
    /// Where it is; empty for what is in no schema.
    schema: String,
}

impl Connection {
    /// Who owns what is made: noted unless it is the superuser of the beginning, and nothing else is said.
    pub(crate) fn note_owner(&mut self, change: &Change, is_temporary: bool) {
        let Some(object) = &change.object else { return };
        let (class, oid, schema) = match object {
            Object::Table(table) => (Class::Table, table.oid, table.name.schema.clone()),
            Object::View(view) => (Class::Table, view.oid, view.name.schema.clone()),
            Object::Sequence(sequence) => (Class::Sequence, sequence.oid, sequence.name.schema.clone()),
            Object::Function(function) => (Class::Function, function.oid, function.name.schema.clone()),
            Object::Enumeration(of) => (Class::Type, of.oid, Catalog::name_of(of).schema),
            Object::Domain(domain) => (Class::Type, domain.oid, domain.name.schema.clone()),
            Object::Schema(oid, _) => (Class::Schema, *oid, String::new()),
            Object::Database(oid, _) => (Class::Database, *oid, String::new()),
            _ => return,
        };
        let catalog = self.catalog();
        let role = self.current_role();
        if role == BOOTSTRAP && catalog.default_access.is_empty() {
            return;
        }
        let is_known = catalog.securables().iter().any(|(_, known, _)| *known == oid)
            || self.database().databases().iter().any(|(known, _)| *known == oid);
        if is_known {
            return;
        }
        let within = catalog.schemas.get(&schema).copied().unwrap_or_default();
        let access = catalog.access_of_new(class, role, within);
        if access == Access::of(BOOTSTRAP) {
            return;
        }
        self.put_access((class, oid), access, is_temporary);
    }

    fn put_access(&mut self, (class, oid): (Class, Oid), access: Access, is_temporary: bool) {
        let object = Object::Access(oid, access);
        let object = match class {
            // Another database's own catalog says whose it is.
            Class::Database if oid != self.within() => Object::Within(oid, Box::new(object)),
            _ => object,
        };
        self.record(Change::from(object), is_temporary);
    }

    /// Who may do what with an object.
    fn access_of(&mut self, (class, oid): (Class, Oid)) -> Access {
        let catalog = self.catalog();
        match class {
            Class::Database if oid != catalog.database => {
                self.database().catalog(oid, Perspective::along(&[])).access(class, oid)
            }
            _ => catalog.access(class, oid),
        }
    }

    fn find_securable(&mut self, of: &Securable) -> Result<Found> {
        let catalog = self.catalog();
        match of {
            Securable::Relation(name) => {
                let relation = catalog.relation(name)?.ok_or_else(|| catalog.missing("relation", name))?;
                Ok(found_relation(&relation))
            }
            Securable::Sequence(name) => {
                let sequence = catalog.sequence(name)?;
                Ok(found_relation(&Relation::Sequence(sequence)))
            }
            Securable::Schema(name) => {
                let oid = catalog.schemas.get(name).copied().ok_or_else(|| {
                    Error::new(SqlState(*b"3F000"), format!("schema \"{name}\" does not exist"))
                })?;
                Ok(Found {
                    class: Class::Schema,
                    oid,
                    kind: "schema",
                    name: name.clone(),
                    schema: String::new(),
                })
            }
            Securable::Database(name) => {
                let oid = self.database().known_database(name).ok_or_else(|| {
                    Error::new(SqlState(*b"3D000"), format!("database \"{name}\" does not exist"))
                })?;
                let class = Class::Database;
                Ok(Found { class, oid, kind: "database", name: name.clone(), schema: String::new() })
            }
            Securable::Type(name) => find_type(&catalog, name),
            Securable::Function(name, types) => find_function(&catalog, name, types.as_deref()),
        }
    }

    /// `GRANT`, `REVOKE`, `ALTER DEFAULT PRIVILEGES`
    pub(super) fn grant(&mut self, granting: &Granting) -> Result<String> {
        let grantees =
            granting.grantees.iter().map(|name| self.grantee(name)).collect::<Result<Vec<Oid>>>()?;
        if granting.gives && granting.option && grantees.contains(&PUBLIC) {
            let message = "grant options can only be granted to roles";
            return Err(Error::new(SqlState(*b"0LP01"), message));
        }
        let wanted = match &granting.privileges {
            None => granting.class.privileges(),
            Some(list) => Privileges::of(list),
        };
        let found = match &granting.objects {
            Objects::Future(roles, schemas) => {
                self.grant_future(granting, (roles, schemas), &grantees, wanted)?;
                return Ok("ALTER DEFAULT PRIVILEGES".into());
            }
            Objects::Named(named) => {
                named.iter().map(|of| self.find_securable(of)).collect::<Result<Vec<Found>>>()?
            }
            Objects::AllIn(schemas) => self.all_in(granting.class, schemas)?,
        };
        for object in found {
            self.grant_on(granting, &object, &grantees, wanted)?;
        }
        Ok(if granting.gives { "GRANT" } else { "REVOKE" }.into())
    }

    fn all_in(&mut self, class: Class, schemas: &[String]) -> Result<Vec<Found>> {
        let catalog = self.catalog();
        let mut all = Vec::new();
        for schema in schemas {
            if !catalog.has_schema(schema) {
                return Err(Error::new(SqlState(*b"3F000"), format!("schema \"{schema}\" does not exist")));
            }
            for (of, oid, name) in catalog.securables() {
                if of == class && name.schema == *schema {
                    let (kind, schema) = (catalog.kind_of(class, &name), schema.clone());
                    all.push(Found { class, oid, kind, name: name.name, schema });
                }
            }
        }
        Ok(all)
    }

    fn grant_on(
        &mut self,
        granting: &Granting,
        object: &Found,
        grantees: &[Oid],
        wanted: Privileges,
    ) -> Result<()> {
        // A sequence can be named as a table: then what a sequence does not have means nothing.
        let class = object.class;
        let wanted = match (&granting.privileges, granting.class == class) {
            (None, false) => class.privileges(),
            (Some(_), false) => wanted.and(class.privileges()),
            _ => wanted,
        };
        if let Some(other) = wanted.without(class.privileges()).iter().next() {
            let message = format!("invalid privilege type {} for {}", other.word(), class.word());
            return Err(Error::new(SqlState(*b"0LP01"), message));
        }
        let mut access = self.access_of((class, object.oid));
        let (grantor, able) = self.grantor(&access, class);
        let given = wanted.and(able);
        if given.is_empty() && !wanted.is_empty() {
            let acting = self.acting();
            if access.of_roles(class, &acting).0.is_empty() {
                return Err(access::denied(object.kind, &object.name));
            }
        }
        if given != wanted && granting.privileges.is_some() || given.is_empty() {
            let verb = if granting.gives { "granted" } else { "revoked" };
            let state = if granting.gives { b"01007" } else { b"01006" };
            let message = match given.is_empty() {
                true if granting.gives => format!("no privileges were granted for \"{}\"", object.name),
                true => format!("no privileges could be revoked for \"{}\"", object.name),
                false if granting.gives => format!("not all privileges were {verb} for \"{}\"", object.name),
                false => format!("not all privileges could be {verb} for \"{}\"", object.name),
            };
            self.session.warn(state, &message);
        }
        let mut grants = access.grants(class);
        change(&mut grants, access.owner, (grantor, granting), grantees, given)?;
        access.grants = Some(grants);
        self.put_access((class, object.oid), access, object.schema == TEMPORARY);
        Ok(())
    }

    fn acting(&mut self) -> BTreeSet<Oid> {
        let role = self.current_role();
        self.catalog().acting(role)
    }

    /// As whom the current role grants on an object, and what it can grant.
    fn grantor(&mut self, access: &Access, class: Class) -> (Oid, Privileges) {
        let (role, roles, acting) = (self.current_role(), self.roles(), self.acting());
        if roles.is_superuser(role) || acting.contains(&access.owner) {
            return (access.owner, class.privileges());
        }
        let options = |role: Oid| access.of_roles(class, &BTreeSet::from([role])).1;
        let best = acting.into_iter().max_by_key(|role| options(*role).iter().count()).unwrap_or(role);
        (best, options(best))
    }

    fn grant_future(
        &mut self,
        granting: &Granting,
        (roles, schemas): (&[RoleName], &[String]),
        grantees: &[Oid],
        wanted: Privileges,
    ) -> Result<()> {
        let current = self.current_role();
        let of = match roles {
            [] => vec![current],
            named => named.iter().map(|name| self.named_role(name)).collect::<Result<Vec<Oid>>>()?,
        };
        let all = self.roles();
        for role in of {
            if !all.is_member(current, role) {
                let message = "permission denied to change default privileges";
                return Err(Error::new(SqlState(*b"42501"), message));
            }
            if schemas.is_empty() {
                self.grant_future_in(granting, (role, 0), grantees, wanted)?;
            }
            if !schemas.is_empty() && granting.class == Class::Schema {
                let message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS";
                return Err(Error::new(SqlState(*b"0LP01"), message));
            }
            for schema in schemas {
                let found = self.find_securable(&Securable::Schema(schema.clone()))?;
                self.grant_future_in(granting, (role, found.oid), grantees, wanted)?;
            }
        }
        Ok(())
    }

    fn grant_future_in(
        &mut self,
        granting: &Granting,
        (role, schema): (Oid, Oid),
        grantees: &[Oid],
        wanted: Privileges,
    ) -> Result<()> {
        let (catalog, class) = (self.catalog(), granting.class);
        let mut said = catalog.default_access.values();
        let earlier = said.find(|said| (said.role, said.schema, said.class) == (role, schema, class));
        let mut usual = if schema == 0 { usual_grants(class, role) } else { Vec::new() };
        usual.sort_by_key(|grant| (grant.grantee, grant.grantor));
        let mut grants = earlier.map_or_else(|| usual.clone(), |said| said.grants.clone());
        change(&mut grants, role, (role, granting), grantees, wanted)?;
        grants.sort_by_key(|grant| (grant.grantee, grant.grantor));
        let oid = earlier.map(|said| said.oid);
        let is_usual = grants == usual;
        match oid {
            Some(oid) if is_usual => self.record(Change::gone(oid), false),
            None if is_usual => {}
            _ => {
                let oid = oid.unwrap_or_else(|| self.database().new_oid());
                let said = DefaultAccess { oid, role, schema, class, grants };
                self.record(Change::from(Object::DefaultAccess(said)), false);
            }
        }
        Ok(())
    }

    /// # Errors
    /// `42501` unless the current role may act as another.
    pub(super) fn require_member(&mut self, of: Oid) -> Result<()> {
        let (current, roles) = (self.current_role(), self.roles());
        match roles.is_member(current, of) {
            true => Ok(()),
            false => {
                let message = format!("must be member of role \"{}\"", self.role_name(of));
                Err(Error::new(SqlState(*b"42501"), message))
            }
        }
    }

    /// The role that something new is to belong to.
    ///
    /// # Errors
    /// `42704` if there is none, `42501` if the current role may not act as it.
    pub(super) fn role_to_own(&mut self, name: &RoleName) -> Result<Oid> {
        let role = self.named_role(name)?;
        self.require_member(role)?;
        Ok(role)
    }

    /// `ALTER ... OWNER TO`
    pub(super) fn change_owner(
        &mut self,
        tag: &str,
        if_exists: bool,
        of: &Securable,
        to: &RoleName,
    ) -> Result<String> {
        let found = match self.find_securable(of) {
            Err(error) if if_exists && error.state() == SqlState::UNDEFINED_TABLE => {
                let message = format!("{}, skipping", error.message());
                self.session.notice(Error::new(SqlState(*b"00000"), message));
                return Ok(tag.into());
            }
            found => found?,
        };
        let to = self.named_role(to)?;
        if found.kind == "index" {
            self.session.warn(b"42809", &format!("cannot change owner of index \"{}\"", found.name));
            return Ok(tag.into());
        }
        let (current, roles) = (self.current_role(), self.roles());
        let access = self.access_of((found.class, found.oid));
        if access.owner == to {
            return Ok(tag.into());
        }
        if !roles.is_superuser(current) {
            if !self.acting().contains(&access.owner) {
                let message = format!("must be owner of {} {}", found.kind, found.name);
                return Err(Error::new(SqlState(*b"42501"), message));
            }
            self.require_member(to)?;
            let catalog = self.catalog();
            if let Some(schema) = catalog.schemas.get(&found.schema)
                && !catalog.may(to, Class::Schema, *schema, Privilege::Create)
            {
                return Err(access::denied("schema", &found.schema));
            }
        }
        self.give_to(found.class, found.oid, to);
        Ok(tag.into())
    }

    /// An object gets another owner, who has granted what the one before had. Sequences follow their tables.
    pub(super) fn give_to(&mut self, class: Class, oid: Oid, to: Oid) {
        let mut access = self.access_of((class, oid));
        let from = std::mem::replace(&mut access.owner, to);
        if let Some(grants) = access.grants.take() {
            let mut moved = Vec::new();
            let now = |role: Oid| if role == from { to } else { role };
            for grant in grants {
                let (grantee, grantor) = (now(grant.grantee), now(grant.grantor));
                access::add(&mut moved, Grant { grantee, grantor, ..grant });
            }
            access.grants = Some(moved);
        }
        let catalog = self.catalog();
        let table = catalog.table_of_oid(oid).filter(|_| class == Class::Table);
        let is_temporary = table.is_some_and(|table| table.is_temporary());
        self.put_access((class, oid), access, is_temporary);
        let Some(table) = table else { return };
        for sequence in catalog.sequences.values() {
            if sequence.owner.as_ref().is_some_and(|(owner, _)| *owner == table.name) {
                self.give_to(Class::Sequence, sequence.oid, to);
            }
        }
    }

    /// `DROP OWNED`: nothing is granted to some roles any more, in this database.
    pub(super) fn revoke_all(&mut self, roles: &[Oid]) -> Result<()> {
        let catalog = self.catalog();
        for (class, oid, name) in catalog.securables() {
            let Some(mut access) = catalog.access.get(&oid).cloned() else { continue };
            let Some(mut grants) = access.grants.clone() else { continue };
            let theirs =
                grants.iter().filter(|grant| grant.grantee != access.owner && roles.contains(&grant.grantee));
            for less in theirs.copied().collect::<Vec<_>>() {
                access::take_back(&mut grants, access.owner, less, (false, true))?;
            }
            if access.grants.as_ref() != Some(&grants) {
                access.grants = Some(grants);
                self.put_access((class, oid), access, name.schema == TEMPORARY);
            }
        }
        for said in catalog.default_access.values() {
            let mut said = said.clone();
            let before = said.grants.len();
            said.grants.retain(|grant| !roles.contains(&grant.grantee));
            if roles.contains(&said.role) {
                self.record(Change::gone(said.oid), false);
            } else if said.grants.len() != before {
                self.record(Change::from(Object::DefaultAccess(said)), false);
            }
        }
        Ok(())
    }

    /// `DROP OWNED`: what belongs to some roles is gone.
    pub(super) async fn drop_all_of(&mut self, roles: &[Oid], cascades: bool) -> Result<()> {
        let catalog = self.catalog();
        let theirs = |class: Class, oid: Oid| roles.contains(&catalog.access(class, oid).owner);
        let ident = |name: &str| ast::ObjectNamePart::Identifier(ast::Ident::with_quote('"', name));
        let full = |name: &ObjectName| ast::ObjectName(vec![ident(&name.schema), ident(&name.name)]);
        let mut found: [(ast::ObjectType, Vec<ast::ObjectName>); 5] = [
            (ast::ObjectType::View, Vec::new()),
            (ast::ObjectType::MaterializedView, Vec::new()),
            (ast::ObjectType::Table, Vec::new()),
            (ast::ObjectType::Sequence, Vec::new()),
            (ast::ObjectType::Schema, Vec::new()),
        ];
        for (class, oid, name) in catalog.securables() {
            if !theirs(class, oid) {
                continue;
            }
            match class {
                Class::Table if catalog.views.contains_key(&name) => found[0].1.push(full(&name)),
                Class::Table
                    if catalog.table_of_oid(oid).is_some_and(|table| table.materialized.is_some()) =>
                {
                    found[1].1.push(full(&name));
                }
                Class::Table => found[2].1.push(full(&name)),
                Class::Sequence => {
                    let owner = catalog.sequences.get(&name).and_then(|sequence| sequence.owner.as_ref());
                    let goes_along = owner.and_then(|(table, _)| catalog.tables.get(table));
                    if goes_along.is_none_or(|table| !theirs(Class::Table, table.oid)) {
                        found[3].1.push(full(&name));
                    }
                }
                Class::Schema => found[4].1.push(ast::ObjectName(vec![ident(&name.name)])),
                Class::Function => self.record_gone(oid, false),
                Class::Type | Class::Database => {}
            }
        }
        for (kind, names) in &found {
            if !names.is_empty() {
                self.drop_objects(kind, true, names, cascades).await?;
            }
        }
        for (class, oid, name) in catalog.securables() {
            if class == Class::Type && theirs(class, oid) {
                let catalog = self.catalog();
                if let Some(domain) = catalog.domains.get(&name).cloned() {
                    self.drop_domain(&domain, cascades).await?;
                } else if let Some(of) = catalog.enumerations.get(&name).cloned() {
                    self.drop_type(&of, cascades).await?;
                }
            }
        }
        Ok(())
    }
}

/// Gives or takes privileges.
fn change(
    grants: &mut Vec<Grant>,
    owner: Oid,
    (grantor, granting): (Oid, &Granting),
    grantees: &[Oid],
    privileges: Privileges,
) -> Result<()> {
    for grantee in grantees {
        let options = if granting.gives && granting.option { privileges } else { Privileges::NONE };
        let grant = Grant { grantee: *grantee, grantor, privileges, options };
        if privileges.is_empty() {
            continue;
        }
        match granting.gives {
            true => access::add(grants, grant),
            false => access::take_back(grants, owner, grant, (granting.option, granting.cascades))?,
        }
    }
    Ok(())
}

fn found_relation(relation: &Relation<'_>) -> Found {
    Found {
        class: relation.class(),
        oid: relation.oid(),
        kind: relation.kind(),
        name: relation.short_name().to_string(),
        schema: relation.name().schema.clone(),
    }
}

fn find_type(catalog: &Catalog, name: &ast::ObjectName) -> Result<Found> {
    let (schema, short) = parts(name)?;
    for name in catalog.candidates(schema.as_deref(), &short) {
        let domain = catalog.domains.get(&name).map(|domain| domain.oid);
        let oid = domain.or_else(|| catalog.enumerations.get(&name).map(|of| of.oid));
        if let Some(oid) = oid {
            return Ok(Found { class: Class::Type, oid, kind: "type", name: name.name, schema: name.schema });
        }
    }
    Err(Error::new(SqlState(*b"42704"), format!("type \"{name}\" does not exist")))
}

fn find_function(
    catalog: &Catalog,
    name: &ast::ObjectName,
    types: Option<&[ast::DataType]>,
) -> Result<Found> {
    let types = match types {
        Some(types) => Some(types.iter().map(|of| catalog.type_of(of)).collect::<Result<Vec<SqlType>>>()?),
        None => None,
    };
    let all = catalog.functions_named(name)?;
    let mut fitting = all.iter().filter(|function| {
        types.as_ref().is_none_or(|types| input_types(&function.parameters).eq(types.iter()))
    });
    let shown = || match &types {
        Some(types) => {
            let types: Vec<String> = types.iter().map(ToString::to_string).collect();
            format!("function {name}({}) does not exist", types.join(", "))
        }
        None => format!("could not find a function named \"{name}\""),
    };
    let Some(function) = fitting.next() else {
        return Err(Error::new(SqlState::UNDEFINED_FUNCTION, shown()));
    };
    if fitting.next().is_some() {
        return Err(Error::new(SqlState(*b"42725"), format!("function name \"{name}\" is not unique"))
            .with_hint("Specify the argument list to select the function unambiguously."));
    }
    Ok(Found {
        class: Class::Function,
        oid: function.oid,
        kind: if function.is_procedure { "procedure" } else { "function" },
        name: function.name.name.clone(),
        schema: function.name.schema.clone(),
    })
}
