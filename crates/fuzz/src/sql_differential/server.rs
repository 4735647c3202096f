//! The two servers that are compared: a PostgreSQL of our own, and Fabius as a process of this very program, so that
//! what ends the server does not end the comparison.

use super::session::{Answer, Session};
use fabius::{Database, Options};
use fabius_bench::peers::pgbench::find_postgres;
use fabius_bench::server_process::ServerProcess;
use fabius_server::{Configuration, Prepared, Server};
use fabius_sql::connection::SqlDatabase;
use std::io::{BufRead, BufReader, Read, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The word that makes the program of this crate a server.
pub const SERVE: &str = "serve-for-differential";

/// The word behind it that makes it one whose queries are not optimized.
const AS_WRITTEN: &str = "as-written";

/// How long PostgreSQL may take until it takes sessions.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fabius in a process of its own, with a database in memory.
pub struct Fabius {
    child: Child,
    port: u16,
    /// What it says on its standard error, such as what it panicked with.
    log: PathBuf,
}

impl Fabius {
    /// Starts it.
    ///
    /// # Errors
    /// If the program does not start.
    pub fn start(program: &Path, log: PathBuf) -> Result<Fabius> {
        Fabius::start_with(program, &[SERVE], log)
    }

    /// Starts one whose queries run as they are written.
    ///
    /// # Errors
    /// If the program does not start.
    pub fn start_as_written(program: &Path, log: PathBuf) -> Result<Fabius> {
        Fabius::start_with(program, &[SERVE, AS_WRITTEN], log)
    }

    fn start_with(program: &Path, arguments: &[&str], log: PathBuf) -> Result<Fabius> {
        let said = std::fs::File::create(&log)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = line.trim().parse();
        let port = port.map_err(|_| std::io::Error::other("Fabius did not start; see its log"))?;
        Ok(Fabius { child, port, log })
    }

    pub fn session(&self) -> Result<Session> {
        Session::begin(self.port, "fabius", "fabius")
    }

    /// The last lines that it has said.
    pub fn last_words(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }
}

impl Drop for Fabius {
    fn drop(&mut self) {
        // Nothing happens to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stack of each thread, as `fabius serve` has it.
const STACK_BYTES: usize = 64 << 20;

/// Serves a database in memory, says the port on standard output, and ends when standard input does: with the process
/// that has started this one.
///
/// # Errors
/// If the server does not start.
pub fn serve() -> fabius::Result<()> {
    if std::env::args().any(|argument| argument == AS_WRITTEN) {
        fabius_sql_query::plan_as_written();
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).thread_stack_size(STACK_BYTES).enable_all().build();
    let runtime = runtime.expect("threads");
    runtime.block_on(async {
        let database = SqlDatabase::open(Arc::new(Database::in_memory(Options::default()))).await?;
        let listen = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let configuration = Configuration { listen, http: None, ..Configuration::default() };
        let server = Server::start(Prepared::of(configuration)?, database)?;
        println!("{}", server.address().port());
        let ends = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let _ = ends.await;
        Ok(())
    })
}

/// PostgreSQL, if it is on this machine.
pub struct Postgres {
    server: ServerProcess,
}

impl Postgres {
    /// Starts one with a database for each worker, if there is one.
    ///
    /// # Errors
    /// If it is there, but does not start.
    pub fn start(workers: usize) -> Result<Option<Postgres>> {
        let Some(programs) = find_postgres() else { return Ok(None) };
        let server = ServerProcess::postgres(&programs, None, workers);
        let server = server.map_err(|error| std::io::Error::other(format!("{error:?}")))?;
        let postgres = Postgres { server };
        let begun = Instant::now();
        // It takes connections before it takes sessions.
        let mut admin = loop {
            match postgres.connect("postgres") {
                Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(50)),
                other => break other?,
            }
        };
        for worker in 0..workers {
            // Text is compared by its bytes, and letters are those of Unicode.
            let create = format!(
                "CREATE DATABASE worker{worker} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'"
            );
            if let Answer::Refused { message, .. } = admin.say(&create) {
                return Err(std::io::Error::other(message));
            }
        }
        Ok(Some(postgres))
    }

    /// A session of a worker, which does not wait for the disk.
    ///
    /// # Errors
    /// If it does not take it.
    pub fn session(&self, worker: usize) -> Result<Session> {
        let mut session = self.connect(&format!("worker{worker}"))?;
        session.say("SET synchronous_commit = off");
        session.say("SET statement_timeout = '5s'");
        session.say("SET client_min_messages = error");
        session.say("SET jit = off");
        Ok(session)
    }

    fn connect(&self, database: &str) -> Result<Session> {
        Session::begin(self.server.port, &self.server.user, database)
    }
}
