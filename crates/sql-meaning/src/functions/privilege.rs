//! Functions about roles and what they may do: `has_table_privilege`, `pg_has_role`, ...

use super::{Call, Definition, array_of, define, elements_at, integer_at, text_at};
use crate::catalog::access::{Grant, read, usual_grants};
use crate::catalog::role::PUBLIC;
use crate::catalog::{Catalog, ObjectName, Oid, name_of_text, parts};
use crate::pg_catalog::roles;
use fabius_sql_syntax::identifier::quote_identifier;
use fabius_sql_syntax::privilege::{Class, Privilege};
use fabius_value::{Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("current_user() name stable", current_user),
        define("current_role() name stable", current_user),
        define("user() name stable", current_user),
        define("session_user() name stable", |_, c| Ok(Value::Text(c.environment.session.session_user()))),
        define("pg_get_userbyid(oid) name stable", |a, c| {
            Ok(Value::Text(c.environment.role_name(oid_at(a, 0))))
        }),
        define("fabius_role_oid(text) oid stable", |a, c| {
            let name = role_of_text(text_at(a, 0));
            c.environment.role_named(&name).map(number).ok_or_else(|| no_role(&name))
        }),
        define("to_regrole(text) oid stable", |a, c| {
            Ok(c.environment.role_named(&role_of_text(text_at(a, 0))).map_or(Value::Null, number))
        }),
        define("fabius_role_name(oid) text stable", |a, c| {
            let known = oid_at(a, 0);
            let name = match known {
                0 => "-".to_string(),
                known => c.environment.role_name(known),
            };
            Ok(Value::Text(match name.starts_with("unknown (") {
                true => known.to_string(),
                false if known == 0 => name,
                false => quote_identifier(&name),
            }))
        }),
        define("acldefault(text, oid) text[] stable", |a, c| {
            let letter = text_at(a, 0);
            // Of sequences, the letter is another one here than that of their default privileges.
            let class = Class::ALL.into_iter().find(|class| match class {
                Class::Sequence => letter == "s",
                class => letter == class.letter().to_string(),
            });
            Ok(class
                .map_or(Value::Null, |class| roles::list(&c.environment, &usual_grants(class, oid_at(a, 1)))))
        }),
        // Behind `aclexplode`: what each entry of an access list says.
        define("fabius_acl_grantors(text[]) oid[] stable", |a, c| {
            exploded(a, c, |grant, _| number(grant.grantor))
        }),
        define("fabius_acl_grantees(text[]) oid[] stable", |a, c| {
            exploded(a, c, |grant, _| number(grant.grantee))
        }),
        define("fabius_acl_privileges(text[]) text[] stable", |a, c| {
            exploded(a, c, |_, privilege| Value::Text(privilege.word().to_string()))
        }),
        define("fabius_acl_options(text[]) bool[] stable", |a, c| {
            exploded(a, c, |grant, privilege| Value::Boolean(grant.options.has(privilege)))
        }),
        define("pg_has_role(any...) bool stable", has_role),
        define("has_table_privilege(any...) bool stable", |a, c| has(Class::Table, a, c)),
        define("has_any_column_privilege(any...) bool stable", |a, c| has(Class::Table, a, c)),
        define("has_sequence_privilege(any...) bool stable", |a, c| has(Class::Sequence, a, c)),
        define("has_schema_privilege(any...) bool stable", |a, c| has(Class::Schema, a, c)),
        define("has_database_privilege(any...) bool stable", |a, c| has(Class::Database, a, c)),
        define("has_function_privilege(any...) bool stable", |a, c| has(Class::Function, a, c)),
        define("has_type_privilege(any...) bool stable", |a, c| has(Class::Type, a, c)),
        // Nothing is granted on columns: what holds of the table holds of each.
        define("has_column_privilege(any...) bool stable", |a, c| {
            let mut arguments = a.to_vec();
            let column = arguments.len().checked_sub(2).filter(|at| *at > 0);
            column.map(|at| arguments.remove(at));
            has(Class::Table, &arguments, c)
        }),
    ];
    for name in ["language", "tablespace", "foreign_data_wrapper", "server", "parameter"] {
        let signature = format!("has_{name}_privilege(any...) bool stable");
        all.push(define(&signature, |_, _| Ok(Value::Boolean(true))));
    }
    all
}

fn current_user(_: &[Value], call: &Call) -> Result<Value> {
    Ok(Value::Text(call.environment.session.user()))
}

fn number(oid: Oid) -> Value {
    Value::BigInt(oid.into())
}

fn oid_at(arguments: &[Value], at: usize) -> Oid {
    Oid::try_from(integer_at(arguments, at)).unwrap_or_default()
}

fn no_role(name: &str) -> Error {
    Error::new(SqlState(*b"42704"), format!("role \"{name}\" does not exist"))
}

/// The name of a role as a text writes it: folded unless it is quoted.
fn role_of_text(text: &str) -> String {
    name_of_text(text).and_then(|name| parts(&name)).map_or_else(|_| text.to_string(), |(_, name)| name)
}

/// Something of each privilege of an access list.
fn exploded(arguments: &[Value], call: &Call, part: impl Fn(&Grant, Privilege) -> Value) -> Result<Value> {
    let mut parts = Vec::new();
    for entry in elements_at(arguments, 0) {
        let Value::Text(text) = &entry else { continue };
        let grant = read(text, |name| call.environment.role_named(name)).ok_or_else(|| {
            Error::new(SqlState::INVALID_TEXT, format!("invalid input syntax for type aclitem: \"{text}\""))
        })?;
        parts.extend(grant.privileges.iter().map(|privilege| part(&grant, privilege)));
    }
    Ok(array_of(parts))
}

/// The role that an argument names, by its name or number.
fn role(argument: &Value, call: &Call) -> Result<Oid> {
    match argument {
        Value::Text(name) if name == "public" => Ok(PUBLIC),
        Value::Text(name) => call.environment.role_named(name).ok_or_else(|| no_role(name)),
        number => Ok(number.as_integer().and_then(|number| Oid::try_from(number).ok()).unwrap_or(Oid::MAX)),
    }
}

/// The role that is asked about, and the arguments behind it: the current one if there are only `usual` of them.
fn asked<'a>(arguments: &'a [Value], usual: usize, call: &Call) -> Result<(Oid, &'a [Value])> {
    match arguments.len().checked_sub(usual) {
        Some(0) => {
            let name = call.environment.session.user();
            Ok((call.environment.role_named(&name).unwrap_or(Oid::MAX), arguments))
        }
        Some(1) => Ok((role(&arguments[0], call)?, &arguments[1..])),
        _ => Err(Error::new(SqlState::UNDEFINED_FUNCTION, "no function of this name has so many arguments")),
    }
}

/// `pg_has_role([user,] role, 'MEMBER' | 'USAGE')`
fn has_role(arguments: &[Value], call: &Call) -> Result<Value> {
    let (who, rest) = asked(arguments, 2, call)?;
    let of = role(&rest[0], call)?;
    let catalog = &call.environment.catalog;
    let mut has = false;
    for word in text_at(rest, 1).split(',') {
        let word = word.trim().to_uppercase();
        has |= match word.as_str() {
            "MEMBER" => catalog.roles.is_member(who, of),
            "USAGE" => catalog.roles.is_superuser(who) || catalog.acting(who).contains(&of),
            "MEMBER WITH GRANT OPTION"
            | "MEMBER WITH ADMIN OPTION"
            | "USAGE WITH GRANT OPTION"
            | "USAGE WITH ADMIN OPTION" => catalog.roles.may_admit(who, of),
            _ => return Err(unknown_privilege(&word)),
        };
    }
    Ok(Value::Boolean(has))
}

fn unknown_privilege(word: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("unrecognized privilege type: \"{word}\""))
}

/// `has_..._privilege([user,] object, privileges)`: whether it has one of them; null for an object that there is not.
fn has(class: Class, arguments: &[Value], call: &Call) -> Result<Value> {
    let (who, rest) = asked(arguments, 2, call)?;
    let catalog = &call.environment.catalog;
    let found = match &rest[0] {
        Value::Text(name) => Some(find(class, name, call)?),
        number => known(class, number.as_integer().unwrap_or_default(), catalog),
    };
    let mut has = false;
    for word in text_at(rest, 1).split(',') {
        let word = word.trim();
        let upper = word.to_uppercase();
        let (plain, with_option) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(plain) => (plain, true),
            None => (upper.as_str(), false),
        };
        let privilege = Privilege::of_word(plain).filter(|one| {
            class.privileges().has(*one) || class == Class::Table && Class::Sequence.privileges().has(*one)
        });
        let privilege = privilege.ok_or_else(|| unknown_privilege(word))?;
        let Some((class, oid)) = found else { continue };
        has |= match with_option {
            true => {
                let access = catalog.access(class, oid);
                let options = access.of_roles(class, &catalog.acting(who)).1;
                catalog.roles.is_superuser(who) || options.has(privilege)
            }
            // What the system has may be read by all.
            false if oid < crate::catalog::store::FIRST_OID && class == Class::Table => {
                privilege == Privilege::Select || catalog.roles.is_superuser(who)
            }
            false => catalog.may(who, class, oid, privilege),
        };
    }
    Ok(found.map_or(Value::Null, |_| Value::Boolean(has)))
}

/// The object of a number; tables and sequences may be asked about by each other's functions.
fn known(class: Class, number: i64, catalog: &Catalog) -> Option<(Class, Oid)> {
    let oid = Oid::try_from(number).ok()?;
    let is_relation = matches!(class, Class::Table | Class::Sequence);
    let mut all = catalog.securables().into_iter();
    let found = all.find(|(of, known, _)| {
        *known == oid && (*of == class || is_relation && matches!(of, Class::Table | Class::Sequence))
    });
    let is_system = oid < crate::catalog::store::FIRST_OID && oid != 0;
    found.map(|(of, ..)| (of, oid)).or((is_system || class == Class::Database).then_some((class, oid)))
}

fn find(class: Class, text: &str, call: &Call) -> Result<(Class, Oid)> {
    let catalog = &call.environment.catalog;
    let missing = |state: &[u8; 5], kind: &str| {
        Error::new(SqlState(*state), format!("{kind} \"{text}\" does not exist"))
    };
    match class {
        Class::Schema => {
            let all = crate::pg_catalog::objects::namespaces_of(catalog);
            let found = all.into_iter().find(|(_, name)| name == text);
            found.map(|(oid, _)| (class, oid)).ok_or_else(|| missing(b"3F000", "schema"))
        }
        Class::Database => {
            let all = call.environment.session.databases();
            let found = all.into_iter().find(|(_, name)| name == text);
            found.map(|(oid, _)| (class, oid)).ok_or_else(|| missing(b"3D000", "database"))
        }
        Class::Table | Class::Sequence => {
            let name = name_of_text(text)?;
            if let Some(relation) = catalog.relation(&name)? {
                return Ok((relation.class(), relation.oid()));
            }
            let (schema, short) = parts(&name)?;
            let system = crate::pg_catalog::relation(schema.as_deref(), &short);
            system.map(|relation| (class, relation.oid())).ok_or_else(|| missing(b"42P01", "relation"))
        }
        Class::Function | Class::Type => {
            let name = text.split_once('(').map_or(text, |(name, _)| name);
            let (schema, short) = parts(&name_of_text(name)?)?;
            let candidates: Vec<ObjectName> = catalog.candidates(schema.as_deref(), &short);
            let mut all = catalog.securables().into_iter();
            let found = all.find(|(of, _, name)| *of == class && candidates.contains(name));
            match found {
                Some((class, oid, _)) => Ok((class, oid)),
                // What is built in is everybody's.
                None => Ok((class, 0)),
            }
        }
    }
}
