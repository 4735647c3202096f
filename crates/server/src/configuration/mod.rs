//! The server's settings: what they are, and where they come from.
//!
//! ```text
//! default  <  file (TOML)  <  environment (FABIUS_*)  <  flags
//! ```
//!
//! [`SETTINGS`] has a row for each: its name, what it means, how it is read and shown. Flags, variables, keys of the
//! file and `--print-config` all come from there.

mod settings;
mod sources;

pub use settings::{SETTINGS, Setting};
pub use sources::{Effective, Given, effective};

use fabius::{Durability, EngineKind, Replication};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Where the database lives.
    pub directory: PathBuf,
    /// Where PostgreSQL clients connect.
    pub listen: SocketAddr,
    /// Where metrics and health are asked for.
    pub http: Option<SocketAddr>,
    /// The database's name.
    pub database: String,
    /// The strategy that runs calls.
    pub engine: EngineKind,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Threads of the database's own; `None`: one for each core.
    pub workers: Option<usize>,
    /// Threads that open the database; `None`: one for each core.
    pub recovery_threads: Option<usize>,
    /// Threads that write a checkpoint; `None`: one for each four cores.
    pub checkpoint_threads: Option<usize>,
    /// Growth of the log at which a checkpoint is taken.
    pub checkpoint_log_bytes: u64,
    /// How far back reads of the past reach; zero for nowhere.
    pub history: Duration,
    /// Connections at most.
    pub max_connections: usize,
    /// Transactions of several statements that go on at once while locks are waited for; four for each processor if
    /// nothing is said.
    pub transactions_at_once: Option<usize>,
    /// Of these, how many are kept for administrators.
    pub reserved_connections: usize,
    /// Users who may take a reserved connection.
    pub administrators: Vec<String>,
    /// A file with names and passwords; without one nobody needs a password.
    pub users: Option<PathBuf>,
    /// The certificate, PEM.
    pub tls_certificate: Option<PathBuf>,
    /// The certificate's key, PEM.
    pub tls_key: Option<PathBuf>,
    /// Whether connections without TLS are refused.
    pub tls_required: bool,
    /// When a call is run and answered in a cluster.
    pub replication: Replication,
    /// The certificate of the authority that vouches for the nodes of the cluster, PEM.
    pub peer_authority: Option<PathBuf>,
    /// This node's certificate for the others, PEM.
    pub peer_certificate: Option<PathBuf>,
    /// The private key of this node's certificate for the others, PEM.
    pub peer_key: Option<PathBuf>,
    /// How long a client may take to show who it is.
    pub authentication_timeout: Duration,
    /// `statement_timeout` of new sessions; zero is none.
    pub statement_timeout: Duration,
    /// `idle_in_transaction_session_timeout` of new sessions; zero is none.
    pub idle_in_transaction_session_timeout: Duration,
    /// `idle_session_timeout` of new sessions; zero is none.
    pub idle_session_timeout: Duration,
    /// The longest message of a client, bytes.
    pub max_message_bytes: u64,
    /// What one session may hold in memory, bytes.
    pub session_memory: u64,
    /// What all sessions together may hold.
    pub sessions_memory: u64,
    /// What rows may take; zero is without a bound, `None` half of what the system has left at the start.
    pub rows_memory: Option<u64>,
    /// What is taken from the system before the database is opened, bytes.
    pub reserved_memory: u64,
    /// How long running statements may go on when the server is told to stop.
    pub shutdown_timeout: Duration,
    /// What is logged: `info`, `warn`, `fabius_server=debug`.
    pub log: String,
    /// How.
    pub log_format: LogFormat,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            directory: "fabius-data".into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 5433)),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 5480))),
            database: "fabius".into(),
            engine: EngineKind::default(),
            durability: Durability::default(),
            workers: None,
            recovery_threads: None,
            checkpoint_threads: None,
            checkpoint_log_bytes: 1 << 30,
            history: Duration::ZERO,
            max_connections: 1000,
            transactions_at_once: None,
            reserved_connections: 3,
            administrators: vec!["postgres".into(), "fabius".into()],
            users: None,
            tls_certificate: None,
            tls_key: None,
            tls_required: false,
            replication: Replication::default(),
            peer_authority: None,
            peer_certificate: None,
            peer_key: None,
            authentication_timeout: Duration::from_secs(60),
            statement_timeout: Duration::ZERO,
            idle_in_transaction_session_timeout: Duration::ZERO,
            idle_session_timeout: Duration::ZERO,
            max_message_bytes: 128 << 20,
            session_memory: 1 << 30,
            sessions_memory: 2 << 30,
            rows_memory: None,
            reserved_memory: 0,
            shutdown_timeout: Duration::from_secs(10),
            log: "info".into(),
            log_format: LogFormat::Text,
        }
    }
}
