//! What a batch of the log holds on a node that agrees with others: an entry of Raft's log.
//!
//! ```text
//! offset  bytes
//!      0      1  4: what is agreed on (1 to 3 are the kinds of a log that nobody else has a copy of)
//!      1      1  0 calls, a definition or nothing; 2 a change of members
//!      2      8  term
//!     10      8  index
//!     18         content (`content.rs`), or Raft's own encoding of the change
//! ```
//!
//! Numbers are little-endian. Terms and indexes are Raft's (Ongaro and Ousterhout, "In search of an understandable
//! consensus algorithm", 2014); that they stand in the segments makes those the consensus log, so that there is one
//! log and one sync.

use crate::content::{self, Content};
use bytes::Bytes;
use fabius_engine::entry::{self, Entries};
use raft::eraftpb::{Entry, EntryType};

const AGREED: u8 = 4;
const NORMAL: u8 = 0;
const MEMBERS: u8 = 2;
/// Bytes before the content.
const HEAD_BYTES: usize = 18;

/// An entry of Raft's log as a batch of Fabius' log.
pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + entry.data.len());
    let entry_type = if entry.entry_type == EntryType::EntryNormal { NORMAL } else { MEMBERS };
    bytes.extend_from_slice(&[AGREED, entry_type]);
    bytes.extend_from_slice(&entry.term.to_le_bytes());
    bytes.extend_from_slice(&entry.index.to_le_bytes());
    bytes.extend_from_slice(&entry.data);
    bytes
}

/// The entry in a batch; nothing if it is none.
pub(crate) fn decode(batch: &[u8]) -> Option<Entry> {
    let (head, data) = batch.split_first_chunk::<HEAD_BYTES>()?;
    let number = |at: usize| head[at..at + 8].try_into().map(u64::from_le_bytes).ok();
    let entry_type = match (head[0], head[1]) {
        (AGREED, NORMAL) => EntryType::EntryNormal,
        (AGREED, MEMBERS) => EntryType::EntryConfChangeV2,
        _ => return None,
    };
    let data = Bytes::copy_from_slice(data);
    Some(Entry { entry_type, term: number(2)?, index: number(10)?, data, ..Entry::default() })
}

/// How many sequence numbers an entry takes: one at least.
pub(crate) fn seqs(entry: &Entry) -> u32 {
    content(entry).map_or(1, |content| content.seqs().max(1))
}

/// The time that the calls of an entry were given, if it has any.
pub(crate) fn time_us(entry: &Entry) -> Option<i64> {
    match entry::decode(content(entry)?.taken) {
        Ok(Entries::Calls { time_us, .. }) => Some(time_us),
        _ => None,
    }
}

/// What an entry holds, if it is not a change of members, nor the one with which a leader begins.
pub(crate) fn content(entry: &Entry) -> Option<Content<'_>> {
    if entry.entry_type == EntryType::EntryNormal { content::decode(&entry.data) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::Random;

    /// Goal: entries read back, and what is none is never taken for one, nor ends in a panic.
    #[test]
    fn entries_read_back_and_garbage_is_none() {
        let entry = Entry { term: 7, index: 9, data: vec![1, 2, 3].into(), ..Entry::default() };
        let bytes = encode(&entry);
        assert_eq!(decode(&bytes), Some(entry));
        for short in 0..HEAD_BYTES {
            assert_eq!(decode(&bytes[..short]), None, "{short} bytes");
        }
        let mut random = Random::seeded(1);
        for _ in 0..1_000 {
            let mut garbage = vec![0; random.index(64)];
            random.fill(&mut garbage);
            if let Some(entry) = decode(&garbage) {
                assert!(garbage[0] == AGREED && seqs(&entry) >= 1);
            }
        }
    }
}
