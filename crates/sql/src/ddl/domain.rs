//! `CREATE DOMAIN`, `ALTER DOMAIN`, `DROP DOMAIN`.
//!
//! A column of a domain is one of the domain's own type, with the domain's conditions among its table's.

use super::enumeration::no_type;
use super::{depended_on, not_supported, storage};
use crate::connection::Connection;
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog::defined_type::value_as;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Check, Column, Domain, ObjectName, TEMPORARY, Table};
use fabius_sql_syntax::command::{DomainChange, DomainPart};
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

/// The domain's conditions as those of a table with a column of it.
pub(super) fn checks_of(domain: &Domain, column: &str) -> Result<Vec<Check>> {
    let checks = domain.checks.iter().map(|check| {
        let condition = written(&value_as(&check.condition, &ast::Expr::Identifier(identifier(column)))?);
        Ok(Check { name: check.name.clone(), condition, domain: Some(domain.shown()) })
    });
    checks.collect()
}

fn identifier(name: &str) -> ast::Ident {
    ast::Ident::with_quote('"', name)
}

/// Adds a condition to a domain under its name, or one that is free.
fn add_check(domain: &mut Domain, name: Option<&str>, condition: &ast::Expr) -> Result<Check> {
    let is_taken = |name: &str| domain.checks.iter().any(|check| check.name == name);
    let name = match name {
        Some(name) if is_taken(name) => {
            let message = format!("constraint \"{name}\" for domain \"{}\" already exists", domain.name.name);
            return Err(Error::new(SqlState::DUPLICATE_OBJECT, message));
        }
        Some(name) => name.to_string(),
        None => {
            let base = format!("{}_check", domain.name.name);
            let numbered = (1..).map(|number| format!("{base}{number}"));
            std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(base)
        }
    };
    let check = Check { name, condition: written(condition), domain: None };
    domain.checks.push(check.clone());
    Ok(check)
}

impl Connection {
    /// `CREATE DOMAIN`
    pub(super) async fn create_domain(
        &mut self,
        name: &ast::ObjectName,
        data_type: &ast::DataType,
        parts: &[DomainPart],
    ) -> Result<String> {
        let catalog = self.catalog();
        let base = catalog.type_of(data_type)?;
        if base.storage().is_none() {
            return Err(not_supported(format!("a domain of type {base}")));
        }
        let name = catalog.name_for_new(name, false)?;
        if name.schema == TEMPORARY {
            return Err(not_supported("a temporary type"));
        }
        self.claim_type(&name).await?;
        let (oid, array_oid) = (self.database().new_oid(), self.database().new_oid());
        let mut domain =
            Domain { oid, array_oid, name, base, is_not_null: false, default: None, checks: Vec::new() };
        for part in parts {
            match part {
                DomainPart::Default(value) => domain.default = Some(written(value)),
                DomainPart::NotNull => domain.is_not_null = true,
                DomainPart::Null => {}
                DomainPart::Check(name, condition) => {
                    add_check(&mut domain, name.as_deref(), condition)?;
                }
            }
        }
        self.try_domain(&domain).await?;
        self.record(Change::from(Object::Domain(domain)), false);
        Ok("CREATE DOMAIN".into())
    }

    /// Whether the domain's conditions and its default mean something, asked of a value of it.
    async fn try_domain(&mut self, domain: &Domain) -> Result<()> {
        let value = format!("NULL::{}", domain.base.written());
        let value = Tokens::of(&value)?.read(|parser| parser.parse_expr())?;
        for check in &domain.checks {
            let condition = written(&value_as(&check.condition, &value)?);
            Box::pin(self.prepare(&format!("SELECT 1 WHERE {condition}"), &[])).await?;
        }
        if let Some(default) = &domain.default {
            let expression = Tokens::of(default)?.read(|parser| parser.parse_expr())?;
            self.evaluate(&expression, &domain.base).await?;
        }
        Ok(())
    }

    /// `ALTER DOMAIN`
    pub(super) async fn alter_domain(
        &mut self,
        name: &ast::ObjectName,
        change: &DomainChange,
    ) -> Result<String> {
        let catalog = self.catalog();
        let Some(before) = catalog.domain(name)?.cloned() else { return Err(no_type(name, "")) };
        let mut domain = (*before).clone();
        let tables = self.tables_of(&before).await?;
        match change {
            DomainChange::Add(DomainPart::Check(name, condition)) => {
                let check = add_check(&mut domain, name.as_deref(), condition)?;
                self.try_domain(&domain).await?;
                let added = Domain { checks: vec![check], ..domain.clone() };
                for table in tables {
                    let mut after = (*table).clone();
                    let own = of_domain(&table, &before).map(|column| column.name.clone());
                    for column in own.collect::<Vec<_>>() {
                        after.checks.extend(checks_of(&added, &column)?);
                    }
                    self.put_table(after.clone());
                    for check in after.checks.iter().filter(|check| !table.checks.contains(check)) {
                        self.verify_check(&after, &check.name, &check.condition).await?;
                    }
                }
            }
            DomainChange::Add(_) => return Err(not_supported("this change of a domain")),
            DomainChange::Drop { constraint, if_exists } => {
                if !domain.checks.iter().any(|check| check.name == *constraint) {
                    let message = format!(
                        "constraint \"{constraint}\" of domain \"{}\" does not exist",
                        domain.name.name
                    );
                    if !if_exists {
                        return Err(Error::new(SqlState(*b"42704"), message));
                    }
                    self.session.notice(Error::new(SqlState(*b"00000"), format!("{message}, skipping")));
                    return Ok("ALTER DOMAIN".into());
                }
                domain.checks.retain(|check| check.name != *constraint);
                for table in tables {
                    let mut table = (*table).clone();
                    let of = Some(domain.shown());
                    table.checks.retain(|check| check.domain != of || check.name != *constraint);
                    self.put_table(table);
                }
            }
            DomainChange::NotNull(_) if !tables.is_empty() => {
                return Err(not_supported("SET or DROP NOT NULL of a domain that columns have")
                    .with_hint("alter the columns"));
            }
            DomainChange::NotNull(is_not_null) => domain.is_not_null = *is_not_null,
            DomainChange::Default(value) => {
                domain.default = value.as_ref().map(written);
                self.try_domain(&domain).await?;
                for table in tables {
                    let mut table = (*table).clone();
                    let is_own = |column: &&mut Column| {
                        column.domain == Some(domain.oid) && column.default == before.default
                    };
                    let own = table.columns.iter_mut().filter(is_own);
                    own.for_each(|column| column.default.clone_from(&domain.default));
                    self.put_table(table);
                }
            }
            DomainChange::Rename(_) if !tables.is_empty() => {
                return Err(not_supported("renaming a domain that columns have"));
            }
            DomainChange::Rename(to) => {
                let name = ObjectName { schema: domain.name.schema.clone(), name: to.clone() };
                self.claim_type(&name).await?;
                domain.name = name;
            }
        }
        self.record(Change::from(Object::Domain(domain)), false);
        Ok("ALTER DOMAIN".into())
    }

    /// The tables that have columns of a domain, held alone.
    async fn tables_of(&mut self, domain: &Domain) -> Result<Vec<Arc<Table>>> {
        let found = |connection: &mut Connection| {
            let catalog = connection.catalog();
            let tables = catalog.tables.values().filter(|table| of_domain(table, domain).next().is_some());
            tables.cloned().collect::<Vec<_>>()
        };
        let locks: Vec<LockKey> = found(self).iter().map(|table| LockKey::Relation(table.oid)).collect();
        self.lock_all(&locks, LockMode::AccessExclusive).await?;
        Ok(found(self))
    }

    /// `DROP DOMAIN`
    pub(super) async fn drop_domains(
        &mut self,
        names: &[ast::ObjectName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<String> {
        for name in names {
            match self.catalog().domain(name)?.cloned() {
                Some(domain) => {
                    self.catalog().require_to_drop(domain.oid)?;
                    self.drop_domain(&domain, cascade).await?;
                }
                None if if_exists => {
                    let missing = no_type(name, ", skipping").message().to_string();
                    self.session.notice(Error::new(SqlState(*b"00000"), missing));
                }
                None => return Err(no_type(name, "")),
            }
        }
        Ok("DROP DOMAIN".into())
    }

    /// A domain is gone; with `cascade`, the columns of it.
    pub(super) async fn drop_domain(&mut self, domain: &Domain, cascade: bool) -> Result<()> {
        let tables = self.tables_of(domain).await?;
        let names: Vec<String> = tables
            .iter()
            .flat_map(|table| {
                let columns = of_domain(table, domain);
                columns.map(|column| format!("column {} of table {}", column.name, table.name.name))
            })
            .collect();
        let called = format!("type {}", domain.shown());
        if !cascade && !names.is_empty() {
            let details = names.iter().map(|name| format!("{name} depends on {called}"));
            return Err(depended_on(&called, details.collect::<Vec<_>>().join("\n")));
        }
        self.session.say_cascade(&names);
        for before in tables {
            let mut after = (*before).clone();
            for column in of_domain(&before, domain) {
                self.drop_column(&mut after, &column.name, true)?;
            }
            self.rebuild(&before, &mut after, &storage::Filling::default()).await?;
            self.put_table(after);
        }
        self.record_gone(domain.oid, false);
        Ok(())
    }

    /// Makes a column one of a domain, but for what it says itself.
    pub(super) fn give_domain(
        &mut self,
        table: &mut Table,
        column: &mut Column,
        domain: &Domain,
    ) -> Result<()> {
        column.domain = Some(domain.oid);
        column.nullable &= !domain.is_not_null;
        if column.default.is_none() {
            column.default.clone_from(&domain.default);
        }
        table.checks.extend(checks_of(domain, &column.name)?);
        Ok(())
    }
}

fn of_domain<'t>(table: &'t Table, domain: &Domain) -> impl Iterator<Item = &'t Column> {
    let oid = domain.oid;
    table.columns.iter().filter(move |column| column.domain == Some(oid))
}
