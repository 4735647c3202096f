//! `DROP`, `TRUNCATE`, and what depends on what.

use super::{depended_on, not_supported};
use crate::connection::Connection;
use crate::connection::Session;
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog::named_relation::relations_of;
use fabius_sql_meaning::catalog::{
    Catalog, ForeignKey, ObjectName, Oid, Relation, Sequence, TEMPORARY, Table, parts,
};
use fabius_sql_planning::heed;
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Views and materialized views that name a relation.
pub(super) fn views_of<'c>(catalog: &'c Catalog, name: &ObjectName) -> Vec<Relation<'c>> {
    let names =
        |view: &Relation<'_>| view.query().is_some_and(|query| relations_of(catalog, query).contains(name));
    catalog.views_of_all_kinds().filter(names).collect()
}

/// A relation as messages call it.
fn called_as(relation: &Relation<'_>) -> String {
    format!("{} {}", relation.kind(), relation.short_name())
}

/// Views that depend on a relation, and views that depend on those: each with what it depends on, and before it.
fn dependent_views<'c>(
    catalog: &'c Catalog,
    on: &Relation<'c>,
    together: &[ObjectName],
    seen: &mut BTreeSet<Oid>,
    found: &mut Vec<(Relation<'c>, String)>,
) {
    let mut views = views_of(catalog, on.name());
    views.retain(|view| view.oid() != on.oid() && !together.contains(view.name()));
    views.sort_by_key(|view| Reverse(view.oid()));
    for view in views {
        if seen.insert(view.oid()) {
            dependent_views(catalog, &view, together, seen, found);
            found.push((view, called_as(on)));
        }
    }
}

impl Connection {
    pub(super) async fn drop_objects(
        &mut self,
        kind: &ast::ObjectType,
        if_exists: bool,
        names: &[ast::ObjectName],
        cascade: bool,
    ) -> Result<String> {
        let (word, tag) = match kind {
            ast::ObjectType::Table => ("table", "DROP TABLE"),
            ast::ObjectType::View => ("view", "DROP VIEW"),
            ast::ObjectType::MaterializedView => ("materialized view", "DROP MATERIALIZED VIEW"),
            ast::ObjectType::Index => ("index", "DROP INDEX"),
            ast::ObjectType::Sequence => ("sequence", "DROP SEQUENCE"),
            ast::ObjectType::Schema => ("schema", "DROP SCHEMA"),
            other => return Err(not_supported(format!("DROP {other}"))),
        };
        // What goes together may depend on each other.
        let together: Vec<ObjectName> = {
            let catalog = self.catalog();
            names
                .iter()
                .filter_map(|name| match catalog.relation(name) {
                    Ok(Some(relation @ (Relation::Table(_) | Relation::View(_)))) => {
                        Some(relation.name().clone())
                    }
                    _ => None,
                })
                .collect()
        };
        for name in names {
            heed()?;
            let catalog = self.catalog();
            if *kind == ast::ObjectType::Schema {
                self.drop_schema(name, if_exists, cascade).await?;
                continue;
            }
            if let Some(relation) = catalog.relation(name)? {
                catalog.require_to_drop(relation.oid())?;
            }
            match (kind, catalog.relation(name)?) {
                (
                    ast::ObjectType::Table | ast::ObjectType::View | ast::ObjectType::MaterializedView,
                    Some(relation),
                ) if relation.kind() == word => {
                    let name = relation.name().clone();
                    self.drop_relation(&name, cascade, &together).await?;
                }
                (ast::ObjectType::Index, Some(Relation::Index(table, index))) => {
                    let (table, index) = (table.clone(), index.to_string());
                    self.drop_index(&table, &index).await?;
                }
                (ast::ObjectType::Sequence, Some(Relation::Sequence(sequence))) => {
                    let sequence = sequence.clone();
                    self.drop_sequence(&sequence, cascade)?;
                }
                (_, Some(other)) => {
                    let (_, short) = parts(name)?;
                    let article = if word == "index" { "an" } else { "a" };
                    let hint =
                        format!("Use DROP {} to remove a {}.", other.kind().to_uppercase(), other.kind());
                    return Err(Error::new(
                        SqlState(*b"42809"),
                        format!("\"{short}\" is not {article} {word}"),
                    )
                    .with_hint(hint));
                }
                (_, None) if if_exists => {
                    let (_, short) = parts(name)?;
                    let missing = Error::new(
                        SqlState(*b"00000"),
                        format!("{word} \"{short}\" does not exist, skipping"),
                    );
                    self.session.notice(missing);
                }
                (_, None) => {
                    let error = catalog.missing(word, name);
                    let state = if word == "index" { SqlState(*b"42704") } else { error.state() };
                    return Err(Error::new(state, error.message()));
                }
            }
        }
        Ok(tag.into())
    }

    /// Drops a table, a view or a materialized view; what goes `together` with it may depend on it.
    pub(super) async fn drop_relation(
        &mut self,
        name: &ObjectName,
        cascade: bool,
        together: &[ObjectName],
    ) -> Result<()> {
        let Some(relation) = self.catalog().relation_named(name).map(|relation| relation.oid()) else {
            return Ok(());
        };
        if self.catalog().tables.contains_key(name) {
            self.lock_all(&[LockKey::Relation(relation)], LockMode::AccessExclusive).await?;
        }
        let catalog = self.catalog();
        let Some(relation) = catalog.relation_named(name) else { return Ok(()) };
        let called = called_as(&relation);
        let mut views = Vec::new();
        dependent_views(&catalog, &relation, together, &mut BTreeSet::new(), &mut views);
        views.reverse();
        let children: Vec<Arc<Table>> = catalog
            .tables
            .values()
            .filter(|child| {
                child.oid != relation.oid() && child.foreign_keys.iter().any(|key| key.parent == *name)
            })
            .cloned()
            .collect();
        let mut dependent = Vec::new();
        for child in children.iter().filter(|child| !together.contains(&child.name)) {
            let keys = child.foreign_keys.iter().filter(|key| key.parent == *name);
            let called_key =
                |key: &ForeignKey| format!("constraint {} on table {}", key.name, child.name.name);
            dependent.extend(keys.map(|key| (called_key(key), called.clone())));
        }
        dependent.extend(views.iter().map(|(view, on)| (called_as(view), on.clone())));
        if !cascade && !dependent.is_empty() {
            let details: Vec<String> =
                dependent.iter().map(|(one, on)| format!("{one} depends on {on}")).collect();
            return Err(depended_on(&called, details.join("\n")));
        }
        self.session.say_cascade(&dependent.into_iter().map(|(one, _)| one).collect::<Vec<_>>());
        for child in &children {
            self.lock_all(&[LockKey::Relation(child.oid)], LockMode::AccessExclusive).await?;
            let mut child = (**self.catalog().tables.get(&child.name).unwrap_or(child)).clone();
            child.foreign_keys.retain(|key| key.parent != *name);
            self.put_table(child);
        }
        for relation in views.iter().map(|(view, _)| view).chain([&relation]) {
            match relation {
                Relation::Table(table) => {
                    self.lock_all(&[LockKey::Relation(table.oid)], LockMode::AccessExclusive).await?;
                    self.forget_table(table);
                }
                relation => self.record_gone(relation.oid(), false),
            }
        }
        Ok(())
    }

    /// The table is gone, with its sequences.
    fn forget_table(&mut self, table: &Table) {
        let catalog = self.catalog();
        let owned = catalog
            .sequences
            .values()
            .filter(|sequence| sequence.owner.as_ref().is_some_and(|(owner, _)| *owner == table.name));
        for sequence in owned.cloned().collect::<Vec<_>>() {
            self.record_gone(sequence.oid, table.is_temporary());
        }
        self.transaction.note_left(table.storage.clone());
        table.keys().for_each(|key| self.forget_comments(key.oid));
        self.record_gone(table.oid, table.is_temporary());
    }

    async fn drop_index(&mut self, table: &Table, index: &str) -> Result<()> {
        if table.key(index).is_some_and(|key| key.is_constraint) {
            return Err(Error::new(
                SqlState(*b"2BP01"),
                format!(
                    "cannot drop index {index} because constraint {index} on table {} requires it",
                    table.name.name
                ),
            )
            .with_hint(format!("You can drop constraint {index} on table {} instead.", table.name.name)));
        }
        self.lock_all(&[LockKey::Relation(table.oid)], LockMode::AccessExclusive).await?;
        let before = (**self.catalog().tables.get(&table.name).unwrap_or(&Arc::new(table.clone()))).clone();
        let mut after = before.clone();
        super::index::forget_unique(&mut after, |key| key.name == index);
        after.indexes.retain(|key| key.name != index);
        self.rebuild(&before, &mut after, &super::storage::Filling::default()).await?;
        self.put_table(after);
        Ok(())
    }

    fn drop_sequence(&mut self, sequence: &Sequence, cascade: bool) -> Result<()> {
        let catalog = self.catalog();
        let users: Vec<Arc<Table>> = catalog
            .tables
            .values()
            .filter(|table| {
                table.columns.iter().any(|column| column.sequence.as_ref() == Some(&sequence.name))
            })
            .cloned()
            .collect();
        if !cascade && let Some(table) = users.first() {
            let detail = format!(
                "default value of table {} depends on sequence {}",
                table.name.name, sequence.name.name
            );
            return Err(depended_on(&format!("sequence {}", sequence.name.name), detail));
        }
        for table in users {
            let mut table = (*table).clone();
            for column in
                table.columns.iter_mut().filter(|column| column.sequence.as_ref() == Some(&sequence.name))
            {
                column.sequence = None;
            }
            self.put_table(table);
        }
        self.record_gone(sequence.oid, sequence.name.schema == TEMPORARY);
        Ok(())
    }

    async fn drop_schema(&mut self, name: &ast::ObjectName, if_exists: bool, cascade: bool) -> Result<()> {
        let (_, name) = parts(name)?;
        let catalog = self.catalog();
        let Some(oid) = catalog.schemas.get(&name).copied() else {
            let missing = Error::new(SqlState(*b"3F000"), format!("schema \"{name}\" does not exist"));
            if !if_exists {
                return Err(missing);
            }
            self.session.notice(Error::new(
                SqlState(*b"00000"),
                format!("schema \"{name}\" does not exist, skipping"),
            ));
            return Ok(());
        };
        catalog.require_owner(oid)?;
        let inside = |names: Vec<&ObjectName>| -> Vec<ObjectName> {
            names.into_iter().filter(|one| one.schema == name).cloned().collect()
        };
        let tables = inside(catalog.plain_tables().map(|table| &table.name).collect());
        let (materialized, views): (Vec<ObjectName>, Vec<ObjectName>) = catalog
            .views_of_all_kinds()
            .map(|view| view.name().clone())
            .filter(|one| one.schema == name)
            .partition(|one| catalog.tables.contains_key(one));
        let sequences = inside(catalog.sequences.keys().collect());
        let functions = inside(catalog.functions.keys().collect());
        let types = inside(catalog.enumerations.keys().collect());
        let domains = inside(catalog.domains.keys().collect());
        let kinds = [
            ("table", &tables),
            ("materialized view", &materialized),
            ("view", &views),
            ("sequence", &sequences),
            ("function", &functions),
            ("type", &types),
            ("type", &domains),
        ];
        let mut called = Vec::new();
        for (kind, names) in kinds {
            called.extend(names.iter().map(|one| format!("{kind} {name}.{}", one.name)));
        }
        if !called.is_empty() && !cascade {
            let details: Vec<String> =
                called.iter().map(|one| format!("{one} depends on schema {name}")).collect();
            return Err(depended_on(&format!("schema {name}"), details.join("\n")));
        }
        self.session.say_cascade(&called);
        let together: Vec<ObjectName> =
            [&views, &materialized, &tables].into_iter().flatten().cloned().collect();
        for relation in &together {
            self.drop_relation(relation, true, &together).await?;
        }
        for sequence in &sequences {
            if let Some(sequence) = self.catalog().sequences.get(sequence).cloned() {
                self.drop_sequence(&sequence, true)?;
            }
        }
        for function in &functions {
            for function in self.catalog().functions.get(function).cloned().unwrap_or_default() {
                self.record_gone(function.oid, false);
            }
        }
        for domain in &domains {
            if let Some(domain) = self.catalog().domains.get(domain).cloned() {
                self.drop_domain(&domain, true).await?;
            }
        }
        for of in &types {
            if let Some(of) = self.catalog().enumerations.get(of).cloned() {
                self.drop_type(&of, true).await?;
            }
        }
        self.record_gone(oid, false);
        Ok(())
    }

    pub(super) async fn truncate(&mut self, truncate: &ast::Truncate) -> Result<String> {
        let mut tables: Vec<Table> = Vec::new();
        for target in &truncate.table_names {
            let table = self.table_alone(&target.name).await?;
            if table.materialized.is_some() {
                let message = format!("\"{}\" is not a table", table.name.name);
                return Err(Error::new(SqlState(*b"42809"), message));
            }
            let catalog = self.catalog();
            catalog.require(&Relation::Table(catalog.table(&target.name)?), Privilege::Truncate)?;
            if !tables.iter().any(|one| one.oid == table.oid) {
                tables.push(table);
            }
        }
        let cascade = matches!(truncate.cascade, Some(ast::CascadeOption::Cascade));
        let mut at = 0;
        while at < tables.len() {
            let name = tables[at].name.clone();
            let children: Vec<Arc<Table>> = self
                .catalog()
                .tables
                .values()
                .filter(|child| child.foreign_keys.iter().any(|key| key.parent == name))
                .cloned()
                .collect();
            for child in children {
                if tables.iter().any(|one| one.oid == child.oid) {
                    continue;
                }
                if !cascade {
                    return Err(Error::new(
                        SqlState::NOT_SUPPORTED,
                        "cannot truncate a table referenced in a foreign key constraint",
                    )
                    .with_detail(format!("Table \"{}\" references \"{}\".", child.name.name, name.name))
                    .with_hint(format!(
                        "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                        child.name.name
                    )));
                }
                self.session.notice(Error::new(
                    SqlState(*b"00000"),
                    format!("truncate cascades to table \"{}\"", child.name.name),
                ));
                self.lock_all(&[LockKey::Relation(child.oid)], LockMode::AccessExclusive).await?;
                self.catalog().require(&Relation::Table(&child), Privilege::Truncate)?;
                tables.push((*child).clone());
            }
            at += 1;
        }
        for mut table in tables {
            self.transaction.note_left(table.storage.clone());
            table.keys().for_each(|key| self.forget_comments(key.oid));
            self.make_storage(&mut table)?;
            if matches!(truncate.identity, Some(ast::TruncateIdentityOption::Restart)) {
                let catalog = self.catalog();
                let owned = catalog.sequences.values().filter(|sequence| {
                    sequence.owner.as_ref().is_some_and(|(owner, _)| *owner == table.name)
                });
                for sequence in owned {
                    self.database().set_sequence(sequence, sequence.start, false).await?;
                }
            }
            self.put_table(table);
        }
        Ok("TRUNCATE TABLE".into())
    }
}

impl Session {
    /// Says what goes with what is dropped.
    pub(super) fn say_cascade(&mut self, gone: &[String]) {
        let notice = |message: String| Error::new(SqlState(*b"00000"), message);
        match gone {
            [] => {}
            [one] => self.notice(notice(format!("drop cascades to {one}"))),
            several => {
                let details: Vec<String> =
                    several.iter().map(|one| format!("drop cascades to {one}")).collect();
                let message = format!("drop cascades to {} other objects", several.len());
                self.notice(notice(message).with_detail(details.join("\n")));
            }
        }
    }
}
