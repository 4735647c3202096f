//! The extended protocol: statements made ready, bound to parameters as portals, run for so many rows at a time.
//!
//! ```text
//! Parse --> statement --Bind--> portal --Execute--> rows | suspended | done
//! Sync ends a batch; what comes after an error is passed over until then.
//! ```
//!
//! Statements between two `Sync` are one transaction. One alone needs no transaction around it: it is a call of its
//! own, which cannot fail for a conflict. So at `Execute` we look at what comes next, and the client, which waits for
//! no answer before `Sync` or `Flush`, does not mind.

use super::execution::{Completion, Rows};
use super::values::read_parameters;
use super::{Client, Failure, Outcome};
use crate::wire::backend;
use crate::wire::frontend::{Bind, Execute, Formats, Parse, Target};
use crate::wire::socket::Frame;
use fabius::Held;
use fabius_sql::connection;
use fabius_sql::connection::{KeptStatement, Response, TransactionStatus};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState, Value};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::time::Instant;

/// Statements with a name that a session may have.
const STATEMENTS_MAX: usize = 10_000;
/// Portals that it may have.
const PORTALS_MAX: usize = 1_000;

/// What a session has made ready.
#[derive(Default)]
pub(super) struct Extended {
    statements: HashMap<String, Arc<KeptStatement>>,
    portals: HashMap<String, Portal>,
    batch: Batch,
    /// Whether a transaction was begun around the batch.
    is_enclosed: bool,
    /// How many transactions the session had ended when portals were last looked at.
    ended: u64,
}

/// Where a session is between two `Sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Batch {
    /// Nothing has come.
    #[default]
    Empty,
    /// Messages have come.
    Open,
    /// One of them has failed; others are passed over.
    Failed,
}

/// A statement with its parameters.
struct Portal {
    statement: Arc<KeptStatement>,
    parameters: Vec<Value>,
    /// What it counts as.
    _held: Held,
    formats: Formats,
    progress: Progress,
}

/// How far a portal has come.
enum Progress {
    /// It has not begun.
    Bound,
    /// There may be more rows.
    Suspended(Rows),
    /// It is done; if it gave rows, running it again gives none.
    Done(Option<&'static str>),
}

impl Extended {
    /// Whether no batch is under way: an answer may be awaited.
    pub(super) fn is_quiet(&self) -> bool {
        self.batch == Batch::Empty
    }

    /// Forgets the statement and the portal without a name.
    pub(super) fn forget_unnamed(&mut self) {
        self.statements.remove("");
        self.portals.remove("");
    }

    fn portal(&mut self, name: &str) -> Result<&mut Portal> {
        self.portals
            .get_mut(name)
            .ok_or_else(|| Error::new(SqlState(*b"34000"), format!("portal \"{name}\" does not exist")))
    }

    fn statement(&self, name: &str) -> Result<&Arc<KeptStatement>> {
        self.statements.get(name).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_string(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            Error::new(SqlState(*b"26000"), message)
        })
    }
}

impl Client {
    /// Answers a message of the extended protocol.
    pub(super) async fn extended_message(&mut self, frame: &Frame) -> Outcome {
        if frame.kind == b'S' {
            return self.sync().await;
        }
        if frame.kind == b'H' {
            // After an error too: the client waits for it before it sends `Sync`.
            return self.send_between().await;
        }
        if self.extended.batch == Batch::Failed {
            return Ok(());
        }
        if self.extended.is_quiet() {
            self.session.forget_cancel();
        }
        self.extended.batch = Batch::Open;
        self.forget_ended_portals();
        let done = match frame.kind {
            b'P' => self.parse(frame).await,
            b'B' => self.bind(frame),
            b'D' => self.describe(frame),
            b'E' => self.execute(frame).await,
            _ => self.close(frame),
        };
        match done {
            Err(Failure::Statement(error)) => {
                self.extended.batch = Batch::Failed;
                self.refuse(&error);
                Ok(())
            }
            other => other,
        }
    }

    async fn parse(&mut self, frame: &Frame) -> Outcome {
        let Parse { name, query, types } = Parse::read(&frame.body)?;
        if !name.is_empty() {
            if self.extended.statements.contains_key(name) {
                let message = format!("prepared statement \"{name}\" already exists");
                return Err(Error::new(SqlState(*b"42P05"), message).into());
            }
            if self.extended.statements.len() > STATEMENTS_MAX {
                return Err(Error::new(SqlState::PROGRAM_LIMIT, "too many prepared statements")
                    .with_hint("close those that are not used any more")
                    .into());
            }
        }
        let types = self.sql.parameter_types(&types)?;
        self.refuse_if_cancelled()?;
        let deadline = self.deadline();
        let prepared = self.attend(deadline, async |sql| sql.prepare(query, &types).await).await?;
        // Of those without a name there is one at a time.
        let kept = match name {
            "" => prepared.into(),
            name => {
                let listed = self.sql.list_statement(name, prepared.text(), &prepared.parameters, false);
                self.sql.keep(prepared, Some(listed))?
            }
        };
        self.extended.statements.insert(name.to_string(), Arc::new(kept));
        backend::parse_complete(&mut self.socket.output);
        Ok(())
    }

    fn bind(&mut self, frame: &Frame) -> Outcome {
        let bind = Bind::read(&frame.body)?;
        let statement = self.extended.statement(bind.statement)?.clone();
        let parameters = read_parameters(&bind, &statement.parameters, &self.sql.text_style())?;
        if let (Some(formats), Some(columns)) = (bind.result_formats.count(), self.sql.columns_of(&statement))
            && formats != columns.len()
        {
            let message =
                format!("bind message has {formats} result formats but query has {} columns", columns.len());
            return Err(crate::wire::frontend::violation(message).into());
        }
        let portals = &mut self.extended.portals;
        if !bind.portal.is_empty() && portals.contains_key(bind.portal) {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(Error::new(SqlState(*b"42P03"), message).into());
        }
        if portals.len() > PORTALS_MAX {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "too many portals").into());
        }
        let mut bytes = parameters.iter().map(Value::bytes).sum::<usize>();
        if !bind.portal.is_empty() && !statement.is_counted() {
            bytes += statement.bytes();
        }
        let held = self.sql.hold(if bind.portal.is_empty() { 0 } else { bytes })?;
        let (formats, progress) = (bind.result_formats, Progress::Bound);
        let portal = Portal { statement, parameters, _held: held, formats, progress };
        portals.insert(bind.portal.to_string(), portal);
        backend::bind_complete(&mut self.socket.output);
        Ok(())
    }

    fn describe(&mut self, frame: &Frame) -> Outcome {
        let out = &mut self.socket.output;
        let text = Formats::Text;
        let (prepared, formats) = match Target::read(&frame.body)? {
            Target::Statement(name) => {
                let prepared = self.extended.statement(name)?;
                backend::parameter_description(out, prepared.parameters.iter().map(SqlType::oid));
                (prepared, &text)
            }
            Target::Portal(name) => {
                // A cursor of SQL is a portal too.
                if let (false, Some(columns)) =
                    (self.extended.portals.contains_key(name), self.sql.cursor_columns(name))
                {
                    backend::row_description(out, columns, &text);
                    return Ok(());
                }
                let portal = self.extended.portal(name)?;
                (&portal.statement, &portal.formats)
            }
        };
        match self.sql.columns_of(prepared) {
            Some(columns) => backend::row_description(out, columns, formats),
            None => backend::no_data(out),
        }
        Ok(())
    }

    fn close(&mut self, frame: &Frame) -> Outcome {
        match Target::read(&frame.body)? {
            Target::Statement(name) => drop(self.extended.statements.remove(name)),
            Target::Portal(name) => drop(self.extended.portals.remove(name)),
        }
        backend::close_complete(&mut self.socket.output);
        Ok(())
    }

    async fn execute(&mut self, frame: &Frame) -> Outcome {
        let Execute { portal: name, rows_max } = Execute::read(&frame.body)?;
        let begun = std::time::Instant::now();
        self.refuse_if_cancelled()?;
        let deadline = self.deadline();
        let has_failed = self.sql.status() == TransactionStatus::Failed;
        let portal = self.extended.portal(name)?;
        // A statement that begins says so itself: it may be the one that ends the transaction.
        if has_failed && !matches!(portal.progress, Progress::Bound) {
            return Err(connection::aborted().into());
        }
        let (prepared, formats) = (portal.statement.clone(), portal.formats.clone());
        let mut rows = match std::mem::replace(&mut portal.progress, Progress::Done(None)) {
            Progress::Suspended(rows) => rows,
            Progress::Done(Some(tag)) => {
                portal.progress = Progress::Done(Some(tag));
                self.complete(&Completion::Rows(tag, 0));
                return Ok(());
            }
            Progress::Done(None) => {
                let message = format!("portal \"{name}\" cannot be run");
                return Err(Error::new(SqlState(*b"55000"), message).into());
            }
            Progress::Bound => {
                let parameters = std::mem::take(&mut portal.parameters);
                self.enclose(deadline).await?;
                let response =
                    self.attend(deadline, async |sql| sql.execute(&prepared, &parameters).await).await?;
                match response {
                    Response::Rows { columns, rows, tag } => Rows { columns, rows, tag },
                    other => {
                        let completion = self.give_rest(other, deadline).await?;
                        self.metrics().statement(completion.tag(), begun.elapsed());
                        self.complete(&completion);
                        return Ok(());
                    }
                }
            }
        };
        let most = if rows_max == 0 { u64::MAX } else { rows_max.into() };
        let (count, is_all) = self.give_rows(&mut rows, &formats, most, deadline).await?;
        let tag = rows.tag;
        if is_all {
            self.metrics().statement(tag, begun.elapsed());
            self.complete(&Completion::Rows(tag, count));
        } else {
            backend::portal_suspended(&mut self.socket.output);
        }
        // The portal is gone if the statement was `CLOSE ALL` or the like.
        if let Ok(portal) = self.extended.portal(name) {
            portal.progress = if is_all { Progress::Done(Some(tag)) } else { Progress::Suspended(rows) };
        }
        Ok(())
    }

    /// Sees to it that a statement of several runs in a transaction with them, also after one that has ended it.
    async fn enclose(&mut self, deadline: Option<Instant>) -> Outcome {
        if self.sql.status() != TransactionStatus::Idle {
            return Ok(());
        }
        if self.extended.is_enclosed || !self.is_alone().await? {
            self.extended.is_enclosed = true;
            self.attend(deadline, async |sql| sql.begin_implicit().await).await?;
        }
        Ok(())
    }

    /// Whether `Sync` comes before anything else is run.
    async fn is_alone(&mut self) -> Outcome<bool> {
        let known = |kind| match kind {
            b'S' => Some(true),
            // `Flush` wants an answer before it is known what comes. A client that leaves commits nothing.
            b'E' | b'H' | b'Q' | b'X' => Some(false),
            _ => None,
        };
        let looked = self.socket.look_ahead(known);
        // A client that does not go on holds nobody up but itself; but it has to go when the server does.
        Ok(super::ready::unless_ending(&self.session, looked).await??)
    }

    async fn sync(&mut self) -> Outcome {
        self.end_batch().await?;
        self.after_statements();
        self.ready_for_query();
        Ok(())
    }

    /// Ends the transaction around a batch, if there is one.
    pub(super) async fn end_batch(&mut self) -> Outcome {
        let batch = std::mem::take(&mut self.extended.batch);
        let is_enclosed = std::mem::take(&mut self.extended.is_enclosed);
        // One that a statement alone has begun is left over if the statement was given up.
        if !is_enclosed && !self.sql.is_in_implicit_transaction() {
            return Ok(());
        }
        if is_enclosed && batch == Batch::Open {
            let deadline = self.deadline();
            let ended = match self.refuse_if_cancelled() {
                Ok(()) => self.attend(deadline, async |sql| sql.end_implicit(true).await).await,
                refused => refused,
            };
            match ended {
                Err(Failure::Statement(error)) => self.refuse(&error),
                other => return other,
            }
        }
        self.session.forget_cancel();
        self.attend(None, async |sql| sql.end_implicit(false).await).await
    }

    /// Portals end with their transaction, also in the midst of a batch.
    fn forget_ended_portals(&mut self) {
        let ended = self.sql.transactions_ended();
        if std::mem::replace(&mut self.extended.ended, ended) != ended {
            self.extended.portals.clear();
        }
    }

    /// Portals end where no transaction is open any more.
    pub(super) fn after_statements(&mut self) {
        if self.sql.status() == TransactionStatus::Idle && !self.extended.portals.is_empty() {
            self.extended.portals.clear();
        }
    }
}
