//! `fabius log`: what is no log is an error, and so is a place that the log has not got.

use crate::{Ended, refused, run, text};
use fabius::{Database, Options};
use tempfile::TempDir;

const COUNTER: &str = "
table counters { id: bigint, n: bigint, primary key (id) using hash }
procedure make(id: bigint) { insert counters { id: id, n: 0 } }";

/// A database with a definition and `calls` calls; without any, also without the definition.
fn database(calls: i64) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::open(directory.path(), Options::default()).expect("a database");
    if calls > 0 {
        database.define(COUNTER).expect("a definition");
    }
    for id in 0..calls {
        database.call("make", &[id.into()]).expect("a call");
    }
    database.close().expect("it closes");
    directory
}

/// Goal: a directory without a log is an error, and is not made into anything.
#[test]
fn a_directory_without_a_log_is_refused() {
    let empty = tempfile::tempdir().expect("a directory");
    let directory = text(empty.path());
    let error = format!(
        "error: there is no log here\n  detail: {directory}\n  hint: name the directory of a database\n"
    );
    for command in ["verify", "dump"] {
        refused(&["log", command, directory], 1, &error);
        let missing = run(&["log", command, &format!("{directory}/missing")]);
        assert_eq!((missing.code, missing.out.as_str()), (Some(1), ""));
        assert!(missing.err.contains("hint: name the directory of a database"), "{}", missing.err);
    }
    assert_eq!(std::fs::read_dir(&empty).expect("the directory").count(), 0);
}

/// Goal: a dump that begins behind the end of the log says where the log ends.
#[test]
fn a_place_behind_the_end_is_refused() {
    let database = database(2);
    let directory = text(database.path());
    let Ended { code, out, err } = run(&["log", "dump", directory, "--from", "4"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("4  ") && out.ends_with("make(1)\n"), "{out}");
    refused(
        &["log", "dump", directory, "--from", "99999999"],
        1,
        "error: the log ends before 99999999\n  detail: its last entry is 4\n  hint: give --from a sequence \
         number that the log has; fabius log verify shows which\n",
    );
}

/// Goal: a log without entries is one, and what prints none says so.
#[test]
fn a_log_without_entries_is_a_log() {
    let database = database(0);
    let directory = text(database.path());
    let verified = run(&["log", "verify", directory]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    assert!(
        verified.out.ends_with("\nno entries; closed cleanly\nsound: every checksum is right\n"),
        "{}",
        verified.out
    );
    let dumped = run(&["log", "dump", directory]);
    assert_eq!(
        (dumped.code, dumped.out.as_str(), dumped.err.as_str()),
        (Some(0), "", "the log has no entries\n")
    );
}

/// The segment of a small database's log.
fn segment(database: &TempDir) -> std::path::PathBuf {
    let log = std::fs::read_dir(database.path().join("log")).expect("a log");
    let files = log.map(|entry| entry.expect("a file").path());
    let has_bytes = |path: &std::path::PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
    files.filter(has_bytes).min().expect("a segment")
}

/// Goal: a bit that is not what it was is found, with its file, by both commands, and the exit code says so.
#[test]
fn damage_is_told_with_its_place() {
    let database = database(20);
    let directory = text(database.path());
    let segment = segment(&database);
    let mut bytes = std::fs::read(&segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).expect("a segment");
    let name = segment.file_name().and_then(|name| name.to_str()).expect("a name");
    for command in ["verify", "dump"] {
        let damaged = run(&["log", command, directory]);
        assert_eq!(damaged.code, Some(1), "{command}");
        assert!(damaged.err.contains(name), "{command}: {}", damaged.err);
    }
}
