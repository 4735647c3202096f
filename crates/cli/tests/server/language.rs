//! What people write in SQL and PL/pgSQL: TPC-C's transactions, sequences in loops, errors with their places, the past.

use crate::support::{Server, block_on, connect};
use tokio_postgres::{Client, SimpleQueryMessage};

/// The rows of some statements, as text with `|` between columns.
async fn rows(client: &Client, statements: &str) -> Vec<String> {
    let messages =
        client.simple_query(statements).await.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let cells = (0..row.len()).map(|at| row.get(at).unwrap_or("~").to_string());
            Some(cells.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect()
}

/// The error of a statement: its code, message and context.
async fn refused(client: &Client, statement: &str) -> (String, String, String) {
    let error = client.simple_query(statement).await.expect_err(statement);
    let error = error.as_db_error().unwrap_or_else(|| panic!("{statement}: {error:?}"));
    let context = error.where_().unwrap_or_default().to_string();
    (error.code().code().to_string(), error.message().to_string(), context)
}

const TPCC: &str = include_str!("../../../../examples/tpcc.sql");

/// Goal: the transactions of TPC-C, as one writes them for PostgreSQL, do what they do there; called by several
/// clients at once, the benchmark's consistency conditions hold (TPC-C 5.11, clause 3.3.2).
#[test]
fn tpcc_in_plpgsql() {
    let server = Server::start(&["--durability", "none"]);
    server.run(TPCC);
    let conninfo = server.conninfo();
    block_on(async {
        let client = connect(&conninfo).await;
        let order = "CALL new_order(1, 1, 1, ARRAY[1, 2, 3, 4, 5], ARRAY[1, 1, 2, 1, 1], ARRAY[5, 3, 2, 1, 9], NULL, NULL)";
        assert_eq!(rows(&client, order).await, ["1|102.56"]);
        let order = "CALL new_order(1, 1, 2, ARRAY[7, 7], ARRAY[1, 1], ARRAY[10, 10], NULL, NULL)";
        assert_eq!(rows(&client, order).await, ["2|185.96"]);
        let wrong = "CALL new_order(1, 2, 2, ARRAY[7, 101], ARRAY[1, 1], ARRAY[10, 10], NULL, NULL)";
        let (code, message, context) = refused(&client, wrong).await;
        assert_eq!((code.as_str(), message.as_str()), ("TPCC1", "item number is not valid"));
        let place = "PL/pgSQL function new_order(integer,integer,integer,integer[],integer[],integer[],integer,numeric) line 35 at RAISE";
        assert_eq!(context, place);
        // By last name: the one in the middle of three, in the order of their first names.
        let paid = rows(&client, "CALL payment(1, 1, 2, 3, NULL, 'last0', 99.99)").await;
        assert_eq!(paid, ["20|-109.99"]);
        assert_eq!(
            rows(&client, "SELECT i_id, quantity, amount * 100 FROM order_status(1, 1, 2)").await.len(),
            2
        );
        assert_eq!(
            rows(&client, "SELECT delivery(1, 7); SELECT delivery(1, 8); SELECT delivery(1, 9)").await,
            ["1", "1", "0"]
        );
        assert_eq!(rows(&client, "SELECT stock_level(1, 1, 40)").await, ["5"]);
        for statement in [
            "EXPLAIN CALL new_order(1, 1, 1, ARRAY[1], ARRAY[1], ARRAY[5], NULL, NULL)",
            "EXPLAIN CALL payment(1, 1, 1, 1, 5, NULL, 12.5)",
        ] {
            let explained = rows(&client, statement).await.join("\n");
            assert!(explained.contains("Phase: ") && explained.contains("Key: district["), "{explained}");
        }

        let mut clients = tokio::task::JoinSet::new();
        for number in 0..4 {
            let conninfo = conninfo.clone();
            clients.spawn(async move {
                let client = connect(&conninfo).await;
                for turn in 0..10 {
                    let (district, customer) = (1 + (turn + number) % 3, 1 + turn);
                    let order = format!(
                        "CALL new_order(1, {district}, {customer}, ARRAY[1, 2, {turn} + 3], ARRAY[1, 2, 1], ARRAY[5, 5, 5], NULL, NULL)"
                    );
                    rows(&client, &order).await;
                    rows(&client, &format!("CALL payment(1, {district}, 1, {district}, {customer}, NULL, 10)")).await;
                }
            });
        }
        clients.join_all().await;
        let broken = "
            SELECT 1 FROM warehouse WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id);
            SELECT 2 FROM district WHERE d_next_o_id - 1 <>
                (SELECT coalesce(max(o_id), 0) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id);
            SELECT 3 FROM (SELECT sum(o_ol_cnt) AS n FROM orders) o, (SELECT count(*) AS n FROM order_line) l
            WHERE o.n <> l.n;
            SELECT 4 FROM (SELECT count(*) AS n FROM history) h WHERE h.n <> 41";
        assert_eq!(rows(&client, broken).await, [""; 0]);
    });
}

/// Goal: loops take numbers of sequences one after the other, also more than are set aside at first; nothing is lost
/// between calls; `now()` and `random()` mean the same when a transaction commits as when they were shown.
#[test]
fn functions_take_numbers_and_draw() {
    let server = Server::start(&["--durability", "none"]);
    block_on(async {
        let client = connect(&server.conninfo()).await;
        client
            .batch_execute(
                "CREATE TABLE t (id serial PRIMARY KEY, v integer);
                 CREATE TABLE keyless (v integer, u uuid DEFAULT gen_random_uuid());
                 CREATE FUNCTION fill(n integer) RETURNS integer LANGUAGE plpgsql AS $$
                 DECLARE last integer;
                 BEGIN
                     FOR i IN 1 .. n LOOP
                         INSERT INTO t (v) VALUES (i) RETURNING id INTO last;
                         INSERT INTO keyless (v) SELECT x FROM unnest(ARRAY[i, i]) AS x;
                     END LOOP;
                     RETURN last;
                 END $$;
                 CREATE FUNCTION drawn() RETURNS double precision LANGUAGE plpgsql AS $$
                 DECLARE s double precision := 0;
                 BEGIN
                     FOR i IN 1 .. 3 LOOP s := s + random(); END LOOP;
                     INSERT INTO keyless (v) VALUES ((s * 1000)::integer);
                     RETURN s;
                 END $$;
                 CREATE FUNCTION moment() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RETURN now(); END $$;",
            )
            .await
            .expect("definitions");
        assert_eq!(rows(&client, "SELECT fill(3)").await, ["3"]);
        assert_eq!(rows(&client, "SELECT fill(100); SELECT currval('t_id_seq')").await, ["103", "103"]);
        assert_eq!(rows(&client, "INSERT INTO t (v) VALUES (0) RETURNING id").await, ["104"]);
        let block = "BEGIN; SELECT fill(40); SELECT drawn() > 0; SELECT moment() = now(); COMMIT";
        assert_eq!(rows(&client, block).await, ["144", "t", "t"]);
        assert_eq!(rows(&client, "SELECT count(DISTINCT id), max(id) FROM t").await, ["144|144"]);
        assert_eq!(rows(&client, "SELECT count(*), count(DISTINCT u) FROM keyless").await, ["287|287"]);
    });
}

/// Goal: errors at run time say where in which function they arose, callers included.
#[test]
fn errors_have_their_place() {
    let server = Server::start(&["--durability", "none"]);
    block_on(async {
        let client = connect(&server.conninfo()).await;
        client
            .batch_execute(
                "CREATE TABLE t (id integer PRIMARY KEY, v integer CHECK (v > 0));
                 CREATE FUNCTION inner_f(x integer) RETURNS integer LANGUAGE plpgsql AS $$
                 DECLARE y integer;
                 BEGIN
                     y := 10 / x;
                     INSERT INTO t VALUES (y, x);
                     RETURN y;
                 END $$;
                 CREATE FUNCTION outer_f(x integer) RETURNS integer LANGUAGE plpgsql AS $$
                 DECLARE z integer;
                 BEGIN
                     z := inner_f(x);
                     RETURN z;
                 END $$;",
            )
            .await
            .expect("definitions");
        let (code, _, context) = refused(&client, "SELECT outer_f(0)").await;
        assert_eq!(code, "22012");
        assert_eq!(
            context,
            "PL/pgSQL function inner_f(integer) line 4 at assignment\n\
             PL/pgSQL function outer_f(integer) line 4 at assignment"
        );
        let (code, _, context) = refused(&client, "BEGIN; SELECT outer_f(-1)").await;
        assert_eq!(code, "23514");
        assert!(
            context.starts_with("SQL statement \"INSERT INTO t VALUES (y, x)\"\nPL/pgSQL function inner_f"),
            "{context}"
        );
    });
}

/// Goal: what was can be read by its number or time, nothing can be written there, and what is not kept is refused.
#[test]
fn the_past_can_be_read() {
    let server = Server::start(&["--durability", "none", "--history", "1h"]);
    block_on(async {
        let client = connect(&server.conninfo()).await;
        rows(&client, "CREATE TABLE t (id integer PRIMARY KEY, v integer)").await;
        rows(&client, "INSERT INTO t VALUES (1, 10)").await;
        let seq = rows(&client, "SELECT fabius.seq()").await.remove(0);
        rows(&client, "UPDATE t SET v = 20").await;
        rows(&client, "INSERT INTO t VALUES (2, 5)").await;
        let past =
            format!("BEGIN; SET LOCAL fabius.as_of = '{seq}'; SELECT * FROM t; SELECT sum(v) FROM t; COMMIT");
        assert_eq!(rows(&client, &past).await, ["1|10", "10"]);
        assert_eq!(rows(&client, "SELECT sum(v) FROM t").await, ["25"]);
        rows(&client, &format!("SET fabius.as_of = '{seq}'")).await;
        assert_eq!(rows(&client, "SELECT v FROM t WHERE id = 1").await, ["10"]);
        assert_eq!(refused(&client, "DELETE FROM t").await.0, "25006");
        assert_eq!(refused(&client, "CREATE TABLE u (id integer)").await.0, "25006");
        rows(&client, "SET fabius.as_of = '2001-01-01'").await;
        assert_eq!(refused(&client, "SELECT * FROM t").await.0, "55000");
        assert_eq!(refused(&client, "SET fabius.as_of = 'never'").await.0, "22023");
        rows(&client, "RESET fabius.as_of").await;
        assert_eq!(rows(&client, "SELECT count(*) FROM t").await, ["2"]);
    });
}

/// Goal: statements that write inside of others run as one.
#[test]
fn queries_write() {
    let server = Server::start(&["--durability", "none"]);
    block_on(async {
        let client = connect(&server.conninfo()).await;
        rows(
            &client,
            "CREATE TABLE q (id serial PRIMARY KEY, v integer); CREATE TABLE done (id integer PRIMARY KEY, v integer);
             INSERT INTO q (v) VALUES (10), (20), (30)",
        )
        .await;
        let moved = "WITH d AS (DELETE FROM q WHERE v < 25 RETURNING id, v) INSERT INTO done SELECT * FROM d RETURNING v";
        assert_eq!(rows(&client, moved).await, ["10", "20"]);
        let made =
            "WITH i AS (INSERT INTO q (v) VALUES (7), (8) RETURNING id, v) SELECT sum(v), min(id) FROM i";
        assert_eq!(rows(&client, made).await, ["15|4"]);
        let plain = "WITH s AS (SELECT 1 AS id, 100 AS more) UPDATE done SET v = v + more FROM s WHERE done.id = s.id RETURNING v";
        assert_eq!(rows(&client, plain).await, ["110"]);
        let twice = "INSERT INTO done VALUES (9, 1), (9, 2) ON CONFLICT (id) DO UPDATE SET v = excluded.v";
        assert_eq!(refused(&client, twice).await.0, "21000");
    });
}
