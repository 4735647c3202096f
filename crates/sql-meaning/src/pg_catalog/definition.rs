//! Objects as statements that would make them.

use crate::catalog::named_relation::{Naming, along};
use crate::catalog::{
    Catalog, Deferral, Domain, ForeignKey, Function, Key, ObjectName, ReferentialAction, Returns, Table,
};
use crate::sql_type::SqlType;
use fabius_sql_syntax::identifier::{quote_identifier, quote_qualified};
use fabius_sql_syntax::part;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;

/// Where derived numbers begin: of constraints and defaults, which the catalog does not number.
const DERIVED: u32 = 0x4000_0000;

/// A constraint of a table.
pub enum Constraint<'c> {
    /// The primary key or a unique constraint.
    Key(&'c Key, bool),
    /// `CHECK`
    Check(&'c crate::catalog::Check),
    /// `REFERENCES`
    Foreign(&'c ForeignKey),
}

impl Constraint<'_> {
    /// The constraint's name.
    pub fn name(&self) -> &str {
        match self {
            Constraint::Key(key, _) => &key.name,
            Constraint::Check(check) => &check.name,
            Constraint::Foreign(key) => &key.name,
        }
    }

    /// `p`, `u`, `c` or `f`.
    pub fn kind(&self) -> &'static str {
        match self {
            Constraint::Key(_, true) => "p",
            Constraint::Key(_, false) => "u",
            Constraint::Check(_) => "c",
            Constraint::Foreign(_) => "f",
        }
    }

    /// When it is checked.
    pub fn deferral(&self) -> Deferral {
        match self {
            Constraint::Key(key, _) => key.deferral,
            Constraint::Foreign(key) => key.deferral,
            Constraint::Check(_) => Deferral::Never,
        }
    }

    /// As `pg_get_constraintdef` shows it; the short form has no brackets that say nothing.
    pub fn text(&self, is_short: bool) -> String {
        match self {
            Constraint::Key(key, is_primary) => {
                let word = if *is_primary { "PRIMARY KEY" } else { "UNIQUE" };
                format!("{word} ({}){}", list(&key.columns), words_of(key.deferral))
            }
            Constraint::Check(check) if is_short => format!("CHECK ({})", check.condition),
            Constraint::Check(check) => format!("CHECK (({}))", check.condition),
            Constraint::Foreign(key) => {
                let parent = qualified(&key.parent);
                let mut text = format!(
                    "FOREIGN KEY ({}) REFERENCES {parent}({})",
                    list(&key.columns),
                    list(&key.parent_columns)
                );
                for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                    let word = match action {
                        ReferentialAction::NoAction => continue,
                        ReferentialAction::Restrict => "RESTRICT",
                        ReferentialAction::Cascade => "CASCADE",
                        ReferentialAction::SetNull => "SET NULL",
                        ReferentialAction::SetDefault => "SET DEFAULT",
                    };
                    text += &format!(" ON {event} {word}");
                }
                text + words_of(key.deferral)
            }
        }
    }
}

/// When a constraint is checked, behind its definition.
fn words_of(deferral: Deferral) -> &'static str {
    match deferral {
        Deferral::Never => "",
        Deferral::InitiallyImmediate => " DEFERRABLE",
        Deferral::InitiallyDeferred => " DEFERRABLE INITIALLY DEFERRED",
    }
}

/// Names as SQL writes them, with commas.
pub fn list(names: &[String]) -> String {
    names.iter().map(|name| quote_identifier(name)).collect::<Vec<_>>().join(", ")
}

/// A name with its schema, unless that is `public`.
pub fn qualified(name: &ObjectName) -> String {
    quote_qualified(&name.schema, &name.name)
}

/// A table's constraints with their numbers.
pub fn constraints(table: &Table) -> Vec<(u32, Constraint<'_>)> {
    let derived = |n: usize| DERIVED + (table.oid & 0x00ff_ffff).wrapping_mul(64) + (n as u32 & 63);
    let unique = table.unique.iter().chain(table.late_keys()).map(|key| (key, false));
    let keys = table.primary_key.iter().map(|key| (key, true)).chain(unique);
    let keys = keys.filter(|(key, is_primary)| *is_primary || key.is_constraint);
    let mut all: Vec<(u32, Constraint<'_>)> = keys
        .enumerate()
        .map(|(at, (key, is_primary))| (derived(at), Constraint::Key(key, is_primary)))
        .collect();
    all.extend(
        table.own_checks().enumerate().map(|(at, check)| (derived(20 + at), Constraint::Check(check))),
    );
    all.extend(
        table.foreign_keys.iter().enumerate().map(|(at, key)| (derived(40 + at), Constraint::Foreign(key))),
    );
    all
}

/// The number of a domain's condition in `pg_constraint`.
pub fn domain_check_oid(domain: &Domain, at: usize) -> u32 {
    DERIVED + 0x1000_0000 + (domain.oid & 0x00ff_ffff).wrapping_mul(16) + (at as u32 & 15)
}

/// A constraint by its number.
pub fn constraint_of(catalog: &Catalog, oid: u32) -> Option<(&Table, Constraint<'_>)> {
    let all = catalog.tables.values().flat_map(|table| {
        constraints(table).into_iter().map(|(number, constraint)| (number, &**table, constraint))
    });
    all.into_iter().find_map(|(number, table, constraint)| (number == oid).then_some((table, constraint)))
}

/// The number of a column's default in `pg_attrdef`.
pub fn default_oid(table: &Table, column: usize) -> u32 {
    DERIVED + 0x3000_0000 + (table.oid & 0x000f_ffff).wrapping_mul(256) + (column as u32 & 255)
}

/// A table's indexes: each key with whether it is the primary one and whether it is unique.
pub fn indexes(table: &Table) -> impl Iterator<Item = (&Key, bool, bool)> {
    let primary = table.primary_key.iter().map(|key| (key, true, true));
    let unique = table.unique.iter().map(|key| (key, false, true));
    let shown = table.indexes.iter().filter(|key| !key.is_hidden);
    primary.chain(unique).chain(shown.map(|key| (key, false, key.deferral != Deferral::Never)))
}

/// An index as `pg_get_indexdef` shows it.
pub fn index(table: &Table, key: &Key, is_unique: bool) -> String {
    let predicate = key.written.as_ref().and_then(|written| written.predicate.as_ref());
    let predicate = predicate.map_or_else(String::new, |predicate| format!(" WHERE {}", shown(predicate)));
    format!(
        "CREATE {}INDEX {} ON {}.{} USING btree ({}){}",
        if is_unique { "UNIQUE " } else { "" },
        quote_identifier(&key.name),
        quote_identifier(&table.name.schema),
        quote_identifier(&table.name.name),
        key_list(key),
        if key.included().is_empty() {
            String::new()
        } else {
            format!(" INCLUDE ({})", list(key.included()))
        }
    ) + &predicate
}

/// The keys of an index, as its definition has them.
fn key_list(key: &Key) -> String {
    let keys: Vec<String> = match &key.written {
        None => key.columns.iter().map(|name| quote_identifier(name)).collect(),
        Some(written) => written.keys.clone(),
    };
    let keys = keys.into_iter().enumerate().map(|(place, shown)| shown + &key.words_behind(place));
    keys.collect::<Vec<_>>().join(", ")
}

/// An index by its number.
pub fn index_of(catalog: &Catalog, oid: u32) -> Option<(&Table, &Key, bool)> {
    catalog.tables.values().find_map(|table| {
        indexes(table)
            .find(|(key, ..)| key.oid == oid)
            .map(|(key, _, is_unique)| (table.as_ref(), key, is_unique))
    })
}

/// A column's default as SQL, or what it is generated from.
pub fn default(column: &crate::catalog::Column) -> Option<String> {
    if let Some(expression) = &column.generated {
        return Some(shown(expression));
    }
    match (&column.default, &column.sequence) {
        (Some(default), _) => Some(default.clone()),
        (None, Some(_)) if column.identity.is_some() => None,
        (None, Some(sequence)) => Some(format!("nextval('{}'::regclass)", qualified(sequence))),
        (None, None) => None,
    }
}

/// An expression as `pg_get_expr` shows it: an operator's in parentheses.
pub fn shown(expression: &str) -> String {
    let parsed = Tokens::of(expression).and_then(|t| t.read(|p| p.parse_expr()));
    match parsed {
        Ok(sqlparser::ast::Expr::BinaryOp { .. }) => format!("({expression})"),
        _ => expression.to_string(),
    }
}

/// A function by its number.
pub fn function_of(catalog: &Catalog, oid: u32) -> Option<&Function> {
    catalog.functions.values().flatten().find(|function| function.oid == oid).map(AsRef::as_ref)
}

/// A function's parameters as `pg_get_function_arguments` shows them.
pub fn arguments(function: &Function, path: &[String]) -> String {
    // Of procedures every parameter says which way it goes.
    let mode = if function.is_procedure { "IN " } else { "" };
    let shown = function.parameters.iter().map(|parameter| {
        let (name, sql_type) = (&parameter.name, type_along(&parameter.sql_type, path));
        if name.is_empty() {
            format!("{mode}{sql_type}")
        } else {
            format!("{mode}{} {sql_type}", quote_identifier(name))
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// A view's query as catalogs show it, with its names as short as the search path lets them be.
pub fn view(catalog: &Catalog, query: &str) -> String {
    let shown = part::query(query).map(|query| written(&along(catalog, &query, Naming::Short)));
    format!(" {};", shown.unwrap_or_else(|_| query.to_string()))
}

/// How a default begins that numbers rows.
const NUMBERS: &str = "nextval('";

/// A default as `pg_attrdef` has it: what it names has its schema.
pub fn whole_default(column: &crate::catalog::Column) -> Option<String> {
    match (&column.sequence, default(column)?) {
        (Some(sequence), shown) if shown.starts_with(NUMBERS) => {
            Some(format!("{NUMBERS}{}'::regclass)", name_along(&sequence.schema, &sequence.name, &[])))
        }
        (_, shown) => Some(shown),
    }
}

/// A default of `pg_attrdef` as a user sees it, who needs no schema for what is along the path.
pub fn default_along(text: &str, path: &[String]) -> String {
    let short = text.strip_prefix(NUMBERS).and_then(|rest| {
        let schema =
            path.iter().find(|schema| rest.starts_with(&format!("{}.", quote_identifier(schema))))?;
        Some(format!("{NUMBERS}{}", &rest[quote_identifier(schema).len() + 1..]))
    });
    short.unwrap_or_else(|| text.to_string())
}

/// A type as `format_type` shows it, with its schema if that is not along the path.
pub fn type_along(sql_type: &SqlType, path: &[String]) -> String {
    match sql_type {
        SqlType::Array(element) => format!("{}[]", type_along(element, path)),
        SqlType::Enumeration(of) => name_along(&of.schema, &of.name, path),
        other => other.to_string(),
    }
}

/// A name with its schema, unless that is along the path.
pub fn name_along(schema: &str, name: &str, path: &[String]) -> String {
    match path.iter().any(|known| known == schema) {
        true => quote_identifier(name),
        false => format!("{}.{}", quote_identifier(schema), quote_identifier(name)),
    }
}

/// A domain's condition as a statement would have it, by its number.
pub fn domain_check(catalog: &Catalog, oid: u32, is_pretty: bool) -> Option<String> {
    catalog.domains.values().find_map(|domain| {
        let mut checks = domain.checks.iter().enumerate();
        let (_, check) = checks.find(|(at, _)| domain_check_oid(domain, *at) == oid)?;
        Some(Constraint::Check(check).text(is_pretty))
    })
}

/// A function's result as `pg_get_function_result` shows it; `None` for a procedure.
pub fn result(function: &Function, path: &[String]) -> Option<String> {
    if function.is_procedure {
        return None;
    }
    Some(match &function.returns {
        Returns::Scalar(sql_type) => type_along(sql_type, path),
        Returns::Record(_) => "record".into(),
        Returns::Table(columns) => {
            let shown = columns
                .iter()
                .map(|column| format!("{} {}", quote_identifier(&column.0), type_along(&column.1, path)));
            format!("TABLE({})", shown.collect::<Vec<_>>().join(", "))
        }
    })
}
