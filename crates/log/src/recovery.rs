//! Opening a log for writing: read everything, cut a torn tail, go on where it ends.
//!
//! Nothing is changed until the whole log has been read and judged. A crash while a tail is cut
//! leaves a tail that is cut again (`cut.rs`).

use std::sync::Arc;

use fabius_env::Disk;

use crate::cut::Cut;
use crate::frame::Frame;
use crate::reading::{LogItem, Reading, SegmentRead, TornTail, read_log};
use crate::segment::{HEADER_BYTES, SegmentHeader, file_name};
use crate::segment_writer::{KnownSegment, OpenSegment, SegmentWriter};
use crate::{Durability, LogError, LogErrorKind, LogOptions};

/// What opening a log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The sequence number of the first entry in the log (of the next one, if there is none).
    pub first_seq: u64,
    /// The sequence number the next batch begins with.
    pub next_seq: u64,
    /// How many segments there are.
    pub segments: u64,
    /// How many batches were read; what is not needed is not read.
    pub batches: u64,
    /// How many entries were read.
    pub entries: u64,
    /// How many bytes were read and kept.
    pub bytes: u64,
    /// Whether the log had been closed cleanly.
    pub closed_cleanly: bool,
    /// What was cut off the end, if anything.
    pub torn_tail: Option<TornTail>,
}

/// Reads the log in `disk`, showing `visit` every batch, and makes it ready to be written, unless `is_taken` objects.
pub(crate) fn recover<E: From<LogError>>(
    disk: Arc<dyn Disk>,
    options: &LogOptions,
    mut visit: impl FnMut(Frame<'_>) -> Result<(), E>,
    is_taken: impl FnOnce() -> Result<(), E>,
) -> Result<(SegmentWriter, RecoveryReport), E> {
    let mut reading = Reading::default();
    let needed = options.first_seq;
    read_log(&*disk, Some(options.database_id), needed, options.doubts_tails, &mut reading, &mut |item| {
        match item {
            LogItem::Frame(frame) => visit(frame),
            LogItem::Segment(_) | LogItem::Mark { .. } => Ok(()),
        }
    })?;
    is_taken()?;
    check_range(&reading, options)?;
    cut(&*disk, &reading)?;
    let next_seq = reading.next_seq.unwrap_or(options.first_seq);
    if reading.closed.is_none() {
        make_durable(&*disk, &reading)?;
    }
    let report = RecoveryReport {
        first_seq: headers(&reading).next().map_or(next_seq, |header| header.first_seq),
        next_seq,
        segments: headers(&reading).count() as u64,
        batches: reading.segments.iter().map(|segment| segment.frames).sum(),
        entries: reading.segments.iter().map(|segment| segment.entries).sum(),
        bytes: reading.segments.iter().map(|segment| segment.bytes).sum(),
        closed_cleanly: reading.closed.is_some(),
        torn_tail: reading.torn.clone(),
    };
    let writer = continue_writing(disk, options, &reading, next_seq)?;
    Ok((writer, report))
}

/// The log has to reach from the first sequence number needed to at least the one before it.
fn check_range(reading: &Reading, options: &LogOptions) -> Result<(), LogError> {
    let needed = options.first_seq;
    let (file, fact) = match (reading.segments.first(), &reading.torn) {
        (Some(SegmentRead { header, .. }), _) => {
            let next_seq = reading.next_seq.expect("a segment sets it");
            let fact = if header.first_seq > needed {
                format!("the log begins with sequence number {}, but {needed} is needed", header.first_seq)
            } else if next_seq < needed {
                format!("the log ends before sequence number {next_seq}, but {needed} is to come next")
            } else {
                return Ok(());
            };
            (file_name(header.number), fact)
        }
        // A log may die while its first segment is made, but not one that has had entries.
        (None, Some(torn)) if needed > 1 => {
            (torn.segment.clone(), format!("nothing of the log can be read, but {needed} is to come next"))
        }
        (None, _) => return Ok(()),
    };
    Err(LogError::new(LogErrorKind::MissingEntries, fact)
        .in_file(file)
        .hint_is("restore the missing segments, or open with the checkpoint that fits the log"))
}

/// The headers of all segments, oldest first.
fn headers(reading: &Reading) -> impl Iterator<Item = &SegmentHeader> {
    reading.skipped.iter().chain(reading.segments.iter().map(|segment| &segment.header))
}

/// Removes a torn tail from the disk.
fn cut(disk: &dyn Disk, reading: &Reading) -> Result<(), LogError> {
    let Some(torn) = &reading.torn else {
        return Ok(());
    };
    Cut {
        segment: &torn.segment,
        offset: torn.offset,
        later: &torn.segments_removed,
        doing: "cutting a torn tail",
    }
    .make(disk)
}

/// What was read may be in the system's memory only, if the process died and not the machine; it is
/// about to be counted as durable.
///
/// Syncing alone would not do: when the process ended because a sync had failed, the system may
/// hold the bytes for written, and the next sync for needless. So the bytes that no later frame
/// proves are written once more, over themselves, which a crash cannot turn into anything else.
/// With `Durability::Fsync` that is the last group.
fn make_durable(disk: &dyn Disk, reading: &Reading) -> Result<(), LogError> {
    let last = reading.segments.len().saturating_sub(1);
    for (index, segment) in reading.segments.iter().enumerate() {
        let synced_by_rotation = segment.header.durability == Durability::Fsync && index < last;
        if !synced_by_rotation {
            write_again(disk, segment, reading.marked_seq)?;
        }
    }
    // The name of the last segment may be as unsure as its bytes.
    disk.sync().map_err(|error| LogError::io("syncing the log", disk.directory(), error))
}

/// Writes what nothing proves of a segment over itself, and syncs it. Entries up to `marked_seq`
/// are proven, but not the idle marks after them.
fn write_again(disk: &dyn Disk, segment: &SegmentRead, marked_seq: u64) -> Result<(), LogError> {
    let name = file_name(segment.header.number);
    let last_seq = segment.header.first_seq + segment.entries - 1;
    let from = if last_seq <= marked_seq && segment.entries > 0 {
        segment.unproven_from.max(segment.last_batch_end)
    } else if segment.unproven_from == HEADER_BYTES as u64 {
        // Without a proven frame, the header is not proven either.
        0
    } else {
        segment.unproven_from
    };
    if from == segment.bytes {
        return Ok(());
    }
    let written = (|| {
        let content = disk.read(&name)?;
        let unproven = content.get(from as usize..segment.bytes as usize);
        let mut file = disk.open_append(&name)?;
        file.overwrite(from, unproven.unwrap_or_default())?;
        file.sync()
    })();
    written.map_err(|error| LogError::io("writing the log again", disk.directory(), error).at(&name, from))
}

/// The writer that goes on at the end of what was read.
fn continue_writing(
    disk: Arc<dyn Disk>,
    options: &LogOptions,
    reading: &Reading,
    next_seq: u64,
) -> Result<SegmentWriter, LogError> {
    let synced_seq = next_seq - 1;
    let mut segments: Vec<KnownSegment> = headers(reading)
        .map(|header| KnownSegment { number: header.number, first_seq: header.first_seq })
        .collect();
    let mut generation = reading.generation;
    let continued = reading
        .segments
        .last()
        .filter(|last| reading.torn.is_none() && last.header.durability == options.durability);
    let (open, marked_seq, closed) = match continued {
        Some(last) => {
            let name = file_name(last.header.number);
            let file = disk
                .open_append(&name)
                .map_err(|error| LogError::io("opening the log", disk.directory(), error).in_file(name))?;
            let open = OpenSegment { file, number: last.header.number, seed: last.seed, len: last.bytes };
            (open, reading.marked_seq, reading.closed.is_some())
        }
        None => {
            if reading.closed.is_some() {
                crate::closing_mark::ClosingMark::remove(&*disk)?;
            }
            if reading.torn.is_some() {
                generation += 1;
            }
            let header = SegmentHeader {
                durability: options.durability,
                database_id: options.database_id,
                number: segments.last().map_or(1, |last| last.number + 1),
                first_seq: next_seq,
                synced_seq,
                generation,
            };
            segments.push(KnownSegment { number: header.number, first_seq: next_seq });
            (OpenSegment::create(&*disk, &header)?, synced_seq, false)
        }
    };
    Ok(SegmentWriter {
        database_id: options.database_id,
        durability: options.durability,
        segment_bytes: options.segment_bytes,
        generation,
        unsynced_from: open.number,
        segments,
        open,
        next_seq,
        synced_seq,
        marked_seq,
        closed,
        disk,
    })
}
