//! A key makes a transaction happen once, however often it is sent.

use crate::support::{Server, block_on, connect};

/// What a client sees that sends both of its transactions, and asks for their outcomes.
async fn send(server: &Server) -> (i32, Vec<Option<String>>) {
    let client = connect(&server.conninfo()).await;
    for transaction in [
        "BEGIN; SET LOCAL fabius.idempotency_key = 'one'; UPDATE accounts SET v = v + 1 WHERE id = 1; COMMIT",
        "SET fabius.idempotency_key = 'other'",
        "UPDATE accounts SET v = v + 10 WHERE id = 1",
        "RESET fabius.idempotency_key",
    ] {
        client.batch_execute(transaction).await.expect(transaction);
    }
    let mut outcomes = Vec::new();
    for key in ["one", "other", "never sent"] {
        let row =
            client.query_one(&format!("SELECT fabius.outcome('{key}')"), &[]).await.expect("an outcome");
        outcomes.push(row.get(0));
    }
    // The first of them was before the other.
    let [first, other, never] = ["one", "other", "never sent"].map(async |key| {
        let row = client.query_one(&format!("SELECT fabius.outcome_seq('{key}')"), &[]).await;
        row.expect("a place").get::<_, Option<i64>>(0)
    });
    assert!(first.await < other.await && never.await.is_none());
    let row = client.query_one("SELECT v FROM accounts WHERE id = 1", &[]).await.expect("the row");
    (row.get(0), outcomes)
}

/// Goal: sent again, also after the server was killed, a transaction with a key gives its first outcome and changes
/// nothing; a key that was never sent has no outcome.
#[test]
fn keys_make_transactions_happen_once() {
    let mut server = Server::start(&[]);
    server
        .run("CREATE TABLE accounts (id integer PRIMARY KEY, v integer); INSERT INTO accounts VALUES (1, 0)");
    let committed = || Some("committed".to_string());
    for _ in 0..2 {
        for _ in 0..2 {
            assert_eq!(block_on(send(&server)), (11, vec![committed(), committed(), None]));
        }
        server.kill();
        server = Server::start_in(server.into_directory(), &[]);
    }
}

/// Goal: sent again, a transaction with a key that gives a table other rows leaves the table as the first made it,
/// also after the server was killed; another with the same key does nothing either.
#[test]
fn keys_make_changes_of_the_catalog_happen_once() {
    let mut server = Server::start(&[]);
    server.run("CREATE TABLE t (a integer PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    let rows = |server: &Server| {
        block_on(async {
            let client = connect(&server.conninfo()).await;
            let rows = client.query("SELECT a FROM t ORDER BY a", &[]).await.expect("the table");
            rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>()
        })
    };
    let load =
        "BEGIN; SET LOCAL fabius.idempotency_key = 'load'; TRUNCATE t; INSERT INTO t VALUES (3); COMMIT";
    let alter =
        "BEGIN; SET LOCAL fabius.idempotency_key = 'load'; ALTER TABLE t ADD b integer DEFAULT 1; COMMIT";
    for transaction in [load, load, alter, "INSERT INTO t VALUES (4)", load] {
        server.run(transaction);
    }
    assert_eq!(rows(&server), [3, 4]);
    server.kill();
    server = Server::start_in(server.into_directory(), &[]);
    assert_eq!(rows(&server), [3, 4]);
    server.run(load);
    server.run("INSERT INTO t VALUES (5)");
    assert_eq!(rows(&server), [3, 4, 5]);
}
