//! A log that is cut and goes on is, after any crash, one that somebody has written in that order.

use std::sync::Arc;

use fabius_env::{Fault, Random, SimulatedDisk};
use fabius_log::{Batch, DatabaseId, Flusher, Log, LogError, LogErrorKind, LogOptions};

fn options() -> LogOptions {
    LogOptions { flusher: Flusher::Manual, segment_bytes: 1_500, ..LogOptions::new(DatabaseId([5; 16])) }
}

fn open(disk: &SimulatedDisk) -> Result<(Log, Vec<Batch>), LogError> {
    let mut batches = Vec::new();
    let (log, _) = Log::open(Arc::new(disk.clone()), options(), |frame| {
        batches.push(Batch {
            first_seq: frame.first_seq,
            entry_count: frame.entry_count,
            payload: frame.payload.to_vec(),
        });
        Ok::<(), LogError>(())
    })?;
    Ok((log, batches))
}

fn read(log: &Log, from: u64) -> Result<Vec<Batch>, LogError> {
    let mut reader = log.read_from(from)?;
    std::iter::from_fn(|| reader.next_batch().transpose()).collect()
}

/// What a log should hold, and how much of it is safe.
struct Written {
    batches: Vec<Batch>,
    durable: usize,
}

impl Written {
    fn next_seq(&self) -> u64 {
        self.batches.last().map_or(1, |last| last.last_seq() + 1)
    }

    /// Appends, flushes and cuts, until the disk fails if it does.
    fn go_on(&mut self, log: &Log, random: &mut Random) -> Result<(), LogError> {
        for _ in 0..random.below(40) {
            match random.below(10) {
                0..=5 => {
                    let mut payload = vec![0; random.index(300)];
                    random.fill(&mut payload);
                    let batch = Batch {
                        first_seq: self.next_seq(),
                        entry_count: 1 + random.below(3) as u32,
                        payload,
                    };
                    log.append(batch.first_seq, batch.entry_count, &batch.payload)?;
                    self.batches.push(batch);
                }
                6 | 7 => {
                    log.flush_now()?;
                    self.durable = self.batches.len();
                }
                8 => {
                    let kept = self.batches.len() - random.index(self.batches.len().min(12) + 1);
                    let last_seq = self.batches[..kept].last().map_or(0, Batch::last_seq);
                    // From here on both are right: what was there, and what is left.
                    let durable = self.durable.min(kept);
                    let before = std::mem::replace(&mut self.durable, durable);
                    log.truncate_after(last_seq)?;
                    self.batches.truncate(kept);
                    self.durable = if kept < before { kept } else { self.batches.len() };
                    assert_eq!((log.next_seq(), log.durable_seq()), (last_seq + 1, last_seq));
                }
                _ => {
                    log.flush_now()?;
                    self.durable = self.batches.len();
                    let from = 1 + random.below(self.next_seq());
                    let kept = self.batches.iter().skip_while(|batch| batch.last_seq() < from);
                    assert_eq!(read(log, from)?, kept.cloned().collect::<Vec<_>>(), "from {from}");
                }
            }
        }
        Ok(())
    }
}

/// Goal: with cuts among appends, syncs and power losses, a log holds what was written last, from its beginning on,
/// and at least what was durable; nothing of what was cut off comes back behind what was written since.
#[test]
fn what_was_cut_off_never_comes_back() {
    for seed in 0..3_000 {
        let mut random = Random::seeded(seed);
        let mut disk = SimulatedDisk::new(seed);
        let mut written = Written { batches: Vec::new(), durable: 0 };
        for life in 0..6 {
            let (log, batches) = open(&disk).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let (kept, all) = (batches.len(), written.batches.len());
            assert!(
                kept >= written.durable && kept <= all,
                "seed {seed}, life {life}: {kept} batches, of {all} with {} durable",
                written.durable
            );
            assert!(batches[..] == written.batches[..kept], "seed {seed}, life {life}: other batches");
            written = Written { durable: kept, batches };
            if random.chance(1, 2) {
                disk.fault(Fault::PowerLoss { operations: random.below(50) });
            }
            // An error is the power loss.
            let _ = written.go_on(&log, &mut random);
            let next = disk.crash(random.next_u64());
            drop(log);
            disk = next;
        }
    }
}

/// Goal: what was discarded is said to be so, by an error that does not end the log.
#[test]
fn reading_what_was_discarded_is_an_error() {
    let disk = SimulatedDisk::new(1);
    let (log, _) = open(&disk).expect("a new log");
    for seq in 1..=20 {
        log.append(seq, 1, &[7; 400]).expect("room");
        log.flush_now().expect("written");
    }
    assert!(log.discard_before(12).expect("discarded") > 0);
    let first = log.first_seq();
    assert!(first > 1 && first <= 12);
    assert_eq!(log.read_from(first - 1).expect_err("discarded").kind(), LogErrorKind::MissingEntries);
    assert_eq!(read(&log, first).expect("sound").len() as u64, 21 - first);
    assert!(log.failure().is_none());
}

/// Goal: damage met while reading is an error with its place, and does not end the log.
#[test]
fn damage_is_met_with_its_place() {
    let disk = SimulatedDisk::new(1);
    let (log, _) = open(&disk).expect("a new log");
    for seq in 1..=3 {
        log.append(seq, 1, &[7; 100]).expect("room");
        log.flush_now().expect("written");
    }
    disk.damage("000000000001.log", |bytes| bytes[64 + 132 + 50] ^= 1).expect("the segment is there");
    let mut reader = log.read_from(1).expect("a reader");
    assert_eq!(reader.next_batch().expect("sound").map(|batch| batch.first_seq), Some(1));
    let error = reader.next_batch().expect_err("damaged");
    assert_eq!(
        (error.kind(), error.offset(), error.last_good_seq()),
        (LogErrorKind::Damaged, Some(196), Some(1))
    );
    assert!(log.failure().is_none());
}
