//! Cursors of SQL as drivers use them: declared with parameters, fetched by statements that are prepared before.

use crate::raw::{Raw, field, kinds};
use crate::support::{Server, block_on, connect};

/// Goal: a cursor's query takes parameters, of the types that they have where they stand.
#[test]
fn cursors_take_parameters() {
    let server = Server::start(&[]);
    server.run(
        "CREATE TABLE t (a integer PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')",
    );
    let conninfo = server.conninfo();
    block_on(async {
        let mut client = connect(&conninfo).await;
        let transaction = client.transaction().await.expect("a transaction");
        let declare = transaction
            .prepare(
                "DECLARE \"c 1\" SCROLL CURSOR FOR SELECT a, b FROM t WHERE a >= $1 AND b <> $2 ORDER BY a",
            )
            .await
            .expect("it is prepared");
        assert_eq!(declare.params().iter().map(|kind| kind.name()).collect::<Vec<_>>(), ["int4", "text"]);
        transaction.execute(&declare, &[&2, &"q"]).await.expect("it is declared");
        let rows = transaction.query("FETCH ALL FROM \"c 1\"", &[]).await.expect("rows");
        let found: Vec<(i32, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(found, [(2, "y".into()), (3, "z".into())]);
        // A query that is no program.
        transaction
            .execute(
                "DECLARE d CURSOR FOR SELECT count(*) OVER (), upper(b) FROM t WHERE a = ANY ($1) ORDER BY a",
                &[&vec![1, 3]],
            )
            .await
            .expect("it is declared");
        let rows = transaction.query("FETCH 5 FROM d", &[]).await.expect("rows");
        let found: Vec<(i64, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(found, [(2, "X".into()), (2, "Z".into())]);
        let names = transaction.query("SELECT name FROM pg_cursors ORDER BY name", &[]).await.expect("names");
        let names: Vec<String> = names.iter().map(|row| row.get(0)).collect();
        assert_eq!(names, ["c 1", "d"]);
    });
}

/// Goal: `FETCH` and `EXECUTE` are prepared before what they name is there, and described as it is then.
#[test]
fn what_is_fetched_may_come_later() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    let parse = |name: &str, statement: &str| format!("{name}\0{statement}\0\0\0").into_bytes();
    raw.send(&[
        (b'P', &parse("fetch", "FETCH ALL FROM c")),
        (b'D', b"Sfetch\0"),
        (b'P', &parse("execute", "EXECUTE later")),
        (b'D', b"Sexecute\0"),
        (b'S', b""),
    ]);
    assert_eq!(kinds(&raw.until(b'Z')), "1tn1tnZ");
    raw.query("PREPARE later AS SELECT 1, 2");
    raw.query("BEGIN; DECLARE c CURSOR FOR SELECT 3");
    let run = |name: &str| [b"\0", name.as_bytes(), &[0; 7]].concat();
    raw.send(&[
        (b'B', &run("fetch")),
        (b'D', b"P\0"),
        (b'E', &[0; 5]),
        (b'B', &run("execute")),
        (b'D', b"P\0"),
        (b'E', &[0; 5]),
        (b'S', b""),
    ]);
    assert_eq!(kinds(&raw.until(b'Z')), "2TDC2TDCZ");
    raw.query("ROLLBACK");
    raw.send(&[(b'B', &run("fetch")), (b'E', &[0; 5]), (b'S', b"")]);
    let gone = raw.until(b'Z');
    assert_eq!(field(&gone, b'C'), "34000");
    let listed = raw.query("SELECT name, from_sql FROM pg_prepared_statements ORDER BY name");
    assert_eq!(kinds(&listed), "TDDDCZ");
    raw.send(&[(b'C', b"Sfetch\0"), (b'C', b"Sexecute\0"), (b'S', b"")]);
    assert_eq!(kinds(&raw.until(b'Z')), "33Z");
    assert_eq!(kinds(&raw.query("SELECT name FROM pg_prepared_statements")), "TDCZ");
}
