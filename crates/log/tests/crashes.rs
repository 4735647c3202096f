//! After a power loss at any point, whatever was acknowledged is there, and nothing half.
//!
//! Each seed is one schedule on a simulated disk: appends, flushes, marks, rotations, discards,
//! clean closes, and power losses, each followed by reopening. A failure names its seed.

use std::sync::Arc;

use fabius_env::{Disk, Fault, Random, SimulatedDisk};
use fabius_log::{DatabaseId, Durability, Flusher, Log, LogError, LogOptions, RecoveryReport, verify};

fn options(durability: Durability) -> LogOptions {
    LogOptions {
        durability,
        flusher: Flusher::Manual,
        segment_bytes: 4_000,
        ..LogOptions::new(DatabaseId([3; 16]))
    }
}

/// The payload that a batch must have: every test can check any batch it reads.
fn payload(first_seq: u64, entry_count: u32) -> Vec<u8> {
    let mut random = Random::seeded(first_seq * 31 + u64::from(entry_count));
    let mut bytes = vec![0; random.index(900)];
    random.fill(&mut bytes);
    bytes
}

/// Opens the log, checking that every batch is whole, right and in order.
fn open(
    disk: &SimulatedDisk,
    durability: Durability,
    first_seq: u64,
) -> Result<(Log, RecoveryReport), LogError> {
    let options = LogOptions { first_seq, ..options(durability) };
    let mut expected = None;
    let (log, report) = Log::open(Arc::new(disk.clone()), options, |batch| {
        if let Some(expected) = expected {
            assert_eq!(batch.first_seq, expected, "a gap");
        }
        assert_eq!(batch.payload, payload(batch.first_seq, batch.entry_count), "batch {}", batch.first_seq);
        expected = Some(batch.first_seq + u64::from(batch.entry_count));
        Ok::<(), LogError>(())
    })?;
    if let Some(expected) = expected {
        assert_eq!(report.next_seq, expected);
    }
    assert_eq!(log.next_seq(), report.next_seq);
    assert_eq!(log.durable_seq(), report.next_seq - 1);
    Ok((log, report))
}

/// What one schedule must remember across crashes.
struct Schedule {
    seed: u64,
    random: Random,
    durability: Durability,
    disk: SimulatedDisk,
    /// Entries up to here must survive.
    safe_seq: u64,
    /// Segments before this entry may have been discarded.
    discarded_before: u64,
}

impl Schedule {
    fn new(seed: u64, durability: Durability) -> Self {
        Self {
            seed,
            random: Random::seeded(seed),
            durability,
            disk: SimulatedDisk::new(seed),
            safe_seq: 0,
            discarded_before: 1,
        }
    }

    /// One life of the process: opening, working, and an end by power loss, death or closing.
    fn live(&mut self) {
        let found = verify(&self.disk).expect("readable");
        assert!(found.is_sound(), "seed {}: {:?}", self.seed, found.damage);
        let opened = open(&self.disk, self.durability, self.discarded_before);
        let (log, report) = opened.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        assert!(
            report.next_seq > self.safe_seq,
            "seed {}: entries up to {} were safe, but the log ends before {}",
            self.seed,
            self.safe_seq,
            report.next_seq
        );
        assert_eq!(report.torn_tail, found.torn_tail, "seed {}", self.seed);
        // Opening counts what it read as durable, also for a log without syncs.
        self.safe_seq = report.next_seq - 1;
        if self.random.chance(1, 2) {
            self.disk.fault(Fault::ShortWrites);
        }
        if self.random.chance(1, 2) {
            let operations = self.random.below(60);
            self.disk.fault(Fault::PowerLoss { operations });
        } else if self.random.chance(1, 6) {
            let syncs_before = self.random.below(10);
            self.disk.fault(Fault::FailSync { syncs_before });
        } else if self.random.chance(1, 6) {
            let bytes = self.random.below(10_000);
            self.disk.fault(Fault::Full { bytes });
        }
        let failed = self.work(&log).is_err();
        if self.durability == Durability::Fsync {
            self.safe_seq = self.safe_seq.max(log.durable_seq());
        }
        self.end(log, failed);
    }

    fn work(&mut self, log: &Log) -> Result<(), LogError> {
        for _ in 0..self.random.below(60) {
            match self.random.below(10) {
                0..=5 => {
                    let first_seq = log.next_seq();
                    let entry_count = 1 + self.random.below(4) as u32;
                    log.append(first_seq, entry_count, &payload(first_seq, entry_count))?;
                }
                6 | 7 => log.flush_now()?,
                8 if self.random.chance(1, 4) => {
                    log.sync()?;
                    self.safe_seq = self.safe_seq.max(log.next_seq() - 1);
                }
                9 if self.random.chance(1, 4) => {
                    // Before the deletion begins: it may be interrupted at any point.
                    self.discarded_before = self.safe_seq.max(1);
                    log.discard_before(self.discarded_before)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, log: Log, failed: bool) {
        let crash_seed = self.random.next_u64();
        if !failed && self.random.chance(1, 4) {
            let last_seq = log.next_seq() - 1;
            if log.close().is_ok() {
                self.safe_seq = last_seq;
            }
        } else if self.random.chance(1, 4) {
            // Only the process dies: what the system holds in memory is still there.
            let after = self.disk.clone();
            std::mem::forget(log);
            self.disk = after;
            self.disk.repair();
            self.disk.release_locks();
            return;
        }
        self.disk = self.disk.crash(crash_seed);
        // The old log goes on closing a disk that nobody looks at any more.
        drop(log);
    }
}

/// Goal: with syncs, every acknowledged entry survives any sequence of crashes and disk errors,
/// nothing is half there, and no crash is taken for damage.
#[test]
fn synced_log_keeps_what_it_acknowledged() {
    for seed in 0..3_000 {
        let mut schedule = Schedule::new(seed, Durability::Fsync);
        for _ in 0..6 {
            schedule.live();
        }
    }
}

/// Goal: without syncs, a crash may take acknowledged entries, but only off the end, and never
/// anything that was explicitly synced, cleanly closed, or read back when opening.
#[test]
fn unsynced_log_keeps_a_prefix() {
    for seed in 0..3_000 {
        let mut schedule = Schedule::new(seed, Durability::None);
        for _ in 0..6 {
            schedule.live();
        }
    }
}

/// Goal: a log may change its durability between lives.
#[test]
fn durability_may_change_between_lives() {
    for seed in 0..1_500 {
        let mut schedule = Schedule::new(seed, Durability::None);
        for _ in 0..6 {
            schedule.durability =
                if schedule.random.chance(1, 2) { Durability::Fsync } else { Durability::None };
            schedule.live();
        }
    }
}

/// Goal: a torn group of many frames is cut whatever parts of it reached the disk, and the report
/// says what went.
#[test]
fn a_torn_group_is_cut() {
    let mut torn = 0;
    for seed in 0..300 {
        let disk = SimulatedDisk::new(seed);
        let (log, _) = open(&disk, Durability::Fsync, 1).expect("new log");
        log.append(1, 1, &payload(1, 1)).expect("room");
        log.flush_now().expect("a good disk");
        for seq in 2..8 {
            log.append(seq, 1, &payload(seq, 1)).expect("room");
        }
        // The group is written, and the power goes before its sync.
        disk.fault(Fault::PowerLoss { operations: 1 });
        log.flush_now().expect_err("no power");
        assert_eq!(log.durable_seq(), 1);

        let found = disk.crash(seed);
        let (log, report) = open(&found, Durability::Fsync, 1).expect("a torn tail is no damage");
        if let Some(tail) = &report.torn_tail {
            torn += 1;
            assert_eq!(tail.segment, "000000000001.log");
            assert!(tail.bytes_cut > 0);
            assert_eq!(tail.last_good_seq + 1, report.next_seq);
            assert_eq!(tail.segments_removed, Vec::<String>::new());
        }
        log.append(report.next_seq, 1, &payload(report.next_seq, 1)).expect("room");
        log.close().expect("a good disk");
        assert!(verify(&found).expect("readable").is_sound());
    }
    assert!(torn > 100, "only {torn} of 300 crashes tore the group");
}

/// Goal: a process that ends because a sync failed, and is started again on the same machine, does
/// not take the system's memory for the disk: what it acknowledges then survives a power loss.
#[test]
fn a_failed_sync_is_not_trusted_by_the_next_life() {
    for seed in 0..300 {
        let disk = SimulatedDisk::new(seed);
        let (log, _) = open(&disk, Durability::Fsync, 1).expect("new log");
        log.append(1, 1, &payload(1, 1)).expect("room");
        log.flush_now().expect("a good disk");
        for seq in 2..6 {
            log.append(seq, 1, &payload(seq, 1)).expect("room");
        }
        disk.fault(Fault::FailSync { syncs_before: 0 });
        let error = log.flush_now().expect_err("the sync fails");
        // Fail-stop: everything after it fails alike, though the disk reports success again.
        for again in [log.flush_now(), log.append(6, 1, b""), log.wait_durable(2), log.close()] {
            assert_eq!(again.expect_err("failed").to_string(), error.to_string());
        }
        assert!(log.wait_durable(1).is_ok());
        drop(log);
        let (log, report) = open(&disk, Durability::Fsync, 1).expect("opens again");
        assert_eq!(report.next_seq, 6, "the system still shows everything");
        drop(disk.crash(0));
        let found = disk.crash(seed);
        drop(log);
        let (_, report) = open(&found, Durability::Fsync, 1).expect("no damage");
        assert_eq!(report.next_seq, 6, "seed {seed}: acknowledged by opening");
    }
}

/// Goal: after a cut, frames of the old tail that the disk shows again, at the very place where
/// they stood, are not taken for frames of the new one.
#[test]
fn frames_of_an_earlier_life_are_not_taken() {
    let disk = SimulatedDisk::new(0);
    let (log, _) = open(&disk, Durability::None, 1).expect("new log");
    let mut seq = 1;
    while !disk.list().expect("readable").contains(&name(2)) {
        log.append(seq, 1, &payload(seq, 1)).expect("room");
        log.flush_now().expect("a good disk");
        seq += 1;
    }
    let old_tail = disk.read(&name(2)).expect("readable")[64..].to_vec();
    // The last frame of segment 1 is torn, so segment 2 goes too, and another one is begun.
    let found = disk.crash(0);
    let whole = disk.copy();
    found
        .damage(&name(1), |bytes| {
            bytes.clone_from(&whole.read(&name(1)).expect("readable"));
            bytes.pop();
        })
        .expect("its name is synced");
    let (log, report) = open(&found, Durability::None, 1).expect("a torn tail");
    let tail = report.torn_tail.expect("a torn tail");
    assert_eq!(tail.segments_removed, [name(2)]);
    assert_eq!(report.next_seq, seq - 2);
    drop(log);
    for old in ["CLOSED", "LOCK"] {
        let _ = found.delete(old);
    }
    found.damage(&name(2), |bytes| bytes.extend_from_slice(&old_tail)).expect("begun anew");
    let seen = verify(&found).expect("readable");
    assert_eq!(seen.segments[1].header.generation, 1);
    assert_eq!(seen.next_seq, Some(seq - 2));
    assert_eq!(seen.torn_tail.expect("the old frames").why, "the frame header's checksum is wrong");
}

fn name(segment: u64) -> String {
    format!("{segment:012}.log")
}

/// Goal: the simulated disk's directory is the one the log names.
#[test]
fn errors_name_the_directory() {
    let disk = SimulatedDisk::new(0);
    let (_log, _) = open(&disk, Durability::Fsync, 1).expect("new log");
    let error = open(&disk, Durability::Fsync, 1).expect_err("in use");
    assert_eq!(
        error.to_string(),
        format!("directory {} is in use by another process", disk.directory().display())
    );
}
