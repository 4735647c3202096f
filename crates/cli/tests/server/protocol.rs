//! The protocol, message by message, over a raw socket.

use crate::raw::{Raw, field, kinds};
use crate::support::Server;
use std::io::Read;

fn text(text: &str) -> Vec<u8> {
    format!("{text}\0").into_bytes()
}

/// `Parse`, `Bind` and `Execute` of a statement without parameters, without names.
fn run(statement: &str, rows: u32) -> Vec<(u8, Vec<u8>)> {
    vec![
        (b'P', [text(""), text(statement), vec![0, 0]].concat()),
        (b'B', vec![0, 0, 0, 0, 0, 0, 0, 0]),
        (b'E', [text(""), rows.to_be_bytes().to_vec()].concat()),
    ]
}

fn send_all(raw: &mut Raw, messages: &[(u8, Vec<u8>)]) {
    let borrowed: Vec<(u8, &[u8])> = messages.iter().map(|(kind, body)| (*kind, body.as_slice())).collect();
    raw.send(&borrowed);
}

const SYNC: (u8, Vec<u8>) = (b'S', Vec::new());

/// Goal: requests for encryption are refused politely, unknown minor versions and options are negotiated, the session
/// begins with what drivers look for.
#[test]
fn openings() {
    let server = Server::start(&[]);
    let mut raw = Raw::new(&server);
    for code in [80_877_103u32, 80_877_104] {
        raw.send_opening(&code.to_be_bytes());
        let mut answer = [0];
        raw.stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, *b"N");
    }
    raw.startup(
        196_608 + 9999,
        &[("user", "me"), ("database", "fabius"), ("_pq_.x", "1"), ("options", "-c DateStyle=ISO")],
    );
    let greeting = raw.until(b'Z');
    assert_eq!(greeting[0].0, b'v');
    assert_eq!(greeting[0].1, [&196_608u32.to_be_bytes()[..], &1u32.to_be_bytes(), b"_pq_.x\0"].concat());
    assert_eq!(kinds(&greeting), "vRKZ");
    let told =
        |name: &str| greeting.iter().any(|(kind, body)| *kind == b'S' && body.starts_with(name.as_bytes()));
    for name in
        ["server_version\0", "client_encoding\0UTF8", "DateStyle\0", "integer_datetimes\0on", "TimeZone\0"]
    {
        assert!(told(name), "{name}");
    }

    let mut raw = Raw::new(&server);
    raw.startup(196_610, &[("user", "me")]);
    let key = raw.until(b'Z').into_iter().find(|(kind, _)| *kind == b'K').expect("a key");
    assert_eq!(key.1.len(), 4 + 32);

    for (parameters, state) in [
        (&[("user", "me"), ("database", "other")][..], "3D000"),
        (&[("database", "fabius")], "28000"),
        (&[("user", "me"), ("replication", "true")], "0A000"),
        (&[("user", "me"), ("no_such_setting", "1")], "42704"),
    ] {
        let mut raw = Raw::new(&server);
        raw.startup(196_608, parameters);
        let answer = raw.until(b'Z');
        assert_eq!((field(&answer, b'C').as_str(), field(&answer, b'S').as_str()), (state, "FATAL"));
    }
}

/// Goal: several statements are one transaction; the text may end it and go on.
#[test]
fn simple_queries() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    assert_eq!(kinds(&raw.query("")), "IZ");
    assert_eq!(kinds(&raw.query("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1)")), "CCZ");
    let failed = raw.query("INSERT INTO t VALUES (2); INSERT INTO t VALUES (1); INSERT INTO t VALUES (3)");
    assert_eq!(kinds(&failed), "CEZ");
    assert_eq!(field(&failed, b'C'), "23505");
    let kept = raw.query("INSERT INTO t VALUES (2); COMMIT; INSERT INTO t VALUES (3); SELECT 1 / 0");
    assert!(kinds(&kept).ends_with("EZ"), "{}", kinds(&kept));
    let rows = raw.query("SELECT id FROM t ORDER BY id");
    assert_eq!(kinds(&rows), "TDDCZ");
    let begun = raw.query("BEGIN; INSERT INTO t VALUES (9)");
    assert_eq!(begun.last(), Some(&(b'Z', b"T".to_vec())));
    let failed = raw.query("SELECT nothing");
    assert_eq!(failed.last(), Some(&(b'Z', b"E".to_vec())));
    assert_eq!(field(&raw.query("SELECT 1"), b'C'), "25P02");
    assert_eq!(raw.query("ROLLBACK").last(), Some(&(b'Z', b"I".to_vec())));
    let wrong = raw.query("SELECT 1; SELEC 2");
    assert_eq!((field(&wrong, b'C').as_str(), field(&wrong, b'P').as_str()), ("42601", "11"));
}

/// Goal: a batch up to `Sync` is one transaction, errors pass over the rest of it, a statement alone commits.
#[test]
fn batches() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("CREATE TABLE t (id integer PRIMARY KEY)");
    let batch = |statements: &[&str]| -> Vec<(u8, Vec<u8>)> {
        statements.iter().flat_map(|statement| run(statement, 0)).chain([SYNC]).collect()
    };
    send_all(
        &mut raw,
        &batch(&["INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"]),
    );
    let failed = raw.until(b'Z');
    assert_eq!(kinds(&failed), "12C12EZ");
    assert_eq!(field(&failed, b'C'), "23505");
    // Three batches at once: each with its own answer.
    let three =
        [batch(&["INSERT INTO t VALUES (5)"]), batch(&["SELECT broken"]), batch(&["SELECT id FROM t"])];
    send_all(&mut raw, &three.concat());
    assert_eq!(kinds(&raw.until(b'Z')), "12CZ");
    assert_eq!(kinds(&raw.until(b'Z')), "EZ");
    assert_eq!(kinds(&raw.until(b'Z')), "12DCZ");
}

/// Goal: portals give rows by portions, and end with their transaction; names are kept apart.
#[test]
fn portals() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("CREATE TABLE t (id integer PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)");
    raw.query("BEGIN");
    send_all(&mut raw, &[run("SELECT id FROM t ORDER BY id", 2), vec![SYNC]].concat());
    assert_eq!(kinds(&raw.until(b'Z')), "12DDsZ");
    let more = (b'E', [text(""), 2u32.to_be_bytes().to_vec()].concat());
    send_all(&mut raw, &[more.clone(), SYNC]);
    assert_eq!(kinds(&raw.until(b'Z')), "DCZ");
    raw.query("COMMIT");
    send_all(&mut raw, &[more, SYNC]);
    assert_eq!(field(&raw.until(b'Z'), b'C'), "34000");
    // A statement and what it takes and gives.
    let parse = (b'P', [text("s"), text("SELECT id FROM t WHERE id = $1"), vec![0, 0]].concat());
    send_all(&mut raw, &[parse.clone(), (b'D', [b"S".to_vec(), text("s")].concat()), SYNC]);
    assert_eq!(kinds(&raw.until(b'Z')), "1tTZ");
    send_all(&mut raw, &[parse, SYNC]);
    assert_eq!(field(&raw.until(b'Z'), b'C'), "42P05");
    send_all(
        &mut raw,
        &[(b'C', [b"S".to_vec(), text("s")].concat()), (b'D', [b"S".to_vec(), text("s")].concat()), SYNC],
    );
    let closed = raw.until(b'Z');
    assert_eq!((kinds(&closed).as_str(), field(&closed, b'C').as_str()), ("3EZ", "26000"));
}

/// Goal: an error is there when the client flushes, though `Sync` has not come.
#[test]
fn errors_are_flushed() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    let mut wrong = run("SELECT no_such_column", 0);
    wrong.push((b'H', Vec::new()));
    send_all(&mut raw, &wrong);
    assert_eq!(field(&raw.until(b'E'), b'C'), "42703");
    send_all(&mut raw, &[SYNC]);
    assert_eq!(kinds(&raw.until(b'Z')), "Z");
}

/// Goal: what begins a binary copy comes with its first row, or with what ends it, in one message.
#[test]
fn binary_copies() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    for (limit, messages) in [(2, "HdddcCZ"), (0, "HdcCZ")] {
        let copied = raw.query(&format!(
            "COPY (SELECT n FROM generate_series(1, 2) n LIMIT {limit}) TO STDOUT (FORMAT binary)"
        ));
        assert_eq!(kinds(&copied), messages);
        let first = &copied.iter().find(|(kind, _)| *kind == b'd').expect("data").1;
        assert!(first.starts_with(b"PGCOPY\n") && first.len() > 19);
    }
}

fn portal(name: &str) -> (u8, Vec<u8>) {
    (b'B', [text(name), text(""), vec![0; 6]].concat())
}

fn execute(portal: &str, rows: u32) -> (u8, Vec<u8>) {
    (b'E', [text(portal), rows.to_be_bytes().to_vec()].concat())
}

/// Goal: a statement alone that is given up leaves no transaction behind.
#[test]
fn a_batch_that_is_given_up_leaves_no_transaction() {
    let server = Server::start(&[]);
    server.run("CREATE TABLE t (a integer PRIMARY KEY)");
    let (mut holder, _) = Raw::begin(&server);
    holder.query("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    let (mut raw, _) = Raw::begin(&server);
    raw.query("SET statement_timeout = '100ms'");
    for statement in
        ["DROP TABLE t", "INSERT INTO t SELECT a + 1 FROM t", "SELECT a FROM t FOR UPDATE SKIP LOCKED"]
    {
        send_all(&mut raw, &[run(statement, 0), vec![SYNC]].concat());
        let answer = raw.until(b'Z');
        assert_eq!(field(&answer, b'C'), "57014", "{statement}");
        assert_eq!(answer.last(), Some(&(b'Z', vec![b'I'])), "{statement}");
        assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ", "{statement}");
    }
}

/// Goal: a portal that is suspended gives no more rows once its transaction has failed or ended.
#[test]
fn portals_end_with_their_transaction() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    let rows = |name: &str| {
        let parse = (b'P', [text(""), text("SELECT * FROM generate_series(1, 10)"), vec![0, 0]].concat());
        vec![parse, portal(name), execute(name, 2)]
    };
    raw.query("BEGIN");
    send_all(&mut raw, &[rows("p"), vec![SYNC, execute("p", 2), SYNC]].concat());
    assert_eq!(kinds(&raw.until(b'Z')), "12DDsZ");
    assert_eq!(kinds(&raw.until(b'Z')), "DDsZ");
    send_all(&mut raw, &[run("SELECT 1 / 0", 0), vec![SYNC, execute("p", 2), SYNC]].concat());
    assert_eq!(field(&raw.until(b'Z'), b'C'), "22012");
    assert_eq!(field(&raw.until(b'Z'), b'C'), "25P02");
    for end in ["COMMIT", "ROLLBACK"] {
        raw.query("ROLLBACK; BEGIN");
        let ending = [run(end, 0), vec![execute("p", 2), SYNC]].concat();
        send_all(&mut raw, &[rows("p"), ending].concat());
        let answer = raw.until(b'Z');
        assert_eq!(field(&answer, b'C'), "34000", "{end}");
        assert_eq!(kinds(&answer), "12DDs12CEZ", "{end}");
        // In one text too, though a transaction is open again.
        raw.query("BEGIN");
        send_all(&mut raw, &[rows("p"), vec![SYNC]].concat());
        raw.until(b'Z');
        raw.query(&format!("{end}; BEGIN"));
        send_all(&mut raw, &[execute("p", 2), SYNC]);
        assert_eq!(field(&raw.until(b'Z'), b'C'), "34000", "{end}");
    }
}

/// Goal: a cancel that comes while one of several statements runs gives up those that follow, and none after them.
#[test]
fn cancels_are_not_lost_between_statements() {
    let server = Server::start(&[]);
    server.run("CREATE TABLE t (a integer PRIMARY KEY)");
    let (mut raw, _) = Raw::begin(&server);
    let cancel = "SELECT pg_cancel_backend(pg_backend_pid())";
    let answer = raw.query(&format!("{cancel}; INSERT INTO t VALUES (1)"));
    assert_eq!(field(&answer, b'C'), "57014");
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
    send_all(&mut raw, &[run(cancel, 0), run("INSERT INTO t VALUES (2)", 0), vec![SYNC]].concat());
    let answer = raw.until(b'Z');
    assert_eq!(field(&answer, b'C'), "57014");
    assert_eq!(answer.last(), Some(&(b'Z', vec![b'I'])));
    send_all(&mut raw, &[run("SELECT a FROM t", 0), vec![SYNC]].concat());
    assert_eq!(kinds(&raw.until(b'Z')), "12CZ");
}

fn process(raw: &mut Raw) -> String {
    let answer = raw.query("SELECT pg_backend_pid()");
    let (_, row) = answer.iter().find(|(kind, _)| *kind == b'D').expect("a row");
    String::from_utf8_lossy(&row[6..]).into_owned()
}

/// Goal: a query whose client does not read ends by itself in time, and leaves the connection; one that has committed
/// what it wrote is not told to have failed.
#[test]
fn a_client_that_does_not_read_keeps_its_connection() {
    let server = Server::start(&[]);
    server.run("CREATE TABLE t (a integer PRIMARY KEY)");
    let (mut raw, _) = Raw::begin(&server);
    let process = process(&mut raw);
    raw.query("SET statement_timeout = '300ms'");
    raw.send(&[(b'Q', &text("SELECT repeat('x', 1000) FROM generate_series(1, 1000000)"))]);
    server.wait_until(&format!(
        "SELECT 1 FROM pg_stat_activity WHERE pid = {process} AND state = 'idle' AND query LIKE '%1000000%'"
    ));
    let answer = raw.until(b'Z');
    assert_eq!(field(&answer, b'C'), "57014");
    assert!(kinds(&answer).starts_with("TDD") && kinds(&answer).ends_with("DEZ"));
    raw.query("SET statement_timeout = 0");
    let insert = "INSERT INTO t SELECT i FROM generate_series(1, 20000) AS s(i) RETURNING repeat('x', 1000)";
    raw.send(&[(b'Q', &text(insert))]);
    server.wait_until("SELECT 1 FROM t HAVING count(*) = 20000");
    server.run(&format!("SELECT pg_cancel_backend({process})"));
    let answer = raw.until(b'Z');
    assert!(!kinds(&answer).contains('E'), "{}", field(&answer, b'M'));
    assert_eq!(answer.iter().filter(|(kind, _)| *kind == b'D').count(), 20_000);
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}

/// Goal: a copy whose client sends nothing ends when its time is over, and when it is cancelled.
#[test]
fn copies_are_given_up() {
    let server = Server::start(&[]);
    server.run("CREATE TABLE t (a integer PRIMARY KEY)");
    let (mut raw, _) = Raw::begin(&server);
    let process = process(&mut raw);
    raw.query("SET statement_timeout = '100ms'");
    raw.send(&[(b'Q', &text("COPY t FROM STDIN")), (b'd', b"1\n")]);
    let answer = raw.until(b'Z');
    assert_eq!((kinds(&answer).as_str(), field(&answer, b'C').as_str()), ("GEZ", "57014"));
    raw.query("SET statement_timeout = 0");
    raw.send(&[(b'Q', &text("COPY t FROM STDIN"))]);
    raw.until(b'G');
    server.run(&format!("SELECT pg_cancel_backend({process})"));
    let answer = raw.until(b'Z');
    assert_eq!((kinds(&answer).as_str(), field(&answer, b'C').as_str()), ("EZ", "57014"));
    // What the client has sent meanwhile is passed over.
    raw.send(&[(b'd', b"2\n"), (b'c', b"")]);
    assert_eq!(kinds(&raw.query("SELECT a FROM t")), "TCZ");
}
