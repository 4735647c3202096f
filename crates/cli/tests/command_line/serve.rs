//! `fabius serve` before it serves: settings, addresses, directories, and what it logs.

use crate::{fabius, refused, run, text};
use std::net::TcpListener;
use std::process::Stdio;

/// Goal: a value that a setting does not take is refused with where it comes from and what it would take, also one that
/// begins with a hyphen.
#[test]
fn settings_say_what_they_take() {
    let address = "expected an address and a port, such as 127.0.0.1:5433, or a port from 0 to 65535";
    let workers = "expected auto, or a whole number from 1 to 1024";
    for (flag, value, expected) in [
        ("listen", "foo", address),
        ("listen", "-1", address),
        ("http", "99999", address),
        ("workers", "100000", workers),
        ("workers", "0", workers),
        ("workers", "-1", workers),
        ("history", "-5", "expected a time, such as 30s, 5min or 250ms; 0 for none"),
        ("session-memory", "-64MB", "expected a size, such as 64MB"),
        ("reserved-memory", "all", "expected a size, such as 64MB"),
        ("max-connections", "-1", "expected a whole number"),
        ("durability", "maybe", "expected fsync or none"),
        ("engine", "fast", "expected one of lazy, 2pl, occ, split, locking, graph, partitioned, dora"),
        ("engine", "", "expected one of lazy, 2pl, occ, split, locking, graph, partitioned, dora"),
    ] {
        let ended = run(&["serve", "--print-config", &format!("--{flag}"), value]);
        let name = flag.replace('-', "_");
        let beginning = format!(
            "error: {name} cannot be \"{value}\": {expected}\n  detail: it comes from --{flag}\n  hint: "
        );
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{flag} {value}");
        assert!(ended.err.starts_with(&beginning), "{}", ended.err);
    }
}

/// Goal: `--print-config` refuses a filter that `serve` would refuse.
#[test]
fn a_filter_that_is_none_is_no_setting() {
    let ended = run(&["serve", "--print-config", "--log", "foo=bar=baz"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    let beginning = "error: log cannot be \"foo=bar=baz\": expected levels (error, warn, info, debug, trace) or \
                     MODULE=LEVEL, separated by commas: ";
    assert!(ended.err.starts_with(beginning), "{}", ended.err);
    assert_eq!(run(&["serve", "--print-config", "--log", "warn,fabius_server=debug"]).code, Some(0));
}

/// Goal: memory that the system does not have is refused before anything begins, in a benchmark too; what it has, is
/// taken.
#[test]
fn memory_is_reserved_or_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = directory.path().join("d");
    for arguments in [&["serve", text(&database)][..], &["bench", "run", "hot"]] {
        let ended = run(&[arguments, &["--reserved-memory", "1000TB"]].concat());
        assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""));
        let beginning = "error: 1024000.0 GB of memory cannot be reserved\n  detail: ";
        assert!(ended.err.starts_with(beginning), "{}", ended.err);
        assert!(ended.err.ends_with("\n  hint: reserve less\n"), "{}", ended.err);
    }
    assert!(!database.exists());
    let ended =
        run(&["bench", "run", "hot", "--seconds", "0.1", "--set", "keys=100", "--reserved-memory", "64MB"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains(", 0.1 GB of memory reserved\n"), "{}", ended.out);
}

/// Goal: a server that cannot begin leaves no database behind.
#[test]
fn nothing_is_made_when_the_port_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let database = directory.path().join("d2");
    for (flag, other) in [("listen", "http"), ("http", "listen")] {
        let error = format!(
            "error: cannot listen on {address}\n  detail: Address already in use (os error 98)\n  hint: something \
             listens there already; choose another address with --{flag} ADDRESS\n"
        );
        let (flag, other) = (format!("--{flag}"), format!("--{other}"));
        refused(&["serve", text(&database), &flag, &address, &other, "127.0.0.1:0"], 1, &error);
        assert!(!database.exists(), "{flag}");
    }
    let users = directory.path().join("missing");
    let missing = run(&["serve", text(&database), "--listen", "127.0.0.1:0", "--users", text(&users)]);
    assert!(missing.err.starts_with("error: the users cannot be read\n"), "{}", missing.err);
    assert!(!database.exists());
}

/// Goal: a log that goes to a file has no codes for colours in it.
#[test]
fn a_log_in_a_file_has_no_colours() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("stderr");
    let mut server =
        fabius(&["serve", text(&directory.path().join("data")), "--listen", "127.0.0.1:0", "--http", "off"])
            .stderr(std::fs::File::create(&file).expect("a file"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
    let mut said = String::new();
    let mut out = std::io::BufReader::new(server.stdout.take().expect("its output"));
    // It has logged where it listens before it says so.
    std::io::BufRead::read_line(&mut out, &mut said).expect("a line");
    server.kill().expect("it ends");
    server.wait().expect("it has ended");
    let log = std::fs::read_to_string(&file).expect("the log");
    assert!(log.contains("listening") && !log.contains('\u{1b}'), "{log:?}");
}
