//! Who waits for whom, and for how long: locks as their users see them.

use crate::support::{PATIENCE, Server, block_on, connect};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, SimpleQueryMessage};

const TABLES: &str = "CREATE TABLE stock (id integer PRIMARY KEY, name text, qty integer);
    INSERT INTO stock VALUES (1, 'pen', 10), (2, 'ink', 1), (3, 'cup', 5)";

/// A connection, with its number.
struct Session {
    client: Arc<Client>,
    process: i32,
}

impl Session {
    async fn new(server: &Server) -> Session {
        let client = Arc::new(connect(&server.conninfo()).await);
        let process = client.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
        Session { client, process }
    }

    /// One that is in a block of a mode.
    async fn begun(server: &Server, mode: &str) -> Session {
        let session = Session::new(server).await;
        session.ok(&format!("SET fabius.concurrency = '{mode}'; BEGIN")).await;
        session
    }

    /// Runs statements, which have to succeed; the first column of the rows.
    async fn ok(&self, text: &str) -> Vec<String> {
        self.run(text).await.unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    async fn run(&self, text: &str) -> Result<Vec<String>, DbError> {
        run(&self.client, text).await
    }

    /// Runs statements, of which one has to fail.
    async fn fails(&self, text: &str) -> DbError {
        self.run(text).await.expect_err(text)
    }

    /// Begins to run statements; returns when the server says that they wait, for what.
    async fn waits(&self, text: &str, observer: &Session) -> (Waiting, String) {
        let (client, text) = (self.client.clone(), text.to_string());
        let waiting = tokio::spawn(async move { run(&client, &text).await });
        let query = format!(
            "SELECT wait_event FROM pg_stat_activity WHERE pid = {} AND wait_event_type = 'Lock'",
            self.process
        );
        let begun = Instant::now();
        loop {
            assert!(!waiting.is_finished(), "it does not wait: {:?}", waiting.await);
            assert!(begun.elapsed() < PATIENCE, "nobody says that it waits");
            if let Some(event) = observer.ok(&query).await.pop() {
                return (waiting, event);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

type Waiting = JoinHandle<Result<Vec<String>, DbError>>;

async fn run(client: &Client, text: &str) -> Result<Vec<String>, DbError> {
    let messages = client
        .simple_query(text)
        .await
        .map_err(|error| error.as_db_error().expect("the server's error").clone())?;
    let first = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("null").to_string()),
        _ => None,
    };
    Ok(messages.iter().filter_map(first).collect())
}

fn test<F: Future<Output = ()>>(work: impl FnOnce(Server) -> F) {
    let server = Server::start(&[]);
    server.run(TABLES);
    block_on(work(server));
}

/// Goal: a write that a pessimistic session's condition holds up: who waits, for whom, since when, on what.
#[test]
fn who_holds_it_up_is_shown() {
    test(async |server| {
        let (observer, writer) = (Session::new(&server).await, Session::new(&server).await);
        let holder = Session::begun(&server, "pessimistic").await;
        assert_eq!(holder.ok("SELECT qty FROM stock WHERE id = 1").await, ["10"]);
        let text = "UPDATE stock SET qty = 3 WHERE id = 1";
        let (waiting, event) = writer.waits(text, &observer).await;
        assert_eq!(event, "condition");
        let blocking = format!("SELECT pg_blocking_pids({})", writer.process);
        assert_eq!(observer.ok(&blocking).await, [format!("{{{}}}", holder.process)]);
        let locks = "SELECT pid || ' ' || mode || ' ' || granted || ' ' || (waitstart IS NULL) FROM pg_locks
            WHERE locktype = 'condition' AND relation = 'stock'::regclass ORDER BY granted DESC";
        let expected = [
            format!("{} ConditionLock true true", holder.process),
            format!("{} RowExclusiveLock false false", writer.process),
        ];
        assert_eq!(observer.ok(locks).await, expected);
        let state = |session: &Session| {
            format!("SELECT state || ': ' || query FROM pg_stat_activity WHERE pid = {}", session.process)
        };
        assert_eq!(observer.ok(&state(&writer)).await, [format!("active: {text}")]);
        let shown = "idle in transaction: SELECT qty FROM stock WHERE id = 1";
        assert_eq!(observer.ok(&state(&holder)).await, [shown]);
        // What leaves the condition as it is need not wait.
        observer
            .ok("UPDATE stock SET name = 'pencil' WHERE id = 1; UPDATE stock SET qty = 2 WHERE id = 2")
            .await;
        holder.ok("COMMIT").await;
        waiting.await.expect("it ends").expect("nobody is in the way any more");
        assert_eq!(observer.ok("SELECT count(*) FROM pg_locks WHERE locktype = 'condition'").await, ["0"]);
        assert_eq!(observer.ok(&blocking).await, ["{}"]);
    });
}

/// Goal: while somebody waits for a lock, transactions beyond the places that there are wait at their `BEGIN`, and all
/// go on.
#[test]
fn newcomers_wait_while_locks_are_waited_for() {
    let server = Server::start(&["--transactions-at-once", "1"]);
    server.run(TABLES);
    block_on(async {
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok("SELECT qty FROM stock WHERE id = 1 FOR UPDATE").await;
        let come = async || {
            let (one, other) = (Session::new(&server).await, Session::new(&server).await);
            let turns = async |session: Session| {
                for _ in 0..50 {
                    session.ok("BEGIN").await;
                    session.ok("SELECT qty FROM stock WHERE id = 2").await;
                    session.ok("COMMIT").await;
                }
            };
            tokio::join!(turns(one), turns(other));
            let page = server.get("/metrics");
            let count =
                page.lines().find_map(|line| line.strip_prefix("fabius_transactions_held_back_total "));
            count.expect("it is counted").parse::<u64>().expect("a number")
        };
        assert_eq!(come().await, 0, "nobody waits for a lock");
        let (observer, writer) = (Session::new(&server).await, Session::new(&server).await);
        let (waiting, _) = writer.waits("UPDATE stock SET qty = 3 WHERE id = 1", &observer).await;
        assert!(come().await > 0, "nobody was held back");
        holder.ok("COMMIT").await;
        waiting.await.expect("it ends").expect("nobody is in the way any more");
    });
}

/// Goal: the older wounds the younger, which is told the row and by whom.
#[test]
fn the_wounded_is_told_by_whom() {
    test(async |server| {
        let observer = Session::new(&server).await;
        let older = Session::begun(&server, "pessimistic").await;
        let younger = Session::begun(&server, "pessimistic").await;
        older.ok("SELECT qty FROM stock WHERE id = 1").await;
        younger.ok("SELECT qty FROM stock WHERE id = 3").await;
        younger.ok("UPDATE stock SET qty = 0 WHERE id = 1").await;
        older.ok("UPDATE stock SET qty = 0 WHERE id = 3").await;
        let (waiting, event) = younger.waits("COMMIT", &observer).await;
        assert_eq!(event, "condition");
        older.ok("COMMIT").await;
        let error = waiting.await.expect("it ends").expect_err("it is wounded");
        assert_eq!(error.code().code(), "40001");
        assert_eq!(error.message(), "could not serialize access due to concurrent update");
        let (young, old) = (younger.process, older.process);
        let detail =
            format!("process {young} gave way to process {old}, which is older and wanted stock (id) = (3)");
        assert_eq!(error.detail(), Some(detail.as_str()));
        assert_eq!(observer.ok("SELECT qty FROM stock ORDER BY id").await, ["10", "1", "0"]);
        // The transaction has ended with its commit.
        younger.ok("BEGIN; SELECT 1; COMMIT").await;
    });
}

/// Goal: an optimistic conflict names the row, its columns, and both transactions.
#[test]
fn conflicts_name_both_sides() {
    test(async |server| {
        let (loser, winner) = (Session::begun(&server, "optimistic").await, Session::new(&server).await);
        loser.ok("UPDATE stock SET qty = qty - 1 WHERE id = 3 AND qty >= 1").await;
        loser.ok("SELECT qty FROM stock WHERE id = 1").await;
        winner.ok("UPDATE stock SET qty = qty - 1, name = 'red pen' WHERE id = 1 AND qty >= 1").await;
        let seq = winner.ok("SELECT fabius.last_seq()").await.remove(0);
        let error = loser.fails("COMMIT").await;
        assert_eq!(error.code().code(), "40001");
        assert_eq!(error.message(), "could not serialize access due to concurrent update");
        let detail = format!(
            "statement 2 of process {}; stock (id) = (1): name was pen, is red pen, qty was 10, is 9, changed by process {} (seq {seq})",
            loser.process, winner.process
        );
        assert_eq!(error.detail(), Some(detail.as_str()));
        assert_eq!(error.hint(), Some("the transaction might succeed if retried"));
    });
}

/// Goal: waits on conditions end with `lock_timeout`, in and outside of blocks, at the statement and at the commit, and
/// leave nothing behind.
#[test]
fn waits_end_with_lock_timeout() {
    test(async |server| {
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok("SELECT qty FROM stock WHERE id = 1").await;
        let session = Session::new(&server).await;
        session.ok("SET lock_timeout = '20ms'").await;
        let refused = |error: DbError| {
            assert_eq!(error.code().code(), "55P03");
            assert_eq!(error.message(), "canceling statement due to lock timeout");
            let detail = format!("stock (id) = (1) is locked by process {}", holder.process);
            assert_eq!(error.detail(), Some(detail.as_str()));
        };
        refused(session.fails("UPDATE stock SET qty = 0 WHERE id = 1").await);
        refused(session.fails("SELECT qty FROM stock WHERE id = 1 FOR UPDATE").await);
        session.ok("BEGIN; UPDATE stock SET qty = 0 WHERE id = 1").await;
        refused(session.fails("COMMIT").await);
        session.ok("BEGIN; SET LOCAL lock_timeout = '10ms'").await;
        refused(session.fails("SELECT qty FROM stock WHERE id = 1 FOR UPDATE").await);
        assert_eq!(session.fails("SELECT 1").await.code().code(), "25P02");
        session.ok("ROLLBACK").await;
        holder.ok("COMMIT").await;
        assert_eq!(session.ok("SELECT qty FROM stock WHERE id = 1").await, ["10"]);
        assert_eq!(session.ok("SELECT count(*) FROM pg_locks WHERE locktype = 'condition'").await, ["0"]);
    });
}

/// Goal: the same with `statement_timeout`, cancel requests and `pg_cancel_backend`: what was given up has not
/// happened.
#[test]
fn waits_can_be_given_up() {
    test(async |server| {
        let (observer, session) = (Session::new(&server).await, Session::new(&server).await);
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok("SELECT qty FROM stock WHERE id = 1").await;
        let write = "UPDATE stock SET qty = 0 WHERE id = 1";
        session.ok("SET statement_timeout = '50ms'").await;
        let error = session.fails(write).await;
        assert_eq!(
            (error.code().code(), error.message()),
            ("57014", "canceling statement due to statement timeout")
        );
        session.ok("BEGIN").await;
        session.ok(write).await;
        assert_eq!(session.fails("COMMIT").await.code().code(), "57014");
        // The block has ended with its commit.
        session.ok("SET statement_timeout = 0; BEGIN").await;
        session.ok(write).await;
        session.ok("ROLLBACK").await;
        let cancelled = |error: DbError| {
            assert_eq!(
                (error.code().code(), error.message()),
                ("57014", "canceling statement due to user request")
            );
        };
        let (waiting, _) = session.waits(write, &observer).await;
        session.client.cancel_token().cancel_query(tokio_postgres::NoTls).await.expect("a request");
        cancelled(waiting.await.expect("it ends").expect_err("given up"));
        let (waiting, _) = session.waits(write, &observer).await;
        assert_eq!(observer.ok(&format!("SELECT pg_cancel_backend({})", session.process)).await, ["t"]);
        cancelled(waiting.await.expect("it ends").expect_err("given up"));
        assert_eq!(observer.ok("SELECT pg_cancel_backend(1000000)").await, ["f"]);
        holder.ok("COMMIT").await;
        assert_eq!(observer.ok("SELECT qty FROM stock WHERE id = 1").await, ["10"]);
        assert_eq!(observer.ok("SELECT count(*) FROM pg_locks WHERE NOT granted").await, ["0"]);
    });
}

/// Goal: a holder that does nothing for too long, or is ended, or has failed, holds nobody up any more.
#[test]
fn holders_that_have_gone_hold_nothing() {
    test(async |server| {
        let (observer, writer) = (Session::new(&server).await, Session::new(&server).await);
        let hold = "SELECT qty FROM stock WHERE id = 1";
        let write = "UPDATE stock SET qty = qty + 1 WHERE id = 1";
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok(hold).await;
        let (waiting, _) = writer.waits(write, &observer).await;
        holder.ok("SET idle_in_transaction_session_timeout = '20ms'").await;
        waiting.await.expect("it ends").expect("the holder has gone");
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok(hold).await;
        let (waiting, _) = writer.waits(write, &observer).await;
        assert_eq!(observer.ok(&format!("SELECT pg_terminate_backend({})", holder.process)).await, ["t"]);
        waiting.await.expect("it ends").expect("the holder has gone");
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok(hold).await;
        let (waiting, _) = writer.waits(write, &observer).await;
        assert_eq!(holder.fails("SELECT 1 / 0").await.code().code(), "22012");
        waiting.await.expect("it ends").expect("the holder has failed");
        let holder = Session::begun(&server, "pessimistic").await;
        holder.ok("SAVEPOINT s").await;
        holder.ok(hold).await;
        let (waiting, _) = writer.waits(write, &observer).await;
        holder.ok("ROLLBACK TO s").await;
        waiting.await.expect("it ends").expect("the lock is gone with the savepoint");
        assert_eq!(observer.ok(hold).await, ["14"]);
    });
}

/// Goal: `FOR UPDATE` queues; `FOR SHARE` goes together with itself; `NOWAIT` does not wait.
#[test]
fn rows_are_locked() {
    test(async |server| {
        let observer = Session::new(&server).await;
        for [share, update] in [["SHARE", "UPDATE"], ["KEY SHARE", "NO KEY UPDATE"]] {
            let (first, second) =
                (Session::begun(&server, "optimistic").await, Session::begun(&server, "optimistic").await);
            let row = "SELECT qty FROM stock WHERE id = 1";
            first.ok(&format!("{row} FOR {share}")).await;
            second.ok(&format!("{row} FOR {share} NOWAIT")).await;
            second.ok("ROLLBACK; BEGIN").await;
            let error = second.fails(&format!("{row} FOR {update} NOWAIT")).await;
            assert_eq!(
                (error.code().code(), error.message()),
                ("55P03", "could not obtain lock on row in relation \"stock\"")
            );
            second.ok("ROLLBACK; BEGIN").await;
            let (waiting, event) = second.waits(&format!("{row} FOR {update}"), &observer).await;
            assert_eq!(event, "condition");
            first.ok("UPDATE stock SET qty = qty - 1 WHERE id = 1; COMMIT").await;
            let seen = waiting.await.expect("it ends").expect("it is its turn");
            assert_eq!(seen, observer.ok(row).await, "what the first has written");
            assert_eq!(observer.fails(&format!("{row} FOR SHARE NOWAIT")).await.code().code(), "55P03");
            second.ok("UPDATE stock SET qty = qty - 1 WHERE id = 1; COMMIT").await;
        }
        assert_eq!(observer.ok("SELECT qty FROM stock WHERE id = 1").await, ["6"]);
        // A query that is not a program locks too, the tables that are named.
        let first = Session::begun(&server, "optimistic").await;
        first
            .ok("SELECT s.id, row_number() OVER () FROM (SELECT * FROM stock WHERE id = 2 FOR UPDATE) s")
            .await;
        assert_eq!(
            observer.fails("SELECT 1 FROM stock WHERE id = 2 FOR SHARE NOWAIT").await.code().code(),
            "55P03"
        );
    });
}

/// Goal: several clients work off a queue, in every form that takes its next row with `SKIP LOCKED`: each job is done
/// once, and nobody is told to try again.
#[test]
fn a_queue_is_worked_off() {
    test(async |server| {
        let owner = Session::new(&server).await;
        owner.ok("CREATE TABLE jobs (id int PRIMARY KEY, state text NOT NULL, worker int)").await;
        let next = "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
        for mode in ["optimistic", "pessimistic"] {
            for form in 0..2 {
                owner
                    .ok("DELETE FROM jobs; INSERT INTO jobs SELECT n, 'new' FROM generate_series(1, 40) AS n")
                    .await;
                let mut workers = Vec::new();
                for worker in 0..4 {
                    let session = Session::new(&server).await;
                    session.ok(&format!("SET fabius.concurrency = '{mode}'")).await;
                    let done = format!("UPDATE jobs SET state = 'done', worker = {worker}");
                    workers.push(tokio::spawn(async move {
                        let mut count = 0;
                        loop {
                            let taken = match form {
                                0 => {
                                    let taken = session.ok(&format!("BEGIN; {next}")).await;
                                    for id in &taken {
                                        session.ok(&format!("{done} WHERE id = {id}")).await;
                                    }
                                    session.ok("COMMIT").await;
                                    taken
                                }
                                _ => session.ok(&format!("{done} WHERE id = ({next}) RETURNING id")).await,
                            };
                            count += taken.len();
                            if taken.is_empty() {
                                return count;
                            }
                        }
                    }));
                }
                let mut count = 0;
                for worker in workers {
                    count += worker.await.expect("it ends");
                }
                let done =
                    owner.ok("SELECT count(*) FROM jobs WHERE state = 'done' AND worker IS NOT NULL").await;
                assert_eq!((count, done), (40, vec!["40".to_string()]), "{mode}, {form}");
            }
        }
    });
}

const LOCK_MODES: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

/// Goal: `LOCK TABLE` in all modes, as PostgreSQL's table of conflicts has it; statements take the modes that they do
/// there.
#[test]
fn tables_are_locked() {
    test(async |server| {
        // A row for each mode that is held, a column for each that is wanted.
        let conflicts =
            ["-------x", "------xx", "----xxxx", "---xxxxx", "--xx-xxx", "--xxxxxx", "-xxxxxxx", "xxxxxxxx"];
        let (holder, other) = (Session::new(&server).await, Session::new(&server).await);
        for (held, row) in LOCK_MODES.iter().zip(conflicts) {
            holder.ok(&format!("BEGIN; LOCK TABLE stock IN {held} MODE")).await;
            let mut found = String::new();
            for wanted in LOCK_MODES {
                let asked = other.run(&format!("BEGIN; LOCK TABLE stock IN {wanted} MODE NOWAIT")).await;
                found.push(if asked.is_ok() { '-' } else { 'x' });
                if let Err(error) = asked {
                    assert_eq!(
                        (error.code().code(), error.message()),
                        ("55P03", "could not obtain lock on relation \"stock\"")
                    );
                }
                other.ok("ROLLBACK").await;
            }
            assert_eq!(found, row, "{held}");
            for (statement, column) in [
                ("SELECT qty FROM stock WHERE id = 1", 0),
                ("SELECT qty FROM stock WHERE id = 1 FOR UPDATE", 1),
                ("UPDATE stock SET qty = 1 WHERE id = 1", 2),
                ("INSERT INTO stock SELECT 10 * id, name, qty FROM stock WHERE id > 100", 2),
                ("TRUNCATE stock", 7),
            ] {
                other.ok("SET lock_timeout = '10ms'; BEGIN").await;
                let is_refused =
                    other.run(statement).await.is_err_and(|error| error.code().code() == "55P03");
                assert_eq!(is_refused, row.as_bytes()[column] == b'x', "{statement} beside {held}");
                other.ok("ROLLBACK").await;
            }
            holder.ok("ROLLBACK").await;
        }
        // Who waits is shown.
        holder.ok("BEGIN; LOCK stock").await;
        let (waiting, event) = Session::new(&server).await.waits("SELECT count(*) FROM stock", &other).await;
        assert_eq!(event, "relation");
        let waits = "SELECT mode FROM pg_locks WHERE NOT granted AND relation = 'stock'::regclass";
        assert_eq!(other.ok(waits).await, ["AccessShareLock"]);
        holder.ok("COMMIT").await;
        assert_eq!(waiting.await.expect("it ends").expect("it is free"), ["3"]);
    });
}

/// Goal: a circle over a table and a condition is found, and broken with 40P01.
#[test]
fn circles_are_broken() {
    test(async |server| {
        let observer = Session::new(&server).await;
        let (one, two) =
            (Session::begun(&server, "pessimistic").await, Session::begun(&server, "pessimistic").await);
        observer.ok("CREATE TABLE other (id integer PRIMARY KEY)").await;
        one.ok("SELECT qty FROM stock WHERE id = 1 FOR UPDATE").await;
        two.ok("LOCK TABLE other").await;
        let (waiting, _) = two.waits("SELECT qty FROM stock WHERE id = 1 FOR UPDATE", &observer).await;
        let error = one.fails("SELECT count(*) FROM other").await;
        assert_eq!((error.code().code(), error.message()), ("40P01", "deadlock detected"));
        waiting.await.expect("it ends").expect("the other has given way");
    });
}

/// Goal: advisory locks: of the session and of the transaction, shared and not, counted, waited for, shown, given back.
#[test]
fn numbers_are_locked() {
    test(async |server| {
        let (a, b, observer) =
            (Session::new(&server).await, Session::new(&server).await, Session::new(&server).await);
        a.ok("SELECT pg_advisory_lock(7)").await;
        a.ok("SELECT pg_advisory_lock(7)").await;
        assert_eq!(b.ok("SELECT pg_try_advisory_lock(7)").await, ["f"]);
        // A pair is another number.
        assert_eq!(b.ok("SELECT pg_try_advisory_lock(0, 7)").await, ["t"]);
        let (waiting, event) = b.waits("SELECT pg_advisory_lock(7), 'mine'", &observer).await;
        assert_eq!(event, "advisory");
        let locks =
            "SELECT pid || ' ' || classid || ' ' || objid || ' ' || objsubid || ' ' || mode || ' ' || granted
            FROM pg_locks WHERE locktype = 'advisory' ORDER BY granted DESC, objsubid";
        let expected = [
            format!("{} 0 7 1 ExclusiveLock true", a.process),
            format!("{} 0 7 2 ExclusiveLock true", b.process),
            format!("{} 0 7 1 ExclusiveLock false", b.process),
        ];
        assert_eq!(observer.ok(locks).await, expected);
        assert_eq!(
            observer.ok(&format!("SELECT pg_blocking_pids({})", b.process)).await,
            [format!("{{{}}}", a.process)]
        );
        assert_eq!(a.ok("SELECT pg_advisory_unlock(7)").await, ["t"]);
        assert!(!waiting.is_finished(), "it was taken twice");
        assert_eq!(a.ok("SELECT pg_advisory_unlock(7)").await, ["t"]);
        waiting.await.expect("it ends").expect("it is free");
        assert_eq!(a.ok("SELECT pg_advisory_unlock(7)").await, ["f"]);
        // The session's end gives back.
        let (waiting, _) = a.waits("SELECT pg_advisory_lock(7)", &observer).await;
        drop(b);
        waiting.await.expect("it ends").expect("it is free");
        a.ok("SELECT pg_advisory_unlock_all()").await;
        assert_eq!(observer.ok(locks).await, [""; 0]);
        // Of the transaction.
        let b = Session::new(&server).await;
        a.ok("BEGIN; SELECT pg_advisory_xact_lock(-1)").await;
        assert_eq!(b.ok("SELECT pg_try_advisory_xact_lock(-1)").await, ["f"]);
        assert_eq!(a.ok("SELECT pg_advisory_unlock(-1)").await, ["f"]);
        let (waiting, _) = b.waits("SELECT pg_advisory_xact_lock(-1)", &observer).await;
        a.ok("ROLLBACK").await;
        waiting.await.expect("it ends").expect("it is free");
        assert_eq!(observer.ok(locks).await, [""; 0], "a statement's transaction ends with it");
        // Shared.
        a.ok("SELECT pg_advisory_lock_shared(5)").await;
        assert_eq!(b.ok("SELECT pg_try_advisory_lock_shared(5)").await, ["t"]);
        assert_eq!(b.ok("SELECT pg_try_advisory_lock(5)").await, ["f"]);
        b.ok("SET lock_timeout = '10ms'").await;
        let error = b.fails("SELECT pg_advisory_lock(id) FROM generate_series(4, 5) id").await;
        assert_eq!(
            (error.code().code(), error.message()),
            ("55P03", "canceling statement due to lock timeout")
        );
        assert_eq!(observer.ok("SELECT pg_try_advisory_lock(4)").await, ["t"], "the statement has failed");
        // Those who wait in a circle are told.
        b.ok("SET lock_timeout = 0; SELECT pg_advisory_unlock_all(); SELECT pg_advisory_lock(6)").await;
        let (waiting, _) = b.waits("SELECT pg_advisory_lock(5)", &observer).await;
        assert_eq!(a.fails("SELECT pg_advisory_lock(6)").await.code().code(), "40P01");
        a.ok("SELECT pg_advisory_unlock_shared(5)").await;
        waiting.await.expect("it ends").expect("it is free");
    });
}
