//! Disks that fail: what was acknowledged is there after reopening, and nothing is half there.
//!
//! The disk is simulated: power losses that tear unsynced writes, syncs that fail, disks that fill up,
//! short writes. `FABIUS_SEED` reproduces one life of a database; `FABIUS_SEEDS` sets how many are lived.

use fabius::{Database, EngineKind, Error, Options, Value};
use fabius_env::{Disk, Fault, Random, RealClock, SimulatedDisk};
use fabius_log::Flusher;
use std::collections::HashSet;
use std::sync::Arc;

const DEFINITIONS: [&str; 4] = [
    "table ledger { id: bigint, amount: bigint, primary key (id) }",
    "table totals { id: bigint, calls: bigint, sum: bigint, primary key (id) using hash }",
    "procedure set_up() { insert totals { id: 1, calls: 0, sum: 0 } }",
    "procedure enter(id: bigint, amount: bigint) {
         insert ledger { id: id, amount: amount }
         totals[1].calls += 1
         totals[1].sum += amount
     }",
];

fn open(disk: &SimulatedDisk, engine: EngineKind) -> Result<Database, Error> {
    let options = Options { engine, workers: 1, ..Options::default() };
    Database::open_on(Arc::new(disk.clone()), Arc::new(RealClock::new()), Flusher::Thread, options)
}

/// Calls until the disk fails or enough is done; gives what was acknowledged.
fn live(database: &Database, life: u64, acknowledged: &mut HashSet<i64>) -> Result<(), Error> {
    for definition in DEFINITIONS {
        match database.define(definition) {
            // An earlier life came this far.
            Err(error) if error.state().as_str() == "42710" => {}
            other => other?,
        }
    }
    if database.rows("totals")?.is_empty() {
        database.call("set_up", &[])?;
    }
    for number in 0..200i64 {
        if number % 40 == life as i64 * 7 {
            // It may fail where calls do not, and calls go on then.
            if let Err(error) = database.checkpoint() {
                expect_of_a_failing_disk(&error);
            }
        }
        let id = (life as i64) << 32 | number;
        database.call("enter", &[id.into(), (number % 7).into()])?;
        acknowledged.insert(id);
    }
    Ok(())
}

fn expect_of_a_failing_disk(error: &Error) {
    assert!(["53100", "58030", "57P01"].contains(&error.state().as_str()), "{error:?}");
}

fn check(database: &Database, acknowledged: &HashSet<i64>, again: &str) {
    if database.definitions().catalog.find_table("totals").is_none()
        || database.rows("totals").unwrap().is_empty()
    {
        assert!(acknowledged.is_empty(), "acknowledged calls are gone with their tables: {again}");
        return;
    }
    let integer = |value: &Value| value.as_integer().unwrap();
    let ledger = database.rows("ledger").unwrap();
    let ids: HashSet<i64> = ledger.iter().map(|row| integer(&row[0])).collect();
    let lost = acknowledged.difference(&ids).count();
    assert_eq!(lost, 0, "{lost} of {} acknowledged calls are gone: {again}", acknowledged.len());
    let sum: i64 = ledger.iter().map(|row| integer(&row[1])).sum();
    let totals = database.rows("totals").unwrap();
    assert_eq!(
        (integer(&totals[0][1]), integer(&totals[0][2])),
        (ids.len() as i64, sum),
        "half a call: {again}"
    );
}

fn lives(seed: u64) {
    let again = format!("FABIUS_SEED={seed} cargo test -p fabius --test faults");
    let mut random = Random::seeded(seed);
    let mut disk = SimulatedDisk::new(seed);
    let mut acknowledged = HashSet::new();
    for life in 0..4 {
        let engine = EngineKind::ALL[random.index(EngineKind::ALL.len())];
        let database = open(&disk, engine).unwrap_or_else(|error| panic!("life {life}: {error:?}: {again}"));
        check(&database, &acknowledged, &again);
        match random.below(5) {
            0 => {}
            1 => disk.fault(Fault::ShortWrites),
            2 => disk.fault(Fault::FailSync { syncs_before: random.below(100) }),
            3 => disk.fault(Fault::Full { bytes: random.below(20_000) }),
            _ => disk.fault(Fault::PowerLoss { operations: random.below(300) }),
        }
        let ended = live(&database, life, &mut acknowledged);
        if let Err(error) = &ended {
            println!("life {life} ended: {again}");
            expect_of_a_failing_disk(error);
        }
        // Whether closing can save anything depends on the fault; what counts is what was acknowledged.
        let _ = database.close();
        disk = disk.crash(random.next_u64());
    }
    let database = open(&disk, EngineKind::Lazy).unwrap_or_else(|error| panic!("{error:?}: {again}"));
    check(&database, &acknowledged, &again);
}

#[test]
fn nothing_acknowledged_is_lost_whatever_the_disk_does() {
    if let Ok(seed) = std::env::var("FABIUS_SEED") {
        return lives(seed.parse().expect("a number"));
    }
    let seeds = std::env::var("FABIUS_SEEDS").map_or(60, |text| text.parse().expect("a number"));
    (0..seeds).for_each(lives);
}

/// Goal: a log whose end was torn by a power loss says so when it is opened, and only then.
#[test]
fn a_torn_end_is_reported() {
    let torn = (0..100).find_map(|seed| {
        let disk = SimulatedDisk::new(seed);
        let database = open(&disk, EngineKind::Lazy).unwrap();
        assert_eq!(database.warnings(), [] as [&str; 0], "a new log is whole");
        disk.fault(Fault::PowerLoss { operations: 20 });
        let _ = live(&database, 0, &mut HashSet::new());
        let _ = database.close();
        let disk = disk.crash(seed);
        let reopened = open(&disk, EngineKind::Lazy).unwrap();
        let warnings = reopened.warnings();
        reopened.close().unwrap();
        assert_eq!(open(&disk, EngineKind::Lazy).unwrap().warnings(), [] as [&str; 0], "it was cut off");
        warnings.into_iter().next()
    });
    let torn = torn.expect("some power losses tear the end");
    assert!(torn.starts_with("the end of the log was torn and has been cut off: "), "{torn}");
}

#[test]
fn a_read_only_disk_is_refused_with_advice() {
    let disk = SimulatedDisk::new(1);
    disk.fault(Fault::ReadOnly);
    let error = open(&disk, EngineKind::Lazy).map(|_| ()).unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("writable")), "{error:?}");
    let _: &dyn Disk = &disk;
}
