//! Who owns what, and who may do what with it.
//!
//! Rules, defaults and the text of an access list are PostgreSQL's (its documentation, 5.7 "Privileges").

use super::role::{BOOTSTRAP, DATABASE_OWNER, PUBLIC, READ_ALL_DATA, WRITE_ALL_DATA};
use super::{Catalog, ObjectName, Oid, Relation, Sequence, Table};
use fabius_sql_syntax::identifier::quote_identifier;
use fabius_sql_syntax::lock_mode::LockMode;
use fabius_sql_syntax::privilege::{Class, Privilege, Privileges};
use fabius_value::{Error, Result, SqlState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What one role gave another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// To whom; [`PUBLIC`] for everybody.
    pub grantee: Oid,
    /// By whom.
    pub grantor: Oid,
    /// What.
    pub privileges: Privileges,
    /// What of it the grantee may give on.
    pub options: Privileges,
}

/// Who owns an object, and who else may do what with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Who owns it.
    pub owner: Oid,
    /// What was granted, what the owner may do among it; `None` if nothing was ever said.
    pub grants: Option<Vec<Grant>>,
}

/// What is granted on objects that are still to be made: `ALTER DEFAULT PRIVILEGES`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultAccess {
    /// The row's number.
    pub oid: Oid,
    /// Who makes them.
    pub role: Oid,
    /// In which schema; 0 for all.
    pub schema: Oid,
    /// What they are.
    pub class: Class,
    /// What is granted: all there is, or, in one schema, what is added to that.
    pub grants: Vec<Grant>,
}

/// What is granted on an object on which nothing was said.
pub fn usual_grants(class: Class, owner: Oid) -> Vec<Grant> {
    let of = |grantee, privileges| Grant { grantee, grantor: owner, privileges, options: Privileges::NONE };
    let public = Some(of(PUBLIC, class.public())).filter(|public| !public.privileges.is_empty());
    public.into_iter().chain([of(owner, class.privileges())]).collect()
}

impl Access {
    /// That of an object on which nothing was said.
    pub fn of(owner: Oid) -> Access {
        Access { owner, grants: None }
    }

    /// What is granted.
    pub fn grants(&self, class: Class) -> Vec<Grant> {
        self.grants.clone().unwrap_or_else(|| usual_grants(class, self.owner))
    }

    /// What some roles together may do, and what of it they may give on.
    pub fn of_roles(&self, class: Class, roles: &BTreeSet<Oid>) -> (Privileges, Privileges) {
        let mut all = (Privileges::NONE, Privileges::NONE);
        for grant in self.grants(class) {
            if grant.grantee == PUBLIC || roles.contains(&grant.grantee) {
                all = (all.0.or(grant.privileges), all.1.or(grant.options));
            }
        }
        if roles.contains(&self.owner) {
            all.1 = class.privileges();
        }
        all
    }
}

/// Adds to what is granted.
pub fn add(grants: &mut Vec<Grant>, more: Grant) {
    match grants.iter_mut().find(|old| (old.grantee, old.grantor) == (more.grantee, more.grantor)) {
        Some(old) => {
            old.privileges = old.privileges.or(more.privileges);
            old.options = old.options.or(more.options);
        }
        None => grants.push(more),
    }
}

/// Takes from what a role has granted; with `only_options`, only that it may be given on. What was given on is taken
/// back with it where `cascades` says so.
///
/// # Errors
/// `2BP01` if it was given on.
pub fn take_back(
    grants: &mut Vec<Grant>,
    owner: Oid,
    less: Grant,
    (only_options, cascades): (bool, bool),
) -> Result<()> {
    let is_it = |old: &&mut Grant| (old.grantee, old.grantor) == (less.grantee, less.grantor);
    let Some(old) = grants.iter_mut().find(is_it) else { return Ok(()) };
    let options = old.options.and(less.privileges);
    old.options = old.options.without(less.privileges);
    if !only_options {
        old.privileges = old.privileges.without(less.privileges);
    }
    grants.retain(|grant| !grant.privileges.is_empty());
    // What it may give on still, by another's grant.
    let left = grants.iter().filter(|grant| grant.grantee == less.grantee);
    let left = left.fold(Privileges::NONE, |left, grant| left.or(grant.options));
    let lost = options.without(left);
    if lost.is_empty() || less.grantee == owner {
        return Ok(());
    }
    let given: Vec<Grant> = grants.iter().filter(|grant| grant.grantor == less.grantee).copied().collect();
    for grant in given {
        let privileges = grant.privileges.and(lost);
        if privileges.is_empty() {
            continue;
        }
        if !cascades {
            return Err(Error::new(SqlState(*b"2BP01"), "dependent privileges exist")
                .with_hint("Use CASCADE to revoke them too."));
        }
        take_back(grants, owner, Grant { privileges, ..grant }, (false, true))?;
    }
    Ok(())
}

impl Catalog {
    /// Who owns an object, and who may do what with it.
    pub fn access(&self, class: Class, oid: Oid) -> Access {
        if let Some(access) = self.access.get(&oid) {
            return access.clone();
        }
        if class == Class::Schema && self.schemas.get("public") == Some(&oid) {
            let mut grants = usual_grants(class, DATABASE_OWNER);
            let privileges = Privileges::of(&[Privilege::Usage]);
            let public =
                Grant { grantee: PUBLIC, grantor: DATABASE_OWNER, privileges, options: Privileges::NONE };
            grants.push(public);
            return Access { owner: DATABASE_OWNER, grants: Some(grants) };
        }
        Access::of(BOOTSTRAP)
    }

    /// What is granted on a new object that a role makes, if anything is said of it beforehand.
    pub fn access_of_new(&self, class: Class, role: Oid, schema: Oid) -> Access {
        let said = |schema: Oid| {
            let mut all = self.default_access.values();
            all.find(|said| (said.role, said.schema, said.class) == (role, schema, class))
        };
        let (everywhere, there) = (said(0), if schema == 0 { None } else { said(schema) });
        if everywhere.is_none() && there.is_none() {
            return Access::of(role);
        }
        let mut grants = match everywhere {
            Some(said) => said.grants.clone(),
            None => usual_grants(class, role),
        };
        for more in there.iter().flat_map(|said| &said.grants) {
            add(&mut grants, *more);
        }
        grants.sort_by_key(|grant| (grant.grantee, grant.grantor));
        Access { owner: role, grants: Some(grants) }
    }

    /// The roles whose privileges a role has.
    pub fn acting(&self, role: Oid) -> BTreeSet<Oid> {
        let mut acting = self.roles.acting(role);
        if acting.contains(&self.access(Class::Database, self.database).owner) {
            acting.insert(DATABASE_OWNER);
        }
        acting
    }

    /// Whether a role may do something with an object.
    pub fn may(&self, role: Oid, class: Class, oid: Oid, privilege: Privilege) -> bool {
        if self.roles.is_superuser(role) {
            return true;
        }
        let acting = self.acting(role);
        let all_data = match (class, privilege) {
            (Class::Table | Class::Sequence, Privilege::Select) => Some(READ_ALL_DATA),
            (Class::Table, Privilege::Insert | Privilege::Update | Privilege::Delete)
            | (Class::Sequence, Privilege::Update) => Some(WRITE_ALL_DATA),
            _ => None,
        };
        let looks = class == Class::Schema && privilege == Privilege::Usage;
        all_data.is_some_and(|all| acting.contains(&all))
            || looks && (acting.contains(&READ_ALL_DATA) || acting.contains(&WRITE_ALL_DATA))
            || self.access(class, oid).of_roles(class, &acting).0.has(privilege)
    }

    /// Whether a role may do what only the owner may.
    pub fn owns(&self, role: Oid, class: Class, oid: Oid) -> bool {
        self.roles.is_superuser(role) || self.acting(role).contains(&self.access(class, oid).owner)
    }

    /// Refuses to do with a table, view or sequence what [who asks](Catalog::role) may not.
    ///
    /// # Errors
    /// `42501`
    pub fn require(&self, relation: &Relation<'_>, privilege: Privilege) -> Result<()> {
        self.require_as(self.role, relation, privilege)
    }

    /// As [`Catalog::require`], for another role: rows of a view are read by the view's owner.
    ///
    /// # Errors
    /// `42501`; `42809` if it is a materialized view that would be written.
    pub fn require_as(&self, role: Oid, relation: &Relation<'_>, privilege: Privilege) -> Result<()> {
        // A table that is only tried, before it is made, has no number.
        let may = role == BOOTSTRAP
            || relation.oid() == 0
            || self.may(role, relation.class(), relation.oid(), privilege);
        if !may {
            return Err(denied(relation.kind(), relation.short_name()));
        }
        let writes = matches!(privilege, Privilege::Insert | Privilege::Update | Privilege::Delete);
        match relation {
            Relation::Table(table) if writes && table.materialized.is_some() => {
                let message = format!("cannot change materialized view \"{}\"", table.name.name);
                Err(Error::new(SqlState(*b"42809"), message)
                    .with_hint("REFRESH MATERIALIZED VIEW brings it up to date"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses to count a sequence on.
    ///
    /// # Errors
    /// `42501`
    pub fn require_next(&self, role: Oid, sequence: &Arc<Sequence>) -> Result<()> {
        let relation = Relation::Sequence(sequence);
        match self.require_as(role, &relation, Privilege::Usage) {
            Err(_) => self.require_as(role, &relation, Privilege::Update),
            may => may,
        }
    }

    /// Refuses to tell what a sequence has given.
    ///
    /// # Errors
    /// `42501`
    pub fn require_current(&self, sequence: &Arc<Sequence>) -> Result<()> {
        let relation = Relation::Sequence(sequence);
        match self.require(&relation, Privilege::Usage) {
            Err(_) => self.require(&relation, Privilege::Select),
            may => may,
        }
    }

    /// Refuses a lock on a table that may not be taken: whoever only reads it takes the weakest alone.
    ///
    /// # Errors
    /// `42501`; `42809` on a materialized view.
    pub fn require_lock(&self, table: &Arc<Table>, mode: LockMode) -> Result<()> {
        if table.materialized.is_some() {
            let message = format!("cannot lock relation \"{}\"", table.name.name);
            return Err(Error::new(SqlState(*b"42809"), message)
                .with_detail("This operation is not supported for materialized views."));
        }
        let relation = Relation::Table(table);
        let writes = [Privilege::Update, Privilege::Delete, Privilege::Truncate];
        let may = |privilege| self.require(&relation, privilege).is_ok();
        let is_enough = writes.into_iter().any(may)
            || mode <= LockMode::RowExclusive && may(Privilege::Insert)
            || mode == LockMode::AccessShare && may(Privilege::Select);
        match is_enough {
            true => Ok(()),
            false => Err(denied("table", &table.name.name)),
        }
    }

    /// Refuses what only the owner of the object of a number may do; an index belongs to its table's.
    ///
    /// # Errors
    /// `42501`
    pub fn require_owner(&self, oid: Oid) -> Result<()> {
        self.require_owner_or(oid, false)
    }

    /// Refuses to drop an object unless who asks owns it, or the schema that it is in.
    ///
    /// # Errors
    /// `42501`
    pub fn require_to_drop(&self, oid: Oid) -> Result<()> {
        self.require_owner_or(oid, true)
    }

    fn require_owner_or(&self, oid: Oid, owner_of_schema: bool) -> Result<()> {
        if self.role == BOOTSTRAP {
            return Ok(());
        }
        let mut tables = self.tables.values();
        let index =
            tables.find_map(|table| table.keys().find(|key| key.oid == oid).map(|key| (table.oid, key)));
        let found = self
            .securables()
            .into_iter()
            .find(|(_, known, _)| *known == index.map_or(oid, |(table, _)| table));
        let Some((class, of, name)) = found else {
            return Err(Error::new(SqlState(*b"42501"), "must be superuser to change what the system has"));
        };
        let schema = self.schemas.get(&name.schema).filter(|_| owner_of_schema);
        let owns_schema = schema.is_some_and(|schema| self.owns(self.role, Class::Schema, *schema));
        if self.owns(self.role, class, of) || owns_schema {
            return Ok(());
        }
        let kind = if index.is_some() { "index" } else { self.kind_of(class, &name) };
        let name = index.map_or(name.name.as_str(), |(_, key)| key.name.as_str());
        Err(Error::new(SqlState(*b"42501"), format!("must be owner of {kind} {name}")))
    }

    /// What messages call an object.
    pub fn kind_of(&self, class: Class, name: &ObjectName) -> &'static str {
        let is_procedure =
            |functions: &Vec<Arc<super::Function>>| functions.iter().all(|one| one.is_procedure);
        match class {
            Class::Table => self.relation_named(name).map_or(class.word(), |relation| relation.kind()),
            Class::Function if self.functions.get(name).is_some_and(is_procedure) => "procedure",
            class => class.word(),
        }
    }

    /// Refuses what may not be done with the database.
    ///
    /// # Errors
    /// `42501`
    pub fn require_in_database(&self, privilege: Privilege, name: &str) -> Result<()> {
        match self.role == BOOTSTRAP || self.may(self.role, Class::Database, self.database, privilege) {
            true => Ok(()),
            false => Err(denied("database", name)),
        }
    }

    /// Refuses what may not be done in a schema.
    ///
    /// # Errors
    /// `42501`
    pub fn require_in_schema(&self, schema: &str, privilege: Privilege) -> Result<()> {
        match self.may_in_schema(schema, privilege) {
            true => Ok(()),
            false => Err(denied("schema", schema)),
        }
    }

    /// Whether who asks may do something in a schema.
    pub(super) fn may_in_schema(&self, schema: &str, privilege: Privilege) -> bool {
        let schema = self.schemas.get(schema);
        self.role == BOOTSTRAP || schema.is_none_or(|oid| self.may(self.role, Class::Schema, *oid, privilege))
    }

    /// Refuses to call a function that may not be called.
    ///
    /// # Errors
    /// `42501`
    pub fn require_call(&self, role: Oid, function: &super::Function) -> Result<()> {
        if role == BOOTSTRAP || self.may(role, Class::Function, function.oid, Privilege::Execute) {
            return Ok(());
        }
        let kind = if function.is_procedure { "procedure" } else { "function" };
        Err(denied(kind, &function.name.name))
    }

    /// What objects there are that have an owner or can be granted, with their names; the database without one, which
    /// its catalog does not know.
    pub fn securables(&self) -> Vec<(Class, Oid, ObjectName)> {
        let mut all = Vec::new();
        all.extend(self.tables.values().map(|table| (Class::Table, table.oid, table.name.clone())));
        all.extend(self.views.values().map(|view| (Class::Table, view.oid, view.name.clone())));
        all.extend(
            self.sequences.values().map(|sequence| (Class::Sequence, sequence.oid, sequence.name.clone())),
        );
        let functions = self.functions.values().flatten();
        all.extend(functions.map(|function| (Class::Function, function.oid, function.name.clone())));
        all.extend(self.enumerations.iter().map(|(name, of)| (Class::Type, of.oid, name.clone())));
        all.extend(self.domains.values().map(|domain| (Class::Type, domain.oid, domain.name.clone())));
        let schemas = self.schemas.iter().map(|(name, oid)| {
            (Class::Schema, *oid, ObjectName { schema: String::new(), name: name.clone() })
        });
        all.extend(schemas);
        let database = ObjectName { schema: String::new(), name: String::new() };
        all.push((Class::Database, self.database, database));
        all
    }
}

/// That something may not be done with an object.
pub fn denied(kind: &str, name: &str) -> Error {
    Error::new(SqlState(*b"42501"), format!("permission denied for {kind} {name}"))
}

/// One entry of an access list, as `aclitem` writes it; `name` says what a role is called.
pub fn written(grant: &Grant, name: impl Fn(Oid) -> String) -> String {
    let mut text = match grant.grantee {
        PUBLIC => String::new(),
        grantee => quote_identifier(&name(grantee)).to_string(),
    };
    text.push('=');
    for privilege in grant.privileges.iter() {
        text.push(privilege.letter());
        if grant.options.has(privilege) {
            text.push('*');
        }
    }
    text.push('/');
    text.push_str(&quote_identifier(&name(grant.grantor)));
    text
}

/// Reads what [`written`] writes; `role` finds a role by its name.
pub fn read(text: &str, role: impl Fn(&str) -> Option<Oid>) -> Option<Grant> {
    let (grantee, rest) = name_before(text, '=')?;
    let (letters, grantor) = rest.split_once('/')?;
    let (grantor, _) = name_before(grantor, '\0')?;
    let (mut privileges, mut options) = (Vec::new(), Vec::new());
    for letter in letters.chars() {
        match letter {
            '*' => options.push(*privileges.last()?),
            letter => {
                privileges.push(Privilege::ALL.into_iter().find(|privilege| privilege.letter() == letter)?);
            }
        }
    }
    let grantee = if grantee.is_empty() { PUBLIC } else { role(&grantee)? };
    let (privileges, options) = (Privileges::of(&privileges), Privileges::of(&options));
    Some(Grant { grantee, grantor: role(&grantor)?, privileges, options })
}

/// A name, perhaps in quotes, up to a character that ends it, and what stands behind that; or all of the text.
fn name_before(text: &str, end: char) -> Option<(String, &str)> {
    let (mut name, mut is_quoted) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == end && !is_quoted => return Some((name, &text[at + c.len_utf8()..])),
            c => name.push(c),
        }
    }
    (end == '\0' && !is_quoted).then_some((name, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_sql_syntax::privilege::Privilege::{Insert, Select};

    const OWNER: Oid = 20_000;

    fn grant(grantee: Oid, grantor: Oid, privileges: &[Privilege], options: &[Privilege]) -> Grant {
        Grant { grantee, grantor, privileges: Privileges::of(privileges), options: Privileges::of(options) }
    }

    #[test]
    fn what_was_given_on_goes_with_what_it_was_given_by() {
        let mut grants = usual_grants(Class::Table, OWNER);
        add(&mut grants, grant(20_001, OWNER, &[Select, Insert], &[Select]));
        add(&mut grants, grant(20_002, 20_001, &[Select], &[Select]));
        add(&mut grants, grant(20_003, 20_002, &[Select], &[]));
        let less = grant(20_001, OWNER, &[Select], &[]);
        let error = take_back(&mut grants.clone(), OWNER, less, (true, false)).unwrap_err();
        assert_eq!(error.state(), SqlState(*b"2BP01"));
        take_back(&mut grants, OWNER, less, (false, true)).unwrap();
        let left: Vec<Oid> = grants.iter().map(|grant| grant.grantee).collect();
        assert_eq!(left, [OWNER, 20_001]);
        assert_eq!(grants[1].privileges, Privileges::of(&[Insert]));
    }

    #[test]
    fn access_lists_are_written_as_postgresql_writes_them() {
        let name = |oid: Oid| if oid == OWNER { "the owner".to_string() } else { "app".to_string() };
        let one = grant(20_001, OWNER, &[Select, Insert], &[Insert]);
        assert_eq!(written(&one, name), "app=a*r/\"the owner\"");
        let public = grant(PUBLIC, OWNER, &[Select], &[]);
        assert_eq!(written(&public, name), "=r/\"the owner\"");
        let known = |called: &str| [OWNER, 20_001].into_iter().find(|oid| name(*oid) == called);
        for grant in [one, public] {
            assert_eq!(read(&written(&grant, name), known), Some(grant));
        }
        for wrong in ["", "app", "app=q/app", "app=*/app", "nobody=r/app", "app=r/nobody", "app=r/\"app"] {
            assert_eq!(read(wrong, known), None, "{wrong}");
        }
    }
}
