//! Checkpoint files: every change of one is noticed, and a disk that fails leaves none that is half there.

use fabius_env::{Disk, Fault, Random, SimulatedDisk};
use fabius_storage::checkpoint::{
    self, BlockKind, CheckpointReader, CheckpointWriter, Counts, Found, Header, inspect, list,
};
use fabius_value::{Error, Result, Seq, SqlState, TableId};

const ID: [u8; 16] = *b"sixteen letters!";

fn header(seq: u64) -> Header {
    Header { database_id: ID, seq: Seq(seq), begun_us: 7 }
}

/// A small checkpoint, with rows of `row_bytes` each.
fn write(disk: &dyn Disk, seq: u64, row_bytes: usize) -> Result<(Counts, u64)> {
    let mut writer = CheckpointWriter::create(disk, header(seq))?;
    writer.add(BlockKind::Definitions, |to| to.extend_from_slice(b"a table"))?;
    for key in 0..3 {
        writer.add(BlockKind::Keys, |to| to.push(key))?;
    }
    for row in 0..10u8 {
        writer.add(BlockKind::Rows(TableId(0)), |to| to.extend(vec![row; row_bytes]))?;
    }
    writer.add(BlockKind::Rows(TableId(2)), |to| to.push(1))?;
    writer.finish(|| Ok(()))
}

fn found(seq: u64) -> Found {
    Found { name: checkpoint::file_name(Seq(seq)), seq: Seq(seq) }
}

fn damage_of(disk: &SimulatedDisk, seq: u64) -> Option<Error> {
    match inspect(disk, &found(seq), None) {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.state(), SqlState::DATA_CORRUPTED, "{error}");
            let detail = error.detail().unwrap_or_default();
            assert!(detail.contains(&found(seq).name) && detail.contains("offset"), "{error}");
            Some(error)
        }
    }
}

/// Goal: numbers that no log comes to are refused where they are read, not where somebody counts on from them.
#[test]
fn a_seq_beyond_any_log_is_refused() {
    for (seq, is_sound) in [(1 << 40, true), ((1 << 53) - (1 << 32), false), (u64::MAX, false)] {
        let disk = SimulatedDisk::new(1);
        write(&disk, seq, 10).unwrap();
        assert_eq!(damage_of(&disk, seq).is_none(), is_sound, "{seq}");
    }
}

#[test]
fn a_checkpoint_reads_back() {
    let disk = SimulatedDisk::new(1);
    // Rows so long that there are several blocks of them.
    let (counts, bytes) = write(&disk, 12, 100_000).unwrap();
    let inspection = inspect(&disk, &found(12), None).unwrap();
    assert_eq!((inspection.header, inspection.counts, inspection.bytes), (header(12), counts, bytes));
    assert_eq!((counts.definitions, counts.keys, counts.rows), (1, 3, 11));
    let mut reader = CheckpointReader::open(&disk, &found(12), Some(ID)).unwrap();
    let mut rows = Vec::new();
    let mut kinds = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        kinds.push(block.kind);
        if block.kind == BlockKind::Rows(TableId(0)) {
            rows.extend(block.payload.chunks(100_000).map(|row| row[0]));
        }
    }
    assert_eq!(rows, (0..10).collect::<Vec<u8>>());
    kinds.dedup();
    let expected =
        [BlockKind::Definitions, BlockKind::Keys, BlockKind::Rows(TableId(0)), BlockKind::Rows(TableId(2))];
    assert_eq!(kinds, expected);
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let disk = SimulatedDisk::new(1);
    write(&disk, 5, 3).unwrap();
    let name = found(5).name;
    let bytes = disk.read(&name).unwrap();
    for bit in 0..bytes.len() * 8 {
        disk.damage(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).unwrap();
        assert!(damage_of(&disk, 5).is_some(), "bit {bit}");
        disk.damage(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8)).unwrap();
    }
    for len in 0..bytes.len() {
        disk.damage(&name, |content| *content = bytes[..len].to_vec()).unwrap();
        assert!(damage_of(&disk, 5).is_some(), "length {len}");
    }
    disk.damage(&name, |content| *content = [&bytes[..], &[0]].concat()).unwrap();
    assert!(damage_of(&disk, 5).is_some_and(|error| error.to_string().contains("after the end")));
    disk.damage(&name, |content| content.clone_from(&bytes)).unwrap();
    assert!(damage_of(&disk, 5).is_none());
}

#[test]
fn blocks_and_files_do_not_change_places() {
    let disk = SimulatedDisk::new(1);
    write(&disk, 5, 3).unwrap();
    let sound = disk.read(&found(5).name).unwrap();
    // The second block again where the third one was: as long, and sound where it came from.
    let (keys, key_block) = (64 + 24 + 7, 24 + 3);
    let mut moved = sound.clone();
    moved.copy_within(keys..keys + key_block, keys + key_block);
    disk.damage(&found(5).name, |content| content.clone_from(&moved)).unwrap();
    assert!(damage_of(&disk, 5).is_some());
    disk.damage(&found(5).name, |content| content.clone_from(&sound)).unwrap();
    disk.rename(&found(5).name, &found(6).name).unwrap();
    assert!(damage_of(&disk, 6).is_some_and(|error| error.to_string().contains("checkpoint at 5")));
}

/// Makes a sound checkpoint at 5 one of another version, with all checksums.
fn set_version(disk: &SimulatedDisk, version: u32) {
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let change = |bytes: &mut Vec<u8>| {
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let seed = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&seed.to_le_bytes());
        let mut at = 64;
        while at < bytes.len() {
            let place = crc32c::crc32c_append(seed, &(at as u64).to_le_bytes());
            let checksum = crc32c::crc32c_append(place, &bytes[at..at + 20]);
            bytes[at + 20..at + 24].copy_from_slice(&checksum.to_le_bytes());
            at += 24 + number(bytes, at) as usize;
        }
    };
    disk.damage(&found(5).name, change).unwrap();
}

#[test]
fn an_older_version_is_read() {
    let disk = SimulatedDisk::new(1);
    let (counts, _) = write(&disk, 5, 3).unwrap();
    set_version(&disk, 1);
    assert_eq!(inspect(&disk, &found(5), None).unwrap().counts, counts);
}

#[test]
fn files_of_others_are_refused_by_name() {
    let disk = SimulatedDisk::new(1);
    write(&disk, 5, 3).unwrap();
    let other = CheckpointReader::open(&disk, &found(5), Some([0; 16])).map(|_| ()).unwrap_err();
    assert_eq!(other.state().as_str(), "55000");
    set_version(&disk, 3);
    let newer = CheckpointReader::open(&disk, &found(5), Some(ID)).map(|_| ()).unwrap_err();
    assert_eq!(newer.state(), SqlState::NOT_SUPPORTED);
    assert_eq!(newer.message(), "checkpoint format 3 is newer than this program's, 2");
    assert!(newer.hint().is_some());
}

/// Goal: whatever happens while one is written, those that have a checkpoint's name are whole.
#[test]
fn a_failing_disk_leaves_no_half_checkpoint() {
    for seed in 0..200 {
        let mut random = Random::seeded(seed);
        let disk = SimulatedDisk::new(seed);
        disk.sync().unwrap();
        write(&disk, 1, 50).unwrap();
        match random.below(4) {
            0 => disk.fault(Fault::ShortWrites),
            1 => disk.fault(Fault::FailSync { syncs_before: random.below(3) }),
            2 => disk.fault(Fault::Full { bytes: random.below(2000) }),
            _ => disk.fault(Fault::PowerLoss { operations: random.below(12) }),
        }
        let second = write(&disk, 2, 50);
        let crashed = disk.crash(seed);
        let there = list(&crashed).unwrap();
        assert!(there.iter().all(|found| inspect(&crashed, found, None).is_ok()), "seed {seed}");
        assert_eq!(there.last(), Some(&found(1)), "seed {seed}: the one before is there");
        if second.is_ok() {
            assert_eq!(there.len(), 2, "seed {seed}: what was finished is there");
        }
        checkpoint::delete_unfinished(&crashed).unwrap();
        assert_eq!(crashed.list().unwrap().len(), there.len(), "seed {seed}");
    }
}

#[test]
fn a_checkpoint_that_may_not_count_is_none() {
    let disk = SimulatedDisk::new(1);
    let mut writer = CheckpointWriter::create(&disk, header(3)).unwrap();
    writer.add(BlockKind::Keys, |to| to.push(1)).unwrap();
    let refusal = Error::new(SqlState::IO_ERROR, "the log has failed");
    assert_eq!(writer.finish(|| Err(refusal.clone())), Err(refusal));
    assert!(disk.list().unwrap().is_empty());
}
