//! `ALTER TABLE`: a table's next form, and its rows brought over.

use super::create_table::{identity, read_options, refuse_incomparable};
use super::generated::{mentions, refuse_change};
use super::materialized_view::refuse_materialized;
use super::storage::{Filling, not_unique};
use super::{depended_on, not_supported};
use crate::connection::Connection;
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Column, ForeignKey, Identity, ObjectName, Relation, Table, folded, parts};
use fabius_sql_meaning::text_format;
use fabius_sql_program::bind;
use fabius_sql_syntax::command::SequenceOptions;
use fabius_sql_syntax::identifier::quote_identifier;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::quoted_object;
use fabius_value::{DataType, Error, Result, SqlState, Value};
use sqlparser::ast::{self, AlterColumnOperation as Change_, AlterTableOperation as Operation};

/// Whether an operation changes names alone: such are for materialized views too.
fn changes_names(operation: &Operation) -> bool {
    matches!(operation, Operation::RenameTable { .. } | Operation::RenameColumn { .. })
}

impl Connection {
    pub(super) async fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<String> {
        let catalog = self.catalog();
        if alter.if_exists && catalog.relation(&alter.name)?.is_none() {
            let (_, name) = parts(&alter.name)?;
            self.session.notice(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist, skipping"),
            ));
            return Ok("ALTER TABLE".into());
        }
        let before = self.table_to_change(&alter.name).await?;
        for operation in alter.operations.iter().filter(|operation| !changes_names(operation)) {
            let words = operation.to_string();
            let what = words.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
            refuse_materialized(&before, &format!("ALTER action {what}"))?;
        }
        if !alter.operations.iter().all(|operation| matches!(operation, Operation::RenameConstraint { .. })) {
            self.refuse_doubtful(&before)?;
        }
        let mut after = before.clone();
        let mut filling = Filling::default();
        let before = self.convert_columns(&before, &alter.operations, &mut filling).await?;
        for operation in &alter.operations {
            self.alter(&before, &mut after, operation, &mut filling).await?;
        }
        let is_stored_anew = stored_form(&before) != stored_form(&after)
            || !filling.values.is_empty()
            || !filling.renamed.is_empty();
        if is_stored_anew {
            self.rebuild(&before, &mut after, &filling).await?;
        }
        if after.name != before.name {
            self.follow_name(&before, &after).await?;
        }
        // Values that have become others have to meet what those before did.
        let is_converted = alter.operations.iter().any(changes_type);
        let added_checks = after.checks.iter().filter(|check| is_converted || !before.checks.contains(check));
        let added_checks: Vec<_> = added_checks.cloned().collect();
        let added_keys = after.foreign_keys.iter();
        // One of another name is the same.
        let is_known = |key: &ForeignKey| {
            let named_alike = |known: &ForeignKey| ForeignKey { name: key.name.clone(), ..known.clone() };
            before.foreign_keys.iter().any(|known| named_alike(known) == *key)
        };
        let added_keys = added_keys.filter(|key| is_converted || !is_known(key));
        let added_keys: Vec<_> = added_keys.cloned().collect();
        self.put_table(after.clone());
        self.fill_generated(&before, &after).await?;
        for check in added_checks {
            self.verify_check(&after, &check.name, &check.condition).await?;
        }
        for key in added_keys {
            self.verify_key(&after, &key).await?;
        }
        for key in after.late_keys() {
            if is_converted || before.key(&key.name).is_none() {
                self.verify_unique(&after, key, None).await.map_err(|error| not_unique(&error, &key.name))?;
            }
        }
        if is_converted {
            self.verify_children(&after).await?;
        }
        if alter.operations.iter().any(changes_default) {
            self.try_definitions(&after).await?;
        }
        Ok("ALTER TABLE".into())
    }

    async fn alter(
        &mut self,
        before: &Table,
        table: &mut Table,
        operation: &Operation,
        filling: &mut Filling,
    ) -> Result<()> {
        match operation {
            Operation::AddColumn { if_not_exists, column_def, .. } => {
                let name = folded(&column_def.name);
                if table.column(&name).is_some() {
                    let exists =
                        format!("column \"{name}\" of relation \"{}\" already exists", table.name.name);
                    if !if_not_exists {
                        return Err(Error::new(SqlState(*b"42701"), exists));
                    }
                    self.session.notice(Error::new(SqlState(*b"42701"), format!("{exists}, skipping")));
                    return Ok(());
                }
                self.add_column(table, column_def).await?;
                let Some(column) = table.column(&name).cloned() else { return Ok(()) };
                self.fill_added(before, &column, filling).await?;
            }
            Operation::DropColumn { column_names, if_exists, drop_behavior, .. } => {
                for name in column_names {
                    let name = folded(name);
                    if table.column(&name).is_none() && *if_exists {
                        self.session.notice(Error::new(
                            SqlState(*b"00000"),
                            format!(
                                "column \"{name}\" of relation \"{}\" does not exist, skipping",
                                table.name.name
                            ),
                        ));
                        continue;
                    }
                    self.drop_column(
                        table,
                        &name,
                        matches!(drop_behavior, Some(ast::DropBehavior::Cascade)),
                    )?;
                }
            }
            Operation::RenameColumn { old_column_name, new_column_name } => {
                let (old, new) = (folded(old_column_name), folded(new_column_name));
                if table.column(&new).is_some() {
                    return Err(Error::new(
                        SqlState(*b"42701"),
                        format!("column \"{new}\" of relation \"{}\" already exists", table.name.name),
                    ));
                }
                let place = table.place_of(&old)?;
                self.rename_column(table, place, &old, &new).await?;
                let origin = filling.renamed.remove(&old).unwrap_or(old);
                filling.renamed.insert(new, origin);
            }
            Operation::RenameTable { table_name } => {
                let (ast::RenameTableNameKind::To(name) | ast::RenameTableNameKind::As(name)) = table_name;
                let (_, name) = parts(name)?;
                let name = ObjectName { schema: table.name.schema.clone(), name };
                self.claim(&name, false).await?;
                table.name = name;
            }
            Operation::RenameConstraint { old_name, new_name } => {
                rename_constraint(table, &folded(old_name), folded(new_name))?;
            }
            Operation::AlterColumn { column_name, op } => {
                self.alter_column(table, &folded(column_name), op, filling).await?;
            }
            Operation::AddConstraint { constraint, .. } => self.add_constraint(table, constraint).await?,
            Operation::DropConstraint { if_exists, name, drop_behavior } => {
                let cascade = matches!(drop_behavior, Some(ast::DropBehavior::Cascade));
                self.drop_constraint(table, &folded(name), *if_exists, cascade)?;
            }
            Operation::ValidateConstraint { .. }
            | Operation::OwnerTo { .. }
            | Operation::SetOptionsParens { .. }
            | Operation::EnableTrigger { .. }
            | Operation::ReplicaIdentity { .. } => {}
            other => return Err(not_supported(format!("ALTER TABLE ... {other}"))),
        }
        Ok(())
    }

    /// Finds out what rows that are there have in a new column.
    async fn fill_added(&mut self, before: &Table, column: &Column, filling: &mut Filling) -> Result<()> {
        if let Some(sequence) = &column.sequence {
            // Rows that are there are numbered from the beginning; the sequence goes on behind them.
            let catalog = self.catalog();
            if let Some(sequence) = catalog.sequences.get(sequence) {
                let count = i64::try_from(self.count_rows(before).await?).unwrap_or(i64::MAX);
                filling.numbered.insert(column.name.clone(), (sequence.start, sequence.increment));
                if count > 0 {
                    let last = sequence.start + sequence.increment * (count - 1);
                    self.database().set_sequence(sequence, last, true).await?;
                }
            }
        } else {
            let value = match &column.default {
                Some(default) => {
                    let expression = Tokens::of(default)?.read(|parser| parser.parse_expr())?;
                    self.evaluate(&expression, &column.sql_type).await?
                }
                // Computed once the row is there.
                None if column.generated.is_some() && !column.nullable => {
                    let data_type = column.sql_type.storage().unwrap_or(DataType::TEXT);
                    bind::some_value(data_type)
                }
                None => Value::Null,
            };
            filling.values.insert(column.name.clone(), text_format::kept(value, &column.sql_type));
        }
        Ok(())
    }

    pub(super) fn drop_column(&mut self, table: &mut Table, name: &str, cascade: bool) -> Result<()> {
        table.place_of(name)?;
        let catalog = self.catalog();
        let dependents: Vec<String> = catalog
            .tables
            .values()
            .flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)))
            .filter(|(child, key)| {
                key.parent == table.name
                    && child.oid != table.oid
                    && key.parent_columns.iter().any(|column| column == name)
            })
            .map(|(child, key)| {
                format!(
                    "constraint {} on table {} depends on column {name} of table {}",
                    key.name, child.name.name, table.name.name
                )
            })
            .chain(
                super::drop::views_of(&catalog, &table.name)
                    .iter()
                    .filter(|view| view.query().is_some_and(|query| mentions(query, name)))
                    .map(|view| {
                        format!(
                            "{} {} depends on column {name} of table {}",
                            view.kind(),
                            view.name().name,
                            table.name.name
                        )
                    }),
            )
            .collect();
        if !dependents.is_empty() {
            if cascade {
                return Err(not_supported("DROP COLUMN ... CASCADE of what views or other tables use"));
            }
            return Err(depended_on(
                &format!("column {name} of table {}", table.name.name),
                dependents.join("\n"),
            ));
        }
        // Indexes that compute with it go with it.
        let hidden: Vec<String> = super::generated::users(table, name)
            .filter(|column| column.is_hidden)
            .map(|column| column.name.clone())
            .collect();
        super::index::forget_unique(table, |key| {
            let names_it = |text: &str| mentions(text, name);
            let predicate = key.written.as_ref().and_then(|written| written.predicate.as_deref());
            let is_written = key.written.is_some() && key.keys().chain(predicate).any(names_it);
            is_written || key.columns.iter().any(|column| hidden.contains(column))
        });
        let place = table.place_of(name)?;
        let users: Vec<String> =
            super::generated::users(table, name).map(|column| column.name.clone()).collect();
        if let (Some(user), false) = (users.first(), cascade) {
            let detail =
                format!("column {user} of table {0} depends on column {name} of table {0}", table.name.name);
            return Err(depended_on(&format!("column {name} of table {}", table.name.name), detail));
        }
        let column = table.columns.remove(place);
        for user in users {
            self.drop_column(table, &user, cascade)?;
        }
        if table.primary_key.as_ref().is_some_and(|key| key.has(name)) {
            table.primary_key = None;
        }
        super::index::forget_unique(table, |key| key.has(name));
        table.indexes.retain(|key| !key.has(name));
        table.keep_references(|key| !key.columns.iter().any(|column| column == name));
        table.checks.retain(|check| !mentions(&check.condition, name));
        if let Some(sequence) = column.sequence.and_then(|name| catalog.sequences.get(&name).cloned())
            && sequence.owner.is_some()
        {
            self.record_gone(sequence.oid, table.is_temporary());
        }
        Ok(())
    }

    async fn rename_column(&mut self, table: &mut Table, place: usize, old: &str, new: &str) -> Result<()> {
        if table.checks.iter().any(|check| mentions(&check.condition, old)) {
            for check in &mut table.checks {
                check.condition = renamed(&check.condition, old, new)?;
            }
        }
        for generated in table.columns.iter_mut().filter_map(|column| column.generated.as_mut()) {
            *generated = renamed(generated, old, new)?;
        }
        for key in table.unique.iter_mut().filter_map(|key| key.written.as_mut()) {
            for text in key.keys.iter_mut().chain(&mut key.predicate) {
                *text = renamed(text, old, new)?;
            }
        }
        table.columns[place].name = new.to_string();
        let rename = |columns: &mut Vec<String>| {
            columns.iter_mut().filter(|column| *column == old).for_each(|column| *column = new.to_string());
        };
        table.primary_key.iter_mut().chain(&mut table.unique).chain(&mut table.indexes).for_each(|key| {
            let included = key.layout.as_mut().map(|layout| &mut layout.included);
            [&mut key.columns].into_iter().chain(included).for_each(rename);
        });
        table.foreign_keys.iter_mut().for_each(|key| rename(&mut key.columns));
        let catalog = self.catalog();
        for child in catalog.tables.values().filter(|child| child.oid != table.oid) {
            if child
                .foreign_keys
                .iter()
                .any(|key| key.parent == table.name && key.parent_columns.iter().any(|c| c == old))
            {
                let mut child = (**child).clone();
                child
                    .foreign_keys
                    .iter_mut()
                    .filter(|key| key.parent == table.name)
                    .for_each(|key| rename(&mut key.parent_columns));
                self.put_table(child);
            }
        }
        let is_used = |view: &Relation<'_>| view.query().is_some_and(|query| mentions(query, old));
        if super::drop::views_of(&catalog, &table.name).iter().any(is_used) {
            return Err(not_supported("renaming a column that a view uses"));
        }
        Ok(())
    }

    async fn alter_column(
        &mut self,
        table: &mut Table,
        name: &str,
        change: &Change_,
        filling: &mut Filling,
    ) -> Result<()> {
        let place = table.place_of(name)?;
        refuse_change(table, &table.columns[place], change)?;
        match change {
            Change_::SetNotNull => table.columns[place].nullable = false,
            Change_::DropNotNull => {
                if table
                    .primary_key
                    .as_ref()
                    .is_some_and(|key| key.columns.iter().any(|column| column == name))
                {
                    return Err(Error::new(
                        SqlState(*b"42P16"),
                        format!("column \"{name}\" is in a primary key"),
                    ));
                }
                table.columns[place].nullable = true;
            }
            Change_::SetDefault { value } => {
                let mut column = table.columns[place].clone();
                self.set_default(&mut column, value)?;
                table.columns[place] = column;
            }
            Change_::DropDefault => {
                table.columns[place].default = None;
                table.columns[place].sequence = None;
                table.columns[place].identity = None;
            }
            Change_::SetDataType { data_type, .. } => {
                let is_used = |view: &Relation<'_>| view.query().is_some_and(|query| mentions(query, name));
                if super::drop::views_of(&self.catalog(), &table.name).iter().any(is_used) {
                    return Err(not_supported("altering the type of a column that a view uses"));
                }
                // The column that it was, or the one beside it, is there until all is done.
                filling.renamed.entry(name.to_string()).or_insert_with(|| name.to_string());
                table.columns[place].sql_type = self.catalog().type_of(data_type)?;
                if table.columns[place].domain.is_some() {
                    return Err(not_supported("changing the type of a column of a domain"));
                }
            }
            Change_::AddGenerated { generated_as, sequence_options } => {
                let options = read_options(sequence_options.as_deref().unwrap_or_default())?;
                let generated = generated_as.as_ref().map_or(Identity::ByDefault, identity);
                self.make_identity(table, place, generated, &options)?;
            }
        }
        Ok(())
    }

    fn make_identity(
        &mut self,
        table: &mut Table,
        place: usize,
        identity: Identity,
        options: &SequenceOptions,
    ) -> Result<()> {
        let column = table.columns[place].clone();
        let of = format!("column \"{}\" of relation \"{}\"", column.name, table.name.name);
        if column.nullable {
            let message = format!("{of} must be declared NOT NULL before identity can be added");
            return Err(Error::new(SqlState(*b"55000"), message));
        }
        if column.identity.is_some() {
            return Err(Error::new(SqlState(*b"55000"), format!("{of} is already an identity column")));
        }
        if column.sequence.is_some() || column.default.is_some() {
            return Err(Error::new(SqlState(*b"55000"), format!("{of} already has a default value")));
        }
        table.columns[place].sequence = Some(self.owned_sequence(table, &column, options)?);
        table.columns[place].identity = Some(identity);
        Ok(())
    }

    /// `ALTER TABLE ... ALTER COLUMN ... ADD GENERATED ... AS IDENTITY`, with any options of its sequence.
    pub(super) async fn add_identity(
        &mut self,
        table: &ast::ObjectName,
        column: &str,
        identity: Identity,
        options: &SequenceOptions,
    ) -> Result<String> {
        let mut table = self.table_to_change(table).await?;
        let place = table.place_of(column)?;
        self.make_identity(&mut table, place, identity, options)?;
        self.put_table(table);
        Ok("ALTER TABLE".into())
    }

    fn drop_constraint(
        &mut self,
        table: &mut Table,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let dropped = table.keys().find(|key| key.is_constraint && key.name == name).cloned();
        if let Some(key) = &dropped {
            let catalog = self.catalog();
            let parent = table.name.clone();
            let relies_on = |foreign: &ForeignKey| {
                foreign.parent == parent
                    && foreign.parent_columns.iter().all(|column| key.columns.contains(column))
            };
            for child in catalog.tables.values().filter(|child| child.foreign_keys.iter().any(relies_on)) {
                if !cascade {
                    let detail = format!("a constraint on table {} depends on index {name}", child.name.name);
                    return Err(depended_on(
                        &format!("constraint {name} on table {}", table.name.name),
                        detail,
                    ));
                }
                if child.oid == table.oid {
                    table.keep_references(|foreign| !relies_on(foreign));
                } else {
                    let mut child = (**child).clone();
                    child.foreign_keys.retain(|foreign| !relies_on(foreign));
                    self.put_table(child);
                }
            }
        }
        let count = |table: &Table| table.keys().count() + table.checks.len() + table.foreign_keys.len();
        let before = count(table);
        if table.primary_key.as_ref().is_some_and(|key| key.name == name) {
            table.primary_key = None;
        }
        for keys in [&mut table.unique, &mut table.indexes] {
            keys.retain(|key| !(key.is_constraint && key.name == name));
        }
        table.checks.retain(|check| check.domain.is_some() || check.name != name);
        table.keep_references(|key| key.name != name);
        if count(table) < before {
            return Ok(());
        }
        if !if_exists {
            return Err(no_constraint(name, table));
        }
        self.session.notice(Error::new(
            SqlState(*b"00000"),
            format!("constraint \"{name}\" of relation \"{}\" does not exist, skipping", table.name.name),
        ));
        Ok(())
    }

    /// Everything that names a table by its old name.
    pub(super) async fn follow_name(&mut self, before: &Table, after: &Table) -> Result<()> {
        let catalog = self.catalog();
        if !super::drop::views_of(&catalog, &before.name).is_empty() {
            return Err(not_supported("renaming a table that a view uses"));
        }
        for child in catalog.tables.values().filter(|child| child.oid != before.oid) {
            if child.foreign_keys.iter().any(|key| key.parent == before.name) {
                self.lock_all(&[LockKey::Relation(child.oid)], LockMode::AccessExclusive).await?;
                let mut child = (**child).clone();
                let keys = child.foreign_keys.iter_mut().filter(|key| key.parent == before.name);
                keys.for_each(|key| key.parent = after.name.clone());
                self.put_table(child);
            }
        }
        for sequence in catalog.sequences.values() {
            if let Some((owner, column)) = &sequence.owner
                && *owner == before.name
            {
                let mut sequence = (**sequence).clone();
                sequence.owner = Some((after.name.clone(), column.clone()));
                self.record(Change::from(Object::Sequence(sequence)), after.is_temporary());
            }
        }
        Ok(())
    }

    pub(super) async fn verify_check(&mut self, table: &Table, name: &str, condition: &str) -> Result<()> {
        let text = format!("SELECT 1 FROM {} WHERE NOT ({condition}) LIMIT 1", quoted_object(&table.name));
        if Box::pin(self.query_rows(&text, &[], &[])).await?.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            SqlState(*b"23514"),
            format!(
                "check constraint \"{name}\" of relation \"{}\" is violated by some row",
                table.name.name
            ),
        ))
    }

    /// Whether what other tables refer to is there still.
    async fn verify_children(&mut self, parent: &Table) -> Result<()> {
        let mut referring = Vec::new();
        for child in self.catalog().tables.values().filter(|child| child.oid != parent.oid) {
            let keys = child.foreign_keys.iter().filter(|key| key.parent == parent.name);
            referring.extend(keys.map(|key| (child.clone(), key.clone())));
        }
        for (child, key) in referring {
            self.verify_key(&child, &key).await?;
        }
        Ok(())
    }

    async fn verify_key(&mut self, table: &Table, key: &ForeignKey) -> Result<()> {
        if let Some(parent) = self.catalog().tables.get(&key.parent) {
            refuse_incomparable(&key.name, (table, &key.columns), (parent, &key.parent_columns))?;
        }
        match self.count_rows(table).await? {
            0 => Ok(()),
            _ => self.verify_reference(table, key, None).await,
        }
    }
}

/// What the storage of a table depends on.
fn stored_form(table: &Table) -> Option<String> {
    let named_alike = Table { storage: String::new(), ..table.clone() };
    super::storage::definition(&named_alike).ok()
}

fn changes_type(operation: &Operation) -> bool {
    matches!(operation, Operation::AlterColumn { op: Change_::SetDataType { .. }, .. })
}

/// Whether a column's default, or what it has to become, may be another.
fn changes_default(operation: &Operation) -> bool {
    let Operation::AlterColumn { op, .. } = operation else { return false };
    matches!(op, Change_::SetDefault { .. } | Change_::SetDataType { .. })
}

fn no_constraint(name: &str, table: &Table) -> Error {
    Error::new(
        SqlState(*b"42704"),
        format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name.name),
    )
}

/// SQL with a column under another name.
fn renamed(sql: &str, old: &str, new: &str) -> Result<String> {
    let tokens = Tokens::of(sql)?;
    let mut out = String::new();
    let mut last = 0;
    for at in 0..tokens.len() {
        if let sqlparser::tokenizer::Token::Word(word) = tokens.token(at) {
            let name =
                if word.quote_style.is_some() { word.value.clone() } else { word.value.to_lowercase() };
            if name == old {
                let (start, end) = tokens.bytes(at);
                out.push_str(sql.get(last..start).unwrap_or_default());
                out.push_str(&quote_identifier(new));
                last = end;
            }
        }
    }
    out.push_str(sql.get(last..).unwrap_or_default());
    Ok(out)
}

fn rename_constraint(table: &mut Table, old: &str, new: String) -> Result<()> {
    let late = table.indexes.iter_mut().filter(|key| key.is_constraint);
    let keys = table.primary_key.iter_mut().chain(&mut table.unique).chain(late);
    let names = keys.map(|key| &mut key.name);
    let names = names.chain(table.checks.iter_mut().map(|check| &mut check.name));
    let mut names = names.chain(table.foreign_keys.iter_mut().map(|key| &mut key.name));
    match names.find(|name| **name == old) {
        Some(name) => name.clone_from(&new),
        None => return Err(no_constraint(old, table)),
    }
    if let Some(comment) = table.constraint_comments.remove(old) {
        table.constraint_comments.insert(new, comment);
    }
    Ok(())
}
