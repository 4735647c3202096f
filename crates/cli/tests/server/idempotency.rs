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
