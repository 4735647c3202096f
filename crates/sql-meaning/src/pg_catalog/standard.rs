//! `information_schema`: what is defined, as the SQL standard has it shown.

use super::definition::{self, Constraint};
use super::row::{Row, number, text, yes};
use super::{RELATIONS, objects};
use crate::catalog::schema_shown;
use crate::catalog::{
    Catalog, Deferral, Domain, Identity, ObjectName, ReferentialAction, Returns, Sequence, Table, View,
};
use crate::functions::Environment;
use crate::sql_type::SqlType;
use crate::type_rules::plain_name;
use fabius_sql_syntax::privilege::Class;
use fabius_value::Value;

/// The rows of a relation; `None` if there is no such one.
pub fn rows(name: &str, environment: &Environment) -> Option<Vec<Row>> {
    let catalog = environment.catalog.as_ref();
    let database = environment.session.database();
    let database = database.as_str();
    Some(match name {
        "schemata" => objects::namespaces_of(catalog)
            .into_iter()
            .map(|(oid, name)| {
                let owner = environment.role_name(catalog.access(Class::Schema, oid).owner);
                Row::of([
                    ("catalog_name", text(database)),
                    ("schema_name", text(name)),
                    ("schema_owner", text(owner)),
                ])
            })
            .collect(),
        "tables" => tables(catalog, database),
        "columns" => columns(catalog, database),
        "domains" => domains(catalog, database),
        "domain_constraints" => domain_constraints(catalog, database),
        "views" => views(catalog, database),
        "sequences" => catalog
            .sequences
            .values()
            .filter(|sequence| !is_of_identity(catalog, sequence))
            .map(|sequence| {
                let sql_type = sequence.sql_type();
                named("sequence", database, &sequence.name)
                    .with("data_type", text(sql_type.to_string()))
                    .with("numeric_precision", number(8 * i64::from(sql_type.length())))
                    .with("numeric_precision_radix", number(2))
                    .with("numeric_scale", number(0))
                    .with("start_value", text(sequence.start.to_string()))
                    .with("minimum_value", text(sequence.minimum.to_string()))
                    .with("maximum_value", text(sequence.maximum.to_string()))
                    .with("increment", text(sequence.increment.to_string()))
                    .with("cycle_option", yes(sequence.cycle))
            })
            .collect(),
        "table_constraints" => table_constraints(catalog, database),
        "key_column_usage" => key_columns(catalog, database),
        "constraint_column_usage" => constraint_columns(catalog, database),
        "constraint_table_usage" => each(catalog, |table, constraint| {
            let about = match constraint {
                Constraint::Foreign(key) => &key.parent,
                _ => &table.name,
            };
            vec![
                constrained(database, table, constraint)
                    .with("table_catalog", text(database))
                    .with("table_schema", text(schema_shown(&about.schema)))
                    .with("table_name", text(about.name.clone())),
            ]
        }),
        "referential_constraints" => each(catalog, |table, constraint| match constraint {
            Constraint::Foreign(key) => {
                let parent = catalog.tables.get(&key.parent);
                let unique = parent.and_then(|parent| {
                    definition::indexes(parent)
                        .find(|(other, ..)| other.columns == key.parent_columns)
                        .map(|(other, ..)| other.name.clone())
                });
                vec![
                    constrained(database, table, constraint)
                        .with("unique_constraint_catalog", text(database))
                        .with("unique_constraint_schema", text(schema_shown(&key.parent.schema)))
                        .with("unique_constraint_name", unique.map_or(Value::Null, text))
                        .with("match_option", text("NONE"))
                        .with("update_rule", rule(key.on_update))
                        .with("delete_rule", rule(key.on_delete)),
                ]
            }
            _ => Vec::new(),
        }),
        "check_constraints" => each(catalog, |table, constraint| match constraint {
            Constraint::Check(check) => {
                vec![
                    constrained(database, table, constraint)
                        .with("check_clause", text(format!("({})", check.condition))),
                ]
            }
            _ => Vec::new(),
        }),
        "routines" => routines(catalog, database),
        "parameters" => parameters(catalog, database),
        "information_schema_catalog_name" => vec![Row::of([("catalog_name", text(database))])],
        _ => return None,
    })
}

/// Whether a sequence is a part of an identity column.
fn is_of_identity(catalog: &Catalog, sequence: &Sequence) -> bool {
    sequence.owner.as_ref().is_some_and(|(table, column)| {
        let column = catalog.tables.get(table).and_then(|table| table.column(column));
        column.is_some_and(|column| column.identity.is_some())
    })
}

/// The catalog, schema and name of something of this kind.
fn named(kind: &str, database: &str, name: &ObjectName) -> Row {
    let columns = match kind {
        "domain" => ["domain_catalog", "domain_schema", "domain_name"],
        "sequence" => ["sequence_catalog", "sequence_schema", "sequence_name"],
        "specific" => ["specific_catalog", "specific_schema", "specific_name"],
        _ => ["table_catalog", "table_schema", "table_name"],
    };
    Row::of([
        (columns[0], text(database)),
        (columns[1], text(schema_shown(&name.schema))),
        (columns[2], text(name.name.clone())),
    ])
}

fn views(catalog: &Catalog, database: &str) -> Vec<Row> {
    let row = |view: &View| {
        named("table", database, &view.name)
            .with("view_definition", text(definition::view(catalog, &view.query)))
            .with("check_option", text("NONE"))
            .with("is_updatable", yes(false))
            .with("is_insertable_into", yes(false))
            .with("is_trigger_updatable", yes(false))
            .with("is_trigger_deletable", yes(false))
            .with("is_trigger_insertable_into", yes(false))
    };
    catalog.views.values().map(|view| row(view)).collect()
}

fn domains(catalog: &Catalog, database: &str) -> Vec<Row> {
    let row = |domain: &Domain| {
        let row = named("domain", database, &domain.name)
            .with("domain_default", domain.default.clone().into())
            .with("dtd_identifier", text("1"));
        typed(row, database, &domain.base)
    };
    catalog.domains.values().map(|domain| row(domain)).collect()
}

fn domain_constraints(catalog: &Catalog, database: &str) -> Vec<Row> {
    let all = catalog.domains.values().flat_map(|domain| {
        domain.checks.iter().map(move |check| {
            named("domain", database, &domain.name)
                .with("constraint_catalog", text(database))
                .with("constraint_schema", text(domain.name.schema.clone()))
                .with("constraint_name", text(check.name.clone()))
                .with("is_deferrable", yes(false))
                .with("initially_deferred", yes(false))
        })
    });
    all.collect()
}

fn constrained(database: &str, table: &Table, constraint: &Constraint<'_>) -> Row {
    Row::of([
        ("constraint_catalog", text(database)),
        ("constraint_schema", text(schema_shown(&table.name.schema))),
        ("constraint_name", text(constraint.name())),
    ])
}

fn each(catalog: &Catalog, rows: impl Fn(&Table, &Constraint<'_>) -> Vec<Row>) -> Vec<Row> {
    let tables = catalog.tables.values();
    tables
        .flat_map(|table| {
            let constraints = definition::constraints(table);
            constraints.into_iter().flat_map(|(_, constraint)| rows(table, &constraint)).collect::<Vec<_>>()
        })
        .collect()
}

fn rule(action: ReferentialAction) -> Value {
    text(match action {
        ReferentialAction::NoAction => "NO ACTION",
        ReferentialAction::Restrict => "RESTRICT",
        ReferentialAction::Cascade => "CASCADE",
        ReferentialAction::SetNull => "SET NULL",
        ReferentialAction::SetDefault => "SET DEFAULT",
    })
}

fn tables(catalog: &Catalog, database: &str) -> Vec<Row> {
    let table = |row: Row, kind: &str| {
        row.with("table_type", text(kind))
            .with("is_insertable_into", yes(kind != "VIEW"))
            .with("is_typed", yes(false))
    };
    let mut rows: Vec<Row> = RELATIONS
        .iter()
        .map(|relation| {
            let name = ObjectName { schema: relation.schema.clone(), name: relation.name.clone() };
            table(named("table", database, &name), if relation.kind == 'r' { "BASE TABLE" } else { "VIEW" })
        })
        .collect();
    rows.extend(catalog.plain_tables().map(|known| {
        let kind = if known.is_temporary() { "LOCAL TEMPORARY" } else { "BASE TABLE" };
        table(named("table", database, &known.name), kind)
    }));
    rows.extend(catalog.views.values().map(|view| table(named("table", database, &view.name), "VIEW")));
    rows
}

/// What `information_schema` says of a type: its name and its lengths.
fn typed(row: Row, database: &str, sql_type: &SqlType) -> Row {
    let name = match sql_type {
        SqlType::Array(_) => "ARRAY".to_string(),
        SqlType::Enumeration(_) => "USER-DEFINED".to_string(),
        other => plain_name(other),
    };
    let schema = match sql_type.innermost() {
        SqlType::Enumeration(of) => of.schema.clone(),
        _ => "pg_catalog".to_string(),
    };
    let row = row
        .with("data_type", text(name))
        .with("udt_catalog", text(database))
        .with("udt_schema", text(schema))
        .with("udt_name", text(sql_type.internal_name()));
    let digits = |row: Row, precision: i64, radix: i64, scale: Option<i64>| {
        row.with("numeric_precision", number(precision))
            .with("numeric_precision_radix", number(radix))
            .with("numeric_scale", scale.map_or(Value::Null, number))
    };
    match sql_type {
        SqlType::SmallInt => digits(row, 16, 2, Some(0)),
        SqlType::Int => digits(row, 32, 2, Some(0)),
        SqlType::BigInt => digits(row, 64, 2, Some(0)),
        SqlType::Real => digits(row, 24, 2, None),
        SqlType::Double => digits(row, 53, 2, None),
        SqlType::Numeric(Some((precision, scale))) => {
            digits(row, i64::from(*precision), 10, Some(i64::from(*scale)))
        }
        SqlType::Numeric(None) => row.with("numeric_precision_radix", number(10)),
        SqlType::VarChar(Some(length)) | SqlType::Char(length) => row
            .with("character_maximum_length", number(*length))
            .with("character_octet_length", number(i64::from(*length) * 4)),
        SqlType::Text | SqlType::VarChar(None) => row.with("character_octet_length", number(1_073_741_824)),
        SqlType::Date => row.with("datetime_precision", number(0)),
        SqlType::Rounded(_, digits) => row.with("datetime_precision", number(*digits)),
        SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz | SqlType::Interval => {
            row.with("datetime_precision", number(6))
        }
        _ => row,
    }
}

fn columns(catalog: &Catalog, database: &str) -> Vec<Row> {
    let column = |relation: &ObjectName, place: usize, name: &str, sql_type: &SqlType, is_updatable: bool| {
        let row = named("table", database, relation)
            .with("column_name", text(name))
            .with("ordinal_position", number(place as i64))
            .with("is_nullable", yes(true))
            .with("dtd_identifier", text(place.to_string()))
            .with("is_self_referencing", yes(false))
            .with("is_identity", yes(false))
            .with("identity_cycle", yes(false))
            .with("is_generated", text("NEVER"))
            .with("is_updatable", yes(is_updatable));
        typed(row, database, sql_type)
    };
    let mut rows = Vec::new();
    for relation in RELATIONS.iter() {
        let name = ObjectName { schema: relation.schema.clone(), name: relation.name.clone() };
        for (at, known) in relation.columns.iter().enumerate() {
            rows.push(column(&name, at + 1, &known.name, &known.sql_type, false));
        }
    }
    for table in catalog.plain_tables() {
        for (at, known) in table.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden) {
            let is_key = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&known.name));
            let mut row = column(&table.name, at + 1, &known.name, &known.sql_type, true)
                .with("is_nullable", yes(known.nullable && !is_key))
                .with("column_default", definition::default(known).map_or(Value::Null, text));
            let domain = catalog.domains.values().find(|domain| Some(domain.oid) == known.domain);
            if let Some(domain) = domain {
                row = row
                    .with("domain_catalog", text(database))
                    .with("domain_schema", text(domain.name.schema.clone()))
                    .with("domain_name", text(domain.name.name.clone()));
            }
            let sequence = known.sequence.as_ref().and_then(|name| catalog.sequences.get(name));
            if let Some(expression) = &known.generated {
                row = row
                    .with("column_default", Value::Null)
                    .with("is_generated", text("ALWAYS"))
                    .with("generation_expression", text(definition::shown(expression)));
            }
            if let (Some(identity), Some(sequence)) = (known.identity, sequence) {
                let generation = if identity == Identity::Always { "ALWAYS" } else { "BY DEFAULT" };
                row = row
                    .with("is_identity", yes(true))
                    .with("identity_generation", text(generation))
                    .with("identity_start", text(sequence.start.to_string()))
                    .with("identity_increment", text(sequence.increment.to_string()))
                    .with("identity_maximum", text(sequence.maximum.to_string()))
                    .with("identity_minimum", text(sequence.minimum.to_string()));
            }
            rows.push(row);
        }
    }
    for view in catalog.views.values() {
        for (at, (name, sql_type)) in view.columns.iter().enumerate() {
            rows.push(column(&view.name, at + 1, name, sql_type, false));
        }
    }
    rows
}

fn table_constraints(catalog: &Catalog, database: &str) -> Vec<Row> {
    let mut rows = each(catalog, |table, constraint| {
        let kind = match constraint {
            Constraint::Key(_, true) => "PRIMARY KEY",
            Constraint::Key(_, false) => "UNIQUE",
            Constraint::Check(_) => "CHECK",
            Constraint::Foreign(_) => "FOREIGN KEY",
        };
        let deferral = constraint.deferral();
        vec![
            constrained(database, table, constraint)
                .with("table_catalog", text(database))
                .with("table_schema", text(schema_shown(&table.name.schema)))
                .with("table_name", text(table.name.name.clone()))
                .with("constraint_type", text(kind))
                .with("is_deferrable", yes(deferral != Deferral::Never))
                .with("initially_deferred", yes(deferral == Deferral::InitiallyDeferred))
                .with("enforced", yes(true))
                .with("nulls_distinct", if kind == "UNIQUE" { yes(true) } else { Value::Null }),
        ]
    });
    // `NOT NULL` is a check, as the standard has it.
    for table in catalog.plain_tables() {
        let namespace = super::namespace_oid(catalog, &table.name.schema);
        for (at, column) in table.columns.iter().enumerate().filter(|(_, column)| !column.is_hidden) {
            let is_key = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column.name));
            if column.nullable && !is_key {
                continue;
            }
            rows.push(
                named("table", database, &table.name)
                    .with("constraint_catalog", text(database))
                    .with("constraint_schema", text(schema_shown(&table.name.schema)))
                    .with("constraint_name", text(format!("{namespace}_{}_{}_not_null", table.oid, at + 1)))
                    .with("constraint_type", text("CHECK"))
                    .with("is_deferrable", yes(false))
                    .with("initially_deferred", yes(false))
                    .with("enforced", yes(true)),
            );
        }
    }
    rows
}

fn key_columns(catalog: &Catalog, database: &str) -> Vec<Row> {
    each(catalog, |table, constraint| {
        let (columns, parents) = match constraint {
            Constraint::Key(key, _) => (&key.columns, None),
            Constraint::Foreign(key) => (&key.columns, Some(key)),
            Constraint::Check(_) => return Vec::new(),
        };
        let rows = columns.iter().enumerate().map(|(at, column)| {
            let place = parents.and_then(|key| {
                let parent = catalog.tables.get(&key.parent)?;
                let name = key.parent_columns.get(at)?;
                let (unique, ..) = definition::indexes(parent).find(|(other, ..)| {
                    other.columns.len() == key.parent_columns.len() && other.columns.contains(name)
                })?;
                unique.columns.iter().position(|other| other == name)
            });
            constrained(database, table, constraint)
                .with("table_catalog", text(database))
                .with("table_schema", text(schema_shown(&table.name.schema)))
                .with("table_name", text(table.name.name.clone()))
                .with("column_name", text(column.clone()))
                .with("ordinal_position", number(at as i64 + 1))
                .with("position_in_unique_constraint", place.map_or(Value::Null, |at| number(at as i64 + 1)))
        });
        rows.collect()
    })
}

fn constraint_columns(catalog: &Catalog, database: &str) -> Vec<Row> {
    each(catalog, |table, constraint| {
        let (about, columns) = match constraint {
            Constraint::Key(key, _) => (&table.name, key.columns.clone()),
            Constraint::Foreign(key) => (&key.parent, key.parent_columns.clone()),
            Constraint::Check(check) => {
                let named = table.columns.iter().filter(|column| {
                    let mut words = check.condition.split(|c: char| !c.is_alphanumeric() && c != '_');
                    words.any(|word| word == column.name)
                });
                (&table.name, named.map(|column| column.name.clone()).collect())
            }
        };
        let rows = columns.into_iter().map(|column| {
            constrained(database, table, constraint)
                .with("table_catalog", text(database))
                .with("table_schema", text(schema_shown(&about.schema)))
                .with("table_name", text(about.name.clone()))
                .with("column_name", text(column))
        });
        rows.collect()
    })
}

fn routines(catalog: &Catalog, database: &str) -> Vec<Row> {
    let all = catalog.functions.values().flatten();
    all.map(|function| {
        let specific = ObjectName {
            schema: function.name.schema.clone(),
            name: format!("{}_{}", function.name.name, function.oid),
        };
        let row = named("specific", database, &specific)
            .with("routine_catalog", text(database))
            .with("routine_schema", text(schema_shown(&function.name.schema)))
            .with("routine_name", text(function.name.name.clone()))
            .with("routine_type", text(if function.is_procedure { "PROCEDURE" } else { "FUNCTION" }))
            .with("routine_body", text("EXTERNAL"))
            .with("routine_definition", text(function.body.clone()))
            .with("external_language", text(function.language.to_uppercase()))
            .with("is_deterministic", yes(false))
            .with("security_type", text("INVOKER"));
        match &function.returns {
            _ if function.is_procedure => row,
            Returns::Scalar(sql_type) => typed(row, database, sql_type)
                .with("type_udt_name", text(sql_type.internal_name()))
                .with("type_udt_schema", text("pg_catalog"))
                .with("type_udt_catalog", text(database)),
            _ => row.with("data_type", text("record")).with("type_udt_name", text("record")),
        }
    })
    .collect()
}

fn parameters(catalog: &Catalog, database: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for function in catalog.functions.values().flatten() {
        let specific = ObjectName {
            schema: function.name.schema.clone(),
            name: format!("{}_{}", function.name.name, function.oid),
        };
        for (at, parameter) in function.parameters.iter().enumerate() {
            let row = named("specific", database, &specific)
                .with("ordinal_position", number(at as i64 + 1))
                .with("parameter_mode", text("IN"))
                .with("is_result", yes(false))
                .with("as_locator", yes(false))
                .with(
                    "parameter_name",
                    if parameter.name.is_empty() { Value::Null } else { text(parameter.name.clone()) },
                );
            rows.push(typed(row, database, &parameter.sql_type));
        }
    }
    rows
}
