//! `SKIP LOCKED`: rows that somebody else has locked are passed over.
//!
//! Whoever skips rows is told what the rows are that it gets, not that there are none before them. So candidates are
//! looked at without being held, and each is then asked for by its key, without waiting:
//!
//! ```text
//! SELECT id, work FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
//!   1. SELECT jobs.id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 16             forgotten once it has answered
//!   2. SELECT id, work FROM jobs WHERE (state = 'new') AND jobs.id = $1 FOR UPDATE NOWAIT
//!      of one after another, until as many are there as are wanted: one that is locked, or is not so any more, is left
//! ```
//!
//! Within another statement, such queries run first, and the statement has their rows in their places. By itself, a
//! statement that is one program needs none of this as long as nobody has locked what it wants: it finds its rows and
//! changes them at once. So it is tried as it is, and taken apart only if it had to wait.
//!
//! | module | concept |
//! |---|---|
//! | `choice` | a query that skips |
//! | `filling` | queries that skip within a statement |

mod choice;
mod filling;

use super::plan::Given;
use super::plan::{Body, Choice, How, Plan, SkipLocked};
use super::result::rows_response;
use super::{Connection, Response};
use fabius::Database;
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::written::written;
use fabius_value::{Error, Result, SqlState, Value};
use filling::{Found, filled, skips};
pub(super) use filling::{has_skips, waiting};
use futures::TryStreamExt;
use sqlparser::ast;
use std::sync::Arc;

fn not_supported(what: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported"))
}

impl Plan {
    /// How a statement with `SKIP LOCKED` runs.
    pub(super) fn of_skip_locked(
        database: &Database,
        catalog: &Arc<Catalog>,
        statement: &ast::Statement,
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let plain = waiting(statement);
        let text = written(&plain);
        let direct = Plan::of(database, catalog, &plain, (&text, None), given, session)?;
        let how = match statement {
            ast::Statement::Query(query) if skips(query) => {
                How::Query(Box::new(Choice::of(catalog, query, &direct.parameters)?))
            }
            _ => {
                let (_, first) = filled(statement, &[])?;
                if let Some(query) = first {
                    let query = ast::Statement::Query(Box::new(query));
                    let text = written(&query);
                    let alone =
                        Plan::of(database, catalog, &query, (&text, None), &direct.parameters, session);
                    alone.map_err(|error| match error.state() {
                        SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE => {
                            not_supported("SKIP LOCKED in a query that refers to the statement around it")
                        }
                        _ => error,
                    })?;
                }
                How::Within(Box::new(statement.clone()))
            }
        };
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters: direct.parameters.clone(),
            columns: direct.columns.clone(),
            tables: direct.tables.clone(),
            names: direct.names.clone(),
            writes: direct.writes,
            body: Body::SkipLocked(Box::new(SkipLocked { direct, how })),
        }))
    }
}

impl Connection {
    /// Runs a statement with `SKIP LOCKED`.
    pub(super) async fn perform_skip_locked(
        &mut self,
        catalog: &Arc<Catalog>,
        plan: &SkipLocked,
        given: Given<'_>,
    ) -> Result<Response> {
        let is_alone = !self.is_in_transaction();
        if is_alone && matches!((&plan.how, &plan.direct.body), (How::Within(_), Body::Program(_))) {
            self.manner.is_impatient = true;
            let outcome = Box::pin(self.perform(catalog, &plan.direct, given)).await;
            self.manner.is_impatient = false;
            match outcome {
                Err(error) if error.state() == SqlState::LOCK_NOT_AVAILABLE => {}
                outcome => return outcome,
            }
        }
        let is_alone = self.begin_alone();
        let outcome = match &plan.how {
            How::Query(choice) => self
                .choose(choice, given.parameters)
                .await
                .map(|rows| rows_response(plan.direct.columns.clone().unwrap_or_default(), rows, "SELECT")),
            How::Within(statement) => self.perform_filled(statement, plan, given.parameters).await,
        };
        self.end_alone(is_alone, outcome).await
    }

    /// Runs the queries that skip, then the statement with their rows.
    async fn perform_filled(
        &mut self,
        statement: &ast::Statement,
        plan: &SkipLocked,
        parameters: &[Value],
    ) -> Result<Response> {
        let types = &plan.direct.parameters;
        let mut found: Vec<Found> = Vec::new();
        loop {
            let (statement, next) = filled(statement, &found)?;
            let text = next.as_ref().map_or_else(|| written(&statement), written);
            let prepared = Box::pin(self.prepare(&text, types)).await?;
            let count = prepared.parameters.len().min(parameters.len());
            let response = Box::pin(self.answer(&prepared, &parameters[..count])).await?;
            let is_last = next.is_none();
            match response {
                Response::Rows { columns, rows, tag } => {
                    let rows: Vec<Vec<Value>> = rows.try_collect().await?;
                    if is_last {
                        return Ok(rows_response(columns, rows, tag));
                    }
                    found.push((columns, rows));
                }
                other => return Ok(other),
            }
        }
    }
}
