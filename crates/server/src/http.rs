//! Metrics and health, on a port of their own.
//!
//! | path | answers |
//! |---|---|
//! | `/metrics` | counters, in Prometheus' text format |
//! | `/health`, `/health/ready` | 200 `ready`, or 503 `closing` while the server ends |
//! | `/health/leader` | 200 `leads` if this is the node that can be written to, or 503 `follows` |
//! | `/health/live` | 200 `live` as long as the process answers |

use crate::shared::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::Listener;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at most; others are closed at once.
pub const CONNECTIONS_MAX: usize = 64;

/// Answers until dropped.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(ready))
        .route("/health/ready", get(ready))
        .route("/health/leader", get(leader))
        .route("/health/live", get(async || "live\n"))
        .with_state(shared);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    if let Err(error) = axum::serve(Bounded { listener, places }, router).await {
        tracing::warn!(%error, "metrics and health are no longer served");
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let text = shared.metrics.render(shared.sql.database());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

async fn ready(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    match shared.is_closing() {
        false => (StatusCode::OK, "ready\n"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "closing\n"),
    }
}

async fn leader(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    match shared.sql.database().leads() {
        true => (StatusCode::OK, "leads\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "follows\n"),
    }
}

/// A listener that takes so many connections at a time.
struct Bounded {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Listener for Bounded {
    type Io = Placed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Placed, SocketAddr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            match self.places.clone().try_acquire_owned() {
                Ok(place) => return (Placed { stream, _place: place }, peer),
                Err(_) => tracing::debug!(%peer, "too many connections to the HTTP port"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection, and its place until it ends.
struct Placed {
    stream: TcpStream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Placed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Placed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
