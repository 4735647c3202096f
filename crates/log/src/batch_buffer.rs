//! What has been appended and not yet taken by the flusher.
//!
//! Two byte vectors change places: appenders fill one while the flusher writes the other. Both keep
//! their memory, so appending allocates nothing once they have grown to the usual group.

use crate::frame::append_unsealed;

/// Above this, memory that groups no longer use is given back.
const KEPT_BYTES: usize = 8 << 20;

/// Batches in memory, as unsealed frames back to back.
#[derive(Debug)]
pub(crate) struct BatchBuffer {
    bytes: Vec<u8>,
    next_seq: u64,
}

impl BatchBuffer {
    pub(crate) fn starting_at(next_seq: u64) -> Self {
        Self { bytes: Vec::new(), next_seq }
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a batch at the end.
    ///
    /// # Panics
    /// If it does not begin with the next sequence number: the log would hold calls in another
    /// order than they ran.
    pub(crate) fn push(&mut self, first_seq: u64, entry_count: u32, payload: &[u8]) {
        assert_eq!(first_seq, self.next_seq, "a batch must begin with the log's next sequence number");
        assert!(entry_count > 0, "a batch has at least one entry");
        append_unsealed(&mut self.bytes, first_seq, entry_count, payload);
        self.next_seq += u64::from(entry_count);
    }

    /// Takes everything, as one group that ends before the returned sequence number, and leaves
    /// `spare`'s memory to be filled next.
    pub(crate) fn take(&mut self, spare: &mut Vec<u8>) -> u64 {
        let used = self.bytes.len();
        spare.clear();
        if spare.capacity() > KEPT_BYTES && used < spare.capacity() / 8 {
            spare.shrink_to(KEPT_BYTES);
        }
        std::mem::swap(&mut self.bytes, spare);
        self.next_seq
    }
}
