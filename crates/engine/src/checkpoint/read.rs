//! From a checkpoint to the state that an engine begins with.

use super::write::scalars;
use super::{Ranges, State, include, outcome};
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
use std::sync::Arc;

/// Reads a checkpoint in `disk`.
///
/// # Errors
/// `XX001` if it is damaged, with file and offset; `0A000` if a newer version has written it, `55000` if it
/// belongs to another database; or as the disk fails.
pub fn read(disk: &dyn Disk, found: &Found, database: DatabaseId) -> fabius_value::Result<State> {
    let mut reader = CheckpointReader::open(disk, found, Some(database.0))?;
    let mut loading = Loading {
        seq: reader.header().seq,
        time_us: reader.header().begun_us,
        definitions: Definitions::default(),
        keys: Keys::default(),
        tables: Vec::new(),
    };
    loop {
        let (offset, fault) = match reader.next_block()? {
            None => break,
            Some(block) => {
                let done = loading.block(block.kind, block.items, block.payload);
                (block.offset, done.err())
            }
        };
        if let Some(fact) = fault {
            return Err(reader.damaged(offset, &fact));
        }
    }
    Ok(loading.state())
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

struct LoadingTable {
    table: Arc<Table>,
    columns: Vec<ScalarType>,
    ranges: Ranges,
}

impl Loading {
    fn block(&mut self, kind: BlockKind, items: u32, payload: &[u8]) -> Result<(), Fault> {
        match kind {
            BlockKind::Definitions => {
                define(&mut self.definitions, items, payload)?;
                for table in &self.definitions.tables[self.tables.len()..] {
                    let columns = scalars(table.schema());
                    let ranges = vec![None; columns.len()];
                    self.tables.push(LoadingTable { table: table.clone(), columns, ranges });
                }
                Ok(())
            }
            BlockKind::Keys => self.remember(items, payload),
            BlockKind::Rows(table) => self.restore(table, items, payload),
            BlockKind::End => Ok(()),
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

    fn restore(&mut self, table: TableId, items: u32, payload: &[u8]) -> Result<(), Fault> {
        let loading =
            self.tables.get_mut(table.0 as usize).ok_or_else(|| format!("there is no table {}", table.0))?;
        let told = |error: fabius_value::Error| format!("a row of {}: {error}", loading.table.schema().name);
        let guard = crossbeam_epoch::pin();
        let mut reader = ArgumentReader::new(payload);
        let mut row: Vec<Datum<'_>> = Vec::with_capacity(loading.columns.len());
        let mut key = Key::new();
        for _ in 0..items {
            row.clear();
            for (column, range) in loading.columns.iter().zip(&mut loading.ranges) {
                let value = reader.scalar(*column).map_err(told)?;
                row.push(value);
                include(range, value);
            }
            restore(&loading.table, self.seq, &row, &mut key, &guard).map_err(told)?;
        }
        reader.finish().map_err(told)
    }

    fn state(self) -> State {
        State {
            seq: self.seq,
            time_us: self.time_us,
            definitions: self.definitions,
            keys: self.keys,
            ranges: self.tables.into_iter().map(|table| table.ranges).collect(),
        }
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
