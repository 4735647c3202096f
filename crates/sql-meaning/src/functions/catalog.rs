//! Functions about the catalog: names and numbers of objects, definitions, comments, privileges, sizes.

use super::{Call, Definition, array_of, define, elements_at, integer_at, text_at, truth_at};
use crate::catalog::{Catalog, ObjectName, TEMPORARY, name_of_text};
use crate::pg_catalog::{RELATIONS, definition, objects, type_rows};
use crate::sql_type::SqlType;
use crate::type_rules::plain_name;
use fabius_sql_syntax::identifier::quote_identifier;
use fabius_value::{Error, Result, SqlState, Value};

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        // Behind casts to and from `regclass` and its like.
        define("fabius_class_oid(text) oid stable", |a, c| {
            class_oid(c, text_at(a, 0))?.map(number).ok_or_else(|| {
                Error::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{}\" does not exist", text_at(a, 0)),
                )
            })
        }),
        define("to_regclass(text) oid stable", |a, c| {
            Ok(class_oid(c, text_at(a, 0)).ok().flatten().map_or(Value::Null, number))
        }),
        define("fabius_class_name(oid) text stable", |a, c| {
            let oid = integer_at(a, 0) as u32;
            Ok(Value::Text(
                class_name(c, oid).unwrap_or_else(|| if oid == 0 { "-".into() } else { oid.to_string() }),
            ))
        }),
        define("fabius_type_oid(text) oid stable", |a, c| {
            oid_of_type(a, c).map(number).ok_or_else(|| {
                Error::new(SqlState(*b"42704"), format!("type \"{}\" does not exist", text_at(a, 0)))
            })
        }),
        define("to_regtype(text) oid stable", |a, c| Ok(oid_of_type(a, c).map_or(Value::Null, number))),
        define("fabius_type_name(oid) text stable", |a, c| {
            let oid = integer_at(a, 0) as u32;
            Ok(Value::Text(if oid == 0 { "-".into() } else { type_name(c, oid, -1) }))
        }),
        define("fabius_function_oid(text) oid stable", |a, c| {
            let text = text_at(a, 0);
            if let Ok(oid) = text.parse::<u32>() {
                return Ok(number(oid));
            }
            function_oid(&c.environment.catalog, text).map(number).ok_or_else(|| {
                Error::new(SqlState::UNDEFINED_FUNCTION, format!("function \"{text}\" does not exist"))
            })
        }),
        define("to_regproc(text) oid stable", |a, c| {
            Ok(function_oid(&c.environment.catalog, text_at(a, 0)).map_or(Value::Null, number))
        }),
        define("fabius_function_name(oid) text stable", |a, c| {
            let oid = integer_at(a, 0) as u32;
            let own =
                definition::function_of(&c.environment.catalog, oid).map(|f| definition::qualified(&f.name));
            let name = own.or_else(|| type_rows::function_name(oid));
            Ok(Value::Text(name.unwrap_or_else(|| if oid == 0 { "-".into() } else { oid.to_string() })))
        }),
        define("fabius_namespace_oid(text) oid stable", |a, c| {
            let name = unquoted(text_at(a, 0)).pop().unwrap_or_default();
            let all = objects::namespaces_of(&c.environment.catalog);
            let found = all.into_iter().find(|(_, known)| *known == name);
            found
                .map(|(oid, _)| number(oid))
                .ok_or_else(|| Error::new(SqlState(*b"3F000"), format!("schema \"{name}\" does not exist")))
        }),
        define("to_regnamespace(text) oid stable", |a, c| {
            let all = objects::namespaces_of(&c.environment.catalog);
            let found = all.into_iter().find(|(_, known)| known == text_at(a, 0));
            Ok(found.map_or(Value::Null, |(oid, _)| number(oid)))
        }),
        define("fabius_namespace_name(oid) text stable", |a, c| {
            let oid = integer_at(a, 0);
            let all = objects::namespaces_of(&c.environment.catalog);
            let found = all.into_iter().find(|(known, _)| i64::from(*known) == oid);
            let unknown = || if oid == 0 { "-".to_string() } else { oid.to_string() };
            Ok(Value::Text(found.map_or_else(unknown, |(_, name)| quote_identifier(&name))))
        }),
        define("format_type(oid, int) text null", |a, c| Ok(format_type(a, c))),
        define("pg_typeof(any) text null", |_, c| {
            Ok(Value::Text(c.types.first().map_or_else(|| "unknown".into(), plain_name)))
        }),
        define("pg_get_expr(text, oid, bool?) text stable", |a, c| Ok(expression(a, c))),
        define("pg_get_indexdef(oid) text stable", |a, c| {
            let found = definition::index_of(&c.environment.catalog, integer_at(a, 0) as u32);
            Ok(found.map(|(table, key, is_unique)| definition::index(table, key, is_unique)).into())
        }),
        define("pg_get_indexdef(oid, int, bool) text stable", |a, c| {
            let found = definition::index_of(&c.environment.catalog, integer_at(a, 0) as u32);
            Ok(match (found, usize::try_from(integer_at(a, 1))) {
                (Some((table, key, is_unique)), Ok(0)) => {
                    let text = definition::index(table, key, is_unique);
                    // The short form leaves out a schema that is in sight.
                    let schema = format!(" ON {}.", quote_identifier(&table.name.schema));
                    let is_short =
                        truth_at(a, 2) && c.environment.session.search_path().contains(&table.name.schema);
                    Value::Text(if is_short { text.replacen(&schema, " ON ", 1) } else { text })
                }
                (Some((_, key, _)), Ok(place)) => {
                    key.all_columns().nth(place - 1).map(|name| quote_identifier(name)).into()
                }
                _ => Value::Null,
            })
        }),
        define("pg_get_constraintdef(oid, bool?) text stable", |a, c| Ok(constraint(a, c).into())),
        define("pg_get_viewdef(oid, bool?) text stable", |a, c| Ok(view(c, integer_at(a, 0) as u32))),
        define("pg_get_viewdef(oid, int) text stable", |a, c| Ok(view(c, integer_at(a, 0) as u32))),
        define("pg_get_viewdef(text, bool?) text stable", |a, c| {
            Ok(class_oid(c, text_at(a, 0))?.map_or(Value::Null, |oid| view(c, oid)))
        }),
        define("pg_get_ruledef(oid, bool?) text stable", |_, _| Ok(Value::Null)),
        define("pg_get_triggerdef(oid, bool?) text stable", |_, _| Ok(Value::Null)),
        define("pg_get_partkeydef(oid) text stable", |_, _| Ok(Value::Null)),
        define("pg_get_partition_constraintdef(oid) text stable", |_, _| Ok(Value::Null)),
        define("pg_get_statisticsobjdef(oid) text stable", |_, _| Ok(Value::Null)),
        define("pg_get_statisticsobjdef_columns(oid) text stable", |_, _| Ok(Value::Null)),
        define("pg_get_functiondef(oid) text stable", |a, c| {
            let found = definition::function_of(&c.environment.catalog, integer_at(a, 0) as u32);
            Ok(found.map(|function| function.definition.clone()).into())
        }),
        define("pg_get_function_arguments(oid) text stable", |a, c| {
            Ok(arguments(c, integer_at(a, 0) as u32))
        }),
        define("pg_get_function_identity_arguments(oid) text stable", |a, c| {
            Ok(arguments(c, integer_at(a, 0) as u32))
        }),
        define("pg_get_function_result(oid) text stable", |a, c| {
            let found = definition::function_of(&c.environment.catalog, integer_at(a, 0) as u32);
            let path = c.environment.session.search_path();
            Ok(found.and_then(|function| definition::result(function, &path)).into())
        }),
        define("pg_get_function_sqlbody(oid) text stable", |_, _| Ok(Value::Null)),
        define("pg_encoding_to_char(int) name", |_, _| Ok("UTF8".into())),
        define("pg_char_to_encoding(name) int", |_, _| Ok(Value::Int(6))),
        define("pg_get_serial_sequence(text, text) text stable", |a, c| {
            let catalog = &c.environment.catalog;
            let oid = class_oid(c, text_at(a, 0))?.ok_or_else(|| {
                Error::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{}\" does not exist", text_at(a, 0)),
                )
            })?;
            let table = catalog.tables.values().find(|table| table.oid == oid);
            let column =
                table.and_then(|table| table.columns.iter().find(|column| column.name == text_at(a, 1)));
            let sequence = column.and_then(|column| column.sequence.as_ref());
            let full = |name: &ObjectName| {
                format!("{}.{}", quote_identifier(&name.schema), quote_identifier(&name.name))
            };
            Ok(sequence.map(full).into())
        }),
        define("obj_description(oid, name?) text stable", |a, c| Ok(comment(c, integer_at(a, 0), 0))),
        define("col_description(oid, int) text stable", |a, c| {
            Ok(comment(c, integer_at(a, 0), integer_at(a, 1)))
        }),
        define("shobj_description(oid, name) text stable", |a, c| Ok(comment(c, integer_at(a, 0), 0))),
        define("pg_relation_is_publishable(oid) bool stable", |_, _| Ok(Value::Boolean(false))),
        define("pg_describe_object(oid, oid, int) text stable", |_, _| Ok(Value::Null)),
        // Behind `pg_options_to_table`: what stands before and behind `=`.
        define("fabius_option_names(text[]) text[]", |a, _| {
            Ok(array_of(elements_at(a, 0).iter().map(|option| parts_of_option(option).0.into())))
        }),
        define("fabius_option_values(text[]) text[]", |a, _| {
            Ok(array_of(elements_at(a, 0).iter().map(|option| parts_of_option(option).1.into())))
        }),
        // `int2vector` and `oidvector` as text.
        define("fabius_vector_text(anyarray) text", |a, _| {
            let numbers: Vec<String> = elements_at(a, 0).iter().map(Value::to_string).collect();
            Ok(Value::Text(numbers.join(" ")))
        }),
        define("pg_relation_filenode(oid) oid stable", |a, _| Ok(a[0].clone())),
        define("pg_relation_filepath(oid) text stable", |_, _| Ok(Value::Null)),
        define("pg_tablespace_location(oid) text stable", |_, _| Ok("".into())),
        define("pg_column_size(any) int", |a, c| {
            let sql_type = c.types.first().unwrap_or(&SqlType::Text);
            Ok(Value::Int(crate::text_format::cast_text(&a[0], sql_type, &Default::default()).len() as i32))
        }),
        define("pg_indexam_has_property(oid, text) bool stable", |_, _| Ok(Value::Boolean(true))),
        define("pg_index_column_has_property(oid, int, text) bool stable", |a, _| {
            Ok(Value::Boolean(matches!(text_at(a, 2), "asc" | "orderable" | "nulls_last" | "returnable")))
        }),
        define("pg_index_has_property(oid, text) bool stable", |_, _| Ok(Value::Boolean(false))),
        define("pg_sequence_last_value(oid) bigint stable", |_, _| Ok(Value::Null)),
        define("pg_stat_get_numscans(oid) bigint stable", |_, _| Ok(Value::BigInt(0))),
        define("pg_stat_get_live_tuples(oid) bigint stable", |_, _| Ok(Value::BigInt(0))),
        define("pg_collation_for(any) text", |_, _| Ok("\"default\"".into())),
        define("row_security_active(text) bool stable", |_, _| Ok(Value::Boolean(false))),
        define("row_security_active(oid) bool stable", |_, _| Ok(Value::Boolean(false))),
    ];
    for name in [
        "table",
        "type",
        "function",
        "operator",
        "opclass",
        "opfamily",
        "collation",
        "conversion",
        "statistics_obj",
        "ts_parser",
        "ts_dict",
        "ts_template",
        "ts_config",
    ] {
        all.push(define(&format!("pg_{name}_is_visible(oid) bool stable"), is_visible));
    }
    for name in [
        "pg_relation_size",
        "pg_table_size",
        "pg_total_relation_size",
        "pg_indexes_size",
        "pg_database_size",
        "pg_tablespace_size",
    ] {
        all.push(define(&format!("{name}(any...) bigint stable"), |_, _| Ok(Value::BigInt(0))));
    }
    all
}

/// `name=value`, taken apart.
fn parts_of_option(option: &Value) -> (&str, Option<&str>) {
    let Value::Text(text) = option else { return ("", None) };
    text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)))
}

fn number(oid: u32) -> Value {
    Value::BigInt(oid.into())
}

/// The parts of a name as SQL writes it, unquoted and folded.
fn unquoted(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut in_quotes) = (Vec::new(), String::new(), false);
    let mut characters = text.trim().chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            // Two within are one.
            '"' if in_quotes && characters.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => in_quotes = !in_quotes,
            '.' if !in_quotes => parts.push(std::mem::take(&mut part)),
            other if in_quotes => part.push(other),
            other => part.extend(other.to_lowercase()),
        }
    }
    parts.push(part);
    parts
}

/// The relation of a name, or of a number as text.
fn class_oid(call: &Call, text: &str) -> Result<Option<u32>> {
    if text == "-" {
        return Ok(Some(0));
    }
    if let Ok(oid) = text.trim().parse::<u32>() {
        return Ok(Some(oid));
    }
    let parts = unquoted(text);
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] => (Some(schema.as_str()), name),
        [database, schema, name] if *database == call.environment.session.database() => {
            (Some(schema.as_str()), name)
        }
        [_, _, _] => {
            let message = format!("cross-database references are not implemented: \"{text}\"");
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        }
        _ => {
            let message = format!("improper relation name (too many dotted names): {text}");
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
    };
    let catalog = &call.environment.catalog;
    if let Some(relation) = crate::pg_catalog::relation(schema, name) {
        return Ok(Some(relation.oid()));
    }
    for full in catalog.candidates(schema, name) {
        if let Some(relation) = catalog.relation_named(&full) {
            return Ok(Some(relation.oid()));
        }
    }
    Ok(None)
}

/// The name and schema of a relation.
fn class_of(catalog: &Catalog, oid: u32) -> Option<ObjectName> {
    let system = RELATIONS.iter().find(|relation| relation.oid() == oid);
    if let Some(relation) = system {
        return Some(ObjectName { schema: relation.schema.clone(), name: relation.name.clone() });
    }
    if let Some(table) = catalog.tables.values().find(|table| table.oid == oid) {
        return Some(table.name.clone());
    }
    if let Some((table, key, _)) = definition::index_of(catalog, oid) {
        return Some(ObjectName { schema: table.name.schema.clone(), name: key.name.clone() });
    }
    if let Some(view) = catalog.views.values().find(|view| view.oid == oid) {
        return Some(view.name.clone());
    }
    catalog.sequences.values().find(|sequence| sequence.oid == oid).map(|sequence| sequence.name.clone())
}

fn class_name(call: &Call, oid: u32) -> Option<String> {
    let name = class_of(&call.environment.catalog, oid)?;
    Some(if is_in_sight(call, &name) {
        quote_identifier(&name.name)
    } else {
        format!("{}.{}", quote_identifier(&name.schema), quote_identifier(&name.name))
    })
}

/// Whether a relation needs no schema before its name.
fn is_in_sight(call: &Call, name: &ObjectName) -> bool {
    matches!(name.schema.as_str(), "pg_catalog" | TEMPORARY)
        || call.environment.session.search_path().contains(&name.schema)
}

fn is_visible(a: &[Value], call: &Call) -> Result<Value> {
    // What is of other schemas needs their name; all else is in sight.
    let oid = integer_at(a, 0) as u32;
    let catalog = &call.environment.catalog;
    let defined = catalog.enumerations.values().find(|of| of.oid == oid || of.array_oid == oid);
    let domain = catalog.domains.values().find(|domain| domain.oid == oid || domain.array_oid == oid);
    let defined = defined.map(|of| Catalog::name_of(of)).or_else(|| domain.map(|domain| domain.name.clone()));
    let visible = match class_of(catalog, oid).or(defined) {
        Some(name) => is_in_sight(call, &name),
        None => !type_rows::is_standard_type(oid),
    };
    Ok(Value::Boolean(visible))
}

fn constraint(a: &[Value], call: &Call) -> Option<String> {
    let (catalog, oid, is_pretty) = (&call.environment.catalog, integer_at(a, 0) as u32, truth_at(a, 1));
    let of_table = definition::constraint_of(catalog, oid).map(|found| found.1.text(is_pretty));
    of_table.or_else(|| definition::domain_check(catalog, oid, is_pretty))
}

fn expression(a: &[Value], call: &Call) -> Value {
    Value::Text(definition::default_along(text_at(a, 0), &call.environment.session.search_path()))
}

fn oid_of_type(a: &[Value], call: &Call) -> Option<u32> {
    type_oid(&call.environment.catalog, text_at(a, 0))
}

fn format_type(a: &[Value], call: &Call) -> Value {
    if a[0].is_null() {
        return Value::Null;
    }
    let (oid, modifier) = (integer_at(a, 0) as u32, a[1].as_integer().unwrap_or(-1) as i32);
    Value::Text(type_name(call, oid, modifier))
}

fn type_oid(catalog: &Catalog, name: &str) -> Option<u32> {
    let name = name.trim();
    if let Ok(oid) = name.parse::<u32>() {
        return Some(oid);
    }
    if name == "-" {
        return Some(0);
    }
    let is_quoted = |name: &str| name.starts_with('"') && name.ends_with('"') && name.len() > 2;
    let prefixes = ["pg_catalog.", "\"pg_catalog\"."];
    let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if name == "\"char\"" {
        return Some(18);
    }
    if let Some(of) = defined_type(catalog, name) {
        return Some(of.oid());
    }
    if let Some(domain) = name_of_text(name).ok().and_then(|name| catalog.domain(&name).ok().flatten()) {
        return Some(domain.oid);
    }
    if is_quoted(name) {
        // As it stands in `pg_type`: not every name of a type is one there.
        return Some(type_rows::type_oid(&name[1..name.len() - 1])).filter(|oid| *oid != 0);
    }
    let base = name.split('(').next().unwrap_or(name);
    SqlType::of_name(base)
        .map(|sql_type| sql_type.oid())
        .or_else(|| Some(type_rows::type_oid(base)).filter(|oid| *oid != 0))
}

/// The type that is defined here, or its array, if a text is its name.
fn defined_type(catalog: &Catalog, name: &str) -> Option<SqlType> {
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let of = catalog.enumeration(&name_of_text(name).ok()?).ok()??;
    let own = SqlType::Enumeration(of.clone());
    Some(if is_array { SqlType::Array(Box::new(own)) } else { own })
}

/// A type as `format_type` shows it.
fn type_name(call: &Call, oid: u32, modifier: i32) -> String {
    let catalog = &call.environment.catalog;
    let path = call.environment.session.search_path();
    if let Some(sql_type) = SqlType::of_oid(oid).and_then(|of| of.with_modifier(modifier)) {
        return sql_type.to_string();
    }
    if let Some(domain) = catalog.domains.values().find(|domain| domain.oid == oid || domain.array_oid == oid)
    {
        let name = definition::name_along(&domain.name.schema, &domain.name.name, &path);
        return if domain.oid == oid { name } else { format!("{name}[]") };
    }
    match oid {
        0 => "-".into(),
        18 => "\"char\"".into(),
        1042 => "character".into(),
        oid => match catalog.type_of_oid(oid) {
            Some(SqlType::Unknown) if oid != 705 => "???".into(),
            Some(sql_type) if matches!(sql_type.innermost(), SqlType::Enumeration(_)) => {
                definition::type_along(&sql_type, &path)
            }
            Some(sql_type) => plain_name(&sql_type),
            None => type_rows::type_name(oid).unwrap_or_else(|| "???".into()),
        },
    }
}

fn function_oid(catalog: &Catalog, text: &str) -> Option<u32> {
    let parts = unquoted(text.split('(').next().unwrap_or(text));
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [schema, name] => (Some(schema), name),
        _ => return None,
    };
    let own = catalog.functions.values().flatten().find(|function| {
        function.name.name == *name && schema.is_none_or(|schema| function.name.schema == *schema)
    });
    let is_built_in = schema.is_none_or(|schema| schema == "pg_catalog");
    let built_in = || {
        let found = is_built_in.then(|| type_rows::function_oid(name)).filter(|oid| *oid != 0);
        found.or_else(|| is_built_in.then(|| objects::built_in_oid(name)).flatten())
    };
    own.map(|function| function.oid).or_else(built_in)
}

fn view(call: &Call, oid: u32) -> Value {
    let catalog = &call.environment.catalog;
    let found = catalog.views_of_all_kinds().find(|view| view.oid() == oid);
    found.and_then(|view| view.query().map(|query| definition::view(catalog, query))).into()
}

fn arguments(call: &Call, oid: u32) -> Value {
    let path = call.environment.session.search_path();
    let found = definition::function_of(&call.environment.catalog, oid);
    found.map(|function| definition::arguments(function, &path)).into()
}

fn comment(call: &Call, oid: i64, column: i64) -> Value {
    let catalog = &call.environment.catalog;
    let key = (oid as u32, column as u16);
    let on_constraint = || {
        let (table, constraint) = definition::constraint_of(catalog, key.0).filter(|_| key.1 == 0)?;
        table.constraint_comments.get(constraint.name()).cloned()
    };
    let given = catalog.comments.get(&key).cloned().or_else(on_constraint);
    let is_public = key == (crate::pg_catalog::namespace_oid(catalog, "public"), 0);
    given.or_else(|| is_public.then(|| objects::PUBLIC_COMMENT.to_string())).into()
}
