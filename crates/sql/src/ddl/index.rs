//! `CREATE INDEX`.

use super::not_supported;
use super::storage::{Filling, not_unique};
use crate::connection::Connection;
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_meaning::catalog::{Column, IndexLayout, Key, KeyLayout, Table, WrittenKey, folded, parts};
use fabius_sql_meaning::column_name;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::without_modifiers;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::{quoted_object, written};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::ops::ControlFlow;

/// The columns of an index that is not unique; of an expression, those that it is made of: that answers the same.
fn columns_of(keys: &[ast::IndexColumn]) -> Result<Vec<String>> {
    let mut columns: Vec<String> = Vec::new();
    let mut add = |name: &ast::Ident| {
        let name = folded(name);
        if !columns.contains(&name) {
            columns.push(name);
        }
    };
    for key in keys {
        let _ = ast::visit_expressions(&key.column.expr, |part| {
            match part {
                ast::Expr::Identifier(name) => add(name),
                ast::Expr::CompoundIdentifier(names) => names.last().into_iter().for_each(&mut add),
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        });
    }
    if columns.is_empty() {
        return Err(not_supported("an index on an expression without columns"));
    }
    Ok(columns)
}

/// An expression as SQL, with what generated columns are made of in their places.
fn computed_from(table: &Table, expression: &ast::Expr) -> Result<String> {
    let mut expression = expression.clone();
    let replaced = ast::visit_expressions_mut(&mut expression, |part| {
        let ast::Expr::Identifier(name) = &*part else { return ControlFlow::Continue(()) };
        let generated = table.column(&folded(name)).and_then(|column| column.generated.as_ref());
        let Some(generated) = generated else { return ControlFlow::Continue(()) };
        match Tokens::of(generated).and_then(|tokens| tokens.read(|parser| parser.parse_expr())) {
            Ok(made_of) => *part = ast::Expr::Nested(Box::new(made_of)),
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    });
    match replaced {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(written(&expression)),
    }
}

/// What is said of the keys that changes no answer.
fn layout_of(keys: &[ast::IndexColumn]) -> Vec<KeyLayout> {
    let layout = keys.iter().map(|key| KeyLayout {
        is_descending: key.column.options.asc == Some(false),
        nulls_first: key.column.options.nulls_first,
        operator_class: key.operator_class.as_ref().and_then(|class| Some(parts(class).ok()?.1)),
    });
    let layout: Vec<KeyLayout> = layout.collect();
    if layout.iter().all(|one| *one == KeyLayout::default()) { Vec::new() } else { layout }
}

/// Whether a key is a column, not an expression.
fn is_column(key: &ast::IndexColumn) -> bool {
    matches!(key.column.expr, ast::Expr::Identifier(_))
}

/// Takes unique keys out, with the columns that are there for them alone.
pub(super) fn forget_unique(table: &mut Table, goes: impl Fn(&Key) -> bool) {
    let (gone, left) = std::mem::take(&mut table.unique).into_iter().partition(|key| goes(key));
    table.unique = left;
    let of = |column: &Column, keys: &Vec<Key>| keys.iter().any(|key| key.columns.contains(&column.name));
    table.columns.retain(|column| !(column.is_hidden && of(column, &gone)));
}

impl Connection {
    pub(super) async fn create_index(&mut self, create: &ast::CreateIndex) -> Result<String> {
        if let Some(kind) = &create.using {
            // How an index is kept cannot change an answer.
            let name = kind.to_string().to_lowercase();
            if !matches!(name.as_str(), "btree" | "hash" | "brin" | "gin" | "gist" | "spgist") {
                return Err(not_supported(format!("access method \"{name}\"")));
            }
        }
        if create.nulls_distinct == Some(false) {
            return Err(not_supported("UNIQUE NULLS NOT DISTINCT"));
        }
        let before = self.table_to_change(&create.table_name).await?;
        // An index that is not unique answers the same with all rows, and with the columns that its keys are made of.
        let is_computed = create.predicate.is_some() || !create.columns.iter().all(is_column);
        let columns = match create.unique && is_computed {
            true => Vec::new(),
            false => columns_of(&create.columns)?,
        };
        for column in columns.iter().chain(create.include.iter().map(folded).collect::<Vec<_>>().iter()) {
            if before.column(column).is_none() {
                return Err(Error::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{column}\" does not exist"),
                ));
            }
        }
        self.try_index(&before, create).await?;
        let mut after = before.clone();
        let given = match &create.name {
            Some(name) => Some(parts(name)?.1),
            None => None,
        };
        if let Some(given) = &given {
            let name = ObjectName { schema: before.name.schema.clone(), name: given.clone() };
            if !self.claim(&name, create.if_not_exists).await? {
                return Ok("CREATE INDEX".into());
            }
        }
        if create.unique && is_computed {
            self.add_computed(&mut after, given, create).await?;
        } else if create.unique {
            self.add_unique(&mut after, given, columns, None)?;
        } else {
            let base = format!("{}_{}_idx", before.name.name, columns.join("_"));
            let name = self.key_name(&after, given, &base)?;
            let oid = self.database().new_oid();
            after.indexes.push(Key::of(oid, name, columns, false));
        }
        let known = before.keys().map(|key| key.oid).collect::<Vec<_>>();
        for key in after.unique.iter_mut().chain(&mut after.indexes).filter(|key| !known.contains(&key.oid)) {
            // Of expressions that are kept as the columns they are made of, nothing is shown.
            let is_shown = key.columns.len() == create.columns.len();
            let keys = if is_shown { layout_of(&create.columns) } else { Vec::new() };
            let layout = IndexLayout { keys, included: create.include.iter().map(folded).collect() };
            key.layout = (layout != IndexLayout::default()).then(|| Box::new(layout));
        }
        let mut filling = Filling::default();
        let is_new = |column: &&Column| before.column(&column.name).is_none();
        let new = after.columns.iter().filter(is_new).map(|column| (column.name.clone(), Value::Null));
        filling.values.extend(new);
        self.rebuild(&before, &mut after, &filling).await?;
        self.put_table(after.clone());
        if create.unique && is_computed {
            let name = after.unique.last().map(|key| key.name.clone()).unwrap_or_default();
            self.fill_generated(&before, &after).await.map_err(|error| match error.state() {
                SqlState::UNIQUE_VIOLATION => not_unique(&error, &name),
                _ => error,
            })?;
        }
        Ok("CREATE INDEX".into())
    }

    /// A unique index of expressions, or of some rows: it is one of hidden columns, which are null where a row is not
    /// in the index.
    async fn add_computed(
        &mut self,
        table: &mut Table,
        given: Option<String>,
        create: &ast::CreateIndex,
    ) -> Result<()> {
        let oid = self.database().new_oid();
        let predicate = create.predicate.as_ref().map(written);
        let holds = create.predicate.as_ref().map(|predicate| computed_from(table, predicate)).transpose()?;
        let mut columns = Vec::new();
        for (at, key) in create.columns.iter().enumerate() {
            let text = computed_from(table, &key.column.expr)?;
            let generated = match &holds {
                Some(holds) if at == 0 => format!("CASE WHEN {holds} THEN {text} END"),
                _ => text,
            };
            if let (ast::Expr::Identifier(name), true) = (&key.column.expr, at > 0 || predicate.is_none()) {
                columns.push(folded(name));
                continue;
            }
            let name = format!("fabius key {oid} {at}");
            let sql_type = self.type_of_expression(table, &generated).await?;
            columns.push(name.clone());
            table.columns.push(Column {
                generated: Some(generated),
                is_hidden: true,
                ..Column::plain(name, sql_type)
            });
        }
        super::create_table::refuse_unordered(table, &columns)?;
        super::generated::verify(table)?;
        let word = |key: &ast::IndexColumn| column_name::of(&key.column.expr).replace("?column?", "expr");
        let words: Vec<String> = create.columns.iter().map(word).collect();
        let name = self.key_name(table, given, &format!("{}_{}_idx", table.name.name, words.join("_")))?;
        let keys = create.columns.iter().map(|key| written(&key.column.expr)).collect();
        let written = Some(WrittenKey { keys, predicate });
        let unique = Key { written, ..Key::of(oid, name, columns, false) };
        table.unique.push(unique);
        Ok(())
    }

    /// Whether the expressions of an index, and its condition, mean something.
    async fn try_index(&mut self, table: &Table, create: &ast::CreateIndex) -> Result<()> {
        for key in create.columns.iter().filter(|key| !is_column(key)) {
            self.type_of_expression(table, &written(&key.column.expr)).await?;
        }
        let Some(predicate) = &create.predicate else { return Ok(()) };
        let text = format!("SELECT 1 FROM {} WHERE {}", quoted_object(&table.name), written(predicate));
        Box::pin(self.prepare(&text, &[])).await.map(drop)
    }

    /// The type that an expression has over a table's rows.
    async fn type_of_expression(&mut self, table: &Table, text: &str) -> Result<SqlType> {
        let text = format!("SELECT {text} FROM {}", quoted_object(&table.name));
        let prepared = Box::pin(self.prepare(&text, &[])).await?;
        let found = prepared.columns.as_ref().and_then(|columns| columns.first());
        Ok(match found.map(|column| without_modifiers(&column.sql_type)) {
            None | Some(SqlType::Unknown) => SqlType::Text,
            Some(sql_type) => sql_type,
        })
    }
}
