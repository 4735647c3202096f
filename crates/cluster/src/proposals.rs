//! What this node has handed in and has not seen agreed on.
//!
//! Messages are lost, leaders are deposed, and yet nothing that was handed in may be agreed on twice or not at all. A
//! proposal is therefore sent to the leader of one term, and no other leader may take it:
//!
//! ```text
//! terms in the log    4 4 4 5 5 6 ...     they never go down,
//!                           ^             so once an entry of term 5 is agreed on, what was sent
//!                                         to the leader of term 4 and is not there never will be
//! ```
//!
//! So it is known, from the log alone, when a proposal may be sent again to another leader. To the same leader it may
//! be sent as often as one likes: for its term a leader remembers what it has taken
//! ([`Gathering`](crate::gathering::Gathering)).

use crate::content::{Part, ProposalId};
use crate::wire::Proposal;
use bytes::Bytes;
use fabius_engine::Batch;
use fabius_value::Error;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of calls that are gathered into one proposal, about: what Calvin's nodes send each other.
pub(crate) const PROPOSAL_BYTES: usize = 64 << 10;
/// Ticks after which a proposal of which nothing was heard is sent again.
const AGAIN_TICKS: u64 = 10;

/// What this node has handed in and has not seen agreed on.
pub(crate) struct Proposals {
    node: u64,
    life: u64,
    next_serial: u64,
    /// On their way to no leader, in the order in which they came.
    waiting: VecDeque<Handed>,
    /// On their way to the leader of a term, by serial number.
    sent: BTreeMap<u64, Sent>,
    /// How many were lost with their leader, so far.
    pub(crate) lost: u64,
}

/// Calls, or an entry of its own, that somebody waits for.
struct Handed {
    batch: Arc<Batch>,
    alone: bool,
    /// The one term in which it may be agreed on, if it was made for what holds in that.
    fence: Option<u64>,
}

struct Sent {
    term: u64,
    tick: u64,
    count: u32,
    handed: Bytes,
    batches: Vec<Handed>,
}

impl Proposals {
    /// None, of a node that lives under a number that it has never had.
    pub(crate) fn new(node: u64, life: u64) -> Proposals {
        Proposals { node, life, next_serial: 1, waiting: VecDeque::new(), sent: BTreeMap::new(), lost: 0 }
    }

    /// Takes a batch of calls, or of the bytes of one entry that is to stand alone.
    /// With a fence, it is agreed on in that term or not at all.
    pub(crate) fn hand_in(&mut self, batch: Arc<Batch>, alone: bool, fence: Option<u64>) {
        self.waiting.push_back(Handed { batch, alone, fence });
    }

    /// Takes out what may no longer be agreed on, now that the term is another: it never was.
    pub(crate) fn take_fenced_off(&mut self, term: u64) -> Vec<Arc<Batch>> {
        let is_off = |handed: &Handed| handed.fence.is_some_and(|fence| fence != term);
        if !self.waiting.iter().any(is_off) {
            return Vec::new();
        }
        let (off, waiting): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(is_off);
        self.waiting = waiting;
        off.into_iter().map(|handed| handed.batch).collect()
    }

    /// What is to be sent to the leader of a term next; nothing if all has been.
    pub(crate) fn next(&mut self, term: u64, tick: u64) -> Option<Proposal> {
        let first = self.waiting.pop_front()?;
        let (mut bytes, mut count) = (first.batch.calls().len(), first.batch.count());
        let mut batches = vec![first];
        while !batches[0].alone
            && let Some(next) = self
                .waiting
                .pop_front_if(|next| !next.alone && bytes + next.batch.calls().len() <= PROPOSAL_BYTES)
        {
            bytes += next.batch.calls().len();
            count += next.batch.count();
            batches.push(next);
        }
        let mut handed = Vec::with_capacity(bytes);
        batches.iter().for_each(|handed_in| handed.extend_from_slice(handed_in.batch.calls()));
        let serial = self.next_serial;
        self.next_serial += 1;
        self.sent.insert(serial, Sent { term, tick, count, handed: handed.into(), batches });
        Some(self.proposal(serial))
    }

    fn proposal(&self, serial: u64) -> Proposal {
        let sent = &self.sent[&serial];
        let proposal = ProposalId { node: self.node, life: self.life, serial };
        Proposal {
            term: sent.term,
            oldest: self.sent.keys().next().copied().unwrap_or(serial),
            part: Part { proposal, count: sent.count },
            handed: sent.handed.clone(),
            alone: sent.batches[0].alone,
        }
    }

    /// What was sent to the leader of this term long ago, to be sent again.
    pub(crate) fn again(&mut self, term: u64, tick: u64) -> Vec<Proposal> {
        let late = |sent: &Sent| sent.term == term && tick >= sent.tick + AGAIN_TICKS;
        let serials: Vec<u64> =
            self.sent.iter().filter(|(_, sent)| late(sent)).map(|(serial, _)| *serial).collect();
        for serial in &serials {
            self.sent.get_mut(serial).expect("it was just there").tick = tick;
        }
        serials.into_iter().map(|serial| self.proposal(serial)).collect()
    }

    /// Follows an entry of a term that is agreed on, with the parts it has: gives this node's batches in it, each
    /// with the place of its first call. What was sent to leaders of terms before waits to be sent again.
    pub(crate) fn agreed(&mut self, term: u64, parts: impl Iterator<Item = Part>) -> Vec<(u32, Arc<Batch>)> {
        let (mut ours, mut place) = (Vec::new(), 0);
        for Part { proposal, count } in parts {
            if (proposal.node, proposal.life) == (self.node, self.life)
                && let Some(sent) = self.sent.remove(&proposal.serial)
            {
                let mut at = place;
                for Handed { batch, .. } in sent.batches {
                    let calls = batch.count();
                    ours.push((at, batch));
                    at += calls;
                }
            }
            place += count;
        }
        let lost: Vec<u64> =
            self.sent.iter().filter(|(_, sent)| sent.term < term).map(|(serial, _)| *serial).collect();
        self.lost += lost.len() as u64;
        for serial in lost.into_iter().rev() {
            let sent = self.sent.remove(&serial).expect("it was just there");
            sent.batches.into_iter().rev().for_each(|handed| self.waiting.push_front(handed));
        }
        ours
    }

    /// Tells everybody who waits that nothing will come of it here.
    pub(crate) fn fail(&mut self, error: &Error, now_ns: u64) {
        let sent = std::mem::take(&mut self.sent).into_values().flat_map(|sent| sent.batches);
        sent.chain(self.waiting.drain(..)).for_each(|handed| handed.batch.fail(error.clone(), now_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(byte: u8, count: u32) -> Arc<Batch> {
        Batch::of(vec![byte; 10], count)
    }

    /// Goal: calls are gathered in order up to the bound, and what stands alone stands alone.
    #[test]
    fn calls_are_gathered_in_order() {
        let mut proposals = Proposals::new(1, 7);
        for (byte, alone) in [(1, false), (2, false), (3, true), (4, false)] {
            proposals.hand_in(batch(byte, 2), alone, None);
        }
        proposals.hand_in(Batch::of(vec![5; PROPOSAL_BYTES], 1), false, None);
        let sent: Vec<_> = std::iter::from_fn(|| proposals.next(3, 0)).collect();
        let shapes: Vec<_> = sent.iter().map(|sent| (sent.part.count, sent.alone, sent.handed[0])).collect();
        assert_eq!(shapes, [(4, false, 1), (2, true, 3), (2, false, 4), (1, false, 5)]);
        assert!(sent.iter().all(|sent| sent.term == 3 && sent.oldest == 1));
    }

    /// Goal: what is agreed on finds its batches; what is not is sent again, to the same leader after a while, to
    /// another one only once the log shows that the one it was sent to did not take it.
    #[test]
    fn nothing_is_lost_and_nothing_sent_to_two_leaders() {
        let mut proposals = Proposals::new(1, 7);
        let batches: Vec<_> = (0..3).map(|byte| batch(byte, 3)).collect();
        let mut sent = Vec::new();
        for each in &batches {
            proposals.hand_in(each.clone(), false, None);
            sent.push(proposals.next(4, 0).expect("one to send"));
        }
        assert_eq!(proposals.again(4, AGAIN_TICKS - 1), []);
        assert_eq!(proposals.again(4, AGAIN_TICKS).len(), 3);
        assert_eq!(proposals.again(5, 9 * AGAIN_TICKS), [], "nothing goes to another term's leader");
        let stranger = Part { proposal: ProposalId { node: 2, life: 7, serial: 1 }, count: 5 };
        let old = Part { proposal: ProposalId { node: 1, life: 6, serial: 1 }, count: 1 };
        let ours = proposals.agreed(4, [stranger, old, sent[1].part].into_iter());
        assert!(matches!(&ours[..], [(6, found)] if Arc::ptr_eq(found, &batches[1])));
        assert!(proposals.next(4, 20).is_none());
        assert!(proposals.agreed(5, [].into_iter()).is_empty());
        let again = proposals.next(5, 20).expect("both that are left");
        assert_eq!((again.part.count, again.part.proposal.serial, again.term), (6, 4, 5));
        assert!(proposals.agreed(5, [sent[0].part].into_iter()).is_empty(), "it has another number now");
    }

    /// Goal: what is fenced to a term is sent to its leader alone, and is known not to have been agreed on once the
    /// log shows it.
    #[test]
    fn a_fence_keeps_a_proposal_in_its_term() {
        let mut proposals = Proposals::new(1, 7);
        let (fenced, free) = (batch(1, 1), batch(2, 1));
        proposals.hand_in(fenced.clone(), false, Some(4));
        proposals.hand_in(free, false, None);
        assert!(proposals.take_fenced_off(4).is_empty());
        let sent = proposals.next(4, 0).expect("both");
        assert_eq!(sent.part.count, 2);
        assert!(proposals.take_fenced_off(5).is_empty(), "it may have been agreed on");
        assert!(proposals.agreed(5, [].into_iter()).is_empty());
        let off = proposals.take_fenced_off(5);
        assert!(off.len() == 1 && Arc::ptr_eq(&off[0], &fenced));
        assert_eq!(proposals.next(5, 1).expect("the other").part.count, 1);
    }
}
