//! The relations of `pg_catalog` and `information_schema`, with what is defined now.
//!
//! Their columns are those of PostgreSQL 15, one relation a line in `columns.txt`: name, number, kind, columns with
//! their types. What has no contents here is empty, so that questions about it are answered.
//!
//! | module | relations |
//! |---|---|
//! | [`row`] | rows by column names |
//! | [`objects`] | tables, columns, keys, functions: `pg_class`, `pg_attribute`, `pg_index`, ... |
//! | [`roles`] | roles, and what they may do: `pg_roles`, `pg_auth_members`, ... |
//! | [`server`] | databases, settings, sessions: `pg_database`, `pg_settings`, ... |
//! | [`type_rows`] | types and what belongs to them: `pg_type`, `pg_enum`, `pg_opclass` |
//! | [`standard`] | `information_schema` |
//! | [`definition`] | objects as statements that would make them |

pub mod definition;
pub mod objects;
pub mod roles;
pub mod row;
pub mod server;
pub mod standard;
pub mod type_rows;

use crate::catalog::{Catalog, TEMPORARY};
use crate::functions::Environment;
use crate::sql_type::SqlType;
use fabius_value::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The number of `pg_catalog` in `pg_namespace`.
pub const PG_CATALOG: u32 = 11;
/// The number of `information_schema`.
pub const INFORMATION_SCHEMA: u32 = 13_207;
/// The number of `public`.
pub const PUBLIC: u32 = 2200;
/// The number of the schema of what is temporary.
pub const TEMPORARY_SCHEMA: u32 = 13_500;
/// The number of `pg_database`.
pub const DATABASES: u32 = 1262;

/// The number of a schema.
pub fn namespace_oid(catalog: &Catalog, schema: &str) -> u32 {
    match schema {
        "pg_catalog" => PG_CATALOG,
        "information_schema" => INFORMATION_SCHEMA,
        TEMPORARY => TEMPORARY_SCHEMA,
        name => catalog.schemas.get(name).copied().unwrap_or(PUBLIC),
    }
}

/// A column of a relation of the catalog.
pub struct Column {
    /// The column's name.
    pub name: String,
    /// How its values are kept.
    pub sql_type: SqlType,
    /// The name of its type in PostgreSQL.
    pub type_name: String,
    /// Whether its subscripts begin at 0.
    pub is_vector: bool,
}

/// A relation of the catalog.
pub struct Relation {
    /// The relation's schema.
    pub schema: String,
    /// The relation's name.
    pub name: String,
    oid: u32,
    /// `r` for a table, `v` for a view, `f` for what a function shows.
    pub kind: char,
    /// The relation's columns.
    pub columns: Vec<Column>,
}

/// How values of a PostgreSQL type are kept.
fn kept(type_name: &str) -> SqlType {
    match type_name {
        "regproc" | "regtype" | "regclass" => SqlType::Oid,
        "_regtype" => SqlType::Array(Box::new(SqlType::Oid)),
        "int2vector" => SqlType::Array(Box::new(SqlType::SmallInt)),
        "oidvector" => SqlType::Array(Box::new(SqlType::Oid)),
        "cardinal_number" => SqlType::Int,
        "sql_identifier" => SqlType::Name,
        "time_stamp" => SqlType::TimestampTz,
        "_aclitem" | "_char" | "anyarray" => SqlType::Array(Box::new(SqlType::Text)),
        "char" => SqlType::Text,
        name => SqlType::of_name(name).unwrap_or(SqlType::Text),
    }
}

/// All of them.
pub static RELATIONS: LazyLock<Vec<Relation>> = LazyLock::new(|| described(include_str!("columns.txt")));

/// What functions show that no relation does.
static FUNCTIONS: LazyLock<Vec<Relation>> = LazyLock::new(|| {
    described(
        "pg_catalog.pg_get_keywords 1686 f word:text catcode:char barelabel:bool catdesc:text baredesc:text",
    )
});

/// Relations as `columns.txt` describes them.
fn described(lines: &'static str) -> Vec<Relation> {
    let parsed = lines.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (schema, name) = words.next()?.split_once('.')?;
        let oid = words.next()?.parse().ok()?;
        let kind = words.next()?.chars().next()?;
        let columns = words.filter_map(|word| {
            let (name, type_name) = word.split_once(':')?;
            Some(Column {
                name: name.to_string(),
                sql_type: kept(type_name),
                type_name: type_name.to_string(),
                is_vector: type_name.ends_with("vector"),
            })
        });
        Some(Relation { schema: schema.into(), name: name.into(), oid, kind, columns: columns.collect() })
    });
    parsed.collect()
}

static BY_NAME: LazyLock<HashMap<(&'static str, &'static str), &'static Relation>> = LazyLock::new(|| {
    RELATIONS.iter().map(|relation| ((relation.schema.as_str(), relation.name.as_str()), relation)).collect()
});

/// The relation of a name; without a schema, one of `pg_catalog`.
pub fn relation(schema: Option<&str>, name: &str) -> Option<&'static Relation> {
    BY_NAME.get(&(schema.unwrap_or("pg_catalog"), name)).copied()
}

/// The relation that a set-returning function of the catalog shows.
pub fn function_relation(name: &str) -> Option<&'static Relation> {
    if let Some(function) = FUNCTIONS.iter().find(|function| function.name == name) {
        return Some(function);
    }
    let relation_name = match name {
        "pg_show_all_settings" => "pg_settings",
        "pg_stat_get_activity" => "pg_stat_activity",
        "pg_lock_status" => "pg_locks",
        "pg_available_extensions" => "pg_available_extensions",
        "pg_timezone_names" => "pg_timezone_names",
        _ => return None,
    };
    relation(None, relation_name)
}

impl Relation {
    /// The relation's number in `pg_class`.
    pub fn oid(&self) -> u32 {
        self.oid
    }

    /// The relation's rows now.
    pub fn rows(&self, environment: &Environment) -> Vec<Vec<Value>> {
        let rows = match self.schema.as_str() {
            "pg_catalog" => objects::rows(&self.name, environment)
                .or_else(|| roles::rows(&self.name, environment))
                .or_else(|| server::rows(&self.name, environment))
                .or_else(|| type_rows::rows(&self.name, environment))
                .unwrap_or_default(),
            _ => roles::standard_rows(&self.name, environment)
                .or_else(|| standard::rows(&self.name, environment))
                .unwrap_or_default(),
        };
        let is_standard = self.schema == "information_schema";
        rows.into_iter().map(|row| row.arranged(&self.columns, is_standard)).collect()
    }
}
