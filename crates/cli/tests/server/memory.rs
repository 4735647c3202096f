//! What sessions may hold in memory: results stream; what has to be held is bounded.

use crate::raw::{Raw, field, kinds};
use crate::support::{Server, block_on, connect};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// Rows of the large table, and bytes of each.
const ROWS: i64 = 100_000;
const ROW_BYTES: usize = 1000;
/// Less than a result, which is ten times what a session may hold.
const MUCH: u64 = 80 << 20;

/// A server with a large table `big`: the primary key, a number, and text.
fn server(flags: &[&str]) -> Server {
    let server = Server::start(flags);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("CREATE TABLE small (id int PRIMARY KEY, n int NOT NULL); INSERT INTO small VALUES (1, 0)");
    raw.query("CREATE TABLE big (id int PRIMARY KEY, n int NOT NULL, filler text NOT NULL)");
    for first in (1..ROWS).step_by(1000) {
        let rows = format!("generate_series({first}, {}) g", first + 999);
        let answer =
            raw.query(&format!("INSERT INTO big SELECT g, g % 1000, repeat('x', {ROW_BYTES}) FROM {rows}"));
        assert_eq!(kinds(&answer), "CZ");
    }
    server
}

/// The most memory that the server took while this ran, beyond what it had before.
fn took<T>(server: &Server, work: impl FnOnce() -> T) -> (u64, T) {
    let before = server.resident_bytes();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let mut most = 0;
            // Ends also if the work has failed.
            while is_done.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
                most = most.max(server.resident_bytes());
            }
            most
        });
        let result = work();
        drop(done);
        (watch.join().expect("a number").saturating_sub(before), result)
    })
}

/// How many rows a query or a copy gives.
fn count(raw: &mut Raw, text: &str) -> i64 {
    let answer = raw.query(text);
    assert_eq!(answer.iter().filter(|(kind, _)| *kind == b'E').count(), 0, "{text}: {:?}", answer.last());
    answer.iter().filter(|(kind, _)| matches!(kind, b'D' | b'd')).count() as i64
}

/// Goal: results are sent as they are found, and not held: of queries and programs, by themselves and in transactions
/// that have not written, copies and cursors.
#[test]
fn large_results_stream() {
    // Less than any of the results.
    let server = server(&["--session-memory", "10MB"]);
    let all = "SELECT * FROM big";
    let query = "SELECT id, upper(filler) FROM big WHERE id::text <> ''";
    let copies = ["COPY big TO STDOUT", "COPY (SELECT * FROM big ORDER BY id) TO STDOUT"];
    let (bytes, ()) = took(&server, || {
        let (mut raw, _) = Raw::begin(&server);
        for text in [all, query, "SELECT * FROM big WHERE id BETWEEN 1 AND 1000000"].into_iter().chain(copies)
        {
            assert_eq!(count(&mut raw, text), ROWS, "{text}");
        }
        for begin in ["BEGIN", "BEGIN READ ONLY"] {
            raw.query(begin);
            for text in [all, query, copies[0]] {
                assert_eq!(count(&mut raw, text), ROWS, "{text}");
            }
            raw.query("DECLARE c CURSOR FOR SELECT * FROM big");
            let fetches = std::iter::repeat_with(|| count(&mut raw, "FETCH 999 FROM c"));
            assert_eq!(fetches.take_while(|count| *count > 0).sum::<i64>(), ROWS);
            assert_eq!(kinds(&raw.query("COMMIT")), "CZ");
        }
        assert_eq!(block_on(rows_of_a_portal(&server)), ROWS);
    });
    assert!(bytes < MUCH, "{bytes} bytes for results that stream");
}

/// Reads all rows through a portal, some at a time; how many there were.
async fn rows_of_a_portal(server: &Server) -> i64 {
    let mut client = connect(&server.conninfo()).await;
    let transaction = client.transaction().await.expect("a transaction");
    let portal = transaction.bind("SELECT * FROM big", &[]).await.expect("a portal");
    let mut seen = 0;
    loop {
        let rows = transaction.query_portal(&portal, 999).await.expect("rows");
        seen += rows.len() as i32;
        assert_eq!(rows.last().map_or(seen, |row| row.get("id")), seen);
        if rows.len() < 999 {
            return seen.into();
        }
    }
}

/// Goal: what has to be held is refused beyond the bound by an error that says which, and the session goes on.
#[test]
fn what_is_held_is_bounded() {
    let server = server(&["--session-memory", "10MB"]);
    let (mut raw, _) = Raw::begin(&server);
    let refused = |answer: &[(u8, Vec<u8>)]| {
        assert_eq!(field(answer, b'C'), "53200", "{answer:?}");
        let (detail, hint) = (field(answer, b'D'), field(answer, b'H'));
        assert!(detail.contains("session_memory"), "{detail}");
        assert!(hint.contains("raise session_memory"), "{hint}");
    };
    // A transaction that has written keeps what it shows: it has to hold at commit.
    for query in ["SELECT * FROM big", "SELECT id, upper(filler) FROM big WHERE id::text <> ''"] {
        raw.query("BEGIN");
        assert_eq!(kinds(&raw.query("UPDATE small SET n = n + 1")), "CZ");
        refused(&raw.query(query));
        assert_eq!(field(&raw.query("SELECT 1"), b'C'), "25P02");
        assert_eq!(kinds(&raw.query("ROLLBACK")), "CZ");
    }
    // One that has shown much cannot write any more, but goes on reading after a savepoint.
    raw.query("BEGIN");
    assert!(kinds(&raw.query("SELECT * FROM big")).ends_with("DCZ"));
    raw.query("SAVEPOINT s");
    refused(&raw.query("UPDATE small SET n = n + 1"));
    raw.query("ROLLBACK TO s");
    assert_eq!(kinds(&raw.query("SELECT n FROM small")), "TDCZ");
    refused(&raw.query("UPDATE small SET n = n + 1"));
    raw.query("ROLLBACK");
    // Operators hold what the session may: here, one side of the join.
    refused(&raw.query("SELECT count(*) FROM big a JOIN big b ON a.filler || a.id = b.filler || b.id"));
    // A cursor that goes back keeps all of its rows.
    raw.query("BEGIN; DECLARE c SCROLL CURSOR FOR SELECT * FROM big");
    refused(&raw.query("MOVE ALL FROM c"));
    raw.query("ROLLBACK");
    // Nothing of it is held any more.
    raw.query("BEGIN");
    assert_eq!(
        kinds(&raw.query("UPDATE small SET n = n + 1; SELECT * FROM big WHERE id < 1000")).len(),
        1003
    );
    assert_eq!(kinds(&raw.query("COMMIT")), "CZ");
    let found = raw.query("SELECT n FROM small");
    assert!(found.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"1")), "{found:?}");
}

/// Goal: for clients that do not read, the server holds no results.
#[test]
fn clients_that_do_not_read_cost_little() {
    let server = server(&[]);
    let (bytes, _clients) = took(&server, || {
        let mut clients: Vec<Raw> = (0..8).map(|_| Raw::begin(&server).0).collect();
        for (at, raw) in clients.iter_mut().enumerate() {
            let text = ["SELECT * FROM big", "COPY big TO STDOUT"][at % 2];
            raw.send(&[(b'Q', format!("{text}\0").as_bytes())]);
        }
        server.wait_until(
            "SELECT 1 FROM (SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active') AS a WHERE n = 9",
        );
        // Others are served meanwhile.
        let (mut other, _) = Raw::begin(&server);
        (0..200).for_each(|_| assert_eq!(kinds(&other.query("UPDATE small SET n = n + 1")), "CZ"));
        clients
    });
    assert!(bytes < 2 * MUCH, "{bytes} bytes for clients that do not read");
}

/// Goal: rows take no more memory than they may, whoever writes them; what deletes goes on, and makes room.
#[test]
fn rows_are_bounded() {
    let server = Server::start(&["--rows-memory", "40MB"]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("CREATE TABLE r (id int PRIMARY KEY, filler text NOT NULL)");
    let rows = |first: usize| {
        format!("SELECT g, repeat('x', {ROW_BYTES}) FROM generate_series({first}, {}) g", first + 999)
    };
    let mut answers = (0..200).map(|part| raw.query(&format!("INSERT INTO r {}", rows(part * 1000))));
    let refused = answers.find(|answer| kinds(answer).starts_with('E')).expect("a refusal");
    assert_eq!(field(&refused, b'C'), "53200");
    assert!(field(&refused, b'D').contains("rows_memory allows"), "{}", field(&refused, b'D'));
    assert!(field(&refused, b'H').contains("raise rows_memory"), "{}", field(&refused, b'H'));
    let taken = server.resident_bytes();
    assert!(taken < 400 << 20, "{taken} bytes");
    // Others are refused too, in their first statement, be it small, an update or a copy; in transactions as outside.
    let (mut other, _) = Raw::begin(&server);
    assert_eq!(field(&other.query("INSERT INTO r VALUES (-1, 'x')"), b'C'), "53200");
    let (mut other, _) = Raw::begin(&server);
    other.query("BEGIN");
    assert_eq!(field(&other.query("UPDATE r SET filler = 'y' WHERE id = 1"), b'C'), "53200");
    other.query("ROLLBACK");
    assert_eq!(kinds(&other.query("SELECT count(*) FROM r")), "TDCZ");
    // What is deleted is given back once nobody can see it any more.
    assert_eq!(kinds(&other.query("DELETE FROM r")), "CZ");
    let mut is_refused = true;
    for _ in 0..1000 {
        let (mut other, _) = Raw::begin(&server);
        is_refused = kinds(&other.query("INSERT INTO r VALUES (-1, 'x')")) != "CZ";
        if !is_refused {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!is_refused, "there is no room");
}

/// Goal: all sessions together hold no more than is allowed.
#[test]
fn sessions_share_a_bound() {
    let server = server(&["--session-memory", "30MB", "--sessions-memory", "30MB"]);
    let mut sessions: Vec<Raw> = (0..2).map(|_| Raw::begin(&server).0).collect();
    let mut outcomes = Vec::new();
    for raw in &mut sessions {
        raw.query("BEGIN; UPDATE small SET n = n + 1");
        let answer = raw.query("SELECT * FROM big WHERE id <= 11000");
        outcomes.push(kinds(&answer).ends_with("CZ"));
        if !kinds(&answer).ends_with("CZ") {
            assert!(field(&answer, b'D').contains("sessions_memory"), "{}", field(&answer, b'D'));
        }
    }
    assert_eq!(outcomes, [true, false]);
    sessions[0].query("ROLLBACK");
    sessions[1].query("ROLLBACK");
    sessions[1].query("BEGIN; UPDATE small SET n = n + 1");
    assert!(kinds(&sessions[1].query("SELECT * FROM big WHERE id <= 11000")).ends_with("CZ"));
}

/// Goal: what a session prepares counts as held, by SQL and by messages, with the parameters of portals; it is there
/// for others once it is given up.
#[test]
fn prepared_statements_are_counted() {
    let server = server(&["--session-memory", "10MB"]);
    let (mut raw, _) = Raw::begin(&server);
    let text = format!("SELECT {}::text || $1::text", "'x' || ".repeat(200) + "'y'");
    let mut made = 0;
    let refused = loop {
        let parse = format!("s{made}\0{text} AS c{made}\0\0\0");
        raw.send(&[(b'P', parse.as_bytes()), (b'S', b"")]);
        let answer = raw.until(b'Z');
        if kinds(&answer).starts_with('E') {
            break answer;
        }
        made += 1;
    };
    assert_eq!(field(&refused, b'C'), "53200");
    assert!(field(&refused, b'D').contains("session_memory"), "{}", field(&refused, b'D'));
    assert!((3..100).contains(&made), "{made}");
    // There is no room for one by SQL either, until one is closed.
    let prepare = format!("PREPARE one AS {text}");
    assert_eq!(field(&raw.query(&prepare), b'C'), "53200");
    raw.send(&[(b'C', b"Ss0\0"), (b'C', b"Ss1\0"), (b'S', b"")]);
    raw.until(b'Z');
    assert_eq!(kinds(&raw.query(&prepare)), "CZ");
    assert_eq!(kinds(&raw.query("DEALLOCATE one")), "CZ");
    for name in 0..made {
        raw.send(&[(b'C', format!("Ss{name}\0").as_bytes()), (b'S', b"")]);
        raw.until(b'Z');
    }
    // Portals hold their parameters, until their transaction ends.
    raw.query("BEGIN");
    raw.send(&[(b'P', b"p\0SELECT $1::text\0\0\0"), (b'S', b"")]);
    raw.until(b'Z');
    let parameter = "x".repeat(1 << 20);
    let mut bind = |portal: usize| {
        let mut body = format!("p{portal}\0p\0\0\0\0\x01").into_bytes();
        body.extend((parameter.len() as u32).to_be_bytes());
        body.extend(parameter.as_bytes());
        body.extend([0, 0]);
        raw.send(&[(b'B', &body), (b'S', b"")]);
        raw.until(b'Z')
    };
    let bound = (0..100).take_while(|portal| !kinds(&bind(*portal)).starts_with('E')).count();
    assert!((5..11).contains(&bound), "{bound}");
    assert_eq!(kinds(&raw.query("ROLLBACK")), "CZ");
    assert_eq!(kinds(&raw.query(&prepare)), "CZ");
}
