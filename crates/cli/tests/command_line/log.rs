//! `fabius log`: what is no log is an error, and so is a place that the log has not got.

use crate::{Ended, fabius, refused, run, text};
use fabius::{Database, Options, Value};
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
        verified.out.ends_with("\nno entries; closed cleanly\nevery checksum is right\nsound\n"),
        "{}",
        verified.out
    );
    let dumped = run(&["log", "dump", directory]);
    assert_eq!(
        (dumped.code, dumped.out.as_str(), dumped.err.as_str()),
        (Some(0), "", "the log has no entries\n")
    );
}

/// Goal: a log that lost what a checkpoint proves is no sound one, and is not opened; nor is one of another database.
#[test]
fn a_log_fits_its_database() {
    let database = database(20);
    let directory = text(database.path());
    assert_eq!(run(&["checkpoint", directory]).code, Some(0));
    assert_eq!(run(&["log", "verify", directory]).code, Some(0));
    std::fs::remove_file(database.path().join("log/CLOSED")).expect("a closing mark");
    let segment = segment(&database);
    let whole = std::fs::read(&segment).expect("a segment");
    for kept in [0, 30, whole.len() / 2] {
        std::fs::write(&segment, &whole[..kept]).expect("a segment");
        let verified = run(&["log", "verify", directory]);
        assert_eq!(verified.code, Some(1), "{}", verified.out);
        assert!(verified.err.contains("before the checkpoint at 22"), "{}", verified.err);
        let opened = run(&["checkpoint", directory]);
        assert_eq!((opened.code, opened.out.as_str()), (Some(1), ""), "{}", opened.err);
        assert!(opened.err.contains("but 23 is to come next"), "{}", opened.err);
    }
    std::fs::write(&segment, &whole).expect("a segment");
    checkpoint_of_another(&database);
    let verified = run(&["log", "verify", directory]);
    assert_eq!(verified.code, Some(1), "{}", verified.out);
    assert!(verified.err.contains("another database"), "{}", verified.err);
    let identity = database.path().join("IDENTITY");
    std::fs::write(&identity, format!("fabius database 1\n{:032x}\n", 7)).expect("an identity");
    let verified = run(&["log", "verify", directory]);
    assert!(verified.err.contains("the log is that of another database"), "{}", verified.err);
    std::fs::remove_file(&identity).expect("an identity");
    let verified = run(&["log", "verify", directory]);
    assert!(verified.err.contains("the database's identity is missing"), "{}", verified.err);
    assert_eq!(verified.code, Some(1));
}

/// Puts a checkpoint of another database in the place of this one's newest.
fn checkpoint_of_another(database: &TempDir) {
    let other = self::database(20);
    assert_eq!(run(&["checkpoint", text(other.path())]).code, Some(0));
    let newest = |of: &TempDir| {
        let files = std::fs::read_dir(of.path().join("checkpoints")).expect("checkpoints");
        let files = files.map(|entry| entry.expect("a file").path());
        files.filter(|path| path.extension().is_some()).max().expect("a checkpoint")
    };
    std::fs::copy(newest(&other), newest(database)).expect("a copy");
}

/// Goal: texts are told from what they look like, and stay in their line.
#[test]
fn texts_are_in_quotes() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::open(directory.path(), Options::default()).expect("a database");
    database.define("procedure say(a: text null, b: text) {}").expect("a definition");
    for value in [Value::Null, Value::Text("it's\n null".into())] {
        database.call("say", &[value, Value::Text("null".into())]).expect("a call");
    }
    database.close().expect("it closes");
    let dumped = run(&["log", "dump", text(directory.path())]).out;
    let calls: Vec<&str> = dumped
        .lines()
        .filter_map(|line| line.split("  ").nth(2))
        .filter(|call| call.starts_with("say"))
        .collect();
    assert_eq!(calls, ["say(null, 'null')", r"say('it''s\n null', 'null')"]);
}

/// Goal: what cannot be printed is an error; who no longer reads is none.
#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has one");
    let ended = fabius(&["bench", "list"]).stdout(full).output().expect("the program starts");
    assert_eq!(ended.status.code(), Some(1));
    let error = String::from_utf8(ended.stderr).expect("text");
    assert!(error.starts_with("error: the output cannot be written\n  detail: No space left"), "{error}");
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
