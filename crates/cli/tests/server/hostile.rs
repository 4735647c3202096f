//! Clients that mean no good, or have gone wrong: the server goes on.

use crate::raw::{Raw, field, kinds, message};
use crate::support::{Server, block_on, connect};
use std::io::Write;
use std::time::{Duration, Instant};

fn is_well(server: &Server) {
    let (mut raw, _) = Raw::begin(server);
    assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
}

/// Goal: garbage, before and after the session begins, ends that connection alone.
#[test]
fn garbage() {
    let server = Server::start(&[]);
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[0xff; 64], b"\0\0\0\x08\0\x02\0\0", b"\x16\x03\x01"]
    {
        let mut raw = Raw::new(&server);
        // The server may have gone before all was sent.
        let _ = raw.stream.write_all(bytes);
        let _ = raw.stream.shutdown(std::net::Shutdown::Write);
        assert!(raw.is_closed());
    }
    for (kind, body) in [(b'!', &b""[..]), (b'p', b"x\0"), (b'B', b"\xff"), (b'P', b"no end"), (b'E', b"\0")]
    {
        let (mut raw, _) = Raw::begin(&server);
        raw.send(&[(kind, body), (b'S', b"")]);
        let answer = raw.until(b'Z');
        assert_eq!(field(&answer, b'C'), "08P01", "{kind}");
    }
    let (mut raw, _) = Raw::begin(&server);
    assert_eq!(field(&raw.query("SELECT '\u{fffd}"), b'C'), "42601");
    raw.send(&[(b'Q', b"SELECT '\xff'\0")]);
    assert_eq!(field(&raw.until(b'Z'), b'C'), "22021");
    is_well(&server);
}

/// Goal: a message that says it has a gigabyte is refused before anything is kept for it; half a message holds nobody up.
#[test]
fn large_and_half_messages() {
    let server = Server::start(&["--max-message-bytes", "1MB"]);
    let before = server.resident_bytes();
    let mut halves = Vec::new();
    for _ in 0..20 {
        let (mut raw, _) = Raw::begin(&server);
        raw.stream
            .write_all(&[b"Q".as_slice(), &(1u32 << 30).to_be_bytes(), b"SELECT"].concat())
            .expect("a header");
        let answer = raw.until(b'Z');
        assert_eq!((field(&answer, b'C').as_str(), field(&answer, b'S').as_str()), ("54000", "FATAL"));
        let (mut raw, _) = Raw::begin(&server);
        raw.stream
            .write_all(&[b"Q".as_slice(), &(1u32 << 19).to_be_bytes(), b"SELECT"].concat())
            .expect("half");
        halves.push(raw);
    }
    is_well(&server);
    assert!(server.resident_bytes() < before + (64 << 20), "nothing is kept for what has not come");
}

/// Goal: a client that asks for much and reads nothing is waited for: its result is held once, no answers pile up.
#[test]
fn clients_that_do_not_read() {
    let server = Server::start(&["--shutdown-timeout", "100ms"]);
    let before = server.resident_bytes();
    let (mut raw, _) = Raw::begin(&server);
    // 40 MB of rows, of which nothing is read.
    raw.send(&[(b'Q', b"SELECT repeat('x', 1000) FROM generate_series(1, 40000)\0")]);
    std::thread::sleep(Duration::from_secs(2));
    assert!(server.resident_bytes() < before + (200 << 20), "{} before", before);
    is_well(&server);
    // Queries without end, whose answers nobody takes.
    let (mut raw, _) = Raw::begin(&server);
    raw.stream.set_nonblocking(true).expect("a setting");
    let query = message(b'Q', b"SELECT 'an answer that is not read'\0");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(1) {
        if raw.stream.write(&query).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    is_well(&server);
}

/// Goal: connections that break while they commit leave whole transactions.
#[test]
fn disconnections_while_committing() {
    let server = Server::start(&[]);
    server.run("CREATE TABLE a (id integer PRIMARY KEY); CREATE TABLE b (id integer PRIMARY KEY)");
    for number in 0..50 {
        let (mut raw, _) = Raw::begin(&server);
        let text =
            format!("BEGIN; INSERT INTO a VALUES ({number}); INSERT INTO b VALUES ({number}); COMMIT\0");
        raw.send(&[(b'Q', text.as_bytes())]);
        drop(raw);
    }
    block_on(async {
        let client = connect(&server.conninfo()).await;
        // One query, because some of them may still be committing.
        let query = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), \
                     (SELECT count(*) FROM a JOIN b ON a.id = b.id)";
        let row = client.query_one(query, &[]).await.expect("counts");
        let [a, b, both]: [i64; 3] = [row.get(0), row.get(1), row.get(2)];
        assert_eq!((a, b), (both, both));
    });
}

/// Goal: a cancel request with the right secret ends the statement, with a wrong one nothing; the session goes on.
#[test]
fn cancel_requests() {
    let server = Server::start(&[]);
    block_on(async {
        let client = connect(&server.conninfo()).await;
        let token = client.cancel_token();
        let mut wrong = Raw::new(&server);
        wrong.send_opening(&[&80_877_102u32.to_be_bytes()[..], &1u32.to_be_bytes(), &[0; 4]].concat());
        assert!(wrong.is_closed());
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            token.cancel_query(tokio_postgres::NoTls).await.expect("a cancel request");
        };
        let (slept, ()) = tokio::join!(client.batch_execute("SELECT pg_sleep(30)"), cancel);
        let error = slept.expect_err("it was cancelled");
        assert_eq!(error.code().map(|code| code.code()), Some("57014"));
        client.batch_execute("SELECT 1").await.expect("the session goes on");
    });
}
