//! What concerns the session alone: settings, prepared statements by SQL, table locks, maintenance.

use super::cursor::Cursors;
use super::notify::ListenChange;
use super::prepared::Prepared;
use super::session::Numbers;
use super::session::Session;
use super::{Connection, Response};
use crate::lock::{LockKey, LockMode, Patience};
use fabius_sql_meaning::catalog;
use fabius_sql_meaning::catalog::role::CHECKPOINT;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::pg_catalog;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit};
use fabius_sql_syntax::Command;
use fabius_sql_syntax::command::{Characteristics, Discard};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::ops::Deref;
use std::sync::Arc;

impl Connection {
    /// Answers a command that [`Connection::execute`] leaves to this.
    pub(super) async fn session_command(&mut self, command: &Command) -> Result<Response> {
        let tag = match command {
            Command::Set { is_local, name, value } => {
                self.set_now(name, value.as_deref(), *is_local)?;
                "SET"
            }
            Command::SetTransaction(characteristics) => {
                self.characterize(characteristics)?;
                "SET"
            }
            Command::SetCharacteristics(characteristics) => {
                self.session.set_characteristics(characteristics)?;
                "SET"
            }
            Command::Reset(Some(name)) => {
                self.set_now(name, None, false)?;
                "RESET"
            }
            Command::Reset(None) => {
                self.session.settings.reset_all();
                self.session.forget_catalog();
                "RESET"
            }
            Command::Discard(what) => self.discard(*what).await?,
            Command::Listen(channel) => {
                self.change_listening(ListenChange::Listen(channel.clone()))?;
                "LISTEN"
            }
            Command::Unlisten(channel) => {
                let one = channel.clone().map(ListenChange::Unlisten);
                self.change_listening(one.unwrap_or(ListenChange::UnlistenAll))?;
                "UNLISTEN"
            }
            Command::Notify { channel, payload } => {
                self.notify(channel, payload)?;
                "NOTIFY"
            }
            Command::SetConstraints { names, is_deferred } => {
                Box::pin(self.set_constraints(names.as_deref(), *is_deferred)).await?;
                "SET CONSTRAINTS"
            }
            Command::Deallocate(Some(name)) => {
                self.session.prepared_named(name)?;
                self.session.prepared.remove(name);
                "DEALLOCATE"
            }
            Command::Deallocate(None) => {
                self.session.prepared.clear();
                "DEALLOCATE ALL"
            }
            Command::Lock { tables, mode, no_wait } => {
                self.lock_tables(tables, *mode, *no_wait).await?;
                "LOCK TABLE"
            }
            Command::Maintenance(tag, tables) => {
                if *tag == "VACUUM" && self.transaction.is_block() {
                    return Err(Error::new(
                        SqlState(*b"25001"),
                        "VACUUM cannot run inside a transaction block",
                    ));
                }
                let catalog = self.catalog();
                for name in tables {
                    let (schema, short) = catalog::parts(name)?;
                    let is_there = catalog.relation(name)?.is_some()
                        || pg_catalog::relation(schema.as_deref(), &short).is_some();
                    if !is_there {
                        return Err(catalog.missing("relation", name));
                    }
                }
                tag
            }
            Command::Checkpoint => {
                let (role, roles) = (self.current_role(), self.roles());
                if !roles.is_member(role, CHECKPOINT) {
                    let message = "must be superuser or have privileges of pg_checkpoint to do CHECKPOINT";
                    return Err(Error::new(SqlState(*b"42501"), message));
                }
                let database = self.database.database().clone();
                let taken = tokio::task::spawn_blocking(move || database.checkpoint()).await;
                match taken {
                    // A database in memory has nothing to write.
                    Ok(Err(error)) if error.state() != SqlState::NOT_SUPPORTED => return Err(error),
                    _ => "CHECKPOINT",
                }
            }
            _ => return Err(Error::new(SqlState::NOT_SUPPORTED, "this statement is not supported")),
        };
        Ok(Response::Done { tag: tag.to_string() })
    }

    /// Sets a setting, and what follows from it.
    pub(super) fn set_now(&mut self, name: &str, value: Option<&str>, is_local: bool) -> Result<()> {
        if is_local && !self.transaction.is_block() {
            self.session.warn(b"25P01", "SET LOCAL can only be used in transaction blocks");
            if self.transaction.is_idle() {
                return Ok(());
            }
        }
        match (name.to_lowercase().as_str(), value) {
            ("fabius.as_of", Some(value)) => self.session.check_moment(value)?,
            ("transaction_isolation" | "transaction_read_only" | "transaction_deferrable", Some(value)) => {
                let on = matches!(value.to_lowercase().as_str(), "on" | "true" | "yes" | "1");
                let levels = ["serializable", "repeatable read", "read committed", "read uncommitted"];
                let characteristics = match name.to_lowercase().as_str() {
                    "transaction_read_only" => {
                        Characteristics { is_read_only: Some(on), ..Default::default() }
                    }
                    "transaction_deferrable" => {
                        Characteristics { is_deferrable: Some(on), ..Default::default() }
                    }
                    _ => Characteristics {
                        isolation: levels.into_iter().find(|level| *level == value.to_lowercase()),
                        ..Default::default()
                    },
                };
                return self.characterize(&characteristics);
            }
            ("role", Some("none")) => {}
            (setting @ ("role" | "session_authorization"), Some(value)) => {
                self.check_becoming(setting, value)?;
            }
            _ => {}
        }
        self.session.settings.set(name, value, is_local)?;
        if name.eq_ignore_ascii_case("session_authorization") {
            self.session.settings.set("role", None, is_local)?;
        }
        self.session.forget_catalog();
        Ok(())
    }

    async fn discard(&mut self, what: Discard) -> Result<&'static str> {
        if what == Discard::All && self.transaction.is_block() {
            return Err(Error::new(SqlState(*b"25001"), "DISCARD ALL cannot run inside a transaction block"));
        }
        if matches!(what, Discard::All | Discard::Sequences) {
            self.session.numbers = Numbers::default();
        }
        if matches!(what, Discard::All | Discard::Temporary) {
            for change in std::mem::take(&mut self.session.temporary) {
                if let Some(Object::Table(table)) = change.object {
                    self.database.drop_storage(&table.storage)?;
                }
            }
            self.session.forget_catalog();
        }
        if what == Discard::All {
            self.unlisten_all();
            self.session.prepared.clear();
            self.session.cursors = Cursors::default();
            self.session.facts.advisory.lock().give_back_all(
                &self.database.locks,
                self.session.process,
                false,
            );
            self.session.settings.reset_all();
            self.set_now("session_authorization", None, false)?;
        }
        Ok(match what {
            Discard::All => "DISCARD ALL",
            Discard::Plans => "DISCARD PLANS",
            Discard::Sequences => "DISCARD SEQUENCES",
            Discard::Temporary => "DISCARD TEMP",
        })
    }

    /// `PREPARE`, and what was written for it.
    pub(super) async fn prepare_named(
        &mut self,
        name: &str,
        types: &[SqlType],
        text: &str,
        written: &str,
    ) -> Result<()> {
        if self.session.prepared.contains_key(name) {
            return Err(Error::new(
                SqlState(*b"42P05"),
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let prepared = Box::pin(self.prepare(text, types)).await?;
        let listed = self.list_statement(name, written, &prepared.parameters, true);
        let kept = self.keep(prepared, Some(listed))?;
        self.session.prepared.insert(name.to_string(), kept);
        Ok(())
    }

    /// `EXECUTE`
    pub(super) async fn execute_named(&mut self, name: &str, arguments: &[ast::Expr]) -> Result<Response> {
        let prepared = self.session.prepared_named(name)?.clone();
        if arguments.len() != prepared.parameters.len() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("wrong number of parameters for prepared statement \"{name}\""),
            )
            .with_detail(format!(
                "Expected {} parameters but got {}.",
                prepared.parameters.len(),
                arguments.len()
            )));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, sql_type) in arguments.iter().zip(&prepared.parameters) {
            values.push(self.evaluate(argument, sql_type).await?);
        }
        Box::pin(self.execute(&prepared, &values)).await
    }

    /// The value of an expression that stands by itself.
    pub(crate) async fn evaluate(&mut self, expression: &ast::Expr, sql_type: &SqlType) -> Result<Value> {
        if let Some(text) = literal(expression) {
            return match text {
                None => Ok(Value::Null),
                Some(text) => text_format::read(&text, sql_type, self.session.settings.style(), Fit::Store),
            };
        }
        let text = format!("SELECT CAST(({expression}) AS {sql_type})");
        let rows = self.query_rows(&text, &[], &[]).await?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next()).unwrap_or_default())
    }

    /// The rows of a statement, all at once.
    pub(crate) async fn query_rows(
        &mut self,
        text: &str,
        types: &[SqlType],
        parameters: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        use futures::TryStreamExt;
        let prepared = Box::pin(self.prepare(text, types)).await?;
        match Box::pin(self.execute(&prepared, parameters)).await? {
            Response::Rows { rows, .. } => rows.try_collect().await,
            _ => Ok(Vec::new()),
        }
    }

    /// `LOCK TABLE`
    async fn lock_tables(&mut self, tables: &[ast::ObjectName], mode: LockMode, no_wait: bool) -> Result<()> {
        if !self.transaction.is_block() {
            return Err(Error::new(SqlState(*b"25P01"), "LOCK TABLE can only be used in transaction blocks"));
        }
        if mode > LockMode::RowExclusive {
            self.need_lead("lock tables so that others wait")?;
            self.refuse_void_locks()?;
        }
        let patience = match no_wait {
            true => Patience::None,
            false => self.session.settings.lock_timeout().map_or(Patience::Unbounded, Patience::For),
        };
        for name in tables {
            let catalog = self.catalog();
            let table = catalog.table(name)?.clone();
            catalog.require_lock(&table, mode)?;
            self.lock(&LockKey::Relation(table.oid), mode, patience).await.map_err(|error| {
                match error.message().starts_with("could not obtain") {
                    true => Error::new(
                        error.state(),
                        format!("could not obtain lock on relation \"{}\"", table.name.name),
                    ),
                    false => error,
                }
            })?;
        }
        Ok(())
    }

    /// A change of the catalog, in the transaction that is open.
    pub(crate) fn record(&mut self, change: Change, is_temporary: bool) {
        self.note_owner(&change, is_temporary);
        if is_temporary {
            self.session.temporary.retain(|earlier| earlier.row != change.row);
            if change.object.is_some() {
                self.session.temporary.push(change);
            }
        } else if let Some(open) = self.transaction.get_mut() {
            open.changes.push(change);
        }
        self.session.forget_catalog();
    }
}

impl Session {
    fn set_characteristics(&mut self, characteristics: &Characteristics) -> Result<()> {
        let switch = |on: bool| if on { "on" } else { "off" };
        if let Some(is_read_only) = characteristics.is_read_only {
            self.settings.set("default_transaction_read_only", Some(switch(is_read_only)), false)?;
        }
        if let Some(isolation) = characteristics.isolation {
            self.settings.set("default_transaction_isolation", Some(isolation), false)?;
        }
        if let Some(is_deferrable) = characteristics.is_deferrable {
            self.settings.set("default_transaction_deferrable", Some(switch(is_deferrable)), false)?;
        }
        Ok(())
    }

    pub(super) fn prepared_named(&self, name: &str) -> Result<&Arc<Prepared>> {
        self.prepared.get(name).map(Deref::deref).ok_or_else(|| {
            Error::new(SqlState(*b"26000"), format!("prepared statement \"{name}\" does not exist"))
        })
    }
}

/// The text of a literal; `Some(None)` for null.
fn literal(expression: &ast::Expr) -> Option<Option<String>> {
    // Others are rounded for whole numbers.
    let is_whole = |digits: &String| digits.chars().all(|c| c.is_ascii_digit());
    match expression {
        ast::Expr::Value(value) => Some(match &value.value {
            ast::Value::Null => None,
            ast::Value::Number(digits, _) if is_whole(digits) => Some(digits.clone()),
            ast::Value::SingleQuotedString(text) | ast::Value::EscapedStringLiteral(text) => {
                Some(text.clone())
            }
            ast::Value::Boolean(value) => Some(value.to_string()),
            _ => return None,
        }),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match &**expr {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(digits, _) if is_whole(digits) => Some(Some(format!("-{digits}"))),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
