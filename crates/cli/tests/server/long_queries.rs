//! Queries that would compute for minutes or for ever: each can be ended at any time, and others have their turn
//! meanwhile.

use crate::raw::{Message, Raw, field, kinds};
use crate::support::{Server, block_on, connect};
use std::time::{Duration, Instant};

/// How long one may take to heed that it is given up. It takes some milliseconds; machines that test have much to do.
const HEEDED: Duration = Duration::from_secs(15);

const TABLE: &str = "CREATE TABLE n (i integer PRIMARY KEY, j integer);
    INSERT INTO n SELECT i, i % 1000 FROM generate_series(1, 200000) AS series(i)";

/// Goal: no operator computes on once the statement's time is over, whatever it is that goes on without end.
#[test]
fn time_ends_what_computes() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    assert_eq!(kinds(&raw.query(TABLE)), "CCZ");
    raw.query("SET statement_timeout = '300ms'");
    for query in [
        // Pairs without a match, a nested loop.
        "SELECT count(*) FROM n AS x, n AS y WHERE x.i + y.i = -7",
        "SELECT count(*) FROM n AS x LEFT JOIN n AS y ON x.i + y.i = -7",
        // The same along a key, which is a program.
        "SELECT count(*) FROM n AS x, n AS y WHERE x.i < y.i",
        // Rows that come now and then.
        "SELECT x.i, y.i FROM n AS x, n AS y WHERE x.i + y.i = 200007",
        // Pairs that all match.
        "SELECT count(*) FROM n AS x, n AS y WHERE x.i + y.i > -7",
        // A cross join.
        "SELECT count(*) FROM n AS x, n AS y",
        // A hash join of few hashes, whose pairs do not fit.
        "SELECT count(*) FROM n AS x, n AS y WHERE x.i % 2 = y.i % 2 AND x.i + y.i = -7",
        // Groups, the first rows of an order, different rows, places in an order.
        "SELECT x.i % 7, sum(y.i) FROM n AS x, n AS y GROUP BY 1",
        "SELECT x.i FROM n AS x, n AS y ORDER BY x.i + y.i LIMIT 5",
        "SELECT DISTINCT x.i % 7 FROM n AS x, n AS y",
        "SELECT count(*) FROM (SELECT row_number() OVER () AS n FROM n AS x, n AS y) AS numbered WHERE n < 0",
        // A frame for each row, all of it computed anew.
        "SELECT count(s) FROM (SELECT sum(i::float8) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
            AS s FROM n) AS moved",
        // Several inputs, each with a task of its own.
        "SELECT count(*) FROM (SELECT x.i FROM n AS x, n AS y UNION ALL SELECT y.i FROM n AS x, n AS y) AS both",
        // The same on the side that comes in portions.
        "SELECT count(*) FROM n AS x JOIN (SELECT i FROM n UNION ALL SELECT i FROM n) AS y ON x.i + y.i = -7",
        // A subquery for each row.
        "SELECT count(*) FROM n AS a WHERE j = (SELECT b.j FROM n AS b WHERE b.i * a.i < 0 LIMIT 1)",
        // Recursion.
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT n FROM r WHERE n = 2",
        "WITH RECURSIVE r(n) AS (SELECT 1::bigint UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        // What writes, and reads by a query.
        "INSERT INTO n SELECT x.i FROM n AS x, n AS y WHERE x.i + y.i = -7",
    ] {
        let begun = Instant::now();
        let answer = raw.query(query);
        assert_eq!(ended_by(&answer), "canceling statement due to statement timeout", "{query}");
        assert!(begun.elapsed() < HEEDED, "{query}: {:?}", begun.elapsed());
    }
    assert_eq!(kinds(&raw.query("SET statement_timeout = 0; SELECT count(*) FROM n")), "CTDCZ");
}

/// The message of the error that ended a query, if one did.
fn ended_by(answer: &[Message]) -> String {
    if kinds(answer).contains('E') { field(answer, b'M') } else { kinds(answer) }
}

/// Goal: while every thread has a query that computes, others are answered, and end those queries: by a cancel request,
/// `pg_cancel_backend`, `pg_terminate_backend`.
#[test]
fn others_have_their_turn() {
    let server = Server::start(&[]);
    let conninfo = server.conninfo();
    server.run(TABLE);
    let query = "SELECT count(*) FROM n AS x, n AS y WHERE x.i + y.i = -7";
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    block_on(async {
        let mut queries = Vec::new();
        for _ in 0..threads.max(3) {
            let client = connect(&conninfo).await;
            let process: i32 =
                client.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
            let token = client.cancel_token();
            let running = tokio::spawn(async move { client.simple_query(query).await });
            queries.push((process, token, running));
        }
        let observer = connect(&conninfo).await;
        let running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() \
                       AND query LIKE '% AS y %'";
        while observer.query_one(running, &[]).await.expect("a number").get::<_, i64>(0)
            < queries.len() as i64
        {}
        for (at, (process, token, running)) in queries.into_iter().enumerate() {
            let expected = match at % 3 {
                0 => {
                    token.cancel_query(tokio_postgres::NoTls).await.expect("a cancel request");
                    "57014"
                }
                1 => {
                    observer.query_one("SELECT pg_cancel_backend($1)", &[&process]).await.expect("an answer");
                    "57014"
                }
                _ => {
                    observer
                        .query_one("SELECT pg_terminate_backend($1)", &[&process])
                        .await
                        .expect("an answer");
                    "57P01"
                }
            };
            let error = running.await.expect("no panic").expect_err("it is ended");
            assert_eq!(error.code().map(|code| code.code().to_string()), Some(expected.to_string()));
        }
    });
}

/// Goal: a session whose program goes through many rows ends when it is told so, and is told with that alone.
#[test]
fn a_program_is_ended_with_its_session() {
    let server = Server::start(&["--statement-timeout", "1min"]);
    let conninfo = server.conninfo();
    server.run(TABLE);
    block_on(async {
        let (client, observer) = (connect(&conninfo).await, connect(&conninfo).await);
        let process: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        let running = tokio::spawn(async move {
            let ended = client.simple_query("SELECT count(*) FROM n AS x, n AS y WHERE x.i < y.i").await;
            (ended.expect_err("it is ended"), client.simple_query("SELECT 1").await.is_err())
        });
        let active = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND query LIKE '% AS y %'";
        while observer.query_one(active, &[&process]).await.expect("a number").get::<_, i64>(0) == 0 {}
        observer.query_one("SELECT pg_terminate_backend($1)", &[&process]).await.expect("an answer");
        let (error, is_gone) = running.await.expect("no panic");
        let told =
            error.as_db_error().map(|told| (told.severity().to_string(), told.code().code().to_string()));
        assert_eq!((told, is_gone), (Some(("FATAL".to_string(), "57P01".to_string())), true));
    });
}
