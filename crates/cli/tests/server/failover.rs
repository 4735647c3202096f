//! Drivers that are given all nodes of a cluster go on when the one that leads is killed, stands still, or hands the
//! lead on.

use crate::cluster::Cluster;
use crate::support::{PATIENCE, block_on, clients, has};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

/// What a client commits before it ends.
const COMMITS: i64 = 240;

fn program(name: &str) -> PathBuf {
    Path::new("tests/server/clients").join(name)
}

/// Runs a client, which says every number that it has committed, while the leader changes; all numbers are there,
/// once. The leader stands still only where the client has a limit of time for its statements.
fn goes_on(cluster: &mut Cluster, client: &mut Command, has_limit: bool) {
    cluster.leader();
    block_on(async {
        let writer = cluster.writer().await;
        let tables = "CREATE TABLE ledger (client integer, number bigint, PRIMARY KEY (client, number));
             CREATE TABLE hot (id integer PRIMARY KEY, total bigint NOT NULL);
             INSERT INTO hot VALUES (1, 0)";
        writer.batch_execute(tables).await.expect("the leader writes");
    });
    let mut process = client.stdout(Stdio::piped()).spawn().expect("the client starts");
    let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
    let (told, said) = mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| told.send(line)));
    let mut all = Vec::new();
    let mut await_commit = |number: i64| {
        while all.last().and_then(|line: &String| line.parse().ok()).is_none_or(|last: i64| last < number) {
            match said.recv_timeout(PATIENCE) {
                Ok(line) => all.push(line),
                Err(error) => panic!("the client says nothing more ({error}): {all:?}"),
            }
        }
    };
    await_commit(40);
    let first = cluster.leader();
    cluster.kill(first);
    await_commit(80);
    cluster.begin(first);
    await_commit(120);
    if has_limit {
        let second = cluster.leader();
        cluster.signal(second, "STOP");
        await_commit(160);
        cluster.signal(second, "CONT");
    }
    await_commit(180);
    let third = cluster.leader();
    let next = (third + 1) % 3 + 1;
    cluster.command(&["transfer", &next.to_string()]);
    await_commit(COMMITS);
    assert!(process.wait().expect("it ends").success());
    block_on(async {
        let reader = cluster.writer().await;
        let query = "SELECT count(*), max(number), (SELECT total FROM hot) FROM ledger";
        let row = reader.query_one(query, &[]).await.expect("the ledger");
        let found = (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2));
        assert_eq!(found, (COMMITS, COMMITS, COMMITS), "each number is there, once");
    });
}

/// Goal: psycopg 3, by libpq's list of hosts. It has no limit of time for statements of its own.
#[test]
fn psycopg_goes_on() {
    if has("psycopg", &clients().join("python.psycopg")) {
        let mut cluster = Cluster::start();
        let conninfo = format!("{} target_session_attrs=read-write", cluster.conninfo_of_all());
        let mut client = Command::new(clients().join("python/bin/python"));
        client.arg(program("failover.py")).args([&conninfo, &COMMITS.to_string()]);
        goes_on(&mut cluster, &mut client, false);
    }
}

/// Goal: JDBC, by its own list of hosts.
#[test]
fn jdbc_goes_on() {
    let jar = clients().join("postgresql.jar");
    if has("JDBC", &jar) {
        let mut cluster = Cluster::start();
        let classes = tempfile::tempdir().expect("a directory");
        let source = program("Failover.java");
        crate::support::succeed(Command::new("javac").arg("-d").arg(classes.path()).arg(source));
        let path = format!("{}:{}", classes.path().display(), jar.display());
        let limits = "connectTimeout=2&loginTimeout=2&socketTimeout=3";
        let hosts = cluster.places().join(",");
        let url = format!("jdbc:postgresql://{hosts}/fabius?user=tester&targetServerType=primary&{limits}");
        let mut client = Command::new("java");
        client.args(["-cp", &path, "Failover", &url, &COMMITS.to_string()]);
        goes_on(&mut cluster, &mut client, true);
    }
}

/// Goal: pgx, by libpq's list of hosts, with its own prepared statements.
#[test]
fn pgx_goes_on() {
    let client = clients().join("failover_pgx");
    if has("pgx", &client) {
        let mut cluster = Cluster::start();
        let conninfo =
            format!("{} target_session_attrs=read-write connect_timeout=2", cluster.conninfo_of_all());
        let mut client = Command::new(client);
        client.args([&conninfo, &COMMITS.to_string()]);
        goes_on(&mut cluster, &mut client, true);
    }
}
