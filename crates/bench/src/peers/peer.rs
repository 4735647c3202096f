//! A database under measurement: what it says of itself.

use crate::interactive::{client, clients};
use crate::server_process::ServerProcess;
use fabius::Result;
use serde_json::Value as Json;
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Settings of PostgreSQL that measurements depend on.
const POSTGRES: &[&str] =
    &["fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "default_transaction_isolation"];

/// Those of Fabius, which takes most of PostgreSQL's and does nothing with them.
const FABIUS: &[&str] = &["default_transaction_isolation", "fabius.concurrency"];

/// A database.
pub struct Peer {
    /// The peer's name in tables.
    pub name: String,
    /// What `version()` says.
    pub version: String,
    /// Settings and their values.
    pub settings: Vec<(&'static str, String)>,
}

impl Peer {
    /// Asks a server.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn ask(server: &ServerProcess) -> Result<Peer> {
        let parameters =
            format!("host=127.0.0.1 port={} user={} dbname={}", server.port, server.user, server.database());
        clients::once(async {
            let (sql, connection) =
                tokio_postgres::connect(&parameters, NoTls).await.map_err(client::refused)?;
            tokio::spawn(connection);
            let version = shown(&sql, "SELECT version()").await.map_err(client::refused)?;
            let mut settings = Vec::new();
            let names = if server.name == "fabius" { FABIUS } else { POSTGRES };
            for name in names {
                let value = shown(&sql, &format!("SHOW {name}")).await.map_err(client::refused)?;
                settings.push((*name, value));
            }
            settings.extend(server.settings.iter().cloned());
            Ok(Peer { name: server.name.clone(), version, settings })
        })
    }

    /// `fsync on, shared_buffers 128MB`
    pub fn settings_text(&self) -> String {
        let settings: Vec<String> =
            self.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        settings.join(", ")
    }

    /// As a JSON object.
    pub fn settings_json(&self) -> Json {
        self.settings.iter().map(|(name, value)| (name.to_string(), Json::from(value.as_str()))).collect()
    }
}

/// The one value of a statement.
async fn shown(sql: &tokio_postgres::Client, text: &str) -> Result<String, tokio_postgres::Error> {
    let messages = sql.simple_query(text).await?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(row.unwrap_or_default().to_string())
}
