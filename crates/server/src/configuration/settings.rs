//! Every setting, one row each.

use super::{Configuration, LogFormat};
use crate::logging;
use fabius::quantity::{format_size, format_time, parse_size, parse_time};
use fabius::{Durability, EngineKind, Replication, THREADS_MAX};
use fabius_value::{Error, Result, SqlState};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Threads of the database's own, at most.
const WORKERS_MAX: usize = 1024;

/// A setting.
pub struct Setting {
    /// The setting's key in the file; the flag has `-` for `_`, the variable is in capitals behind `FABIUS_`.
    pub name: &'static str,
    /// What stands for its value in the help.
    pub value_name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Sets it from text.
    ///
    /// # Errors
    /// What it would take.
    pub set: fn(&mut Configuration, &str) -> Result<()>,
    /// Shows it as text that sets it.
    pub show: fn(&Configuration) -> String,
}

impl Setting {
    /// `--max-connections`, without the dashes in front.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// `FABIUS_MAX_CONNECTIONS`.
    pub fn variable(&self) -> String {
        format!("FABIUS_{}", self.name.to_uppercase())
    }
}

fn refused(expected: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("expected {expected}"))
}

fn address(text: &str) -> Result<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| refused("an address and a port, such as 127.0.0.1:5433, or a port from 0 to 65535"))
}

fn time(text: &str) -> Result<Duration> {
    parse_time(text).ok_or_else(|| refused("a time, such as 30s, 5min or 250ms; 0 for none"))
}

fn size(text: &str) -> Result<u64> {
    parse_size(text).ok_or_else(|| refused("a size, such as 64MB"))
}

/// What sessions may hold: less than this holds no statement.
fn session_size(text: &str) -> Result<u64> {
    size(text).and_then(|bytes| if bytes < 64 << 10 { Err(refused("at least 64kB")) } else { Ok(bytes) })
}

fn count(text: &str) -> Result<usize> {
    text.parse().map_err(|_| refused("a whole number"))
}

fn engine(text: &str) -> Result<EngineKind> {
    let names: Vec<&str> = EngineKind::ALL.iter().map(|kind| kind.name()).collect();
    text.parse().map_err(|_| refused(&format!("one of {}", names.join(", "))))
}

fn durability(text: &str) -> Result<Durability> {
    text.parse().map_err(|_| refused("fsync or none"))
}

fn replication(text: &str) -> Result<Replication> {
    text.parse().map_err(|_| refused("sync or async"))
}

fn workers(text: &str) -> Result<Option<usize>> {
    threads(text, WORKERS_MAX)
}

fn threads(text: &str, most: usize) -> Result<Option<usize>> {
    match (text, text.parse()) {
        ("auto", _) => Ok(None),
        (_, Ok(count)) if (1..=most).contains(&count) => Ok(Some(count)),
        _ => Err(refused(&format!("auto, or a whole number from 1 to {most}"))),
    }
}

fn at_once(text: &str) -> Result<Option<usize>> {
    match (text, text.parse()) {
        ("auto", _) => Ok(None),
        (_, Ok(count @ 1..)) => Ok(Some(count)),
        _ => Err(refused("auto, or a whole number from 1; as many as max_connections for no bound")),
    }
}

fn truth(text: &str) -> Result<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err(refused("true or false")),
    }
}

fn optional_path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
}

fn show_path(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

macro_rules! settings {
    ($($name:ident $value_name:literal $help:literal, $set:expr, $show:expr;)*) => {
        /// Every setting, in the order of the help.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            value_name: $value_name,
            help: $help,
            set: |configuration, text| {
                let set: fn(&str) -> Result<_> = $set;
                configuration.$name = set(text)?;
                Ok(())
            },
            show: |configuration| {
                let show: fn(&_) -> String = $show;
                show(&configuration.$name)
            },
        }),*];
    };
}

settings! {
    directory "DIRECTORY" "Where the database lives; it is begun there if there is none",
        |text| Ok(text.into()), |path: &PathBuf| path.display().to_string();
    listen "ADDRESS" "Where PostgreSQL clients connect: ADDRESS:PORT, or a port of 127.0.0.1; elsewhere only with users and passwords",
        address, ToString::to_string;
    http "ADDRESS" "Where /metrics and /health are; off for nowhere",
        |text| if text == "off" { Ok(None) } else { address(text).map(Some) },
        |address: &Option<SocketAddr>| address.map_or("off".into(), |address| address.to_string());
    database "NAME" "The name clients connect to",
        |text| if text.is_empty() { Err(refused("a name")) } else { Ok(text.to_string()) }, Clone::clone;
    engine "ENGINE" "The strategy that runs statements: lazy, 2pl, occ, split, locking, graph, partitioned, dora",
        engine, ToString::to_string;
    durability "WHEN" "When a commit is acknowledged: fsync (it is on the disk) or none (it is decided)",
        durability, ToString::to_string;
    workers "N" "Threads that do deferred work; auto for one for each core",
        workers, |workers: &Option<usize>| workers.map_or("auto".into(), |count| count.to_string());
    recovery_threads "N" "Threads that load the newest checkpoint and replay the log at the start; auto for one for each core",
        |text| threads(text, THREADS_MAX),
        |threads: &Option<usize>| threads.map_or("auto".into(), |count| count.to_string());
    checkpoint_threads "N" "Threads that write a checkpoint; auto for one for each four cores",
        |text| threads(text, THREADS_MAX),
        |threads: &Option<usize>| threads.map_or("auto".into(), |count| count.to_string());
    checkpoint_log_bytes "SIZE" "Growth of the log at which a checkpoint is taken",
        size, |bytes| format_size(*bytes);
    history "TIME" "How far back reads of the past reach (fabius.as_of); 0 for nowhere",
        time, |time| format_time(*time);
    max_connections "N" "Connections at most", count, ToString::to_string;
    transactions_at_once "N" "Transactions of several statements that go on at once while locks are waited for; others wait at their BEGIN; auto for four for each processor",
        at_once, |places: &Option<usize>| places.map_or("auto".into(), |count| count.to_string());
    reserved_connections "N" "How many of these are kept for administrators", count, ToString::to_string;
    administrators "NAMES" "Users who may take a reserved connection, separated by commas",
        |text| Ok(text.split(',').map(|name| name.trim().to_string()).filter(|name| !name.is_empty()).collect()),
        |names: &Vec<String>| names.join(",");
    users "FILE" "Names and passwords, NAME:PASSWORD or NAME:SCRAM-SHA-256$... on each line; without it, no password",
        |text| Ok(optional_path(text)), |path: &Option<PathBuf>| show_path(path.as_ref());
    tls_certificate "FILE" "The server's certificate and those that vouch for it, PEM",
        |text| Ok(optional_path(text)), |path: &Option<PathBuf>| show_path(path.as_ref());
    tls_key "FILE" "The certificate's private key, PEM",
        |text| Ok(optional_path(text)), |path: &Option<PathBuf>| show_path(path.as_ref());
    tls_required "BOOL" "Whether connections without TLS are refused", truth, ToString::to_string;
    replication "sync|async" "When a node of a cluster that leads answers: sync, when a majority has synced; async, when it has alone",
        replication, ToString::to_string;
    peer_authority "FILE" "Of a node of a cluster: the authority that vouches for all nodes, PEM; without it, plain TCP",
        |text| Ok(optional_path(text)), |path: &Option<PathBuf>| show_path(path.as_ref());
    peer_certificate "FILE" "This node's certificate for the others, with the name node-N for node N, PEM",
        |text| Ok(optional_path(text)), |path: &Option<PathBuf>| show_path(path.as_ref());
    peer_key "FILE" "The private key of peer_certificate, PEM",
        |text| Ok(optional_path(text)), |path: &Option<PathBuf>| show_path(path.as_ref());
    authentication_timeout "TIME" "How long a client may take to show who it is",
        time, |time| format_time(*time);
    statement_timeout "TIME" "How long a statement may take, unless the session says otherwise; 0 for ever",
        time, |time| format_time(*time);
    idle_in_transaction_session_timeout "TIME" "How long a session may leave a transaction open and idle; 0 for ever",
        time, |time| format_time(*time);
    idle_session_timeout "TIME" "How long a session may be idle; 0 for ever", time, |time| format_time(*time);
    max_message_bytes "SIZE" "The longest message of a client; a longer one ends its connection",
        |text| match size(text)? {
            bytes @ 10_000..=1_073_741_823 => Ok(bytes),
            _ => Err(refused("a size from 10000 bytes to 1 GB")),
        },
        |bytes| format_size(*bytes);
    session_memory "SIZE" "What one session may hold in memory: rows, what its transaction keeps, sorts and joins, a statement that is planned",
        session_size, |bytes| format_size(*bytes);
    sessions_memory "SIZE" "What all sessions together may hold so", session_size, |bytes| format_size(*bytes);
    rows_memory "SIZE" "What rows may take in memory, beyond which writes but DELETE are refused; 0 for no bound, auto for half of what is there at the start",
        |text| if text == "auto" { Ok(None) } else { size(text).map(Some) },
        |bytes: &Option<u64>| bytes.map_or("auto".into(), format_size);
    reserved_memory "SIZE" "Memory taken from the system at the start and kept, so that a spike does not wait for it",
        size, |bytes| format_size(*bytes);
    shutdown_timeout "TIME" "How long running statements may go on when the server is told to stop",
        time, |time| format_time(*time);
    log "FILTER" "What is logged: error, warn, info, debug, or by module as in fabius_server=debug",
        |text| logging::filter(text).map(|_| text.to_string()), Clone::clone;
    log_format "FORMAT" "How logs are written: text or json",
        |text| match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(refused("text or json")),
        },
        |format| match format { LogFormat::Text => "text".into(), LogFormat::Json => "json".into() };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what each setting shows sets it to the same.
    #[test]
    fn settings_read_what_they_show() {
        let configuration = Configuration::default();
        for setting in SETTINGS {
            let mut again = configuration.clone();
            let shown = (setting.show)(&configuration);
            (setting.set)(&mut again, &shown).unwrap_or_else(|error| panic!("{}: {error}", setting.name));
            assert_eq!(again, configuration, "{}", setting.name);
        }
    }
}
