//! Opening a database: what is there afterwards, and what is refused with which words.

use fabius::{Database, Durability, EngineKind, Options, Value};
use std::fs;
use std::path::Path;

const COUNTER: &str = "
table counters { id: bigint, n: bigint, primary key (id) using hash }
procedure make(id: bigint) { insert counters { id: id, n: 0 } }
procedure increment(id: bigint) -> bigint { counters[id].n += 1  return counters[id].n }";

fn options() -> Options {
    Options { workers: 1, ..Options::default() }
}

/// An error, and that it names what to do.
fn refused(path: &Path) -> fabius::Error {
    match Database::open(path, options()) {
        Ok(_) => panic!("opened {}", path.display()),
        Err(error) => error,
    }
}

#[test]
fn calls_survive_closing_whatever_the_engine() {
    let directory = tempfile::tempdir().unwrap();
    let mut expected = 0;
    for (round, durability) in
        [(0, Durability::Fsync), (1, Durability::None), (2, Durability::Fsync), (3, Durability::None)]
    {
        let engine = EngineKind::ALL[round % EngineKind::ALL.len()];
        let database = Database::open(directory.path(), Options { engine, durability, ..options() }).unwrap();
        if round == 0 {
            database.define(COUNTER).unwrap();
            database.call("make", &[1i64.into()]).unwrap();
        }
        for _ in 0..10 {
            expected += 1;
            let promise = database.call("increment", &[1i64.into()]).unwrap();
            assert_eq!(promise.result().unwrap(), [Value::BigInt(expected)], "{engine} {durability}");
        }
        database.close().unwrap();
    }
}

#[test]
fn an_idempotency_key_gives_the_first_outcome_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    for engine in [EngineKind::Lazy, EngineKind::TwoPhaseLocking, EngineKind::Lazy] {
        let database = Database::open(directory.path(), Options { engine, ..options() }).unwrap();
        if database.procedure("make").is_err() {
            database.define(COUNTER).unwrap();
            database.call("make", &[1i64.into()]).unwrap();
        }
        for _ in 0..3 {
            let promise =
                database.prepare("increment").unwrap().with_key("order 7").call(&[1i64.into()]).unwrap();
            assert_eq!(promise.result().unwrap(), [Value::BigInt(1)]);
            let refused =
                database.prepare("make").unwrap().with_key("again").call(&[1i64.into()]).map(|_| ());
            assert_eq!(refused.unwrap_err().state().as_str(), "23505");
        }
        assert_eq!(database.rows("counters").unwrap(), [[Value::BigInt(1), Value::BigInt(1)]]);
        database.close().unwrap();
    }
}

#[test]
fn a_directory_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let first = Database::open(directory.path(), options()).unwrap();
    let error = refused(directory.path());
    assert_eq!(error.state().as_str(), "55006", "{error:?}");
    assert_eq!(
        error.detail(),
        Some(&*directory.path().display().to_string()),
        "the database is named, no part of it"
    );
    first.close().unwrap();
    Database::open(directory.path(), options()).unwrap().close().unwrap();
}

/// Goal: whoever finds the directory taken has written nothing there: a new database gets one identity, whoever
/// begins it.
#[test]
fn an_identity_is_made_by_who_has_the_directory() {
    use fabius_env::{Disk, RealDisk};
    let directory = tempfile::tempdir().unwrap();
    let other = RealDisk::create(directory.path().join("checkpoints")).unwrap();
    let held = other.lock().unwrap();
    assert_eq!(refused(directory.path()).state().as_str(), "55006");
    assert!(!directory.path().join("IDENTITY").exists());
    drop(held);
    Database::open(directory.path(), options()).unwrap().close().unwrap();
}

#[test]
fn a_file_in_the_way_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, "not a directory").unwrap();
    let error = refused(&path);
    assert!(error.detail().is_some_and(|detail| detail.contains("file")), "{error:?}");
}

#[test]
fn a_directory_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("IDENTITY"), "fabius database 9\n00\n").unwrap();
    let error = refused(directory.path());
    assert_eq!(error.message(), "the directory is not a database of this version");
    assert!(error.hint().is_some());
}

#[test]
fn a_flipped_bit_in_the_log_is_refused_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), options()).unwrap();
    database.define(COUNTER).unwrap();
    for id in 0..100i64 {
        database.call("make", &[id.into()]).unwrap();
    }
    database.close().unwrap();
    let segment = directory.path().join("log/000000000001.log");
    let sound = fs::read(&segment).unwrap();
    for at in (0..sound.len()).step_by(sound.len() / 50) {
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&segment, &damaged).unwrap();
        let error = refused(directory.path());
        assert!(
            error.detail().is_some_and(|detail| detail.contains("000000000001.log")),
            "byte {at}: {error:?}"
        );
    }
    fs::write(&segment, &sound).unwrap();
    let database = Database::open(directory.path(), options()).unwrap();
    assert_eq!(database.rows("counters").unwrap().len(), 100);
}

#[test]
fn bad_calls_say_what_is_wrong() {
    let database = Database::in_memory(options());
    database.define(COUNTER).unwrap();
    database.call("make", &[1i64.into()]).unwrap();
    let state = |result: fabius::Result<()>| result.unwrap_err().state().as_str().to_string();
    let call = |name: &str, arguments: &[Value]| database.call(name, arguments).map(|_| ());
    assert_eq!(state(call("nothing", &[])), "42883");
    assert_ne!(state(call("make", &[])), "", "too few arguments");
    assert_eq!(state(call("make", &["one".into()])), "22P02");
    assert_eq!(state(call("make", &[Value::Null])), "23502");
    assert_eq!(state(call("increment", &[9i64.into()])), "P0002");
    assert_eq!(state(database.define("table t {")), "42601");
    assert_eq!(state(database.define(COUNTER)), "42710");
    assert_eq!(state(database.query("increment", &[1i64.into()]).map(|_| ())), "25006");
    assert_eq!(state(database.rows("nothing").map(|_| ())), "42P01");
}
