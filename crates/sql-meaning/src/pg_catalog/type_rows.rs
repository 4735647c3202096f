//! Types as `pg_catalog` shows them: SQL's own, those of PostgreSQL that only the catalog has, and enumerations.

use super::PG_CATALOG;
use super::namespace_oid;
use super::roles::owner_and_list;
use super::row::{Row, number, text, truth};
use crate::catalog::Catalog;
use crate::catalog::Oid;
use crate::catalog::role::BOOTSTRAP;
use crate::functions::Environment;
use crate::sql_type::{Enumeration, SqlType};
use fabius_sql_syntax::privilege::Class;
use fabius_value::Value;
use std::sync::LazyLock;

/// A type of PostgreSQL.
struct Type {
    oid: u32,
    name: &'static str,
    length: i64,
    is_by_value: bool,
    kind: &'static str,
    category: &'static str,
    is_preferred: bool,
    element: u32,
    array: u32,
    input: &'static str,
    output: &'static str,
    alignment: &'static str,
    storage: &'static str,
    collation: u32,
    base: u32,
    namespace: u32,
}

static TYPES: LazyLock<Vec<Type>> = LazyLock::new(|| {
    let parsed = include_str!("types.txt").lines().filter_map(|line| {
        let words: Vec<&'static str> = line.split(' ').collect();
        let word = |at: usize| words.get(at).copied().unwrap_or_default();
        Some(Type {
            oid: word(0).parse().ok()?,
            name: word(1),
            length: word(2).parse().ok()?,
            is_by_value: word(3) == "true",
            kind: word(4),
            category: word(5),
            is_preferred: word(6) == "true",
            element: word(7).parse().ok()?,
            array: word(8).parse().ok()?,
            input: word(9),
            output: word(10),
            alignment: word(11),
            storage: word(12),
            collation: word(13).parse().ok()?,
            base: word(14).parse().ok()?,
            namespace: word(15).parse().ok()?,
        })
    });
    parsed.collect()
});

/// The number of a type by its name in `pg_type`, or 0.
pub fn type_oid(name: &str) -> u32 {
    match name.strip_prefix('_') {
        Some(element) => TYPES.iter().find(|known| known.name == element).map_or(0, |known| known.array),
        None => TYPES.iter().find(|known| known.name == name).map_or(0, |known| known.oid),
    }
}

/// How values of a type lie in a row: `typalign` and `typstorage`.
pub fn layout(sql_type: &SqlType) -> (&'static str, &'static str) {
    if let SqlType::Enumeration(_) = sql_type {
        return ("i", "p");
    }
    let oid = sql_type.oid();
    TYPES.iter().find(|known| known.oid == oid).map_or(("i", "x"), |known| (known.alignment, known.storage))
}

/// Whether a type is of `information_schema`.
pub fn is_standard_type(oid: u32) -> bool {
    TYPES
        .iter()
        .any(|known| known.namespace == super::INFORMATION_SCHEMA && [known.oid, known.array].contains(&oid))
}

/// The name of a type by its number.
pub fn type_name(oid: u32) -> Option<String> {
    TYPES.iter().find_map(|known| match oid {
        _ if known.oid == oid => Some(known.name.to_string()),
        _ if known.array == oid && oid != 0 => Some(format!("{}[]", known.name)),
        _ => None,
    })
}

/// The rows of a relation; `None` if it is not about types.
pub fn rows(name: &str, environment: &Environment) -> Option<Vec<Row>> {
    let catalog = environment.catalog.as_ref();
    Some(match name {
        "pg_type" => types(environment),
        "pg_enum" => labels(catalog),
        "pg_opclass" => operator_classes(),
        _ => return None,
    })
}

/// Operator classes of B-tree indexes: number, name, type.
const OPERATOR_CLASSES: &[(u32, &str, u32)] = &[
    (424, "bool_ops", 16),
    (428, "bytea_ops", 17),
    (434, "date_ops", 1082),
    (1972, "float4_ops", 700),
    (3123, "float8_ops", 701),
    (1979, "int2_ops", 21),
    (1978, "int4_ops", 23),
    (3124, "int8_ops", 20),
    (3125, "numeric_ops", 1700),
    (1981, "oid_ops", 26),
    (3126, "text_ops", 25),
    (3128, "timestamp_ops", 1114),
    (3127, "timestamptz_ops", 1184),
    (1996, "time_ops", 1083),
    (2968, "uuid_ops", 2950),
    (1974, "inet_ops", 869),
    (426, "bpchar_ops", 1042),
    (10_069, "enum_ops", ANY_ENUM),
];

/// Those that an index may ask for, which are nobody's by default.
const OTHER_OPERATOR_CLASSES: &[(u32, &str, u32)] = &[
    (4217, "text_pattern_ops", 25),
    (4218, "varchar_pattern_ops", 25),
    (4219, "bpchar_pattern_ops", 1042),
    (10_003, "varchar_ops", 25),
    (10_016, "cidr_ops", 869),
];

/// The number of an operator class of B-tree indexes, by its name.
pub fn operator_class_named(name: &str) -> Option<u32> {
    let mut all = OPERATOR_CLASSES.iter().chain(OTHER_OPERATOR_CLASSES);
    all.find(|(_, known, _)| *known == name).map(|(oid, ..)| *oid)
}

/// The number of `anyenum`.
const ANY_ENUM: u32 = 3500;

/// The number of the operator class of a type's B-tree indexes, or 0.
pub fn operator_class(sql_type: &SqlType) -> u32 {
    let oid = match sql_type {
        SqlType::Enumeration(_) => ANY_ENUM,
        SqlType::VarChar(_) | SqlType::Name => 25,
        SqlType::Cidr => 869,
        other => other.oid(),
    };
    OPERATOR_CLASSES.iter().find(|(_, _, input)| *input == oid).map_or(0, |(class, ..)| *class)
}

fn operator_classes() -> Vec<Row> {
    let usual = OPERATOR_CLASSES.iter().map(|class| (class, true));
    usual
        .chain(OTHER_OPERATOR_CLASSES.iter().map(|class| (class, false)))
        .map(|((oid, name, input), is_default)| {
            Row::of([
                ("oid", number(*oid)),
                ("opcmethod", number(403)),
                ("opcname", text(*name)),
                ("opcnamespace", number(PG_CATALOG)),
                ("opcowner", number(BOOTSTRAP)),
                ("opcintype", number(*input)),
                ("opcdefault", truth(is_default)),
            ])
        })
        .collect()
}

fn types(environment: &Environment) -> Vec<Row> {
    let catalog = environment.catalog.as_ref();
    let owned = |row: Row, oid: Oid| {
        let (owner, list) = owner_and_list(environment, Class::Type, oid);
        row.with("typowner", owner).with("typacl", list)
    };
    let mut rows = Vec::new();
    for known in TYPES.iter() {
        let row = type_row(known.oid, known.name, known.namespace)
            .with("typlen", number(known.length))
            .with("typbyval", truth(known.is_by_value))
            .with("typtype", text(known.kind))
            .with("typcategory", text(known.category))
            .with("typispreferred", truth(known.is_preferred))
            .with("typelem", number(known.element))
            .with("typarray", number(known.array))
            .with("typinput", number(function_oid(known.input)))
            .with("typoutput", number(function_oid(known.output)))
            .with("typalign", text(known.alignment))
            .with("typstorage", text(known.storage))
            .with("typcollation", number(known.collation))
            .with("typbasetype", number(known.base));
        rows.push(row);
        if known.array != 0 {
            let alignment = if known.alignment == "d" { "d" } else { "i" };
            let row = array_row(known.array, known.name, known.namespace, known.oid);
            rows.push(row.with("typalign", text(alignment)).with("typcollation", number(known.collation)));
        }
    }
    for domain in catalog.domains.values() {
        let namespace = namespace_oid(catalog, &domain.name.schema);
        let base = domain.base.oid();
        let known = TYPES.iter().find(|known| known.oid == base);
        let category = known
            .map_or(if matches!(domain.base, SqlType::Array(_)) { "A" } else { "E" }, |known| known.category);
        let (alignment, storage) = layout(&domain.base);
        let length = domain.base.length();
        let row = type_row(domain.oid, &domain.name.name, namespace)
            .with("typlen", number(length))
            .with("typbyval", truth((1..=8).contains(&length)))
            .with("typtype", text("d"))
            .with("typcategory", text(category))
            .with("typarray", number(domain.array_oid))
            .with("typalign", text(alignment))
            .with("typstorage", text(storage))
            .with("typnotnull", truth(domain.is_not_null))
            .with("typbasetype", number(base))
            .with("typtypmod", number(domain.base.modifier()))
            .with("typcollation", number(known.map_or(0, |known| known.collation)))
            .with("typdefaultbin", domain.default.clone().into())
            .with("typdefault", domain.default.clone().into());
        rows.push(owned(row, domain.oid));
        rows.push(
            array_row(domain.array_oid, &domain.name.name, namespace, domain.oid).with("typalign", text("i")),
        );
    }
    for of in catalog.enumerations.values() {
        let namespace = namespace_oid(catalog, &of.schema);
        let row = type_row(of.oid, &of.name, namespace)
            .with("typlen", number(4))
            .with("typbyval", truth(true))
            .with("typtype", text("e"))
            .with("typcategory", text("E"))
            .with("typarray", number(of.array_oid))
            .with("typinput", number(ENUM_IN))
            .with("typoutput", number(ENUM_OUT))
            .with("typalign", text("i"))
            .with("typstorage", text("p"));
        rows.push(owned(row, of.oid));
        rows.push(array_row(of.array_oid, &of.name, namespace, of.oid).with("typalign", text("i")));
    }
    rows
}

fn type_row(oid: u32, name: &str, namespace: u32) -> Row {
    Row::of([
        ("oid", number(oid)),
        ("typname", text(name)),
        ("typnamespace", number(namespace)),
        ("typowner", number(BOOTSTRAP)),
        ("typisdefined", truth(true)),
        ("typdelim", text(",")),
        ("typtypmod", number(-1)),
    ])
}

/// The type of arrays of another one.
fn array_row(oid: u32, of: &str, namespace: u32, element: u32) -> Row {
    type_row(oid, &format!("_{of}"), namespace)
        .with("typlen", number(-1))
        .with("typtype", text("b"))
        .with("typcategory", text("A"))
        .with("typelem", number(element))
        .with("typinput", number(ARRAY_IN))
        .with("typoutput", number(ARRAY_OUT))
        .with("typstorage", text("x"))
}

fn labels(catalog: &Catalog) -> Vec<Row> {
    let of = |of: &Enumeration| {
        let labels = of.labels.iter().enumerate().map(|(at, label)| {
            Row::of([
                ("oid", number(label.oid)),
                ("enumtypid", number(of.oid)),
                ("enumsortorder", Value::Double(at as f64 + 1.0)),
                ("enumlabel", text(label.name.clone())),
            ])
        });
        labels.collect::<Vec<_>>()
    };
    catalog.enumerations.values().flat_map(|known| of(known)).collect()
}

/// The numbers of `array_in` and `array_out`.
const ARRAY_IN: u32 = 750;
const ARRAY_OUT: u32 = 751;
/// Those of `enum_in` and `enum_out`.
const ENUM_IN: u32 = 3506;
const ENUM_OUT: u32 = 3507;

/// A number for an input or output function, by which its name is found again; 0 if there is none.
pub fn function_oid(name: &str) -> u32 {
    match name {
        "array_in" => return ARRAY_IN,
        "array_out" => return ARRAY_OUT,
        "enum_in" => return ENUM_IN,
        "enum_out" => return ENUM_OUT,
        _ => {}
    }
    // Not those of PostgreSQL, which nothing calls: only the names are asked for.
    let at = TYPES.iter().position(|known| known.input == name || known.output == name);
    at.map_or(0, |at| {
        5000 + 2 * at as u32 + u32::from(TYPES.get(at).is_some_and(|known| known.output == name))
    })
}

/// The name of an input or output function by its number.
pub fn function_name(oid: u32) -> Option<String> {
    match oid {
        ARRAY_IN => return Some("array_in".into()),
        ARRAY_OUT => return Some("array_out".into()),
        ENUM_IN => return Some("enum_in".into()),
        ENUM_OUT => return Some("enum_out".into()),
        _ => {}
    }
    let at = oid.checked_sub(5000)?;
    let known = TYPES.get(at as usize / 2)?;
    Some(if at % 2 == 0 { known.input } else { known.output }.to_string())
}
