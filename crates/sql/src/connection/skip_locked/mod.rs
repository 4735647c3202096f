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

use super::given_rows;
use super::held_rows::HeldRows;
use super::plan::{Body, Choice, Filled, Given, How, Part, Plan, Rows, SkipLocked};
use super::result::rows_response;
use super::{Connection, Response};
use fabius::Database;
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::{Command, part};
use fabius_value::{Error, Result, SqlState, Value};
use filling::{Instead, filled, skips};
pub(super) use filling::{has_skips, waiting};
use futures::TryStreamExt;
use parking_lot::Mutex;
use sqlparser::ast;
use std::sync::Arc;

fn not_supported(what: &str) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, format!("{what} is not supported"))
}

/// Plans of a statement by the lengths of its lists, at most.
const PLANS_MAX: usize = 64;

/// Plans parts of a statement.
struct Planning<'p> {
    database: &'p Database,
    catalog: &'p Arc<Catalog>,
    text: &'p str,
    session: &'p Arc<dyn SessionFacts>,
}

impl Planning<'_> {
    fn statement(&self, statement: &ast::Statement, types: &[SqlType]) -> Result<Arc<Plan>> {
        Plan::of(self.database, self.catalog, statement, (self.text, None), types, self.session)
    }

    fn query(&self, query: ast::Query, types: &[SqlType]) -> Result<Arc<Plan>> {
        self.statement(&ast::Statement::Query(Box::new(query)), types)
    }

    /// How a statement runs within which queries skip.
    fn filled(&self, statement: &ast::Statement, types: &[SqlType]) -> Result<Filled> {
        let mut queries = Vec::new();
        filled(statement, |query, rows| {
            let plan = self.query(query, types).map_err(|error| match error.state() {
                SqlState::UNDEFINED_COLUMN | SqlState::UNDEFINED_TABLE => {
                    not_supported("SKIP LOCKED in a query that refers to the statement around it")
                }
                _ => error,
            })?;
            let columns = plan.columns.as_ref().map_or(0, Vec::len);
            if rows != Rows::Relation && columns != 1 {
                let message = match rows {
                    Rows::List => "subquery has too many columns",
                    _ => "subquery must return only one column",
                };
                return Err(Error::new(SqlState::SYNTAX_ERROR, message));
            }
            queries.push((Part { plan, number: given_rows::next_number() }, rows));
            Ok(match rows {
                Rows::Relation => Instead::Query(Box::new(part::query("SELECT 1")?)),
                _ => Instead::Values(Vec::new()),
            })
        })?;
        let (statement, text) = (statement.clone(), self.text.to_string());
        Ok(Filled { queries, statement, text, plans: Mutex::default() })
    }
}

impl Filled {
    /// The statement once its queries have found so many rows, which are parameters behind its own; the types of all.
    fn statement(&self, own: &[SqlType], counts: &[usize]) -> Result<(ast::Statement, Vec<SqlType>)> {
        let (mut found, mut types) = (self.queries.iter().zip(counts), own.to_vec());
        let statement = filled(&self.statement, |_, _| {
            let Some(((found, rows), count)) = found.next() else { return Ok(Instead::Values(Vec::new())) };
            let columns = found.plan.columns.as_deref().unwrap_or_default();
            Ok(match rows {
                Rows::Relation => {
                    Instead::Query(Box::new(given_rows::query_of(found.number, columns, 0..columns.len())?))
                }
                Rows::Value | Rows::List => {
                    let first = types.len();
                    let own_type = columns.first().map_or(SqlType::Unknown, |column| column.sql_type.clone());
                    types.extend(std::iter::repeat_n(own_type, *count));
                    Instead::Values((first..types.len()).map(part::parameter).collect())
                }
            })
        })?;
        Ok((statement, types))
    }
}

impl Plan {
    /// How a statement with `SKIP LOCKED` runs.
    pub(super) fn of_skip_locked(
        database: &Database,
        catalog: &Arc<Catalog>,
        (statement, text): (&ast::Statement, &str),
        given: &[SqlType],
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Arc<Plan>> {
        let planning = Planning { database, catalog, text, session };
        let direct = planning.statement(&waiting(statement), given)?;
        let types = &direct.parameters;
        let how = match statement {
            ast::Statement::Query(query) if skips(query) => {
                let plan = |query, types: Vec<SqlType>| planning.query(query, &types);
                How::Query(Box::new(Choice::of(catalog, query, types, &plan)?))
            }
            _ => How::Within(Box::new(planning.filled(statement, types)?)),
        };
        Ok(Arc::new(Plan {
            version: catalog.version,
            parameters: types.clone(),
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
        let is_alone = self.transaction.is_idle();
        if is_alone && matches!((&plan.how, &plan.direct.body), (How::Within(_), Body::Program(_))) {
            self.execution.manner.is_impatient = true;
            let outcome = Box::pin(self.perform(catalog, &plan.direct, given)).await;
            self.execution.manner.is_impatient = false;
            match outcome {
                Err(error) if error.state() == SqlState::LOCK_NOT_AVAILABLE => {}
                outcome => return outcome,
            }
        }
        let is_alone = self.begin_alone();
        let outcome = match &plan.how {
            How::Query(choice) => self
                .choose(catalog, choice, given.parameters)
                .await
                .map(|rows| rows_response(plan.direct.columns.clone().unwrap_or_default(), rows, "SELECT")),
            How::Within(filled) => {
                let before = self.execution.given.clone();
                let outcome = self.perform_filled(catalog, (plan, filled), given.parameters).await;
                self.execution.given = before;
                outcome
            }
        };
        self.end_alone(is_alone, outcome).await
    }

    /// Runs the queries that skip, then the statement with their rows.
    async fn perform_filled(
        &mut self,
        catalog: &Arc<Catalog>,
        (plan, within): (&SkipLocked, &Filled),
        own: &[Value],
    ) -> Result<Response> {
        let (mut parameters, mut counts) = (own.to_vec(), Vec::new());
        for (query, wanted) in &within.queries {
            let given = Given { parameters: own, ..Given::default() };
            let Response::Rows { mut rows, .. } = Box::pin(self.perform(catalog, &query.plan, given)).await?
            else {
                return Err(Error::new(SqlState(*b"XX000"), "a query without rows"));
            };
            if *wanted == Rows::Relation {
                let mut held = HeldRows::new(self.session.holding());
                held.fill(&mut rows, (usize::MAX, usize::MAX)).await?;
                self.execution.given.insert(query.number, held);
                counts.push(0);
                continue;
            }
            let rows: Vec<Vec<Value>> = rows.try_collect().await?;
            let mut values: Vec<Value> = rows.into_iter().filter_map(|row| row.into_iter().next()).collect();
            if *wanted == Rows::Value {
                if values.len() > 1 {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(Error::new(SqlState(*b"21000"), message));
                }
                values.resize(1, Value::Null);
            }
            counts.push(values.len());
            parameters.append(&mut values);
        }
        let known = within.plans.lock().get(&counts).cloned();
        let plan = match known {
            Some(plan) => plan,
            None => {
                let (statement, types) = within.statement(&plan.direct.parameters, &counts)?;
                let command = Arc::new(Command::Sql(Box::new(statement)));
                let plan = self.plan_by(catalog, &command, (&within.text, None), &types).await?;
                let mut plans = within.plans.lock();
                if plans.len() >= PLANS_MAX {
                    plans.clear();
                }
                plans.insert(counts, plan.clone());
                plan
            }
        };
        let given = Given { parameters: &parameters, ..Given::default() };
        Box::pin(self.perform(catalog, &plan, given)).await
    }
}
