//! Writing segments: sealing frames for their place, one write per group, syncing, rotating.
//!
//! The order of writing is what recovery relies upon (`reading.rs`):
//!
//! 1. A closing mark is removed before anything else changes.
//! 2. A segment's header and name are synced before its first frame is written.
//! 3. With `Durability::Fsync`, a segment is synced before the next one is created, and a group
//!    before the next group is written; each frame says how far that has come.

use std::io;
use std::sync::Arc;

use fabius_env::{Disk, DiskFile};

use crate::closing_mark::ClosingMark;
use crate::cut::Cut;
use crate::frame::{FRAME_HEADER_BYTES, append_unsealed, seal, unsealed};
use crate::reader::Reader;
use crate::segment::{FrameSeed, HEADER_BYTES, SegmentHeader, file_name};
use crate::{DatabaseId, Durability, LogError, LogErrorKind};

/// A segment that exists on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownSegment {
    pub(crate) number: u64,
    pub(crate) first_seq: u64,
}

/// The end of the log, where groups are written.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database_id: DatabaseId,
    pub(crate) durability: Durability,
    pub(crate) segment_bytes: u64,
    pub(crate) generation: u32,
    /// All segments, oldest first, never none; the last one is open.
    pub(crate) segments: Vec<KnownSegment>,
    pub(crate) open: OpenSegment,
    /// The sequence number after the last one written.
    pub(crate) next_seq: u64,
    /// Entries up to here have been synced.
    pub(crate) synced_seq: u64,
    /// The highest `synced_seq` that stands in the log.
    pub(crate) marked_seq: u64,
    /// The first segment that may hold unsynced bytes.
    pub(crate) unsynced_from: u64,
    /// Whether a closing mark is on disk.
    pub(crate) closed: bool,
}

/// The segment being written.
#[derive(Debug)]
pub(crate) struct OpenSegment {
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) number: u64,
    pub(crate) seed: FrameSeed,
    /// The file's length: where the next frame goes.
    pub(crate) len: u64,
}

impl OpenSegment {
    /// Creates the segment of `header`, durably, so that its first frame may follow.
    pub(crate) fn create(disk: &dyn Disk, header: &SegmentHeader) -> Result<Self, LogError> {
        let name = file_name(header.number);
        let (bytes, seed) = header.encode();
        let created = (|| {
            let mut file = disk.create(&name)?;
            file.append_all(&bytes)?;
            file.sync()?;
            disk.sync()?;
            io::Result::Ok(file)
        })();
        let file = created
            .map_err(|error| LogError::io("beginning a segment", disk.directory(), error).in_file(&name))?;
        Ok(Self { file, number: header.number, seed, len: HEADER_BYTES as u64 })
    }
}

/// Makes a segment that is no longer open durable.
fn sync_segment(disk: &dyn Disk, number: u64) -> Result<(), LogError> {
    let name = file_name(number);
    let synced = disk.open_append(&name).and_then(|mut file| file.sync());
    synced.map_err(|error| LogError::io("syncing the log", disk.directory(), error).in_file(&name))
}

impl SegmentWriter {
    /// Writes the unsealed frames in `group`, of entries before `next_seq`, and syncs them if the
    /// durability asks for it.
    pub(crate) fn write_group(&mut self, group: &mut [u8], next_seq: u64) -> Result<(), LogError> {
        self.begin_change()?;
        let mut rest = group;
        while !rest.is_empty() {
            if self.is_full_for(unsealed(rest).frame_bytes()) {
                self.rotate(unsealed(rest).first_seq)?;
            }
            let filled = self.seal_what_fits(rest);
            let (now, later) = rest.split_at_mut(filled);
            self.write(now)?;
            rest = later;
        }
        self.next_seq = next_seq;
        if self.durability == Durability::Fsync {
            self.sync_open()?;
        }
        Ok(())
    }

    /// Seals frames from the start of `group` on until the open segment is full; gives their
    /// length, that of one frame at least.
    fn seal_what_fits(&self, group: &mut [u8]) -> usize {
        let (seed, start) = (self.open.seed, self.open.len);
        let mut filled = 0;
        while filled < group.len() {
            let frame_bytes = unsealed(&group[filled..]).frame_bytes();
            let offset = start + filled as u64;
            if filled > 0 && offset + frame_bytes as u64 > self.segment_bytes {
                break;
            }
            let frame = &mut group[filled..filled + frame_bytes];
            seal(frame, seed, offset, self.synced_seq);
            filled += frame_bytes;
        }
        filled
    }

    /// Whether a frame has to go to the next segment. A segment takes at least one frame.
    fn is_full_for(&self, frame_bytes: usize) -> bool {
        self.open.len > HEADER_BYTES as u64 && self.open.len + frame_bytes as u64 > self.segment_bytes
    }

    fn write(&mut self, sealed: &[u8]) -> Result<(), LogError> {
        let open = &mut self.open;
        open.file.append_all(sealed).map_err(|error| {
            LogError::io("writing the log", self.disk.directory(), error).at(file_name(open.number), open.len)
        })?;
        open.len += sealed.len() as u64;
        self.marked_seq = self.synced_seq;
        Ok(())
    }

    /// Ends the open segment and begins the next one, whose first entry will be `first_seq`.
    fn rotate(&mut self, first_seq: u64) -> Result<(), LogError> {
        if self.durability == Durability::Fsync {
            self.next_seq = first_seq;
            self.sync_open()?;
        }
        self.begin_segment(self.open.number + 1, first_seq)
    }

    /// Begins a segment behind all others, which are synced if the durability asks for it.
    fn begin_segment(&mut self, number: u64, first_seq: u64) -> Result<(), LogError> {
        let header = SegmentHeader {
            durability: self.durability,
            database_id: self.database_id,
            number,
            first_seq,
            synced_seq: self.synced_seq,
            generation: self.generation,
        };
        self.open = OpenSegment::create(&*self.disk, &header)?;
        self.segments.push(KnownSegment { number, first_seq });
        if self.durability == Durability::Fsync {
            self.unsynced_from = number;
        }
        Ok(())
    }

    fn sync_open(&mut self) -> Result<(), LogError> {
        let open = &mut self.open;
        open.file.sync().map_err(|error| {
            LogError::io("syncing the log", self.disk.directory(), error).in_file(file_name(open.number))
        })?;
        self.synced_seq = self.next_seq - 1;
        Ok(())
    }

    /// Syncs every entry written, whatever the durability.
    pub(crate) fn sync_entries(&mut self) -> Result<(), LogError> {
        if self.synced_seq + 1 < self.next_seq {
            self.sync_all()?;
        }
        Ok(())
    }

    /// Syncs every segment that may hold unsynced bytes.
    fn sync_all(&mut self) -> Result<(), LogError> {
        for number in self.unsynced_from..self.open.number {
            sync_segment(&*self.disk, number)?;
        }
        self.sync_open()?;
        self.unsynced_from = self.open.number;
        Ok(())
    }

    /// Whether a sync has happened of which no frame tells yet.
    pub(crate) fn mark_is_due(&self) -> bool {
        self.marked_seq < self.synced_seq
    }

    /// Records how far the last sync reached. Not synced itself: the system will write it before
    /// long, and a mark that is lost only proves nothing.
    pub(crate) fn write_mark(&mut self) -> Result<(), LogError> {
        self.begin_change()?;
        let mut mark = Vec::with_capacity(FRAME_HEADER_BYTES);
        append_unsealed(&mut mark, self.next_seq, 0, &[]);
        seal(&mut mark, self.open.seed, self.open.len, self.synced_seq);
        self.write(&mark)
    }

    /// Deletes the segments all of whose entries are below `seq`; the open one stays.
    pub(crate) fn discard_before(&mut self, seq: u64) -> Result<u64, LogError> {
        let discarded = self.segments.windows(2).take_while(|pair| pair[1].first_seq <= seq).count();
        if discarded == 0 {
            return Ok(0);
        }
        self.begin_change()?;
        // Oldest first: at every moment what is left has no gap.
        for segment in self.segments.drain(..discarded) {
            let name = file_name(segment.number);
            self.disk.delete(&name).map_err(|error| {
                LogError::io("discarding a segment", self.disk.directory(), error).in_file(&name)
            })?;
        }
        self.unsynced_from = self.unsynced_from.max(self.segments[0].number);
        self.disk
            .sync()
            .map_err(|error| LogError::io("discarding segments", self.disk.directory(), error))?;
        Ok(discarded as u64)
    }

    /// The sequence number of the first entry that is there.
    pub(crate) fn first_seq(&self) -> u64 {
        self.segments[0].first_seq
    }

    /// A reader of everything written so far, from the batch that holds `seq` on.
    pub(crate) fn read_from(&self, seq: u64) -> Result<Reader, LogError> {
        let after = self.segments.partition_point(|segment| segment.first_seq <= seq);
        let Some(at) = after.checked_sub(1) else {
            return Err(discarded(seq, self.first_seq()));
        };
        let segments = self.segments[at..].iter().map(|segment| segment.number).collect();
        Reader::new(self.disk.clone(), segments, self.open.len, seq)
    }

    /// Removes every entry behind `seq`, which is the last of its batch.
    pub(crate) fn truncate_after(&mut self, seq: u64) -> Result<(), LogError> {
        if self.next_seq == seq + 1 {
            return Ok(());
        }
        let offset = {
            let mut reader = self.read_from(seq + 1)?;
            let next = reader.seek()?.map(|batch| batch.first_seq);
            assert_eq!(next, Some(seq + 1), "a log is cut between two batches");
            reader.offset()
        };
        self.begin_change()?;
        let kept = self.segments.partition_point(|segment| segment.first_seq <= seq + 1);
        let later: Vec<String> =
            self.segments.drain(kept..).map(|segment| file_name(segment.number)).collect();
        let last = self.segments[kept - 1].number;
        Cut { segment: &file_name(last), offset, later: &later, doing: "cutting entries off the log" }
            .make(&*self.disk)?;
        self.next_seq = seq + 1;
        self.synced_seq = self.synced_seq.min(seq);
        self.unsynced_from = self.unsynced_from.min(last + 1);
        self.generation += 1;
        self.begin_segment(last + 1, seq + 1)?;
        // No more is marked than this segment's header says.
        self.marked_seq = self.synced_seq;
        Ok(())
    }

    /// Syncs everything and leaves the closing mark.
    pub(crate) fn close(&mut self) -> Result<(), LogError> {
        if self.closed {
            return Ok(());
        }
        self.sync_all()?;
        ClosingMark {
            database_id: self.database_id,
            first_segment: self.segments[0].number,
            last_segment: self.open.number,
            last_segment_bytes: self.open.len,
            next_seq: self.next_seq,
        }
        .write(&*self.disk)?;
        self.closed = true;
        Ok(())
    }

    fn begin_change(&mut self) -> Result<(), LogError> {
        if self.closed {
            ClosingMark::remove(&*self.disk)?;
            self.closed = false;
        }
        Ok(())
    }
}

/// What was asked for is there no more.
fn discarded(seq: u64, first_seq: u64) -> LogError {
    LogError::new(
        LogErrorKind::MissingEntries,
        format!("the log begins with sequence number {first_seq}, and {seq} was discarded"),
    )
    .hint_is("a checkpoint has what it did")
}
