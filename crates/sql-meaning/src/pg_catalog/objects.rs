//! Tables, columns, keys, views, sequences and functions as `pg_catalog` shows them.

use super::definition::{self, Constraint};
use super::roles::{owner_and_list, owner_name};
use super::row::{Row, array, number, text, truth};
use super::server::language;
use super::{INFORMATION_SCHEMA, PG_CATALOG, RELATIONS, TEMPORARY_SCHEMA, namespace_oid};
use crate::catalog::extension;
use crate::catalog::named_relation::relations_of;
use crate::catalog::role::BOOTSTRAP;
use crate::catalog::schema_shown;
use crate::catalog::store::FIRST_OID;
use crate::catalog::{
    Catalog, Deferral, Identity, Key, ObjectName, Oid, ReferentialAction, Returns, SYSTEM, TEMPORARY,
    TEMPORARY_SHOWN, Table, name_of_text, parts,
};
use crate::functions::{Body, Definition, Environment, FUNCTIONS, Kind};
use crate::sql_type::SqlType;
use fabius_sql_syntax::privilege::Class;
use fabius_value::Value;
use std::sync::Arc;

/// The rows of a relation; `None` if it is not about objects.
pub fn rows(name: &str, environment: &Environment) -> Option<Vec<Row>> {
    let catalog = environment.catalog.as_ref();
    Some(match name {
        "pg_namespace" => namespaces(environment),
        "pg_class" => classes(environment),
        "pg_attribute" => attributes(catalog),
        "pg_attrdef" => defaults(catalog),
        "pg_index" => indexes(catalog),
        "pg_constraint" => constraints(catalog),
        "pg_proc" => functions(environment),
        "pg_description" => descriptions(catalog),
        "pg_depend" => dependencies(catalog),
        "pg_sequence" => sequences(catalog),
        "pg_rewrite" => rewrites(catalog),
        "pg_tables" => tables(environment),
        "pg_views" => views(environment),
        "pg_matviews" => materialized_views(environment),
        "pg_indexes" => indexes_by_name(catalog),
        "pg_sequences" => sequences_by_name(environment),
        "pg_stat_user_tables" | "pg_stat_all_tables" | "pg_statio_user_tables" => table_statistics(catalog),
        "pg_stat_user_indexes" | "pg_stat_all_indexes" | "pg_statio_user_indexes" => {
            index_statistics(catalog)
        }
        _ => return None,
    })
}

/// All schemas with their numbers.
pub fn namespaces_of(catalog: &Catalog) -> Vec<(u32, String)> {
    let mut all =
        vec![(PG_CATALOG, "pg_catalog".to_string()), (INFORMATION_SCHEMA, "information_schema".into())];
    all.extend(catalog.schemas.iter().map(|(name, oid)| (*oid, name.clone())));
    if has_temporary(catalog) {
        all.push((TEMPORARY_SCHEMA, TEMPORARY_SHOWN.into()));
    }
    all
}

/// Whether the session has anything temporary.
pub fn has_temporary(catalog: &Catalog) -> bool {
    let is_temporary = |name: &ObjectName| name.schema == TEMPORARY;
    let mut tables = catalog.tables.keys();
    tables.any(is_temporary)
        || catalog.views.keys().any(is_temporary)
        || catalog.sequences.keys().any(is_temporary)
}

fn namespaces(environment: &Environment) -> Vec<Row> {
    let all = namespaces_of(&environment.catalog).into_iter();
    all.map(|(oid, name)| {
        let (owner, list) = owner_and_list(environment, Class::Schema, oid);
        let list = if SYSTEM.contains(&name.as_str()) {
            array([text(format!("{0}=UC/{0}", environment.role_name(BOOTSTRAP)))])
        } else {
            list
        };
        Row::of([("oid", number(oid)), ("nspname", text(name)), ("nspowner", owner), ("nspacl", list)])
    })
    .collect()
}

/// The number of the type of a relation's rows.
pub fn row_type_oid(relation: u32) -> u32 {
    relation.wrapping_add(0x1000_0000)
}

fn class(oid: u32, name: &str, namespace: u32, kind: &str, columns: usize) -> Row {
    Row::of([
        ("oid", number(oid)),
        ("relname", text(name)),
        ("relnamespace", number(namespace)),
        ("relowner", number(BOOTSTRAP)),
        ("relfilenode", number(oid)),
        ("reltuples", Value::Double(-1.0)),
        ("relpersistence", text("p")),
        ("relkind", text(kind)),
        ("relnatts", number(columns as i64)),
        ("relreplident", text(if matches!(kind, "r" | "m") { "d" } else { "n" })),
        ("relispopulated", truth(true)),
        (
            "relam",
            number(match kind {
                "r" | "m" => 2,
                "i" => 403,
                _ => 0,
            }),
        ),
        ("relfrozenxid", text("0")),
        ("relminmxid", text("0")),
    ])
}

/// `t` for what is temporary.
fn persistence(name: &ObjectName) -> Value {
    text(if name.schema == TEMPORARY { "t" } else { "p" })
}

fn classes(environment: &Environment) -> Vec<Row> {
    let catalog = environment.catalog.as_ref();
    let owned = |row: Row, class: Class, oid: Oid, list_shown: bool| {
        let (owner, list) = owner_and_list(environment, class, oid);
        row.with("relowner", owner).with("relacl", if list_shown { list } else { Value::Null })
    };
    let mut rows = Vec::new();
    for relation in RELATIONS.iter() {
        let namespace = namespace_oid(catalog, &relation.schema);
        let kind = relation.kind.to_string();
        rows.push(class(relation.oid(), &relation.name, namespace, &kind, relation.columns.len()));
    }
    for table in catalog.tables.values() {
        let namespace = namespace_oid(catalog, &table.name.schema);
        let kind = if table.materialized.is_some() { "m" } else { "r" };
        let mut row = class(table.oid, &table.name.name, namespace, kind, table.columns.len());
        row = row
            .with("reltype", number(row_type_oid(table.oid)))
            .with("relhasindex", truth(definition::indexes(table).next().is_some()))
            .with("relchecks", number(table.own_checks().count() as i64))
            .with("relhastriggers", truth(!table.foreign_keys.is_empty()));
        if let Some(view) = &table.materialized {
            row = row.with("relhasrules", truth(true)).with("relispopulated", truth(view.is_populated));
        }
        row = row.with("relpersistence", persistence(&table.name));
        rows.push(owned(row, Class::Table, table.oid, true));
        for (key, ..) in definition::indexes(table) {
            let index = class(key.oid, &key.name, namespace, "i", key.columns.len());
            let index = index.with("relpersistence", persistence(&table.name));
            rows.push(owned(index, Class::Table, table.oid, false));
        }
    }
    for view in catalog.views.values() {
        let namespace = namespace_oid(catalog, &view.name.schema);
        let row = class(view.oid, &view.name.name, namespace, "v", view.columns.len());
        let row = row.with("relpersistence", persistence(&view.name));
        let row = row.with("relhasrules", truth(true)).with("reltype", number(row_type_oid(view.oid)));
        rows.push(owned(row, Class::Table, view.oid, true));
    }
    for sequence in catalog.sequences.values() {
        let namespace = namespace_oid(catalog, &sequence.name.schema);
        let row = class(sequence.oid, &sequence.name.name, namespace, "S", 3);
        let row = row.with("relpersistence", persistence(&sequence.name));
        rows.push(owned(row, Class::Sequence, sequence.oid, true));
    }
    rows
}

fn attribute(relation: u32, place: usize, name: &str, sql_type: &SqlType) -> Row {
    let length = sql_type.length();
    let (alignment, storage) = super::type_rows::layout(sql_type);
    let is_text = matches!(sql_type, SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_));
    Row::of([
        ("attrelid", number(relation)),
        ("attname", text(name)),
        ("atttypid", number(sql_type.oid())),
        ("attstattarget", number(-1)),
        ("attlen", number(length)),
        ("attnum", number(place as i64)),
        ("attcacheoff", number(-1)),
        ("atttypmod", number(sql_type.modifier())),
        ("attbyval", truth((1..=8).contains(&length))),
        ("attalign", text(alignment)),
        ("attstorage", text(storage)),
        ("attcompression", text("")),
        ("attidentity", text("")),
        ("attgenerated", text("")),
        ("attislocal", truth(true)),
        ("attcollation", number(if is_text { 100 } else { 0 })),
    ])
}

fn attributes(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for relation in RELATIONS.iter() {
        for (at, column) in relation.columns.iter().enumerate() {
            let row = attribute(relation.oid(), at + 1, &column.name, &column.sql_type);
            rows.push(row.with("atttypid", number(super::type_rows::type_oid(&column.type_name))));
        }
    }
    for table in catalog.tables.values() {
        for (at, column) in table.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden) {
            let is_key = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column.name));
            let identity = match column.identity {
                Some(Identity::Always) => "a",
                Some(Identity::ByDefault) => "d",
                None => "",
            };
            let generated = if column.generated.is_some() { "s" } else { "" };
            let of = column.domain.unwrap_or(column.sql_type.oid());
            let row = attribute(table.oid, at + 1, &column.name, &column.sql_type)
                .with("atttypid", number(of))
                .with("attnotnull", truth(!column.nullable || is_key))
                .with("atthasdef", truth(definition::default(column).is_some()))
                .with("attidentity", text(identity))
                .with("attgenerated", text(generated));
            rows.push(row);
        }
        for (key, ..) in definition::indexes(table) {
            for (at, name) in key.columns.iter().enumerate() {
                if let Some(column) = table.columns.iter().find(|column| column.name == *name) {
                    rows.push(attribute(key.oid, at + 1, name, &column.sql_type));
                }
            }
        }
    }
    for view in catalog.views.values() {
        for (at, (name, sql_type)) in view.columns.iter().enumerate() {
            rows.push(attribute(view.oid, at + 1, name, sql_type));
        }
    }
    for sequence in catalog.sequences.values() {
        let columns =
            [("last_value", SqlType::BigInt), ("log_cnt", SqlType::BigInt), ("is_called", SqlType::Boolean)];
        for (at, (name, sql_type)) in columns.iter().enumerate() {
            rows.push(attribute(sequence.oid, at + 1, name, sql_type).with("attnotnull", truth(true)));
        }
    }
    rows
}

fn defaults(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in catalog.tables.values() {
        for (at, column) in table.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden) {
            if let Some(default) = definition::whole_default(column) {
                rows.push(Row::of([
                    ("oid", number(definition::default_oid(table, at + 1))),
                    ("adrelid", number(table.oid)),
                    ("adnum", number(at as i64 + 1)),
                    ("adbin", text(default)),
                ]));
            }
        }
    }
    rows
}

fn places(table: &Table, names: &[String]) -> Vec<Value> {
    let place = |name: &String| table.columns.iter().position(|column| column.name == *name);
    names.iter().map(|name| number(place(name).map_or(0, |at| at as i64 + 1))).collect()
}

/// The columns of an index; 0 where it has an expression.
fn index_places(table: &Table, key: &Key) -> Vec<Value> {
    match &key.written {
        None => places(table, &key.columns),
        Some(written) => {
            let names = written.keys.iter().map(|key| column_of(table, key).unwrap_or_default().to_string());
            places(table, &names.collect::<Vec<_>>())
        }
    }
}

fn index_expressions(table: &Table, key: &Key) -> Value {
    let Some(written) = &key.written else { return Value::Null };
    let computed = written.keys.iter().filter(|key| column_of(table, key).is_none());
    let computed: Vec<&str> = computed.map(String::as_str).collect();
    if computed.is_empty() { Value::Null } else { text(computed.join(", ")) }
}

/// The column that a text of SQL is the name of, if it is one.
fn column_of<'t>(table: &'t Table, text: &str) -> Option<&'t str> {
    let (_, name) = parts(&name_of_text(text).ok()?).ok()?;
    table.column(&name).map(|column| column.name.as_str())
}

fn indexes(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in catalog.tables.values() {
        for (key, is_primary, is_unique) in definition::indexes(table) {
            let count = key.columns.len() as i64;
            let zeros = || array((0..count).map(|_| number(0)));
            let classes = key.columns.iter().enumerate().map(|(place, name)| {
                let column = table.columns.iter().find(|column| column.name == *name);
                let usual = column.map_or(0, |column| super::type_rows::operator_class(&column.sql_type));
                let said = key.layout_of(place).and_then(|layout| layout.operator_class.as_deref());
                number(said.and_then(super::type_rows::operator_class_named).unwrap_or(usual))
            });
            // Bit 0: descending; bit 1: nulls come first.
            let options = (0..key.columns.len()).map(|place| match key.layout_of(place) {
                Some(layout) => {
                    number(i64::from(layout.is_descending) + 2 * i64::from(layout.has_nulls_first()))
                }
                None => number(0),
            });
            rows.push(Row::of([
                ("indexrelid", number(key.oid)),
                ("indrelid", number(table.oid)),
                ("indnatts", number(count + key.included().len() as i64)),
                ("indnkeyatts", number(count)),
                ("indisunique", truth(is_unique)),
                ("indisprimary", truth(is_primary)),
                ("indimmediate", truth(key.deferral == Deferral::Never)),
                ("indisvalid", truth(true)),
                ("indisready", truth(true)),
                ("indislive", truth(true)),
                ("indkey", array(index_places(table, key).into_iter().chain(places(table, key.included())))),
                ("indexprs", index_expressions(table, key)),
                ("indpred", key.written.as_ref().and_then(|written| written.predicate.clone()).into()),
                ("indcollation", zeros()),
                ("indclass", array(classes)),
                ("indoption", array(options)),
            ]));
        }
    }
    rows
}

fn action(action: ReferentialAction) -> Value {
    text(match action {
        ReferentialAction::NoAction => "a",
        ReferentialAction::Restrict => "r",
        ReferentialAction::Cascade => "c",
        ReferentialAction::SetNull => "n",
        ReferentialAction::SetDefault => "d",
    })
}

fn constraints(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for domain in catalog.domains.values() {
        for (at, check) in domain.checks.iter().enumerate() {
            rows.push(Row::of([
                ("oid", number(definition::domain_check_oid(domain, at))),
                ("conname", text(check.name.clone())),
                ("connamespace", number(namespace_oid(catalog, &domain.name.schema))),
                ("contype", text("c")),
                ("convalidated", truth(true)),
                ("contypid", number(domain.oid)),
                ("conislocal", truth(true)),
                ("conbin", text(check.condition.clone())),
            ]));
        }
    }
    for table in catalog.tables.values() {
        for (oid, constraint) in definition::constraints(table) {
            let row = Row::of([
                ("oid", number(oid)),
                ("conname", text(constraint.name())),
                ("connamespace", number(namespace_oid(catalog, &table.name.schema))),
                ("contype", text(constraint.kind())),
                ("condeferrable", truth(constraint.deferral() != Deferral::Never)),
                ("condeferred", truth(constraint.deferral() == Deferral::InitiallyDeferred)),
                ("convalidated", truth(true)),
                ("conrelid", number(table.oid)),
                ("conislocal", truth(true)),
                ("connoinherit", truth(!matches!(constraint, Constraint::Check(_)))),
                ("confupdtype", text(" ")),
                ("confdeltype", text(" ")),
                ("confmatchtype", text(" ")),
            ]);
            rows.push(match &constraint {
                Constraint::Key(key, _) => {
                    row.with("conindid", number(key.oid)).with("conkey", array(places(table, &key.columns)))
                }
                Constraint::Check(check) => {
                    let named = table.columns.iter().enumerate().filter(|(_, column)| {
                        let mut words = check.condition.split(|c: char| !c.is_alphanumeric() && c != '_');
                        words.any(|word| word == column.name)
                    });
                    row.with("conkey", array(named.map(|(at, _)| number(at as i64 + 1))))
                        .with("conbin", text(check.condition.clone()))
                }
                Constraint::Foreign(key) => {
                    let parent = catalog.tables.get(&key.parent);
                    let index = parent.and_then(|parent| {
                        definition::indexes(parent)
                            .find(|(other, ..)| other.columns == key.parent_columns)
                            .map(|(other, ..)| other.oid)
                    });
                    row.with("conkey", array(places(table, &key.columns)))
                        .with("confrelid", number(parent.map_or(0, |parent| parent.oid)))
                        .with("conindid", number(index.unwrap_or(0)))
                        .with(
                            "confkey",
                            parent.map_or(Value::Null, |parent| array(places(parent, &key.parent_columns))),
                        )
                        .with("confupdtype", action(key.on_update))
                        .with("confdeltype", action(key.on_delete))
                        .with("confmatchtype", text("s"))
                }
            });
        }
    }
    rows
}

fn function(oid: u32, name: &str, namespace: u32, returns: u32, arguments: Vec<u32>) -> Row {
    Row::of([
        ("oid", number(oid)),
        ("proname", text(name)),
        ("pronamespace", number(namespace)),
        ("proowner", number(BOOTSTRAP)),
        ("procost", Value::Double(1.0)),
        ("prokind", text("f")),
        ("provolatile", text("v")),
        ("proparallel", text("u")),
        ("pronargs", number(arguments.len() as i64)),
        ("prorettype", number(returns)),
        ("proargtypes", array(arguments.into_iter().map(number))),
    ])
}

/// Where the numbers of built-in functions begin.
const BUILT_IN: u32 = 6000;

/// The functions that have a name for users, in the order of their numbers.
fn built_in() -> Vec<&'static Definition> {
    let mut all: Vec<_> =
        FUNCTIONS.values().flatten().filter(|definition| definition.has_public_name()).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// The number of a built-in function of a name.
pub fn built_in_oid(name: &str) -> Option<u32> {
    let at = built_in().into_iter().position(|definition| definition.name == name)?;
    Some(BUILT_IN + at as u32)
}

fn functions(environment: &Environment) -> Vec<Row> {
    let catalog = environment.catalog.as_ref();
    let mut rows = Vec::new();
    let oid = |kind: &Kind| match kind {
        Kind::Is(sql_type) => sql_type.oid(),
        Kind::Any => 2276,
        Kind::Element => 2283,
        Kind::Enumeration => 3500,
        Kind::Array => 2277,
        Kind::NonArray => 2776,
        Kind::Compatible => 5077,
        Kind::CompatibleArray => 5078,
    };
    for (at, definition) in built_in().into_iter().enumerate() {
        let arguments = definition.parameters.iter().map(oid).collect();
        let row =
            function(BUILT_IN + at as u32, &definition.name, PG_CATALOG, oid(&definition.returns), arguments);
        let kind = match definition.body {
            Body::Aggregate(_) => "a",
            Body::OverWindow(_) => "w",
            _ => "f",
        };
        rows.push(
            row.with("prolang", number(12))
                .with("prokind", text(kind))
                .with("proisstrict", truth(definition.is_strict))
                .with("prosrc", text(definition.name.clone())),
        );
    }
    for known in catalog.functions.values().flatten() {
        let returns = match &known.returns {
            Returns::Scalar(sql_type) => sql_type.oid(),
            Returns::Record(_) | Returns::Table(_) => 2249,
        };
        let arguments = known.parameters.iter().map(|parameter| parameter.sql_type.oid()).collect();
        let namespace = namespace_oid(catalog, &known.name.schema);
        let named = known.parameters.iter().any(|parameter| !parameter.name.is_empty());
        let names = || array(known.parameters.iter().map(|parameter| text(parameter.name.clone())));
        let (owner, list) = owner_and_list(environment, Class::Function, known.oid);
        rows.push(
            function(known.oid, &known.name.name, namespace, returns, arguments)
                .with("proowner", owner)
                .with("proacl", list)
                .with("prolang", number(language(&known.language)))
                .with("prokind", text(if known.is_procedure { "p" } else { "f" }))
                .with("procost", Value::Double(100.0))
                .with("proretset", truth(matches!(known.returns, Returns::Table(_))))
                .with("proargnames", if named { names() } else { Value::Null })
                .with("prosrc", text(known.body.clone())),
        );
    }
    rows
}

/// What is said of `public` before anybody says anything else.
pub const PUBLIC_COMMENT: &str = "standard public schema";

fn descriptions(catalog: &Catalog) -> Vec<Row> {
    let described = |oid: u32, class: u32, column: u16, comment: &str| {
        Row::of([
            ("objoid", number(oid)),
            ("classoid", number(class)),
            ("objsubid", number(i64::from(column))),
            ("description", text(comment)),
        ])
    };
    let public = namespace_oid(catalog, "public");
    let mut rows: Vec<Row> = Vec::new();
    if !catalog.comments.contains_key(&(public, 0)) {
        rows.push(described(public, NAMESPACES, 0, PUBLIC_COMMENT));
    }
    for ((oid, column), comment) in &catalog.comments {
        let is_schema = *oid == public || catalog.schemas.values().any(|schema| schema == oid);
        let is_function = || catalog.functions.values().flatten().any(|function| function.oid == *oid);
        // Of what has a low number nobody describes anything else.
        let is_type = || {
            *oid < FIRST_OID
                || catalog.enumerations.values().any(|of| of.oid == *oid)
                || catalog.domains.values().any(|domain| domain.oid == *oid)
        };
        let class = match () {
            () if *oid == catalog.database => continue,
            () if is_schema => NAMESPACES,
            () if is_function() => ROUTINES,
            () if extension::installed(catalog).any(|(number, _)| number == *oid) => EXTENSIONS,
            () if is_type() => TYPES,
            () => CLASSES,
        };
        rows.push(described(*oid, class, *column, comment));
    }
    for table in catalog.tables.values() {
        for (oid, constraint) in definition::constraints(table) {
            if let Some(comment) = table.constraint_comments.get(constraint.name()) {
                rows.push(described(oid, CONSTRAINTS, 0, comment));
            }
        }
    }
    rows
}

/// The numbers of the catalog's relations, by which dependencies and comments say what they are about.
const CLASSES: u32 = 1259;
const CONSTRAINTS: u32 = 2606;
const EXTENSIONS: u32 = 3079;
const TYPES: u32 = 1247;
const ROUTINES: u32 = 1255;
const DEFAULTS: u32 = 2604;
const RULES: u32 = 2618;
const NAMESPACES: u32 = 2615;

/// A dependency: of an object on another, or on a column of it.
fn dependency((class, object): (u32, u32), on: (u32, u32), column: usize, kind: &str) -> Row {
    Row::of([
        ("classid", number(class)),
        ("objid", number(object)),
        ("refclassid", number(on.0)),
        ("refobjid", number(on.1)),
        ("refobjsubid", number(column as i64)),
        ("deptype", text(kind)),
    ])
}

fn dependencies(catalog: &Catalog) -> Vec<Row> {
    let relation = |oid: u32| (CLASSES, oid);
    let mut rows = Vec::new();
    for sequence in catalog.sequences.values() {
        let Some((name, column)) = &sequence.owner else { continue };
        let Some(table) = catalog.tables.get(name) else { continue };
        let Some(place) = table.position(column) else { continue };
        let kind = if table.columns[place].identity.is_some() { "i" } else { "a" };
        rows.push(dependency(relation(sequence.oid), relation(table.oid), place + 1, kind));
    }
    for table in catalog.tables.values() {
        for (at, column) in table.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden) {
            if definition::default(column).is_none() {
                continue;
            }
            let default = (DEFAULTS, definition::default_oid(table, at + 1));
            rows.push(dependency(default, relation(table.oid), at + 1, "a"));
            if let Some(sequence) = column.sequence.as_ref().and_then(|name| catalog.sequences.get(name)) {
                rows.push(dependency(default, relation(sequence.oid), 0, "n"));
            }
        }
    }
    for view in catalog.views_of_all_kinds() {
        let rule = (RULES, rule_oid(view.oid()));
        rows.push(dependency(rule, relation(view.oid()), 0, "i"));
        for name in relations_of(catalog, view.query().unwrap_or_default()) {
            if let Some(used) = catalog.relation_named(&name) {
                rows.push(dependency(rule, relation(used.oid()), 0, "n"));
            }
        }
    }
    rows
}

/// The number of the rule that makes a view.
fn rule_oid(view: Oid) -> u32 {
    view.wrapping_add(0x2000_0000)
}

fn sequences(catalog: &Catalog) -> Vec<Row> {
    let all = catalog.sequences.values();
    all.map(|sequence| {
        Row::of([
            ("seqrelid", number(sequence.oid)),
            ("seqtypid", number(sequence.sql_type().oid())),
            ("seqstart", number(sequence.start)),
            ("seqincrement", number(sequence.increment)),
            ("seqmax", number(sequence.maximum)),
            ("seqmin", number(sequence.minimum)),
            ("seqcache", number(1)),
            ("seqcycle", truth(sequence.cycle)),
        ])
    })
    .collect()
}

fn rewrites(catalog: &Catalog) -> Vec<Row> {
    let all = catalog.views_of_all_kinds();
    all.map(|view| {
        Row::of([
            ("oid", number(rule_oid(view.oid()))),
            ("rulename", text("_RETURN")),
            ("ev_class", number(view.oid())),
            ("ev_type", text("1")),
            ("ev_enabled", text("O")),
            ("is_instead", truth(true)),
        ])
    })
    .collect()
}

fn tables(environment: &Environment) -> Vec<Row> {
    let catalog = environment.catalog.as_ref();
    let system = RELATIONS.iter().filter(|relation| relation.kind == 'r').map(|relation| {
        Row::of([
            ("schemaname", text(relation.schema.clone())),
            ("tablename", text(relation.name.clone())),
            ("tableowner", text(environment.role_name(BOOTSTRAP))),
        ])
    });
    let own = catalog.plain_tables().map(|table| {
        Row::of([
            ("schemaname", text(schema_shown(&table.name.schema))),
            ("tablename", text(table.name.name.clone())),
            ("tableowner", owner_name(environment, table.oid)),
            ("hasindexes", truth(definition::indexes(table).next().is_some())),
            ("hastriggers", truth(!table.foreign_keys.is_empty())),
        ])
    });
    system.chain(own).collect()
}

fn views(environment: &Environment) -> Vec<Row> {
    let all = environment.catalog.views.values();
    all.map(|view| {
        Row::of([
            ("schemaname", text(schema_shown(&view.name.schema))),
            ("viewname", text(view.name.name.clone())),
            ("viewowner", owner_name(environment, view.oid)),
            ("definition", text(definition::view(&environment.catalog, &view.query))),
        ])
    })
    .collect()
}

fn materialized_views(environment: &Environment) -> Vec<Row> {
    let row = |table: &Arc<Table>| {
        let view = table.materialized.as_ref()?;
        Some(Row::of([
            ("schemaname", text(schema_shown(&table.name.schema))),
            ("matviewname", text(table.name.name.clone())),
            ("matviewowner", owner_name(environment, table.oid)),
            ("hasindexes", truth(definition::indexes(table).next().is_some())),
            ("ispopulated", truth(view.is_populated)),
            ("definition", text(definition::view(&environment.catalog, &view.query))),
        ]))
    };
    environment.catalog.tables.values().filter_map(row).collect()
}

fn indexes_by_name(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in catalog.tables.values() {
        for (key, _, is_unique) in definition::indexes(table) {
            rows.push(Row::of([
                ("schemaname", text(schema_shown(&table.name.schema))),
                ("tablename", text(table.name.name.clone())),
                ("indexname", text(key.name.clone())),
                ("indexdef", text(definition::index(table, key, is_unique))),
            ]));
        }
    }
    rows
}

fn sequences_by_name(environment: &Environment) -> Vec<Row> {
    let all = environment.catalog.sequences.values();
    all.map(|sequence| {
        Row::of([
            ("schemaname", text(schema_shown(&sequence.name.schema))),
            ("sequencename", text(sequence.name.name.clone())),
            ("sequenceowner", owner_name(environment, sequence.oid)),
            ("data_type", number(sequence.sql_type().oid())),
            ("start_value", number(sequence.start)),
            ("min_value", number(sequence.minimum)),
            ("max_value", number(sequence.maximum)),
            ("increment_by", number(sequence.increment)),
            ("cycle", truth(sequence.cycle)),
            ("cache_size", number(1)),
            ("last_value", Value::Null),
        ])
    })
    .collect()
}

fn table_statistics(catalog: &Catalog) -> Vec<Row> {
    let all = catalog.tables.values();
    all.map(|table| {
        Row::of([
            ("relid", number(table.oid)),
            ("schemaname", text(schema_shown(&table.name.schema))),
            ("relname", text(table.name.name.clone())),
        ])
    })
    .collect()
}

fn index_statistics(catalog: &Catalog) -> Vec<Row> {
    let mut rows = Vec::new();
    for table in catalog.tables.values() {
        for (key, ..) in definition::indexes(table) {
            rows.push(Row::of([
                ("relid", number(table.oid)),
                ("indexrelid", number(key.oid)),
                ("schemaname", text(schema_shown(&table.name.schema))),
                ("relname", text(table.name.name.clone())),
                ("indexrelname", text(key.name.clone())),
            ]));
        }
    }
    rows
}
