//! Checkpoints of a database: what opening finds, what is kept, and what damage leads to.

use fabius::{Database, Durability, EngineKind, Error, Options, SqlState, Value};
use fabius_engine::checkpoint;
use fabius_env::{Random, RealDisk};
use fabius_log::DatabaseId;
use fabius_storage::checkpoint::{CheckpointReader, list};
use std::fs;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "
table accounts { id: bigint, balance: bigint, primary key (id) using hash }
table ledger { id: bigint, note: text null, primary key (id), index by_note (note) }
procedure make(id: bigint) { insert accounts { id: id, balance: 0 } }
procedure pay(id: bigint, account: bigint) -> bigint {
    accounts[account].balance += 1
    insert ledger { id: id, note: null }
    return accounts[account].balance
}";

fn options(engine: EngineKind) -> Options {
    Options { engine, workers: 1, ..Options::default() }
}

fn open(path: &Path, engine: EngineKind) -> Database {
    Database::open(path, options(engine)).unwrap_or_else(|error| panic!("{error:?}"))
}

fn refused(path: &Path) -> Error {
    match Database::open(path, options(EngineKind::Lazy)) {
        Ok(_) => panic!("opened {}", path.display()),
        Err(error) => error,
    }
}

fn set_up(database: &Database) {
    database.define(PROGRAM).unwrap();
    (0..4i64).for_each(|id| _ = database.call("make", &[id.into()]).unwrap());
}

/// Ten calls, with numbers from `from` on.
fn pay(database: &Database, from: i64) {
    for id in from..from + 10 {
        database.call("pay", &[id.into(), (id % 4).into()]).unwrap();
    }
}

/// Rows of half a kilobyte, so that a checkpoint of some thousands has many blocks.
fn note_long(database: &Database, calls: i64) {
    database
        .define("procedure note(id: bigint, note: text) { insert ledger { id: id, note: note } }")
        .unwrap();
    let long = "long ".repeat(100);
    (0..calls).for_each(|id| _ = database.call("note", &[id.into(), long.as_str().into()]).unwrap());
}

/// All rows, in an order of their own.
fn dump(database: &Database) -> Vec<String> {
    let rows = ["accounts", "ledger"].into_iter().flat_map(|table| database.rows(table).unwrap());
    let mut lines: Vec<String> = rows.map(|row| format!("{row:?}")).collect();
    lines.sort();
    lines
}

fn files(path: &Path, folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(path.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "log" || it == "checkpoint")).collect();
    files.sort();
    files
}

/// A closed database with two checkpoints, calls before, between and behind them, and a log that does not
/// reach back to the beginning; and its rows.
fn with_two_checkpoints(path: &Path) -> Vec<String> {
    let mut rows = Vec::new();
    // Another durability begins another segment of the log.
    let lives = [Durability::Fsync, Durability::None, Durability::Fsync, Durability::None, Durability::Fsync];
    for (life, durability) in lives.into_iter().enumerate() {
        let engine = EngineKind::ALL[life % EngineKind::ALL.len()];
        let database = Database::open(path, Options { durability, ..options(engine) }).unwrap();
        if life == 0 {
            set_up(&database);
        }
        pay(&database, life as i64 * 10);
        if life < 4 {
            assert!(database.checkpoint().unwrap().is_new);
        }
        rows = dump(&database);
        database.close().unwrap();
    }
    assert_eq!(files(path, "checkpoints").len(), 2);
    rows
}

#[test]
fn opening_begins_with_the_newest_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let rows = with_two_checkpoints(directory.path());
    assert!(!files(directory.path(), "log")[0].ends_with("000000000001.log"), "the log's beginning is gone");
    for engine in EngineKind::ALL {
        let database = open(directory.path(), engine);
        assert_eq!(dump(&database), rows, "{engine}");
        let status = database.checkpoint_status();
        assert!(status.newest.is_some() && status.passed_over.is_empty());
        assert_eq!(database.query("sum", &[]).unwrap_err().state().as_str(), "42883");
        database.close().unwrap();
    }
    // And goes on from there.
    let database = open(directory.path(), EngineKind::Lazy);
    let promise = database.call("pay", &[1000i64.into(), 0i64.into()]).unwrap();
    assert_eq!(promise.result().unwrap(), [Value::BigInt(14)]);
    let again = database.call("pay", &[1000i64.into(), 0i64.into()]).map(|_| ());
    assert_eq!(again.unwrap_err().state(), SqlState::UNIQUE_VIOLATION);
}

#[test]
fn two_checkpoints_are_kept_and_the_log_from_the_older_on() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), EngineKind::Lazy);
    set_up(&database);
    let mut taken = Vec::new();
    for round in 0..4 {
        pay(&database, round * 10);
        taken.push(database.checkpoint().unwrap());
    }
    let names: Vec<String> = taken[2..].iter().map(|checkpoint| checkpoint.name.clone()).collect();
    let there: Vec<String> = files(directory.path(), "checkpoints")
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_string())
        .collect();
    assert_eq!(there, names);
    assert_eq!((taken[3].counts.rows, taken[3].counts.definitions), (44, 4));
    // Nothing has happened since: it is as good as a new one.
    let same = database.checkpoint().unwrap();
    assert_eq!((same.seq, same.bytes, same.is_new), (taken[3].seq, taken[3].bytes, false));
}

#[test]
fn a_damaged_newest_checkpoint_is_passed_over_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    let rows = with_two_checkpoints(directory.path());
    let newest = files(directory.path(), "checkpoints").pop().unwrap();
    let sound = fs::read(&newest).unwrap();
    let mut random = Random::seeded(7);
    for round in 0..60 {
        let mut damaged = sound.clone();
        if round % 4 == 0 {
            damaged.truncate(random.index(sound.len()));
        } else {
            damaged[random.index(sound.len())] ^= 1 << random.below(8);
        }
        fs::write(&newest, &damaged).unwrap();
        let database = open(directory.path(), EngineKind::ALL[round % EngineKind::ALL.len()]);
        let passed_over = database.checkpoint_status().passed_over;
        let detail = passed_over[0].detail().unwrap_or_default();
        let name = newest.file_name().unwrap().to_str().unwrap();
        assert!(passed_over.len() == 1 && detail.contains(name) && detail.contains("offset"), "{detail}");
        assert_eq!(dump(&database), rows);
        database.close().unwrap();
    }
    // The next one takes its place, and both that are kept are whole.
    let database = open(directory.path(), EngineKind::Lazy);
    pay(&database, 5000);
    let rows = dump(&database);
    database.checkpoint().unwrap();
    database.close().unwrap();
    let newest = files(directory.path(), "checkpoints").pop().unwrap();
    fs::write(&newest, b"nothing").unwrap();
    assert_eq!(dump(&open(directory.path(), EngineKind::TwoPhaseLocking)), rows);
}

/// Goal: however many threads write a checkpoint while calls go on, it and the log behind it give the same rows; what
/// ends one of the threads ends all, and nothing is left of what they wrote.
#[test]
fn threads_write_what_one_writes() {
    const CALLS: i64 = 5000;
    let directory = tempfile::tempdir().unwrap();
    for engine in [EngineKind::Lazy, EngineKind::Optimistic] {
        for threads in [1, 2, 8] {
            let path = directory.path().join(format!("{engine}-{threads}"));
            let durability = Durability::None;
            let options = Options { checkpoint_threads: Some(threads), durability, ..options(engine) };
            let database = Database::open(&path, options).unwrap();
            set_up(&database);
            note_long(&database, CALLS);
            let given_up = database.checkpoint_watched(&mut |progress| match progress.part.as_str() {
                "ledger" => Err(Error::new(SqlState::CANCELED, "enough")),
                _ => Ok(()),
            });
            assert_eq!(given_up.unwrap_err().message(), "enough", "{engine}, {threads} threads");
            assert_eq!(fs::read_dir(path.join("checkpoints")).unwrap().count(), 1, "the lock alone is left");
            let written = std::thread::scope(|scope| {
                let calls = scope.spawn(|| (0..200).for_each(|ten| pay(&database, CALLS + ten * 10)));
                let written = database.checkpoint().unwrap();
                calls.join().unwrap();
                written
            });
            assert!(written.counts.rows >= CALLS as u64 && written.counts.blocks > 8, "{written:?}");
            let rows = dump(&database);
            database.close().unwrap();
            assert!(dump(&open(&path, engine)) == rows, "{engine}, {threads} threads");
        }
    }
}

/// Goal: however many threads load a checkpoint of many blocks, the state is the same, with the bounds of columns; and
/// damage of any block is found, and told in the same words.
#[test]
fn threads_load_what_one_loads() {
    const CALLS: i64 = 4000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let load = |engine, threads| {
        let options = Options { recovery_threads: Some(threads), ..options(engine) };
        Database::open(path, options).unwrap_or_else(|error| panic!("{error:?}"))
    };
    let mut rows = {
        let database = open(path, EngineKind::Lazy);
        set_up(&database);
        note_long(&database, CALLS);
        database.checkpoint().unwrap();
        dump(&database)
    };
    let disk = RealDisk::create(path.join("checkpoints")).unwrap();
    let found = list(&disk).unwrap().remove(0);
    let id = CheckpointReader::open(&disk, &found, None).unwrap().header().database_id;
    for threads in [1, 2, 8] {
        let state = checkpoint::read(&disk, &found, DatabaseId(id), threads).unwrap();
        let accounts = vec![Some((0, 3)), Some((0, 0))];
        let ledger = vec![Some((0, i128::from(CALLS - 1))), None];
        assert_eq!(state.ranges, [accounts, ledger], "{threads} threads");
    }
    for (threads, id) in [1, 2, 3, 8].into_iter().zip(CALLS..) {
        for (engine, ten) in
            [EngineKind::Lazy, EngineKind::TwoPhaseLocking, EngineKind::Graph].into_iter().zip(0..)
        {
            let database = load(engine, threads);
            assert!(dump(&database) == rows, "{engine}, {threads} threads");
            let paid = database.call("pay", &[(id * 10 + ten).into(), 0i64.into()]);
            assert!(paid.is_ok(), "{engine}, {threads} threads: {paid:?}");
            rows = dump(&database);
            database.close().unwrap();
        }
    }
    let file = files(path, "checkpoints").pop().unwrap();
    let whole = fs::read(&file).unwrap();
    for part in 1..8 {
        let mut damaged = whole.clone();
        damaged[whole.len() * part / 8] ^= 1;
        fs::write(&file, damaged).unwrap();
        let told = |threads| {
            let database = load(EngineKind::Lazy, threads);
            assert!(dump(&database) == rows, "damage in part {part} of 8, {threads} threads");
            let told = format!("{:?}", database.checkpoint_status().passed_over);
            database.close().unwrap();
            told
        };
        let one = told(1);
        assert!(one.contains("offset"), "{one}");
        assert_eq!(one, told(4), "damage in part {part} of 8");
    }
}

#[test]
fn damage_that_cannot_be_passed_over_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let rows = with_two_checkpoints(directory.path());
    let all = files(directory.path(), "checkpoints");
    let sound: Vec<Vec<u8>> = all.iter().map(|file| fs::read(file).unwrap()).collect();
    for (file, sound) in all.iter().zip(&sound) {
        let mut damaged = sound.clone();
        damaged[sound.len() / 2] ^= 1;
        fs::write(file, damaged).unwrap();
    }
    let before: Vec<Vec<u8>> =
        files(directory.path(), "log").iter().map(|file| fs::read(file).unwrap()).collect();
    let error = refused(directory.path());
    assert_eq!(error.state(), SqlState::DATA_CORRUPTED);
    let detail = error.detail().unwrap();
    for file in &all {
        assert!(detail.contains(file.file_name().unwrap().to_str().unwrap()), "{detail}");
    }
    assert!(detail.contains("offset") && detail.contains("the log begins with"), "{detail}");
    assert!(error.hint().unwrap().contains("fabius log dump"));
    let after: Vec<Vec<u8>> =
        files(directory.path(), "log").iter().map(|file| fs::read(file).unwrap()).collect();
    assert_eq!(before, after, "nothing was changed");
    // One of them restored is enough.
    fs::write(&all[0], &sound[0]).unwrap();
    assert_eq!(dump(&open(directory.path(), EngineKind::Lazy)), rows);
}

#[test]
fn a_whole_log_makes_up_for_every_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), EngineKind::Lazy);
    set_up(&database);
    pay(&database, 0);
    database.checkpoint().unwrap();
    pay(&database, 10);
    let rows = dump(&database);
    database.close().unwrap();
    fs::write(files(directory.path(), "checkpoints").pop().unwrap(), b"").unwrap();
    let database = open(directory.path(), EngineKind::Lazy);
    assert_eq!(database.checkpoint_status().passed_over.len(), 1);
    assert_eq!(dump(&database), rows);
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    with_two_checkpoints(directory.path());
    let newest = files(directory.path(), "checkpoints").pop().unwrap();
    let sound = fs::read(&newest).unwrap();
    let other = tempfile::tempdir().unwrap();
    with_two_checkpoints(other.path());
    fs::copy(files(other.path(), "checkpoints").pop().unwrap(), &newest).unwrap();
    assert_eq!(refused(directory.path()).message(), "the checkpoint belongs to another database");
    fs::write(&newest, &sound).unwrap();
    for segment in files(directory.path(), "log") {
        fs::remove_file(segment).unwrap();
    }
    let error = refused(directory.path());
    assert_eq!(error.message(), "there are checkpoints, but no log");
    let memory = Database::in_memory(options(EngineKind::Lazy));
    assert_eq!(memory.checkpoint().unwrap_err().state(), SqlState::NOT_SUPPORTED);
}

#[test]
fn keys_survive_and_are_forgotten_across_checkpoints() {
    let directory = tempfile::tempdir().unwrap();
    let narrow = Options { key_window_calls: Some(20), ..options(EngineKind::Lazy) };
    let database = Database::open(directory.path(), narrow).unwrap();
    set_up(&database);
    let call = |database: &Database, key: &str, id: i64| {
        let prepared = database.prepare("pay").unwrap().with_key(key);
        prepared.call(&[id.into(), 0i64.into()]).and_then(|promise| promise.result())
    };
    assert_eq!(call(&database, "old", 1), Ok(vec![Value::BigInt(1)]));
    pay(&database, 100);
    assert_eq!(call(&database, "young", 2), Ok(vec![Value::BigInt(5)]));
    pay(&database, 200);
    database.checkpoint().unwrap();
    database.close().unwrap();
    for engine in EngineKind::ALL {
        // Without saying so again, the window is what it was.
        let database = open(directory.path(), engine);
        assert_eq!(call(&database, "young", 2), Ok(vec![Value::BigInt(5)]), "{engine}");
        let again = call(&database, "old", 1);
        assert_eq!(again.unwrap_err().state(), SqlState::UNIQUE_VIOLATION, "{engine}: a call of its own");
        database.close().unwrap();
    }
}

#[test]
fn checkpoints_are_taken_as_the_log_grows() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_log_bytes: Some(2000), ..options(EngineKind::Lazy) };
    let database = Database::open(directory.path(), options).unwrap();
    set_up(&database);
    let begun = std::time::Instant::now();
    let mut from = 0;
    while database.checkpoint_status().newest.is_none() {
        assert!(begun.elapsed().as_secs() < 60, "no checkpoint comes");
        pay(&database, from);
        from += 10;
    }
    let rows = dump(&database);
    assert_eq!(database.checkpoint_status().failed, None);
    database.close().unwrap();
    assert_eq!(dump(&open(directory.path(), EngineKind::TwoPhaseLocking)), rows);
}
