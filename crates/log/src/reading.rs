//! The one reader of all segments: opening, verifying and dumping go through it.
//!
//! Segments are read in order, frames in order within them, until the end or the first place that
//! is not as it should be. That place is one of two things:
//!
//! - **A torn tail**: written, but never acknowledged as durable, when the power was lost. It is
//!   cut off, with everything after it, and reported.
//! - **Damage** to what had been durable. Nothing is cut; the error says where.
//!
//! With `seq` the number of the entry that should stand there, it is damage if
//!
//! 1. the log was closed cleanly (`closing_mark.rs`), or
//! 2. its segment was written with `Durability::Fsync` and is not the last one (it was synced
//!    before the next one was created), or
//! 3. some sound frame or segment header after it has a synced sequence number of `seq` or more: a
//!    witness that the entry had been synced. All later bytes are searched, at every offset,
//!    because lengths behind a damaged place cannot be trusted; or
//! 4. it is the header of a segment with more than a header's bytes (`segment.rs`), or
//! 5. one changed bit explains it (`flipped_bit.rs`), where that is asked for.
//!
//! Otherwise it is a torn tail, however many sound frames follow: a group is torn in any pattern
//! of sectors, but none of its frames can vouch for any other of the group, and the next group was
//! never begun.
//!
//! ```text
//!     synced 4         synced 4           synced 7
//!   | 5 6 | 7 |      | 5 6 | 7 |        | 8 |
//!     ^ bad            ^ bad
//!     cut 5..7: the group of 5 6 7      damage: 8 was only written after 5 6 7 had been synced
//!     was never synced
//! ```
//!
//! What else this cannot see is damage to the very last acknowledged group of a log that was not
//! closed, in the moment before the flusher leaves its idle mark (`group_commit.rs`). That looks exactly
//! like a torn group; it is cut and reported as one.

use fabius_env::Disk;

use crate::closing_mark::{ClosingMark, FILE_NAME as CLOSING_MARK};
use crate::flipped_bit;
use crate::frame::{self, Frame};
use crate::segment::{
    FrameSeed, HEADER_BYTES, HeaderFault, SegmentHeader, file_name, newer_format, number_of,
};
use crate::{DatabaseId, Durability, LogError, LogErrorKind};

/// What a reader of the log is shown, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogItem<'a> {
    /// A segment begins.
    Segment(&'a SegmentHeader),
    /// A batch.
    Frame(Frame<'a>),
    /// A note of the flusher that everything up to `synced_seq` had been synced.
    Mark {
        /// The number of the segment it stands in.
        segment: u64,
        /// Where it begins in the segment's file.
        offset: u64,
        /// Entries up to here had been synced.
        synced_seq: u64,
    },
}

/// The end of a log that was being written when the power was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The file in which the tail begins.
    pub segment: String,
    /// Where it begins; the file ends here afterwards. Zero if the whole file goes.
    pub offset: u64,
    /// How many bytes are cut, in this segment and later ones.
    pub bytes_cut: u64,
    /// Later segments that go with it; only after `Durability::None`.
    pub segments_removed: Vec<String>,
    /// What is wrong at `offset`.
    pub why: &'static str,
    /// The last sequence number that is kept; nothing after it was acknowledged as synced.
    pub last_good_seq: u64,
}

/// One segment as read.
#[derive(Debug, Clone)]
pub(crate) struct SegmentRead {
    pub(crate) header: SegmentHeader,
    pub(crate) seed: FrameSeed,
    /// Where the first frame stands that nothing in the log proves to have been synced.
    pub(crate) unproven_from: u64,
    /// Where the last frame with entries ends; only marks follow.
    pub(crate) last_batch_end: u64,
    /// The file's length without a torn tail.
    pub(crate) bytes: u64,
    pub(crate) frames: u64,
    pub(crate) entries: u64,
}

/// What was found, up to the end or the first bad place.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Segments before the first one read, which hold only entries that were not needed.
    pub(crate) skipped: Vec<SegmentHeader>,
    pub(crate) segments: Vec<SegmentRead>,
    /// The sequence number after the last good entry; nothing if there is no segment.
    pub(crate) next_seq: Option<u64>,
    pub(crate) closed: Option<ClosingMark>,
    pub(crate) torn: Option<TornTail>,
    /// The highest generation in any segment, cut or not.
    pub(crate) generation: u32,
    /// The highest synced sequence number in any kept frame or header.
    pub(crate) marked_seq: u64,
}

/// Whether to go on after a place in the log.
enum Verdict {
    Continue,
    /// The rest is a torn tail and has been noted.
    Stop,
}

struct Reader<'d> {
    disk: &'d dyn Disk,
    numbers: Vec<u64>,
    /// Whether one changed bit is damage also at the end.
    doubts_tails: bool,
    reading: Reading,
}

/// A place that is not as it should be.
struct Fault {
    /// Index into the segment numbers.
    index: usize,
    offset: usize,
    why: &'static str,
}

/// Reads the log, showing `visit` every item on the way. Segments that hold only entries before
/// `needed` are left out, all but their headers: they have been synced, or nobody could do without
/// them. `reading` is filled as far as reading came, also when an error is returned.
pub(crate) fn read_log<E: From<LogError>>(
    disk: &dyn Disk,
    database_id: Option<DatabaseId>,
    needed: u64,
    doubts_tails: bool,
    reading: &mut Reading,
    visit: &mut dyn FnMut(LogItem<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let names = disk.list().map_err(|error| LogError::io("listing the log", disk.directory(), error))?;
    let numbers = names.iter().filter_map(|name| number_of(name)).collect();
    let mut reader = Reader { disk, numbers, doubts_tails, reading: Reading::default() };
    let result = reader.read(database_id, needed, visit);
    *reading = reader.reading;
    result
}

impl Reader<'_> {
    fn read<E: From<LogError>>(
        &mut self,
        database_id: Option<DatabaseId>,
        needed: u64,
        visit: &mut dyn FnMut(LogItem<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.reading.closed = ClosingMark::read(self.disk)?;
        let mut database_id = database_id;
        if let Some(mark) = &self.reading.closed {
            check_database(&mut database_id, mark.database_id, CLOSING_MARK)?;
        }
        self.check_numbers()?;
        self.skip_needless(database_id, needed);
        for index in 0..self.numbers.len() {
            let file = self.read_file(index)?;
            match self.read_header(index, &file, &mut database_id)? {
                Verdict::Continue => {}
                Verdict::Stop => return Ok(()),
            }
            visit(LogItem::Segment(&self.current().header))?;
            match self.read_frames(index, &file, visit)? {
                Verdict::Continue => {}
                Verdict::Stop => return Ok(()),
            }
        }
        self.check_closing_mark()?;
        Ok(())
    }

    fn read_file(&self, index: usize) -> Result<Vec<u8>, LogError> {
        let name = file_name(self.numbers[index]);
        self.disk
            .read(&name)
            .map_err(|error| LogError::io("reading the log", self.disk.directory(), error).in_file(name))
    }

    /// Leaves out segments from the front as long as the next one begins at `needed` or before. A header
    /// that is not as it should be ends that: the segment is read, and judged, like any other.
    fn skip_needless(&mut self, database_id: Option<DatabaseId>, needed: u64) {
        let mut skipped = Vec::new();
        let mut current = self.numbers.first().and_then(|number| self.peek(*number, database_id));
        for number in self.numbers.iter().skip(1) {
            let next = self.peek(*number, database_id);
            match (current, next) {
                (Some(header), Some(next))
                    if header.first_seq <= next.first_seq && next.first_seq <= needed =>
                {
                    self.reading.generation = self.reading.generation.max(header.generation);
                    self.reading.marked_seq = self.reading.marked_seq.max(header.synced_seq);
                    skipped.push(header);
                    current = Some(next);
                }
                _ => break,
            }
        }
        self.numbers.drain(..skipped.len());
        self.reading.skipped = skipped;
    }

    /// The header of a segment, if it is sound and belongs here.
    fn peek(&self, number: u64, database_id: Option<DatabaseId>) -> Option<SegmentHeader> {
        let mut bytes = [0; HEADER_BYTES];
        let file = self.disk.open_read(&file_name(number)).ok()?;
        let mut filled = 0;
        while filled < HEADER_BYTES {
            match file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(count) if count > 0 => filled += count,
                _ => return None,
            }
        }
        let (header, _) = SegmentHeader::decode(&bytes).ok()?;
        let belongs = header.number == number && database_id.is_none_or(|id| id == header.database_id);
        belongs.then_some(header)
    }

    /// Names are synced before they are used, so no crash makes a gap.
    fn check_numbers(&self) -> Result<(), LogError> {
        match self.numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]) {
            None => Ok(()),
            Some(pair) => Err(LogError::new(LogErrorKind::Damaged, "a segment is missing")
                .in_file(file_name(pair[0] + 1))
                .hint_is("restore the file from a copy of the log")),
        }
    }

    fn read_header(
        &mut self,
        index: usize,
        file: &[u8],
        database_id: &mut Option<DatabaseId>,
    ) -> Result<Verdict, LogError> {
        let name = file_name(self.numbers[index]);
        let (header, seed) = match SegmentHeader::decode(file) {
            Ok(decoded) => decoded,
            Err(HeaderFault::Newer { version }) => return Err(newer_format(&name, version)),
            Err(HeaderFault::Bad(why)) => return self.judge_header(index, file, why),
        };
        check_database(database_id, header.database_id, &name)?;
        if header.number != self.numbers[index] {
            let fact = format!("the file is segment {}, not the one it is named for", header.number);
            return Err(self.damage(index, 0, &fact));
        }
        if let Some(expected) = self.reading.next_seq
            && header.first_seq != expected
        {
            if header.first_seq < expected {
                let fact = format!(
                    "the segment begins with sequence number {}, which is there already",
                    header.first_seq
                );
                return Err(self.damage(index, 0, &fact));
            }
            // The segment before ends at a frame, but too early.
            let before = Fault {
                index: index - 1,
                offset: self.current().bytes as usize,
                why: "the segment ends before the next one begins",
            };
            let file = self.read_file(index - 1)?;
            return self.judge(&before, &file);
        }
        self.reading.next_seq = Some(header.first_seq);
        self.reading.generation = self.reading.generation.max(header.generation);
        self.reading.marked_seq = self.reading.marked_seq.max(header.synced_seq);
        self.reading.segments.push(SegmentRead {
            header,
            seed,
            unproven_from: HEADER_BYTES as u64,
            last_batch_end: HEADER_BYTES as u64,
            bytes: HEADER_BYTES as u64,
            frames: 0,
            entries: 0,
        });
        Ok(Verdict::Continue)
    }

    fn read_frames<E: From<LogError>>(
        &mut self,
        index: usize,
        file: &[u8],
        visit: &mut dyn FnMut(LogItem<'_>) -> Result<(), E>,
    ) -> Result<Verdict, E> {
        let seed = self.current().seed;
        let segment = self.numbers[index];
        let mut offset = HEADER_BYTES;
        while offset < file.len() {
            let (header, payload) = match frame::read(file, offset, seed) {
                Ok(read) => read,
                Err(fault) if self.doubts_tails && flipped_bit::explains(fault, file, offset, seed) => {
                    return Err(self.damage(index, offset, "one bit is not as it was written").into());
                }
                Err(fault) => {
                    let why = fault.fact();
                    return Ok(self.judge(&Fault { index, offset, why }, file)?);
                }
            };
            let expected = self.next_seq();
            let Some(next_seq) =
                header.next_seq().filter(|_| header.first_seq == expected && header.synced_seq < expected)
            else {
                let fact = format!(
                    "a batch begins with sequence number {} where {expected} should be",
                    header.first_seq
                );
                return Err(self.damage(index, offset, &fact).into());
            };
            visit(if header.entry_count == 0 {
                LogItem::Mark { segment, offset: offset as u64, synced_seq: header.synced_seq }
            } else {
                LogItem::Frame(Frame {
                    segment,
                    offset: offset as u64,
                    first_seq: header.first_seq,
                    entry_count: header.entry_count,
                    synced_seq: header.synced_seq,
                    payload,
                })
            })?;
            let newly_proven = header.synced_seq > self.reading.marked_seq;
            self.reading.next_seq = Some(next_seq);
            self.reading.marked_seq = self.reading.marked_seq.max(header.synced_seq);
            let current = self.current_mut();
            if newly_proven {
                // A mark only rises by a sync, which takes in everything before the frame.
                current.unproven_from = offset as u64;
            }
            offset += header.frame_bytes();
            current.bytes = offset as u64;
            current.entries += u64::from(header.entry_count);
            if header.entry_count > 0 {
                current.frames += 1;
                current.last_batch_end = offset as u64;
            }
        }
        Ok(Verdict::Continue)
    }

    /// A segment whose header is bad: its creation was interrupted, or it is damaged.
    fn judge_header(&mut self, index: usize, file: &[u8], why: &'static str) -> Result<Verdict, LogError> {
        let is_last = index + 1 == self.numbers.len();
        let interrupted = is_last && file.len() <= HEADER_BYTES && self.reading.closed.is_none();
        if !interrupted {
            return Err(self.damage(index, 0, why));
        }
        self.reading.torn = Some(TornTail {
            segment: file_name(self.numbers[index]),
            offset: 0,
            bytes_cut: file.len() as u64,
            segments_removed: Vec::new(),
            why,
            last_good_seq: self.last_good_seq(),
        });
        Ok(Verdict::Stop)
    }

    /// Decides whether everything from `fault` on is a torn tail or damage; see the module's text.
    fn judge(&mut self, fault: &Fault, file: &[u8]) -> Result<Verdict, LogError> {
        let seq = self.next_seq();
        let segment = &self.reading.segments[fault.index];
        let is_last = fault.index + 1 == self.numbers.len();
        let synced_segment = segment.header.durability == Durability::Fsync;
        let is_damage = self.reading.closed.is_some()
            || (synced_segment && !is_last)
            || frame::find_witness(file, fault.offset, segment.seed, seq).is_some();
        if is_damage {
            return Err(self.damage(fault.index, fault.offset, fault.why));
        }
        let mut bytes_cut = (file.len() - fault.offset) as u64;
        let mut segments_removed = Vec::new();
        for later in fault.index + 1..self.numbers.len() {
            let file = self.read_file(later)?;
            if let Ok((header, seed)) = SegmentHeader::decode(&file) {
                let witnessed =
                    header.synced_seq >= seq || frame::find_witness(&file, HEADER_BYTES, seed, seq).is_some();
                if witnessed {
                    return Err(self.damage(fault.index, fault.offset, fault.why));
                }
                self.reading.generation = self.reading.generation.max(header.generation);
            }
            bytes_cut += file.len() as u64;
            segments_removed.push(file_name(self.numbers[later]));
        }
        self.reading.torn = Some(TornTail {
            segment: file_name(self.numbers[fault.index]),
            offset: fault.offset as u64,
            bytes_cut,
            segments_removed,
            why: fault.why,
            last_good_seq: self.last_good_seq(),
        });
        Ok(Verdict::Stop)
    }

    /// A cleanly closed log is exactly what its mark says.
    fn check_closing_mark(&self) -> Result<(), LogError> {
        let Some(mark) = &self.reading.closed else {
            return Ok(());
        };
        let first = self.reading.skipped.first().map(|header| header.number);
        let first = first.or(self.numbers.first().copied());
        let last = self.numbers.last().copied();
        let fault = if first.is_none_or(|first| first > mark.first_segment) {
            Some((mark.first_segment, "a segment is missing"))
        } else if last.is_none_or(|last| last < mark.last_segment) {
            Some((last.unwrap_or(0) + 1, "a segment is missing"))
        } else if first != Some(mark.first_segment) || last != Some(mark.last_segment) {
            Some((last.unwrap_or(0), "there is a segment that does not belong to the log"))
        } else if self.current().bytes != mark.last_segment_bytes
            || self.reading.next_seq != Some(mark.next_seq)
        {
            Some((mark.last_segment, "the segment is not as it was closed"))
        } else {
            None
        };
        match fault {
            None => Ok(()),
            Some((number, fact)) => Err(LogError::new(LogErrorKind::Damaged, fact)
                .in_file(file_name(number))
                .good_until(self.last_good_seq())
                .hint_is("restore the file from a copy of the log")),
        }
    }

    fn damage(&self, index: usize, offset: usize, fact: &str) -> LogError {
        let last_good_seq = self.last_good_seq();
        LogError::new(LogErrorKind::Damaged, fact)
            .at(file_name(self.numbers[index]), offset as u64)
            .good_until(last_good_seq)
            .hint_is(format!(
                "nothing was changed; restore the file from a copy. `fabius log dump` \
                 reads everything up to sequence number {last_good_seq}"
            ))
    }

    fn current(&self) -> &SegmentRead {
        self.reading.segments.last().expect("a segment's header is read before anything else of it")
    }

    fn current_mut(&mut self) -> &mut SegmentRead {
        self.reading.segments.last_mut().expect("a segment's header is read before anything else of it")
    }

    /// The sequence number that should come next.
    fn next_seq(&self) -> u64 {
        self.reading.next_seq.expect("the first header says where the log begins")
    }

    fn last_good_seq(&self) -> u64 {
        self.reading.next_seq.map_or(0, |next_seq| next_seq - 1)
    }
}

/// All files of a log belong to one database: the expected one, or that of the first file.
fn check_database(expected: &mut Option<DatabaseId>, found: DatabaseId, name: &str) -> Result<(), LogError> {
    match expected {
        Some(expected) if *expected != found => Err(LogError::new(
            LogErrorKind::OtherDatabase,
            format!("the log belongs to database {found}, not to {expected}"),
        )
        .in_file(name)
        .hint_is("open the directory that belongs to this database")),
        _ => {
            *expected = Some(found);
            Ok(())
        }
    }
}
