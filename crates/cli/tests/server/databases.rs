//! What databases are called, by `--database` and by the names that tools connect to first, and that they are apart.

use crate::raw::{Raw, field};
use crate::support::{Server, block_on, connect};
use tokio_postgres::Client;

/// Goal: the main database has the name that it was given wherever it is asked for, whatever a client called it;
/// `postgres` and `template1` are other names of it.
#[test]
fn the_main_database_has_its_name() {
    let server = Server::start(&["--database", "app"]);
    for name in ["app", "postgres", "template1"] {
        let conninfo = format!("host=127.0.0.1 port={} dbname={name} user=tester", server.port());
        block_on(async {
            let client = connect(&conninfo).await;
            for query in [
                "SELECT current_database()::text",
                "SELECT current_catalog::text",
                "SELECT datname::text FROM pg_database",
                "SELECT DISTINCT datname::text FROM pg_stat_activity",
                "SELECT DISTINCT table_catalog::text FROM information_schema.tables",
                "SELECT DISTINCT table_catalog::text FROM information_schema.columns",
                "SELECT DISTINCT catalog_name::text FROM information_schema.schemata",
                "SELECT catalog_name::text FROM information_schema.information_schema_catalog_name",
            ] {
                let rows = client.query(query, &[]).await.expect(query);
                let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
                assert_eq!(names, ["app"], "{query} on {name}");
            }
        });
    }
    let (_, refused) = Raw::begin_as(&server, "tester", "fabius");
    assert_eq!(field(&refused, b'C'), "3D000");
}

async fn connected(server: &Server, database: &str) -> Client {
    connect(&format!("host=127.0.0.1 port={} dbname={database} user=tester", server.port())).await
}

async fn run(client: &Client, statements: &[&str]) {
    for statement in statements {
        client.batch_execute(statement).await.unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }
}

async fn state(client: &Client, statement: &str) -> String {
    let outcome = client.batch_execute(statement).await;
    let error = outcome.expect_err(statement);
    error.code().map(|code| code.code().to_string()).unwrap_or_default()
}

async fn texts(client: &Client, query: &str) -> Vec<String> {
    let rows = client.query(query, &[]).await.expect(query);
    rows.iter().map(|row| row.get(0)).collect()
}

fn is_refused(server: &Server, database: &str) -> bool {
    let (_, refused) = Raw::begin_as(server, "tester", database);
    field(&refused, b'C') == "3D000"
}

/// Goal: names mean something else in each database; what was made there is there after a kill, and gone when its
/// database is.
#[test]
fn databases_are_apart() {
    let server = Server::start(&[]);
    block_on(async {
        let main = connected(&server, "fabius").await;
        run(
            &main,
            &["CREATE DATABASE one", "CREATE DATABASE \"Two 2\" WITH TEMPLATE template0 ENCODING = 'UTF8'"],
        )
        .await;
        run(&main, &["CREATE TABLE t (a int PRIMARY KEY)", "INSERT INTO t VALUES (1)"]).await;
        let one = connected(&server, "one").await;
        run(
            &one,
            &[
                "CREATE TABLE t (b serial PRIMARY KEY, c text UNIQUE)",
                "INSERT INTO t (c) VALUES ('x'), ('y')",
                "CREATE TYPE mood AS ENUM ('sad', 'ok')",
                "CREATE SCHEMA s",
                "CREATE TABLE s.u (m mood)",
                "INSERT INTO s.u VALUES ('ok')",
                "CREATE VIEW v AS SELECT c FROM t",
                "CREATE FUNCTION f() RETURNS text LANGUAGE sql AS 'SELECT min(c) FROM t'",
                "COMMENT ON TABLE t IS 'here'",
                "COMMENT ON DATABASE one IS 'the first'",
            ],
        )
        .await;
        assert_eq!(texts(&main, "SELECT a::text FROM t").await, ["1"]);
        assert_eq!(state(&main, "SELECT * FROM v").await, "42P01");
        assert_eq!(state(&main, "SELECT 'ok'::mood").await, "42704");
        let named = "SELECT datname::text FROM pg_database ORDER BY 1";
        assert_eq!(texts(&main, named).await, ["Two 2", "fabius", "one"]);
        let said = "SELECT coalesce(shobj_description(oid, 'pg_database'), 'nothing') FROM pg_database \
                    WHERE datname = current_database()";
        assert_eq!(texts(&main, said).await, ["nothing"]);
        assert_eq!(texts(&one, said).await, ["the first"]);
        // The numbers that clients lock are those of one database.
        assert_eq!(texts(&one, "SELECT pg_try_advisory_lock(7)::text").await, ["true"]);
        assert_eq!(texts(&main, "SELECT pg_try_advisory_lock(7)::text").await, ["true"]);
    });
    let server = Server::start_in(server.into_directory(), &[]);
    block_on(async {
        let one = connected(&server, "one").await;
        assert_eq!(texts(&one, "SELECT current_database()::text").await, ["one"]);
        assert_eq!(texts(&one, "SELECT c FROM v ORDER BY 1").await, ["x", "y"]);
        assert_eq!(texts(&one, "SELECT f()").await, ["x"]);
        assert_eq!(texts(&one, "SELECT m::text FROM s.u").await, ["ok"]);
        assert_eq!(texts(&one, "SELECT obj_description('t'::regclass)").await, ["here"]);
        run(&one, &["INSERT INTO t (c) VALUES ('z')"]).await;
        assert_eq!(texts(&one, "SELECT (max(b) > 2)::text FROM t").await, ["true"]);
        let main = connected(&server, "fabius").await;
        assert_eq!(texts(&main, "SELECT a::text FROM t").await, ["1"]);
        // Somebody is there.
        assert_eq!(state(&main, "DROP DATABASE one").await, "55006");
        assert_eq!(state(&one, "DROP DATABASE one").await, "55006");
        assert_eq!(state(&one, "DROP DATABASE fabius").await, "0A000");
        run(&main, &["ALTER DATABASE \"Two 2\" RENAME TO two", "DROP DATABASE one WITH (FORCE)"]).await;
        assert!(one.query("SELECT 1", &[]).await.is_err());
        assert!(is_refused(&server, "one") && is_refused(&server, "Two 2"));
        let two = connected(&server, "two").await;
        assert_eq!(state(&two, "SELECT * FROM t").await, "42P01");
        run(
            &two,
            &["CREATE TABLE t (other date)", "DROP TABLE t", "DROP SCHEMA public", "CREATE SCHEMA apart"],
        )
        .await;
    });
    let server = Server::start_in(server.into_directory(), &[]);
    block_on(async {
        assert!(is_refused(&server, "one"));
        let two = connected(&server, "two").await;
        let schemas =
            "SELECT nspname::text FROM pg_namespace WHERE nspname !~ '^(pg_|information)' ORDER BY 1";
        assert_eq!(texts(&two, schemas).await, ["apart"]);
        let main = connected(&server, "postgres").await;
        assert_eq!(texts(&main, "SELECT a::text FROM t").await, ["1"]);
        run(&main, &["CREATE DATABASE one", "DROP SCHEMA public CASCADE"]).await;
        let one = connected(&server, "one").await;
        assert_eq!(texts(&one, "SELECT relname::text FROM pg_class WHERE oid > 16383").await, [""; 0]);
        assert_eq!(texts(&one, schemas).await, ["public"]);
    });
    let server = Server::start_in(server.into_directory(), &[]);
    block_on(async {
        let main = connected(&server, "fabius").await;
        let schemas = "SELECT nspname::text FROM pg_namespace WHERE nspname = 'public'";
        assert_eq!(texts(&main, schemas).await, [""; 0]);
        assert_eq!(state(&main, "CREATE TABLE t (a int)").await, "3F000");
        run(&main, &["CREATE SCHEMA public", "CREATE TABLE t (a int)"]).await;
        assert_eq!(texts(&main, schemas).await, ["public"]);
    });
}

/// Goal: what cannot be is refused as PostgreSQL refuses it.
#[test]
fn databases_that_cannot_be() {
    let server = Server::start(&[]);
    block_on(async {
        let main = connected(&server, "fabius").await;
        for (statement, expected) in [
            ("CREATE DATABASE fabius", "42P04"),
            ("CREATE DATABASE postgres", "42P04"),
            ("CREATE DATABASE", "42601"),
            ("CREATE DATABASE x TEMPLATE nosuch", "3D000"),
            ("CREATE DATABASE x ENCODING 'LATIN1'", "0A000"),
            ("CREATE DATABASE x LC_COLLATE 'de_DE'", "0A000"),
            ("DROP DATABASE nosuch", "3D000"),
            ("ALTER DATABASE nosuch RENAME TO x", "3D000"),
            ("ALTER DATABASE fabius RENAME TO x", "0A000"),
            ("BEGIN; CREATE DATABASE x", "25001"),
        ] {
            assert_eq!(state(&main, statement).await, expected, "{statement}");
        }
        run(&main, &["ROLLBACK", "DROP DATABASE IF EXISTS nosuch", "CREATE DATABASE x"]).await;
        assert_eq!(state(&main, "BEGIN; DROP DATABASE x").await, "25001");
        run(&main, &["ROLLBACK", "DROP DATABASE x"]).await;
        assert_eq!(texts(&main, "SELECT datname::text FROM pg_database").await, ["fabius"]);
    });
}
