//! One replica of the log on one node: what is handed in here, what is agreed on, and who is told.
//!
//! ```text
//!   calls handed in here ----> proposals --+--> to the leader, if that is another node
//!                                          |
//!   proposals of other nodes --------------+--> gathering (the leader's) --> agreement --> execution
//!                                                                                |
//!   readers -----------------> reads ------- "agreed on up to here" -------------'
//! ```
//!
//! Everything here happens when its owner says so: a thread of the node, or a simulation.

use crate::agreement::{Agreement, Standing, Turn};
use crate::content;
use crate::digests::{Compared, Digests};
use crate::gathering::Gathering;
use crate::proposals::Proposals;
use crate::reads::Reads;
use crate::wire::Message;
use crate::{KeptCheckpoints, Member, Point, envelope, succession};
use bytes::Bytes;
use fabius_engine::Batch;
use fabius_engine::checkpoint::Digest;
use fabius_env::{Network, NodeId};
use fabius_log::Log;
use fabius_value::{Error, Result, Seq, SqlState};
use raft::eraftpb::{ConfChangeType, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries on their way to being agreed on, beyond which a leader gathers more before it proposes the next.
const PROPOSED_ENTRIES: u64 = 4;
/// Ticks for which it gathers at most.
const EPOCH_TICKS: u64 = 1;
/// Ticks after which a node whose digests are missing is asked for them.
const DIGEST_TICKS: u64 = 40;
/// Ticks after which a successor asks again to be let in.
const SUCCESSION_TICKS: u64 = 10;
/// Bytes of calls that can be handed in as one batch.
pub const BATCH_BYTES: usize = 16 << 20;

/// An entry that is agreed on.
pub struct Agreed {
    /// The entry's index.
    pub index: u64,
    /// The sequence number of its first call.
    pub first_seq: Seq,
    /// The term in which it was proposed.
    pub term: u64,
    /// How many sequence numbers it takes.
    pub count: u32,
    /// This node's batches in it, each with the place of its first call.
    pub ours: Vec<(u32, Arc<Batch>)>,
    data: Bytes,
}

impl Agreed {
    fn of(entry: &Entry, first_seq: Seq, count: u32, ours: Vec<(u32, Arc<Batch>)>) -> Agreed {
        let data = envelope::content(entry).map_or_else(Bytes::new, |_| entry.data.clone());
        Agreed { index: entry.index, term: entry.term, first_seq, count, ours, data }
    }

    /// The entry that a batch of a node's log holds, agreed on or not; nothing if it holds none.
    pub fn in_log(batch: &[u8], first_seq: Seq, count: u32) -> Option<Agreed> {
        Some(Agreed::of(&envelope::decode(batch)?, first_seq, count, Vec::new()))
    }

    /// What an engine takes; nothing if there is nothing to take.
    pub fn taken(&self) -> Option<&[u8]> {
        content::decode(&self.data).map(|content| content.taken)
    }

    /// An entry at this one's place in the order, at which nothing happens.
    pub fn emptied(self) -> Agreed {
        Agreed { data: Bytes::new(), ..self }
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Where it ends.
    pub fn point(&self) -> Point {
        let seq = self.first_seq.0 + u64::from(self.count) - 1;
        Point { seq, index: self.index, term: self.term }
    }
}

/// Who takes what is agreed on.
pub trait Execution {
    /// Takes the next entry.
    ///
    /// # Errors
    /// Why this node cannot go on; the others may.
    fn take(&mut self, agreed: Agreed) -> Result<()>;

    /// Tells those who wait for a batch that it is not agreed on, and never will be.
    fn refuse(&mut self, batch: Arc<Batch>, reason: Error);

    /// Completes these readers once everything taken so far can be read.
    fn reached(&mut self, readers: Vec<Arc<Batch>>);
}

/// How a turn has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnEnd {
    /// Whether there are other members than before.
    pub members_changed: bool,
    /// Whether there is more to do at once.
    pub has_more: bool,
}

/// Where a replica's messages go.
pub trait Outbox {
    /// Sends a message to a node; it may be lost.
    fn send(&mut self, to: u64, message: Vec<u8>);
}

impl Outbox for &dyn Network {
    fn send(&mut self, to: u64, message: Vec<u8>) {
        Network::send(*self, NodeId(to), message);
    }
}

/// Why calls were not agreed on that were for one term alone.
pub fn other_leader() -> Error {
    Error::new(SqlState::SERIALIZATION_FAILURE, "the cluster has another leader now")
        .with_detail("what was handed in was not run")
        .with_hint("connect to the node that leads, and try again")
}

/// One replica of the log.
pub struct Replica {
    agreement: Agreement,
    proposals: Proposals,
    gathering: Gathering,
    reads: Reads,
    digests: Digests,
    compared: Option<Compared>,
    /// What this node has computed, and the others are to be told.
    computed: Vec<(Seq, Vec<Digest>)>,
    checkpoints: Arc<KeptCheckpoints>,
    /// What others are to be told, and who.
    answers: Vec<(u64, Message)>,
    /// The log up to here is to be let go of.
    discarded: Option<Point>,
    tick: u64,
    /// When this leader last proposed.
    proposed: u64,
    /// The newest time that any entry was given.
    time_us: i64,
    /// Where the next entry begins.
    next_seq: Seq,
    /// The last entry handed out.
    handed_out: u64,
    /// Whether it proposes nothing for now.
    holds_back: bool,
    counts: BTreeMap<&'static str, u64>,
}

impl Replica {
    pub(crate) fn new(
        agreement: Agreement,
        life: u64,
        taken: Point,
        checkpoints: Arc<KeptCheckpoints>,
    ) -> Replica {
        let node = agreement.node();
        Replica {
            agreement,
            proposals: Proposals::new(node, life),
            gathering: Gathering::default(),
            reads: Reads::new(node, life),
            digests: Digests::default(),
            compared: None,
            computed: Vec::new(),
            checkpoints,
            answers: Vec::new(),
            discarded: None,
            tick: 0,
            proposed: 0,
            time_us: i64::MIN,
            next_seq: Seq(taken.seq + 1),
            handed_out: taken.index,
            holds_back: false,
            counts: BTreeMap::new(),
        }
    }

    /// The node that it is of.
    pub fn node(&self) -> u64 {
        self.agreement.node()
    }

    /// The log under it.
    pub fn log(&self) -> &Arc<Log> {
        self.agreement.log()
    }

    /// The index of the last entry that was handed out to be executed.
    pub fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Whether a leader proposes nothing for now, because it is behind with executing.
    pub fn hold_back(&mut self, holds: bool) {
        self.holds_back = holds;
    }

    /// How this node stands to the others.
    pub fn standing(&self) -> Standing {
        self.agreement.standing()
    }

    /// The members that this node knows of.
    pub fn members(&self) -> &[Member] {
        self.agreement.members()
    }

    /// Takes calls that somebody waits for.
    ///
    /// # Errors
    /// `54000` if they are too large to be agreed on at once.
    /// With a fence, they are agreed on in that term or not at all (`40001`).
    pub fn hand_in(&mut self, batch: Arc<Batch>, fence: Option<u64>) -> Result<()> {
        self.take_in(batch, false, fence)
    }

    /// Takes an entry other than calls, whose bytes are the batch's.
    ///
    /// # Errors
    /// As [`hand_in`](Self::hand_in).
    pub fn amend(&mut self, entry: Arc<Batch>, fence: Option<u64>) -> Result<()> {
        self.take_in(entry, true, fence)
    }

    fn take_in(&mut self, batch: Arc<Batch>, alone: bool, fence: Option<u64>) -> Result<()> {
        if batch.calls().len() > BATCH_BYTES {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "too much to be agreed on at once")
                .with_detail(format!("{} bytes, at most {BATCH_BYTES} are allowed", batch.calls().len()))
                .with_hint("hand the calls in as several batches"));
        }
        self.proposals.hand_in(batch, alone, fence);
        Ok(())
    }

    /// Takes a reader: the batch, which has no calls, is complete once this node shows everything that anybody was
    /// told of before.
    pub fn read(&mut self, reader: Arc<Batch>) {
        self.reads.wait(reader);
    }

    /// Hands the lead to another member.
    pub fn transfer(&mut self, to: u64) {
        self.agreement.transfer(to);
    }

    /// Proposes another member, or that one has a vote.
    ///
    /// # Errors
    /// `55000` if this node does not lead, or the change before is not agreed on yet.
    pub fn add(&mut self, member: &Member) -> Result<()> {
        let change = if member.votes { ConfChangeType::AddNode } else { ConfChangeType::AddLearnerNode };
        self.agreement.propose_member(change, member)
    }

    /// Proposes that a node is no member any more.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn remove(&mut self, node: u64) -> Result<()> {
        let gone = Member { node, address: String::new(), votes: false };
        self.agreement.propose_member(ConfChangeType::RemoveNode, &gone)
    }

    /// Takes what this node has computed of the state at a seq where every node takes a checkpoint: the next turn
    /// tells the others, and ends with an error if a majority has computed something else.
    pub fn compare(&mut self, seq: Seq, digests: Vec<Digest>) {
        self.computed.push((seq, digests));
    }

    fn note_digests(&mut self, node: u64, seq: Seq, digests: Vec<Digest>) -> Result<()> {
        self.digests.note(node, seq, digests);
        let voters = self.members().iter().filter(|member| member.votes).map(|member| member.node);
        let voters: Vec<u64> = voters.collect();
        self.compared = self.digests.compared(self.node());
        if let Err(differs) = self.digests.judge(self.node(), seq, &voters) {
            // Also in its next life.
            self.agreement.stay_out(seq)?;
            return Err(differs);
        }
        if self.digests.is_confirmed(self.node(), seq, &voters) {
            self.checkpoints.confirm(seq);
        }
        Ok(())
    }

    /// Asks those whose digests are missing; they may have been lost.
    fn ask_for_digests(&mut self) {
        let me = self.node();
        let Some((seq, digests)) = self.digests.newest(me) else { return };
        let missing = |node: &u64| *node != me && self.digests.of(*node, seq).is_none();
        let message = Message::Digests { node: me, seq, digests: digests.clone(), asks: true };
        let missing = self.members().iter().map(|member| member.node).filter(missing);
        let asked: Vec<_> = missing.map(|node| (node, message.clone())).collect();
        self.answers.extend(asked);
    }

    /// This node as a successor that does not have yet what the one before it had; none if it has, or is none.
    fn claimant(&self) -> Option<Member> {
        let (me, votes) = (self.node(), self.agreement.claims_vote());
        let member = self.members().iter().find(|member| member.node == me)?;
        let claimant = Member { votes, ..member.clone() };
        succession::next_change(self.members(), &claimant).map(|_| claimant)
    }

    /// Whether this node has no seat to come into.
    pub fn is_seated(&self) -> bool {
        self.claimant().is_none()
    }

    /// Asks for the next step into this node's seat.
    fn ask_to_succeed(&mut self) {
        if let Some(claimant) = self.claimant() {
            let others = self.members().iter().filter(|other| other.node != claimant.node);
            let asks = Message::Succeeds { member: claimant.clone(), is_first_hand: true };
            let asked: Vec<_> = others.map(|other| (other.node, asks.clone())).collect();
            self.answers.extend(asked);
        }
    }

    /// Takes the next step by which a successor comes into its seat, if this node leads and can take it now; else
    /// whoever leads is told, whom the successor may not know.
    fn let_succeed(&mut self, successor: Member, is_first_hand: bool) {
        let Standing { leads, leader, .. } = self.standing();
        match leader {
            _ if leads => {
                if let Some((change, member)) = succession::next_change(self.members(), &successor)
                    && self.agreement.propose_member(change, &member).is_ok()
                {
                    self.count("a successor came closer to its seat");
                }
            }
            Some(leader) if is_first_hand => {
                self.answers.push((leader, Message::Succeeds { member: successor, is_first_hand: false }));
            }
            _ => {}
        }
    }

    /// The newest state that was compared with another node's.
    pub fn compared(&self) -> Option<&Compared> {
        self.compared.as_ref()
    }

    /// Lets go of the log up to a place of which there is a checkpoint, unless a member is still on the way there.
    /// Whoever comes later is filled from a checkpoint. The next turn does it.
    pub fn discard_up_to(&mut self, point: Point) {
        self.discarded = Some(point);
    }

    /// Lets time go on.
    ///
    /// # Errors
    /// Why this node must not go on.
    pub fn tick(&mut self) -> Result<()> {
        self.tick += 1;
        if self.tick.is_multiple_of(DIGEST_TICKS) {
            self.ask_for_digests();
        }
        if self.tick.is_multiple_of(SUCCESSION_TICKS) {
            self.ask_to_succeed();
        }
        self.agreement.tick()
    }

    /// Hears what another node says.
    ///
    /// # Errors
    /// `XX001` if it shows that this node must not go on.
    pub fn hear(&mut self, message: &Bytes) -> Result<()> {
        match Message::decode(message) {
            Some(Message::Raft(message)) => self.agreement.hear(message),
            Some(Message::Proposal(proposal)) => {
                if proposal.is_sound() && !self.gathering.take(proposal) {
                    self.count("a proposal came twice or too late");
                }
                Ok(())
            }
            Some(Message::Digests { node, seq, digests, asks }) if node != self.node() => {
                self.count("digests were compared");
                let ours = self.digests.of(self.node(), seq).cloned();
                if let Some(digests) = ours.filter(|_| asks) {
                    let answer = Message::Digests { node: self.node(), seq, digests, asks: false };
                    self.answers.push((node, answer));
                }
                self.note_digests(node, seq, digests)
            }
            Some(Message::WantPart { node, seq, offset }) => {
                // What cannot be read is asked of another node.
                if let Ok(Some(part)) = self.checkpoints.part(seq, offset) {
                    self.count("a part of a checkpoint was sent");
                    let (members, members_at) = self.agreement.members_and_place();
                    self.answers.push((node, Message::Part { part, members, members_at }));
                }
                Ok(())
            }
            Some(Message::FilledFrom { seq }) => {
                self.checkpoints.fill_from(Seq(seq));
                Ok(())
            }
            Some(Message::Succeeds { member, is_first_hand }) => {
                self.let_succeed(member, is_first_hand);
                Ok(())
            }
            // Also what comes late to a node that was filled.
            Some(Message::Digests { .. } | Message::Part { .. }) => Ok(()),
            // Whoever sent it may be of another version, or nobody of us.
            None => Ok(()),
        }
    }

    /// Does what has come up since the last turn, at a time of this node's clock.
    ///
    /// # Errors
    /// What ended the log, or as the disk fails: this node must not go on.
    pub fn turn(
        &mut self,
        now_us: i64,
        outbox: &mut dyn Outbox,
        execution: &mut dyn Execution,
    ) -> Result<TurnEnd> {
        let mut members_changed = false;
        // Whoever needs what goes has to find something to be filled from.
        let checkpoints = &self.checkpoints;
        if let Some(point) = self.discarded.take_if(|point| checkpoints.can_fill(Seq(point.seq))) {
            self.agreement.discard_up_to(point)?;
        }
        for (to, answer) in self.answers.drain(..) {
            outbox.send(to, answer.encode());
        }
        for (seq, digests) in std::mem::take(&mut self.computed) {
            let message =
                Message::Digests { node: self.node(), seq, digests: digests.clone(), asks: false }.encode();
            let others = self.members().iter().filter(|member| member.node != self.node());
            others.for_each(|member| outbox.send(member.node, message.clone()));
            self.note_digests(self.node(), seq, digests)?;
        }
        loop {
            let done = self.agreement.turn()?;
            members_changed |= done.members_changed;
            let has_more = done.has_more;
            self.hand_out(done, outbox, execution)?;
            if has_more || !self.propose(now_us, outbox, execution) {
                return Ok(TurnEnd { members_changed, has_more });
            }
        }
    }

    fn hand_out(&mut self, done: Turn, outbox: &mut dyn Outbox, execution: &mut dyn Execution) -> Result<()> {
        for message in done.messages {
            outbox.send(message.to, Message::Raft(message).encode());
        }
        for entry in done.given {
            let agreed = self.agreed(&entry);
            execution.take(agreed)?;
        }
        for (request, index) in done.reads {
            self.reads.answer(&request, index);
        }
        let readers = self.reads.reached(self.handed_out);
        if !readers.is_empty() {
            execution.reached(readers);
        }
        Ok(())
    }

    fn agreed(&mut self, entry: &Entry) -> Agreed {
        let count = envelope::seqs(entry);
        let content = envelope::content(entry);
        let parts = content.iter().flat_map(content::Content::parts);
        let ours = self.proposals.agreed(entry.term, parts);
        let first_seq = self.next_seq;
        self.next_seq = Seq(first_seq.0 + u64::from(count));
        self.handed_out = entry.index;
        Agreed::of(entry, first_seq, count, ours)
    }

    /// Sends on what waits, proposes what was gathered, and asks for readers; whether there was anything.
    fn propose(&mut self, now_us: i64, outbox: &mut dyn Outbox, execution: &mut dyn Execution) -> bool {
        let mut any = false;
        let Standing { term, leader, leads, agreed, last, .. } = self.standing();
        if leads && self.gathering.term() != term {
            self.gathering.begin(term);
        }
        for batch in self.proposals.take_fenced_off(term) {
            any = true;
            self.count("a fenced proposal was refused");
            execution.refuse(batch, other_leader());
        }
        if let Some(leader) = leader {
            let mut again = self.proposals.again(term, self.tick).into_iter();
            again.as_slice().iter().for_each(|_| self.count("a proposal was sent again to the same leader"));
            while let Some(proposal) = again.next().or_else(|| self.proposals.next(term, self.tick)) {
                any = true;
                match leads {
                    true => drop(self.gathering.take(proposal)),
                    false => outbox.send(leader, Message::Proposal(proposal).encode()),
                }
            }
            if let Some(request) = self.reads.request(self.tick) {
                any = true;
                self.agreement.request_read(request);
            }
        }
        let mut on_their_way = last - agreed;
        while leads && !self.holds_back && !self.gathering.is_empty() {
            let may_wait = on_their_way >= PROPOSED_ENTRIES && self.tick < self.proposed + EPOCH_TICKS;
            if may_wait && !self.gathering.is_full() {
                break;
            }
            self.time_us = self.time_us.max(now_us).max(self.agreement.time_us());
            let Some(entry) = self.gathering.next(self.time_us) else { break };
            if !self.agreement.propose(entry.clone()) {
                self.count("an entry could not be proposed at once");
                self.gathering.put_back(entry);
                break;
            }
            (any, on_their_way, self.proposed) = (true, on_their_way + 1, self.tick);
        }
        any
    }

    /// How often things have happened that do not happen always, by name.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let (cuts, read_again) = self.agreement.log_counts();
        let mut counts = self.counts.clone();
        counts.insert("a proposal was lost with its leader", self.proposals.lost);
        counts.insert("a read was asked for again", self.reads.asked_again);
        counts.insert("entries were cut off a log", cuts);
        counts.insert("an entry was read from the segments", read_again);
        counts
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Tells everybody who waits why nothing will come of it on this node.
    pub fn fail(&mut self, error: &Error, now_ns: u64) {
        self.proposals.fail(error, now_ns);
        self.reads.fail(error, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Opening, Replication, init};
    use fabius_engine::entry;
    use fabius_env::{Disk, SimulatedDisk};
    use fabius_log::{DatabaseId, Flusher, LogError, LogOptions};

    /// Notes what is taken.
    #[derive(Default)]
    struct Taken(Vec<Point>);

    impl Execution for Taken {
        fn take(&mut self, agreed: Agreed) -> Result<()> {
            self.0.push(agreed.point());
            Ok(())
        }

        fn refuse(&mut self, _batch: Arc<Batch>, _reason: Error) {}

        fn reached(&mut self, _readers: Vec<Arc<Batch>>) {}
    }

    struct Nowhere;

    impl Outbox for Nowhere {
        fn send(&mut self, _to: u64, _message: Vec<u8>) {}
    }

    /// Goal: the log stays until others can be filled from a checkpoint that goes as far as what is to go.
    #[test]
    fn the_log_is_kept_until_others_can_be_filled() {
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
        init(&*disk, 1, vec![Member { node: 1, address: "node1".into(), votes: true }])
            .expect("an empty disk");
        let opening = Opening::begin(disk.clone(), Seq::ZERO).expect("a node");
        let options = LogOptions { flusher: Flusher::Manual, ..LogOptions::new(DatabaseId([9; 16])) };
        let (log, _) = Log::open(disk.clone(), options, |_| Ok::<(), LogError>(())).expect("an empty log");
        let (log, checkpoints) = (Arc::new(log), Arc::new(KeptCheckpoints::new(disk)));
        let mut replica =
            opening.finish(log.clone(), 7, checkpoints.clone(), Replication::Agreed).expect("it fits");
        let mut taken = Taken::default();
        replica.amend(Batch::of(entry::encode_nothing(), 1), None).expect("a small entry");
        for _ in 0..100 {
            replica.tick().expect("it goes on");
            replica.turn(0, &mut Nowhere, &mut taken).expect("it goes on");
            log.flush_now().expect("a sound disk");
        }
        let point = *taken.0.last().expect("it agrees with itself");
        checkpoints.note(point);
        replica.discard_up_to(point);
        replica.turn(0, &mut Nowhere, &mut taken).expect("it goes on");
        assert_eq!(replica.standing().first, 1);
        checkpoints.confirm(Seq(point.seq));
        replica.turn(0, &mut Nowhere, &mut taken).expect("it goes on");
        assert_eq!(replica.standing().first, point.index + 1);
    }
}
