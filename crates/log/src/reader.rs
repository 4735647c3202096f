//! Batches of an open log, read again: what one who was away has missed.

use std::sync::Arc;

use fabius_env::{Disk, DiskFile};

use crate::frame::{self, FRAME_HEADER_BYTES, FrameHeader};
use crate::segment::{FrameSeed, HEADER_BYTES, HeaderFault, SegmentHeader, file_name, newer_format};
use crate::{LogError, LogErrorKind};

/// A batch as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The sequence number of its first entry.
    pub first_seq: u64,
    /// How many entries it holds.
    pub entry_count: u32,
    /// What was appended.
    pub payload: Vec<u8>,
}

impl Batch {
    /// The sequence number of its last entry.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.entry_count) - 1
    }
}

/// Reads what had been written when it was made, batch by batch. Checksums are checked: what is damaged is an error
/// with its place, and so is what has been discarded or cut off meanwhile.
#[derive(Debug)]
pub struct Reader {
    disk: Arc<dyn Disk>,
    /// Numbers of segments that are still to be opened, oldest last.
    rest: Vec<u64>,
    open: Open,
    /// How long the last segment was.
    last_bytes: u64,
    /// Batches that end before this are passed over.
    from_seq: u64,
}

/// The segment that is being read.
#[derive(Debug)]
struct Open {
    number: u64,
    file: Box<dyn DiskFile>,
    seed: FrameSeed,
    /// Where the next frame is.
    offset: u64,
    bytes: u64,
    /// The sequence number that comes next.
    next_seq: u64,
}

impl Reader {
    /// A reader of these segments, the last of which has so many bytes.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segments: Vec<u64>,
        last_bytes: u64,
        from_seq: u64,
    ) -> Result<Reader, LogError> {
        let mut rest = segments;
        rest.reverse();
        let first = rest.pop().expect("there is a segment at every moment");
        let open = Open::segment(&*disk, first, rest.is_empty().then_some(last_bytes))?;
        Ok(Reader { disk, rest, open, last_bytes, from_seq })
    }

    /// The next batch; nothing once all that had been written is read.
    ///
    /// # Errors
    /// Damage, with its place; as the disk fails.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, LogError> {
        let Some(header) = self.seek()? else { return Ok(None) };
        let payload_bytes = header.payload_bytes as usize;
        let mut payload = vec![0; payload_bytes];
        self.open.read(&*self.disk, &mut payload, self.open.offset + FRAME_HEADER_BYTES as u64)?;
        if crc32c::crc32c(&payload) != header.payload_checksum {
            return Err(self.open.damage("a batch's checksum is wrong"));
        }
        self.open.pass(&header);
        Ok(Some(Batch { first_seq: header.first_seq, entry_count: header.entry_count, payload }))
    }

    /// Goes to where the next batch begins, or to the end.
    pub(crate) fn seek(&mut self) -> Result<Option<FrameHeader>, LogError> {
        loop {
            while self.open.offset >= self.open.bytes {
                let Some(number) = self.rest.pop() else { return Ok(None) };
                let bytes = self.rest.is_empty().then_some(self.last_bytes);
                let next_seq = self.open.next_seq;
                self.open = Open::segment(&*self.disk, number, bytes)?;
                if self.open.next_seq != next_seq {
                    return Err(self.open.damage("the segment does not begin where the one before it ends"));
                }
            }
            let header = self.open.header(&*self.disk)?;
            let ends_before = header.first_seq + u64::from(header.entry_count) <= self.from_seq;
            if header.entry_count > 0 && !ends_before {
                return Ok(Some(header));
            }
            self.open.pass(&header);
        }
    }

    /// Where the next batch begins in its file, after [`seek`](Self::seek).
    pub(crate) fn offset(&self) -> u64 {
        self.open.offset
    }
}

impl Open {
    fn segment(disk: &dyn Disk, number: u64, bytes: Option<u64>) -> Result<Open, LogError> {
        let name = file_name(number);
        let failed =
            |error| LogError::io("reading the log again", disk.directory(), error).in_file(name.as_str());
        let file = disk.open_read(&name).map_err(failed)?;
        let bytes = match bytes {
            Some(bytes) => bytes,
            None => file.len().map_err(failed)?,
        };
        let open = Open { number, file, seed: FrameSeed(0), offset: 0, bytes, next_seq: 0 };
        let mut head = [0; HEADER_BYTES];
        open.read(disk, &mut head, 0)?;
        let (header, seed) = SegmentHeader::decode(&head).map_err(|fault| match fault {
            HeaderFault::Newer { version } => newer_format(&name, version),
            HeaderFault::Bad(why) => open.damage(why),
        })?;
        Ok(Open { seed, offset: HEADER_BYTES as u64, next_seq: header.first_seq, ..open })
    }

    /// The header of the frame that comes next.
    fn header(&self, disk: &dyn Disk) -> Result<FrameHeader, LogError> {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        self.read(disk, &mut bytes, self.offset)?;
        let header = frame::header_at(&bytes, self.offset, self.seed)
            .ok_or_else(|| self.damage("a batch's header is damaged"))?;
        let ends = self.offset + header.frame_bytes() as u64;
        if header.first_seq != self.next_seq || header.next_seq().is_none() || ends > self.bytes {
            return Err(self.damage("a batch is not the one that should be here"));
        }
        Ok(header)
    }

    fn pass(&mut self, header: &FrameHeader) {
        self.offset += header.frame_bytes() as u64;
        self.next_seq += u64::from(header.entry_count);
    }

    fn read(&self, disk: &dyn Disk, to: &mut [u8], offset: u64) -> Result<(), LogError> {
        let mut filled = 0;
        while filled < to.len() {
            let count = self.file.read_at(&mut to[filled..], offset + filled as u64).map_err(|error| {
                LogError::io("reading the log again", disk.directory(), error)
                    .at(file_name(self.number), offset)
            })?;
            if count == 0 {
                return Err(self.damage("the segment ends too early"));
            }
            filled += count;
        }
        Ok(())
    }

    fn damage(&self, fact: &str) -> LogError {
        LogError::new(LogErrorKind::Damaged, fact)
            .at(file_name(self.number), self.offset)
            .good_until(self.next_seq.saturating_sub(1))
            .hint_is("restore the file from a copy of the log")
    }
}
