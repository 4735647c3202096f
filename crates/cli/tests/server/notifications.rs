//! `LISTEN` and `NOTIFY`, byte by byte: who is told what, and when.

use crate::raw::{Message, Raw, field, kinds};
use crate::support::Server;

/// The notifications among messages: channel and payload, and whether they are this session's own.
fn told(messages: &[Message], own: Option<u32>) -> Vec<String> {
    let notifications = messages.iter().filter(|(kind, _)| *kind == b'A');
    let text = |(_, body): &Message| {
        let process = u32::from_be_bytes(body[..4].try_into().expect("four bytes"));
        let texts: Vec<&[u8]> = body[4..].split(|byte| *byte == 0).collect();
        let [channel, payload] = [texts[0], texts[1]].map(String::from_utf8_lossy);
        let whose = if own == Some(process) { "own " } else { "" };
        format!("{whose}{channel} {payload}")
    };
    notifications.map(text).collect()
}

/// A session and its number.
fn session(server: &Server) -> (Raw, u32) {
    let (mut raw, _) = Raw::begin(server);
    let rows = raw.query("SELECT pg_backend_pid()");
    let (_, row) = rows.iter().find(|(kind, _)| *kind == b'D').expect("a row");
    let number = String::from_utf8_lossy(&row[6..]).parse().expect("a number");
    (raw, number)
}

/// Goal: a session that waits is told at once what others have committed, once and in order, and nothing that was
/// rolled back; its own before it is asked for more.
#[test]
fn who_listens_is_told() {
    let server = Server::start(&[]);
    let ((mut listener, _), (mut other, number)) = (session(&server), session(&server));
    assert_eq!(kinds(&listener.query("LISTEN news; LISTEN \"Prices of today\"")), "CCZ");
    other.query("NOTIFY news, 'first'");
    assert_eq!(told(&listener.until(b'A'), None), ["news first"]);
    other.query("BEGIN; NOTIFY news, 'a'; SAVEPOINT s; NOTIFY news, 'b'; ROLLBACK TO s");
    other.query("NOTIFY \"Prices of today\"; NOTIFY news, 'a'; SELECT pg_notify('ne' || 'ws', n::text) FROM generate_series(1, 2) n");
    // Still open: nothing was told.
    assert_eq!(told(&listener.query("SELECT 1"), None), Vec::<String>::new());
    other.query("COMMIT");
    let mut all = Vec::new();
    while all.len() < 4 {
        all.extend(told(&listener.until(b'A'), None));
    }
    assert_eq!(all, ["news a", "Prices of today ", "news 1", "news 2"]);
    // What is rolled back tells nothing, nor does a statement that fails, whatever it did before.
    other.query("BEGIN; NOTIFY news, 'never'");
    other.query("ROLLBACK");
    other.query("SELECT pg_notify('news', 'lost'), 1 / (n - 2) FROM generate_series(1, 3) n");
    other.query("LISTEN news");
    let own = other.query("NOTIFY news, 'mine'");
    assert_eq!((kinds(&own), told(&own, Some(number))), ("CAZ".into(), vec!["own news mine".to_string()]));
    assert_eq!(told(&listener.until(b'A'), None), ["news mine"]);
    // By the extended protocol.
    other.send(&[
        (b'P', b"\0SELECT pg_notify($1, $2)\0\0\0"),
        (b'B', b"\0\0\0\0\0\x02\0\0\0\x04news\0\0\0\x03two\0\0"),
        (b'E', b"\0\0\0\0\0"),
        (b'S', b""),
    ]);
    assert_eq!(told(&other.until(b'Z'), Some(number)), ["own news two"]);
    assert_eq!(told(&listener.until(b'A'), None), ["news two"]);
}

/// Goal: in a transaction nothing is told until it ends; where a session listens counts from its commit on, and no
/// longer than its last `UNLISTEN`, its database and itself.
#[test]
fn listening_is_of_a_transaction() {
    let server = Server::start(&[]);
    let ((mut listener, _), (mut other, _)) = (session(&server), session(&server));
    listener.query("BEGIN; LISTEN gone; ROLLBACK");
    listener.query("LISTEN news");
    listener.query("BEGIN; LISTEN late");
    other.query("NOTIFY gone; NOTIFY late, 'early'; NOTIFY news, 'meanwhile'");
    assert_eq!(told(&listener.query("SELECT pg_sleep(0.05)"), None), Vec::<String>::new());
    assert_eq!(told(&listener.query("COMMIT"), None), ["news meanwhile"]);
    other.query("NOTIFY late, 'now'");
    assert_eq!(told(&listener.until(b'A'), None), ["late now"]);
    listener.query("UNLISTEN news");
    other.query("NOTIFY news; NOTIFY late, 'still'");
    assert_eq!(told(&listener.until(b'A'), None), ["late still"]);
    listener.query("DISCARD ALL");
    other.query("CREATE DATABASE elsewhere");
    let (mut elsewhere, _) = Raw::begin_as(&server, "fabius", "elsewhere");
    elsewhere.query("LISTEN late");
    other.query("NOTIFY late");
    for raw in [&mut listener, &mut elsewhere] {
        assert_eq!(told(&raw.query("SELECT pg_sleep(0.05)"), None), Vec::<String>::new());
    }
    // A session that has gone is told nothing, and nobody stumbles over it.
    drop(elsewhere);
    assert_eq!(kinds(&other.query("NOTIFY late")), "CZ");
    assert_eq!(field(&other.query("NOTIFY late, 1"), b'C'), "42601");
}
