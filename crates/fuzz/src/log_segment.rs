//! The files of a log, with checksums made right so that what they guard is reached too.
//!
//! ```text
//! byte            bits: 1 checksums are left as they are, 2 the second part is the closing mark
//! u32             length of the first part
//! parts           the first segment; the second segment, or the closing mark
//! ```

use crate::input::Input;
use fabius_env::{Disk, SimulatedDisk};
use fabius_log::{DatabaseId, Durability, Flusher, Log, LogError, LogItem, LogOptions, dump, verify};
use std::sync::Arc;

const DATABASE: DatabaseId = DatabaseId(*b"fuzzing the log.");
const FIRST: &str = "000000000001.log";
const SECOND: &str = "000000000002.log";
const CLOSED: &str = "CLOSED";
const HEADER_BYTES: usize = 64;
const FRAME_HEADER_BYTES: usize = 32;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (bits, length) = (input.byte(), input.u32());
    let first = input.take(length as usize).to_vec();
    let second = input.rest().to_vec();
    let disk = SimulatedDisk::new(1);
    let make = |segment: Vec<u8>, number: u64| {
        if bits & 1 == 0 { with_checksums(segment, number) } else { segment }
    };
    put(&disk, FIRST, &make(first, 1));
    match (second.is_empty(), bits & 2 == 0) {
        (true, _) => {}
        (false, true) => put(&disk, SECOND, &make(second, 2)),
        (false, false) => put(&disk, CLOSED, &with_mark_checksum(second)),
    }
    check(&disk);
}

/// Verifying says whether the log can be opened, and an opened log reads back as it was shown.
fn check(disk: &SimulatedDisk) {
    let inspection = verify(disk).expect("the disk is good");
    let mut shown = Vec::new();
    dump(disk, |item| {
        if let LogItem::Frame(frame) = item {
            shown.push((frame.first_seq, frame.entry_count, frame.payload.to_vec()));
        }
        Ok::<(), LogError>(())
    })
    .expect("the disk is good");
    let opened = open(disk);
    if let Some(damage) = inspection.damage {
        assert!(!damage.to_string().is_empty() && damage.segment().is_some(), "{damage}");
        opened.expect_err("damage");
        return;
    }
    let Ok((log, read)) = opened else { return };
    assert_eq!(read, shown);
    log.append(log.next_seq(), 1, b"one more").expect("room");
    log.close().expect("the disk is good");
    drop(log);
    let (_, again) = open(disk).expect("a log that was closed");
    assert_eq!(again.len(), read.len() + 1);
    assert_eq!(again[..read.len()], read);
}

type Batches = Vec<(u64, u32, Vec<u8>)>;

fn open(disk: &SimulatedDisk) -> Result<(Log, Batches), LogError> {
    let options = LogOptions { flusher: Flusher::Manual, ..LogOptions::new(DATABASE) };
    let mut read = Vec::new();
    let (log, _) = Log::open(Arc::new(disk.clone()), options, |frame| {
        read.push((frame.first_seq, frame.entry_count, frame.payload.to_vec()));
        Ok::<(), LogError>(())
    })?;
    Ok((log, read))
}

fn put(disk: &SimulatedDisk, name: &str, bytes: &[u8]) {
    let mut file = disk.create(name).expect("a new file");
    file.append_all(bytes).expect("room");
    file.sync().expect("a good disk");
    disk.sync().expect("a good disk");
}

/// The segment with the checksums of its header and of every whole frame as they should be, and the
/// magic, version and number that nothing gets past.
fn with_checksums(mut segment: Vec<u8>, number: u64) -> Vec<u8> {
    if segment.len() < HEADER_BYTES {
        return segment;
    }
    segment[..8].copy_from_slice(b"FABIUSLG");
    segment[8..12].copy_from_slice(&1u32.to_le_bytes());
    segment[12] &= 1;
    segment[13..16].fill(0);
    segment[16..32].copy_from_slice(&DATABASE.0);
    segment[32..40].copy_from_slice(&number.to_le_bytes());
    let seed = crc32c::crc32c(&segment[..60]);
    segment[60..64].copy_from_slice(&seed.to_le_bytes());
    let mut offset = HEADER_BYTES;
    while let Some(frame) = segment.get_mut(offset..).filter(|rest| rest.len() >= FRAME_HEADER_BYTES) {
        let length = u32::from_le_bytes(frame[..4].try_into().expect("four bytes")) as usize;
        if let Some(payload) = frame[FRAME_HEADER_BYTES..].get(..length) {
            let checksum = crc32c::crc32c(payload);
            frame[24..28].copy_from_slice(&checksum.to_le_bytes());
        }
        let placed = crc32c::crc32c_append(seed, &(offset as u64).to_le_bytes());
        let checksum = crc32c::crc32c_append(placed, &frame[..28]);
        frame[28..32].copy_from_slice(&checksum.to_le_bytes());
        offset = offset.saturating_add(FRAME_HEADER_BYTES).saturating_add(length);
    }
    segment
}

fn with_mark_checksum(mut mark: Vec<u8>) -> Vec<u8> {
    if mark.len() >= 68 {
        let checksum = crc32c::crc32c(&mark[..64]);
        mark[64..68].copy_from_slice(&checksum.to_le_bytes());
    }
    mark
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for durability in [Durability::Fsync, Durability::None] {
        for closed in [false, true] {
            let disk = SimulatedDisk::new(2);
            let options = LogOptions {
                durability,
                flusher: Flusher::Manual,
                segment_bytes: 300,
                ..LogOptions::new(DATABASE)
            };
            let opened = Log::open(Arc::new(disk.clone()), options, |_| Ok::<(), LogError>(()));
            let (log, _) = opened.expect("a new log");
            for batch in 0..6 {
                log.append(log.next_seq(), batch % 3 + 1, &[batch as u8; 20]).expect("room");
                log.flush_now().expect("a good disk");
            }
            if closed {
                log.close().expect("a good disk");
            }
            let read = |name| disk.read(name).unwrap_or_default();
            let first = read(FIRST);
            for (bits, second) in [(0, read(SECOND)), (1, read(SECOND)), (2, read(CLOSED)), (0, Vec::new())] {
                let length = (first.len() as u32).to_le_bytes();
                seeds.push([&[bits], &length[..], &first, &second].concat());
            }
        }
    }
    seeds
}
