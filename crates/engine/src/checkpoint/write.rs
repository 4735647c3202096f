//! Taking a checkpoint while calls go on.

use super::{Digest, outcome};
use crate::entry::push_varint;
use crate::foundation::log_error;
use crate::idempotency::Remembered;
use crate::{Engine, Records, Standpoint};
use fabius_env::Disk;
use fabius_log::DatabaseId;
use fabius_program::arguments::ArgumentWriter;
use fabius_program::ir::ScalarType;
use fabius_storage::checkpoint::{BlockItems, BlockKind, CheckpointWriter, Counts, Header, file_name};
use fabius_value::{DataType, Result, Seq, TableId, TableSchema, Value};
use parking_lot::Mutex;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Keys copied at a time, while calls with keys wait: some microseconds.
const KEYS_AT_A_TIME: usize = 512;

/// Rows that a thread takes at a time: progress is reported after each of its sections.
const SECTION_ROWS: usize = 1024;

/// How far a checkpoint has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being written: a table's name, `keys` or `definitions`.
    pub part: String,
    /// Items of that part so far.
    pub items: u64,
    /// Bytes written so far.
    pub bytes: u64,
}

/// A checkpoint that is whole and durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The state is that after the entry with this seq.
    pub seq: Seq,
    /// The name of the file.
    pub name: String,
    /// What it holds.
    pub counts: Counts,
    /// The checkpoint's size.
    pub bytes: u64,
    /// Of each part of the state.
    pub digests: Vec<Digest>,
}

/// Writes what `engine` says from the standpoint `at` into a checkpoint in `disk`, rows by so many threads; `watch` is
/// told how far it is, and ends it with an error.
///
/// Definitions and keys come first: keys cannot be forgotten before they are written.
///
/// # Errors
/// As the disk fails, what ended the log, or the error of `watch`; then there is no checkpoint.
pub fn write(
    engine: &dyn Engine,
    mut at: Standpoint<'_>,
    disk: &dyn Disk,
    database: DatabaseId,
    threads: usize,
    watch: &mut dyn FnMut(&Progress) -> Result<()>,
) -> Result<Written> {
    let foundation = engine.foundation();
    let seq = at.seq();
    let header = Header { database_id: database.0, seq, begun_us: foundation.clock.now_us() };
    let mut writer = CheckpointWriter::create(disk, header)?;
    let mut digests =
        vec![write_definitions(&at, &mut writer, watch)?, write_keys(engine, &mut at, &mut writer, watch)?];
    for (table, schema) in at.definitions().catalog.tables() {
        digests.push(write_rows(engine, &at, (table, schema), threads, &mut writer, watch)?);
    }
    // What the state rests upon has to be as durable as the state.
    let sync_log = || match foundation.log() {
        Some(log) => log.sync().map_err(|error| log_error(&error)),
        None => Ok(()),
    };
    let (counts, bytes) = writer.finish(sync_log)?;
    Ok(Written { seq, name: file_name(seq), counts, bytes, digests })
}

fn write_definitions(
    at: &Standpoint<'_>,
    writer: &mut CheckpointWriter<'_>,
    watch: &mut dyn FnMut(&Progress) -> Result<()>,
) -> Result<Digest> {
    let entries = &at.definitions().entries;
    let mut digest = Digest::of("definitions".into());
    watch(&progress("definitions", entries.len() as u64, writer))?;
    for (seq, entry) in entries.iter() {
        add(writer, BlockKind::Definitions, &mut digest, |to| {
            push_varint(seq.0, to);
            push_varint(entry.len() as u64, to);
            to.extend_from_slice(entry);
        })?;
    }
    Ok(digest)
}

/// Adds an item to the file, and to the digest of its part.
fn add(
    writer: &mut CheckpointWriter<'_>,
    kind: BlockKind,
    digest: &mut Digest,
    encode: impl FnOnce(&mut Vec<u8>),
) -> Result<()> {
    writer.add(kind, |to| {
        let begin = to.len();
        encode(to);
        digest.add(&to[begin..]);
    })
}

fn write_keys(
    engine: &dyn Engine,
    at: &mut Standpoint<'_>,
    writer: &mut CheckpointWriter<'_>,
    watch: &mut dyn FnMut(&Progress) -> Result<()>,
) -> Result<Digest> {
    let mut digest = Digest::of("keys".into());
    let Some(mut walk) = at.take_keys() else { return Ok(digest) };
    let last = at.seq();
    let oldest = at.definitions().key_window.oldest(last.next());
    let mut written = 0;
    loop {
        let part = walk.part(KEYS_AT_A_TIME);
        if part.is_empty() {
            return Ok(digest);
        }
        watch(&progress("keys", written, writer))?;
        for remembered in part.iter().filter(|(_, first)| (oldest..=last).contains(&first.seq)) {
            write_key(engine, remembered, writer, &mut digest)?;
            written += 1;
        }
    }
}

/// Writes a key with its outcome; a result that nobody has computed yet is computed.
fn write_key(
    engine: &dyn Engine,
    (key, first): &Remembered,
    writer: &mut CheckpointWriter<'_>,
    digest: &mut Digest,
) -> Result<()> {
    let results: Option<Vec<Value>> = match &first.ticket {
        None => None,
        Some(ticket) => loop {
            match ticket.values() {
                Some(values) => break Some(values.clone()?),
                None => engine.resolve(ticket),
            }
        },
    };
    add(writer, BlockKind::Keys, digest, |to| {
        push_varint(first.seq.0, to);
        push_varint(key.len() as u64, to);
        to.extend_from_slice(key);
        outcome::encode(first, results.as_deref(), to);
    })
}

/// The rows of a table while several threads write them.
struct RowsWriting<'w, 'd> {
    engine: &'w dyn Engine,
    at: &'w Standpoint<'w>,
    records: Records<'w>,
    table: TableId,
    name: &'w str,
    columns: Vec<ScalarType>,
    writer: Mutex<&'w mut CheckpointWriter<'d>>,
    /// Records that somebody has taken.
    taken: AtomicUsize,
    /// Whether somebody has failed.
    has_failed: AtomicBool,
}

/// Writes the rows of a table by so many threads, which take sections of it as they come along (LADS, section 4.2.4).
fn write_rows(
    engine: &dyn Engine,
    at: &Standpoint<'_>,
    (table, schema): (TableId, &TableSchema),
    threads: usize,
    writer: &mut CheckpointWriter<'_>,
    watch: &mut dyn FnMut(&Progress) -> Result<()>,
) -> Result<Digest> {
    // Others may be quicker to take all sections there are.
    watch(&progress(&schema.name, 0, writer))?;
    let writing = RowsWriting {
        engine,
        at,
        records: at.records(table),
        table,
        name: &schema.name,
        columns: scalars(schema),
        writer: Mutex::new(writer),
        taken: AtomicUsize::new(0),
        has_failed: AtomicBool::new(false),
    };
    let threads = threads.min(writing.records.len().div_ceil(SECTION_ROWS));
    thread::scope(|scope| {
        let helpers: Vec<_> =
            (1..threads).map(|_| scope.spawn(|| writing.write_sections(&mut |_| Ok(())))).collect();
        let mut digest = writing.write_sections(watch);
        for helper in helpers {
            let theirs = helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            digest = digest.and_then(|mut digest| {
                digest.merge(&theirs?);
                Ok(digest)
            });
        }
        digest
    })
}

impl RowsWriting<'_, '_> {
    /// Writes sections until there are none left; `watch` is told of each. Gives the digest of their rows.
    fn write_sections(&self, watch: &mut dyn FnMut(&Progress) -> Result<()>) -> Result<Digest> {
        let mut digest = Digest::of(format!("table {}", self.name));
        let mut block = BlockItems::default();
        while let Some(section) = self.next_section() {
            let so_far = progress(self.name, section.start as u64, &self.writer.lock());
            let written = watch(&so_far).and_then(|()| self.write_section(section, &mut block, &mut digest));
            written.inspect_err(|_| self.has_failed.store(true, Relaxed))?;
        }
        self.writer.lock().add_block(BlockKind::Rows(self.table), &mut block)?;
        Ok(digest)
    }

    fn next_section(&self) -> Option<Range<usize>> {
        if self.has_failed.load(Relaxed) {
            return None;
        }
        let first = self.taken.fetch_add(SECTION_ROWS, Relaxed);
        (first < self.records.len()).then(|| first..(first + SECTION_ROWS).min(self.records.len()))
    }

    fn write_section(
        &self,
        section: Range<usize>,
        block: &mut BlockItems,
        digest: &mut Digest,
    ) -> Result<()> {
        self.engine.rows_among(self.at, &self.records, section, &mut |row| {
            block.add(|to| {
                let begin = to.len();
                let mut values = ArgumentWriter::new(to);
                self.columns.iter().zip(row).for_each(|(column, value)| _ = values.scalar(*column, *value));
                digest.add(&to[begin..]);
            });
            if block.is_full() {
                self.writer.lock().add_block(BlockKind::Rows(self.table), block)?;
            }
            Ok(())
        })
    }
}

/// The types of a table's columns, as rows are encoded with them. Arguments are held to more than values
/// that were computed: a date may lie outside the calendar, having been a timestamp.
pub(super) fn scalars(schema: &TableSchema) -> Vec<ScalarType> {
    let stored = |data_type| match data_type {
        DataType::Date => DataType::Int,
        DataType::Text { .. } | DataType::Char { .. } => DataType::Text { limit: None },
        other => other,
    };
    let columns = schema.columns.iter();
    columns
        .map(|column| ScalarType { data_type: stored(column.data_type), nullable: column.nullable })
        .collect()
}

fn progress(part: &str, items: u64, writer: &CheckpointWriter<'_>) -> Progress {
    Progress { part: part.to_string(), items, bytes: writer.bytes() }
}
