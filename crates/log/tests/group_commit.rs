//! How groups form, who waits for them, and how a log behaves when its disk does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use fabius_env::{Disk, Fault, RealDisk, SimulatedDisk};
use fabius_log::{
    DatabaseId, Durability, Flusher, Log, LogError, LogErrorKind, LogItem, LogOptions, dump, verify,
};

fn options(flusher: Flusher) -> LogOptions {
    LogOptions { flusher, ..LogOptions::new(DatabaseId([1; 16])) }
}

fn open(disk: &SimulatedDisk, options: LogOptions) -> Result<Log, LogError> {
    let (log, _) = Log::open(Arc::new(disk.clone()), options, |_| Ok::<(), LogError>(()))?;
    Ok(log)
}

/// Goal: however many batches have gathered, a group is one sync; an idle flush leaves one mark.
#[test]
fn a_group_is_one_sync() {
    let disk = SimulatedDisk::new(0);
    let log = open(&disk, options(Flusher::Manual)).expect("new log");
    let before = disk.sync_count();
    for seq in 1..=1_000 {
        log.append(seq, 1, b"x").expect("room");
    }
    assert_eq!(log.durable_seq(), 0);
    log.flush_now().expect("a good disk");
    assert_eq!((log.durable_seq(), disk.sync_count() - before), (1_000, 1));
    log.flush_now().expect("the mark");
    log.flush_now().expect("nothing to do");
    let mut marks = Vec::new();
    dump(&disk, |item| {
        if let LogItem::Mark { synced_seq, .. } = item {
            marks.push(synced_seq);
        }
        Ok::<(), LogError>(())
    })
    .expect("readable");
    assert_eq!(marks, [1_000]);
    assert_eq!(disk.sync_count() - before, 1);
}

/// Goal: many threads append under one lock and wait; each is woken, everything is in order, and
/// the listener sees the watermark rise to the end.
#[test]
fn many_waiting_callers() {
    const THREADS: u64 = 16;
    const CALLS: u64 = 200;
    for durability in [Durability::Fsync, Durability::None] {
        let disk = SimulatedDisk::new(0);
        let options = LogOptions { durability, segment_bytes: 10_000, ..options(Flusher::Thread) };
        let log = open(&disk, options.clone()).expect("new log");
        let heard = Arc::new(AtomicU64::new(0));
        let listener = Arc::clone(&heard);
        log.on_durable(move |durable| {
            let durable = durable.expect("no failure");
            assert!(listener.swap(durable, Ordering::SeqCst) < durable);
        });
        let lane = Mutex::new(());
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..CALLS {
                        let seq = {
                            let _lane = lane.lock().expect("no panic");
                            let seq = log.next_seq();
                            log.append(seq, 1, &seq.to_le_bytes()).expect("room");
                            seq
                        };
                        log.wait_durable(seq).expect("a good disk");
                        assert!(log.durable_seq() >= seq);
                    }
                });
            }
        });
        log.close().expect("a good disk");
        assert_eq!(heard.load(Ordering::SeqCst), THREADS * CALLS);
        let mut seqs = Vec::new();
        let (_log, report) = Log::open(Arc::new(disk), options, |batch| {
            assert_eq!(batch.payload, batch.first_seq.to_le_bytes());
            seqs.push(batch.first_seq);
            Ok::<(), LogError>(())
        })
        .expect("a good log");
        assert!(seqs.into_iter().eq(1..=THREADS * CALLS));
        assert!(report.closed_cleanly && report.segments > 1);
    }
}

/// Goal: threads that append by place, in any order and with buffers that are full after a few batches, do not wait for
/// each other; each is told when everything up to its own entries is durable, and the log is in order.
#[test]
fn threads_append_by_place() {
    const THREADS: u64 = 16;
    const CALLS: u64 = 300;
    for durability in [Durability::Fsync, Durability::None] {
        let disk = SimulatedDisk::new(0);
        let options =
            LogOptions { durability, segment_bytes: 10_000, buffer_bytes: 200, ..options(Flusher::Thread) };
        let log = open(&disk, options.clone()).expect("new log");
        let next = AtomicU64::new(1);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (log, next) = (&log, &next);
                scope.spawn(move || {
                    for call in 0..CALLS {
                        let count = 1 + u32::from(call % 7 == 0);
                        log.make_room(8).expect("room");
                        let seq = next.fetch_add(count.into(), Ordering::SeqCst);
                        if (call + thread).is_multiple_of(5) {
                            thread::yield_now();
                        }
                        log.append_at(seq, count, &seq.to_le_bytes()).expect("room was made");
                        if call % 3 == 0 {
                            log.wait_durable(seq).expect("a good disk");
                            assert!(log.durable_seq() >= seq);
                        }
                    }
                });
            }
        });
        log.close().expect("a good disk");
        let mut read = 0;
        let (log, _) = Log::open(Arc::new(disk), options, |batch| {
            assert_eq!(batch.payload, batch.first_seq.to_le_bytes());
            read += 1;
            Ok::<(), LogError>(())
        })
        .expect("a good log");
        assert_eq!((read, log.durable_seq()), (THREADS * CALLS, next.into_inner() - 1));
    }
}

/// Goal: a flusher that is woken for what somebody else flushes goes on, whatever the moment.
#[test]
fn a_flusher_outlives_the_flushes_of_others() {
    for durability in [Durability::Fsync, Durability::None] {
        let disk = SimulatedDisk::new(0);
        let log = open(&disk, LogOptions { durability, ..options(Flusher::Thread) }).expect("new log");
        let is_over = AtomicU64::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while is_over.load(Ordering::SeqCst) == 0 {
                    log.flush_now().expect("a good disk");
                }
            });
            for seq in 1..=20_000 {
                log.append_at(seq, 1, b"x").expect("open");
            }
            is_over.store(1, Ordering::SeqCst);
        });
        log.append_at(20_001, 1, b"x").expect("open");
        log.wait_durable(20_001).expect("the flusher is there");
    }
}

/// Goal: nothing behind a gap becomes durable, and a close does not write it.
#[test]
fn a_gap_holds_back_what_is_behind_it() {
    let disk = SimulatedDisk::new(0);
    let log = open(&disk, options(Flusher::Manual)).expect("new log");
    for seq in [1, 3, 2, 5] {
        log.append_at(seq, 1, b"x").expect("open");
        log.flush_now().expect("a good disk");
    }
    assert_eq!(log.durable_seq(), 3);
    log.close().expect("a good disk");
    log.append_at(4, 1, b"x").expect_err("closed");
    drop(log);
    let log = open(&disk, options(Flusher::Manual)).expect("a good log");
    assert_eq!(log.durable_seq(), 3);
}

/// Goal: with the flusher thread at work, a power loss at any moment leaves what had been
/// acknowledged before it.
#[test]
fn power_loss_under_a_flusher_thread() {
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let options = LogOptions {
            segment_bytes: 3_000,
            idle_mark: Duration::from_micros(50),
            ..options(Flusher::Thread)
        };
        let log = open(&disk, options.clone()).expect("new log");
        let mut crashes = Vec::new();
        for seq in 1..=200 {
            log.append(seq, 1, &[seq as u8; 40]).expect("room");
            if seq % 20 == seed % 20 {
                let acknowledged = log.durable_seq();
                crashes.push((acknowledged, disk.crash(seed + seq)));
            }
            if seq % 50 == 0 {
                log.wait_durable(seq).expect("a good disk");
            }
        }
        for (acknowledged, found) in crashes {
            let log = open(&found, options.clone()).expect("no damage");
            assert!(log.durable_seq() >= acknowledged, "seed {seed}");
        }
    }
}

/// Goal: a full buffer holds appenders back until there is room; without a thread it is flushed.
#[test]
fn a_full_buffer_blocks_until_there_is_room() {
    for flusher in [Flusher::Thread, Flusher::Manual] {
        let disk = SimulatedDisk::new(0);
        let options = LogOptions { buffer_bytes: 1_000, ..options(flusher) };
        let log = open(&disk, options).expect("new log");
        for seq in 1..=500 {
            log.append(seq, 1, &[0; 300]).expect("room");
        }
        log.wait_durable(500).expect("a good disk");
        log.append(501, 1, &[0; 3_000]).expect("longer than the buffer, and alone");
        log.append(502, 1, &[0; 300]).expect("room");
        log.wait_durable(502).expect("a good disk");
        let error = log.append(503, 1, &vec![0; (1 << 30) + 1]).expect_err("too large");
        assert_eq!(error.kind(), LogErrorKind::TooLarge);
        assert_eq!(error.to_string(), "a batch of 1073741825 bytes is over the limit of 1073741824");
    }
}

/// Goal: a disk error reaches everyone: waiters, appenders held back by a full buffer, the
/// listener; and what was durable before stays so.
#[test]
fn a_full_disk_ends_the_log() {
    let disk = SimulatedDisk::new(0);
    let options = LogOptions { buffer_bytes: 2_000, ..options(Flusher::Thread) };
    let log = open(&disk, options.clone()).expect("new log");
    let (told, hears) = mpsc::channel();
    log.on_durable(move |durable| {
        if let Err(error) = durable {
            told.send(error.to_string()).expect("the test listens");
        }
    });
    log.append(1, 1, &[0; 100]).expect("room");
    log.wait_durable(1).expect("a good disk");
    disk.fault(Fault::Full { bytes: 5_000 });
    let ready = Barrier::new(2);
    let error = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            ready.wait();
            log.wait_durable(1_000_000).expect_err("the disk fills up first")
        });
        ready.wait();
        let mut seq = 2;
        let appended = loop {
            match log.append(seq, 1, &[0; 500]) {
                Ok(()) => seq += 1,
                Err(error) => break error,
            }
        };
        let waited = waiter.join().expect("no panic");
        assert_eq!(waited.to_string(), appended.to_string());
        appended
    });
    assert_eq!(error.kind(), LogErrorKind::DiskFull);
    assert_eq!(error.sqlstate(), "53100");
    assert!(
        error
            .to_string()
            .starts_with("disk full while writing the log in /simulated (000000000001.log, offset ")
    );
    assert!(error.hint().expect("a hint").starts_with("free some space"));
    assert_eq!(hears.recv().expect("told"), error.to_string());
    let durable = log.durable_seq();
    log.wait_durable(durable).expect("durable stays durable");
    log.close().expect_err("failed");
    drop(log);

    disk.repair();
    let log = open(&disk, options).expect("a torn tail at most");
    assert!(log.durable_seq() >= durable);
}

/// Goal: closing writes everything, is idempotent, and ends appending and vain waiting.
#[test]
fn closing() {
    let disk = SimulatedDisk::new(0);
    let log = open(&disk, options(Flusher::Thread)).expect("new log");
    log.append(1, 1, b"last words").expect("room");
    thread::scope(|scope| {
        let vain = scope.spawn(|| log.wait_durable(2));
        log.close().expect("a good disk");
        let error = vain.join().expect("no panic").expect_err("never appended");
        assert_eq!(error.kind(), LogErrorKind::Closed);
    });
    log.close().expect("nothing to do");
    assert_eq!(log.durable_seq(), 1);
    assert!(log.failure().is_none());
    let error = log.append(2, 1, b"").expect_err("closed");
    assert_eq!(error.to_string(), "the log is closed");
    // The directory is free though `log` still lives.
    let log = open(&disk, options(Flusher::Manual)).expect("free");
    // Opening and closing without a change keeps the closing mark.
    log.close().expect("a good disk");
    assert!(verify(&disk).expect("readable").closed_cleanly);
}

/// Goal: old segments are discarded whole, and only those that hold nothing needed.
#[test]
fn discarding_old_segments() {
    let disk = SimulatedDisk::new(0);
    let options = LogOptions { segment_bytes: 64 + 2 * (32 + 10), ..options(Flusher::Manual) };
    let log = open(&disk, options.clone()).expect("new log");
    for seq in 1..=9 {
        log.append(seq, 1, &[0; 10]).expect("room");
    }
    log.flush_now().expect("a good disk");
    assert_eq!(log.discard_before(2).expect("a good disk"), 0);
    assert_eq!(log.discard_before(4).expect("a good disk"), 1);
    assert_eq!(log.discard_before(100).expect("a good disk"), 3);
    log.close().expect("a good disk");
    drop(log);
    assert_eq!(disk.list().expect("readable"), ["000000000005.log", "CLOSED"]);

    let error = open(&disk, options.clone()).expect_err("1 is gone");
    assert_eq!(error.kind(), LogErrorKind::MissingEntries);
    assert_eq!(error.fact(), "the log begins with sequence number 9, but 1 is needed");
    let later = |first_seq| LogOptions { first_seq, ..options.clone() };
    let error = open(&disk, later(11)).expect_err("10 is not there yet");
    assert_eq!(error.fact(), "the log ends before sequence number 10, but 11 is to come next");
    assert_eq!(open(&disk, later(10)).expect("enough").next_seq(), 10);
    // What is left of a first segment that was never begun may go; not where entries have been.
    disk.damage("000000000005.log", |bytes| bytes.clear()).expect("it is there");
    disk.delete("CLOSED").expect("it is there");
    let error = open(&disk, later(10)).expect_err("it had entries");
    assert_eq!(error.kind(), LogErrorKind::MissingEntries);
    assert_eq!(error.fact(), "nothing of the log can be read, but 10 is to come next");
    assert_eq!(open(&disk, later(1)).expect("as new").next_seq(), 1);
}

/// Goal: segments that hold nothing needed are not read, whatever is in them, and can be discarded.
#[test]
fn needless_segments_are_left_out() {
    let disk = SimulatedDisk::new(0);
    let options = LogOptions { segment_bytes: 64 + 2 * (32 + 10), ..options(Flusher::Manual) };
    let log = open(&disk, options.clone()).expect("new log");
    for seq in 1..=9 {
        log.append(seq, 1, &[0; 10]).expect("room");
    }
    log.close().expect("a good disk");
    drop(log);
    disk.damage("000000000002.log", |bytes| bytes[100] ^= 1).expect("it is there");
    assert_eq!(open(&disk, options.clone()).expect_err("damage").kind(), LogErrorKind::Damaged);

    let mut seen = Vec::new();
    let needed = LogOptions { first_seq: 6, ..options };
    let (log, report) = Log::open(Arc::new(disk.clone()), needed, |batch| {
        seen.push(batch.first_seq);
        Ok::<(), LogError>(())
    })
    .expect("the damage is where nothing is needed");
    assert_eq!(seen, [5, 6, 7, 8, 9]);
    assert_eq!((report.first_seq, report.segments, report.batches), (1, 5, 5));
    assert_eq!(log.discard_before(6).expect("a good disk"), 2);
    log.append(10, 1, &[0; 10]).expect("room");
    log.close().expect("a good disk");
    assert!(verify(&disk).expect("readable").is_sound());
}

/// Goal: a visitor's error ends opening, and leaves the directory free.
#[test]
fn a_visitors_error_is_returned() {
    #[derive(Debug, PartialEq)]
    enum Replay {
        Log(String),
        Undecodable(u64),
    }
    impl From<LogError> for Replay {
        fn from(error: LogError) -> Self {
            Self::Log(error.to_string())
        }
    }
    let disk = SimulatedDisk::new(0);
    let log = open(&disk, options(Flusher::Manual)).expect("new log");
    log.append(1, 3, b"").expect("room");
    log.close().expect("a good disk");
    for _ in 0..2 {
        let disk = Arc::new(disk.clone());
        let error =
            Log::open(disk, options(Flusher::Manual), |batch| Err(Replay::Undecodable(batch.last_seq())))
                .expect_err("the visitor's");
        assert_eq!(error, Replay::Undecodable(3));
    }
}

/// Goal: a read-only disk can be verified and dumped, and opening it says what is wrong.
#[test]
fn a_read_only_disk() {
    let disk = SimulatedDisk::new(0);
    let log = open(&disk, options(Flusher::Manual)).expect("new log");
    log.append(1, 1, b"x").expect("room");
    log.close().expect("a good disk");
    drop(log);
    disk.fault(Fault::ReadOnly);
    let error = open(&disk, options(Flusher::Manual)).expect_err("read-only");
    assert_eq!(error.kind(), LogErrorKind::ReadOnly);
    assert_eq!(error.to_string(), "not permitted: locking the log in /simulated");
    assert!(error.hint().expect("a hint").contains("fabius log verify"));
    let found = verify(&disk).expect("readable");
    assert!(found.is_sound());
    assert_eq!(found.next_seq, Some(2));
}

/// Goal: all of it once on the machine's own file system.
#[test]
fn on_a_real_disk() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("data/log");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&path).expect("a new directory"));
    let options = LogOptions { segment_bytes: 100_000, ..options(Flusher::Thread) };
    let ignore = |_: fabius_log::Frame<'_>| Ok::<(), LogError>(());
    let (log, _) = Log::open(Arc::clone(&disk), options.clone(), ignore).expect("new log");
    let error = Log::open(Arc::clone(&disk), options.clone(), ignore).expect_err("in use");
    assert_eq!(error.kind(), LogErrorKind::InUse);
    assert!(error.retry_helps());
    assert_eq!(error.to_string(), format!("directory {} is in use by another process", path.display()));
    for seq in 0..500 {
        log.append(seq * 3 + 1, 3, &[seq as u8; 1_000]).expect("room");
    }
    log.wait_durable(1_500).expect("a good disk");
    log.close().expect("a good disk");
    drop(log);

    let found = verify(&*disk).expect("readable");
    assert!(found.is_sound() && found.closed_cleanly);
    let batches: u64 = found.segments.iter().map(|segment| segment.batches).sum();
    assert_eq!((batches, found.next_seq), (500, Some(1_501)));
    assert_eq!(found.segments.len(), 6);

    let mut read = 0;
    let (log, report) = Log::open(disk, options, |batch| {
        assert_eq!(batch.payload, [read as u8; 1_000]);
        read += 1;
        Ok::<(), LogError>(())
    })
    .expect("a good log");
    assert_eq!((read, report.entries, log.next_seq()), (500, 1_500, 1_501));
    log.append(1_501, 1, b"more").expect("room");
    log.wait_durable(1_501).expect("a good disk");
}
