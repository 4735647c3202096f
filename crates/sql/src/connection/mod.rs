//! One client's way in: prepare, execute, transactions.
//!
//! | module | concept |
//! |---|---|
//! | `sql_database` | a database with its SQL catalog, shared by all connections |
//! | `prepared`, `plan_cache` | statements that are ready to run; plans that connections share |
//! | `plan`, `planner` | how a statement runs; how that is found |
//! | `execute` | who answers which command |
//! | `run` | programs and queries: arguments in, rows out |
//! | `each` | calls of one program that are handed in together |
//! | `result` | rows that come as they are taken, or that are held and counted |
//! | `numbers` | numbers of sequences for programs that take them as they go |
//! | `past` | reads of the past: `fabius.as_of` |
//! | `explanation`, `explain_options`, `explain_format` | `EXPLAIN` |
//! | `bulk`, `write_query` | many rows written at once; writes of what queries give |
//! | `row_lock`, `clock` | statements that lock rows; the time |
//! | `row_changes` | `UPDATE` and `DELETE` of rows that a query finds |
//! | `merge` | `MERGE` |
//! | `with_writes` | `WITH` whose parts write |
//! | `assigned` | what assignments give columns |
//! | `held_rows` | rows that a session holds |
//! | `given_rows` | rows that were found before as parts of a statement |
//! | `met_rows` | what `ON CONFLICT DO UPDATE` assigns, where a query computes it |
//! | `asked_first`, `written_rows` | what such parts see of each other: nothing; each row is written once |
//! | `skip_locked` | `SKIP LOCKED` |
//! | `stance` | what statements stand on in a cluster: the lead of this node, or the state |
//! | `open_transaction` | what a transaction has from its begin to its end, and how it stands |
//! | `transaction` | begin, commit, roll back, savepoints |
//! | `session`, `execution` | what a client has for as long as it stays; what a statement has while it runs |
//! | `session_command` | settings, prepared statements, locks and the like by SQL |
//! | `session_function` | functions that are about the session: `currval`, `setval`, `fabius.outcome` |
//! | `advisory` | numbers that clients lock |
//! | `login`, `identity` | as whom a client logged in; whose privileges count |
//! | `presence` | what a connection is doing, as others see it |
//! | `cursor` | `DECLARE`, `FETCH`, `CLOSE` |
//! | `listed` | cursors and prepared statements as the catalogs list them |
//! | `source` | rows for queries |
//! | `facts` | what queries ask about the session |
//!
//! Four verbs stand between a message and its rows, each above the next:
//!
//! | verb | what it does |
//! |---|---|
//! | `answer` | runs a statement; again, if others were faster or what it names was redefined |
//! | `perform` | runs a plan once: a program, a query, or several of them in turn |
//! | `call` | runs a program: makes its arguments of parameters, literals, numbers of sequences |
//! | `submit` | gives the database a statement, in the transaction that is open or as one of its own |

mod advisory;
mod asked_first;
mod assigned;
mod bulk;
mod clock;
mod cursor;
mod deferred;
mod each;
mod execute;
mod execution;
mod explain_format;
mod explain_options;
mod explanation;
mod facts;
mod given_rows;
mod held_rows;
mod identity;
mod listed;
mod login;
mod merge;
mod met_rows;
mod notify;
mod numbers;
mod open_transaction;
mod past;
mod plan;
mod plan_cache;
mod planner;
mod prepared;
mod presence;
mod replay;
mod result;
mod row_changes;
mod row_lock;
mod run;
mod session;
mod session_command;
mod session_function;
mod skip_locked;
mod source;
pub(crate) mod sql_database;
mod stance;
mod transaction;
mod with_writes;
mod write_query;
mod written_rows;

pub use listed::Listing;
pub use open_transaction::aborted;
pub use prepared::{KeptStatement, Prepared};
pub use sql_database::{MemoryBounds, SqlDatabase};

use crate::settings::Settings;
pub use crate::settings::Timeouts;
use execution::Execution;
use fabius::{Error, Recall, Result, SqlState, Value};
use fabius_sql_meaning::catalog::store::MAIN_DATABASE;
use fabius_sql_meaning::catalog::{Catalog, Oid};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::TextStyle;
use fabius_sql_planning as planning;
use fabius_sql_syntax as syntax;
use facts::Facts;
use futures::stream::BoxStream;
use login::Login;
use open_transaction::{OpenTransaction, TransactionState};
use parking_lot::Mutex;
use presence::Presence;
pub(crate) use session::Session;
use sql_database::Perspective;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use transaction::End;

/// Where a connection's transaction stands: PostgreSQL's `I`, `T` and `E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// None is open.
    Idle,
    /// One is open.
    Open,
    /// One is open and has failed: only `ROLLBACK` is of use.
    Failed,
}

/// One client: its settings, its transaction, what it has prepared.
pub struct Connection {
    database: Arc<SqlDatabase>,
    pub(crate) session: Session,
    pub(crate) transaction: TransactionState,
    execution: Execution,
}

/// What running a statement gave.
pub enum Response {
    /// The text had no statement.
    Empty,
    /// Rows, then a tag with their count.
    Rows {
        /// The columns.
        columns: Vec<OutputColumn>,
        /// The rows, in the columns' storage types.
        rows: BoxStream<'static, Result<Vec<Value>>>,
        /// The tag's words before the count of rows: `SELECT`, `INSERT 0`, `FETCH`.
        tag: &'static str,
    },
    /// A tag alone: `CREATE TABLE`, `UPDATE 3`, `BEGIN`.
    Done {
        /// The tag.
        tag: String,
    },
    /// The client sends rows next.
    CopyIn(CopyIn),
    /// Rows in the format that `COPY ... TO STDOUT` asked for.
    CopyOut {
        /// How many columns.
        columns: usize,
        /// Whether the format is binary.
        is_binary: bool,
        /// Whether the first of the data is a line with names.
        has_header: bool,
        /// The bytes.
        data: BoxStream<'static, Result<Vec<u8>>>,
    },
}

/// A `COPY ... FROM STDIN` under way: see [`Connection::copy_data`].
pub struct CopyIn {
    /// How many columns.
    pub columns: usize,
    /// Whether the format is binary.
    pub is_binary: bool,
}

/// Something the client should know that is not an error.
#[derive(Clone, Debug)]
pub struct Notice {
    /// `NOTICE`, `WARNING`, `INFO`.
    pub severity: &'static str,
    /// What it says, with SQLSTATE, detail and hint.
    pub error: Error,
}

impl Connection {
    /// A connection of a user.
    pub fn new(database: Arc<SqlDatabase>, user: &str) -> Connection {
        let process = database.new_process();
        Connection::numbered(database, user, process)
    }

    /// A connection of a user with a number that it is known by, which no other connection has, to the main database.
    pub fn numbered(database: Arc<SqlDatabase>, user: &str, process: i32) -> Connection {
        let main = (MAIN_DATABASE, database.name().to_string());
        Connection::to(database, main, user, process)
    }

    /// As [`Connection::numbered`], to the database of a number and name.
    pub fn to(database: Arc<SqlDatabase>, within: (Oid, String), user: &str, process: i32) -> Connection {
        let login = Login::of(user, &database.roles());
        let facts = Facts {
            database: database.clone(),
            within: within.clone(),
            login: login.clone(),
            process,
            now: Mutex::default(),
            advisory: Mutex::default(),
            told: Mutex::default(),
            listening: Mutex::default(),
            listed: Arc::default(),
        };
        let presence = Arc::new(Presence::new(process, user, within, clock::now_us()));
        database.sessions.lock().insert(process, presence.clone());
        let memory = database.session_memory();
        let is_superuser = database.roles().is_superuser(login.role);
        let settings = Settings::new(user, database.is_standby(), is_superuser);
        Connection {
            database,
            session: Session::new((login, facts), presence, settings, memory),
            transaction: TransactionState::Idle,
            execution: Execution::default(),
        }
    }

    /// The database.
    pub fn database(&self) -> &Arc<SqlDatabase> {
        &self.database
    }

    /// The number of the database that it is connected to.
    pub(crate) fn within(&self) -> Oid {
        self.session.facts.within.0
    }

    /// The name of the database that it is connected to.
    pub(crate) fn database_name(&self) -> String {
        self.session.facts.within.1.clone()
    }

    /// The connection's user.
    pub fn user(&self) -> &str {
        &self.session.login.user
    }

    /// The statement that it runs, or the last one.
    pub fn statement(&self) -> String {
        self.session.presence.shown(None).query
    }

    /// The connection's number: `pg_backend_pid()`.
    pub fn process(&self) -> i32 {
        self.session.process
    }

    /// How it wants values as text.
    pub fn text_style(&self) -> TextStyle {
        self.session.settings.style().clone()
    }

    /// Divides a text into statements: the bytes of each. None if the text has none.
    ///
    /// # Errors
    /// `42601`, with the position; `53200` if there is no room for it.
    pub async fn split(&mut self, text: &str) -> Result<Vec<Range<usize>>> {
        planning::read(&self.session.memory, text, syntax::split).await
    }

    /// The types of parameters, by their numbers in `pg_type`; 0 where the statement says.
    ///
    /// # Errors
    /// `42704` for a number that no type has.
    pub fn parameter_types(&mut self, oids: &[u32]) -> Result<Vec<SqlType>> {
        /// `character` of any length: its blanks at the end are the client's.
        const BPCHAR: u32 = 1042;
        let mut types = Vec::with_capacity(oids.len());
        for oid in oids {
            let found = match *oid {
                BPCHAR => Some(SqlType::Text),
                oid => SqlType::of_oid(oid).or_else(|| self.catalog().type_of_oid(oid)),
            };
            types.push(found.ok_or_else(|| {
                Error::new(SqlState(*b"42704"), format!("type with OID {oid} does not exist"))
                    .with_hint("give another type, or none and let it be found")
            })?);
        }
        Ok(types)
    }

    /// What names mean to this connection now.
    pub(crate) fn catalog(&mut self) -> Arc<Catalog> {
        let version = self.database.version();
        if let Some(catalog) = self.session.catalog(version) {
            return catalog;
        }
        let roles = self.database.roles();
        let search_path = self
            .session
            .settings
            .search_path(&self.session.login.name(self.session.role_among(&roles), &roles));
        let perspective =
            Perspective { search_path, role: self.session.seen_as(&roles), waiting: BTreeMap::new() };
        let mut shared = self.database.catalog(self.within(), perspective.clone());
        let changes = self.transaction.get().map(|open| open.changes.as_slice()).unwrap_or_default();
        let catalog = if changes.is_empty() && self.session.temporary.is_empty() {
            if let Some(open) = self.transaction.get() {
                let waiting = open.constraint_modes.waiting(&shared);
                if !waiting.is_empty() {
                    shared = self.database.catalog(self.within(), Perspective { waiting, ..perspective });
                }
            }
            shared
        } else {
            let mut own = (*shared).clone();
            self.session.temporary.iter().chain(changes).for_each(|change| own.apply(change));
            if let Some(open) = self.transaction.get() {
                own.waiting = open.constraint_modes.waiting(&own);
            }
            own.role = self.session.seen_as(&own.roles);
            own.version = self.database.new_version();
            Arc::new(own)
        };
        self.session.know(version, &catalog);
        catalog
    }

    /// Whether what runs can be taken back. Whoever wants to give up a statement by dropping its future gives up
    /// here first, and waits for the statement if it is too late.
    pub fn recall(&self) -> Arc<Recall> {
        self.session.recall.clone()
    }

    /// The future of a statement was dropped: it was cancelled, or took too long. An open transaction has failed; if
    /// it was about to commit, it has ended.
    pub fn interrupted(&mut self) {
        match self.transaction.get().is_some_and(OpenTransaction::is_committing) {
            true => {
                let open = self.transaction.take();
                open.into_iter().for_each(|open| self.wind_up(open, End::RolledBack));
            }
            false => self.fail(),
        }
        self.forget_told();
        self.execution.copying = None;
        self.end_taking();
        self.release_statement_locks();
        self.session.recall.renew();
    }

    /// Nothing runs any more until the client says what is next; where its transaction stands.
    pub fn rest(&mut self) -> TransactionStatus {
        self.session.is_up_to_date = false;
        self.tell_unless_open();
        let status = self.status();
        self.session.presence.rest(status, clock::now_us());
        status
    }

    /// The timeouts in force.
    pub fn timeouts(&self) -> Timeouts {
        self.session.settings.timeouts()
    }

    /// Notices since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.session.take_notices()
    }

    /// Settings that the client has to be told of (`ParameterStatus`) since the last time; at first all.
    pub fn take_reported_settings(&mut self) -> Vec<(String, String)> {
        let reported = self.session.settings.take_reported();
        if let Some((_, name)) = reported.iter().find(|(setting, _)| setting == "application_name") {
            self.session.presence.name(name);
        }
        reported
    }

    /// Sets a setting, as `SET name = value` does: what clients give when they start.
    ///
    /// # Errors
    /// `42704` for an unknown one, `22023` for a value it does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.session.forget_catalog();
        match name.to_lowercase().as_str() {
            "role" if value == "none" => {}
            setting @ ("role" | "session_authorization") => self.check_becoming(setting, value)?,
            _ => {}
        }
        self.session.settings.start(name, value)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let open = self.transaction.take();
        let keys = open.as_ref().map(|open| open.locks.clone()).unwrap_or_default();
        self.database.release_locks(self.session.process, &keys);
        self.release_statement_locks();
        for is_of_transaction in [true, false] {
            let mut advisory = self.session.facts.advisory.lock();
            advisory.give_back_all(&self.database.locks, self.session.process, is_of_transaction);
        }
        self.unlisten_all();
        self.database.sessions.lock().remove(&self.session.process);
        let made = open.map(|open| open.made).unwrap_or_default();
        let temporary = self.session.temporary_storage().map(str::to_string);
        for name in made.into_iter().chain(temporary) {
            // What is left over is dropped when the database opens the next time.
            let _ = self.database.drop_storage(&name);
        }
    }
}

/// Runs a statement for tests; gives how many rows it returns.
#[cfg(test)]
async fn run_counting(connection: &mut Connection, text: &str) -> usize {
    use futures::StreamExt;
    let prepared = connection.prepare(text, &[]).await.expect(text);
    match connection.execute(&prepared, &[]).await.expect(text) {
        Response::Rows { rows, .. } => rows.count().await,
        _ => 0,
    }
}
