//! Roles, what they own and what they may do, as `pg_catalog` and `information_schema` show it.

use super::row::{Row, array, number, text, truth, yes};
use crate::catalog::access::{Access, Grant, written};
use crate::catalog::role::{BOOTSTRAP, PUBLIC, Role};
use crate::catalog::{Oid, schema_shown};
use crate::functions::Environment;
use fabius_sql_syntax::privilege::{Class, Privilege};
use fabius_value::Value;
use std::sync::Arc;

/// The rows of a relation of `pg_catalog`; `None` if it is not about roles.
pub fn rows(name: &str, environment: &Environment) -> Option<Vec<Row>> {
    let catalog = environment.catalog.as_ref();
    let roles = || all(environment).into_iter();
    Some(match name {
        "pg_roles" => roles().map(|role| described(&role, text("********"))).collect(),
        "pg_authid" => roles().map(|role| described(&role, verifier(environment, &role))).collect(),
        "pg_user" => {
            roles().filter(|role| role.can_login).map(|role| user(&role, text("********"))).collect()
        }
        "pg_shadow" => {
            let users = roles().filter(|role| role.can_login);
            users.map(|role| user(&role, verifier(environment, &role))).collect()
        }
        "pg_group" => roles()
            .filter(|role| !role.can_login)
            .map(|role| {
                let members =
                    catalog.roles.iter().filter(|other| other.member_of.iter().any(|of| of.role == role.oid));
                let members = members.map(|member| number(member.oid));
                Row::of([
                    ("groname", text(role.name.clone())),
                    ("grosysid", number(role.oid)),
                    ("grolist", array(members)),
                ])
            })
            .collect(),
        "pg_auth_members" => roles().flat_map(|role| members(&role)).collect(),
        "pg_db_role_setting" => {
            let said = roles().filter(|role| !role.settings.is_empty());
            said.map(|role| Row::of([("setrole", number(role.oid)), ("setconfig", settings(&role))]))
                .collect()
        }
        "pg_default_acl" => catalog
            .default_access
            .values()
            .map(|said| {
                Row::of([
                    ("oid", number(said.oid)),
                    ("defaclrole", number(said.role)),
                    ("defaclnamespace", number(said.schema)),
                    ("defaclobjtype", text(said.class.letter())),
                    ("defaclacl", list(environment, &said.grants)),
                ])
            })
            .collect(),
        _ => return None,
    })
}

/// The rows of a relation of `information_schema`; `None` if it is not about roles.
pub fn standard_rows(name: &str, environment: &Environment) -> Option<Vec<Row>> {
    let (catalog, session) = (environment.catalog.as_ref(), environment.session.as_ref());
    let role = environment.role_named(&session.user()).unwrap_or(PUBLIC);
    Some(match name {
        "enabled_roles" => {
            let enabled =
                all(environment).into_iter().filter(|other| catalog.roles.is_member(role, other.oid));
            enabled.map(|role| Row::of([("role_name", text(role.name.clone()))])).collect()
        }
        "applicable_roles" => {
            let members =
                all(environment).into_iter().filter(|member| catalog.roles.is_member(role, member.oid));
            let rows = members.flat_map(|member| {
                let of = member.member_of.iter();
                let rows = of.map(|of| {
                    Row::of([
                        ("grantee", text(member.name.clone())),
                        ("role_name", text(environment.role_name(of.role))),
                        ("is_grantable", yes(of.admin)),
                    ])
                });
                rows.collect::<Vec<_>>()
            });
            rows.collect()
        }
        "table_privileges" | "role_table_grants" => table_privileges(environment, role),
        _ => return None,
    })
}

fn table_privileges(environment: &Environment, role: Oid) -> Vec<Row> {
    let catalog = environment.catalog.as_ref();
    let database = environment.session.database();
    let sees = |oid: Oid| oid == PUBLIC || catalog.roles.is_member(role, oid);
    let mut rows = Vec::new();
    for (class, oid, name) in catalog.securables() {
        if class != Class::Table {
            continue;
        }
        let access = catalog.access(class, oid);
        for grant in access.grants(class) {
            if !sees(grant.grantee) && !sees(grant.grantor) {
                continue;
            }
            for privilege in grant.privileges.iter() {
                let can_give = grant.options.has(privilege) || grant.grantee == access.owner;
                rows.push(
                    Row::of([
                        ("table_catalog", text(database.clone())),
                        ("table_schema", text(schema_shown(&name.schema))),
                        ("table_name", text(name.name.clone())),
                    ])
                    .with("grantor", text(environment.role_name(grant.grantor)))
                    .with("grantee", text(grantee(environment, grant.grantee)))
                    .with("privilege_type", text(privilege.word()))
                    .with("is_grantable", yes(can_give))
                    .with("with_hierarchy", yes(privilege == Privilege::Select)),
                );
            }
        }
    }
    rows
}

fn grantee(environment: &Environment, oid: Oid) -> String {
    if oid == PUBLIC { "PUBLIC".into() } else { environment.role_name(oid) }
}

/// All roles, the superuser of the beginning first.
fn all(environment: &Environment) -> Vec<Arc<Role>> {
    let first = Role {
        is_superuser: true,
        creates_roles: true,
        creates_databases: true,
        can_login: true,
        replicates: true,
        bypasses_row_security: true,
        ..Role::new(BOOTSTRAP, &environment.session.superuser())
    };
    std::iter::once(Arc::new(first)).chain(environment.catalog.roles.iter().cloned()).collect()
}

/// A role's verifier, which superusers see.
fn verifier(environment: &Environment, role: &Role) -> Value {
    let sees = environment.catalog.role == BOOTSTRAP;
    role.verifier.clone().filter(|_| sees).map_or(Value::Null, Value::Text)
}

fn until(role: &Role) -> Value {
    role.valid_until_us.map_or(Value::Null, Value::Timestamp)
}

fn settings(role: &Role) -> Value {
    match role.settings.is_empty() {
        true => Value::Null,
        false => array(role.settings.iter().map(|(name, value)| text(format!("{name}={value}")))),
    }
}

fn described(role: &Role, password: Value) -> Row {
    Row::of([
        ("oid", number(role.oid)),
        ("rolname", text(role.name.clone())),
        ("rolsuper", truth(role.is_superuser)),
        ("rolinherit", truth(role.inherits)),
        ("rolcreaterole", truth(role.creates_roles)),
        ("rolcreatedb", truth(role.creates_databases)),
        ("rolcanlogin", truth(role.can_login)),
        ("rolreplication", truth(role.replicates)),
        ("rolbypassrls", truth(role.bypasses_row_security)),
        ("rolconnlimit", number(role.connection_limit)),
        ("rolpassword", password),
        ("rolvaliduntil", until(role)),
        ("rolconfig", settings(role)),
    ])
}

fn user(role: &Role, password: Value) -> Row {
    Row::of([
        ("usename", text(role.name.clone())),
        ("usesysid", number(role.oid)),
        ("usecreatedb", truth(role.creates_databases)),
        ("usesuper", truth(role.is_superuser)),
        ("userepl", truth(role.replicates)),
        ("usebypassrls", truth(role.bypasses_row_security)),
        ("passwd", password),
        ("valuntil", until(role)),
        ("useconfig", settings(role)),
    ])
}

fn members(role: &Role) -> Vec<Row> {
    let of = role.member_of.iter();
    let rows = of.map(|of| {
        Row::of([
            ("roleid", number(of.role)),
            ("member", number(role.oid)),
            ("grantor", number(of.grantor)),
            ("admin_option", truth(of.admin)),
        ])
    });
    rows.collect()
}

/// What is granted, as an array of `aclitem`.
pub fn list(environment: &Environment, grants: &[Grant]) -> Value {
    let grants = grants.iter().filter(|grant| !grant.privileges.is_empty());
    array(grants.map(|grant| text(written(grant, |role| environment.role_name(role)))))
}

/// Who owns an object, and what is granted on it, where something was said.
pub fn owner_and_list(environment: &Environment, class: Class, oid: Oid) -> (Value, Value) {
    shown(environment, &environment.catalog.access(class, oid))
}

/// An owner, and what is granted, where something was said.
pub fn shown(environment: &Environment, access: &Access) -> (Value, Value) {
    let list = access.grants.as_ref().map_or(Value::Null, |grants| list(environment, grants));
    (number(access.owner), list)
}

/// The name of a relation's owner.
pub fn owner_name(environment: &Environment, oid: Oid) -> Value {
    text(environment.role_name(environment.catalog.access(Class::Table, oid).owner))
}
