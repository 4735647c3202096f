//! Metrics and health, on a port of their own.
//!
//! | path | answers |
//! |---|---|
//! | `/metrics` | counters, in Prometheus' text format |
//! | `/health`, `/health/ready` | 200 `ready`, or 503 `closing` while the server ends |
//! | `/health/live` | 200 `live` as long as the process answers |

use crate::server::Shared;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Answers until dropped.
pub async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(ready))
        .route("/health/ready", get(ready))
        .route("/health/live", get(async || "live\n"))
        .with_state(shared);
    if let Err(error) = axum::serve(listener, router).await {
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
