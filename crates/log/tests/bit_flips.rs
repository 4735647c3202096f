//! A changed bit anywhere in a log that was closed is noticed; so is a file cut, lengthened, gone
//! or put in another's place.

use std::sync::Arc;

use fabius_env::{Disk, Random, SimulatedDisk};
use fabius_log::{DatabaseId, Durability, Flusher, Log, LogError, LogErrorKind, LogOptions, verify};

fn options(durability: Durability) -> LogOptions {
    LogOptions {
        durability,
        flusher: Flusher::Manual,
        segment_bytes: 2_000,
        ..LogOptions::new(DatabaseId(*b"bit flip tests.."))
    }
}

/// Appends batches of random sizes, in groups of random sizes, with idle marks in between.
fn fill(log: &Log, random: &mut Random, batches: u64) {
    for _ in 0..batches {
        let mut payload = vec![0; random.index(300)];
        random.fill(&mut payload);
        let entry_count = 1 + random.below(3) as u32;
        log.append(log.next_seq(), entry_count, &payload).expect("room");
        for _ in 0..random.below(4) {
            log.flush_now().expect("a good disk");
        }
    }
}

fn closed_log(seed: u64, durability: Durability) -> SimulatedDisk {
    let disk = SimulatedDisk::new(seed);
    let mut random = Random::seeded(seed);
    let (log, _) = open(&disk, durability).expect("new log");
    fill(&log, &mut random, 40);
    log.close().expect("a good disk");
    disk
}

fn open(disk: &SimulatedDisk, durability: Durability) -> Result<(Log, fabius_log::RecoveryReport), LogError> {
    Log::open(Arc::new(disk.clone()), options(durability), |_| Ok(()))
}

/// Both ways of reading notice it, and opening has changed nothing.
fn assert_noticed(disk: &SimulatedDisk, durability: Durability, what: &str) {
    let found = verify(disk).expect("readable");
    let damage = found.damage.unwrap_or_else(|| panic!("{what}: not noticed"));
    assert_eq!(found.torn_tail, None, "{what}");
    assert!(damage.segment().is_some(), "{what}: {damage}");
    assert!(damage.hint().is_some(), "{what}: {damage}");
    let before = contents(disk);
    let error = open(disk, durability).expect_err(what);
    assert_eq!(error.to_string(), damage.to_string(), "{what}");
    assert_eq!(contents(disk), before, "{what}: opening changed the log");
}

fn contents(disk: &SimulatedDisk) -> Vec<(String, Vec<u8>)> {
    let names = disk.list().expect("readable");
    let read = |name: String| {
        let content = disk.read(&name).expect("readable");
        (name, content)
    };
    names.into_iter().map(read).collect()
}

/// Goal: each bit of each file of a small closed log, one by one.
#[test]
fn every_bit_of_a_closed_log() {
    let disk = closed_log(1, Durability::Fsync);
    for (name, content) in contents(&disk) {
        for bit in 0..content.len() * 8 {
            disk.damage(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).expect("the file is there");
            let found = verify(&disk).expect("readable");
            assert!(found.damage.is_some() && found.torn_tail.is_none(), "bit {bit} of {name}");
            disk.damage(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).expect("the file is there");
        }
    }
    assert!(verify(&disk).expect("readable").is_sound());
}

/// Goal: random flips, by both ways of reading, in logs of both durabilities.
#[test]
fn random_bits_of_random_closed_logs() {
    for seed in 0..400 {
        let durability = if seed % 2 == 0 { Durability::Fsync } else { Durability::None };
        let mut random = Random::seeded(seed);
        let disk = closed_log(seed, durability);
        for _ in 0..5 {
            let damaged = disk.copy();
            let files = contents(&damaged);
            let (name, content) = &files[random.index(files.len())];
            let bit = random.index(content.len() * 8);
            damaged.damage(name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).expect("the file is there");
            assert_noticed(&damaged, durability, &format!("seed {seed}: bit {bit} of {name}"));
        }
    }
}

/// Goal: files that are cut, lengthened, missing, exchanged or foreign.
#[test]
fn other_damage_to_a_closed_log() {
    let disk = closed_log(2, Durability::Fsync);
    let files = contents(&disk);
    let segments: Vec<&str> =
        files.iter().map(|(name, _)| name.as_str()).filter(|name| name.ends_with(".log")).collect();
    assert!(segments.len() > 2);
    for name in &segments {
        for cut in [0, 1, 63, 64, 65, 100] {
            let damaged = disk.copy();
            damaged.damage(name, |bytes| bytes.truncate(cut)).expect("the file is there");
            assert_noticed(&damaged, Durability::Fsync, &format!("{name} cut to {cut}"));
        }
        let damaged = disk.copy();
        damaged.damage(name, |bytes| bytes.push(0)).expect("the file is there");
        assert_noticed(&damaged, Durability::Fsync, &format!("{name} lengthened"));

        let damaged = disk.copy();
        damaged.delete(name).expect("the file is there");
        assert_noticed(&damaged, Durability::Fsync, &format!("{name} missing"));
    }
    let damaged = disk.copy();
    damaged
        .rename(segments[0], "spare")
        .and_then(|()| damaged.rename(segments[1], segments[0]))
        .and_then(|()| damaged.rename("spare", segments[1]))
        .expect("the files are there");
    assert_noticed(&damaged, Durability::Fsync, "two segments exchanged");
}

/// Goal: after a crash, a flip in anything that a later group or an idle mark vouches for is an
/// error, never a cut.
#[test]
fn flips_below_the_idle_mark_after_a_crash() {
    for seed in 0..60 {
        let mut random = Random::seeded(seed);
        let disk = SimulatedDisk::new(seed);
        let (log, _) = open(&disk, Durability::Fsync).expect("new log");
        fill(&log, &mut random, 30);
        log.flush_now().expect("a good disk");
        log.flush_now().expect("leaves the mark");
        let last_seq = log.next_seq() - 1;
        // The mark is not synced, but the system writes it before long.
        let found = disk.copy();
        let files = contents(&found);
        for (name, content) in &files {
            let is_last = Some(name) == files.iter().map(|(name, _)| name).max();
            let vouched = content.len() - if is_last { 32 } else { 0 };
            for _ in 0..40 {
                let damaged = found.copy();
                let bit = random.index(vouched * 8);
                damaged.damage(name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).expect("the file is there");
                let what = format!("seed {seed}: bit {bit} of {name}");
                assert_noticed(&damaged, Durability::Fsync, &what);
                let damage = verify(&damaged).expect("readable").damage.expect(&what);
                assert!(damage.last_good_seq() < Some(last_seq), "{what}");
            }
        }
    }
}

/// Goal: random bytes for files never panic, and are never taken for a log.
#[test]
fn random_bytes_are_refused() {
    for seed in 0..2_000 {
        let mut random = Random::seeded(seed);
        let disk = closed_log(seed % 7, Durability::Fsync);
        let files = contents(&disk);
        let (name, _) = &files[random.index(files.len())];
        let (from, len) = (random.index(200), random.index(300));
        let mut garbage = vec![0; len];
        random.fill(&mut garbage);
        let mut changed = false;
        disk.damage(name, |bytes| {
            let from = from.min(bytes.len());
            let until = (from + len).min(bytes.len());
            let old = bytes.clone();
            bytes.splice(from..until, garbage.iter().copied());
            changed = *bytes != old;
        })
        .expect("the file is there");
        assert_eq!(verify(&disk).expect("readable").is_sound(), !changed, "seed {seed}");
    }
}

/// Goal: a later version's file is told from a damaged one.
#[test]
fn a_newer_format_is_named() {
    let disk = closed_log(3, Durability::Fsync);
    disk.damage("000000000001.log", |bytes| {
        bytes[8] = 9;
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
    })
    .expect("the file is there");
    let error = open(&disk, Durability::Fsync).expect_err("newer");
    assert_eq!(error.kind(), LogErrorKind::NewerFormat);
    assert_eq!(error.to_string(), "log format 9 is newer than this program's, 1 (000000000001.log)");
}

/// Goal: another database's log is refused by name.
#[test]
fn another_databases_log_is_refused() {
    let disk = closed_log(4, Durability::Fsync);
    let other = LogOptions { database_id: DatabaseId([0xEE; 16]), ..options(Durability::Fsync) };
    let error = Log::open(Arc::new(disk), other, |_| Ok::<(), LogError>(())).expect_err("another's");
    assert_eq!(error.kind(), LogErrorKind::OtherDatabase);
}
