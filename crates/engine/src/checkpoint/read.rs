//! From a checkpoint to the state that an engine begins with.

use super::write::scalars;
use super::{Ranges, State, include, outcome, widen};
use crate::Definitions;
use crate::entry::{take_bytes, take_varint};
use crate::idempotency::Keys;
use fabius_env::Disk;
use fabius_log::DatabaseId;
use fabius_program::arguments::ArgumentReader;
use fabius_program::ir::ScalarType;
use fabius_storage::Table;
use fabius_storage::checkpoint::{BlockKind, CheckpointReader, Found, restore};
use fabius_value::{Datum, Key, Seq, TableId};
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

/// The size from which a checkpoint is worth several threads: some blocks for each.
const SHARED_BYTES: u64 = 1 << 20;

/// Reads a checkpoint in `disk` by so many threads (LADS, section 4.2.4): they take blocks in turn, and put rows into
/// tables side by side.
///
/// # Errors
/// `XX001` if it is damaged, with file and offset; `0A000` if a newer version has written it, `55000` if it
/// belongs to another database; or as the disk fails.
pub fn read(
    disk: &dyn Disk,
    found: &Found,
    database: DatabaseId,
    threads: usize,
) -> fabius_value::Result<State> {
    let reader = CheckpointReader::open(disk, found, Some(database.0))?;
    let loading = Loading {
        seq: reader.header().seq,
        time_us: reader.header().begun_us,
        definitions: Definitions::default(),
        keys: Keys::default(),
        tables: Vec::new(),
    };
    let threads = if reader.bytes() < SHARED_BYTES { 1 } else { threads };
    let reading = Mutex::new(Reading { reader, loading, is_over: false });
    let met = thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(|| take_blocks(&reading))).collect();
        let own = take_blocks(&reading);
        let joined =
            |helper: ScopedJoinHandle<'_, _>| helper.join().unwrap_or_else(|panic| resume_unwind(panic));
        let all: Vec<_> = helpers.into_iter().map(joined).chain([own]).collect();
        all.into_iter().collect::<fabius_value::Result<Vec<_>>>()
    })?;
    Ok(reading.into_inner().loading.state(met))
}

/// The definitions of a checkpoint, with the seqs of their entries; the state after them has no rows.
///
/// # Errors
/// As [`read`].
pub fn read_definitions(disk: &dyn Disk, found: &Found) -> fabius_value::Result<Definitions> {
    let mut reader = CheckpointReader::open(disk, found, None)?;
    let mut definitions = Definitions::default();
    while let Some(block) = reader.next_block()? {
        if block.kind != BlockKind::Definitions {
            break;
        }
        let offset = block.offset;
        if let Err(fact) = define(&mut definitions, block.items, block.payload) {
            return Err(reader.damaged(offset, &fact));
        }
    }
    Ok(definitions)
}

/// What is wrong with a block.
type Fault = String;

struct Loading {
    seq: Seq,
    time_us: i64,
    definitions: Definitions,
    keys: Keys,
    tables: Vec<LoadingTable>,
}

#[derive(Clone)]
struct LoadingTable {
    table: Arc<Table>,
    columns: Arc<[ScalarType]>,
}

/// What the threads share: the file, and what is read of it in its order.
struct Reading<'d> {
    reader: CheckpointReader<'d>,
    loading: Loading,
    /// Whether the end was read, or something has failed.
    is_over: bool,
}

/// Rows that are still to be put into their table, and where they are in the file.
struct RowBlock {
    table: LoadingTable,
    number: usize,
    items: u32,
    offset: u64,
}

impl Reading<'_> {
    /// The next block of rows, which are copied; definitions and keys, which come before all rows, are read on the way.
    fn next_rows(&mut self, payload: &mut Vec<u8>) -> fabius_value::Result<Option<RowBlock>> {
        loop {
            if self.is_over {
                return Ok(None);
            }
            let Some(block) = self.reader.next_block()? else {
                self.is_over = true;
                return Ok(None);
            };
            let (items, offset) = (block.items, block.offset);
            let done = match block.kind {
                BlockKind::Rows(TableId(number)) => match self.loading.tables.get(number as usize) {
                    Some(table) => {
                        payload.clear();
                        payload.extend_from_slice(block.payload);
                        let (table, number) = (table.clone(), number as usize);
                        return Ok(Some(RowBlock { table, number, items, offset }));
                    }
                    None => Err(format!("there is no table {number}")),
                },
                kind => self.loading.block(kind, items, block.payload),
            };
            if let Err(fact) = done {
                return Err(self.reader.damaged(offset, &fact));
            }
        }
    }
}

/// What one thread does: the ranges of the columns of the rows that it has put into tables.
fn take_blocks(reading: &Mutex<Reading<'_>>) -> fabius_value::Result<Vec<Ranges>> {
    let (mut ranges, mut payload) = (Vec::<Ranges>::new(), Vec::new());
    let seq = reading.lock().loading.seq;
    loop {
        let next = {
            let mut reading = reading.lock();
            let next = reading.next_rows(&mut payload);
            reading.is_over |= next.is_err();
            next
        };
        let Some(block) = next? else { return Ok(ranges) };
        if ranges.len() <= block.number {
            ranges.resize_with(block.number + 1, Vec::new);
        }
        let own = &mut ranges[block.number];
        own.resize(block.table.columns.len(), None);
        if let Err(fact) = block.table.restore(seq, block.items, &payload, own) {
            let mut reading = reading.lock();
            reading.is_over = true;
            return Err(reading.reader.damaged(block.offset, &fact));
        }
    }
}

impl Loading {
    fn block(&mut self, kind: BlockKind, items: u32, payload: &[u8]) -> Result<(), Fault> {
        match kind {
            BlockKind::Definitions => {
                define(&mut self.definitions, items, payload)?;
                for table in &self.definitions.tables[self.tables.len()..] {
                    let columns = scalars(table.schema()).into();
                    self.tables.push(LoadingTable { table: table.clone(), columns });
                }
                Ok(())
            }
            BlockKind::Keys => self.remember(items, payload),
            BlockKind::Rows(_) | BlockKind::End => Ok(()),
        }
    }

    fn remember(&mut self, items: u32, mut payload: &[u8]) -> Result<(), Fault> {
        for _ in 0..items {
            let (key, first) = take_key(&mut payload).ok_or("an idempotency key is malformed")?;
            if first.seq > self.seq {
                return Err(format!("an idempotency key is of call {}, which comes later", first.seq));
            }
            self.keys.remember(key, first, Seq::ZERO);
        }
        nothing_left(payload)
    }

    fn state(self, met: Vec<Vec<Ranges>>) -> State {
        let mut ranges: Vec<Ranges> =
            self.tables.iter().map(|table| vec![None; table.columns.len()]).collect();
        for of_thread in met {
            for (own, others) in ranges.iter_mut().zip(of_thread) {
                own.iter_mut().zip(others).for_each(|(range, other)| widen(range, other));
            }
        }
        State { seq: self.seq, time_us: self.time_us, definitions: self.definitions, keys: self.keys, ranges }
    }
}

impl LoadingTable {
    /// Puts rows into the table, and widens the ranges of its columns by them.
    fn restore(&self, seq: Seq, items: u32, payload: &[u8], ranges: &mut Ranges) -> Result<(), Fault> {
        let told = |error: fabius_value::Error| format!("a row of {}: {error}", self.table.schema().name);
        let guard = crossbeam_epoch::pin();
        let mut reader = ArgumentReader::new(payload);
        let mut row: Vec<Datum<'_>> = Vec::with_capacity(self.columns.len());
        let mut key = Key::new();
        for _ in 0..items {
            row.clear();
            for (column, range) in self.columns.iter().zip(&mut *ranges) {
                let value = reader.scalar(*column).map_err(told)?;
                row.push(value);
                include(range, value);
            }
            restore(&self.table, seq, &row, &mut key, &guard).map_err(told)?;
        }
        reader.finish().map_err(told)
    }
}

fn define(definitions: &mut Definitions, items: u32, mut payload: &[u8]) -> Result<(), Fault> {
    for _ in 0..items {
        let entry = take_varint(&mut payload).and_then(|seq| Some((Seq(seq), take_bytes(&mut payload)?)));
        let (seq, entry) = entry.ok_or("a definition is malformed")?;
        *definitions = definitions.with(seq, entry).map_err(|error| format!("a definition: {error}"))?;
    }
    nothing_left(payload)
}

fn take_key<'p>(payload: &mut &'p [u8]) -> Option<(&'p [u8], crate::idempotency::First)> {
    let seq = Seq(take_varint(payload)?);
    let key = take_bytes(payload)?;
    Some((key, outcome::take(seq, payload)?))
}

fn nothing_left(payload: &[u8]) -> Result<(), Fault> {
    if payload.is_empty() { Ok(()) } else { Err(format!("{} bytes too many in a block", payload.len())) }
}
