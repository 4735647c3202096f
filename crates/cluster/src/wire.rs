//! What nodes say to each other.
//!
//! ```text
//! offset  bytes
//!      0      1  version of this encoding, 1
//!      1      1  1 a message of Raft, 2 a proposal on its way to the leader, 3 digests of a node's state,
//!               4 asks for a part of a checkpoint, 5 is one,
//!               6 asks to be let in as a successor, 7 says from which checkpoint a node is being filled
//!      2         its fields in their order, little-endian; bytes behind their length (4)
//! ```
//!
//! Raft's messages are written here and not by its library, so that what stands on the wire is ours to keep, and what
//! comes from it is bounded before anything is made of it.

use crate::content::{self, ProposalId};
use crate::fields::{Fields, put_bytes, put_u64};
use crate::kept::Part;
use crate::{Member, Point};
use bytes::Bytes;
use fabius_engine::checkpoint::Digest;
use fabius_engine::entry::{self, Entries};
use fabius_value::Seq;
use raft::eraftpb::{
    ConfState, Entry, EntryType, Message as RaftMessage, MessageType, Snapshot, SnapshotMetadata,
};

const VERSION: u8 = 1;
const RAFT: u8 = 1;
const PROPOSAL: u8 = 2;
const DIGESTS: u8 = 3;
const WANT_PART: u8 = 4;
const PART: u8 = 5;
const SUCCEEDS: u8 = 6;
const FILLED_FROM: u8 = 7;

/// What one node says to another.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Raft(RaftMessage),
    Proposal(Proposal),
    /// What a node has computed of the state at a seq.
    Digests {
        node: u64,
        seq: Seq,
        digests: Vec<Digest>,
        /// Whether the node's own are missing where this comes from.
        asks: bool,
    },
    /// A node that is being filled asks for a part of the checkpoint with a sequence number, or of the newest.
    WantPart {
        node: u64,
        seq: Option<u64>,
        offset: u64,
    },
    /// The part, and who the members are.
    Part {
        part: Part,
        members: Vec<Member>,
        members_at: u64,
    },
    /// A node asks to be let in, in the seat of the one that it was, with a vote if that one had one.
    Succeeds {
        member: Member,
        /// Whether it comes from the node itself, which may not know who leads, and not from one that does.
        is_first_hand: bool,
    },
    /// A node is being filled by another from the checkpoint with a sequence number, and will need what comes behind
    /// it.
    FilledFrom {
        seq: u64,
    },
}

/// What a node wants the leader to propose.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Proposal {
    /// The term whose leader may propose it, and no other's.
    pub(crate) term: u64,
    /// The oldest serial number that this life of the node still waits for.
    pub(crate) oldest: u64,
    pub(crate) part: content::Part,
    pub(crate) handed: Bytes,
    /// Whether it is an entry of its own, and not calls to be gathered with others.
    pub(crate) alone: bool,
}

impl Proposal {
    /// Whether engines can take it: what is agreed on has to be taken by all.
    pub(crate) fn is_sound(&self) -> bool {
        let count = match self.alone {
            true => entry::decode(&self.handed)
                .ok()
                .filter(|taken| !matches!(taken, Entries::Calls { .. }))
                .map(|_| 1),
            false => entry::calls(&self.handed)
                .try_fold(0u32, |count, call| call.map(|_| count.saturating_add(1)))
                .ok(),
        };
        count == Some(self.part.count)
    }
}

/// The kinds of Raft's messages that go from node to node, in the order of their numbers here.
const KINDS: [MessageType; 15] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgSnapshot,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgTransferLeader,
    MessageType::MsgTimeoutNow,
    MessageType::MsgReadIndex,
    MessageType::MsgReadIndexResp,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgUnreachable,
    MessageType::MsgSnapStatus,
];
/// How many of them a node may hear from another; the others are what it says to itself.
const SPOKEN: usize = 13;

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Message::Raft(message) => encode_raft(message),
            Message::Proposal(proposal) => {
                let mut bytes = vec![VERSION, PROPOSAL];
                let content::Part { proposal: ProposalId { node, life, serial }, count } = proposal.part;
                for number in [proposal.term, proposal.oldest, node, life, serial, count.into()] {
                    put_u64(&mut bytes, number);
                }
                bytes.push(proposal.alone.into());
                put_bytes(&mut bytes, &proposal.handed);
                bytes
            }
            Message::Digests { node, seq, digests, asks } => {
                let mut bytes = vec![VERSION, DIGESTS, u8::from(*asks)];
                [*node, seq.0, digests.len() as u64].iter().for_each(|number| put_u64(&mut bytes, *number));
                for digest in digests {
                    put_bytes(&mut bytes, digest.part.as_bytes());
                    put_u64(&mut bytes, digest.value);
                }
                bytes
            }
            Message::WantPart { node, seq, offset } => {
                let mut bytes = vec![VERSION, WANT_PART];
                [*node, seq.unwrap_or(0), *offset].iter().for_each(|number| put_u64(&mut bytes, *number));
                bytes
            }
            Message::FilledFrom { seq } => {
                let mut bytes = vec![VERSION, FILLED_FROM];
                put_u64(&mut bytes, *seq);
                bytes
            }
            Message::Part { part, members, members_at } => {
                let mut bytes = vec![VERSION, PART];
                let Point { seq, index, term } = part.point;
                for number in [seq, index, term, part.total, part.offset, *members_at] {
                    put_u64(&mut bytes, number);
                }
                put_u64(&mut bytes, members.len() as u64);
                for member in members {
                    put_u64(&mut bytes, member.node);
                    bytes.push(member.votes.into());
                    put_bytes(&mut bytes, member.address.as_bytes());
                }
                put_bytes(&mut bytes, &part.bytes);
                bytes
            }
            Message::Succeeds { member, is_first_hand } => {
                let mut bytes = vec![VERSION, SUCCEEDS, u8::from(*is_first_hand)];
                put_u64(&mut bytes, member.node);
                bytes.push(member.votes.into());
                put_bytes(&mut bytes, member.address.as_bytes());
                bytes
            }
        }
    }

    /// What was said; nothing if it cannot be understood.
    pub(crate) fn decode(bytes: &Bytes) -> Option<Message> {
        let mut fields = Fields(bytes);
        if fields.u8()? != VERSION {
            return None;
        }
        match fields.u8()? {
            RAFT => decode_raft(&mut fields, bytes).map(Message::Raft),
            PROPOSAL => {
                let (term, oldest) = (fields.u64()?, fields.u64()?);
                let proposal = ProposalId { node: fields.u64()?, life: fields.u64()?, serial: fields.u64()? };
                let count = u32::try_from(fields.u64()?).ok().filter(|count| *count > 0)?;
                let alone = fields.u8()? == 1;
                let handed = bytes.slice_ref(fields.bytes()?);
                let part = content::Part { proposal, count };
                fields.whole(Message::Proposal(Proposal { term, oldest, part, handed, alone }))
            }
            DIGESTS => {
                let (asks, node, seq) = (fields.u8()? == 1, fields.u64()?, Seq(fields.u64()?));
                let mut digests = Vec::new();
                for _ in 0..fields.u64()? {
                    digests.push(Digest { part: fields.text()?, value: fields.u64()? });
                }
                fields.whole(Message::Digests { node, seq, digests, asks })
            }
            WANT_PART => {
                let (node, seq, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
                fields.whole(Message::WantPart { node, seq: Some(seq).filter(|seq| *seq > 0), offset })
            }
            FILLED_FROM => {
                let seq = fields.u64()?;
                fields.whole(Message::FilledFrom { seq })
            }
            PART => {
                let point = Point { seq: fields.u64()?, index: fields.u64()?, term: fields.u64()? };
                let (total, offset, members_at) = (fields.u64()?, fields.u64()?, fields.u64()?);
                let mut members = Vec::new();
                for _ in 0..fields.u64()? {
                    let (node, votes) = (fields.u64()?, fields.u8()? == 1);
                    members.push(Member { node, votes, address: fields.text()? });
                }
                let part = Part { point, total, offset, bytes: fields.bytes()?.to_vec() };
                fields.whole(Message::Part { part, members, members_at })
            }
            SUCCEEDS => {
                let is_first_hand = fields.u8()? == 1;
                let member =
                    Member { node: fields.u64()?, votes: fields.u8()? == 1, address: fields.text()? };
                fields.whole(Message::Succeeds { member, is_first_hand })
            }
            _ => None,
        }
    }
}

fn encode_raft(message: &RaftMessage) -> Vec<u8> {
    let entries_bytes: usize = message.entries.iter().map(|entry| 32 + entry.data.len()).sum();
    let mut bytes = Vec::with_capacity(160 + entries_bytes);
    let kind = KINDS.iter().position(|kind| *kind == message.msg_type).expect("all kinds that are sent");
    bytes.extend_from_slice(&[VERSION, RAFT, kind as u8, message.reject.into()]);
    for number in [
        message.to,
        message.from,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.request_snapshot,
        message.reject_hint,
        message.priority as u64,
    ] {
        put_u64(&mut bytes, number);
    }
    put_bytes(&mut bytes, &message.context);
    put_u64(&mut bytes, message.entries.len() as u64);
    for entry in &message.entries {
        bytes.push((entry.entry_type != EntryType::EntryNormal).into());
        put_u64(&mut bytes, entry.term);
        put_u64(&mut bytes, entry.index);
        put_bytes(&mut bytes, &entry.data);
    }
    if message.has_snapshot() {
        let metadata = message.get_snapshot().get_metadata();
        put_u64(&mut bytes, metadata.index);
        put_u64(&mut bytes, metadata.term);
        for nodes in [&metadata.get_conf_state().voters, &metadata.get_conf_state().learners] {
            put_u64(&mut bytes, nodes.len() as u64);
            nodes.iter().for_each(|node| put_u64(&mut bytes, *node));
        }
        put_bytes(&mut bytes, &message.get_snapshot().data);
    }
    bytes
}

fn decode_raft(fields: &mut Fields<'_>, whole: &Bytes) -> Option<RaftMessage> {
    let mut message = RaftMessage::default();
    let kind = usize::from(fields.u8()?);
    message.msg_type = *KINDS[..SPOKEN].get(kind)?;
    message.reject = fields.u8()? == 1;
    message.to = fields.u64()?;
    message.from = fields.u64()?;
    message.term = fields.u64()?;
    message.log_term = fields.u64()?;
    message.index = fields.u64()?;
    message.commit = fields.u64()?;
    message.commit_term = fields.u64()?;
    message.request_snapshot = fields.u64()?;
    message.reject_hint = fields.u64()?;
    message.priority = fields.u64()? as i64;
    message.context = whole.slice_ref(fields.bytes()?);
    for _ in 0..fields.u64()? {
        let is_normal = fields.u8()? == 0;
        let entry_type = if is_normal { EntryType::EntryNormal } else { EntryType::EntryConfChangeV2 };
        let (term, index) = (fields.u64()?, fields.u64()?);
        let data = whole.slice_ref(fields.bytes()?);
        message.entries.push(Entry { entry_type, term, index, data, ..Entry::default() });
    }
    if message.msg_type == MessageType::MsgSnapshot {
        let mut snapshot = Snapshot::default();
        let mut metadata =
            SnapshotMetadata { index: fields.u64()?, term: fields.u64()?, ..SnapshotMetadata::default() };
        let mut members = ConfState::default();
        for nodes in [&mut members.voters, &mut members.learners] {
            for _ in 0..fields.u64()? {
                nodes.push(fields.u64()?);
            }
        }
        metadata.set_conf_state(members);
        snapshot.set_metadata(metadata);
        snapshot.data = whole.slice_ref(fields.bytes()?);
        message.set_snapshot(snapshot);
    }
    fields.whole(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::Random;

    fn raft(random: &mut Random) -> RaftMessage {
        let mut message = RaftMessage {
            msg_type: KINDS[random.index(SPOKEN)],
            to: random.below(5),
            from: random.below(5),
            term: random.next_u64(),
            log_term: random.below(9),
            index: random.below(9),
            commit: random.below(9),
            reject: random.chance(1, 2),
            reject_hint: random.below(9),
            priority: -3,
            context: vec![7; random.index(9)].into(),
            ..RaftMessage::default()
        };
        for index in 0..random.below(4) {
            let data = vec![9; random.index(100)].into();
            let entry_type = *[EntryType::EntryNormal, EntryType::EntryConfChangeV2]
                .get(random.index(2))
                .expect("one of two");
            message.entries.push(Entry { entry_type, term: 3, index, data, ..Entry::default() });
        }
        if message.msg_type == MessageType::MsgSnapshot {
            let mut snapshot = Snapshot { data: vec![1, 2].into(), ..Snapshot::default() };
            let members = ConfState { voters: vec![1, 2, 3], learners: vec![4], ..ConfState::default() };
            snapshot.mut_metadata().set_conf_state(members);
            snapshot.mut_metadata().index = random.below(100);
            message.set_snapshot(snapshot);
        }
        message
    }

    /// Goal: what is said is what is heard; cut short or changed it is something else or nothing, and never a panic.
    #[test]
    fn messages_read_back_and_garbage_does_not_panic() {
        let mut random = Random::seeded(1);
        for turn in 0..500 {
            let message = match turn % 7 {
                0 => Message::Raft(raft(&mut random)),
                1 => {
                    let digest = |part: u64| Digest { part: format!("table t{part}"), value: part << 40 };
                    let digests = (0..random.below(4)).map(digest).collect();
                    Message::Digests {
                        node: 2,
                        seq: Seq(random.next_u64()),
                        digests,
                        asks: random.chance(1, 2),
                    }
                }
                6 => Message::FilledFrom { seq: random.next_u64() },
                2 => Message::WantPart {
                    node: 3,
                    seq: Some(random.below(3)).filter(|seq| *seq > 0),
                    offset: random.next_u64(),
                },
                3 => {
                    let point = Point { seq: 9, index: random.below(9), term: 2 };
                    let (total, offset, bytes) =
                        (random.next_u64(), random.below(9), vec![7; random.index(90)]);
                    let member = |node| Member { node, address: format!("node{node}"), votes: node != 3 };
                    let members = (1..random.below(5)).map(member).collect();
                    Message::Part { part: Part { point, total, offset, bytes }, members, members_at: 4 }
                }
                4 => Message::Succeeds {
                    member: Member {
                        node: 3 + (1 << 32),
                        address: "node3".into(),
                        votes: random.chance(1, 2),
                    },
                    is_first_hand: random.chance(1, 2),
                },
                _ => {
                    let proposal = ProposalId { node: 1, life: random.next_u64(), serial: 9 };
                    let part = content::Part { proposal, count: 1 + random.below(9) as u32 };
                    let handed = vec![5; random.index(50)].into();
                    Message::Proposal(Proposal { term: 4, oldest: 8, part, handed, alone: turn % 4 == 1 })
                }
            };
            let bytes = message.encode();
            assert_eq!(Message::decode(&bytes.clone().into()), Some(message));
            let cut = Bytes::from(bytes[..random.index(bytes.len())].to_vec());
            assert_eq!(Message::decode(&cut), None, "a message that is cut short");
            let mut changed = bytes;
            let at = random.index(changed.len());
            changed[at] = random.next_u64() as u8;
            let _ = Message::decode(&changed.into());
        }
    }
}
