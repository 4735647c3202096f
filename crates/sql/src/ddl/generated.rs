//! Generated columns: what their expressions may say, and what depends on them.

use super::not_supported;
use crate::connection::Connection;
use fabius_sql_meaning::catalog::{Column, Table, folded};
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::{quoted, quoted_object};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, AlterColumnOperation as Change};
use std::ops::ControlFlow;

/// Functions whose values do not follow from their arguments.
const VOLATILE: [&str; 22] = [
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "timeofday",
    "random",
    "gen_random_uuid",
    "uuid_generate_v4",
    "nextval",
    "currval",
    "lastval",
    "setval",
    "current_user",
    "session_user",
    "current_setting",
    "txid_current",
    "pg_backend_pid",
];

/// Refuses expressions that a generated column cannot have.
///
/// # Errors
/// `42P17`, `0A000`
pub(super) fn verify(table: &Table) -> Result<()> {
    for column in &table.columns {
        let Some(text) = &column.generated else { continue };
        let expression = Tokens::of(text)?.read(|parser| parser.parse_expr())?;
        let outcome =
            ast::visit_expressions(&expression, |part| match wrong(table, part, column.is_hidden) {
                None => ControlFlow::Continue(()),
                Some(error) => ControlFlow::Break(error),
            });
        if let ControlFlow::Break(error) = outcome {
            return Err(error);
        }
    }
    Ok(())
}

fn wrong(table: &Table, part: &ast::Expr, is_hidden: bool) -> Option<Error> {
    match part {
        ast::Expr::Subquery(_) | ast::Expr::InSubquery { .. } | ast::Expr::Exists { .. } => {
            let message = "cannot use subquery in column generation expression";
            Some(Error::new(SqlState::NOT_SUPPORTED, message))
        }
        ast::Expr::Function(call) => {
            let name = call.name.0.last().and_then(|part| part.as_ident()).map(folded)?;
            let is_volatile = VOLATILE.contains(&name.as_str());
            let message = match is_hidden {
                true => "functions in index expression must be marked IMMUTABLE",
                false => "generation expression is not immutable",
            };
            is_volatile.then(|| Error::new(SqlState(*b"42P17"), message))
        }
        ast::Expr::Identifier(name) => {
            let name = folded(name);
            table.column(&name)?.generated.as_ref()?;
            let message = format!("cannot use generated column \"{name}\" in column generation expression");
            let detail = "A generated column cannot reference another generated column.";
            Some(Error::new(SqlState(*b"42P17"), message).with_detail(detail))
        }
        _ => None,
    }
}

/// The generated columns whose expressions name a column.
pub(super) fn users<'t>(table: &'t Table, name: &'t str) -> impl Iterator<Item = &'t Column> {
    let uses = move |column: &&Column| column.generated.as_ref().is_some_and(|text| mentions(text, name));
    table.columns.iter().filter(uses)
}

/// Refuses changes of a column that what is generated does not survive.
///
/// # Errors
/// `42601`, `0A000`
pub(super) fn refuse_change(table: &Table, column: &Column, change: &Change) -> Result<()> {
    let is_generated = column.generated.is_some();
    match change {
        Change::SetDefault { .. } | Change::DropDefault | Change::AddGenerated { .. } if is_generated => {
            let (name, relation) = (&column.name, &table.name.name);
            let message = format!("column \"{name}\" of relation \"{relation}\" is a generated column");
            Err(Error::new(SqlState::SYNTAX_ERROR, message))
        }
        Change::SetDataType { .. } if is_generated => {
            Err(not_supported("changing the type of a generated column"))
        }
        Change::SetDataType { .. } => match users(table, &column.name).next() {
            None => Ok(()),
            Some(user) if user.is_hidden => {
                let keys = table.unique.iter();
                let index = keys.filter(|key| key.columns.contains(&user.name)).map(|key| key.name.as_str());
                let index = index.collect::<Vec<_>>().join(", ");
                Err(not_supported(format!(
                    "altering the type of a column that the index \"{index}\" computes with,"
                ))
                .with_hint("drop the index first, and make it again"))
            }
            Some(user) => {
                let message = "cannot alter type of a column used by a generated column";
                let detail =
                    format!("Column \"{}\" is used by generated column \"{}\".", column.name, user.name);
                Err(Error::new(SqlState::NOT_SUPPORTED, message).with_detail(detail))
            }
        },
        _ => Ok(()),
    }
}

impl Connection {
    /// Gives rows that are there the values of generated columns that are new.
    pub(super) async fn fill_generated(&mut self, before: &Table, after: &Table) -> Result<()> {
        let had = |column: &Column| {
            before.columns.iter().any(|old| old.generated.is_some() && old.name == column.name)
        };
        let is_new = |column: &&Column| column.generated.is_some() && !had(column);
        let set =
            after.columns.iter().filter(is_new).map(|column| format!("{} = DEFAULT", quoted(&column.name)));
        let set: Vec<String> = set.collect();
        if set.is_empty() {
            return Ok(());
        }
        self.try_definitions(after).await?;
        let text = format!("UPDATE {} SET {}", quoted_object(&after.name), set.join(", "));
        if after.materialized.is_none() {
            return Box::pin(self.write_aside(&text)).await;
        }
        self.put_table(Table { materialized: None, ..after.clone() });
        Box::pin(self.write_aside(&text)).await?;
        self.put_table(after.clone());
        Ok(())
    }
}

/// Whether SQL mentions a column by its name.
pub(super) fn mentions(sql: &str, name: &str) -> bool {
    let Ok(tokens) = Tokens::of(sql) else { return false };
    (0..tokens.len()).any(|at| match tokens.token(at) {
        sqlparser::tokenizer::Token::Word(word) if word.quote_style.is_some() => word.value == name,
        sqlparser::tokenizer::Token::Word(word) => word.value.to_lowercase() == name,
        _ => false,
    })
}
