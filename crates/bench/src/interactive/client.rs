//! A connection, its interface, and the network's delay.

use fabius::{Error, Grain, Result, SqlState};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio_postgres::NoTls;

/// How transactions are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Validated when they commit.
    Optimistic,
    /// By locks.
    Pessimistic,
}

/// What a transaction tells the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Values that it has read, and values to write, of objects of this grain.
    Conventional(Grain),
    /// Expressions and conditions.
    Lsd,
    /// Expressions and conditions, assuming what conditions answer.
    Speculative,
}

/// A line of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// How transactions are kept apart.
    pub control: Control,
    /// What they tell.
    pub interface: Interface,
}

impl Protocol {
    /// OCC and 2PL, conventional by rows and with LSD.
    pub const FOUR: [Protocol; 4] = [
        Protocol::conventional(Control::Optimistic, Grain::Row),
        Protocol::conventional(Control::Pessimistic, Grain::Row),
        Protocol::lsd(Control::Optimistic),
        Protocol::lsd(Control::Pessimistic),
    ];

    /// OCC and 2PL, conventional by rows and by columns, and with LSD.
    pub const SIX: [Protocol; 6] = [
        Protocol::conventional(Control::Optimistic, Grain::Row),
        Protocol::conventional(Control::Optimistic, Grain::Column),
        Protocol::conventional(Control::Pessimistic, Grain::Row),
        Protocol::conventional(Control::Pessimistic, Grain::Column),
        Protocol::lsd(Control::Optimistic),
        Protocol::lsd(Control::Pessimistic),
    ];

    /// For filling tables: nothing that is written is read first.
    pub const LOADING: Protocol = Protocol::lsd(Control::Optimistic);

    /// OCC-LSD+.
    pub const SPECULATIVE: Protocol =
        Protocol { control: Control::Optimistic, interface: Interface::Speculative };

    /// A protocol that sees reads and writes only.
    pub const fn conventional(control: Control, grain: Grain) -> Protocol {
        Protocol { control, interface: Interface::Conventional(grain) }
    }

    /// A protocol that sees expressions and conditions.
    pub const fn lsd(control: Control) -> Protocol {
        Protocol { control, interface: Interface::Lsd }
    }

    fn setting(self) -> &'static str {
        use Grain::{Column, Row};
        match (self.control, self.interface) {
            (Control::Optimistic, Interface::Conventional(Row)) => "conventional_optimistic",
            (Control::Optimistic, Interface::Conventional(Column)) => "conventional_optimistic_by_column",
            (Control::Pessimistic, Interface::Conventional(Row)) => "conventional_pessimistic",
            (Control::Pessimistic, Interface::Conventional(Column)) => "conventional_pessimistic_by_column",
            (Control::Optimistic, Interface::Lsd) => "optimistic",
            (Control::Pessimistic, _) => "pessimistic",
            (Control::Optimistic, Interface::Speculative) => "speculative",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let control = match self.control {
            Control::Optimistic => "OCC",
            Control::Pessimistic => "2PL",
        };
        let interface = match self.interface {
            Interface::Conventional(Grain::Row) => "",
            Interface::Conventional(Grain::Column) => " by column",
            Interface::Lsd => "-LSD",
            Interface::Speculative => "-LSD+",
        };
        write!(f, "{control}{interface}")
    }
}

/// A connection.
pub struct Client {
    /// The connection; what is sent through [`Client::step`] and the like is held back.
    pub sql: tokio_postgres::Client,
    /// The client's protocol.
    pub protocol: Protocol,
    delay: Duration,
    /// Whether a transaction was begun and no commit was sent.
    is_open: AtomicBool,
    messages: AtomicU64,
}

type Answer<T> = Result<T, tokio_postgres::Error>;

impl Client {
    /// Connects to a server on the loopback address.
    ///
    /// # Errors
    /// What the server says.
    pub async fn connect(port: u16, protocol: Protocol, delay: Duration) -> Result<Client> {
        let parameters = format!("host=127.0.0.1 port={port} user=fabius dbname=fabius");
        let (sql, connection) = tokio_postgres::connect(&parameters, NoTls).await.map_err(refused)?;
        tokio::spawn(connection);
        let concurrency = format!("SET fabius.concurrency = '{}'", protocol.setting());
        sql.batch_execute(&concurrency).await.map_err(refused)?;
        Ok(Client { sql, protocol, delay, is_open: AtomicBool::new(false), messages: AtomicU64::new(0) })
    }

    /// Waits for what was sent in one message, after the network's delay. Statements in it are joined futures,
    /// which the connection sends one behind the other without waiting.
    pub async fn step<T>(&self, message: impl Future<Output = Answer<T>>) -> Answer<T> {
        self.messages.fetch_add(1, Relaxed);
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        message.await
    }

    /// Begins a transaction with its first statements, in one message; `begin` is `BEGIN`, perhaps with settings.
    ///
    /// # Errors
    /// What the server says.
    pub async fn begin<T>(&self, begin: &str, first: impl Future<Output = Answer<T>>) -> Answer<T> {
        self.is_open.store(true, Relaxed);
        let both = async { tokio::join!(biased; self.sql.batch_execute(begin), first) };
        let (begun, answer) = self.step(async { Ok(both.await) }).await?;
        begun.and(answer)
    }

    /// Commits with the last statements, in one message.
    ///
    /// # Errors
    /// What the server says; the transaction has ended in any case.
    pub async fn commit<T>(&self, last: impl Future<Output = Answer<T>>) -> Answer<T> {
        self.is_open.store(false, Relaxed);
        let both = async { tokio::join!(biased; last, self.sql.batch_execute("COMMIT")) };
        let (answer, committed) = self.step(async { Ok(both.await) }).await?;
        let answer = answer?;
        committed.map(|()| answer)
    }

    /// A whole transaction in one message.
    ///
    /// # Errors
    /// As [`Client::commit`].
    pub async fn at_once<T>(&self, statements: impl Future<Output = Answer<T>>) -> Answer<T> {
        let all = async {
            let begin = self.sql.batch_execute("BEGIN");
            tokio::join!(biased; begin, statements, self.sql.batch_execute("COMMIT"))
        };
        let (begun, answer, committed) = self.step(async { Ok(all.await) }).await?;
        begun?;
        let answer = answer?;
        committed.map(|()| answer)
    }

    /// Ends a transaction that failed before its commit was sent.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn abandon(&self) -> Answer<()> {
        if self.is_open.swap(false, Relaxed) {
            self.step(self.sql.batch_execute("ROLLBACK")).await?;
        }
        Ok(())
    }

    /// Messages that it has sent so far, each of which it has waited for.
    pub fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    /// Whether the interface is LSD's.
    pub fn is_lazy(&self) -> bool {
        !matches!(self.protocol.interface, Interface::Conventional(_))
    }

    /// Whether it says which rows it reads in order to write them: conventional locking would else begin with
    /// shared locks, and end in deadlocks.
    pub fn locks_early(&self) -> bool {
        !self.is_lazy() && self.protocol.control == Control::Pessimistic
    }
}

/// An error of the client library as one of ours.
pub fn refused(error: tokio_postgres::Error) -> Error {
    let Some(said) = error.as_db_error() else {
        return Error::new(SqlState::IO_ERROR, "the connection to the server failed")
            .with_detail(error.to_string());
    };
    let state = SqlState::parse(said.code().code()).unwrap_or(SqlState::IO_ERROR);
    let refused = Error::new(state, said.message());
    let refused = said.detail().into_iter().fold(refused, |error, detail| error.with_detail(detail));
    said.hint().into_iter().fold(refused, |error, hint| error.with_hint(hint))
}

/// Why trying again can help, in a few words: the table that a conflict was about, or who was in the way. `None`
/// for what is not a conflict with another transaction.
pub fn conflict(error: &tokio_postgres::Error) -> Option<String> {
    use tokio_postgres::error::SqlState as State;
    let said = error.as_db_error()?;
    if *said.code() == State::T_R_DEADLOCK_DETECTED {
        return Some("deadlock".into());
    }
    if *said.code() != State::T_R_SERIALIZATION_FAILURE {
        return None;
    }
    let detail = said.detail().unwrap_or_default();
    if detail.contains("gave way") {
        return Some("gave way to an older one".into());
    }
    // "statement 2 of process 11; stock #7 (s_w_id, s_i_id) = (1, 5): s_quantity was 5, is 4, changed by ..."
    let row = detail.split("; ").nth(1).and_then(|row| row.split(" (").next());
    let table = row.and_then(|row| row.split(" #").next()).filter(|table| !table.is_empty());
    Some(table.map_or("changed and changed back".into(), |table| format!("{table} changed")))
}
