//! `kill -9` under load loses nothing that was acknowledged.

use crate::support::{PATIENCE, Server, block_on, connect};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const CLIENTS: u64 = 8;
const ROUNDS: u64 = 3;

/// Goal: after each kill, every acknowledged commit is there, whole: the row it inserted and what it added to the hot
/// row. What was not acknowledged is there whole or not at all.
#[test]
fn acknowledged_commits_survive() {
    let mut server = Server::start(&[]);
    server.run(
        "CREATE TABLE ledger (client integer, number bigint, PRIMARY KEY (client, number));
         CREATE TABLE hot (id integer PRIMARY KEY, total bigint NOT NULL);
         INSERT INTO hot VALUES (1, 0)",
    );
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..CLIENTS).map(|_| AtomicU64::new(0)).collect());
    for _ in 0..ROUNDS {
        let begun: u64 = acknowledged.iter().map(|number| number.load(Relaxed)).sum();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (conninfo, acknowledged) = (server.conninfo(), acknowledged.clone());
                std::thread::spawn(move || load(&conninfo, client, &acknowledged[client as usize]))
            })
            .collect();
        let enough = || acknowledged.iter().map(|number| number.load(Relaxed)).sum::<u64>() >= begun + 200;
        let deadline = std::time::Instant::now() + PATIENCE;
        while !enough() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill();
        clients.into_iter().for_each(|client| client.join().expect("a client"));
        assert!(enough(), "the load went on");
        server = Server::start_in(server.into_directory(), &[]);
        check(&server, &acknowledged);
    }
}

/// Commits numbered transactions until the server is gone.
fn load(conninfo: &str, client: u64, acknowledged: &AtomicU64) {
    block_on(async {
        let connection = connect(conninfo).await;
        let last = "SELECT coalesce(max(number), 0) FROM ledger WHERE client = $1";
        let Ok(row) = connection.query_one(last, &[&(client as i32)]).await else { return };
        let mut number = row.get::<_, i64>(0);
        loop {
            number += 1;
            let text = format!(
                "BEGIN; UPDATE hot SET total = total + 1 WHERE id = 1; \
                 INSERT INTO ledger VALUES ({client}, {number}); COMMIT"
            );
            match connection.batch_execute(&text).await {
                Ok(()) => acknowledged.store(number as u64, Relaxed),
                Err(error) if error.as_db_error().is_some_and(|error| error.code().code() == "40001") => {
                    connection.batch_execute("ROLLBACK").await.expect("a rollback");
                    number -= 1;
                }
                Err(_) => return,
            }
        }
    });
}

fn check(server: &Server, acknowledged: &[AtomicU64]) {
    block_on(async {
        let connection = connect(&server.conninfo()).await;
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
