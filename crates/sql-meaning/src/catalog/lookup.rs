//! Names to objects, along the `search_path`.

use super::{Catalog, ConstraintId, ForeignKey, Function, ObjectName, Sequence, Table, Until, View};
use fabius_sql_syntax::privilege::{Class, Privilege};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The schema of temporary tables: each connection has its own.
pub const TEMPORARY: &str = "pg_temp";
/// What the catalogs call [`TEMPORARY`]. In PostgreSQL each session's has a number; no session sees another's.
pub const TEMPORARY_SHOWN: &str = "pg_temp_1";
/// What a schema is called to users.
pub fn schema_shown(schema: &str) -> &str {
    if schema == TEMPORARY { TEMPORARY_SHOWN } else { schema }
}

/// Schemas of the system's own relations, which always come first in a search.
pub const SYSTEM: [&str; 2] = ["pg_catalog", "information_schema"];

/// An identifier as SQL means it: lower-case unless it is quoted.
pub fn folded(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

/// The parts of a column's name, if an expression is one: `x`, `t.x`.
pub fn column_path(expression: &ast::Expr) -> Option<Vec<String>> {
    match expression {
        ast::Expr::Identifier(name) => Some(vec![folded(name)]),
        ast::Expr::CompoundIdentifier(names) => Some(names.iter().map(folded).collect()),
        _ => None,
    }
}

/// A name as written: its schema, if it says one, and the name itself.
///
/// # Errors
/// `42601` for a name that is not made of identifiers, `0A000` for one of another database.
pub fn parts(name: &ast::ObjectName) -> Result<(Option<String>, String)> {
    let idents: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
    match idents.as_slice() {
        [name] => Ok((None, name.clone())),
        [schema, name] => Ok((Some(schema.clone()), name.clone())),
        [_, schema, name] => Ok((Some(schema.clone()), name.clone())),
        _ => Err(Error::new(
            SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {name}"),
        )),
    }
}

/// A relation: what a name in `FROM` can mean.
#[derive(Clone, Debug)]
pub enum Relation<'c> {
    /// A table.
    Table(&'c Arc<Table>),
    /// A view.
    View(&'c Arc<View>),
    /// A sequence.
    Sequence(&'c Arc<Sequence>),
    /// An index or unique constraint, with its table and its name.
    Index(&'c Arc<Table>, &'c str),
}

impl Relation<'_> {
    /// What it is, as messages call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Relation::Table(table) if table.materialized.is_some() => "materialized view",
            Relation::Table(_) => "table",
            Relation::View(_) => "view",
            Relation::Sequence(_) => "sequence",
            Relation::Index(..) => "index",
        }
    }

    /// What can be granted on it.
    pub fn class(&self) -> Class {
        match self {
            Relation::Sequence(_) => Class::Sequence,
            _ => Class::Table,
        }
    }

    /// The query of a view or materialized view.
    pub fn query(&self) -> Option<&str> {
        match self {
            Relation::Table(table) => table.materialized.as_ref().map(|view| view.query.as_str()),
            Relation::View(view) => Some(&view.query),
            _ => None,
        }
    }

    /// The name of a table, view or sequence; of an index, that of its table.
    pub fn name(&self) -> &ObjectName {
        match self {
            Relation::Table(table) | Relation::Index(table, _) => &table.name,
            Relation::View(view) => &view.name,
            Relation::Sequence(sequence) => &sequence.name,
        }
    }

    /// The relation's name without the schema.
    pub fn short_name(&self) -> &str {
        match self {
            Relation::Table(table) => &table.name.name,
            Relation::View(view) => &view.name.name,
            Relation::Sequence(sequence) => &sequence.name.name,
            Relation::Index(_, name) => name,
        }
    }

    /// The relation's number.
    pub fn oid(&self) -> super::Oid {
        match self {
            Relation::Table(table) => table.oid,
            Relation::View(view) => view.oid,
            Relation::Sequence(sequence) => sequence.oid,
            Relation::Index(table, name) => table.key(name).map_or(0, |key| key.oid),
        }
    }
}

impl Catalog {
    /// Whether a schema is there.
    pub fn has_schema(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
            || SYSTEM.contains(&name)
            || name == TEMPORARY
            || name == TEMPORARY_SHOWN
    }

    /// The full names that a name can stand for, first choice first.
    pub fn candidates(&self, schema: Option<&str>, name: &str) -> Vec<ObjectName> {
        let in_schema = |schema: &str| ObjectName { schema: schema.to_string(), name: name.to_string() };
        match schema {
            Some(schema) if schema == TEMPORARY_SHOWN => vec![in_schema(TEMPORARY)],
            Some(schema) => vec![in_schema(schema)],
            None => std::iter::once(TEMPORARY)
                .chain(self.search_path.iter().map(String::as_str))
                .map(in_schema)
                .collect(),
        }
    }

    /// How long what a reference asks for waits, if it does.
    pub fn waits(&self, table: &Table, constraint: &str) -> Option<Until> {
        let waiting = Some(&self.waiting).filter(|waiting| !waiting.is_empty())?;
        waiting.get(&(table.oid, constraint.to_string())).copied()
    }

    /// The tables to which references lead from a table, from what is referred to on to what refers, along those that
    /// are followed.
    pub fn followers(
        &self,
        table: &ObjectName,
        is_followed: impl Fn(&ForeignKey) -> bool,
    ) -> Vec<&Arc<Table>> {
        let mut all: Vec<&Arc<Table>> = Vec::new();
        let mut open = vec![table];
        while let Some(next) = open.pop() {
            for child in self.tables.values() {
                let refers = child.foreign_keys.iter().any(|key| key.parent == *next && is_followed(key));
                if refers && all.iter().all(|known| known.name != child.name) {
                    open.push(&child.name);
                    all.push(child);
                }
            }
        }
        all
    }

    /// Views and materialized views.
    pub fn views_of_all_kinds(&self) -> impl Iterator<Item = Relation<'_>> {
        let materialized = self.tables.values().filter(|table| table.materialized.is_some());
        self.views.values().map(Relation::View).chain(materialized.map(Relation::Table))
    }

    /// The catalog for parts of a statement until whose end references wait.
    pub fn with_waiting(self: &Arc<Catalog>, references: &BTreeSet<ConstraintId>) -> Arc<Catalog> {
        if references.is_empty() {
            return self.clone();
        }
        let mut own = (**self).clone();
        own.waiting.extend(references.iter().map(|id| (id.clone(), Until::Statement)));
        Arc::new(own)
    }

    /// Tables that are no materialized views.
    pub fn plain_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values().filter(|table| table.materialized.is_none())
    }

    /// The relation that has exactly this name.
    pub fn relation_named(&self, name: &ObjectName) -> Option<Relation<'_>> {
        if let Some(table) = self.tables.get(name) {
            return Some(Relation::Table(table));
        }
        if let Some(view) = self.views.get(name) {
            return Some(Relation::View(view));
        }
        if let Some(sequence) = self.sequences.get(name) {
            return Some(Relation::Sequence(sequence));
        }
        let mut tables = self.tables.values().filter(|table| table.name.schema == name.schema);
        tables.find_map(|table| table.key(&name.name).map(|key| Relation::Index(table, &key.name)))
    }

    /// The relation that a name stands for, if there is one.
    ///
    /// # Errors
    /// As [`parts`]; `42501` in a schema that may not be looked into.
    pub fn relation(&self, name: &ast::ObjectName) -> Result<Option<Relation<'_>>> {
        let (schema, name) = parts(name)?;
        self.relation_along(schema.as_deref(), &name)
    }

    /// The relation that a name stands for, in a schema or along the search path.
    ///
    /// # Errors
    /// `42501` in a schema that may not be looked into; such schemas of the search path are passed over.
    pub fn relation_along(&self, schema: Option<&str>, name: &str) -> Result<Option<Relation<'_>>> {
        if let Some(schema) = schema {
            self.require_in_schema(schema, Privilege::Usage)?;
        }
        let mut candidates = self.candidates(schema, name).into_iter();
        Ok(candidates.find_map(|name| match self.may_in_schema(&name.schema, Privilege::Usage) {
            true => self.relation_named(&name),
            false => None,
        }))
    }

    /// The table that a name stands for, if a table has it.
    ///
    /// # Errors
    /// As [`parts`].
    pub fn find_table(&self, name: &ast::ObjectName) -> Result<Option<&Arc<Table>>> {
        Ok(match self.relation(name)? {
            Some(Relation::Table(table)) => Some(table),
            _ => None,
        })
    }

    /// The table that a name stands for.
    ///
    /// # Errors
    /// `42P01` if there is none, `42809` if it is something else.
    pub fn table(&self, name: &ast::ObjectName) -> Result<&Arc<Table>> {
        match self.relation(name)? {
            Some(Relation::Table(table)) => Ok(table),
            Some(other) => Err(not_a(name, "table", &other)),
            None => Err(self.missing("relation", name)),
        }
    }

    /// The view that a name stands for, if a view has it.
    ///
    /// # Errors
    /// As [`parts`].
    pub fn find_view(&self, name: &ast::ObjectName) -> Result<Option<&Arc<View>>> {
        Ok(match self.relation(name)? {
            Some(Relation::View(view)) => Some(view),
            _ => None,
        })
    }

    /// The sequence that a name stands for.
    ///
    /// # Errors
    /// `42P01` if there is none, `42809` if it is something else.
    pub fn sequence(&self, name: &ast::ObjectName) -> Result<&Arc<Sequence>> {
        match self.relation(name)? {
            Some(Relation::Sequence(sequence)) => Ok(sequence),
            Some(other) => Err(not_a(name, "sequence", &other)),
            None => Err(self.missing("relation", name)),
        }
    }

    /// The sequence that a text stands for, as in `nextval('items_id_seq')`.
    ///
    /// # Errors
    /// As [`Catalog::sequence`], and `42602` for a text that is not a name.
    pub fn sequence_of_text(&self, text: &str) -> Result<&Arc<Sequence>> {
        self.sequence(&name_of_text(text)?)
    }

    /// The functions and procedures of a name.
    ///
    /// # Errors
    /// As [`parts`].
    pub fn functions_named(&self, name: &ast::ObjectName) -> Result<&[Arc<Function>]> {
        let (schema, name) = parts(name)?;
        let candidates = self.candidates(schema.as_deref(), &name);
        Ok(candidates.iter().find_map(|name| self.functions.get(name)).map_or(&[], Vec::as_slice))
    }

    /// The table of a number.
    pub fn table_of_oid(&self, oid: super::Oid) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.oid == oid)
    }

    /// The table whose rows are in a table of the storage.
    pub fn table_of_storage(&self, storage: &str) -> Option<&Arc<Table>> {
        self.tables.values().find(|table| table.storage == storage)
    }

    /// The full name that something new of this name gets.
    ///
    /// # Errors
    /// `3F000` if there is no such schema, or none to make it in; `42501` in a schema of the system, or in which who
    /// asks may make nothing.
    pub fn name_for_new(&self, name: &ast::ObjectName, is_temporary: bool) -> Result<ObjectName> {
        let (schema, name) = parts(name)?;
        let schema = match schema {
            Some(schema) if is_temporary && schema != TEMPORARY && schema != TEMPORARY_SHOWN => {
                return Err(Error::new(
                    SqlState(*b"42P16"),
                    "cannot create temporary relation in non-temporary schema",
                ));
            }
            _ if is_temporary => TEMPORARY.to_string(),
            Some(schema) => schema,
            None => self
                .search_path
                .iter()
                .find(|schema| self.schemas.contains_key(*schema))
                .cloned()
                .ok_or_else(|| Error::new(SqlState(*b"3F000"), "no schema has been selected to create in"))?,
        };
        if SYSTEM.contains(&schema.as_str()) {
            return Err(Error::new(SqlState(*b"42501"), format!("permission denied for schema {schema}")));
        }
        if !self.has_schema(&schema) {
            return Err(Error::new(SqlState(*b"3F000"), format!("schema \"{schema}\" does not exist")));
        }
        self.require_in_schema(&schema, Privilege::Create)?;
        Ok(ObjectName { schema, name })
    }

    /// `relation "x" does not exist`, or that its schema does not.
    pub fn missing(&self, kind: &str, name: &ast::ObjectName) -> Error {
        let shown = match parts(name) {
            Ok((Some(schema), _)) if kind != "relation" && !self.has_schema(&schema) => {
                return Error::new(SqlState(*b"3F000"), format!("schema \"{schema}\" does not exist"));
            }
            Ok((Some(schema), name)) => format!("{schema}.{name}"),
            Ok((None, name)) => name,
            Err(error) => return error,
        };
        Error::new(SqlState::UNDEFINED_TABLE, format!("{kind} \"{shown}\" does not exist"))
    }
}

fn not_a(name: &ast::ObjectName, wanted: &str, found: &Relation<'_>) -> Error {
    let shown = parts(name).map(|(_, name)| name).unwrap_or_default();
    let article = if found.kind() == "index" { "an" } else { "a" };
    Error::new(SqlState(*b"42809"), format!("\"{shown}\" is not a {wanted}"))
        .with_detail(format!("it is {article} {}", found.kind()))
}

/// A text as a name: `public.items`, `"Items"`.
///
/// # Errors
/// `42602` if it is not one.
pub fn name_of_text(text: &str) -> Result<ast::ObjectName> {
    let invalid = |_| Error::new(SqlState(*b"42602"), format!("invalid name syntax: \"{text}\""));
    let mut tokens = Tokens::of(text).map_err(invalid)?;
    let name = tokens.object_name().map_err(invalid)?;
    tokens.finish().map_err(invalid)?;
    Ok(name)
}
