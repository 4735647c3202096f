//! `CREATE TYPE ... AS ENUM`, `ALTER TYPE`, `DROP TYPE`.
//!
//! What has a type keeps all of it, labels too, so that altering a type alters its tables, functions and views.

use super::{depended_on, not_supported, storage};
use crate::connection::Connection;
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog;
use fabius_sql_meaning::catalog::defined_type::{Typed, is_of};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Catalog, Column, Function, ObjectName, TEMPORARY, Table, View, folded};
use fabius_sql_meaning::sql_type::{Enumeration, SqlType};
use fabius_value::limit::NAME_BYTES;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, AlterTypeAddValuePosition, AlterTypeOperation, UserDefinedTypeRepresentation};
use std::sync::Arc;

/// `42710`: something of this name is there already.
fn duplicate(message: String) -> Error {
    Error::new(SqlState::DUPLICATE_OBJECT, message)
}

/// `42704`
pub(super) fn no_type(name: &ast::ObjectName, more: &str) -> Error {
    Error::new(SqlState(*b"42704"), format!("type \"{name}\" does not exist{more}"))
}

/// What stands in quotes: a label.
fn label(word: &ast::Ident) -> Result<String> {
    if word.quote_style != Some('\'') {
        return Err(Error::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{word}\""))
            .with_hint("a label stands in single quotes"));
    }
    if word.value.len() > NAME_BYTES {
        return Err(Error::new(SqlState(*b"42602"), format!("invalid enum label \"{}\"", word.value))
            .with_detail(format!("Labels must be {NAME_BYTES} bytes or less.")));
    }
    Ok(word.value.clone())
}

fn place_of(of: &Enumeration, word: &str) -> Result<usize> {
    of.labels.iter().position(|label| label.name == word).ok_or_else(|| {
        Error::new(SqlState::INVALID_PARAMETER, format!("\"{word}\" is not an existing enum label"))
    })
}

/// What uses a type, each as messages call it.
struct Users {
    tables: Vec<Arc<Table>>,
    functions: Vec<Arc<Function>>,
    views: Vec<Arc<View>>,
    materialized: Vec<Arc<Table>>,
}

impl Users {
    fn of(catalog: &Catalog, of: &Enumeration) -> Users {
        let has = |sql_type: &SqlType| is_of(sql_type, of.oid);
        let tables = catalog.tables.values().filter(|table| {
            table.columns.iter().any(|column| has(&column.sql_type))
                || kept_texts(table).any(|text| catalog.is_named_in(of, text))
        });
        let (materialized, tables) = tables.cloned().partition(|table| table.materialized.is_some());
        let functions = catalog.functions.values().flatten().filter(|function| {
            let mut function = (***function).clone();
            function.types_mut().into_iter().any(|sql_type| has(sql_type))
        });
        let views = catalog.views.values().filter(|view| {
            view.columns.iter().any(|(_, sql_type)| has(sql_type)) || catalog.is_named_in(of, &view.query)
        });
        Users {
            tables,
            materialized,
            functions: functions.cloned().collect(),
            views: views.cloned().collect(),
        }
    }

    fn names(&self, of: &Enumeration) -> Vec<String> {
        let columns = self.tables.iter().flat_map(|table| {
            let columns = table.columns.iter().filter(|column| is_of(&column.sql_type, of.oid));
            columns.map(|column| format!("column {} of table {}", column.name, table.name.name))
        });
        let texts = self.tables.iter().filter(|table| {
            let has = |column: &Column| is_of(&column.sql_type, of.oid);
            !table.columns.iter().any(has)
        });
        let texts = texts.map(|table| format!("a condition or default of table {}", table.name.name));
        let functions = self.functions.iter().map(|function| {
            let types = catalog::input_types(&function.parameters).map(SqlType::to_string);
            format!("function {}({})", function.name.name, types.collect::<Vec<_>>().join(","))
        });
        let views = self.views.iter().map(|view| format!("view {}", view.name.name));
        let materialized = self.materialized.iter();
        let materialized = materialized.map(|view| format!("materialized view {}", view.name.name));
        columns.chain(texts).chain(functions).chain(views).chain(materialized).collect()
    }
}

/// What a table keeps as SQL.
fn kept_texts(table: &Table) -> impl Iterator<Item = &str> {
    let checks = table.checks.iter().map(|check| check.condition.as_str());
    let columns = table.columns.iter().flat_map(|column| [&column.default, &column.generated]);
    let query = table.materialized.as_ref().map(|view| view.query.as_str());
    checks.chain(columns.flatten().map(String::as_str)).chain(query)
}

impl Connection {
    /// `CREATE TYPE name AS ENUM (...)`
    pub(super) async fn create_type(
        &mut self,
        name: &ast::ObjectName,
        representation: Option<&UserDefinedTypeRepresentation>,
    ) -> Result<String> {
        let labels = match representation {
            Some(UserDefinedTypeRepresentation::Enum { labels }) => labels,
            Some(UserDefinedTypeRepresentation::Composite { .. }) => {
                return Err(not_supported("a composite type"));
            }
            Some(UserDefinedTypeRepresentation::Range { .. }) => return Err(not_supported("a range type")),
            Some(_) => return Err(not_supported("a base type")),
            None => return Err(not_supported("a shell type")),
        };
        let name = self.catalog().name_for_new(name, false)?;
        if name.schema == TEMPORARY {
            return Err(not_supported("a temporary type"));
        }
        self.claim_type(&name).await?;
        let mut of = Enumeration {
            oid: self.database().new_oid(),
            array_oid: self.database().new_oid(),
            schema: name.schema,
            name: name.name,
            labels: Vec::with_capacity(labels.len()),
        };
        for word in labels {
            let word = label(word)?;
            if of.number(&word).is_ok() {
                let message = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                return Err(Error::new(SqlState::UNIQUE_VIOLATION, message)
                    .with_detail(format!("The label \"{word}\" is there twice.")));
            }
            of.add(of.labels.len(), self.database().new_oid(), word)?;
        }
        self.record(Change::from(Object::Enumeration(of)), false);
        Ok("CREATE TYPE".into())
    }

    /// Takes a name for a type; rows of relations have types of their names.
    pub(super) async fn claim_type(&mut self, name: &ObjectName) -> Result<()> {
        self.lock_all(&[LockKey::Name(name.clone())], LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let is_taken = catalog.enumerations.contains_key(name)
            || catalog.domains.contains_key(name)
            || catalog.tables.contains_key(name)
            || catalog.views.contains_key(name);
        if is_taken {
            return Err(duplicate(format!("type \"{}\" already exists", name.name)));
        }
        Ok(())
    }

    /// `ALTER TYPE name ADD VALUE ... | RENAME VALUE ... | RENAME TO ...`
    pub(super) async fn alter_type(&mut self, alter: &ast::AlterType) -> Result<String> {
        let catalog = self.catalog();
        let Some(before) = catalog.enumeration(&alter.name)?.cloned() else {
            return Err(no_type(&alter.name, ""));
        };
        catalog.require_owner(before.oid)?;
        let mut of = (*before).clone();
        match &alter.operation {
            AlterTypeOperation::AddValue(added) => {
                let word = label(&added.value)?;
                if of.number(&word).is_ok() {
                    let exists = |more| duplicate(format!("enum label \"{word}\" already exists{more}"));
                    if !added.if_not_exists {
                        return Err(exists(""));
                    }
                    self.session.notice(exists(", skipping"));
                    return Ok("ALTER TYPE".into());
                }
                let place = match &added.position {
                    None => of.labels.len(),
                    Some(AlterTypeAddValuePosition::Before(next)) => place_of(&of, &label(next)?)?,
                    Some(AlterTypeAddValuePosition::After(last)) => place_of(&of, &label(last)?)? + 1,
                };
                of.add(place, self.database().new_oid(), word)?;
            }
            AlterTypeOperation::RenameValue(renamed) => {
                let (from, to) = (label(&renamed.from)?, label(&renamed.to)?);
                let place = place_of(&of, &from)?;
                if of.number(&to).is_ok() {
                    return Err(duplicate(format!("enum label \"{to}\" already exists")));
                }
                refuse_texts(&catalog, &of, &from)?;
                of.labels[place].name = to;
            }
            AlterTypeOperation::Rename(renamed) => {
                let name = ObjectName { schema: of.schema.clone(), name: folded(&renamed.new_name) };
                self.claim_type(&name).await?;
                refuse_texts(&catalog, &of, &of.name)?;
                of.name = name.name;
            }
        }
        self.put_type(of).await?;
        Ok("ALTER TYPE".into())
    }

    /// A type is another from now on, in all that has it.
    async fn put_type(&mut self, of: Enumeration) -> Result<()> {
        let users = Users::of(&self.catalog(), &of);
        let tables = users.tables.iter().chain(&users.materialized);
        let tables: Vec<LockKey> = tables.map(|table| LockKey::Relation(table.oid)).collect();
        self.lock_all(&tables, LockMode::AccessExclusive).await?;
        let of = Arc::new(of);
        // Tables may have become others while this waited.
        let users = Users::of(&self.catalog(), &of);
        for table in users.tables.into_iter().chain(users.materialized) {
            let mut table = (*table).clone();
            if table.follow(&of) {
                self.put_table(table);
            }
        }
        for function in users.functions {
            let mut function = (*function).clone();
            function.follow(&of);
            self.record(Change::from(Object::Function(function)), false);
        }
        for view in users.views {
            let mut view = (*view).clone();
            if view.follow(&of) {
                self.record(Change::from(Object::View(view)), false);
            }
        }
        self.record(Change::from(Object::Enumeration((*of).clone())), false);
        Ok(())
    }

    /// `DROP TYPE`
    pub(super) async fn drop_types(
        &mut self,
        if_exists: bool,
        names: &[ast::ObjectName],
        cascade: bool,
    ) -> Result<String> {
        for name in names {
            match self.catalog().enumeration(name)?.cloned() {
                Some(of) => self.drop_type(&of, cascade).await?,
                None if if_exists => self.session.notice(Error::new(
                    SqlState(*b"00000"),
                    no_type(name, ", skipping").message().to_string(),
                )),
                None => return Err(no_type(name, "")),
            }
        }
        Ok("DROP TYPE".into())
    }

    /// A type is gone; with `cascade`, the columns, functions and views that have it.
    pub(super) async fn drop_type(&mut self, of: &Enumeration, cascade: bool) -> Result<()> {
        let users = Users::of(&self.catalog(), of);
        let names = users.names(of);
        if !cascade && !names.is_empty() {
            let details = names.iter().map(|name| format!("{name} depends on type {}", of.shown()));
            let details = details.collect::<Vec<_>>().join("\n");
            return Err(depended_on(&format!("type {}", of.shown()), details));
        }
        self.session.say_cascade(&names);
        let views = users.views.iter().map(|view| &view.name);
        for view in views.chain(users.materialized.iter().map(|view| &view.name)) {
            self.drop_relation(view, true, &[]).await?;
        }
        for function in users.functions {
            self.record_gone(function.oid, false);
        }
        for table in users.tables {
            self.lock_all(&[LockKey::Relation(table.oid)], LockMode::AccessExclusive).await?;
            let Some(before) = self.catalog().table_of_oid(table.oid).cloned() else { continue };
            let mut after = (*before).clone();
            let columns = before.columns.iter().filter(|column| is_of(&column.sql_type, of.oid));
            if columns.clone().next().is_none() {
                return Err(not_supported("DROP TYPE ... CASCADE of what conditions or defaults name"));
            }
            for column in columns {
                self.drop_column(&mut after, &column.name, true)?;
            }
            self.rebuild(&before, &mut after, &storage::Filling::default()).await?;
            self.put_table(after);
        }
        self.record_gone(of.oid, false);
        Ok(())
    }
}

/// Refuses to rename a type or label that SQL which is kept as text may name, or an array that is kept as text.
fn refuse_texts(catalog: &Catalog, of: &Enumeration, word: &str) -> Result<()> {
    let of_arrays = |table: &&Arc<Table>| {
        let is_array = |sql_type: &SqlType| matches!(sql_type, SqlType::Array(_)) && is_of(sql_type, of.oid);
        word != of.name && table.columns.iter().any(|column| is_array(&column.sql_type))
    };
    let tables = catalog.tables.values();
    let table =
        tables.clone().find(|table| of_arrays(table) || kept_texts(table).any(|text| text.contains(word)));
    let view = catalog.views.values().find(|view| view.query.contains(word));
    let functions = catalog.functions.values().flatten();
    let function = functions.clone().find(|function| function.definition.contains(word));
    let named = table.map(|table| format!("table {}", table.name.name));
    let named = named.or_else(|| view.map(|view| format!("view {}", view.name.name)));
    match named.or_else(|| function.map(|function| format!("function {}", function.name.name))) {
        None => Ok(()),
        Some(named) => Err(not_supported(format!("renaming \"{word}\", which {named} may name,"))
            .with_hint("drop what names it, rename, and define it anew")),
    }
}
