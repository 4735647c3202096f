//! Statements of every shape and size: each is answered or refused in time, with its memory counted, and others are
//! served meanwhile.
//!
//! `FABIUS_PARTS` says of how many parts the largest are; the long form has 300,000.

use crate::raw::{Message, Raw, field, kinds};
use crate::shapes::{CONDITIONS, LISTS, NESTS, RELATIONS, Shape, TABLES};
use crate::support::{PATIENCE, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Sizes of statements: parts of lists, or nested in each other.
const SIZES: [usize; 4] = [300, 3_000, 30_000, 300_000];
/// Sizes that are tried unless more are wanted.
const USUAL_PARTS: usize = 3_000;

const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a statement may take beyond its time, and others altogether: time of processors, since machines that test
/// have much to do. It takes some milliseconds.
const SLACK: Duration = Duration::from_secs(4);
/// Memory of the server, with what its allocator keeps: sessions may hold a quarter of it.
const MEMORY: u64 = 2 << 30;

fn sizes() -> impl Iterator<Item = usize> {
    let parts = std::env::var("FABIUS_PARTS").ok().and_then(|parts| parts.parse().ok());
    let parts = parts.unwrap_or(USUAL_PARTS);
    SIZES.into_iter().filter(move |size| *size <= parts)
}

/// The SQLSTATE of an answer's error.
fn state(answer: &[Message]) -> Option<String> {
    kinds(answer).contains('E').then(|| field(answer, b'C'))
}

/// Others, who read and write as long as this lives.
struct Others {
    is_done: Arc<AtomicBool>,
    /// The longest that one of them had to wait since it was asked for last, in microseconds.
    waited_us: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Others {
    fn of(server: &Server) -> Others {
        let (is_done, waited_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut raw, _) = Raw::begin(server);
        let (done, waited) = (is_done.clone(), waited_us.clone());
        let thread = thread::spawn(move || {
            while !done.load(Relaxed) {
                let begun = Instant::now();
                assert_eq!(kinds(&raw.query("SELECT 1")), "TDCZ");
                assert_eq!(kinds(&raw.query("UPDATE hot SET n = n + 1 WHERE id = 1")), "CZ");
                waited.fetch_max(begun.elapsed().as_micros() as u64, Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        Others { is_done, waited_us, thread: Some(thread) }
    }

    fn waited(&self) -> Duration {
        Duration::from_micros(self.waited_us.swap(0, Relaxed))
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.is_done.store(true, Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "others were not answered");
    }
}

fn hold(shapes: &[Shape]) {
    let server =
        Server::start(&["--session-memory", "512MB", "--sessions-memory", "512MB", "--log", "error"]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query(TABLES);
    raw.query("CREATE TABLE hot (id integer PRIMARY KEY, n integer); INSERT INTO hot VALUES (1, 0)");
    raw.query(&format!("SET statement_timeout = {}", TIMEOUT.as_millis()));
    let others = Others::of(&server);
    for (name, shape) in shapes {
        for parts in sizes() {
            let text = shape(parts);
            let (begun, used) = (Instant::now(), server.processor_time());
            let answer = raw.query(&text);
            let (waited, used) = (others.waited(), server.processor_time().saturating_sub(used));
            let took = begun.elapsed();
            let what = format!("{name} of {parts} parts, {} KB", text.len() >> 10);
            assert!(kinds(&answer).ends_with('Z'), "{what}: the session has ended");
            assert!(used < TIMEOUT + SLACK && took < PATIENCE, "{what}: {used:?} of processors, {took:?}");
            assert!(waited.min(used) < SLACK && waited < PATIENCE, "{what}: others waited {waited:?}");
            let state = state(&answer).unwrap_or_default();
            assert!(!state.starts_with("XX"), "{what}: {state} {}", field(&answer, b'M'));
            let resident = server.resident_bytes();
            assert!(resident < MEMORY, "{what}: {resident} bytes");
            if !state.is_empty() {
                raw.query("ROLLBACK");
            }
        }
    }
    assert_eq!(kinds(&Raw::begin(&server).0.query("SELECT 1")), "TDCZ");
}

/// Goal: conditions of any length, wherever they stand.
#[test]
fn conditions() {
    hold(CONDITIONS);
}

/// Goal: lists of values and expressions of any length.
#[test]
fn lists() {
    hold(LISTS);
}

/// Goal: tables, queries and definitions, however many.
#[test]
fn relations() {
    hold(RELATIONS);
}

/// Goal: what nests, however deep.
#[test]
fn nests() {
    hold(NESTS);
}
