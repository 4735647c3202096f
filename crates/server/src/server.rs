//! The server: its sockets, its limits, its end.
//!
//! ```text
//! running --shut_down--> closing: idle sessions end, running statements may finish
//!                           | shutdown_timeout, or told to hurry
//!                           v
//!                        closing now: only commits that are in the order already are waited for, and no longer
//!                                     than `FORCED_END`; `HURRIED_END` if told so
//! ```

use crate::admission::Admission;
use crate::client;
use crate::configuration::Configuration;
use crate::http;
use crate::metrics::Metrics;
use crate::registry::{Ending, Registry};
use crate::shared::Shared;
use crate::tls::{self, Tls};
use crate::users::Users;
use fabius_sql::connection::SqlDatabase;
use fabius_value::{Error, Result, SqlState};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Connections beyond the limit that may wait to be told so, or to bring a cancel request.
const STRANGERS_MAX: usize = 100;
/// Connections that wait to be accepted, at most.
const ACCEPT_QUEUE: u32 = 1024;
/// Files and sockets that connections leave to everything else: the log, checkpoints, results that are too large for
/// memory, the HTTP port.
const OTHERS_OPEN: usize = 128 + http::CONNECTIONS_MAX;
/// How long sessions have to end once they are told to end now.
const FORCED_END: Duration = Duration::from_secs(5);
/// How long sessions of a server that was told to hurry have to end.
pub const HURRIED_END: Duration = Duration::from_secs(1);
/// How often histograms are taken in.
const UPKEEP: Duration = Duration::from_secs(5);

/// All that a server needs besides its database. What can be refused is refused here, before a database is begun;
/// addresses are taken, but nobody is let in yet.
pub struct Prepared {
    configuration: Configuration,
    users: Option<Users>,
    tls: Option<Tls>,
    place: Place,
    http_place: Option<Place>,
}

impl Prepared {
    /// Reads what the configuration names, and takes its addresses.
    ///
    /// # Errors
    /// Users or certificates that cannot be read, addresses that are taken, too few files that may be open.
    pub fn of(mut configuration: Configuration) -> Result<Prepared> {
        let limit = fabius_env::descriptors::raise_limit();
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        configuration.max_connections = connections_within(limit, &configuration)?;
        let users = configuration.users.as_deref().map(Users::read).transpose()?;
        let tls = tls::configure(&configuration)?;
        let place = Place::take(configuration.listen, "listen")?;
        let http_place = configuration.http.map(|address| Place::take(address, "http")).transpose()?;
        Ok(Prepared { configuration, users, tls, place, http_place })
    }
}

/// An address that is this process's own.
struct Place {
    socket: TcpSocket,
    address: SocketAddr,
    setting: &'static str,
}

impl Place {
    fn take(address: SocketAddr, setting: &'static str) -> Result<Place> {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let bound = socket.and_then(|socket| {
            // Connections of a server that was here before may still be on their way out.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(socket)
        });
        let socket = bound.map_err(|error| refused(address, setting, &error))?;
        Ok(Place { socket, address, setting })
    }

    /// Lets clients in. Runs on the tokio runtime that it is called on.
    fn listen(self) -> Result<TcpListener> {
        let Place { socket, address, setting } = self;
        socket.listen(ACCEPT_QUEUE).map_err(|error| refused(address, setting, &error))
    }
}

fn refused(address: SocketAddr, setting: &str, error: &std::io::Error) -> Error {
    let why = match error.kind() {
        ErrorKind::AddrInUse => "something listens there already; ",
        _ => "",
    };
    Error::new(SqlState::IO_ERROR, format!("cannot listen on {address}"))
        .with_detail(error.to_string())
        .with_hint(format!("{why}choose another address with --{setting} ADDRESS"))
}

/// Whether a server that ended was told to hurry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// It had the time that it wanted.
    No,
    /// It was.
    Hurried,
}

/// A server that is running; dropping it ends it at once.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    http_address: Option<SocketAddr>,
    tasks: Vec<JoinHandle<()>>,
}

impl Server {
    /// Begins to listen. Runs on the tokio runtime that it is called on.
    ///
    /// # Errors
    /// Addresses that somebody else began to listen on meanwhile.
    pub fn start(prepared: Prepared, sql: Arc<SqlDatabase>) -> Result<Server> {
        let Prepared { configuration, users, tls, place, http_place } = prepared;
        let listener = place.listen()?;
        let http_listener = http_place.map(Place::listen).transpose()?;
        let address = listener.local_addr().unwrap_or(configuration.listen);
        let http_address = http_listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let metrics = Metrics::default();
        let places = configuration.transactions_at_once;
        let admission = Arc::new(Admission::new(places, metrics.held_back.clone()));
        let shared = Arc::new(Shared {
            configuration,
            sql,
            registry: Registry::default(),
            metrics,
            users,
            tls,
            admission,
            sockets: AtomicUsize::new(0),
            ending: watch::Sender::new(Ending::No),
        });
        let others = Arc::downgrade(&shared);
        shared.sql.interrupt_by(move |process, ends| {
            let process = u32::try_from(process).unwrap_or_default();
            others.upgrade().is_some_and(|shared| shared.registry.interrupt(process, ends))
        });
        let mut tasks = vec![tokio::spawn(accept(listener, shared.clone()))];
        tasks.extend(http_listener.map(|listener| tokio::spawn(http::serve(listener, shared.clone()))));
        tasks.push(tokio::spawn(upkeep(shared.clone())));
        tracing::info!(%address, "listening");
        Ok(Server { shared, address, http_address, tasks })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics and health are.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// What all connections share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Ends: takes no more connections, lets running statements finish for `shutdown_timeout` or until `hurry` returns,
    /// then ends what is left. Commits that are in the order are waited for, unless they take longer than
    /// [`FORCED_END`]; [`HURRIED_END`] after a `hurry`, and not at all after another one.
    pub async fn shut_down(self, mut hurry: impl AsyncFnMut()) -> Haste {
        tracing::info!("shutting down");
        self.shared.ending.send_replace(Ending::Soon);
        self.shared.registry.end(Ending::Soon);
        let mut tasks = self.tasks.iter();
        // Nobody new comes in once the listener is closed.
        if let Some(accepting) = tasks.next() {
            accepting.abort();
        }
        let grace = self.shared.configuration.shutdown_timeout;
        let mut haste = Haste::No;
        tokio::select! {
            () = self.empty() => {}
            () = tokio::time::sleep(grace) => tracing::warn!("statements still run; they are ended now"),
            () = hurry() => {
                tracing::warn!("told to hurry: statements that still run are ended");
                haste = Haste::Hurried;
            }
        }
        self.shared.ending.send_replace(Ending::Now);
        self.shared.registry.end(Ending::Now);
        let patience = if haste == Haste::Hurried { HURRIED_END } else { FORCED_END };
        tokio::select! {
            () = self.empty() => {}
            () = tokio::time::sleep(patience) => {
                tracing::warn!(sockets = self.shared.sockets.load(Acquire), "connections did not end in time");
            }
            () = hurry() => {
                tracing::warn!("told to hurry: connections that still end are not waited for");
                haste = Haste::Hurried;
            }
        }
        self.tasks.iter().for_each(JoinHandle::abort);
        haste
    }

    /// Returns when no connection is left.
    async fn empty(&self) {
        let mut pause = Duration::from_millis(1);
        while self.shared.sockets.load(Acquire) > 0 {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ending.send_replace(Ending::Now);
        self.shared.registry.end(Ending::Now);
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// How many connections there is room for, at most as many as are wanted.
///
/// # Errors
/// `53000` if the process may open so few files that only reserved connections would be left.
fn connections_within(open_max: usize, configuration: &Configuration) -> Result<usize> {
    let wanted = configuration.max_connections;
    let room = open_max.saturating_sub(OTHERS_OPEN + STRANGERS_MAX);
    if room >= wanted {
        return Ok(wanted);
    }
    let needed = wanted + OTHERS_OPEN + STRANGERS_MAX;
    if room <= configuration.reserved_connections {
        return Err(Error::new(
            SqlState(*b"53000"),
            "this process may open too few files to take connections",
        )
        .with_detail(format!("it may open {open_max}; max_connections = {wanted} needs {needed}"))
        .with_hint("raise the limit of open files (ulimit -n, or LimitNOFILE of the service)"));
    }
    tracing::warn!(
        "this process may open {open_max} files: at most {room} connections are taken; max_connections = {wanted} \
         needs {needed}: raise the limit of open files (ulimit -n, or LimitNOFILE of the service)"
    );
    Ok(room)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => admit(stream, peer, &shared),
            // Out of file descriptors, most likely: others have to go first.
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// One socket that is counted as long as it lives.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sockets.fetch_sub(1, AcqRel);
    }
}

fn admit(stream: TcpStream, peer: SocketAddr, shared: &Arc<Shared>) {
    shared.metrics.accepted.increment(1);
    let before = shared.sockets.fetch_add(1, AcqRel);
    let counted = Counted(shared.clone());
    if before >= shared.configuration.max_connections + STRANGERS_MAX {
        shared.metrics.rejected.increment(1);
        return;
    }
    // What is sent is sent whole; waiting for more would only delay it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    if let Err(error) = socket2::SockRef::from(&stream).set_keepalive(true) {
        tracing::debug!(%error, "SO_KEEPALIVE");
    }
    let shared = shared.clone();
    tokio::spawn(async move {
        client::serve(stream, peer, shared).await;
        drop(counted);
    });
}

async fn upkeep(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        shared.metrics.upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no more connections are taken than there are files left for; a server that could take none says so.
    #[test]
    fn connections_are_bounded_by_open_files() {
        let configuration =
            Configuration { max_connections: 1000, reserved_connections: 3, ..Configuration::default() };
        let within = |open| connections_within(open, &configuration).map_err(|error| error.state());
        let others = OTHERS_OPEN + STRANGERS_MAX;
        assert_eq!(within(usize::MAX), Ok(1000));
        assert_eq!(within(1000 + others), Ok(1000));
        assert_eq!(within(1024), Ok(1024 - others));
        assert_eq!(within(4 + others), Ok(4));
        assert_eq!(within(3 + others), Err(SqlState(*b"53000")));
        assert_eq!(within(20), Err(SqlState(*b"53000")));
    }
}
