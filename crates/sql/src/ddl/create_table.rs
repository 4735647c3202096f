//! `CREATE TABLE`, with its constraints.

use super::{free_name, not_supported};
use crate::connection::Connection;
use crate::lock::{LockKey, LockMode};
use fabius_sql_meaning::catalog;
use fabius_sql_meaning::catalog::Relation;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{
    Check, Column, Deferral, ForeignKey, Identity, Key, ObjectName, ReferentialAction, Table, folded,
};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::{self, Context};
use fabius_sql_planning::heed;
use fabius_sql_program::bind;
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_program::lowered::Argument;
use fabius_sql_syntax::collation;
use fabius_sql_syntax::command::SequenceOptions;
use fabius_sql_syntax::is_bare_function;
use fabius_sql_syntax::privilege::Privilege;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState(*b"42P16"), message)
}

/// A column's integer type if it is written as a serial one.
fn serial(data_type: &ast::DataType) -> Option<SqlType> {
    let ast::DataType::Custom(name, modifiers) = data_type else { return None };
    let word = name.0.last()?.as_ident()?.value.to_lowercase();
    if name.0.len() != 1 || !modifiers.is_empty() {
        return None;
    }
    match word.as_str() {
        "smallserial" | "serial2" => Some(SqlType::SmallInt),
        "serial" | "serial4" => Some(SqlType::Int),
        "bigserial" | "serial8" => Some(SqlType::BigInt),
        _ => None,
    }
}

pub(super) fn action(action: Option<ast::ReferentialAction>) -> ReferentialAction {
    match action {
        Some(ast::ReferentialAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferentialAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferentialAction::SetDefault) => ReferentialAction::SetDefault,
        Some(ast::ReferentialAction::Restrict) => ReferentialAction::Restrict,
        _ => ReferentialAction::NoAction,
    }
}

/// The columns of a key; expressions are refused.
pub(super) fn key_columns(columns: &[ast::IndexColumn]) -> Result<Vec<String>> {
    let name = |column: &ast::IndexColumn| match &column.column.expr {
        ast::Expr::Identifier(ident) => Ok(folded(ident)),
        _ => Err(not_supported("an index on an expression")),
    };
    columns.iter().map(name).collect()
}

impl Connection {
    pub(super) async fn create_table(&mut self, create: &ast::CreateTable) -> Result<String> {
        if create.inherits.is_some() {
            return Err(not_supported("inheritance of tables"));
        }
        if create.partition_of.is_some() || create.partition_by.is_some() {
            return Err(not_supported("partitioning of tables"));
        }
        match create.on_commit {
            Some(ast::OnCommit::DeleteRows) => return Err(not_supported("ON COMMIT DELETE ROWS")),
            Some(ast::OnCommit::Drop) => return Err(not_supported("ON COMMIT DROP")),
            Some(ast::OnCommit::PreserveRows) | None => {}
        }
        let name = self.name_for_new(&create.name, create.temporary)?;
        let tag = if create.query.is_some() { "CREATE TABLE AS" } else { "CREATE TABLE" };
        if !self.claim(&name, create.if_not_exists).await? {
            return Ok(tag.into());
        }
        let mut table = Table {
            oid: self.database().new_oid(),
            name,
            storage: String::new(),
            columns: Vec::new(),
            primary_key: None,
            unique: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            constraint_comments: BTreeMap::new(),
            materialized: None,
        };
        if let Some(query) = &create.query {
            return self.create_table_as(table, &create.columns, query).await;
        }
        if let Some(ast::CreateTableLikeKind::Parenthesized(like) | ast::CreateTableLikeKind::Plain(like)) =
            &create.like
        {
            let catalog = self.catalog();
            let model = catalog.table(&like.name)?.clone();
            catalog.require(&Relation::Table(&model), Privilege::Select)?;
            let with_defaults = matches!(like.defaults, Some(ast::CreateTableLikeDefaults::Including));
            table.columns = model.visible().cloned().collect();
            for column in &mut table.columns {
                (column.identity, column.generated, column.sequence) = (None, None, None);
                if !with_defaults {
                    column.default = None;
                }
            }
        }
        for column in &create.columns {
            self.add_column(&mut table, column).await?;
        }
        for constraint in &create.constraints {
            heed()?;
            self.add_constraint(&mut table, constraint).await?;
        }
        self.make_storage(&mut table)?;
        self.put_table(table.clone());
        self.try_definitions(&table).await?;
        Ok(tag.into())
    }

    /// Whether defaults and checks mean something, and something that a row can be tried with.
    pub(super) async fn try_definitions(&mut self, table: &Table) -> Result<()> {
        for check in &table.checks {
            self.verify_check(table, &check.name, &check.condition).await?;
        }
        super::generated::verify(table)?;
        let (with_default, mut given): (Vec<&Column>, Vec<&Column>) = table
            .columns
            .iter()
            .filter(|column| column.generated.is_none())
            .partition(|column| column.default.is_some());
        if table.checks.is_empty() && with_default.is_empty() && !table.has_generated() {
            return Ok(());
        }
        // A row has to have something: each of two columns stands in for the other.
        let needs_one = given.is_empty() && table.primary_key.is_some();
        let turns = if needs_one { with_default.len().min(2) } else { 1 };
        let catalog = self.catalog();
        for turn in 0..turns {
            if needs_one {
                given = with_default.get(turn).copied().into_iter().collect();
            }
            let names: Vec<String> = given.iter().map(|column| column.name.clone()).collect();
            let write = BulkWrite::new(self.database().database(), &catalog, table, &names)?;
            for argument in &write.lowered.arguments {
                if let Argument::Computed(text, sql_type) = argument {
                    self.try_default(text, sql_type).await?;
                }
            }
        }
        Ok(())
    }

    /// Refuses a default that queries compute and that no column of the type takes.
    async fn try_default(&mut self, text: &str, sql_type: &SqlType) -> Result<()> {
        let prepared = Box::pin(self.prepare(&format!("SELECT {text}"), &[])).await?;
        let column = prepared.columns.as_ref().and_then(|columns| columns.first());
        match column {
            Some(column) if !type_rules::converts(&column.sql_type, sql_type, Context::Assignment) => {
                let message =
                    format!("a column is of type {sql_type} but its default is of type {}", column.sql_type);
                Err(Error::new(SqlState(*b"42804"), message)
                    .with_detail(format!("the default is {text}"))
                    .with_hint("You will need to rewrite or cast the expression."))
            }
            _ => Ok(()),
        }
    }

    async fn create_table_as(
        &mut self,
        mut table: Table,
        names: &[ast::ColumnDef],
        query: &ast::Query,
    ) -> Result<String> {
        let text = written(query);
        let prepared = Box::pin(self.prepare(&text, &[])).await?;
        let columns = prepared.columns.clone().unwrap_or_default();
        for (at, column) in columns.iter().enumerate() {
            let name = names.get(at).map_or_else(|| column.name.clone(), |given| folded(&given.name));
            let sql_type =
                if column.sql_type == SqlType::Unknown { SqlType::Text } else { column.sql_type.clone() };
            table.columns.push(Column::plain(name, sql_type));
        }
        refuse_twice(&table)?;
        self.make_storage(&mut table)?;
        let names: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
        self.put_table(table.clone());
        let rows = Box::pin(self.query_rows(&text, &[], &[])).await?;
        let count = rows.len();
        let catalog = self.catalog();
        let insert = BulkWrite::new(self.database().database(), &catalog, &table, &names)?;
        self.write_rows(&catalog, (&insert, &[]), rows, true).await?;
        Ok(format!("SELECT {count}"))
    }

    /// Adds a column with what stands behind its type.
    pub(super) async fn add_column(&mut self, table: &mut Table, definition: &ast::ColumnDef) -> Result<()> {
        let name = folded(&definition.name);
        if table.column(&name).is_some() {
            return Err(Error::new(
                SqlState(*b"42701"),
                format!("column \"{name}\" specified more than once"),
            ));
        }
        let serial = serial(&definition.data_type);
        let sql_type = match &serial {
            Some(sql_type) => sql_type.clone(),
            None => match self.catalog().domain_of(&definition.data_type)? {
                Some(domain) => domain.base.clone(),
                None => self.catalog().type_of(&definition.data_type)?,
            },
        };
        if sql_type.storage().is_none() {
            return Err(not_supported(format!("a column of type {sql_type}")));
        }
        let mut column = Column::plain(name.clone(), sql_type);
        if serial.is_some() {
            column.nullable = false;
            column.sequence = Some(self.owned_sequence(table, &column, &SequenceOptions::default())?);
        }
        let mut constraints = Vec::new();
        for option in &definition.options {
            let constraint_name = option.name.clone();
            match &option.option {
                ast::ColumnOption::Null => column.nullable = true,
                ast::ColumnOption::NotNull => column.nullable = false,
                ast::ColumnOption::Default(expression) => self.set_default(&mut column, expression)?,
                ast::ColumnOption::PrimaryKey(_) => {
                    column.nullable = false;
                    let key_name = constraint_name.as_ref().map(folded);
                    constraints.push((key_name, ColumnConstraint::Primary));
                }
                ast::ColumnOption::Unique(key) => {
                    let deferral = deferral(key.characteristics.as_ref())?;
                    let key_name = constraint_name.as_ref().map(folded);
                    constraints.push((key_name, ColumnConstraint::Unique(deferral)));
                }
                ast::ColumnOption::Check(check) => {
                    let name = constraint_name.as_ref().or(check.name.as_ref()).map(folded);
                    constraints.push((name, ColumnConstraint::Check(check.expr.clone())));
                }
                ast::ColumnOption::ForeignKey(key) => {
                    let mut key = key.clone();
                    key.columns = vec![definition.name.clone()];
                    key.name = constraint_name.or(key.name);
                    constraints.push((None, ColumnConstraint::Foreign(Box::new(key))));
                }
                ast::ColumnOption::Generated {
                    generated_as,
                    generation_expr: None,
                    sequence_options,
                    ..
                } => {
                    column.nullable = false;
                    column.identity = Some(identity(generated_as));
                    let options = read_options(sequence_options.as_deref().unwrap_or_default())?;
                    column.sequence = Some(self.owned_sequence(table, &column, &options)?);
                }
                ast::ColumnOption::Generated { generation_expr: Some(expression), .. } => {
                    column.generated = Some(written(expression));
                }
                ast::ColumnOption::Collation(collation) => collation::require_known(collation)?,
                other => return Err(not_supported(format!("column option {other}"))),
            }
        }
        if column.generated.is_some() && (column.default.is_some() || column.sequence.is_some()) {
            let what = if column.identity.is_some() { "identity" } else { "default" };
            let message = format!(
                "both {what} and generation expression specified for column \"{name}\" of table \"{}\"",
                table.name.name
            );
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        if let Some(domain) = self.catalog().domain_of(&definition.data_type)?.cloned() {
            self.give_domain(table, &mut column, &domain)?;
        }
        // Behind those that users see are those that they do not.
        let end = table.columns.iter().position(|column| column.is_hidden).unwrap_or(table.columns.len());
        table.columns.insert(end, column);
        for (given, constraint) in constraints {
            match constraint {
                ColumnConstraint::Primary => self.add_primary_key(table, given, vec![name.clone()])?,
                ColumnConstraint::Unique(deferral) => {
                    self.add_unique(table, given, vec![name.clone()], Some(deferral))?;
                }
                ColumnConstraint::Check(condition) => add_check(table, given, &condition)?,
                ColumnConstraint::Foreign(key) => self.add_foreign_key(table, &key).await?,
            }
        }
        Ok(())
    }

    pub(super) fn set_default(&mut self, column: &mut Column, expression: &ast::Expr) -> Result<()> {
        column.sequence = None;
        column.default = None;
        let asked = ast::visit_expressions(expression, |part| match part {
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                ControlFlow::Break("subquery")
            }
            ast::Expr::Identifier(name) if !is_bare_function(name) => ControlFlow::Break("column reference"),
            _ => ControlFlow::Continue(()),
        });
        if let ControlFlow::Break(what) = asked {
            let message = format!("cannot use {what} in DEFAULT expression");
            return Err(Error::new(SqlState::NOT_SUPPORTED, message));
        }
        if let Some(name) = nextval_of(expression) {
            // The default of a serial column, as dumps write it.
            column.sequence = Some(self.catalog().sequence_of_text(&name)?.name.clone());
        } else if !matches!(expression, ast::Expr::Value(value) if value.value == ast::Value::Null) {
            column.default = Some(written(expression));
        }
        Ok(())
    }

    /// A sequence that belongs to a column.
    pub(super) fn owned_sequence(
        &mut self,
        table: &Table,
        column: &Column,
        options: &SequenceOptions,
    ) -> Result<ObjectName> {
        if !matches!(column.sql_type, SqlType::SmallInt | SqlType::Int | SqlType::BigInt) {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER,
                "identity column type must be smallint, integer, or bigint",
            ));
        }
        let catalog = self.catalog();
        let name = match &options.name {
            Some(name) => catalog.name_for_new(name, table.is_temporary())?,
            None => {
                let base = format!("{}_{}_seq", table.name.name, column.name);
                let name = free_name(&catalog, &table.name.schema, &[], &base);
                ObjectName { schema: table.name.schema.clone(), name }
            }
        };
        if catalog.relation_named(&name).is_some() {
            return Err(super::exists(&name.name));
        }
        let mut sequence =
            super::sequence::sequence_of(self.database().new_oid(), name.clone(), &column.sql_type);
        super::sequence::adjust(&mut sequence, options, true)?;
        sequence.owner = Some((table.name.clone(), column.name.clone()));
        self.record(Change::from(Object::Sequence(sequence)), table.is_temporary());
        Ok(name)
    }

    /// Adds a constraint of the table.
    pub(super) async fn add_constraint(
        &mut self,
        table: &mut Table,
        constraint: &ast::TableConstraint,
    ) -> Result<()> {
        match constraint {
            ast::TableConstraint::PrimaryKey(key) => {
                self.add_primary_key(table, key.name.as_ref().map(folded), key_columns(&key.columns)?)
            }
            ast::TableConstraint::Unique(key) => {
                if key.nulls_distinct == ast::NullsDistinctOption::NotDistinct {
                    return Err(not_supported("UNIQUE NULLS NOT DISTINCT"));
                }
                let (name, deferral) =
                    (key.name.as_ref().map(folded), deferral(key.characteristics.as_ref())?);
                self.add_unique(table, name, key_columns(&key.columns)?, Some(deferral))
            }
            ast::TableConstraint::ForeignKey(key) => self.add_foreign_key(table, key).await,
            ast::TableConstraint::Check(check) => {
                add_check(table, check.name.as_ref().map(folded), &check.expr)
            }
            other => Err(not_supported(format!("constraint {other}"))),
        }
    }

    pub(super) fn add_primary_key(
        &mut self,
        table: &mut Table,
        name: Option<String>,
        columns: Vec<String>,
    ) -> Result<()> {
        if table.primary_key.is_some() {
            return Err(invalid(format!(
                "multiple primary keys for table \"{}\" are not allowed",
                table.name.name
            )));
        }
        for column in &columns {
            match table.columns.iter_mut().find(|one| one.name == *column) {
                Some(found) => found.nullable = false,
                None => return Err(key_without(column)),
            }
        }
        refuse_unordered(table, &columns)?;
        let name = self.key_name(table, name, &format!("{}_pkey", table.name.name))?;
        table.primary_key = Some(Key::of(self.database().new_oid(), name, columns, true));
        Ok(())
    }

    /// Adds a unique index, or a unique constraint if it is said when that is checked.
    pub(super) fn add_unique(
        &mut self,
        table: &mut Table,
        name: Option<String>,
        columns: Vec<String>,
        constraint: Option<Deferral>,
    ) -> Result<()> {
        if let Some(column) = columns.iter().find(|column| table.column(column).is_none()) {
            return Err(key_without(column));
        }
        refuse_unordered(table, &columns)?;
        let end = if constraint.is_some() { "key" } else { "idx" };
        let name = self.key_name(table, name, &format!("{}_{}_{end}", table.name.name, columns.join("_")))?;
        let oid = self.database().new_oid();
        let deferral = constraint.unwrap_or_default();
        let key = Key { deferral, ..Key::of(oid, name, columns, constraint.is_some()) };
        if deferral == Deferral::Never { &mut table.unique } else { &mut table.indexes }.push(key);
        Ok(())
    }

    /// The name of a key that is new: the one given, if it is free, or one made.
    pub(super) fn key_name(&mut self, table: &Table, given: Option<String>, base: &str) -> Result<String> {
        let catalog = self.catalog();
        let own: Vec<&str> = table.keys().map(|key| key.name.as_str()).collect();
        let Some(given) = given else { return Ok(free_name(&catalog, &table.name.schema, &own, base)) };
        let full = ObjectName { schema: table.name.schema.clone(), name: given.clone() };
        if own.contains(&given.as_str()) || catalog.relation_named(&full).is_some() {
            return Err(super::exists(&given));
        }
        Ok(given)
    }

    pub(super) async fn add_foreign_key(
        &mut self,
        table: &mut Table,
        key: &ast::ForeignKeyConstraint,
    ) -> Result<()> {
        if matches!(
            key.match_kind,
            Some(ast::ConstraintReferenceMatchKind::Full | ast::ConstraintReferenceMatchKind::Partial)
        ) && key.columns.len() > 1
        {
            return Err(not_supported("MATCH FULL and MATCH PARTIAL"));
        }
        let columns: Vec<String> = key.columns.iter().map(folded).collect();
        if let Some(column) = columns.iter().find(|column| table.column(column).is_none()) {
            return Err(Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" referenced in foreign key constraint does not exist"),
            ));
        }
        let parent = self.referenced_table(table, &key.foreign_table).await?;
        let parent_columns: Vec<String> = match (key.referred_columns.as_slice(), &parent.primary_key) {
            ([], Some(primary)) => primary.columns.clone(),
            ([], None) => {
                return Err(Error::new(
                    SqlState(*b"42704"),
                    format!("there is no primary key for referenced table \"{}\"", parent.name.name),
                ));
            }
            (given, _) => given.iter().map(folded).collect(),
        };
        if let Some(column) = parent_columns.iter().find(|column| parent.column(column).is_none()) {
            return Err(Error::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{column}\" referenced in foreign key constraint does not exist"),
            ));
        }
        if parent_columns.len() != columns.len() {
            return Err(Error::new(
                SqlState(*b"42830"),
                "number of referencing and referenced columns for foreign key disagree",
            ));
        }
        let same_columns = |key: &Key| {
            key.columns.len() == parent_columns.len()
                && key.columns.iter().all(|column| parent_columns.contains(column))
        };
        if !parent.primary_key.iter().chain(&parent.unique).any(same_columns) {
            if parent.late_keys().any(same_columns) {
                let of = &parent.name.name;
                let message =
                    format!("cannot use a deferrable unique constraint for referenced table \"{of}\"");
                return Err(Error::new(SqlState(*b"55000"), message));
            }
            return Err(Error::new(
                SqlState(*b"42830"),
                format!(
                    "there is no unique constraint matching given keys for referenced table \"{}\"",
                    parent.name.name
                ),
            ));
        }
        let base = format!("{}_{}_fkey", table.name.name, columns.join("_"));
        let called = key.name.as_ref().map_or_else(|| base.clone(), folded);
        refuse_incomparable(&called, (table, &columns), (&parent, &parent_columns))?;
        let name = key.name.as_ref().map_or_else(|| free_constraint(table, &base), folded);
        refuse_taken(table, &name)?;
        // Changes of the other side look for rows here by these columns.
        if !table.keys().any(|key| key.columns.starts_with(&columns)) {
            let name = self.key_name(table, None, &format!("{name}_idx"))?;
            let oid = self.database().new_oid();
            let key = Key::of(oid, name, columns.clone(), false);
            table.indexes.push(Key { is_hidden: true, ..key });
        }
        table.foreign_keys.push(ForeignKey {
            name,
            columns,
            parent: parent.name.clone(),
            parent_columns,
            on_delete: action(key.on_delete),
            on_update: action(key.on_update),
            deferral: deferral(key.characteristics.as_ref())?,
        });
        Ok(())
    }

    /// The table that a foreign key of `table` refers to by `name`: `table` itself, as far as it is built, or another,
    /// which is locked so that it stays.
    async fn referenced_table(&mut self, table: &Table, name: &ast::ObjectName) -> Result<Table> {
        let catalog = self.catalog();
        let is_self = catalog::parts(name)
            .map(|(schema, referenced)| {
                referenced == table.name.name
                    && schema.is_none_or(|schema| schema == table.name.schema)
                    && catalog.find_table(name).ok().flatten().is_none_or(|found| found.oid == table.oid)
            })
            .unwrap_or_default();
        if is_self {
            return Ok(table.clone());
        }
        let found = catalog.table(name)?.clone();
        if found.materialized.is_some() {
            let message = format!("referenced relation \"{}\" is not a table", found.name.name);
            return Err(Error::new(SqlState(*b"42809"), message));
        }
        catalog.require(&Relation::Table(&found), Privilege::References)?;
        self.lock_all(&[LockKey::Relation(found.oid)], LockMode::AccessShare).await?;
        Ok((*found).clone())
    }
}

/// When a constraint is checked, by what stands behind it.
fn deferral(characteristics: Option<&ast::ConstraintCharacteristics>) -> Result<Deferral> {
    let Some(said) = characteristics else { return Ok(Deferral::Never) };
    let is_deferred = said.initially == Some(ast::DeferrableInitial::Deferred);
    match (said.deferrable, is_deferred) {
        (Some(false), true) => Err(Error::new(
            SqlState::SYNTAX_ERROR,
            "constraint declared INITIALLY DEFERRED must be DEFERRABLE",
        )),
        (_, true) => Ok(Deferral::InitiallyDeferred),
        (Some(true), false) => Ok(Deferral::InitiallyImmediate),
        (_, false) => Ok(Deferral::Never),
    }
}

enum ColumnConstraint {
    Primary,
    Unique(Deferral),
    Check(Box<ast::Expr>),
    Foreign(Box<ast::ForeignKeyConstraint>),
}

/// The options of an identity column's sequence, as sqlparser has them.
pub(super) fn read_options(options: &[ast::SequenceOptions]) -> Result<SequenceOptions> {
    let text = options.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    fabius_sql_syntax::definition::sequence_options(&mut Tokens::of(&text)?)
}

/// How an identity column is generated.
pub(super) fn identity(generated: &ast::GeneratedAs) -> Identity {
    match generated {
        ast::GeneratedAs::Always | ast::GeneratedAs::ExpStored => Identity::Always,
        ast::GeneratedAs::ByDefault => Identity::ByDefault,
    }
}

/// `nextval('name'::regclass)`: the name.
fn nextval_of(expression: &ast::Expr) -> Option<String> {
    let ast::Expr::Function(call) = expression else { return None };
    if !call.name.0.last()?.as_ident()?.value.eq_ignore_ascii_case("nextval") {
        return None;
    }
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument))] = list.args.as_slice() else {
        return None;
    };
    let inner = if let ast::Expr::Cast { expr, .. } = argument { expr } else { argument };
    match inner {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn key_without(column: &str) -> Error {
    Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{column}\" named in key does not exist"))
}

/// What is stored as its text has no order there.
pub(super) fn refuse_unordered(table: &Table, columns: &[String]) -> Result<()> {
    let mut all = columns.iter().filter_map(|name| table.column(name));
    match all.find(|column| column.sql_type.is_kept_as_text()) {
        Some(column) => Err(not_supported(format!("a key on a column of type {}", column.sql_type))),
        None => Ok(()),
    }
}

fn refuse_twice(table: &Table) -> Result<()> {
    for (at, column) in table.columns.iter().enumerate() {
        if table.columns[..at].iter().any(|earlier| earlier.name == column.name) {
            return Err(Error::new(
                SqlState(*b"42701"),
                format!("column \"{}\" specified more than once", column.name),
            ));
        }
    }
    Ok(())
}

fn constraints(table: &Table) -> impl Iterator<Item = &str> {
    let checks = table.own_checks().map(|check| check.name.as_str());
    checks
        .chain(table.foreign_keys.iter().map(|key| key.name.as_str()))
        .chain(table.keys().filter(|key| key.is_constraint).map(|key| key.name.as_str()))
}

/// A name that no constraint of the table has.
fn free_constraint(table: &Table, base: &str) -> String {
    let taken: HashSet<&str> = constraints(table).collect();
    let numbered = (1..).map(|number| format!("{base}{number}"));
    let mut names = std::iter::once(base.to_string()).chain(numbered);
    names.find(|name| !taken.contains(name.as_str())).unwrap_or_default()
}

fn refuse_taken(table: &Table, name: &str) -> Result<()> {
    if constraints(table).any(|taken| taken == name) {
        return Err(Error::new(
            SqlState::DUPLICATE_OBJECT,
            format!("constraint \"{name}\" for relation \"{}\" already exists", table.name.name),
        ));
    }
    Ok(())
}

/// Refuses a reference whose columns cannot be compared with those that they refer to.
///
/// # Errors
/// `42804`
pub(super) fn refuse_incomparable(
    name: &str,
    (table, columns): (&Table, &[String]),
    (parent, parent_columns): (&Table, &[String]),
) -> Result<()> {
    for (own, other) in columns.iter().zip(parent_columns) {
        let Some((own, other)) = table.column(own).zip(parent.column(other)) else { continue };
        if !bind::compares(&own.sql_type, &other.sql_type) {
            let message = format!("foreign key constraint \"{name}\" cannot be implemented");
            let (own, other) = (&own.sql_type, &other.sql_type);
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message)
                .with_detail(format!("Key columns are of incompatible types: {own} and {other}.")));
        }
    }
    Ok(())
}

/// Adds a condition for rows. One without a name is called after the table, and after its column if it mentions one
/// alone.
fn add_check(table: &mut Table, name: Option<String>, condition: &ast::Expr) -> Result<()> {
    let name = name.unwrap_or_else(|| {
        let columns = mentioned(condition);
        let mut columns = columns.iter();
        let base = match (columns.next(), columns.next()) {
            (Some(column), None) => format!("{}_{column}_check", table.name.name),
            _ => format!("{}_check", table.name.name),
        };
        free_constraint(table, &base)
    });
    refuse_taken(table, &name)?;
    table.checks.push(Check { name, condition: written(condition), domain: None });
    Ok(())
}

/// The columns that a condition for rows mentions.
fn mentioned(condition: &ast::Expr) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    let _ = ast::visit_expressions(condition, |part| {
        match part {
            ast::Expr::Identifier(name) if !is_bare_function(name) => {
                columns.insert(folded(name));
            }
            ast::Expr::CompoundIdentifier(parts) => columns.extend(parts.last().map(folded)),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    columns
}
