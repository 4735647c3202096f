//! Three nodes of a cluster as real processes: any may be killed, and nothing that was acknowledged is lost or there
//! twice.
//!
//! `FABIUS_CLUSTER_KILLS=500` kills as often.

use crate::cluster_tls::{certificates_of, make_certificates};
use crate::support::{PATIENCE, block_on, connect, succeed};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

const NODES: usize = 3;
const CLIENTS: u64 = 4;

/// A cluster of `fabius serve` processes; killed when dropped. There is a place for one more node.
pub struct Cluster {
    directory: TempDir,
    /// Where clients reach nodes, and where nodes reach each other.
    ports: Vec<(u16, u16)>,
    /// The members that it began with, and its identity.
    members: String,
    id: String,
    processes: Vec<Option<Child>>,
    replication: &'static str,
}

impl Cluster {
    pub fn start() -> Cluster {
        Cluster::with_replication("sync")
    }

    fn with_replication(replication: &'static str) -> Cluster {
        let directory = tempfile::tempdir().expect("a directory");
        let port = || fabius_env::free_port().expect("a free port");
        let ports: Vec<_> = (0..=NODES).map(|_| (port(), port())).collect();
        let members = (1..).zip(&ports[..NODES]).map(|(node, (_, port))| format!("{node}=127.0.0.1:{port}"));
        let members = members.collect::<Vec<_>>().join(",");
        let mut id = None;
        make_certificates(directory.path(), "1,2,3,4");
        for node in 1..=NODES {
            let mut init = Command::new(env!("CARGO_BIN_EXE_fabius"));
            init.args(["cluster", "init", "--node", &node.to_string(), "--members", &members]);
            init.args(id.iter().flat_map(|id: &String| ["--id", id]))
                .arg(directory.path().join(node.to_string()));
            let said = succeed(&mut init);
            let printed = said.split("--id ").nth(1).and_then(|rest| rest.split_whitespace().next());
            id = Some(printed.expect("it prints the identity").to_string());
        }
        let (id, processes) = (id.expect("nodes"), (0..=NODES).map(|_| None).collect());
        let mut cluster = Cluster { directory, ports, members, id, processes, replication };
        (0..NODES).for_each(|node| cluster.begin(node));
        cluster
    }

    pub fn begin(&mut self, node: usize) {
        self.begin_by(node, Command::new(env!("CARGO_BIN_EXE_fabius")));
    }

    /// Starts a node none of whose files can grow beyond so many KiB, as if its disk were full then.
    fn begin_with_small_disk(&mut self, node: usize, kibibytes: u32) {
        let mut limited = Command::new("bash");
        let limit = format!("trap '' XFSZ; ulimit -f {kibibytes}; exec \"$0\" \"$@\"");
        limited.args(["-c", &limit, env!("CARGO_BIN_EXE_fabius")]);
        self.begin_by(node, limited);
    }

    fn begin_by(&mut self, node: usize, mut program: Command) {
        let listen = format!("127.0.0.1:{}", self.ports[node].0);
        let certificates = certificates_of(self.directory.path(), node as u64 + 1);
        let mut process = program
            .arg("serve")
            .arg(self.directory.path().join((node + 1).to_string()))
            .args(["--listen", &listen, "--http", "off", "--replication", self.replication])
            .arg("--peer-authority")
            .arg(certificates.authority)
            .arg("--peer-certificate")
            .arg(certificates.certificate)
            .arg("--peer-key")
            .arg(certificates.key)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        std::thread::spawn(move || lines.for_each(drop));
        self.processes[node] = Some(process);
    }

    /// Makes the directory of one more node, starts it, and gives its address.
    fn begin_newcomer(&mut self) -> String {
        let address = format!("127.0.0.1:{}", self.ports[NODES].1);
        let node = (NODES + 1).to_string();
        let mut init = Command::new(env!("CARGO_BIN_EXE_fabius"));
        init.args(["cluster", "init", "--node", &node, "--join", &address]);
        init.args(["--members", &self.members, "--id", &self.id]).arg(self.directory.path().join(&node));
        succeed(&mut init);
        self.begin(NODES);
        address
    }

    /// What a command says that changes the members or shows them.
    pub fn command(&self, arguments: &[&str]) -> String {
        succeed(&mut self.command_of(arguments))
    }

    /// Such a command, which may be refused.
    fn try_command(&self, arguments: &[&str]) {
        self.command_of(arguments).output().expect("it runs");
    }

    fn command_of(&self, arguments: &[&str]) -> Command {
        let ports: Vec<String> = self.ports.iter().map(|(port, _)| port.to_string()).collect();
        let nodes = format!("host={} port={}", ["127.0.0.1"; NODES + 1].join(","), ports.join(","));
        let mut command = Command::new(env!("CARGO_BIN_EXE_fabius"));
        command.arg("cluster").args(arguments).args(["--connect", &nodes]);
        command
    }

    pub fn kill(&mut self, node: usize) {
        if let Some(mut process) = self.processes[node].take() {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub fn signal(&self, node: usize, name: &str) {
        let id = self.processes[node].as_ref().expect("it is there").id().to_string();
        succeed(Command::new("kill").args([&format!("-{name}"), &id]));
    }

    pub fn conninfo_of(&self, node: usize) -> String {
        format!("host=127.0.0.1 port={} dbname=fabius user=tester", self.ports[node].0)
    }

    /// Where clients reach the nodes that it began with.
    pub fn places(&self) -> Vec<String> {
        self.ports[..NODES].iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect()
    }

    /// All of them, for a client that finds the one that leads.
    pub fn conninfo_of_all(&self) -> String {
        let ports: Vec<String> = self.ports[..NODES].iter().map(|(port, _)| port.to_string()).collect();
        let hosts = ["127.0.0.1"; NODES].join(",");
        format!("host={hosts} port={} dbname=fabius user=tester", ports.join(","))
    }

    /// A connection to the node that leads, once there is one.
    pub async fn writer(&self) -> Client {
        connect_patiently(&self.leads()).await
    }

    /// How to connect to whichever node leads: one string for each.
    fn leads(&self) -> Vec<String> {
        let leads = |node| format!("{} target_session_attrs=read-write", self.conninfo_of(node));
        (0..NODES).map(leads).collect()
    }

    /// How to connect to each of the nodes that it began with, whether it leads or not.
    fn any(&self) -> Vec<String> {
        (0..NODES).map(|node| self.conninfo_of(node)).collect()
    }

    /// The nodes that have ended by themselves, and how.
    fn ended(&mut self) -> Vec<(usize, ExitStatus)> {
        let how = |process: &mut Option<Child>| process.as_mut()?.try_wait().expect("its state");
        (0..).zip(&mut self.processes).filter_map(|(node, process)| Some((node, how(process)?))).collect()
    }

    /// The node that leads, once there is one.
    pub fn leader(&mut self) -> usize {
        self.leader_of(&(0..NODES).collect::<Vec<usize>>())
    }

    /// The one of these nodes that leads, once there is one.
    fn leader_of(&mut self, nodes: &[usize]) -> usize {
        let begun = Instant::now();
        loop {
            for &node in nodes {
                let conninfo = self.conninfo_of(node);
                let asked = block_on(async {
                    let (client, connection) = tokio_postgres::connect(&conninfo, NoTls).await.ok()?;
                    tokio::spawn(connection);
                    let rows = client.simple_query("SELECT pg_is_in_recovery()");
                    let rows = tokio::time::timeout(Duration::from_secs(1), rows).await.ok()?.ok()?;
                    rows.iter().find_map(|message| match message {
                        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
                        _ => None,
                    })
                });
                if asked.as_deref() == Some("f") {
                    return node;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "nobody leads; of the nodes, {:?} have ended", self.ended());
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..=NODES).for_each(|node| self.kill(node));
    }
}

/// Connects to the first node that fits, once there is one. A node that stands still takes connections and says
/// nothing, so each has its own time.
pub async fn connect_patiently(nodes: &[String]) -> Client {
    let begun = Instant::now();
    loop {
        for conninfo in nodes {
            let connecting = tokio_postgres::connect(conninfo, NoTls);
            if let Ok(Ok((client, connection))) =
                tokio::time::timeout(Duration::from_secs(1), connecting).await
            {
                tokio::spawn(connection);
                return client;
            }
        }
        assert!(begun.elapsed() < PATIENCE, "no node fits {nodes:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Goal: every node answers reads with what was committed anywhere, tables that were made elsewhere too; who does not
/// lead refuses definitions and says who does; at a checkpoint all find that they have the same.
#[test]
fn any_node_reads_and_one_defines() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        for round in 0..5 {
            let create = format!(
                "CREATE TABLE t{round} (id integer PRIMARY KEY, note text); INSERT INTO t{round} VALUES (1, 'new')"
            );
            writer.batch_execute(&create).await.expect("the leader writes");
            for node in 0..NODES {
                let reader = connect(&cluster.conninfo_of(node)).await;
                let row =
                    reader.query_one(&format!("SELECT note FROM t{round}"), &[]).await.expect("it reads");
                assert_eq!(row.get::<_, &str>(0), "new");
                if node == leader {
                    continue;
                }
                let refused = reader
                    .batch_execute(&format!("DROP TABLE t{round}"))
                    .await
                    .expect_err("it does not lead");
                let refused = refused.as_db_error().expect("the server says so");
                assert_eq!(refused.code().code(), "25006", "{refused:?}");
                let hint = refused.hint().expect("a hint");
                assert!(hint.contains(&format!("node {}", leader + 1)), "{hint}");
                let standby = reader.query_one("SHOW in_hot_standby", &[]).await.expect("a setting");
                assert_eq!(standby.get::<_, &str>(0), "on");
            }
        }
        // So with another database.
        let in_other = |conninfo: String| conninfo.replace("dbname=fabius", "dbname=other");
        writer.batch_execute("CREATE DATABASE other").await.expect("a database");
        let other = connect(&in_other(cluster.conninfo_of(leader))).await;
        other
            .batch_execute("CREATE TABLE t (note text); INSERT INTO t VALUES ('there')")
            .await
            .expect("a table");
        let follower = (leader + 1) % NODES;
        let reader = connect(&in_other(cluster.conninfo_of(follower))).await;
        let row = reader.query_one("SELECT note || current_database() FROM t", &[]).await.expect("it reads");
        assert_eq!(row.get::<_, &str>(0), "thereother");
        drop(other);
        writer.batch_execute("DROP DATABASE other").await.expect("nobody is there");
        let gone = tokio_postgres::connect(&in_other(cluster.conninfo_of(follower)), NoTls).await.err();
        assert_eq!(gone.and_then(|error| error.code().cloned()).expect("refused").code(), "3D000");
        writer.batch_execute("CHECKPOINT").await.expect("all nodes take one");
        for node in 0..NODES {
            let reader = connect(&cluster.conninfo_of(node)).await;
            let begun = Instant::now();
            loop {
                let row =
                    reader.query_one("SELECT fabius_cluster()::text", &[]).await.expect("how it stands");
                let shown = row.get::<_, String>(0).replace(' ', "");
                if shown.contains(r#""same":[1,2,3]"#) {
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "digests are not compared: {shown}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    });
}

/// Goal: a node that joins when the others have let go of the beginning of their log is filled from a checkpoint, by
/// itself, and has what all have; it can lead, and another one can go.
#[test]
fn a_newcomer_is_filled() {
    let mut cluster = Cluster::start();
    cluster.leader();
    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        writer
            .batch_execute("CREATE TABLE t (id integer PRIMARY KEY, note text)")
            .await
            .expect("the leader writes");
        for round in 0..3 {
            let insert = format!(
                "INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series({round} * 1000, {round} * 1000 + 999) AS i"
            );
            writer.batch_execute(&insert).await.expect("the leader writes");
            writer.batch_execute("CHECKPOINT").await.expect("all nodes take one");
        }
    });
    let address = cluster.begin_newcomer();
    let newcomer = (NODES + 1).to_string();
    let said = cluster.command(&["add", &newcomer, &address]);
    assert!(said.contains("node 4 is a member, and has a vote"), "{said}");
    block_on(async {
        let reader = connect_patiently(&[cluster.conninfo_of(NODES)]).await;
        let row = reader.query_one("SELECT count(*) FROM t", &[]).await.expect("it reads");
        assert_eq!(row.get::<_, i64>(0), 3_000);
        let row = reader.query_one("SELECT (fabius_cluster()->>'first')::int", &[]).await.expect("it reads");
        assert!(row.get::<_, i32>(0) > 1, "it was filled");
    });
    let said = cluster.command(&["transfer", &newcomer]);
    assert!(said.contains("node 4 leads"), "{said}");
    let said = cluster.command(&["remove", "1"]);
    assert!(said.contains("node 1 is no member any more"), "{said}");
    let said = cluster.command(&["status"]);
    let leading: Vec<&str> =
        said.lines().filter(|line| line.contains("leads ") && line.contains("127")).collect();
    assert_eq!(leading.len(), 1, "{said}");
    assert!(leading[0].contains("  4  leads"), "{said}");
    let members = said.split("member ").nth(1).expect("a table of members");
    assert!(members.lines().count() >= 4 && !members.contains("\n1 "), "{said}");
}

/// Goal: a node that finds its log damaged sets it aside, comes back as its own successor, is filled, and has a vote
/// again, all by itself; without another node it is one of the two that are needed.
#[test]
fn a_damaged_node_is_repaired() {
    let mut cluster = Cluster::start();
    let damaged = (cluster.leader() + 1) % NODES;
    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        let create = "CREATE TABLE t (id integer PRIMARY KEY, note text)";
        writer.batch_execute(create).await.expect("the leader writes");
        for round in 0..3 {
            let insert = format!(
                "INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series({round} * 1000, {round} * 1000 + 999) AS i"
            );
            writer.batch_execute(&insert).await.expect("the leader writes");
            writer.batch_execute("CHECKPOINT").await.expect("all nodes take one");
        }
    });
    cluster.kill(damaged);
    let directory = cluster.directory.path().join((damaged + 1).to_string());
    let segments =
        fs::read_dir(directory.join("log")).expect("its log").map(|entry| entry.expect("a file").path());
    let longest =
        segments.max_by_key(|path| fs::metadata(path).map_or(0, |data| data.len())).expect("a segment");
    let mut bytes = fs::read(&longest).expect("its bytes");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&longest, bytes).expect("it is damaged");
    cluster.begin(damaged);

    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        let query = format!(
            "SELECT coalesce((member->>'predecessors')::int, 0), (member->>'votes')::bool,
                 jsonb_array_length(fabius_cluster()->'members')
             FROM jsonb_array_elements(fabius_cluster()->'members') AS member
             WHERE member->>'node' = '{}' ORDER BY 1 DESC LIMIT 1",
            damaged + 1
        );
        let begun = Instant::now();
        loop {
            let row = writer.query_one(&query, &[]).await.expect("how they stand");
            let stands = (row.get::<_, i32>(0), row.get::<_, bool>(1), row.get::<_, i32>(2));
            if stands == (1, true, NODES as i32) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not come back: {stands:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let aside = fs::read(directory.join("damaged-1/log").join(longest.file_name().expect("a name")));
        assert!(aside.is_ok_and(|bytes| bytes.len() > middle), "what it had is set aside");
    });
    let leader = cluster.leader();
    let other = (0..NODES).find(|node| *node != damaged && *node != leader);
    cluster.kill(other.unwrap_or(leader));
    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        writer.batch_execute("INSERT INTO t VALUES (-1, 'with two')").await.expect("two of three");
        let reader = connect_patiently(&[cluster.conninfo_of(damaged)]).await;
        let row = reader.query_one("SELECT count(*) FROM t", &[]).await.expect("it reads");
        assert_eq!(row.get::<_, i64>(0), 3_001);
    });
}

/// Goal: with asynchronous replication the leader answers alone, and says that what it has done may be lost; when it
/// is, the node that has done it begins again with what the others have.
#[test]
fn what_was_answered_alone_may_be_lost_and_is_said_to_be() {
    let mut cluster = Cluster::with_replication("async");
    cluster.leader();
    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        writer.batch_execute("CREATE TABLE t (id integer PRIMARY KEY)").await.expect("the leader writes");
    });
    // A leader that hears of no majority steps back after half a second, and the machine may be slow.
    let alone = (1..=10).find(|id| {
        let leader = cluster.leader();
        let others: Vec<usize> = (0..NODES).filter(|node| *node != leader).collect();
        let said = block_on(async {
            let writer = connect_patiently(&[cluster.conninfo_of(leader)]).await;
            let set = format!("SET fabius.idempotency_key = 'alone {id}'");
            writer.batch_execute(&set).await.expect("a setting");
            others.iter().for_each(|node| cluster.kill(*node));
            let insert = format!("INSERT INTO t VALUES ({id})");
            let inserting = tokio::time::timeout(Duration::from_secs(1), writer.batch_execute(&insert));
            inserting.await.ok()?.ok()?;
            let outcome = format!("SELECT fabius.outcome('alone {id}')");
            let asking = tokio::time::timeout(Duration::from_secs(1), writer.simple_query(&outcome));
            asking.await.ok()?.ok()?.iter().find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_string),
                _ => None,
            })
        });
        cluster.signal(leader, "STOP");
        others.iter().for_each(|node| cluster.begin(*node));
        let next = cluster.leader_of(&others);
        assert_ne!(next, leader);
        block_on(async {
            let writer = connect_patiently(&[cluster.conninfo_of(next)]).await;
            let insert = format!("INSERT INTO t VALUES ({})", 1_000 + id);
            writer.batch_execute(&insert).await.expect("the next leader writes");
        });
        cluster.signal(leader, "CONT");
        said.as_deref() == Some("committed, not agreed on yet")
    });
    let alone = alone.expect("the leader answers alone");
    for node in 0..NODES {
        block_on(async {
            let begun = Instant::now();
            loop {
                let reader = connect_patiently(&[cluster.conninfo_of(node)]).await;
                let query = format!(
                    "SELECT count(*) FILTER (WHERE id = {alone}), count(*) FILTER (WHERE id = {}) FROM t",
                    1_000 + alone
                );
                // The node that has run ahead finds out, and begins again.
                if let Ok(row) = reader.query_one(&query, &[]).await
                    && (row.get::<_, i64>(0), row.get::<_, i64>(1)) == (0, 1)
                {
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "node {node} does not begin again");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
}

/// Goal: a leader whose disk is full stops and says why, clients go on with the others, and it has everything once
/// there is room.
#[test]
fn a_full_disk_stops_its_node_alone() {
    let mut cluster = Cluster::start();
    let full = cluster.leader();
    block_on(async {
        let writer = connect_patiently(&cluster.leads()).await;
        let create = "CREATE TABLE t (id bigint PRIMARY KEY, note text)";
        writer.batch_execute(create).await.expect("the leader writes");
    });
    cluster.kill(full);
    cluster.begin_with_small_disk(full, 512);
    let node = (full + 1).to_string();
    let begun = Instant::now();
    while cluster.leader() != full {
        cluster.try_command(&["transfer", &node]);
        assert!(begun.elapsed() < PATIENCE, "it does not lead again");
    }
    let acknowledged = block_on(async {
        let (mut acknowledged, note) = (0_i64, "x".repeat(1_000));
        let begun = Instant::now();
        // Twice what fits.
        while acknowledged < 1_000 {
            assert!(begun.elapsed() < PATIENCE, "clients do not go on: {acknowledged}");
            let writer = connect_patiently(&cluster.leads()).await;
            let insert = "INSERT INTO t VALUES ($1, $2) ON CONFLICT DO NOTHING";
            while let Ok(Ok(_)) =
                tokio::time::timeout(Duration::from_secs(2), writer.execute(insert, &[&acknowledged, &note]))
                    .await
            {
                acknowledged += 1;
                if acknowledged == 1_000 {
                    break;
                }
            }
        }
        acknowledged
    });
    assert_ne!(cluster.leader(), full);
    cluster.kill(full);
    cluster.begin(full);
    block_on(async {
        let reader = connect_patiently(&[cluster.conninfo_of(full)]).await;
        let row = reader.query_one("SELECT count(*) FROM t", &[]).await.expect("it reads");
        assert_eq!(row.get::<_, i64>(0), acknowledged);
    });
}

/// Goal: whichever node is killed under load, clients go on with those that are left, at the one that leads or at
/// another, and every acknowledged commit is there, whole and once; in the end all nodes have the same rows.
#[test]
fn acknowledged_commits_survive_any_node() {
    let kills = std::env::var("FABIUS_CLUSTER_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4);
    let mut cluster = Cluster::start();
    cluster.leader();
    let nodes = cluster.leads();
    block_on(async {
        let client = connect_patiently(&nodes).await;
        let tables = "CREATE TABLE ledger (client integer, number bigint, PRIMARY KEY (client, number));
             CREATE TABLE hot (id integer PRIMARY KEY, total bigint NOT NULL);
             INSERT INTO hot VALUES (1, 0)";
        client.batch_execute(tables).await.expect("the leader writes");
    });
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..CLIENTS).map(|_| AtomicU64::new(0)).collect());
    let ends = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            // Every other one writes wherever it comes to.
            let mut nodes = if client % 2 == 0 { nodes.clone() } else { cluster.any() };
            nodes.rotate_left(client as usize % NODES);
            let (acknowledged, ends) = (acknowledged.clone(), ends.clone());
            std::thread::spawn(move || load(&nodes, client, &acknowledged[client as usize], &ends))
        })
        .collect();
    let total = || acknowledged.iter().map(|number| number.load(Relaxed)).sum::<u64>();
    let await_more = |than: u64| {
        let begun = Instant::now();
        while total() < than + 20 {
            assert!(begun.elapsed() < PATIENCE, "nothing is acknowledged any more");
            std::thread::sleep(Duration::from_millis(2));
        }
        begun.elapsed()
    };
    await_more(0);
    let mut outages: Vec<Duration> = Vec::new();
    for kill in 0..kills {
        // Mostly the one that leads.
        let node = if kill % 4 == 3 { kill % NODES } else { cluster.leader() };
        // One that only stands still is taken for dead, and does not know it when it goes on.
        let stands_still = kill % 4 == 2;
        match stands_still {
            true => cluster.signal(node, "STOP"),
            false => cluster.kill(node),
        }
        outages.push(await_more(total()));
        match stands_still {
            true => cluster.signal(node, "CONT"),
            false => cluster.begin(node),
        }
        await_more(total());
    }
    ends.store(true, Relaxed);
    clients.into_iter().for_each(|client| client.join().expect("a client"));
    outages.sort_unstable();
    println!("{kills} kills, {} commits; until 20 more were acknowledged: {outages:?}", total());
    for node in 0..NODES {
        check(cluster.conninfo_of(node), &acknowledged);
    }
}

/// Commits numbered transactions until it is told to end, at the first of some nodes that fits.
fn load(nodes: &[String], client: u64, acknowledged: &AtomicU64, ends: &AtomicBool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        while !ends.load(Relaxed) {
            let connection = connect_patiently(nodes).await;
            // Whatever goes wrong: begin again with what is there.
            let _ = work(&connection, client, acknowledged, ends).await;
        }
    });
}

async fn work(
    connection: &Client,
    client: u64,
    acknowledged: &AtomicU64,
    ends: &AtomicBool,
) -> Result<(), tokio_postgres::Error> {
    let last = "SELECT coalesce(max(number), 0) FROM ledger WHERE client = $1";
    let named = client as i32;
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&named];
    let asking = connection.query_one(last, &parameters);
    let Ok(row) = tokio::time::timeout(Duration::from_secs(2), asking).await else { return Ok(()) };
    let mut number = row?.get::<_, i64>(0);
    let told = acknowledged.load(Relaxed) as i64;
    assert!(number == told || number == told + 1, "client {client}: {told} acknowledged, {number} there");
    // What is seen is as good as acknowledged.
    acknowledged.store(number as u64, Relaxed);
    while !ends.load(Relaxed) {
        number += 1;
        let text = format!(
            "BEGIN; UPDATE hot SET total = total + 1 WHERE id = 1; \
             INSERT INTO ledger VALUES ({client}, {number}); COMMIT"
        );
        // A server that stands still does not say so.
        let Ok(done) = tokio::time::timeout(Duration::from_secs(2), connection.batch_execute(&text)).await
        else {
            return Ok(());
        };
        done?;
        acknowledged.store(number as u64, Relaxed);
    }
    Ok(())
}

fn check(node: String, acknowledged: &[AtomicU64]) {
    block_on(async {
        // It may have begun a moment ago.
        let connection = connect_patiently(&[node]).await;
        let mut rows_total = 0;
        for (client, number) in acknowledged.iter().enumerate() {
            let query = "SELECT count(*), coalesce(max(number), 0) FROM ledger WHERE client = $1";
            let row = connection.query_one(query, &[&(client as i32)]).await.expect("the ledger");
            let (count, last) = (row.get::<_, i64>(0), row.get::<_, i64>(1));
            let number = number.load(Relaxed) as i64;
            assert_eq!(count, last, "client {client} has no gaps");
            assert!(
                last == number || last == number + 1,
                "client {client}: {number} acknowledged, {last} there"
            );
            rows_total += count;
        }
        let hot = connection.query_one("SELECT total FROM hot WHERE id = 1", &[]).await.expect("the hot row");
        assert_eq!(hot.get::<_, i64>(0), rows_total, "both writes of each transaction, or neither");
    });
}
