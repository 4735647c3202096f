//! Clients that mean no good, or have gone wrong: the server goes on.

use crate::raw::{Raw, field, kinds, message};
use crate::support::{Server, block_on, connect};
use fabius_env::Random;
use std::io::Write;
use std::time::Duration;

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

/// Goal: a message that says it has a gigabyte is refused before anything is kept for it; half a message holds nobody
/// up.
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
    // 400 MB of rows, of which nothing is read for a while, then all.
    raw.send(&[(b'Q', b"SELECT repeat('x', 1000) FROM generate_series(1, 400000)\0")]);
    let mut most = 0;
    let mut sample = || most = most.max(server.resident_bytes());
    for _ in 0..100 {
        is_well(&server);
        sample();
    }
    let mut rows = 0;
    loop {
        match raw.receive().expect("all of it comes") {
            (b'D', _) => rows += 1,
            (b'Z', _) => break,
            _ => {}
        }
        if rows % 10_000 == 0 {
            sample();
        }
    }
    assert_eq!(rows, 400_000);
    assert!(most < before + (200 << 20), "{before} before, {most} at most");
    // Queries without end, whose answers nobody takes.
    let (mut raw, _) = Raw::begin(&server);
    raw.stream.set_nonblocking(true).expect("a setting");
    let query = message(b'Q', b"SELECT 'an answer that is not read'\0");
    // Until nothing has been taken while others were served many times.
    let (mut refused, mut rest) = (0, &query[..]);
    while refused < 20 {
        match raw.stream.write(rest) {
            Ok(taken) => {
                refused = 0;
                rest = if taken < rest.len() { &rest[taken..] } else { &query };
            }
            Err(_) => {
                refused += 1;
                is_well(&server);
            }
        }
    }
    assert!(server.resident_bytes() < before + (200 << 20), "{before} before");
}

/// A ledger: a line for each transaction, and one hot row that counts them.
const LEDGER: &str = "CREATE TABLE ledger (client integer, number integer, PRIMARY KEY (client, number));
    CREATE TABLE hot (id integer PRIMARY KEY, total bigint); INSERT INTO hot VALUES (1, 0)";
const CLIENTS: i32 = 4;

/// The lines of the ledger, by client and number, once no client is left; all of them have been counted.
fn ledger(server: &Server) -> Vec<(i32, i32)> {
    server.wait_until("SELECT 1 FROM pg_stat_activity HAVING count(*) = 1");
    block_on(async {
        let client = connect(&server.conninfo()).await;
        let query = "SELECT client, number FROM ledger ORDER BY client, number";
        let lines = client.query(query, &[]).await.expect("the ledger");
        let total: i64 = client.query_one("SELECT total FROM hot", &[]).await.expect("the total").get(0);
        assert_eq!(total, lines.len() as i64, "both writes of each transaction, or neither");
        lines.iter().map(|line| (line.get(0), line.get(1))).collect()
    })
}

/// What a number of clients do at the same time; the lines that they know to be in the ledger.
fn side_by_side(work: impl Fn(i32) -> Vec<(i32, i32)> + Sync) -> Vec<(i32, i32)> {
    std::thread::scope(|scope| {
        let work = &work;
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || work(client))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    })
}

const COUNT: &str = "UPDATE hot SET total = total + 1 WHERE id = 1";

fn line(client: i32, number: i32) -> String {
    format!("INSERT INTO ledger VALUES ({client}, {number})")
}

/// Goal: connections that break while they commit, under load, leave whole transactions; what was acknowledged is
/// there.
#[test]
fn disconnections_while_committing() {
    let server = Server::start(&[]);
    server.run(LEDGER);
    let acknowledged = side_by_side(|client| {
        let mut acknowledged = Vec::new();
        for number in 0..60 {
            let (mut raw, _) = Raw::begin(&server);
            let line = line(client, number);
            match number % 3 {
                // The connection breaks when all has been sent, in one message or in several.
                0 => raw.send(&[(b'Q', format!("BEGIN; {COUNT}; {line}; COMMIT\0").as_bytes())]),
                1 => {
                    for text in ["BEGIN", COUNT, &line] {
                        raw.query(text);
                    }
                    raw.send(&[(b'Q', b"COMMIT\0")]);
                }
                _ => {
                    let answer = raw.query(&format!("{COUNT}; {line}"));
                    if kinds(&answer) == "CCZ" {
                        acknowledged.push((client, number));
                    } else {
                        assert_eq!(field(&answer, b'C'), "40001");
                    }
                }
            }
        }
        acknowledged
    });
    let lines = ledger(&server);
    assert!(acknowledged.iter().all(|line| lines.contains(line)), "{acknowledged:?} of {lines:?}");
}

/// Goal: statements that are cancelled at any moment, under load, have happened whole or not at all, and the client
/// knows which: what ended with 57014 has not.
#[test]
fn cancels_at_any_moment() {
    let server = Server::start(&[]);
    server.run(LEDGER);
    let work = async |client: i32| {
        let connection = connect(&server.conninfo()).await;
        let token = connection.cancel_token();
        let cancelling = tokio::spawn(async move {
            let mut random = Random::seeded(client as u64);
            loop {
                // At any moment: not after anything.
                tokio::time::sleep(Duration::from_micros(random.below(4000))).await;
                token.cancel_query(tokio_postgres::NoTls).await.expect("a cancel request");
            }
        });
        let mut done = Vec::new();
        for number in 0..100 {
            let line = line(client, number);
            let texts = match number % 3 {
                0 => vec![format!("{COUNT}; {line}")],
                1 => vec![format!("BEGIN; {COUNT}; {line}; COMMIT")],
                _ => vec!["BEGIN".to_string(), COUNT.to_string(), line, "COMMIT".to_string()],
            };
            match one_by_one(&connection, &texts).await {
                Ok(()) => done.push((client, number)),
                Err(error) => {
                    let state = error.code().map_or("gone", |code| code.code());
                    assert!(["57014", "40001"].contains(&state), "{error:?}");
                    while connection.batch_execute("ROLLBACK").await.is_err() {}
                }
            }
        }
        cancelling.abort();
        done
    };
    let expected = side_by_side(|client| block_on(work(client)));
    assert_eq!(ledger(&server), expected);
}

async fn one_by_one(client: &tokio_postgres::Client, texts: &[String]) -> Result<(), tokio_postgres::Error> {
    for text in texts {
        client.batch_execute(text).await?;
    }
    Ok(())
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
            let other = connect(&server.conninfo()).await;
            let runs =
                "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(30)'";
            while other.query_opt(runs, &[]).await.expect("who does what").is_none() {}
            token.cancel_query(tokio_postgres::NoTls).await.expect("a cancel request");
        };
        let (slept, ()) = tokio::join!(client.batch_execute("SELECT pg_sleep(30)"), cancel);
        let error = slept.expect_err("it was cancelled");
        assert_eq!(error.code().map(|code| code.code()), Some("57014"));
        client.batch_execute("SELECT 1").await.expect("the session goes on");
    });
}
