//! One client's way in: prepare, execute, transactions.
//!
//! | module | concept |
//! |---|---|
//! | `sql_database` | a database with its SQL catalog, shared by all connections |
//! | `prepared`, `plan_cache` | statements that are ready to run; plans that connections share |
//! | `plan`, `planner` | how a statement runs; how that is found |
//! | `execute` | who answers which command |
//! | `run` | programs and queries: arguments in, rows out |
//! | `result` | rows that come as they are taken, or that are held and counted |
//! | `numbers` | numbers of sequences for programs that take them as they go |
//! | `past` | reads of the past: `fabius.as_of` |
//! | `explanation`, `explain_options` | `EXPLAIN` |
//! | `bulk`, `write_query` | many rows written at once; writes of what queries give |
//! | `row_lock`, `clock` | statements that lock rows; the time |
//! | `row_changes` | `UPDATE` and `DELETE` of rows that a query finds |
//! | `with_writes` | `WITH` whose parts write |
//! | `assigned` | what assignments give columns |
//! | `held_rows` | rows that a session holds |
//! | `given_rows` | rows that were found before as parts of a statement |
//! | `met_rows` | what `ON CONFLICT DO UPDATE` assigns, where a query computes it |
//! | `asked_first`, `written_rows` | what such parts see of each other: nothing; each row is written once |
//! | `skip_locked` | `SKIP LOCKED` |
//! | `stance` | what statements stand on in a cluster: the lead of this node, or the state |
//! | `transaction` | begin, commit, roll back, savepoints |
//! | `session_command` | settings, prepared statements, locks and the like by SQL |
//! | `session_function` | functions that are about the session: `currval`, `setval`, `fabius.outcome` |
//! | `advisory` | numbers that clients lock |
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
mod execute;
mod explain_options;
mod explanation;
mod facts;
mod given_rows;
mod held_rows;
pub(crate) mod identity;
mod listed;
mod met_rows;
mod numbers;
mod past;
mod plan;
mod plan_cache;
mod planner;
mod prepared;
mod presence;
mod result;
mod row_changes;
mod row_lock;
mod run;
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
pub use prepared::{KeptStatement, Prepared};
pub use sql_database::{MemoryBounds, SqlDatabase};
pub use transaction::aborted;

use crate::copy::copying::Copying;
use crate::lock::LockKey;
use crate::settings::Settings;
pub use crate::settings::Timeouts;
use cursor::Cursor;
use fabius::{Allowance, Error, Recall, Requirement, Result, Seq, SqlState, Value};
use fabius_sql_meaning::catalog::store::MAIN_DATABASE;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{Catalog, Oid};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::TextStyle;
use fabius_sql_planning as planning;
use fabius_sql_syntax as syntax;
use facts::Facts;
use futures::stream::BoxStream;
use given_rows::GivenRows;
use identity::Login;
use parking_lot::Mutex;
use presence::Presence;
use sql_database::Perspective;
use stance::Stance;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use transaction::{End, OpenTransaction};

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
    login: Login,
    process: i32,
    recall: Arc<Recall>,
    presence: Arc<Presence>,
    settings: Settings,
    transaction: Option<OpenTransaction>,
    notices: Vec<Notice>,
    /// What names mean to this connection; made again when something changes.
    catalog: Option<Arc<Catalog>>,
    /// The committed catalog that it was made of.
    catalog_base: u64,
    /// Temporary tables and the like.
    temporary: Vec<Change>,
    prepared: BTreeMap<String, KeptStatement>,
    cursors: BTreeMap<String, Cursor>,
    /// Values that sequences gave this session, and which was the last.
    sequence_values: BTreeMap<Oid, i64>,
    last_sequence: Option<Oid>,
    copying: Option<Copying>,
    /// Locks until the statement ends, outside of transactions.
    statement_locks: Vec<LockKey>,
    /// The place in the order of its last transaction.
    last_seq: Option<Seq>,
    /// Transactions that the client has ended.
    transactions_ended: u64,
    /// Whether the statement has committed what it wrote.
    has_committed: bool,
    /// Statements that wrote rows.
    writes: u32,
    manner: Manner,
    /// What parts of the statement have found.
    given: GivenRows,
    /// What a statement by itself stands on.
    stance: Stance,
    /// What the call of a statement by itself requires, if it does not stand on the lead of this node.
    requirement: Option<Arc<Requirement>>,
    facts: Arc<Facts>,
    /// What it may hold: its transaction, rows for the client, operators of queries.
    memory: Arc<Allowance>,
    /// Whether what it reads is the newest of the time when the client last said something.
    is_up_to_date: bool,
}

/// How what runs now goes about locks, besides what settings say.
#[derive(Clone, Copy, Default)]
struct Manner {
    /// What it sees is not held.
    is_looking: bool,
    /// It does not wait.
    is_impatient: bool,
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
            listed: Arc::default(),
        };
        let presence = Arc::new(Presence::new(process, user, within, clock::now_us()));
        database.sessions.lock().insert(process, presence.clone());
        let memory = database.session_memory();
        let is_superuser = database.roles().is_superuser(login.role);
        let settings = Settings::new(user, database.is_standby(), is_superuser);
        Connection {
            database,
            login,
            process,
            recall: Arc::default(),
            presence,
            settings,
            transaction: None,
            notices: Vec::new(),
            catalog: None,
            catalog_base: 0,
            temporary: Vec::new(),
            prepared: BTreeMap::new(),
            cursors: BTreeMap::new(),
            sequence_values: BTreeMap::new(),
            last_sequence: None,
            copying: None,
            statement_locks: Vec::new(),
            last_seq: None,
            transactions_ended: 0,
            has_committed: false,
            writes: 0,
            manner: Manner::default(),
            given: GivenRows::default(),
            stance: Stance::Lead(None),
            requirement: None,
            facts: Arc::new(facts),
            memory,
            is_up_to_date: false,
        }
    }

    /// The database.
    pub fn database(&self) -> &Arc<SqlDatabase> {
        &self.database
    }

    /// The number of the database that it is connected to.
    pub(crate) fn within(&self) -> Oid {
        self.facts.within.0
    }

    /// The name of the database that it is connected to.
    pub(crate) fn database_name(&self) -> String {
        self.facts.within.1.clone()
    }

    /// The connection's user.
    pub fn user(&self) -> &str {
        &self.login.user
    }

    /// The statement that it runs, or the last one.
    pub fn statement(&self) -> String {
        self.presence.shown(None).query
    }

    /// The connection's number: `pg_backend_pid()`.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// How it wants values as text.
    pub fn text_style(&self) -> TextStyle {
        self.settings.style().clone()
    }

    /// Divides a text into statements: the bytes of each. None if the text has none.
    ///
    /// # Errors
    /// `42601`, with the position; `53200` if there is no room for it.
    pub async fn split(&mut self, text: &str) -> Result<Vec<Range<usize>>> {
        planning::read(&self.memory, text, syntax::split).await
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
        if let Some(catalog) = self.catalog.as_ref().filter(|_| self.catalog_base == version) {
            return catalog.clone();
        }
        let roles = self.database.roles();
        let search_path = self.settings.search_path(&self.login.name(self.role_among(&roles), &roles));
        let perspective = Perspective { search_path, role: self.seen_as(&roles), waiting: BTreeMap::new() };
        let mut shared = self.database.catalog(self.within(), perspective.clone());
        let changes = self.transaction.as_ref().map(|open| open.changes.as_slice()).unwrap_or_default();
        let catalog = if changes.is_empty() && self.temporary.is_empty() {
            if let Some(open) = &self.transaction {
                let waiting = open.constraint_modes.waiting(&shared);
                if !waiting.is_empty() {
                    shared = self.database.catalog(self.within(), Perspective { waiting, ..perspective });
                }
            }
            shared
        } else {
            let mut own = (*shared).clone();
            self.temporary.iter().chain(changes).for_each(|change| own.apply(change));
            if let Some(open) = &self.transaction {
                own.waiting = open.constraint_modes.waiting(&own);
            }
            own.role = self.seen_as(&own.roles);
            own.version = self.database.new_version();
            Arc::new(own)
        };
        self.catalog_base = version;
        self.catalog = Some(catalog.clone());
        catalog
    }

    /// Whether what runs can be taken back. Whoever wants to give up a statement by dropping its future gives up
    /// here first, and waits for the statement if it is too late.
    pub fn recall(&self) -> Arc<Recall> {
        self.recall.clone()
    }

    /// The future of a statement was dropped: it was cancelled, or took too long. An open transaction has failed; if
    /// it was about to commit, it has ended.
    pub fn interrupted(&mut self) {
        let was_committing =
            |open: &OpenTransaction| open.running.try_lock().is_ok_and(|running| running.is_none());
        match self.transaction.take_if(|open| was_committing(open)) {
            Some(open) => self.wind_up(open, End::RolledBack),
            None => self.fail(),
        }
        self.copying = None;
        self.end_taking();
        self.release_statement_locks();
        self.recall.renew();
    }

    /// Nothing runs any more until the client says what is next; where its transaction stands.
    pub fn rest(&mut self) -> TransactionStatus {
        self.is_up_to_date = false;
        let status = self.status();
        self.presence.rest(status, clock::now_us());
        status
    }

    /// The timeouts in force.
    pub fn timeouts(&self) -> Timeouts {
        self.settings.timeouts()
    }

    /// Notices since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        if self.notices.is_empty() {
            return Vec::new();
        }
        let rank = |severity: &str| match severity {
            "WARNING" => 2,
            "NOTICE" => 1,
            _ => 0,
        };
        let least = match self.settings.get("client_min_messages").as_deref() {
            Some("error") => 3,
            Some("warning") => 2,
            Some("notice") => 1,
            _ => 0,
        };
        std::mem::take(&mut self.notices)
            .into_iter()
            .filter(|notice| rank(notice.severity) >= least)
            .collect()
    }

    /// Settings that the client has to be told of (`ParameterStatus`) since the last time; at first all.
    pub fn take_reported_settings(&mut self) -> Vec<(String, String)> {
        let reported = self.settings.take_reported();
        if let Some((_, name)) = reported.iter().find(|(setting, _)| setting == "application_name") {
            self.presence.name(name);
        }
        reported
    }

    /// Sets a setting, as `SET name = value` does: what clients give when they start.
    ///
    /// # Errors
    /// `42704` for an unknown one, `22023` for a value it does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.catalog = None;
        match name.to_lowercase().as_str() {
            "role" if value == "none" => {}
            setting @ ("role" | "session_authorization") => self.check_becoming(setting, value)?,
            _ => {}
        }
        self.settings.start(name, value)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let open = self.transaction.take();
        let keys = open.as_ref().map(|open| open.locks.clone()).unwrap_or_default();
        self.database.release_locks(self.process, &keys);
        self.release_statement_locks();
        for is_of_transaction in [true, false] {
            let mut advisory = self.facts.advisory.lock();
            advisory.give_back_all(&self.database.locks, self.process, is_of_transaction);
        }
        self.database.sessions.lock().remove(&self.process);
        let made = open.map(|open| open.made).unwrap_or_default();
        let temporary = self.temporary.iter().filter_map(|change| match &change.object {
            Some(Object::Table(table)) => Some(table.storage.clone()),
            _ => None,
        });
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
