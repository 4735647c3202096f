//! Results: rows that come as they are taken, or that are held and counted.
//!
//! ```text
//! program   small    held until the client has taken them
//!           large    given up, and run as a query instead
//! query     rows of a seq, as they are taken: outside of a transaction, or in one that has not written
//!           rows of a transaction that writes, or locks what it shows: held, as far as the session may
//! ```

use super::held_rows::{HeldRows, size};
use super::listed::Listing;
use super::open_transaction::{Running, ended};
use super::plan::Given;
use super::plan::Program;
use super::prepared::{KeptStatement, Prepared};
use super::session::Session;
use super::source::{SMALL_BYTES, TransactionRows};
use super::{Connection, Response};
use fabius::{Concurrency, Held, Patience, Transaction};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_planning as planning;
use fabius_sql_program::bind::wording;
use fabius_sql_program::lowered::{Lowered, Shape};
use fabius_sql_query::{self as query, QueryPlan};
use fabius_sql_syntax::{self as syntax, Command};
use fabius_value::{Error, Result, SqlState, Value};
use futures::StreamExt;
use futures::stream::BoxStream;
use sqlparser::ast;
use std::sync::Arc;

/// Rows of a query that are found before the first is sent: an error among them ends the statement cleanly.
const FIRST_ROWS: usize = 1000;
/// Not more bytes of them, about.
const FIRST_BYTES: usize = 1 << 20;

/// What came of a program that was to give a small result.
pub(super) enum Small {
    /// It is small.
    Results(Vec<Value>),
    /// It is not: its rows come as they are taken.
    Rows(Response),
    /// It has to be run as other programs are.
    Unknown,
}

/// A query that has begun to give rows.
struct RowStream {
    first: HeldRows,
    rest: BoxStream<'static, Result<Vec<Value>>>,
}

impl Connection {
    /// Holds so many bytes besides.
    ///
    /// # Errors
    /// `53200` if the session holds too much.
    pub fn hold(&self, bytes: usize) -> Result<Held> {
        let mut held = Held::new((bytes > 0).then(|| self.session.memory.clone()));
        held.take(bytes)?;
        Ok(held)
    }

    /// Keeps a statement, which counts as held.
    ///
    /// # Errors
    /// As [`Connection::hold`].
    pub fn keep(&self, prepared: Arc<Prepared>, listed: Option<Listing>) -> Result<KeptStatement> {
        Ok(KeptStatement { held: self.hold(prepared.bytes_to_keep())?, prepared, _listed: listed })
    }

    /// Runs a program that only reads rows, unless its result is large.
    pub(super) async fn call_if_small(
        &mut self,
        catalog: &Arc<Catalog>,
        program: &Arc<Program>,
        (types, given): (&[SqlType], Given<'_>),
    ) -> Result<Small> {
        let lowered = &program.lowered;
        let only_reads = program.statement.is_read_only() && lowered.reserves.is_empty() && !lowered.notices;
        let gives_rows = matches!(lowered.shape, Shape::Rows(_)) && lowered.row_lock.is_none();
        let Some(text) = given.text.filter(|_| only_reads && gives_rows) else { return Ok(Small::Unknown) };
        let arguments = self.arguments(catalog, program, given).await?;
        match self.read_within(&program.statement, &arguments, SMALL_BYTES).await {
            Ok(results) => Ok(Small::Results(results)),
            Err(error) if error.state() == SqlState::OUT_OF_MEMORY => {
                let run = self.call_as_query(catalog, lowered, text, (types, given.parameters));
                let response = Box::pin(run).await?;
                Ok(response.map_or(Small::Unknown, Small::Rows))
            }
            Err(error) => Err(Connection::explained(error, (lowered, &program.statement), catalog)),
        }
    }

    async fn read_within(
        &mut self,
        statement: &Arc<fabius::Statement>,
        arguments: &[Value],
        bytes_max: usize,
    ) -> Result<Vec<Value>> {
        let options = self.options();
        let Some(open) = self.transaction.get_mut() else {
            let database = self.database.database();
            let outcome = database.read(statement, arguments, bytes_max, Some(&self.session.recall)).await;
            self.session.note_place(outcome.as_ref().ok().map(|outcome| outcome.seq), false);
            return Ok(outcome?.results);
        };
        open.fix_moment();
        let running = open.running.clone();
        let mut running = running.lock().await;
        let transaction = running.as_mut().ok_or_else(ended)?;
        *transaction.options_mut() = options;
        transaction.run_within(statement, arguments, fabius::Hold::Observe, bytes_max).await
    }

    /// A statement that is a program, as a query; `None` if it is none, or would give other columns.
    async fn call_as_query(
        &mut self,
        catalog: &Arc<Catalog>,
        lowered: &Lowered,
        text: &str,
        (types, parameters): (&[SqlType], &[Value]),
    ) -> Result<Option<Response>> {
        let Shape::Rows(columns) = &lowered.shape else { return Ok(None) };
        let (session, catalog) = (self.session_facts(), catalog.clone());
        let (text, mut types) = (text.to_string(), ParameterTypes::new(types));
        let planned = planning::apart(&self.session.memory, move || {
            let Command::Sql(statement) = syntax::parse(&text)? else { return Ok(None) };
            let ast::Statement::Query(select) = *statement else { return Ok(None) };
            query::plan(&select, &catalog, &mut types, &session).map(Some)
        });
        let Ok(Some(query)) = planned.await else { return Ok(None) };
        let types = |columns: &[OutputColumn]| columns.iter().map(|c| c.sql_type.clone()).collect::<Vec<_>>();
        if types(columns) != types(&query.columns) {
            return Ok(None);
        }
        let rows = self.rows_as_they_come(&query, parameters).await?;
        Ok(Some(Response::Rows { columns: columns.clone(), rows, tag: lowered.tag }))
    }

    /// The rows of a query, in the transaction or at a moment of its own, all of them.
    pub(super) async fn rows_of(&mut self, query: &QueryPlan, parameters: &[Value]) -> Result<HeldRows> {
        let RowStream { first, .. } = self.stream(query, parameters, (usize::MAX, usize::MAX)).await?;
        Ok(first)
    }

    /// The rows of a query for a client: as far as nothing has to be kept, rows beyond the first come as the client
    /// takes them.
    pub(super) async fn rows_as_they_come(
        &mut self,
        query: &QueryPlan,
        parameters: &[Value],
    ) -> Result<BoxStream<'static, Result<Vec<Value>>>> {
        let RowStream { first, rest } = self.stream(query, parameters, (FIRST_ROWS, FIRST_BYTES)).await?;
        Ok(first.stream().chain(rest).boxed())
    }

    /// The transaction of a query by itself: all it sees is of one moment, so that nothing has to be held.
    fn start_by_itself(&self, query: &QueryPlan) -> Transaction {
        let mut options = self.options();
        if !query.locks_rows {
            (options.concurrency, options.conventional) = (Concurrency::Optimistic, None);
        }
        self.database.database().begin(options)
    }

    /// Runs a query until so many rows or bytes are there, or to its end where what it sees may change under it; it
    /// runs again after waiting for an advisory lock.
    async fn stream(
        &mut self,
        query: &QueryPlan,
        parameters: &[Value],
        most: (usize, usize),
    ) -> Result<RowStream> {
        let outcome = loop {
            self.session_facts();
            self.session.facts.advisory.lock().begin_taking();
            let running: Running = match self.transaction.get() {
                Some(open) => open.running.clone(),
                None => Arc::new(tokio::sync::Mutex::new(None)),
            };
            let point = {
                let mut running = running.lock().await;
                match running.as_mut() {
                    Some(transaction) => *transaction.options_mut() = self.options(),
                    None if self.transaction.is_idle() => *running = Some(self.start_by_itself(query)),
                    None => {}
                }
                running.as_ref().map(Transaction::savepoint)
            };
            let outcome = self.begin_stream(query, parameters, &running, most).await;
            if outcome.is_ok() || !self.wait_for_advisory().await? {
                if self.transaction.is_idle() {
                    let seq = running.lock().await.as_ref().and_then(Transaction::seq);
                    self.session.note_place(seq, false);
                }
                break outcome;
            }
            if let (Some(transaction), Some(point)) = (running.lock().await.as_mut(), point) {
                transaction.roll_back_to(&point);
            }
        };
        self.end_taking();
        let stream = outcome.map_err(|error| wording::in_words(error, &self.catalog()))?;
        self.set_as_told()?;
        Ok(stream)
    }

    async fn begin_stream(
        &mut self,
        query: &QueryPlan,
        parameters: &[Value],
        running: &Running,
        most: (usize, usize),
    ) -> Result<RowStream> {
        let place = (&self.database, self.within());
        let within = (
            self.transaction.get_mut(),
            &self.execution.given,
            self.session.recall.clone() as Arc<dyn Patience>,
        );
        let source = TransactionRows::new(place, running, query, within).await?;
        let most = if source.stands() { most } else { (usize::MAX, usize::MAX) };
        let mut first = HeldRows::new(self.session.holding());
        let mut rest = query.run(parameters, Arc::new(source), &self.session.memory).await?;
        first.fill(&mut rest, most).await?;
        Ok(RowStream { first, rest })
    }

    /// Puts in force what the last query has set (`set_config`).
    fn set_as_told(&mut self) -> Result<()> {
        self.session.keep_given();
        let set = std::mem::take(&mut self.session.facts.now.lock().set);
        set.into_iter().try_for_each(|(name, value, is_local)| self.set_now(&name, Some(&value), is_local))
    }
}

impl Session {
    /// To hold something by.
    pub(super) fn holding(&self) -> Held {
        Held::new(Some(self.memory.clone()))
    }

    /// What the client is told when there was no room for a result.
    pub(super) fn refusal(&self, error: Error) -> Error {
        self.holding().refusal(error)
    }

    /// What a program's results are to the client.
    pub(super) fn respond(&self, lowered: &Lowered, results: Vec<Value>) -> Result<Response> {
        let tag = lowered.tag;
        let mut results = results.into_iter();
        let counted = if tag == "INSERT" { "INSERT 0" } else { tag };
        // What a statement has written is done: its rows are given in any case.
        let held = |value: Option<Value>, is_done: bool| -> Result<BoxStream<'static, Result<Vec<Value>>>> {
            let Some(Value::List(rows)) = value else { return Ok(futures::stream::empty().boxed()) };
            let mut held = self.holding();
            let bytes = rows.iter().map(|row| size(row)).sum();
            if is_done {
                held.add(bytes)
            } else {
                held.take(bytes)?
            }
            Ok(HeldRows { rows, held }.stream())
        };
        Ok(match &lowered.shape {
            Shape::Rows(columns) => {
                let is_done = !lowered.writes.is_empty();
                Response::Rows { columns: columns.clone(), rows: held(results.next(), is_done)?, tag }
            }
            Shape::Count => {
                let count = results.next().and_then(|value| value.as_integer()).unwrap_or_default();
                let tag = if tag == "CALL" { tag.to_string() } else { format!("{counted} {count}") };
                Response::Done { tag }
            }
            Shape::CountAndRows(columns) => {
                results.next();
                Response::Rows { columns: columns.clone(), rows: held(results.next(), true)?, tag: counted }
            }
            Shape::OneRow(columns) if columns.is_empty() => Response::Done { tag: tag.to_string() },
            Shape::OneRow(columns) => rows_response(columns.clone(), vec![results.collect()], tag),
        })
    }
}

/// A few rows that are there.
pub(super) fn rows_response(
    columns: Vec<OutputColumn>,
    rows: Vec<Vec<Value>>,
    tag: &'static str,
) -> Response {
    Response::Rows { columns, rows: futures::stream::iter(rows.into_iter().map(Ok)).boxed(), tag }
}
