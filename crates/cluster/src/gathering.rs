//! What a leader gathers for the entries that it proposes next.
//!
//! Calvin's sequencer collects requests for an epoch of ten milliseconds and agrees on them together (section 3.1).
//! Here the epoch adapts: while few entries are on their way, what has come is proposed at once; when many are, it
//! gathers until they are through, until it is as large as one entry should be, or until the epoch is over.

use crate::content::{self, Part, ProposalId};
use crate::proposals::PROPOSAL_BYTES;
use crate::wire::Proposal;
use bytes::Bytes;
use fabius_engine::entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// What a leader has been handed in its term.
#[derive(Default)]
pub(crate) struct Gathering {
    term: u64,
    /// What has come in this term, by node and life.
    taken: HashMap<(u64, u64), Taken>,
    waiting: VecDeque<Proposal>,
    /// Of those that wait.
    bytes: usize,
    /// An entry that could not be proposed.
    put_back: Option<Bytes>,
}

/// What has come of one life of a node.
#[derive(Default)]
struct Taken {
    /// It waits for nothing before this serial number.
    oldest: u64,
    /// From there on.
    serials: BTreeSet<u64>,
}

impl Gathering {
    /// Begins the term of this node as leader, or forgets what came in one that is over.
    pub(crate) fn begin(&mut self, term: u64) {
        *self = Gathering { term, ..Gathering::default() };
    }

    /// Takes a proposal, if it is for the leader of this term and has not come before; whether it was.
    pub(crate) fn take(&mut self, proposal: Proposal) -> bool {
        if proposal.term != self.term {
            return false;
        }
        let ProposalId { node, life, serial } = proposal.part.proposal;
        let taken = self.taken.entry((node, life)).or_default();
        taken.oldest = taken.oldest.max(proposal.oldest);
        taken.serials = taken.serials.split_off(&taken.oldest);
        // What comes so late that its node no longer waits for it has been agreed on.
        let is_new = serial >= taken.oldest && taken.serials.insert(serial);
        if is_new {
            self.bytes += proposal.handed.len();
            self.waiting.push_back(proposal);
        }
        is_new
    }

    /// Whether there is nothing to propose.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.put_back.is_none()
    }

    /// The term in which this node gathers.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Keeps an entry that could not be proposed, to be the next.
    pub(crate) fn put_back(&mut self, entry: Bytes) {
        self.put_back = Some(entry);
    }

    /// Whether there is enough for an entry.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= PROPOSAL_BYTES
    }

    /// The next entry's bytes, with the time that its calls are given.
    pub(crate) fn next(&mut self, time_us: i64) -> Option<Bytes> {
        if let Some(entry) = self.put_back.take() {
            return Some(entry);
        }
        let first = self.waiting.pop_front()?;
        let mut bytes = first.handed.len();
        let mut gathered = vec![first];
        while !gathered[0].alone
            && let Some(next) =
                self.waiting.pop_front_if(|next| !next.alone && bytes + next.handed.len() <= PROPOSAL_BYTES)
        {
            bytes += next.handed.len();
            gathered.push(next);
        }
        self.bytes -= bytes;
        let parts: Vec<Part> = gathered.iter().map(|proposal| proposal.part).collect();
        let mut taken = Vec::with_capacity(entry::HEAD_BYTES + bytes);
        if !gathered[0].alone {
            entry::begin_calls(time_us, &mut taken);
        }
        gathered.iter().for_each(|proposal| taken.extend_from_slice(&proposal.handed));
        Some(content::encode(&parts, &taken).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(term: u64, serial: u64, alone: bool) -> Proposal {
        let part = Part { proposal: ProposalId { node: 2, life: 3, serial }, count: 1 };
        Proposal { term, oldest: 1, part, handed: vec![serial as u8; 1_000].into(), alone }
    }

    /// Goal: a proposal counts once in a term, in any order, and not in another's.
    #[test]
    fn each_counts_once() {
        let mut gathering = Gathering::default();
        gathering.begin(5);
        for (term, serial) in [(5, 2), (5, 1), (5, 2), (4, 3), (6, 4), (5, 1)] {
            gathering.take(proposal(term, serial, false));
        }
        let entry = gathering.next(7).expect("an entry");
        let serials: Vec<u64> =
            content::decode(&entry).expect("content").parts().map(|part| part.proposal.serial).collect();
        assert_eq!(serials, [2, 1]);
        gathering.take(proposal(5, 1, false));
        assert!(gathering.next(7).is_none(), "it has been proposed in this term");
        gathering.take(Proposal { oldest: 9, ..proposal(5, 9, false) });
        gathering.take(proposal(5, 8, false));
        assert_eq!(
            gathering.next(7).and_then(|entry| Some(content::decode(&entry)?.parts().count())),
            Some(1)
        );
        gathering.begin(6);
        gathering.take(proposal(6, 1, false));
        assert!(gathering.next(7).is_some());
    }

    /// Goal: entries are as large as they should be, and what stands alone does.
    #[test]
    fn entries_have_their_size() {
        let mut gathering = Gathering::default();
        gathering.begin(1);
        for serial in 1..=200 {
            gathering.take(proposal(1, serial, serial == 150));
        }
        assert!(gathering.is_full());
        let entries: Vec<Bytes> = std::iter::from_fn(|| gathering.next(7)).collect();
        let parts: Vec<usize> =
            entries.iter().map(|entry| content::decode(entry).expect("content").parts().count()).collect();
        assert_eq!(parts, [65, 65, 19, 1, 50]);
        assert!(gathering.is_empty() && !gathering.is_full());
    }
}
