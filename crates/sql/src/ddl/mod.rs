//! Definitions: `CREATE`, `ALTER`, `DROP`, `TRUNCATE`, as changes of the catalog.
//!
//! | module | concept |
//! |---|---|
//! | `create_table` | `CREATE TABLE`, with its constraints |
//! | `alter_table` | `ALTER TABLE`: a table's next form, and its rows brought over |
//! | `column_type` | `ALTER COLUMN ... TYPE`: what values become |
//! | `comment` | `COMMENT ON`, and where comments go |
//! | `enumeration` | `CREATE TYPE ... AS ENUM`, `ALTER TYPE`, `DROP TYPE` |
//! | `extension` | `CREATE EXTENSION`, `DROP EXTENSION` |
//! | `generated` | generated columns |
//! | `storage` | the tables of the storage that hold rows; copying between them |
//! | `index` | `CREATE INDEX` |
//! | `domain` | `CREATE DOMAIN`, `ALTER DOMAIN`, `DROP DOMAIN` |
//! | `drop` | `DROP`, `TRUNCATE`, and what depends on what |
//! | `sequence` | `CREATE SEQUENCE`, `ALTER SEQUENCE` |
//! | `view` | `CREATE VIEW` |
//! | `materialized_view` | `CREATE MATERIALIZED VIEW`, `REFRESH MATERIALIZED VIEW` |
//!
//! Every definition runs in a transaction. Its changes are seen by that transaction alone until it commits, and
//! whatever it defines anew it holds exclusively.

mod alter_table;
mod column_type;
mod comment;
mod create_table;
mod database;
mod domain;
mod drop;
mod enumeration;
mod extension;
mod generated;
mod grant;
mod index;
mod materialized_view;
mod role;
mod sequence;
mod storage;
mod view;

use fabius_sql_meaning::catalog::Function;
use fabius_sql_meaning::catalog::Oid;
use fabius_sql_meaning::catalog::folded;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::plpgsql;
use fabius_sql_syntax::command::RoleName;
use fabius_sql_syntax::privilege::{Class, Privilege};
pub(crate) use storage::Filling;

use crate::connection::{Connection, Response};
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Relation, Table, parts};
use fabius_sql_syntax::Command;
use fabius_sql_syntax::command::DatabaseChange;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

/// A relation of this name is there already.
fn exists(name: &str) -> Error {
    Error::new(SqlState(*b"42P07"), format!("relation \"{name}\" already exists"))
}

/// Other objects depend on it: how to go on.
fn depended_on(what: &str, detail: String) -> Error {
    Error::new(SqlState(*b"2BP01"), format!("cannot drop {what} because other objects depend on it"))
        .with_detail(detail)
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

fn not_supported(what: impl std::fmt::Display) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported"))
}

impl Connection {
    /// Runs a definition that sqlparser has read.
    pub(crate) async fn define_sql(&mut self, statement: &ast::Statement, text: &str) -> Result<Response> {
        let is_alone = self.begin_definition(text).await?;
        let outcome = self.define_statement(statement, text).await;
        self.end_definition(is_alone, outcome).await
    }

    /// Runs a definition that we have read.
    pub(crate) async fn define_command(&mut self, command: &Command, text: &str) -> Result<Response> {
        match command {
            Command::CreateDatabase { .. } => self.transaction.refuse_within("CREATE DATABASE")?,
            Command::ChangeDatabase { change: DatabaseChange::Drop { .. }, .. } => {
                self.transaction.refuse_within("DROP DATABASE")?;
            }
            _ => {}
        }
        let is_alone = self.begin_definition(text).await?;
        let outcome = match command {
            Command::CreateFunction => self.create_function(text).await,
            Command::CreateSequence { name, if_not_exists, is_temporary, options } => {
                self.create_sequence(name, *if_not_exists, *is_temporary, options).await
            }
            Command::AddIdentity { table, column, identity, options } => {
                self.add_identity(table, column, *identity, options).await
            }
            Command::AlterSequence { name, if_exists, change } => {
                self.alter_sequence(name, *if_exists, change).await
            }
            Command::Rename { kind, if_exists, from, to } => self.rename(kind, *if_exists, from, to).await,
            Command::RenameSchema { from, to } => self.rename_schema(from, to).await,
            Command::CreateMaterializedView(create) => self.create_materialized_view(create).await,
            Command::Refresh { name, concurrently, with_data } => {
                self.refresh(name, *concurrently, *with_data).await
            }
            Command::Comment { kind, name, comment } => self.comment(kind, name, comment.as_deref()).await,
            Command::CreateDomain { name, data_type, parts } => {
                self.create_domain(name, data_type, parts).await
            }
            Command::AlterDomain { name, change } => self.alter_domain(name, change).await,
            Command::DropDomain { names, if_exists, cascade } => {
                self.drop_domains(names, *if_exists, *cascade).await
            }
            Command::CreateDatabase { name, template, owner } => {
                Box::pin(self.create_database(name, template.as_deref(), owner.as_deref())).await
            }
            Command::Role(command) => Box::pin(self.change_roles(command)).await,
            Command::Grant(granting) => self.grant(granting),
            Command::Owner { tag, if_exists, of, to } => self.change_owner(tag, *if_exists, of, to),
            Command::ChangeDatabase { name, change } => Box::pin(self.change_database(name, change)).await,
            Command::CreateExtension(name, if_not_exists) => self.create_extension(name, *if_not_exists),
            Command::DropExtension { names, if_exists } => self.drop_extensions(names, *if_exists),
            _ => Err(not_supported("this statement")),
        };
        self.end_definition(is_alone, outcome).await
    }

    async fn begin_definition(&mut self, text: &str) -> Result<bool> {
        let is_alone = self.begin_alone();
        match self.refuse_to_define(text) {
            Ok(()) => Ok(is_alone),
            refused => self.end_alone(is_alone, refused.map(|()| is_alone)).await,
        }
    }

    fn refuse_to_define(&self, text: &str) -> Result<()> {
        let words = || text.split_whitespace().take(2).map(str::to_uppercase).collect::<Vec<_>>().join(" ");
        if self.transaction.is_read_only() {
            return Err(self.refuse_to_write(&words()));
        }
        self.need_lead(&format!("execute {}", words()))?;
        self.refuse_void_locks()
    }

    async fn end_definition(&mut self, is_alone: bool, outcome: Result<String>) -> Result<Response> {
        self.end_alone(is_alone, outcome.map(|tag| Response::Done { tag })).await
    }

    async fn define_statement(&mut self, statement: &ast::Statement, _text: &str) -> Result<String> {
        use ast::Statement as S;
        match statement {
            S::CreateTable(create) => self.create_table(create).await,
            S::CreateIndex(create) => self.create_index(create).await,
            S::CreateView(create) => self.create_view(create).await,
            S::CreateType { name, representation } => self.create_type(name, representation.as_ref()).await,
            S::AlterType(alter) => self.alter_type(alter).await,
            S::Drop { object_type: ast::ObjectType::Type, if_exists, names, cascade, .. } => {
                self.drop_types(*if_exists, names, *cascade).await
            }
            S::CreateSchema { schema_name, if_not_exists, .. } => {
                self.create_schema(schema_name, *if_not_exists).await
            }
            S::AlterTable(alter) => self.alter_table(alter).await,
            S::Drop { object_type, if_exists, names, cascade, .. } => {
                self.drop_objects(object_type, *if_exists, names, *cascade).await
            }
            S::DropFunction(drop) => self.drop_functions(drop.if_exists, &drop.func_desc, false),
            S::DropProcedure { if_exists, proc_desc, .. } => self.drop_functions(*if_exists, proc_desc, true),
            S::Truncate(truncate) => self.truncate(truncate).await,
            other => {
                let words: Vec<String> =
                    other.to_string().split_whitespace().take(2).map(str::to_string).collect();
                Err(not_supported(words.join(" ")))
            }
        }
    }

    /// The full name that a new relation gets.
    ///
    /// # Errors
    /// As [`Catalog::name_for_new`]; `42501` if nothing temporary may be made in the database.
    fn name_for_new(&mut self, name: &ast::ObjectName, is_temporary: bool) -> Result<ObjectName> {
        let (catalog, database) = (self.catalog(), self.database_name());
        if is_temporary && catalog.require_in_database(Privilege::Temporary, &database).is_err() {
            let message = format!("permission denied to create temporary tables in database \"{database}\"");
            return Err(Error::new(SqlState(*b"42501"), message));
        }
        catalog.name_for_new(name, is_temporary)
    }

    /// Takes a name for something new: whether it is free.
    ///
    /// # Errors
    /// `42P07` if it is taken, unless that is what the statement allows: then a notice says so.
    async fn claim(&mut self, name: &ObjectName, if_not_exists: bool) -> Result<bool> {
        self.lock_all(&[LockKey::Name(name.clone())], LockMode::AccessExclusive).await?;
        if self.catalog().relation_named(name).is_none() {
            return Ok(true);
        }
        if !if_not_exists {
            return Err(exists(&name.name));
        }
        self.session.notice(Error::new(
            SqlState(*b"42P07"),
            format!("relation \"{}\" already exists, skipping", name.name),
        ));
        Ok(false)
    }

    /// A table that is to be changed, held alone.
    async fn table_to_change(&mut self, name: &ast::ObjectName) -> Result<Table> {
        let table = self.table_alone(name).await?;
        self.catalog().require_owner(table.oid)?;
        Ok(table)
    }

    /// A table, held alone.
    async fn table_alone(&mut self, name: &ast::ObjectName) -> Result<Table> {
        let table = self.catalog().table(name)?.clone();
        self.lock_all(&[LockKey::Relation(table.oid)], LockMode::AccessExclusive).await?;
        // It may have become another while this waited.
        Ok((**self.catalog().table(name)?).clone())
    }

    pub(crate) fn put_table(&mut self, table: Table) {
        let mut table = table;
        let before = self.catalog().tables.values().find(|before| before.oid == table.oid).cloned();
        if let Some(before) = before {
            self.follow_comments(&before, &mut table);
        }
        let is_temporary = table.is_temporary();
        self.record(Change::from(Object::Table(table)), is_temporary);
    }

    /// An object is gone, with what is said of it.
    fn record_gone(&mut self, oid: Oid, is_temporary: bool) {
        self.forget_comments(oid);
        if self.catalog().access.contains_key(&oid) {
            self.record(Change::no_access(oid), is_temporary);
        }
        self.record(Change::gone(oid), is_temporary);
    }

    async fn create_schema(&mut self, name: &ast::SchemaName, if_not_exists: bool) -> Result<String> {
        let (name, owner) = match name {
            ast::SchemaName::Simple(name) => (parts(name)?.1, None),
            ast::SchemaName::NamedAuthorization(name, owner) => (parts(name)?.1, Some(folded(owner))),
            ast::SchemaName::UnnamedAuthorization(owner) => (folded(owner), Some(folded(owner))),
        };
        let name_of_database = self.database_name();
        self.catalog().require_in_database(Privilege::Create, &name_of_database)?;
        let owner = match owner.as_deref() {
            None => None,
            Some("current_user" | "current_role") => Some(RoleName::Current),
            Some("session_user") => Some(RoleName::Session),
            Some(name) => Some(RoleName::Named(name.to_string())),
        };
        let owner = owner.map(|owner| self.role_to_own(&owner)).transpose()?;
        self.lock_all(
            &[LockKey::Name(ObjectName { schema: name.clone(), name: String::new() })],
            LockMode::AccessExclusive,
        )
        .await?;
        let taken = Error::new(SqlState(*b"42P06"), format!("schema \"{name}\" already exists"));
        if name.starts_with("pg_") {
            return Err(Error::new(SqlState(*b"42939"), format!("unacceptable schema name \"{name}\"")));
        }
        if self.catalog().has_schema(&name) {
            if !if_not_exists {
                return Err(taken);
            }
            self.session.notice(Error::new(
                SqlState(*b"42P06"),
                format!("schema \"{name}\" already exists, skipping"),
            ));
        } else {
            let oid = self.database().new_oid();
            self.record(Change::from(Object::Schema(oid, name)), false);
            if let Some(owner) = owner {
                self.give_to(Class::Schema, oid, owner);
            }
        }
        Ok("CREATE SCHEMA".into())
    }

    async fn rename_schema(&mut self, from: &str, to: &str) -> Result<String> {
        let catalog = self.catalog();
        let Some(oid) = catalog.schemas.get(from).copied() else {
            return Err(Error::new(SqlState(*b"3F000"), format!("schema \"{from}\" does not exist")));
        };
        catalog.require_owner(oid)?;
        if catalog.has_schema(to) {
            return Err(Error::new(SqlState(*b"42P06"), format!("schema \"{to}\" already exists")));
        }
        if catalog
            .tables
            .keys()
            .chain(catalog.views.keys())
            .chain(catalog.sequences.keys())
            .any(|name| name.schema == from)
        {
            return Err(not_supported("renaming a schema that is not empty"));
        }
        self.record(Change::from(Object::Schema(oid, to.to_string())), false);
        Ok("ALTER SCHEMA".into())
    }

    /// `CREATE FUNCTION`, `CREATE PROCEDURE`
    async fn create_function(&mut self, text: &str) -> Result<String> {
        let catalog = self.catalog();
        let mut function = plpgsql::create(text, &catalog)?.function;
        catalog.require_in_schema(&function.name.schema, Privilege::Create)?;
        if function.oid == 0 {
            function.oid = self.database().new_oid();
        } else {
            catalog.require_owner(function.oid)?;
        }
        let tag = if function.is_procedure { "CREATE PROCEDURE" } else { "CREATE FUNCTION" };
        self.record(Change::from(Object::Function(function)), false);
        Ok(tag.into())
    }

    fn drop_functions(
        &mut self,
        if_exists: bool,
        names: &[ast::FunctionDesc],
        is_procedure: bool,
    ) -> Result<String> {
        let kind = if is_procedure { "procedure" } else { "function" };
        for described in names {
            let catalog = self.catalog();
            let all = catalog.functions_named(&described.name)?;
            let types: Option<Vec<SqlType>> = match &described.args {
                None => None,
                // What it gives does not tell it from others.
                Some(arguments) => Some(
                    arguments
                        .iter()
                        .filter(|argument| !matches!(argument.mode, Some(ast::ArgMode::Out)))
                        .map(|argument| catalog.type_of(&argument.data_type))
                        .collect::<Result<_>>()?,
                ),
            };
            let fits = |function: &&std::sync::Arc<Function>| {
                function.is_procedure == is_procedure
                    && types.as_ref().is_none_or(|types| {
                        let inputs = function.parameters.iter().filter(|parameter| parameter.is_input());
                        let given = types.iter().map(SqlType::internal_name);
                        inputs.map(|parameter| parameter.sql_type.internal_name()).eq(given)
                    })
            };
            let found: Vec<_> = all.iter().filter(fits).collect();
            match found.as_slice() {
                [function] => {
                    let oid = function.oid;
                    catalog.require_to_drop(oid)?;
                    self.record_gone(oid, false);
                }
                [] if if_exists => self.session.notice(Error::new(
                    SqlState(*b"00000"),
                    format!("{kind} {}() does not exist, skipping", described.name),
                )),
                [] => {
                    return Err(Error::new(
                        SqlState::UNDEFINED_FUNCTION,
                        match types {
                            None => format!("could not find a {kind} named \"{}\"", described.name),
                            Some(_) => format!("{kind} {described} does not exist"),
                        },
                    ));
                }
                _ => {
                    return Err(Error::new(
                        SqlState(*b"42725"),
                        format!("{kind} name \"{}\" is not unique", described.name),
                    ));
                }
            }
        }
        Ok(format!("DROP {}", kind.to_uppercase()))
    }

    /// `ALTER INDEX | VIEW | MATERIALIZED VIEW ... RENAME TO`
    async fn rename(
        &mut self,
        kind: &str,
        if_exists: bool,
        from: &ast::ObjectName,
        to: &str,
    ) -> Result<String> {
        let catalog = self.catalog();
        let tag = format!("ALTER {kind}");
        if let Some(relation) = catalog.relation(from)? {
            catalog.require_owner(relation.oid())?;
        }
        match catalog.relation(from)? {
            Some(Relation::Index(table, old)) => {
                let old = old.to_string();
                let name = ObjectName { schema: table.name.schema.clone(), name: to.to_string() };
                self.claim(&name, false).await?;
                let mut table = (**table).clone();
                self.lock_all(&[LockKey::Relation(table.oid)], LockMode::AccessExclusive).await?;
                let before = table.clone();
                let keys = table.primary_key.iter_mut().chain(&mut table.unique).chain(&mut table.indexes);
                keys.filter(|key| key.name == old).for_each(|key| key.name = to.to_string());
                self.rebuild(&before, &mut table, &storage::Filling::default()).await?;
                self.put_table(table);
            }
            Some(Relation::Table(table)) if kind == "MATERIALIZED VIEW" && table.materialized.is_some() => {
                let before = self.table_to_change(from).await?;
                let mut after = before.clone();
                after.name.name = to.to_string();
                self.claim(&after.name, false).await?;
                self.follow_name(&before, &after).await?;
                self.put_table(after);
            }
            Some(Relation::View(view)) if kind == "VIEW" => {
                let mut view = (**view).clone();
                view.name.name = to.to_string();
                self.claim(&view.name, false).await?;
                self.record(Change::from(Object::View(view)), false);
            }
            Some(other) => {
                return Err(Error::new(
                    SqlState(*b"42809"),
                    format!(
                        "\"{from}\" is not {} {}",
                        if kind == "INDEX" { "an" } else { "a" },
                        kind.to_lowercase()
                    ),
                )
                .with_detail(format!("it is a {}", other.kind())));
            }
            None if if_exists => {
                self.session.notice(Error::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{from}\" does not exist, skipping"),
                ));
            }
            None => return Err(catalog.missing("relation", from)),
        }
        Ok(tag)
    }
}

/// A name that no relation of the schema has: `base`, or with a number behind it.
fn free_name(catalog: &Catalog, schema: &str, taken: &[&str], base: &str) -> String {
    let most = fabius_value::limit::NAME_BYTES - 4;
    let end = (0..=most.min(base.len())).rev().find(|end| base.is_char_boundary(*end)).unwrap_or(0);
    let base = &base[..end];
    let is_free = |name: &str| {
        !taken.contains(&name)
            && catalog.relation_named(&ObjectName { schema: schema.into(), name: name.into() }).is_none()
    };
    let numbered = (1..).map(|number| format!("{base}{number}"));
    std::iter::once(base.to_string()).chain(numbered).find(|name| is_free(name)).unwrap_or_default()
}
