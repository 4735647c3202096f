//! One client, from its first byte to its last.
//!
//! ```text
//! opening --TLS?--> startup --password?--> ready <--> statement
//!    |                                       |
//!    +--> cancel request, done               +--> Terminate, FATAL, gone: done
//! ```

mod attendance;
mod authentication;
mod copying;
mod execution;
mod extended;
mod ready;
mod simple;
mod startup;
mod values;

use crate::admission::Place;
use crate::metrics::Metrics;
use crate::registry::Session;
use crate::shared::Shared;
use crate::wire::backend;
use crate::wire::socket::{Broken, Socket};
use crate::wire::stream::Stream;
use extended::Extended;
use fabius::Recall;
use fabius_sql::connection::Connection;
use fabius_value::{Error, SqlState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tracing::Instrument;

/// Why something did not go as the client wanted.
pub(crate) enum Failure {
    /// The statement failed; the connection goes on.
    Statement(Error),
    /// The connection ends, and the client is told why.
    Fatal(Error),
    /// The client is not there any more.
    Gone,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Statement(error)
    }
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Failure {
        Failure::Gone
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Failure {
        match broken {
            Broken::Gone => Failure::Gone,
            Broken::Length { length, most } if length as usize > most => Failure::Fatal(
                Error::new(SqlState::PROGRAM_LIMIT, "message is too long")
                    .with_detail(format!("it has {length} bytes, at most {most} are taken"))
                    .with_hint("send less at a time, or raise max_message_bytes"),
            ),
            Broken::Length { .. } => {
                Failure::Fatal(crate::wire::frontend::violation("invalid message length"))
            }
        }
    }
}

type Outcome<T = ()> = Result<T, Failure>;

/// A client that has shown who it is.
pub(crate) struct Client {
    socket: Socket,
    sql: Connection,
    /// Whether the statement that runs can be given up.
    recall: Arc<Recall>,
    session: Arc<Session>,
    shared: Arc<Shared>,
    extended: Extended,
    /// The place of the transaction that is open, among those under way.
    place: Option<Place>,
}

impl Client {
    fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.registry.leave(&self.session);
        self.metrics().connections.decrement(1.0);
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>) {
    let span = tracing::info_span!("client", %peer);
    converse(stream, shared).instrument(span).await;
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    let mut socket = Socket::new(Stream::Plain(stream));
    let limit = shared.configuration.authentication_timeout;
    // Both parts are boxed: a waiting client should not hold the room that the larger of them needs.
    let begun = tokio::time::timeout(limit, Box::pin(startup::begin(&mut socket, &shared))).await;
    let begun = begun.unwrap_or_else(|_| {
        tracing::debug!("gave up waiting for the client to show who it is");
        Err(Failure::Gone)
    });
    match begun {
        Ok(Some(begun)) => Box::pin(ready::run(begun.into_client(socket, shared))).await,
        Ok(None) => socket.close().await,
        Err(failure) => part(socket, failure).await,
    }
}

/// Tells the client why it goes, if it can be told.
async fn part(mut socket: Socket, failure: Failure) {
    match failure {
        Failure::Gone => {}
        Failure::Statement(error) | Failure::Fatal(error) => {
            tracing::info!(state = %error.state(), %error, "connection ends");
            backend::error_response(&mut socket.output, "FATAL", &error);
            // A client that does not read does not hold us up.
            let _ = tokio::time::timeout(ready::PARTING, socket.close()).await;
        }
    }
}
