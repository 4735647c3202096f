//! Asking nodes of a cluster, as a client of their servers.

use fabius::{Error, SqlState};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// How long one node has to answer; then another is asked.
pub const ANSWER: Duration = Duration::from_secs(1);

/// A connection, if there is one to be had soon.
pub async fn connect(conninfo: &str) -> Option<Client> {
    let connecting = timeout(ANSWER, tokio_postgres::connect(conninfo, NoTls));
    let (client, connection) = connecting.await.ok()?.ok()?;
    tokio::spawn(connection);
    Some(client)
}

/// How a node says that it and the cluster stand, if it does within a time.
pub async fn shown_by(client: &Client, within: Duration) -> Option<Value> {
    let asking = timeout(within, client.simple_query("SELECT fabius_cluster()"));
    asking.await.ok()?.ok()?.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => serde_json::from_str(row.get(0)?).ok(),
        _ => None,
    })
}

/// What a server refused, in its words; or why there is no connection to it.
pub fn failed(what: &str, error: &tokio_postgres::Error) -> Error {
    let Some(refused) = error.as_db_error() else {
        return Error::new(SqlState(*b"08006"), what).with_detail(error.to_string());
    };
    let state = refused.code().code().as_bytes().try_into().map_or(SqlState(*b"XX000"), SqlState);
    let detail = refused.detail().map_or_else(String::new, |detail| format!("; {detail}"));
    let error = Error::new(state, what).with_detail(format!("{}{detail}", refused.message()));
    match refused.hint() {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
