//! Bounds: connections, time, memory.

use crate::raw::{Raw, field, kinds};
use crate::support::Server;

/// Goal: beyond the limit clients are told so; administrators find a place.
#[test]
fn connections_are_bounded() {
    let server = Server::start(&["--max-connections", "5", "--reserved-connections", "2"]);
    let held: Vec<_> = (0..3).map(|_| Raw::begin(&server).0).collect();
    let begin = |user: &str| {
        let mut raw = Raw::new(&server);
        raw.startup(196_608, &[("user", user), ("database", "fabius")]);
        let answer = raw.until(b'Z');
        (raw, answer)
    };
    let (_, answer) = begin("tester");
    assert_eq!(field(&answer, b'C'), "53300");
    assert!(field(&answer, b'M').contains("reserved"), "{}", field(&answer, b'M'));
    let administrators = [begin("postgres"), begin("postgres")];
    assert!(administrators.iter().all(|(_, answer)| kinds(answer).ends_with('Z')));
    assert_eq!(field(&begin("postgres").1, b'M'), "sorry, too many clients already");
    drop((held, administrators));
    until_there_is_room(|| !kinds(&begin("tester").1).ends_with('E'));
}

/// Places are free again once the server has noticed that clients are gone; asking is all that shows it from outside.
fn until_there_is_room(mut is_let_in: impl FnMut() -> bool) {
    let mut attempts = 0;
    while !is_let_in() {
        attempts += 1;
        assert!(attempts < 100, "places are not free again");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Goal: the port for metrics takes so many connections at a time, and has places again once they are gone.
#[test]
fn connections_to_the_http_port_are_bounded() {
    use std::io::{Read, Write};
    let server = Server::start(&[]);
    let address = server.http.expect("an HTTP port");
    let connect = || std::net::TcpStream::connect(address).expect("a connection");
    let held: Vec<_> = (0..64).map(|_| connect()).collect();
    assert_eq!(connect().read(&mut [0]).expect("the end"), 0);
    drop(held);
    until_there_is_room(|| {
        let (mut stream, mut answer) = (connect(), String::new());
        // It may be closed before the request has come.
        let asked = stream.write_all(b"GET /health HTTP/1.1\r\nHost: fabius\r\nConnection: close\r\n\r\n");
        asked.and_then(|()| stream.read_to_string(&mut answer)).is_ok() && answer.ends_with("ready\n")
    });
}

/// Goal: a thousand idle connections take less than 100 MB.
#[test]
fn idle_connections_are_cheap() {
    let server = Server::start(&["--max-connections", "1100"]);
    drop(Raw::begin(&server));
    let before = server.resident_bytes();
    let held: Vec<_> = (0..1000).map(|_| Raw::begin(&server).0).collect();
    let took = server.resident_bytes().saturating_sub(before);
    assert!(took < 100 << 20, "{} connections take {took} bytes", held.len());
    let page = server.get("/metrics");
    assert!(page.contains("\nfabius_connections 1000\n"), "{page}");
}

/// Goal: statements, idle sessions and idle transactions end when their time is over.
#[test]
fn time_is_bounded() {
    let server = Server::start(&["--statement-timeout", "300ms"]);
    let (mut raw, _) = Raw::begin(&server);
    let answer = raw.query("SELECT pg_sleep(30)");
    assert_eq!(field(&answer, b'M'), "canceling statement due to statement timeout");
    assert_eq!(kinds(&raw.query("SET statement_timeout = 0; SELECT 1")), "CTDCZ");
    raw.query("SET idle_in_transaction_session_timeout = '100ms'");
    raw.query("BEGIN");
    let answer = raw.until(b'Z');
    assert_eq!((field(&answer, b'C').as_str(), field(&answer, b'S').as_str()), ("25P03", "FATAL"));
    let (mut raw, _) = Raw::begin(&server);
    raw.query("SET idle_session_timeout = '100ms'");
    assert_eq!(field(&raw.until(b'Z'), b'C'), "57P05");
}

/// Goal: metrics name what happened, and health is told.
#[test]
fn metrics_and_health() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("SELECT 1");
    raw.query("SELECT broken");
    let page = server.get("/metrics");
    for line in [
        "fabius_connections 1",
        "fabius_statements_total{kind=\"SELECT\"} 1",
        "fabius_statement_duration_seconds_count{kind=\"SELECT\"} 1",
        "fabius_errors_total{sqlstate=\"42703\"} 1",
        "fabius_backlog_calls ",
        "fabius_checkpoint_failed 0",
        "fabius_log_bytes_total ",
    ] {
        assert!(page.contains(&format!("\n{line}")), "{line}\n{page}");
    }
    assert!(server.get("/health").contains("200 OK"));
    assert!(server.get("/health/live").ends_with("live\n"));
}
