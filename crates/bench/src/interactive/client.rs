//! A connection, its interface, and the network's delay.

use fabius::{Error, Result, SqlState};
use std::fmt;
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
    /// Values that it has read, and values to write.
    Conventional,
    /// Expressions and conditions.
    Lsd,
    /// The same, assuming what conditions answer.
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
    /// OCC and 2PL, conventional and with LSD.
    pub const FOUR: [Protocol; 4] = [
        Protocol { control: Control::Optimistic, interface: Interface::Conventional },
        Protocol { control: Control::Pessimistic, interface: Interface::Conventional },
        Protocol { control: Control::Optimistic, interface: Interface::Lsd },
        Protocol { control: Control::Pessimistic, interface: Interface::Lsd },
    ];

    /// OCC-LSD+.
    pub const SPECULATIVE: Protocol =
        Protocol { control: Control::Optimistic, interface: Interface::Speculative };

    fn setting(self) -> &'static str {
        match (self.control, self.interface) {
            (Control::Optimistic, Interface::Conventional) => "conventional_optimistic",
            (Control::Pessimistic, Interface::Conventional) => "conventional_pessimistic",
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
            Interface::Conventional => "",
            Interface::Lsd => "-LSD",
            Interface::Speculative => "-LSD+",
        };
        write!(f, "{control}{interface}")
    }
}

/// A connection.
pub struct Client {
    /// The connection; what is sent through [`Client::round`] is held back.
    pub sql: tokio_postgres::Client,
    /// Its protocol.
    pub protocol: Protocol,
    delay: Duration,
}

impl Client {
    /// Connects to a server on the loopback address.
    ///
    /// # Errors
    /// What the server says.
    pub async fn connect(port: u16, protocol: Protocol, delay: Duration) -> Result<Client> {
        let parameters = format!("host=127.0.0.1 port={port} user=fabius dbname=fabius");
        let (sql, connection) = tokio_postgres::connect(&parameters, NoTls).await.map_err(refused)?;
        tokio::spawn(connection);
        sql.batch_execute(&format!("SET fabius.concurrency = '{}'", protocol.setting()))
            .await
            .map_err(refused)?;
        Ok(Client { sql, protocol, delay })
    }

    /// Waits for what was sent in one message, after the network's delay. Statements in it are joined futures,
    /// which the connection sends one behind the other without waiting.
    pub async fn round<T>(&self, message: impl Future<Output = T>) -> T {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        message.await
    }

    /// Whether the interface is LSD's.
    pub fn is_lazy(&self) -> bool {
        self.protocol.interface != Interface::Conventional
    }

    /// Ends a transaction that failed.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn roll_back(&self) -> Result<(), tokio_postgres::Error> {
        self.round(self.sql.batch_execute("ROLLBACK")).await
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

/// Whether trying again can help: a conflict with another transaction.
pub fn is_conflict(error: &tokio_postgres::Error) -> bool {
    use tokio_postgres::error::SqlState as State;
    error.code().is_some_and(|code| {
        *code == State::T_R_SERIALIZATION_FAILURE || *code == State::T_R_DEADLOCK_DETECTED
    })
}
