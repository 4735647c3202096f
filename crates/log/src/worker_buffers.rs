//! What has been appended and not yet taken by the flusher, in several buffers.
//!
//! Threads that append together do not wait for each other: each has a buffer of its own (Silo 4.10), or shares one
//! with few. Only the sequence numbers say what the order is, so a buffer may hold any of them, and the flusher puts
//! together what is without gaps ([`InOrder`]).
//!
//! ```text
//! buffers      41 44 47     42 43      45 48
//! group        41 42 43 44 45          whoever has 46 has not appended it yet
//! waiting      47 48
//! ```
//!
//! Byte vectors change places: appenders fill one while the flusher reads the other. All keep their memory, so
//! appending allocates nothing once they have grown to the usual group.

use crossbeam_utils::CachePadded;
use fabius_env::schedule;
use fabius_env::sync::Mutex;

use crate::frame::{append_unsealed, unsealed};

/// Buffers of a log.
pub(crate) const BUFFERS: usize = 16;
/// Above this, memory that groups no longer use is given back.
const KEPT_BYTES: usize = 8 << 20;

/// The buffers of those who append.
#[derive(Debug)]
pub(crate) struct WorkerBuffers {
    buffers: [CachePadded<Mutex<Buffer>>; BUFFERS],
}

/// Batches as unsealed frames back to back, in the order in which they were appended.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// Of the first batch since the buffer was taken.
    first_seq: u64,
    /// Behind the last batch.
    next_seq: u64,
    /// Whether a batch since the buffer was taken begins elsewhere than where the one before it ends.
    has_gaps: bool,
}

impl Buffer {
    /// The sequence number behind the last batch.
    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether a batch fits below a bound; one that is longer fits if it is alone.
    pub(crate) fn has_room(&self, payload_bytes: usize, bytes_max: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len() + payload_bytes <= bytes_max
    }

    /// Adds a batch; gives the buffer's length.
    pub(crate) fn push(&mut self, first_seq: u64, entry_count: u32, payload: &[u8]) -> usize {
        assert!(entry_count > 0, "a batch has at least one entry");
        if self.bytes.is_empty() {
            self.first_seq = first_seq;
            self.has_gaps = false;
        } else {
            self.has_gaps |= first_seq != self.next_seq;
        }
        append_unsealed(&mut self.bytes, first_seq, entry_count, payload);
        self.next_seq = first_seq + u64::from(entry_count);
        self.bytes.len()
    }
}

impl WorkerBuffers {
    pub(crate) fn starting_at(next_seq: u64) -> Self {
        let buffers = Self { buffers: std::array::from_fn(|_| CachePadded::default()) };
        buffers.restart_at(next_seq);
        buffers
    }

    /// The buffer of those who append in order, one after the other.
    pub(crate) fn in_order(&self) -> &Mutex<Buffer> {
        &self.buffers[0]
    }

    /// The buffer of the calling thread.
    pub(crate) fn own(&self) -> &Mutex<Buffer> {
        &self.buffers[schedule::thread_number() % BUFFERS]
    }

    /// Bytes that wait for the flusher.
    pub(crate) fn len(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.lock().bytes.len()).sum()
    }

    /// Goes on with this sequence number; the buffers are empty.
    pub(crate) fn restart_at(&self, next_seq: u64) {
        self.in_order().lock().next_seq = next_seq;
    }
}

/// Puts what the buffers hold in the order of the log.
#[derive(Debug)]
pub(crate) struct InOrder {
    next_seq: u64,
    /// What was taken of each buffer, and at last what waits since the time before.
    taken: [Vec<u8>; BUFFERS + 1],
    order: Vec<Batch>,
    /// Batches behind a gap.
    waiting: Vec<u8>,
}

/// Where a batch stands in what was taken.
#[derive(Debug, Clone, Copy)]
struct Batch {
    first_seq: u64,
    source: usize,
    offset: usize,
}

impl InOrder {
    pub(crate) fn starting_at(next_seq: u64) -> Self {
        Self { next_seq, taken: std::array::from_fn(|_| Vec::new()), order: Vec::new(), waiting: Vec::new() }
    }

    /// Whether batches wait for one before them that has not been appended.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bytes of such batches.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    /// Takes everything out of the buffers, and puts what is without gaps into `group`; gives the sequence number that
    /// the group ends before.
    ///
    /// # Panics
    /// If a sequence number was appended twice.
    pub(crate) fn take(&mut self, buffers: &WorkerBuffers, group: &mut Vec<u8>) -> u64 {
        reuse(group);
        let mut filled = 0;
        let mut run = None;
        for (taken, buffer) in self.taken.iter_mut().zip(&buffers.buffers) {
            let mut buffer = buffer.lock();
            reuse(taken);
            std::mem::swap(taken, &mut buffer.bytes);
            if !taken.is_empty() {
                filled += 1;
                run = (!buffer.has_gaps && buffer.first_seq == self.next_seq).then_some(buffer.next_seq);
            }
        }
        match run {
            Some(next_seq) if filled == 1 && self.waiting.is_empty() => {
                let all = self.taken.iter_mut().find(|taken| !taken.is_empty()).expect("one is filled");
                std::mem::swap(all, group);
                self.next_seq = next_seq;
            }
            _ => self.merge(group),
        }
        self.next_seq
    }

    fn merge(&mut self, group: &mut Vec<u8>) {
        std::mem::swap(&mut self.taken[BUFFERS], &mut self.waiting);
        reuse(&mut self.waiting);
        self.order.clear();
        for (source, taken) in self.taken.iter().enumerate() {
            let mut offset = 0;
            while offset < taken.len() {
                let header = unsealed(&taken[offset..]);
                self.order.push(Batch { first_seq: header.first_seq, source, offset });
                offset += header.frame_bytes();
            }
        }
        // It finds the runs that there are: one or few of each buffer.
        self.order.sort_by_key(|batch| batch.first_seq);
        for batch in &self.order {
            assert!(batch.first_seq >= self.next_seq, "a sequence number was appended twice");
            let bytes = &self.taken[batch.source][batch.offset..];
            let header = unsealed(bytes);
            let frame = &bytes[..header.frame_bytes()];
            if batch.first_seq == self.next_seq {
                group.extend_from_slice(frame);
                self.next_seq += u64::from(header.entry_count);
            } else {
                self.waiting.extend_from_slice(frame);
            }
        }
    }
}

/// Empties a vector; keeps its memory, but for what has not been used for long.
fn reuse(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEPT_BYTES && bytes.len() < bytes.capacity() / 8 {
        bytes.shrink_to(KEPT_BYTES);
    }
    bytes.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first sequence numbers of a group's batches.
    fn seqs(mut group: &[u8]) -> Vec<u64> {
        let mut seqs = Vec::new();
        while !group.is_empty() {
            let header = unsealed(group);
            seqs.push(header.first_seq);
            group = &group[header.frame_bytes()..];
        }
        seqs
    }

    fn push(buffers: &WorkerBuffers, to: usize, batches: &[(u64, u32)]) {
        for (first_seq, count) in batches {
            buffers.buffers[to].lock().push(*first_seq, *count, b"payload");
        }
    }

    /// Goal: whatever buffers batches stand in, the group has those without gaps, in order, and each once; what is
    /// behind a gap comes when it is closed, one batch of several entries like many of one.
    #[test]
    fn a_group_has_what_is_without_gaps() {
        let (buffers, mut in_order) = (WorkerBuffers::starting_at(41), InOrder::starting_at(41));
        let mut group = Vec::new();
        push(&buffers, 0, &[(41, 1), (44, 1), (47, 1)]);
        push(&buffers, 3, &[(42, 2)]);
        push(&buffers, 15, &[(48, 3), (45, 1)]);
        assert_eq!(in_order.take(&buffers, &mut group), 46);
        assert_eq!((seqs(&group), in_order.has_gap()), (vec![41, 42, 44, 45], true));
        assert_eq!(in_order.take(&buffers, &mut group), 46);
        assert_eq!((seqs(&group), buffers.len()), (vec![], 0));
        push(&buffers, 7, &[(46, 1), (51, 1)]);
        assert_eq!(in_order.take(&buffers, &mut group), 52);
        assert_eq!((seqs(&group), in_order.has_gap()), (vec![46, 47, 48, 51], false));
        push(&buffers, 2, &[(52, 1), (53, 7)]);
        assert_eq!(in_order.take(&buffers, &mut group), 60);
        assert_eq!(seqs(&group), [52, 53]);
    }

    /// Goal: a run in one buffer that does not begin where the log ends waits.
    #[test]
    fn a_run_behind_a_gap_waits() {
        let (buffers, mut in_order) = (WorkerBuffers::starting_at(1), InOrder::starting_at(1));
        let mut group = Vec::new();
        push(&buffers, 1, &[(2, 1), (3, 1)]);
        assert_eq!(in_order.take(&buffers, &mut group), 1);
        assert_eq!((seqs(&group), in_order.has_gap()), (vec![], true));
        push(&buffers, 1, &[(1, 1)]);
        assert_eq!(in_order.take(&buffers, &mut group), 4);
        assert_eq!(seqs(&group), [1, 2, 3]);
    }

    /// Goal: what was appended twice is found before it is written.
    #[test]
    #[should_panic(expected = "a sequence number was appended twice")]
    fn a_seq_is_appended_once() {
        let (buffers, mut in_order) = (WorkerBuffers::starting_at(1), InOrder::starting_at(1));
        push(&buffers, 1, &[(1, 2)]);
        push(&buffers, 2, &[(2, 1)]);
        in_order.take(&buffers, &mut Vec::new());
    }
}
