//! The file of a checkpoint, with checksums made right so that what they guard is reached too.
//!
//! ```text
//! byte            bits: 1 checksums are left as they are, 2 the end block's counts are too
//! rest            the file
//! ```

use crate::input::Input;
use fabius::{Database, Options};
use fabius_engine::checkpoint::{read, read_definitions};
use fabius_env::{Disk, SimulatedDisk};
use fabius_log::DatabaseId;
use fabius_storage::checkpoint::{Found, file_name, inspect, list};
use fabius_value::{Decimal, Error, Seq, SqlState, Value};

const DATABASE: DatabaseId = DatabaseId(*b"fuzz checkpoints");
const SEQ: u64 = 77;
const HEADER_BYTES: usize = 64;
const BLOCK_HEADER_BYTES: usize = 24;
/// The number of an end block's kind, and the bytes of its counts.
const END: u32 = 4;
const COUNTS_BYTES: usize = 32;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let bits = input.byte();
    let mut file = input.rest().to_vec();
    if bits & 1 == 0 {
        with_checksums(&mut file, bits & 2 == 0);
    }
    let disk = SimulatedDisk::new(1);
    let name = file_name(Seq(SEQ));
    let mut to = disk.create(&name).expect("a new file");
    to.append_all(&file).expect("room");
    to.sync().expect("a good disk");
    disk.sync().expect("a good disk");
    let found = list(&disk).expect("a good disk").pop().expect("a file with a checkpoint's name");
    assert_eq!(found.name, name);
    check(&disk, &found);
}

/// What an inspection finds damaged is not loaded; what is loaded was found whole.
fn check(disk: &SimulatedDisk, found: &Found) {
    let inspected = inspect(disk, found, None).map_err(|error| refused(&error, found));
    if let Err(error) = read_definitions(disk, found) {
        refused(&error, found);
    }
    match read(disk, found, DATABASE, 1) {
        Ok(state) => {
            let inspection = inspected.expect("what is loaded is whole");
            assert_eq!(inspection.header.database_id, DATABASE.0);
            assert_eq!((state.seq, inspection.header.seq), (Seq(SEQ), Seq(SEQ)));
            assert_eq!(state.definitions.entries.len() as u64, inspection.counts.definitions);
        }
        Err(error) => refused(&error, found),
    }
}

/// A refusal names the file, and for damage the place in it.
fn refused(error: &Error, found: &Found) {
    let told = error.detail().unwrap_or_default();
    assert!(told.contains(&found.name), "{error:?}");
    match error.state() {
        SqlState::DATA_CORRUPTED => assert!(told.contains("offset"), "{error:?}"),
        // Of a later version, or of another database.
        state => assert!([SqlState::NOT_SUPPORTED, SqlState(*b"55000")].contains(&state), "{error:?}"),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The header as it should be, but for its version; and every whole block's checksums. With `counts`, the counts of the
/// end block too.
fn with_checksums(file: &mut [u8], counts: bool) {
    if file.len() < HEADER_BYTES {
        return;
    }
    file[..8].copy_from_slice(b"FABIUSCP");
    file[8..12].copy_from_slice(&[1, 0, 0, 0]);
    file[16..32].copy_from_slice(&DATABASE.0);
    file[32..40].copy_from_slice(&SEQ.to_le_bytes());
    let seed = crc32c::crc32c(&file[..60]);
    file[60..64].copy_from_slice(&seed.to_le_bytes());
    let mut offset = HEADER_BYTES;
    // Blocks, definitions, keys, rows.
    let mut counted = [0u64; COUNTS_BYTES / 8];
    while let Some(block) = file.get_mut(offset..).filter(|rest| rest.len() >= BLOCK_HEADER_BYTES) {
        let (length, items, kind) = (u32_at(block, 0) as usize, u32_at(block, 4), u32_at(block, 8));
        if let Some(payload) = block[BLOCK_HEADER_BYTES..].get_mut(..length) {
            if kind == END && counts && length == COUNTS_BYTES {
                payload
                    .chunks_mut(8)
                    .zip(counted)
                    .for_each(|(at, count)| at.copy_from_slice(&count.to_le_bytes()));
            }
            let checksum = crc32c::crc32c(payload);
            block[16..20].copy_from_slice(&checksum.to_le_bytes());
        }
        counted[0] += 1;
        if let Some(count) = (kind as usize).checked_sub(1).and_then(|kind| counted.get_mut(kind + 1)) {
            *count += u64::from(items);
        }
        let placed = crc32c::crc32c_append(seed, &(offset as u64).to_le_bytes());
        let checksum = crc32c::crc32c_append(placed, &block[..20]);
        block[20..24].copy_from_slice(&checksum.to_le_bytes());
        offset = offset.saturating_add(BLOCK_HEADER_BYTES).saturating_add(length);
    }
}

/// Checkpoints of small databases: empty, with a few rows, with values of every type and outcomes of keys.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let one = "table one { id: bigint, primary key (id) }
        procedure make(id: bigint) { insert one { id: id } }";
    let all = "table all { id: bigint, a: int null, c: numeric(10, 2), d: text null, e: bytea, f: boolean, g: date,
            h: timestamp null, i: double precision, primary key (id) using hash, index by_d (d) }
        procedure make(id: bigint, c: numeric(10, 2), d: text null, e: bytea, g: date, i: double precision) -> text null {
            insert all { id: id, a: null, c: c, d: d, e: e, f: true, g: g, h: null, i: i }
            return d
        }";
    let values = vec![
        Value::Numeric(Decimal { mantissa: 150, scale: 2 }),
        Value::Text("text".into()),
        Value::Bytea(vec![0, 255]),
        Value::Date(19_000),
        Value::Double(0.5),
    ];
    let mut seeds = Vec::new();
    for (text, values) in [("", Vec::new()), (one, Vec::new()), (all, values)] {
        let directory = tempfile::tempdir().expect("a directory");
        let database = Database::open(directory.path(), Options::default()).expect("a new database");
        if !text.is_empty() {
            database.define(text).unwrap_or_else(|error| panic!("{error:?}"));
            for id in 1..=5i64 {
                let arguments: Vec<Value> = std::iter::once(id.into()).chain(values.clone()).collect();
                let make = database.prepare("make").expect("the procedure");
                make.with_key(id.to_le_bytes()).call(&arguments).expect("a new row");
            }
        }
        database.checkpoint().expect("a checkpoint");
        let folder =
            std::fs::read_dir(directory.path().join("checkpoints")).expect("the folder of checkpoints");
        for path in folder.map(|entry| entry.expect("a file").path()) {
            if path.extension().is_some_and(|ending| ending == "checkpoint") {
                let file = std::fs::read(path).expect("a checkpoint");
                seeds.extend([0, 1, 2].map(|bits: u8| [&[bits][..], &file].concat()));
            }
        }
        database.close().expect("a good disk");
    }
    assert!(!seeds.is_empty());
    seeds
}
