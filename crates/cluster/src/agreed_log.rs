//! Fabius' segments as Raft's log.
//!
//! Each batch of the log is one entry of Raft (`envelope.rs`). What was appended lately is kept in memory, to be sent
//! to others and to be taken; older entries are read from the segments, forward from the nearest known place:
//!
//! ```text
//! index   |begins      64        128                      recent ...... last
//!         |            place     place     (on disk)      (in memory too)
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use fabius_engine::foundation::log_error;
use fabius_log::{Frame, Log, LogErrorKind};
use fabius_value::{Error, Result, SqlState};
use raft::eraftpb::{ConfState, Entry, HardState as RaftHardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::hard_state::HardState;
use crate::{Point, envelope};

/// Every entry with an index that this divides is a place from which reading can begin.
const PLACE_EVERY: u64 = 64;
/// Bytes of recent entries in memory, about.
const RECENT_BYTES: usize = 32 << 20;

/// The log of one node, as its Raft sees it.
pub(crate) struct AgreedLog {
    log: Arc<Log>,
    index: Index,
    recent: Recent,
    /// Reads old entries, and the index of the one that it reads next.
    reader: RefCell<Option<(u64, fabius_log::Reader)>>,
    /// Why the log could not be read, if it could not.
    failure: RefCell<Option<Error>>,
    /// How often entries were cut off, and how many were read from the segments, so far.
    pub(crate) cuts: u64,
    pub(crate) read_again: Cell<u64>,
    /// What Raft is told at its beginning.
    hard_state: RaftHardState,
    conf_state: ConfState,
}

/// Where entries stand.
#[derive(Debug, Default)]
struct Index {
    /// The entry before the first.
    begins: Point,
    last: Point,
    /// The first entry of each term, with its term.
    terms: Vec<(u64, u64)>,
    /// Some entries' indexes and first sequence numbers.
    places: Vec<(u64, u64)>,
    /// The newest time that any of them was given, in microseconds since 1970.
    time_us: i64,
}

/// The newest entries.
#[derive(Default)]
struct Recent {
    entries: VecDeque<Kept>,
    bytes: usize,
}

struct Kept {
    entry: Entry,
    /// The sequence number of the last call in it.
    last_seq: u64,
    seqs: u32,
}

/// Collects where the entries of a log stand while it is opened.
pub(crate) struct Collected(Index);

impl Collected {
    /// Nothing yet, of a log that begins behind a point.
    pub(crate) fn begin(begins: Point) -> Collected {
        Collected(Index { begins, last: begins, ..Index::default() })
    }

    /// Notes a batch of the log; gives the entry in it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn note(&mut self, frame: &Frame<'_>) -> Result<Entry, String> {
        let at = frame.first_seq;
        let entry = envelope::decode(frame.payload)
            .ok_or_else(|| format!("what has sequence number {at} was not agreed on in a cluster"))?;
        let Index { last, .. } = &self.0;
        if entry.index != last.index + 1 || entry.term < last.term || at != last.seq + 1 {
            return Err(format!(
                "the entry at sequence number {at} has index {} and term {}, behind sequence number {}, index {} and term {}",
                entry.index, entry.term, last.seq, last.index, last.term
            ));
        }
        if envelope::seqs(&entry) != frame.entry_count {
            return Err(format!("the entry at sequence number {at} does not have the calls that it should"));
        }
        self.0.push(&entry, frame.entry_count);
        Ok(entry)
    }
}

impl Index {
    fn push(&mut self, entry: &Entry, seqs: u32) {
        self.time_us = self.time_us.max(envelope::time_us(entry).unwrap_or(self.time_us));
        if self.terms.last().is_none_or(|(_, term)| *term < entry.term) {
            self.terms.push((entry.index, entry.term));
        }
        if entry.index.is_multiple_of(PLACE_EVERY) || self.places.is_empty() {
            self.places.push((entry.index, self.last.seq + 1));
        }
        self.last = Point { seq: self.last.seq + u64::from(seqs), index: entry.index, term: entry.term };
    }

    fn term(&self, index: u64) -> Result<u64, StorageError> {
        if index == self.begins.index {
            return Ok(self.begins.term);
        }
        if index < self.begins.index {
            return Err(StorageError::Compacted);
        }
        if index > self.last.index {
            return Err(StorageError::Unavailable);
        }
        let after = self.terms.partition_point(|(first, _)| *first <= index);
        Ok(after.checked_sub(1).map_or(self.begins.term, |at| self.terms[at].1))
    }

    fn truncate_after(&mut self, point: Point) {
        self.terms.retain(|(first, _)| *first <= point.index);
        self.places.retain(|(first, _)| *first <= point.index);
        self.last = point;
    }
}

impl AgreedLog {
    /// The log, opened, with what was noted of it. Entries up to the index `taken` are in a checkpoint.
    pub(crate) fn new(log: Arc<Log>, collected: Collected, state: &HardState, taken: u64) -> AgreedLog {
        let of = |votes| state.members.iter().filter(move |member| member.votes == votes);
        let conf_state = ConfState {
            voters: of(true).map(|member| member.node).collect(),
            learners: of(false).map(|member| member.node).collect(),
            ..ConfState::default()
        };
        let hard_state = RaftHardState {
            term: state.term.max(collected.0.last.term),
            // A vote belongs to its term.
            vote: if collected.0.last.term > state.term { 0 } else { state.vote },
            commit: state.commit.max(taken).clamp(collected.0.begins.index, collected.0.last.index),
            ..RaftHardState::default()
        };
        AgreedLog {
            log,
            index: collected.0,
            recent: Recent::default(),
            reader: RefCell::default(),
            failure: RefCell::default(),
            cuts: 0,
            read_again: Cell::new(0),
            hard_state,
            conf_state,
        }
    }

    /// The last entry.
    pub(crate) fn last(&self) -> Point {
        self.index.last
    }

    /// Why the log could not be read, if it could not.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.borrow().clone()
    }

    /// The newest time that an entry was given.
    pub(crate) fn time_us(&self) -> i64 {
        self.index.time_us
    }

    /// The local log under it.
    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Whether appending at an index removes what is there.
    pub(crate) fn cuts_at(&self, index: u64) -> bool {
        index <= self.index.last.index
    }

    /// Appends entries; those that were there from the index of the first on are removed before. They are durable
    /// when the log says so of [`last`](Self::last)'s sequence number.
    ///
    /// # Errors
    /// What ended the log.
    pub(crate) fn append(&mut self, entries: Vec<Entry>) -> Result<()> {
        let Some(first) = entries.first() else { return Ok(()) };
        if self.cuts_at(first.index) {
            self.truncate_after(first.index - 1)?;
        }
        for entry in entries {
            assert_eq!(entry.index, self.index.last.index + 1, "Raft appends without gaps");
            let seqs = envelope::seqs(&entry);
            let appended = self.log.append(self.index.last.seq + 1, seqs, &envelope::encode(&entry));
            appended.map_err(|error| log_error(&error))?;
            self.index.push(&entry, seqs);
            self.recent.push(Kept { entry, last_seq: self.index.last.seq, seqs });
        }
        self.recent.trim(self.log.durable_seq());
        Ok(())
    }

    fn truncate_after(&mut self, index: u64) -> Result<()> {
        assert!(index >= self.index.begins.index, "what is cut off was not agreed on");
        let point = match self.recent.truncate_after(index) {
            Some(last) if last.index == index => last,
            _ => self.point_of(index)?,
        };
        self.cuts += 1;
        self.reader.replace(None);
        self.log.truncate_after(point.seq).map_err(|error| log_error(&error))?;
        self.index.truncate_after(point);
        Ok(())
    }

    /// The entry with an index.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn entry(&self, index: u64) -> Result<Entry> {
        match self.recent.get(index) {
            Some(kept) => Ok(kept.entry.clone()),
            None => self.read(index).map(|(entry, _)| entry),
        }
    }

    /// The members are others now.
    pub(crate) fn set_conf_state(&mut self, conf_state: ConfState) {
        self.conf_state = conf_state;
    }

    /// Lets go of entries up to a place.
    ///
    /// # Errors
    /// What ended the log.
    pub(crate) fn discard_up_to(&mut self, point: Point) -> Result<()> {
        self.index.begins = point;
        self.index.terms.retain(|(first, _)| *first > point.index);
        self.index.places.retain(|(first, _)| *first > point.index);
        self.reader.replace(None);
        self.log.discard_before(point.seq + 1).map_err(|error| log_error(&error)).map(drop)
    }

    /// Where the entry with an index ends.
    fn point_of(&self, index: u64) -> Result<Point> {
        if index == self.index.begins.index {
            return Ok(self.index.begins);
        }
        if let Some(kept) = self.recent.get(index) {
            return Ok(Point { seq: kept.last_seq, index, term: kept.entry.term });
        }
        let (entry, last_seq) = self.read(index)?;
        Ok(Point { seq: last_seq, index, term: entry.term })
    }

    /// Reads an entry from the segments; gives the sequence number of its last call beside it.
    ///
    /// # Errors
    /// `55000` if it is not there any more; damage; as the disk fails.
    fn read(&self, index: u64) -> Result<(Entry, u64)> {
        let mut reader = self.reader.borrow_mut();
        let kept = reader.take().filter(|(next, _)| *next <= index && index - *next < PLACE_EVERY);
        let mut is_new = kept.is_none();
        let (mut next, mut batches) = kept.map_or_else(|| self.read_from_place(index), Ok)?;
        loop {
            let Some(batch) = batches.next_batch().map_err(|error| log_error(&error))? else {
                // It has come to the end of what was written when it began.
                if is_new {
                    return Err(missing(index));
                }
                is_new = true;
                (next, batches) = self.read_from_place(index)?;
                continue;
            };
            let entry = envelope::decode(&batch.payload).filter(|entry| entry.index == next);
            let entry = entry.ok_or_else(|| missing(next))?;
            next += 1;
            if entry.index == index {
                self.read_again.update(|count| count + 1);
                *reader = Some((next, batches));
                return Ok((entry, batch.last_seq()));
            }
        }
    }

    fn read_from_place(&self, index: u64) -> Result<(u64, fabius_log::Reader)> {
        let after = self.index.places.partition_point(|(first, _)| *first <= index);
        let place = after.checked_sub(1).map(|at| self.index.places[at]);
        let (first, seq) = place.unwrap_or((self.index.begins.index + 1, self.index.begins.seq + 1));
        let reader = self.log.read_from(seq).map_err(|error| match error.kind() {
            LogErrorKind::MissingEntries => missing(index),
            _ => log_error(&error),
        })?;
        Ok((first, reader))
    }

    /// The first entry that is there, also after the log's oldest segments have been discarded.
    fn first(&self) -> u64 {
        let first_seq = self.log.first_seq();
        if first_seq <= self.index.begins.seq + 1 {
            return self.index.begins.index + 1;
        }
        let place = self.index.places.partition_point(|(_, seq)| *seq < first_seq);
        let place = self.index.places.get(place).map(|(index, _)| *index);
        let recent = self.recent.first_from(first_seq);
        place.into_iter().chain(recent).min().unwrap_or(self.index.last.index + 1)
    }
}

impl Recent {
    fn push(&mut self, kept: Kept) {
        self.bytes += kept.entry.data.len();
        self.entries.push_back(kept);
    }

    /// Lets go of the oldest that are durable, if there are too many.
    fn trim(&mut self, durable_seq: u64) {
        while self.bytes > RECENT_BYTES
            && self.entries.front().is_some_and(|kept| kept.last_seq <= durable_seq)
            && let Some(kept) = self.entries.pop_front()
        {
            self.bytes -= kept.entry.data.len();
        }
    }

    fn get(&self, index: u64) -> Option<&Kept> {
        let first = self.entries.front()?.entry.index;
        self.entries.get(usize::try_from(index.checked_sub(first)?).ok()?)
    }

    /// The index of the first entry that does not begin before a sequence number.
    fn first_from(&self, seq: u64) -> Option<u64> {
        let before = self.entries.partition_point(|kept| kept.last_seq + 1 - u64::from(kept.seqs) < seq);
        self.entries.get(before).map(|kept| kept.entry.index)
    }

    /// Drops what is behind an index; gives where the last entry that stays ends, if there is one.
    fn truncate_after(&mut self, index: u64) -> Option<Point> {
        while let Some(kept) = self.entries.pop_back_if(|kept| kept.entry.index > index) {
            self.bytes -= kept.entry.data.len();
        }
        let last = self.entries.back()?;
        Some(Point { seq: last.last_seq, index: last.entry.index, term: last.entry.term })
    }
}

fn missing(index: u64) -> Error {
    Error::new(SqlState::NOT_IN_STATE, format!("the entry with index {index} is no longer in the log"))
}

impl Storage for AgreedLog {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState { hard_state: self.hard_state.clone(), conf_state: self.conf_state.clone() })
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        if low < self.first() {
            return Err(StorageError::Compacted.into());
        }
        let max_bytes = max_size.into().unwrap_or(u64::MAX);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for index in low..high {
            let entry = match self.entry(index) {
                Ok(entry) => entry,
                Err(error) if error.state() == SqlState::NOT_IN_STATE => {
                    return Err(StorageError::Compacted.into());
                }
                Err(error) => {
                    self.failure.replace(Some(error.clone()));
                    return Err(StorageError::Other(Box::new(error)).into());
                }
            };
            bytes += entry.data.len() as u64;
            // One at least, or nothing would ever go on.
            if !entries.is_empty() && bytes > max_bytes {
                break;
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        Ok(self.index.term(index)?)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.first())
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.index.last.index)
    }

    /// Says no more than up to where there is a checkpoint: it goes its own way (`filling.rs`).
    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        let begins = self.index.begins;
        if begins.index == 0 {
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        }
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (begins.index, begins.term);
        metadata.set_conf_state(self.conf_state.clone());
        Ok(snapshot)
    }
}
