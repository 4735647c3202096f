//! Roles as the server's clients meet them: who may connect, how their sessions begin, what they may do to others.

use crate::support::{Server, block_on, connect};
use tokio_postgres::{Client, NoTls};

fn state(error: &tokio_postgres::Error) -> String {
    error.code().map(|code| code.code().to_string()).unwrap_or_default()
}

/// A session, or the SQLSTATE of why there is none.
async fn log_in(server: &Server, user: &str, password: &str, more: &str) -> Result<Client, String> {
    let port = server.port();
    let conninfo = format!("host=127.0.0.1 port={port} dbname=fabius user={user} password={password} {more}");
    let (client, connection) =
        tokio_postgres::connect(&conninfo, NoTls).await.map_err(|error| state(&error))?;
    tokio::spawn(connection);
    Ok(client)
}

async fn refused(client: &Client, statement: &str) -> String {
    state(&client.batch_execute(statement).await.expect_err(statement))
}

async fn text(client: &Client, query: &str) -> String {
    client.query_one(query, &[]).await.expect(query).get(0)
}

/// Goal: a role's password, its right to log in, its limit and the database's `CONNECT` decide who gets in, and its
/// settings how the session begins; whoever is in the file besides is a superuser.
#[test]
fn who_may_connect() {
    let folder = tempfile::tempdir().expect("a directory");
    let users = folder.path().join("users");
    std::fs::write(&users, "ana:right\n").expect("a file");
    let server = Server::start(&["--users", &users.display().to_string()]);
    block_on(async {
        let ana = log_in(&server, "ana", "right", "").await.expect("ana");
        let roles = "CREATE ROLE app LOGIN PASSWORD 'secret' CONNECTION LIMIT 1;
             ALTER ROLE app SET search_path = own, public;
             ALTER ROLE app SET statement_timeout = '90s';
             CREATE ROLE idle PASSWORD 'secret';
             CREATE ROLE past LOGIN PASSWORD 'secret' VALID UNTIL '2001-01-01';
             CREATE ROLE bare LOGIN;";
        // A reserved name takes all of them back.
        assert_eq!(refused(&ana, &format!("{roles} CREATE ROLE none")).await, "42939");
        ana.batch_execute(roles).await.expect("roles");
        for (user, password, expected) in [
            ("app", "wrong", "28P01"),
            ("idle", "secret", "28000"),
            ("past", "secret", "28P01"),
            ("bare", "", "28P01"),
            ("nobody", "secret", "28P01"),
        ] {
            let password = if password.is_empty() { "x" } else { password };
            assert_eq!(log_in(&server, user, password, "").await.err().as_deref(), Some(expected), "{user}");
        }
        let app = log_in(&server, "app", "secret", "").await.expect("app");
        assert_eq!(text(&app, "SHOW search_path").await, "own, public");
        assert_eq!(text(&app, "SHOW statement_timeout").await, "90s");
        assert_eq!(text(&app, "SHOW is_superuser").await, "off");
        assert_eq!(text(&app, "SELECT current_user::text").await, "app");
        assert_eq!(log_in(&server, "app", "secret", "").await.err().as_deref(), Some("53300"));
        drop(app);
        ana.batch_execute("ALTER ROLE app CONNECTION LIMIT -1").await.expect("no limit");
        // What a session asks for when it begins is no way around.
        let wish = "options='-c role=postgres'";
        assert_eq!(log_in(&server, "app", "secret", wish).await.err().as_deref(), Some("42501"));
        ana.batch_execute("REVOKE CONNECT ON DATABASE fabius FROM PUBLIC").await.expect("closed");
        assert_eq!(log_in(&server, "app", "secret", "").await.err().as_deref(), Some("42501"));
        ana.batch_execute("GRANT CONNECT ON DATABASE fabius TO app").await.expect("open");
        log_in(&server, "app", "secret", "").await.expect("app again");
    });
    // Roles outlive the server.
    let server = Server::start_in(server.into_directory(), &["--users", &users.display().to_string()]);
    block_on(async {
        log_in(&server, "app", "secret", "").await.expect("app after a restart");
        assert_eq!(log_in(&server, "app", "right", "").await.err().as_deref(), Some("28P01"));
    });
}

/// Goal: a plan that one role made is none of another's, and a `REVOKE` ends those that are there.
#[test]
fn plans_are_those_of_a_role() {
    let server = Server::start(&[]);
    let conninfo = |user: &str| format!("host=127.0.0.1 port={} dbname=fabius user={user}", server.port());
    block_on(async {
        let owner = connect(&conninfo("owner")).await;
        owner
            .batch_execute(
                "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE TABLE t (k int PRIMARY KEY, v int);
                 INSERT INTO t VALUES (1, 1); GRANT SELECT ON t TO app",
            )
            .await
            .expect("a table");
        let read = owner.prepare("SELECT v FROM t WHERE k = 1").await.expect("a statement");
        assert_eq!(owner.query(&read, &[]).await.expect("rows").len(), 1);
        owner.batch_execute("SET ROLE other").await.expect("another role");
        assert_eq!(state(&owner.query(&read, &[]).await.expect_err("a row")), "42501");
        owner.batch_execute("RESET ROLE").await.expect("back");
        let app = connect(&conninfo("app")).await;
        let read = app.prepare("SELECT v FROM t WHERE k = 1").await.expect("a statement");
        assert_eq!(app.query(&read, &[]).await.expect("rows").len(), 1);
        assert_eq!(refused(&app, "SELECT v FROM t WHERE k = 1 FOR UPDATE").await, "42501");
        assert_eq!(refused(&app, "SELECT v FROM t LIMIT 1 FOR UPDATE SKIP LOCKED").await, "42501");
        assert_eq!(refused(&app, "COPY t FROM STDIN").await, "42501");
        assert_eq!(refused(&app, "WITH w AS (DELETE FROM t RETURNING v) SELECT * FROM w").await, "42501");
        assert_eq!(refused(&app, "EXPLAIN UPDATE t SET v = 2").await, "42501");
        assert_eq!(refused(&app, "DO $$ begin update t set v = 2; end $$").await, "42501");
        assert_eq!(refused(&app, "BEGIN; LOCK TABLE t IN EXCLUSIVE MODE").await, "42501");
        app.batch_execute("ROLLBACK").await.expect("an end");
        assert_eq!(refused(&app, "CHECKPOINT").await, "42501");
        owner.batch_execute("REVOKE SELECT ON t FROM app").await.expect("taken back");
        assert_eq!(state(&app.query(&read, &[]).await.expect_err("a row")), "42501");
        // A role that is gone is nobody, not the one that lets anybody in.
        owner.batch_execute("GRANT SELECT ON t TO PUBLIC; DROP ROLE app").await.expect("gone");
        assert_eq!(app.query(&read, &[]).await.expect("everybody may").len(), 1);
        assert_eq!(refused(&app, "INSERT INTO t VALUES (2, 2)").await, "42501");
    });
}

/// Goal: what others run is hidden from a role that is not theirs, which cannot end it either.
#[test]
fn sessions_of_others() {
    let server = Server::start(&[]);
    let conninfo = |user: &str| format!("host=127.0.0.1 port={} dbname=fabius user={user}", server.port());
    block_on(async {
        let owner = connect(&conninfo("owner")).await;
        owner.batch_execute("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN").await.expect("roles");
        let (app, other) = (connect(&conninfo("app")).await, connect(&conninfo("other")).await);
        let process: i32 = app.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        let query = format!("SELECT query FROM pg_stat_activity WHERE pid = {process}");
        assert_eq!(text(&other, &query).await, "<insufficient privilege>");
        assert!(text(&owner, &query).await.contains("pg_backend_pid"));
        assert_eq!(refused(&other, &format!("SELECT pg_terminate_backend({process})")).await, "42501");
        owner.batch_execute("GRANT pg_signal_backend, pg_read_all_stats TO other").await.expect("more");
        assert!(text(&other, &query).await.contains("pg_backend_pid"));
        other.batch_execute(&format!("SELECT pg_cancel_backend({process})")).await.expect("cancelled");
    });
}

/// Goal: a role is one of all databases, before and after a restart, and is kept while any of them needs it; what is
/// granted on a database is that database's.
#[test]
fn roles_are_those_of_all_databases() {
    let mut server = Server::start(&[]);
    for is_new in [true, false] {
        let conninfo = |database: &str, user: &str| {
            format!("host=127.0.0.1 port={} dbname={database} user={user}", server.port())
        };
        block_on(async {
            let owner = connect(&conninfo("fabius", "owner")).await;
            if is_new {
                owner.batch_execute("CREATE DATABASE other").await.expect("a database");
                let there = connect(&conninfo("other", "owner")).await;
                owner.batch_execute("CREATE ROLE app LOGIN").await.expect("a role");
                assert_eq!(refused(&there, "SET ROLE app; CREATE TABLE t (k int)").await, "42501");
                owner.batch_execute("ALTER DATABASE other OWNER TO app").await.expect("its database");
                let app = connect(&conninfo("other", "app")).await;
                // The owner of a database may make things in its `public`.
                app.batch_execute("CREATE SCHEMA own; CREATE TABLE own.t (k int); CREATE TABLE p (k int)")
                    .await
                    .expect("tables");
            }
            let app = connect(&conninfo("other", "app")).await;
            assert_eq!(
                text(&app, "SELECT tableowner::text FROM pg_tables WHERE tablename = 't'").await,
                "app"
            );
            app.batch_execute("INSERT INTO own.t VALUES (1); INSERT INTO p VALUES (1)")
                .await
                .expect("it owns the table");
            assert_eq!(refused(&app, "CREATE ROLE more").await, "42501");
            let here = connect(&conninfo("fabius", "app")).await;
            assert_eq!(refused(&here, "CREATE SCHEMA mine").await, "42501");
            let error = owner.batch_execute("DROP ROLE app").await.expect_err("it is needed");
            let detail = error.as_db_error().and_then(|error| error.detail()).unwrap_or_default();
            assert_eq!(detail, "owner of database other\n3 objects in database other");
            let datdba = "SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = 'other'";
            assert_eq!(text(&owner, datdba).await, "app");
        });
        if is_new {
            server = Server::start_in(server.into_directory(), &[]);
        }
    }
}
