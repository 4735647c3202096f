//! Writing on nodes of a cluster that do not lead it: what is written there is what would have been at the node that
//! leads.

use crate::cluster::{Cluster, connect_patiently};
use crate::support::{PATIENCE, block_on};
use futures::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio_postgres::{Client, SimpleQueryMessage};

/// A node that does not lead, given the one that does.
fn other(leader: usize) -> usize {
    (leader + 1) % 3
}

async fn clients(cluster: &Cluster) -> Vec<Client> {
    join_all((0..3).map(|node| connect_to(cluster, node))).await
}

async fn connect_to(cluster: &Cluster, node: usize) -> Client {
    connect_patiently(&[cluster.conninfo_of(node)]).await
}

async fn run(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
}

/// The first column of the first row.
async fn shown(client: &Client, text: &str) -> String {
    let all = client.simple_query(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let first = all.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("null").to_string()),
        _ => None,
    });
    first.expect("a row")
}

/// SQLSTATE and hint of what is refused.
async fn refused(client: &Client, text: &str) -> (String, String) {
    let error = client.batch_execute(text).await.expect_err(text);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{text}: the connection is lost"));
    (error.code().code().to_string(), error.hint().unwrap_or_default().to_string())
}

/// Goal: statements by themselves, of every kind, and transactions give on every node what they would give on the one
/// that leads; what all three write at once is there, once; numbers of sequences are nobody else's.
#[test]
fn any_node_writes() {
    const ROUNDS: i64 = 20;
    let mut cluster = Cluster::start();
    cluster.leader();
    block_on(async {
        let writer = cluster.writer().await;
        run(
            &writer,
            "CREATE TABLE hot (id integer PRIMARY KEY, n bigint NOT NULL);
             INSERT INTO hot VALUES (1, 0), (2, 0);
             CREATE TABLE numbered (id serial PRIMARY KEY, node integer NOT NULL);
             CREATE TABLE keyless (v integer);",
        )
        .await;
        let all = clients(&cluster).await;
        join_all((0i64..).zip(&all).map(async |(node, client)| {
            for round in 0..ROUNDS {
                run(client, "UPDATE hot SET n = n + 1 WHERE id = 1").await;
                // What a statement returns is no reason to refuse it.
                client
                    .query_one("UPDATE hot SET n = n + 1 WHERE id = 1 RETURNING n", &[])
                    .await
                    .expect("it is counted");
                run(client, &format!("INSERT INTO numbered (node) VALUES ({node})")).await;
                run(
                    client,
                    &format!(
                        "INSERT INTO keyless SELECT {node} FROM generate_series(1, 3) WHERE {round} >= 0"
                    ),
                )
                .await;
                run(
                    client,
                    "INSERT INTO hot VALUES (2, 1) ON CONFLICT (id) DO UPDATE SET n = hot.n + excluded.n",
                )
                .await;
            }
        }))
        .await;
        for client in &all {
            assert_eq!(shown(client, "SELECT n FROM hot WHERE id = 1").await, (ROUNDS * 6).to_string());
            assert_eq!(shown(client, "SELECT n FROM hot WHERE id = 2").await, (ROUNDS * 3).to_string());
            assert_eq!(
                shown(client, "SELECT count(DISTINCT id) FROM numbered").await,
                (ROUNDS * 3).to_string()
            );
            assert_eq!(shown(client, "SELECT count(*) FROM keyless").await, (ROUNDS * 9).to_string());
        }
        // Numbers that are set anywhere are what every node goes on with.
        for (round, client) in (1i64..).zip(&all) {
            shown(client, &format!("SELECT setval('numbered_id_seq', {})", round * 10_000)).await;
            for (place, other) in (1i64..).zip(&all) {
                let next: i64 =
                    shown(other, "SELECT nextval('numbered_id_seq')").await.parse().expect("a number");
                assert!(next > round * 10_000, "node {place} gives {next} behind {}", round * 10_000);
            }
        }
        // So they are for transactions that have begun before.
        for (first, second) in [(0, 1), (1, 2), (2, 0)] {
            run(&all[first], "BEGIN; SELECT n FROM hot").await;
            shown(&all[second], "SELECT setval('numbered_id_seq', 2 * last_value) FROM numbered_id_seq")
                .await;
            let set: i64 = shown(&all[second], "SELECT last_value FROM numbered_id_seq")
                .await
                .parse()
                .expect("a number");
            let next: i64 =
                shown(&all[first], "SELECT nextval('numbered_id_seq')").await.parse().expect("a number");
            assert!(next > set, "node {first} gives {next} behind {set}");
            run(&all[first], "COMMIT").await;
        }
        // A transaction sees its own writes, and is refused if what it has seen is not so any more.
        for (first, second) in [(0, 1), (1, 2), (2, 0)] {
            let (first, second) = (&all[first], &all[second]);
            run(first, "BEGIN; UPDATE hot SET n = 100 WHERE id = 1").await;
            assert_eq!(shown(first, "SELECT n FROM hot WHERE id = 1").await, "100");
            run(first, "COMMIT").await;
            assert_eq!(shown(second, "SELECT n FROM hot WHERE id = 1").await, "100");
            run(first, "BEGIN; SELECT n FROM hot WHERE id = 1").await;
            run(second, "UPDATE hot SET n = 101 WHERE id = 1").await;
            run(first, "UPDATE hot SET n = 0 WHERE id = 1").await;
            assert_eq!(refused(first, "COMMIT").await.0, "40001");
            assert_eq!(shown(first, "SELECT n FROM hot WHERE id = 1").await, "101");
        }
        // A call under a key is run once, whichever node it comes to.
        for client in &all {
            run(client, "SET fabius.idempotency_key = 'once'; UPDATE hot SET n = n + 1 WHERE id = 1").await;
            run(client, "RESET fabius.idempotency_key").await;
        }
        assert_eq!(shown(&writer, "SELECT n FROM hot WHERE id = 1").await, "102");
        // Constraints are the leader's too.
        for client in &all {
            assert_eq!(refused(client, "INSERT INTO hot VALUES (1, 1)").await.0, "23505");
        }
    });
}

/// Goal: what needs the memory of the node that leads is refused elsewhere, with a hint that names it.
#[test]
fn what_needs_the_leader_is_refused() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    block_on(async {
        let writer = cluster.writer().await;
        run(&writer, "CREATE TABLE t (id integer PRIMARY KEY, n integer); INSERT INTO t VALUES (1, 1)").await;
        let client = connect_to(&cluster, other(leader)).await;
        for text in [
            "CREATE TABLE u (id integer)",
            "CREATE TEMPORARY TABLE u (id integer)",
            "ALTER TABLE t ADD COLUMN m integer",
            "DROP TABLE t",
            "TRUNCATE t",
            "SELECT * FROM t FOR UPDATE",
            "SELECT * FROM t WHERE n + 0 = 1 ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED",
            "BEGIN; LOCK TABLE t",
            "ROLLBACK; SELECT pg_advisory_lock(1)",
            "SELECT pg_try_advisory_xact_lock(1)",
            "SET fabius.concurrency = 'pessimistic'",
            "UPDATE t SET n = 2",
            "BEGIN; INSERT INTO t VALUES (2, 2)",
        ] {
            if text.starts_with("SET") {
                run(&client, text).await;
                continue;
            }
            let (state, hint) = refused(&client, text).await;
            assert_eq!(state, "25006", "{text}");
            assert!(hint.contains(&format!("node {} leads", leader + 1)), "{text}: {hint}");
        }
        run(&client, "ROLLBACK; BEGIN; LOCK TABLE t IN ROW EXCLUSIVE MODE; SELECT n FROM t; COMMIT").await;
        assert_eq!(shown(&writer, "SELECT count(*) FROM t WHERE n = 1").await, "1");
    });
}

/// Goal: definitions at the node that leads and writes at others come one after the other: no row is lost to a table
/// that is copied, none violates a constraint that is added, and whoever writes notices nothing of either.
#[test]
fn definitions_and_writes_of_other_nodes_meet() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    let (written, ends) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    block_on(async {
        let writer = cluster.writer().await;
        run(&writer, "CREATE TABLE t (id bigint PRIMARY KEY, n integer NOT NULL)").await;
        let readers: Vec<_> = (0..3)
            .filter(|node| *node != leader)
            .map(|node| {
                let (conninfo, ends) = (cluster.conninfo_of(node), ends.clone());
                tokio::spawn(async move {
                    let client = connect_patiently(&[conninfo]).await;
                    let mut last = 0;
                    for round in 0.. {
                        if ends.load(Relaxed) {
                            break;
                        }
                        // The first is a program, the second a query.
                        let text = match round % 2 {
                            0 => "SELECT count(*) FROM t WHERE n > 0",
                            _ => "SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY id) FROM t WHERE n > 0) AS x",
                        };
                        let count: u64 = shown(&client, text).await.parse().expect("a number");
                        assert!(count >= last, "node {node}: {count} after {last}");
                        last = count;
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..3)
            .filter(|node| *node != leader)
            .map(|node| {
                let (conninfo, written, ends) = (cluster.conninfo_of(node), written.clone(), ends.clone());
                tokio::spawn(async move {
                    let client = connect_patiently(&[conninfo]).await;
                    for number in 0i64.. {
                        if ends.load(Relaxed) {
                            break;
                        }
                        let id = number * 3 + node as i64;
                        // Every tenth is negative, and may be refused once that is not allowed.
                        let n = if number % 10 == 9 { -1 } else { 1 };
                        match client.execute(&format!("INSERT INTO t (id, n) VALUES ({id}, {n})"), &[]).await
                        {
                            Ok(count) => drop(written.fetch_add(count, Relaxed)),
                            Err(error) => {
                                let state = error.code().map(|state| state.code().to_string());
                                assert_eq!((state.as_deref(), n), (Some("23514"), -1), "{error:?}");
                            }
                        }
                    }
                })
            })
            .collect();
        let begun = Instant::now();
        while written.load(Relaxed) < 100 {
            assert!(begun.elapsed() < PATIENCE, "nobody writes");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for round in 0..6 {
            let types = if round % 2 == 0 { "bigint" } else { "integer" };
            run(&writer, &format!("ALTER TABLE t ADD COLUMN c{round} integer DEFAULT {round}")).await;
            run(&writer, &format!("ALTER TABLE t ALTER COLUMN n TYPE {types}")).await;
            run(&writer, &format!("CREATE INDEX t{round} ON t (n, id)")).await;
            run(&writer, "BEGIN; LOCK TABLE t IN SHARE ROW EXCLUSIVE MODE; DELETE FROM t WHERE n < 0").await;
            let removed = shown(&writer, "SELECT count(*) FROM t WHERE n < 0").await;
            assert_eq!(removed, "0");
            run(&writer, "ALTER TABLE t ADD CONSTRAINT positive CHECK (n > 0); COMMIT").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert_eq!(shown(&writer, "SELECT count(*) FROM t WHERE n < 0").await, "0");
            run(&writer, "ALTER TABLE t DROP CONSTRAINT positive").await;
        }
        ends.store(true, Relaxed);
        for one in join_all(writers.into_iter().chain(readers)).await {
            one.expect("it goes on to the end");
        }
        let reader = connect_to(&cluster, other(leader)).await;
        let positive: u64 =
            shown(&reader, "SELECT count(*) FROM t WHERE n > 0").await.parse().expect("a number");
        let negative: u64 =
            shown(&reader, "SELECT count(*) FROM t WHERE n < 0").await.parse().expect("a number");
        assert!(positive > 100 && positive + negative <= written.load(Relaxed), "{positive} {negative}");
        // All positive rows that were acknowledged are there: they are numbered without gaps but for the negative ones.
        for node in (0..3).filter(|node| *node != leader) {
            let gaps = format!(
                "SELECT count(*) FROM (SELECT id / 3 AS k FROM t WHERE id % 3 = {node} AND n > 0) AS a
                 WHERE k % 10 <> 8 AND k < (SELECT max(id / 3) FROM t WHERE id % 3 = {node} AND n > 0)
                   AND NOT EXISTS (SELECT FROM t WHERE t.id = (a.k + 1) * 3 + {node})"
            );
            assert_eq!(shown(&reader, &gaps).await, "0", "rows of node {node} are lost");
        }
    });
}

/// Goal: a table that the node that leads has locked is not written elsewhere until it is free, or another node leads.
#[test]
fn a_locked_table_is_closed_to_other_nodes() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    block_on(async {
        let writer = cluster.writer().await;
        run(&writer, "CREATE TABLE t (id integer PRIMARY KEY); CREATE TABLE u (id integer PRIMARY KEY)")
            .await;
        let client = connect_to(&cluster, other(leader)).await;
        run(&client, "SET lock_timeout = '300ms'; INSERT INTO t VALUES (1)").await;
        run(&writer, "BEGIN; LOCK TABLE t IN EXCLUSIVE MODE").await;
        assert_eq!(refused(&client, "INSERT INTO t VALUES (2)").await.0, "55P03");
        assert_eq!(shown(&client, "SELECT count(*) FROM t").await, "1");
        run(&client, "INSERT INTO u VALUES (2)").await;
        assert_eq!(refused(&client, "BEGIN; INSERT INTO t VALUES (2); COMMIT").await.0, "55P03");
        run(&client, "SET lock_timeout = 0; SET statement_timeout = '300ms'").await;
        assert_eq!(refused(&client, "INSERT INTO t VALUES (2)").await.0, "57014");
        run(&client, "SET statement_timeout = 0").await;
        run(&writer, "COMMIT").await;
        run(&client, "SET lock_timeout = 0; INSERT INTO t VALUES (2)").await;
        run(&writer, "BEGIN; LOCK TABLE t IN SHARE MODE").await;
        let waiting = tokio::spawn(async move {
            run(&client, "INSERT INTO t VALUES (3)").await;
            client
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!waiting.is_finished(), "it is written while it is locked");
        cluster.kill(leader);
        let client = tokio::time::timeout(PATIENCE, waiting).await.expect("it ends").expect("it is written");
        assert_eq!(shown(&client, "SELECT count(*) FROM t").await, "3");
    });
}

/// Goal: locks of the node that leads that come and go do not fail statements of others.
#[test]
fn a_table_that_is_locked_often_is_written_elsewhere() {
    let mut cluster = Cluster::start();
    let leader = cluster.leader();
    block_on(async {
        let writer = cluster.writer().await;
        run(&writer, "CREATE TABLE t (id integer PRIMARY KEY, n integer)").await;
        let ends = Arc::new(AtomicBool::new(false));
        let locking = tokio::spawn({
            let ends = ends.clone();
            async move {
                while !ends.load(Relaxed) {
                    run(&writer, "BEGIN; LOCK TABLE t IN SHARE MODE; COMMIT").await;
                }
            }
        });
        let client = connect_to(&cluster, other(leader)).await;
        for id in 0..100 {
            run(&client, &format!("INSERT INTO t VALUES ({id}, 0)")).await;
        }
        ends.store(true, Relaxed);
        locking.await.expect("it locks to the end");
        assert_eq!(shown(&client, "SELECT count(*) FROM t").await, "100");
    });
}

/// What is done on a runtime that is there longer.
fn within<T>(runtime: &tokio::runtime::Runtime, work: impl Future<Output = T>) -> T {
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("it ends in time") })
}

/// Goal: a transaction stands on what it stood on when it began. Where the lead comes to its node meanwhile it takes
/// nothing that only a leader gives; where the lead goes, it keeps nobody from anything, and its session writes
/// nothing beside locks that are void.
#[test]
fn a_transaction_keeps_to_what_it_stands_on() {
    let mut cluster = Cluster::start();
    let first = cluster.leader();
    let second = other(first);
    let hand_on = |cluster: &Cluster, from: usize, to: usize| {
        cluster.command(&["transfer", &(to + 1).to_string()]);
        block_on(async {
            let begun = Instant::now();
            for (node, leads) in [(to, "f"), (from, "t")] {
                let client = connect_to(cluster, node).await;
                while shown(&client, "SELECT pg_is_in_recovery()").await != leads {
                    assert!(begun.elapsed() < PATIENCE, "node {node} does not know who leads");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        });
    };
    // Connections outlast what is done with them.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (advised, locked, written, begun, others) = within(&runtime, async {
        let writer = cluster.writer().await;
        run(&writer, "CREATE TABLE t (id integer PRIMARY KEY, n integer); INSERT INTO t VALUES (1, 0)").await;
        run(&writer, "CREATE TABLE u (id integer PRIMARY KEY)").await;
        let advised = connect_to(&cluster, first).await;
        run(&advised, "SELECT pg_advisory_lock(1)").await;
        let locked = connect_to(&cluster, first).await;
        run(&locked, "BEGIN; LOCK TABLE t; INSERT INTO t VALUES (2, 0)").await;
        let written = connect_to(&cluster, first).await;
        run(&written, "BEGIN; LOCK TABLE u; INSERT INTO u VALUES (2)").await;
        let mut begun = Vec::new();
        for _ in 0..4 {
            let client = connect_to(&cluster, second).await;
            run(&client, "BEGIN; SELECT n FROM t").await;
            begun.push(client);
        }
        (advised, locked, written, begun, connect_to(&cluster, first).await)
    });
    hand_on(&cluster, first, second);
    within(&runtime, async {
        // The node that led: what is locked there is locked no more, not even for others there.
        run(&others, "INSERT INTO t VALUES (3, 0)").await;
        assert_eq!(refused(&locked, "LOCK TABLE t").await.0, "40001");
        run(&locked, "ROLLBACK").await;
        assert_eq!(refused(&written, "COMMIT").await.0, "40001");
        assert_eq!(refused(&advised, "INSERT INTO t VALUES (4, 0)").await.0, "55000");
        // The node that leads now: what began before is no leader's.
        for (client, text) in begun.iter().zip([
            "ALTER TABLE t ADD COLUMN c integer DEFAULT 1",
            "LOCK TABLE t IN SHARE MODE",
            "SELECT * FROM t FOR UPDATE",
        ]) {
            assert_eq!(refused(client, text).await.0, "40001", "{text}");
            run(client, "ROLLBACK").await;
        }
        run(&begun[0], "ALTER TABLE t ADD COLUMN c integer DEFAULT 1").await;
        assert_eq!(refused(&begun[3], "UPDATE t SET n = 1; COMMIT").await.0, "40001");
    });
    hand_on(&cluster, second, first);
    within(&runtime, async {
        // Back again: the locks were void meanwhile.
        for text in ["INSERT INTO t VALUES (4, 0)", "ALTER TABLE t ADD COLUMN d integer", "COPY t FROM STDIN"]
        {
            assert_eq!(refused(&advised, text).await.0, "55000", "{text}");
        }
        run(&advised, "SELECT pg_advisory_unlock_all(); INSERT INTO t VALUES (4, 0)").await;
        assert_eq!(shown(&others, "SELECT string_agg(id::text, ',' ORDER BY id) FROM t").await, "1,3,4");
        assert_eq!(shown(&others, "SELECT count(*) FROM u").await, "0");
    });
}
