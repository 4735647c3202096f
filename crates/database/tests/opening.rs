//! Opening a database: what is there afterwards, and what is refused with which words.

use fabius::{Database, Durability, EngineKind, Options, Value};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

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
    // Each engine finds what another has written, without and with syncing.
    for round in 0..2 * EngineKind::ALL.len() {
        let engine = EngineKind::ALL[round % EngineKind::ALL.len()];
        let durability = [Durability::Fsync, Durability::None][(round + round / EngineKind::ALL.len()) % 2];
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

const HINT: &str =
    "close it in the process that has it open, which may be this one, or connect to its server instead";

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
    assert_eq!(error.hint(), Some(HINT));
    first.close().unwrap();
    Database::open(directory.path(), options()).unwrap().close().unwrap();
}

const CHILD: &str = "FABIUS_OPENING_CHILD";

/// Goal: the same of two processes, and until the other has ended, however it ends. The test runs itself again as the
/// other.
#[test]
fn a_directory_in_use_by_another_process_is_refused() {
    if let Ok(directory) = std::env::var(CHILD) {
        let _database = Database::open(directory, options()).unwrap();
        println!("\nopened");
        // Until it is killed.
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_directory_in_use_by_another_process_is_refused",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "opened"), "the other process opens the database");
    let error = refused(directory.path());
    assert_eq!(error.state().as_str(), "55006");
    assert_eq!(error.message(), "the database is open already");
    assert_eq!(error.hint(), Some(HINT));
    child.kill().unwrap();
    child.wait().unwrap();
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
    assert_eq!(error.state().as_str(), "0A000");
    assert_eq!(error.message(), "database format 9 is newer than this program's, 1");
    assert!(error.detail().is_some_and(|detail| detail.ends_with("/IDENTITY")), "{error:?}");
    assert_eq!(error.hint(), Some("use the version of Fabius that wrote the database, or a later one"));
}

/// Goal: what is no identity, or a broken one, is told from a newer one.
#[test]
fn a_broken_identity_is_refused() {
    let sound = format!("fabius database 1\n{}\n", "0a".repeat(16));
    for broken in [
        "",
        "something else",
        "fabius database 0\n",
        "fabius database \n",
        &sound[..30],
        &sound.replace('a', "x"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("IDENTITY"), broken).unwrap();
        let error = refused(directory.path());
        assert_eq!(error.state().as_str(), "XX001", "{broken:?}: {error:?}");
        assert_eq!(error.message(), "the directory is no database, or its identity is damaged");
        assert_eq!(error.hint(), Some("name another directory, or bring the file back from a copy"));
    }
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("IDENTITY"), sound).unwrap();
    Database::open(directory.path(), options()).unwrap().close().unwrap();
}

/// Goal: a database without its identity is not begun anew, which would make its files those of another one.
#[test]
fn a_missing_identity_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    Database::open(directory.path(), options()).unwrap().close().unwrap();
    let (identity, aside) = (directory.path().join("IDENTITY"), directory.path().join("aside"));
    fs::rename(&identity, &aside).unwrap();
    let error = refused(directory.path());
    assert_eq!(error.state().as_str(), "XX001");
    assert!(error.message().starts_with("the database's identity is missing"), "{error:?}");
    assert!(error.detail().is_some_and(|detail| detail.ends_with(".log is of a database")), "{error:?}");
    assert!(error.hint().is_some() && !identity.exists());
    fs::rename(&aside, &identity).unwrap();
    Database::open(directory.path(), options()).unwrap().close().unwrap();
}

/// CRC-32C, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82f6_3b78))
    })
}

/// Goal: a log of a later version is refused as such, not taken for a damaged one.
#[test]
fn a_log_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), options()).unwrap();
    database.define(COUNTER).unwrap();
    database.close().unwrap();
    let segment = directory.path().join("log/000000000001.log");
    let sound = fs::read(&segment).unwrap();
    let mut newer = sound.clone();
    assert_eq!(newer[60..64], crc32c(&newer[..60]).to_le_bytes(), "the header's checksum");
    newer[8..12].copy_from_slice(&7u32.to_le_bytes());
    let checksum = crc32c(&newer[..60]);
    newer[60..64].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&segment, &newer).unwrap();
    let error = refused(directory.path());
    assert_eq!(error.state().as_str(), "0A000", "{error:?}");
    assert_eq!(error.message(), "log format 7 is newer than this program's, 1");
    assert_eq!(error.hint(), Some("use the version of Fabius that wrote the log, or a later one"));
    fs::write(&segment, &sound).unwrap();
    Database::open(directory.path(), options()).unwrap().close().unwrap();
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
    let call = |name: &str, arguments: &[Value]| database.call(name, arguments).map(|_| ());
    let cases: &[(fabius::Result<()>, &str)] = &[
        (
            call("nothing", &[]),
            "[42883] there is no procedure \"nothing\"; hint: defined are make, increment",
        ),
        (call("make", &[]), "[42883] make takes 1 arguments, 0 given; parameters are (id: bigint)"),
        (
            call("make", &["one".into()]),
            "[22P02] argument id: invalid input syntax for type bigint: \"one\"; expected bigint, given text",
        ),
        (
            call("make", &[Value::Null]),
            "[23502] argument id: null is not allowed; expected bigint, given null",
        ),
        (call("increment", &[9i64.into()]), "[P0002] no such row (line 2); counters[9]"),
        (
            call("make", &[1i64.into()]),
            "[23505] duplicate key value violates unique constraint \"counters_pkey\" (line 2); Key (id)=(1) already exists.",
        ),
        (
            database.define("table t {"),
            "[42601] expected a column, primary key or index, found the end of the text (line 1);  --> definition:1:10\n  |\n1 | table t {\n  |          ^; hint: a column is written name: type",
        ),
        (
            database.define(COUNTER),
            "[42710] table counters exists already (line 1);  --> definition:1:7\n  |\n1 | table counters {\n  |       ^^^^^^^^; hint: give it another name, or drop the one there is: drop table counters",
        ),
        (
            database.query("increment", &[1i64.into()]).map(|_| ()),
            "[25006] procedure increment writes; hint: use call for it",
        ),
        (
            database.rows("nothing").map(|_| ()),
            "[42P01] there is no table \"nothing\"; hint: defined are counters",
        ),
    ];
    let mut wrong = Vec::new();
    for (result, expected) in cases {
        let told = format!("{:?}", result.as_ref().unwrap_err());
        if told != *expected {
            wrong.push(format!("is  {told}\nnot {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
