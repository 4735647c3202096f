//! Databases of which three servers hold a copy, each commit on two of them at least before it is acknowledged.

use crate::cluster_process::{ClusterProcess, Wiring};
use crate::interactive::{client, clients};
use crate::server_process::{ServerProcess, finish, postgres_directory};
use fabius::{Error, Result, SqlState};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio_postgres::{NoTls, SimpleQueryMessage};

/// Servers that hold a copy.
const COPIES: u64 = 3;
/// How long it may take until one of them leads.
const PATIENCE: Duration = Duration::from_secs(30);

/// Three nodes of a Fabius cluster; it is the one that leads, with the others beside it.
///
/// # Errors
/// If they do not start, or none of them leads within half a minute.
pub fn fabius(program: &Path, parent: Option<&Path>) -> Result<ServerProcess> {
    let mut nodes = ClusterProcess::start(program, parent, COPIES as usize, Wiring::Direct, &[])?.nodes;
    for node in &mut nodes {
        node.settings = vec![("nodes", COPIES.to_string()), ("durability", "fsync on a majority".into())];
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        for at in 0..nodes.len() {
            if shown(&nodes[at], "SELECT pg_is_in_recovery()")? == "f" {
                let mut leader = nodes.swap_remove(at);
                leader.others = nodes;
                return Ok(leader);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Error::new(SqlState::IO_ERROR, "no node of the cluster leads"))
}

/// A PostgreSQL with two standbys, one of which has to have synced each commit.
///
/// # Errors
/// If they cannot be set up.
pub fn postgres(programs: &Path, parent: Option<&Path>, connections: usize) -> Result<ServerProcess> {
    let mut primary = ServerProcess::postgres(programs, parent, connections)?;
    for standby in 1..COPIES {
        let directory = postgres_directory(parent)?;
        let mut copy = Command::new(programs.join("pg_basebackup"));
        let from = format!(
            "host=127.0.0.1 port={} user={} application_name=standby{standby}",
            primary.port, primary.user
        );
        copy.arg("-D")
            .arg(directory.path().join("data"))
            .args(["-R", "-X", "stream", "-c", "fast", "-d", &from]);
        finish(&mut copy, &directory)?;
        primary.others.push(ServerProcess::serve_postgres(programs, directory, connections)?);
    }
    let names = "ANY 1 (standby1, standby2)";
    shown(&primary, &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"))?;
    shown(&primary, "SELECT pg_reload_conf()")?;
    primary.settings = vec![("synchronous_standby_names", names.into())];
    let begun = Instant::now();
    let count = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'";
    while shown(&primary, count)? != (COPIES - 1).to_string() {
        if begun.elapsed() > PATIENCE {
            return Err(Error::new(SqlState::IO_ERROR, "the standbys do not follow"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(primary)
}

/// The one value of a statement.
fn shown(server: &ServerProcess, text: &str) -> Result<String> {
    let parameters =
        format!("host=127.0.0.1 port={} user={} dbname={}", server.port, server.user, server.database());
    clients::once(async {
        let (sql, connection) = tokio_postgres::connect(&parameters, NoTls).await.map_err(client::refused)?;
        tokio::spawn(connection);
        let messages = sql.simple_query(text).await.map_err(client::refused)?;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        });
        Ok(row.unwrap_or_default().to_string())
    })
}
