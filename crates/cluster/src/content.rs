//! What is agreed on in one entry: what engines take, and who handed it in.
//!
//! An entry gathers calls of several nodes, a *part* of each proposal. A node finds its own again by them, and
//! whoever waits there is told. What the engine takes, calls behind the time that the leader has given them, a
//! definition, a key window (`fabius_engine::entry`), stands behind the parts as it would stand in the log of one
//! node alone.
//!
//! ```text
//! offset  bytes
//!      0      4  number of parts
//!      4     28  of each part: node 8, life 8, serial number 8, number of calls 4
//!                what the engine takes
//! ```
//!
//! The entry with which a new leader begins, and whatever else nobody handed in, has no bytes at all.

use fabius_engine::entry::{self, Entries};

/// A proposal's share of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Who handed it in.
    pub proposal: ProposalId,
    /// How many calls of the entry are of it, behind those of the parts before.
    pub count: u32,
}

/// A proposal's name, which no other ever has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProposalId {
    /// The node it was handed in at.
    pub node: u64,
    /// That node's life then: it draws another number whenever it starts.
    pub life: u64,
    /// The proposal's number in that life.
    pub serial: u64,
}

/// What is agreed on in one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content<'e> {
    parts: &'e [u8],
    /// What engines take; nothing if there is nothing to take.
    pub taken: &'e [u8],
}

const COUNT_BYTES: usize = 4;
const PART_BYTES: usize = 28;

impl Content<'_> {
    /// The parts, in their order.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        self.parts.chunks_exact(PART_BYTES).map(|bytes| Part {
            proposal: ProposalId {
                node: u64_at(bytes, 0),
                life: u64_at(bytes, 8),
                serial: u64_at(bytes, 16),
            },
            count: u64_at(&[&bytes[24..28], &[0; 4]].concat(), 0) as u32,
        })
    }

    /// How many sequence numbers they take; more than there are is zero.
    pub(crate) fn seqs(&self) -> u32 {
        self.parts().try_fold(0u32, |sum, part| sum.checked_add(part.count)).unwrap_or(0)
    }
}

/// The bytes of an entry.
pub(crate) fn encode(parts: &[Part], taken: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(COUNT_BYTES + parts.len() * PART_BYTES + taken.len());
    bytes.extend_from_slice(&(parts.len() as u32).to_le_bytes());
    for Part { proposal, count } in parts {
        for number in [proposal.node, proposal.life, proposal.serial] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    bytes.extend_from_slice(taken);
    bytes
}

/// What the bytes of an entry say; nothing if they are none, or empty.
pub(crate) fn decode(bytes: &[u8]) -> Option<Content<'_>> {
    let (count, rest) = bytes.split_first_chunk::<COUNT_BYTES>()?;
    let parts_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(PART_BYTES)?;
    let (parts, taken) = rest.split_at_checked(parts_bytes)?;
    Some(Content { parts, taken })
}

/// Whether all nodes take a checkpoint at an entry with these bytes.
pub(crate) fn is_checkpoint(bytes: &[u8]) -> bool {
    let taken = decode(bytes).map(|content| entry::decode(content.taken));
    matches!(taken, Some(Ok(Entries::Checkpoint)))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::Random;

    /// Goal: parts and what is taken read back; garbage is nothing or something, never a panic.
    #[test]
    fn content_reads_back_and_garbage_does_not_panic() {
        let proposal = ProposalId { node: 3, life: u64::MAX, serial: 7 };
        let parts = [Part { proposal, count: 5 }, Part { proposal, count: u32::MAX - 5 }];
        let bytes = encode(&parts, b"taken");
        let content = decode(&bytes).expect("content");
        assert_eq!((content.parts().collect::<Vec<_>>(), content.taken), (parts.to_vec(), &b"taken"[..]));
        assert_eq!(content.seqs(), u32::MAX);
        assert_eq!(decode(&[]), None);
        let mut random = Random::seeded(1);
        for _ in 0..1_000 {
            let mut garbage = vec![0; random.index(100)];
            random.fill(&mut garbage);
            garbage.iter_mut().take(4).skip(1).for_each(|byte| *byte = 0);
            if let Some(content) = decode(&garbage) {
                content.seqs();
            }
        }
    }
}
