//! One client's way in: prepare, execute, transactions.

use crate::lowered::OutputColumn;
use crate::parse;
use crate::sql_type::SqlType;
use fabius::{Database, Error, Result, SqlState, Value};
use futures::stream::BoxStream;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A database with its SQL catalog. Shared by all connections.
pub struct SqlDatabase {
    database: Arc<Database>,
}

impl SqlDatabase {
    /// Reads the catalog of a database, or begins one there.
    ///
    /// # Errors
    /// A catalog of a newer version, or one that cannot be read.
    pub async fn open(database: Arc<Database>) -> Result<Arc<SqlDatabase>> {
        Ok(Arc::new(SqlDatabase { database }))
    }

    /// The database beneath.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }
}

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
    user: String,
    commitment: Arc<AtomicBool>,
}

/// How long things may take; zero is for ever. Settings of these names, as PostgreSQL has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// `statement_timeout`
    pub statement: Duration,
    /// `idle_in_transaction_session_timeout`
    pub idle_in_transaction: Duration,
    /// `idle_session_timeout`
    pub idle_session: Duration,
}

fn unfinished() -> Error {
    Error::new(SqlState::NOT_SUPPORTED, "SQL is not there yet")
}

/// A statement that is ready to run.
pub struct Prepared {
    /// Types of `$1`, `$2`, ...
    pub parameters: Vec<SqlType>,
    /// Columns of its result, if it gives rows.
    pub columns: Option<Vec<OutputColumn>>,
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
        Connection { database, user: user.to_string(), commitment: Arc::default() }
    }

    /// The database.
    pub fn database(&self) -> &Arc<SqlDatabase> {
        &self.database
    }

    /// Its user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Divides a text into statements: the bytes of each. None if the text has none.
    ///
    /// # Errors
    /// `42601`, with the position.
    pub fn split(&self, text: &str) -> Result<Vec<Range<usize>>> {
        parse::split(text)
    }

    /// Makes one statement ready to run. `types` are those that the client gives for `$1`, `$2`, ...;
    /// [`SqlType::Unknown`] leaves one to be found.
    ///
    /// # Errors
    /// What is wrong with the statement.
    pub async fn prepare(&mut self, _text: &str, _types: &[SqlType]) -> Result<Arc<Prepared>> {
        Err(unfinished())
    }

    /// Runs it; parameters are in the storage types of [`Prepared::parameters`].
    ///
    /// # Errors
    /// Why it failed; in a transaction, that has then failed too.
    pub async fn execute(&mut self, _prepared: &Arc<Prepared>, _parameters: &[Value]) -> Result<Response> {
        Err(unfinished())
    }

    /// Takes in a part of what the client copies.
    ///
    /// # Errors
    /// A line that does not fit, with its number. The copy has then failed.
    pub async fn copy_data(&mut self, _data: &[u8]) -> Result<()> {
        Err(unfinished())
    }

    /// Ends the copy: `COPY n`.
    ///
    /// # Errors
    /// As [`Connection::copy_data`]; `failure` is the client's own reason to give it up.
    pub async fn copy_end(&mut self, _failure: Option<String>) -> Result<Response> {
        Err(unfinished())
    }

    /// Where its transaction stands.
    pub fn status(&self) -> TransactionStatus {
        TransactionStatus::Idle
    }

    /// Begins the transaction that several statements of one message form together, unless one is open.
    ///
    /// # Errors
    /// If the database is closing.
    pub async fn begin_implicit(&mut self) -> Result<()> {
        Err(unfinished())
    }

    /// Ends that transaction, unless the client has made it its own by `BEGIN`.
    ///
    /// # Errors
    /// Why it could not be committed.
    pub async fn end_implicit(&mut self, _commit: bool) -> Result<()> {
        Err(unfinished())
    }

    /// Whether it is past recall: true while a call that is in the order already is waited for. Whoever wants to
    /// give up a statement by dropping its future waits while this is so.
    pub fn commitment(&self) -> Arc<AtomicBool> {
        self.commitment.clone()
    }

    /// The future of a statement was dropped: it was cancelled, or took too long. An open transaction has failed.
    pub fn interrupted(&mut self) {}

    /// The timeouts in force.
    pub fn timeouts(&self) -> Timeouts {
        Timeouts::default()
    }

    /// Notices since the last time.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// Settings that the client has to be told of (`ParameterStatus`) since the last time; at first all.
    pub fn take_reported_settings(&mut self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Sets a setting, as `SET name = value` does: what clients give when they start.
    ///
    /// # Errors
    /// `42704` for an unknown one, `22023` for a value it does not take.
    pub fn set(&mut self, _name: &str, _value: &str) -> Result<()> {
        Err(unfinished())
    }
}
