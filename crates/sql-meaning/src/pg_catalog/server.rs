//! Roles, databases, settings, sessions and locks as `pg_catalog` shows them.

use super::roles::{owner_and_list, shown};
use super::row::{Row, number, text, truth};
use super::{DATABASES, PG_CATALOG};
use crate::catalog::Catalog;
use crate::catalog::extension::{self, EXTENSIONS};
use crate::catalog::role::{BOOTSTRAP, PUBLIC, READ_ALL_STATS};
use crate::functions::Environment;
use crate::session_facts::{HeldLock, LockedThing};
use fabius_sql_syntax::privilege::Class;
use fabius_value::Value;

/// Languages of functions, by their numbers.
const LANGUAGES: [(u32, &str); 4] = [(12, "internal"), (14, "sql"), (13_500, "plpgsql"), (13_501, "python")];

/// The number of a language.
pub(super) fn language(name: &str) -> u32 {
    LANGUAGES.into_iter().find(|(_, known)| *known == name).map_or(0, |(oid, _)| oid)
}

/// The rows of a relation; `None` if it is not about these.
pub fn rows(name: &str, environment: &Environment) -> Option<Vec<Row>> {
    let session = environment.session.as_ref();
    Some(match name {
        "pg_am" => [(2, "heap", "t"), (403, "btree", "i"), (405, "hash", "i")]
            .into_iter()
            .map(|(oid, name, kind)| {
                Row::of([("oid", number(oid)), ("amname", text(name)), ("amtype", text(kind))])
            })
            .collect(),
        "pg_collation" => [(100, "default", "d"), (950, "C", "c"), (951, "POSIX", "c")]
            .into_iter()
            .map(|(oid, name, provider)| {
                Row::of([
                    ("oid", number(oid)),
                    ("collname", text(name)),
                    ("collnamespace", number(PG_CATALOG)),
                    ("collowner", number(BOOTSTRAP)),
                    ("collprovider", text(provider)),
                    ("collisdeterministic", truth(true)),
                    ("collencoding", number(-1)),
                ])
            })
            .collect(),
        "pg_language" => LANGUAGES
            .into_iter()
            .map(|(oid, name)| {
                Row::of([
                    ("oid", number(oid)),
                    ("lanname", text(name)),
                    ("lanowner", number(BOOTSTRAP)),
                    ("lanispl", truth(matches!(name, "plpgsql" | "python"))),
                    ("lanpltrusted", truth(name != "internal")),
                ])
            })
            .collect(),
        "pg_extension" => extensions(&environment.catalog),
        "pg_available_extensions" => available_extensions(&environment.catalog),
        "pg_shdescription" => shared_descriptions(&environment.catalog),
        "pg_tablespace" => [(1663, "pg_default"), (1664, "pg_global")]
            .into_iter()
            .map(|(oid, name)| {
                Row::of([("oid", number(oid)), ("spcname", text(name)), ("spcowner", number(BOOTSTRAP))])
            })
            .collect(),
        "pg_database" => {
            session.databases().into_iter().map(|(oid, name)| database(environment, oid, name)).collect()
        }
        "pg_stat_database" => {
            let all = session.databases().into_iter();
            all.map(|(oid, name)| Row::of([("datid", number(oid)), ("datname", text(name))])).collect()
        }
        "pg_settings" => session
            .settings()
            .into_iter()
            .map(|setting| {
                Row::of([
                    ("name", text(setting.name)),
                    ("setting", text(setting.value)),
                    ("category", text("Settings")),
                    ("short_desc", text(setting.description)),
                    ("context", text("user")),
                    ("vartype", text("string")),
                    ("source", text("default")),
                    ("boot_val", text(setting.reset.clone())),
                    ("reset_val", text(setting.reset)),
                ])
            })
            .collect(),
        "pg_cursors" => {
            let all = session.cursors().into_iter();
            let rows = all.map(|cursor| {
                Row::of([
                    ("name", text(cursor.name)),
                    ("statement", text(cursor.text)),
                    ("is_holdable", truth(cursor.is_held)),
                    ("is_scrollable", truth(cursor.scrolls)),
                    ("creation_time", Value::Timestamp(cursor.since_us)),
                ])
            });
            rows.collect()
        }
        "pg_prepared_statements" => {
            let all = session.statements().into_iter();
            let rows = all.map(|statement| {
                Row::of([
                    ("name", text(statement.name)),
                    ("statement", text(statement.text)),
                    ("prepare_time", Value::Timestamp(statement.since_us)),
                    ("parameter_types", super::row::array(statement.parameters.into_iter().map(number))),
                    ("from_sql", truth(statement.is_of_sql)),
                ])
            });
            rows.collect()
        }
        "pg_stat_activity" => activity(environment),
        "pg_locks" => session.locks().iter().map(|held| lock(held, environment.catalog.database)).collect(),
        "pg_get_keywords" => keywords(),
        "pg_timezone_names" => vec![Row::of([("name", text("UTC")), ("abbrev", text("UTC"))])],
        _ => return None,
    })
}

/// The words of PostgreSQL's grammar: each with its kind, and whether it can name a column without `AS`.
fn keywords() -> Vec<Row> {
    let words = include_str!("keywords.txt").lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (word, kind, is_bare) = (words.next()?, words.next()?, words.next()? == "t");
        let description = match kind {
            "U" => "unreserved",
            "C" => "unreserved (cannot be function or type name)",
            "T" => "reserved (can be function or type name)",
            _ => "reserved",
        };
        Some(Row::of([
            ("word", text(word)),
            ("catcode", text(kind)),
            ("barelabel", truth(is_bare)),
            ("catdesc", text(description)),
            ("baredesc", text(if is_bare { "can be bare label" } else { "requires AS" })),
        ]))
    });
    words.collect()
}

fn database(environment: &Environment, oid: u32, name: String) -> Row {
    let (owner, list) = match environment.catalog.database == oid {
        true => owner_and_list(environment, Class::Database, oid),
        false => shown(environment, &environment.session.access_of_database(oid)),
    };
    Row::of([
        ("oid", number(oid)),
        ("datname", text(name)),
        ("datdba", owner),
        ("datacl", list),
        ("encoding", number(6)),
        ("datlocprovider", text("c")),
        ("datistemplate", truth(false)),
        ("datallowconn", truth(true)),
        ("datconnlimit", number(-1)),
        ("dattablespace", number(1663)),
        ("datcollate", text("C")),
        ("datctype", text("C")),
        ("datfrozenxid", text("0")),
        ("datminmxid", text("0")),
    ])
}

fn activity(environment: &Environment) -> Vec<Row> {
    let session = environment.session.as_ref();
    let user = session.session_user();
    let all = session.activity().into_iter();
    let roles = &environment.catalog.roles;
    let current = environment.role_named(&session.user()).unwrap_or(PUBLIC);
    let sees_all = roles.is_member(current, READ_ALL_STATS);
    all.map(|one| {
        let role = environment.role_named(&one.user).unwrap_or(BOOTSTRAP);
        let query = match sees_all || roles.is_member(current, role) {
            true => one.query,
            false => "<insufficient privilege>".into(),
        };
        let moment = |micros: Option<i64>| micros.map_or(Value::Null, Value::Timestamp);
        Row::of([
            ("datid", number(one.database.0)),
            ("datname", text(one.database.1)),
            ("pid", number(one.process)),
            ("leader_pid", Value::Null),
            ("usesysid", number(role)),
            ("usename", text(if one.user.is_empty() { user.clone() } else { one.user })),
            ("application_name", text(one.application)),
            ("client_port", Value::Null),
            ("backend_start", moment(Some(one.connected_us))),
            ("xact_start", moment(one.transaction_us)),
            ("query_start", moment(one.query_us)),
            ("state_change", moment(Some(one.changed_us))),
            ("wait_event_type", one.waiting.map_or(Value::Null, |waiting| text(waiting.kind))),
            ("wait_event", one.waiting.map_or(Value::Null, |waiting| text(waiting.event))),
            ("state", text(one.state)),
            ("query_id", Value::Null),
            ("query", text(query)),
            ("backend_type", text("client backend")),
        ])
    })
    .collect()
}

fn lock(lock: &HeldLock, database: u32) -> Row {
    let or_null = |number_of: Option<u32>| number_of.map_or(Value::Null, number);
    let relation = match lock.thing {
        LockedThing::Relation(oid) => Some(oid),
        LockedThing::Condition(oid) => oid,
        LockedThing::Name | LockedThing::Advisory(_) => None,
    };
    let advisory = match lock.thing {
        LockedThing::Advisory(key) => Some(key),
        _ => None,
    };
    Row::of([
        ("locktype", text(lock.thing.kind())),
        ("database", or_null(Some(advisory.map_or(database, |key| key.database)))),
        ("relation", or_null(relation)),
        ("page", Value::Null),
        ("tuple", Value::Null),
        ("classid", or_null(advisory.map(|key| key.class))),
        ("objid", or_null(advisory.map(|key| key.object))),
        // As PostgreSQL tells numbers from pairs.
        ("objsubid", or_null(advisory.map(|key| if key.is_pair { 2 } else { 1 }))),
        ("virtualtransaction", text(format!("{}/0", lock.process))),
        ("pid", number(lock.process)),
        ("mode", text(lock.mode)),
        ("granted", truth(lock.waits_since_us.is_none())),
        ("fastpath", truth(false)),
        ("waitstart", lock.waits_since_us.map_or(Value::Null, Value::Timestamp)),
    ])
}

fn extensions(catalog: &Catalog) -> Vec<Row> {
    let rows = extension::installed(catalog).map(|(oid, extension)| {
        Row::of([
            ("oid", number(oid)),
            ("extname", text(extension.name)),
            ("extowner", number(BOOTSTRAP)),
            ("extnamespace", number(PG_CATALOG)),
            ("extversion", text(extension.version)),
        ])
    });
    rows.collect()
}

fn available_extensions(catalog: &Catalog) -> Vec<Row> {
    let rows = EXTENSIONS.iter().map(|extension| {
        let is_installed = extension::oid_of(catalog, extension.name).is_some();
        Row::of([
            ("name", text(extension.name)),
            ("default_version", text(extension.version)),
            ("installed_version", is_installed.then(|| extension.version.to_string()).into()),
            ("comment", text(extension.comment)),
        ])
    });
    rows.collect()
}

/// What is said of the database itself.
fn shared_descriptions(catalog: &Catalog) -> Vec<Row> {
    let said = catalog.comments.get(&(catalog.database, 0)).map(|comment| {
        Row::of([
            ("objoid", number(catalog.database)),
            ("classoid", number(DATABASES)),
            ("description", text(comment.clone())),
        ])
    });
    said.into_iter().collect()
}
