//! Agreement on the log: Raft, stepped by its owner and by nobody else.
//!
//! Nothing here waits, keeps time or has a thread, so that a simulation can drive it. What comes in are messages,
//! ticks and proposals; [`Agreement::turn`] then does what they have led to:
//!
//! ```text
//!   proposals, messages, ticks
//!        |
//!        v                                          messages that promise nothing: at once
//!   +---------+  entries    +-----+  durable up to  messages that promise something: once it is durable
//!   |  Raft   | ----------> | log | -------------->
//!   +---------+             +-----+
//!        |  term, vote: written and synced before anything else is done
//!        '--------------------------------------->  entries that are agreed on
//! ```
//!
//! Entries are appended to the log without waiting for them: the log syncs them in groups, and meanwhile more is
//! appended. What a node promises others, that it has voted or that it holds an entry, leaves it behind the sync
//! (Ongaro, "Consensus: bridging theory and practice", 2014, section 10.2).

use crate::agreed_log::{AgreedLog, Collected};
use crate::hard_state::{Fill, HardState};
use crate::{Member, Point, Replication, content, envelope};
use bytes::Bytes;
use fabius_engine::foundation::{log_error, panicked};
use fabius_env::Disk;
use fabius_log::Log;
use fabius_value::{Error, Result, Seq, SqlState};
use protobuf::Message as _;
use raft::eraftpb::{ConfChangeSingle, ConfChangeType, ConfChangeV2, Entry, EntryType, Message, MessageType};
use raft::{Config, RawNode, SnapshotStatus, StateRole};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Ticks without a word of the leader after which a node stands for election, at least; at most twice as many.
pub(crate) const ELECTION_TICKS: usize = 10;
/// Ticks between two heartbeats.
const HEARTBEAT_TICKS: usize = 2;
/// Bytes of entries in one message, about.
const MESSAGE_BYTES: u64 = 1 << 20;
/// Messages with entries on their way to one node.
const MESSAGES_IN_FLIGHT: usize = 128;
/// Bytes of entries that are proposed and not yet agreed on, about; more are not taken.
const PROPOSED_BYTES: u64 = 64 << 20;
/// Bytes of a node's address.
const ADDRESS_BYTES: usize = 255;
/// Ticks after which a node of which nothing is heard is away: the log is not kept for it.
const AWAY_TICKS: u64 = 4 * ELECTION_TICKS as u64;
/// Ticks for which a node that was removed waits for others who do not know it yet.
const LEAVING_TICKS: u64 = 5 * ELECTION_TICKS as u64;
/// Entries that a node may be behind that is given a vote.
const FAR_BEHIND: u64 = 10_000;
/// Bytes of agreed entries that one turn gives, about.
const AGREED_BYTES: u64 = 4 << 20;

/// `cannot_connect_now`: a node that has run ahead of the others, and has to begin again.
const RAN_AHEAD: SqlState = SqlState(*b"57P03");

/// One node's part in agreeing on one log.
pub(crate) struct Agreement {
    raft: RawNode<AgreedLog>,
    disk: Arc<dyn Disk>,
    /// What is on the disk.
    hard_state: HardState,
    /// What waits for the log to be durable, in the order of it.
    unsynced: VecDeque<Unsynced>,
    /// The last entry that a turn has given as agreed on.
    agreed: u64,
    replication: Replication,
    /// The last entry that a turn has given to be taken; with asynchronous replication a leader is ahead of what is
    /// agreed on.
    given: Point,
    /// If it was agreed on that this node is no member any more: the ticks since another node has asked something of
    /// it. Others may not know it yet, and need its vote to find out; when nobody asks, it is over.
    leaving: Option<u64>,
    /// Ticks so far, and at which of them each node was heard last.
    ticks: u64,
    heard: BTreeMap<u64, u64>,
    /// The newest tick at which it is sure to have known what was agreed on.
    knew_at: u64,
    /// At which tick each node has answered a heartbeat last.
    beats: BTreeMap<u64, u64>,
    /// Draws how long this node waits before it stands for election.
    seed: u64,
    elections: u64,
}

/// Something Raft was told to persist.
struct Unsynced {
    number: u64,
    /// It is once the log is durable up to here.
    last_seq: u64,
    messages: Vec<Message>,
}

/// What a turn has led to.
#[derive(Default)]
pub(crate) struct Turn {
    /// To be sent.
    pub(crate) messages: Vec<Message>,
    /// To be taken, in order.
    pub(crate) given: Vec<Entry>,
    /// Requests to read, and the index up to which entries have to be taken first.
    pub(crate) reads: Vec<(Vec<u8>, u64)>,
    /// Whether there are other members than before.
    pub(crate) members_changed: bool,
    given_bytes: u64,
    /// Whether it has ended before all was done, because so much is to be taken.
    pub(crate) has_more: bool,
}

/// How a node stands to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The newest term that it knows of.
    pub term: u64,
    /// The leader of that term, if it knows one.
    pub leader: Option<u64>,
    /// Whether it is the leader itself.
    pub leads: bool,
    /// Entries up to this index are agreed on, as far as it knows.
    pub agreed: u64,
    /// The first entry that its log still has, or would have.
    pub first: u64,
    /// The last entry of its log.
    pub last: u64,
    /// Ticks since it is sure to have known what was agreed on: since it has heard of the leader, or, where it leads,
    /// since a majority has answered it.
    pub silent: u64,
}

impl Agreement {
    /// Goes on with a log that was opened, behind what was taken of it already.
    ///
    /// # Errors
    /// `XX001` if log and hard state do not fit each other.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        log: Arc<Log>,
        collected: Collected,
        hard_state: HardState,
        taken: Point,
        seed: u64,
        replication: Replication,
    ) -> Result<Agreement> {
        let store = AgreedLog::new(log, collected, &hard_state, taken.index);
        if store.last().index < taken.index {
            return Err(Error::new(SqlState::DATA_CORRUPTED, "the log ends before the newest checkpoint"));
        }
        // It is only ever of an entry that was durable here.
        if store.last().index < hard_state.commit {
            return Err(lost(hard_state.commit, store.last().index));
        }
        let config = Config {
            id: hard_state.node,
            election_tick: ELECTION_TICKS,
            heartbeat_tick: HEARTBEAT_TICKS,
            applied: taken.index,
            max_size_per_msg: MESSAGE_BYTES,
            max_inflight_msgs: MESSAGES_IN_FLIGHT,
            check_quorum: true,
            pre_vote: true,
            max_uncommitted_size: PROPOSED_BYTES,
            max_committed_size_per_ready: AGREED_BYTES,
            // Joined messages would have no bound.
            batch_append: false,
            ..Config::default()
        };
        let silent = slog::Logger::root(slog::Discard, slog::o!());
        let raft = RawNode::new(&config, store, &silent).map_err(|error| refused(&error))?;
        let unsynced = VecDeque::new();
        let agreed = taken.index;
        let mut agreement = Agreement {
            raft,
            disk,
            hard_state,
            unsynced,
            agreed,
            replication,
            given: taken,
            leaving: None,
            ticks: 0,
            heard: BTreeMap::new(),
            knew_at: 0,
            beats: BTreeMap::new(),
            seed,
            elections: 0,
        };
        agreement.draw_timeout();
        Ok(agreement)
    }

    /// How this node stands to the others.
    pub(crate) fn standing(&self) -> Standing {
        let raft = &self.raft.raft;
        Standing {
            term: raft.term,
            leader: Some(raft.leader_id).filter(|leader| *leader != raft::INVALID_ID),
            leads: raft.state == StateRole::Leader,
            agreed: raft.raft_log.committed,
            first: self.hard_state.begins.index + 1,
            last: raft.raft_log.last_index(),
            silent: self.ticks - self.knew_at,
        }
    }

    /// The newest tick at which this node knew what was agreed on, by what it has heard since.
    fn knows_since(&self) -> Option<u64> {
        let Standing { leader, leads, .. } = self.standing();
        if !leads {
            return leader.and_then(|leader| self.heard.get(&leader).copied());
        }
        let voters = self.hard_state.members.iter().filter(|member| member.votes);
        let heard = voters.map(|member| match member.node == self.hard_state.node {
            true => self.ticks,
            false => self.heard.get(&member.node).copied().unwrap_or(0),
        });
        let mut heard: Vec<u64> = heard.collect();
        heard.sort_unstable_by(|a, b| b.cmp(a));
        heard.get(heard.len() / 2).copied()
    }

    /// The members that this node knows of.
    pub(crate) fn members(&self) -> &[Member] {
        &self.hard_state.members
    }

    /// The members, and the index of the change that has made them so.
    pub(crate) fn members_and_place(&self) -> (Vec<Member>, u64) {
        (self.hard_state.members.clone(), self.hard_state.members_at)
    }

    /// Whether this node has come in the place of one that had a vote.
    pub(crate) fn claims_vote(&self) -> bool {
        self.hard_state.claims_vote
    }

    /// Lets go of the log up to a place, unless a member that is there still needs it.
    ///
    /// # Errors
    /// What ended the log, or as the disk fails: this node must not go on.
    pub(crate) fn discard_up_to(&mut self, point: Point) -> Result<()> {
        self.guarded(|agreement| {
            let raft = &agreement.raft.raft;
            let is_there = |node: &u64| {
                agreement.heard.get(node).is_some_and(|heard| agreement.ticks - heard <= AWAY_TICKS)
            };
            let is_needed = raft.state == StateRole::Leader
                && raft.prs().iter().any(|(node, progress)| is_there(node) && progress.matched < point.index);
            if is_needed || point.index <= agreement.hard_state.begins.index {
                return Ok(());
            }
            agreement.hard_state.begins = point;
            agreement.hard_state.commit = agreement.hard_state.commit.max(point.index);
            agreement.write_hard_state()?;
            agreement.raft.mut_store().discard_up_to(point)
        })
    }

    /// This node.
    pub(crate) fn node(&self) -> u64 {
        self.hard_state.node
    }

    /// The log.
    pub(crate) fn log(&self) -> &Arc<Log> {
        self.raft.store().log()
    }

    /// Does something with Raft. Its library panics where its log cannot be read, and where it meets what cannot be:
    /// then this node must not go on, and nothing is asked of the library again.
    fn guarded<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.leaving.is_some_and(|silence| silence > LEAVING_TICKS) {
            return Err(Error::new(SqlState::NOT_IN_STATE, "this node was removed from its cluster")
                .with_hint(
                    "its number is not used again; to come back, it begins as a new node in a new directory",
                ));
        }
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        done.unwrap_or_else(|panic| {
            Err(self.raft.store().failure().unwrap_or_else(|| {
                panicked(&*panic).with_hint("this is an error of Fabius, please report it; the others go on")
            }))
        })
    }

    /// Lets time go on.
    ///
    /// # Errors
    /// Why this node must not go on.
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.guarded(|agreement| {
            agreement.pass_tick();
            Ok(())
        })
    }

    fn pass_tick(&mut self) {
        self.ticks += 1;
        self.knew_at = self.knew_at.max(self.knows_since().unwrap_or(0));
        if let Some(silence) = &mut self.leaving {
            *silence += 1;
            // It never stands for election, but votes once it hears nothing of a leader.
            self.raft.raft.election_elapsed += 1;
            return;
        }
        let raft = &self.raft.raft;
        if raft.state != StateRole::Leader && raft.election_elapsed + 1 >= raft.randomized_election_timeout()
        {
            if raft.prs().is_singleton() && !self.unsynced.is_empty() {
                // It would lead at once, and the library wants everything from before to be durable then.
                return;
            }
            self.elections += 1;
        }
        self.raft.tick();
        self.draw_timeout();
    }

    /// Hears a message of another node.
    ///
    /// # Errors
    /// `XX001` if it shows that this node has lost what it once promised to have; why else it must not go on.
    pub(crate) fn hear(&mut self, message: Message) -> Result<()> {
        self.guarded(|agreement| agreement.step(message))
    }

    fn step(&mut self, message: Message) -> Result<()> {
        if !self.is_sound(&message) {
            return Ok(());
        }
        if message.msg_type == MessageType::MsgTimeoutNow && self.leaving.is_some() {
            return Ok(());
        }
        self.leaving = self.leaving.map(|_| 0);
        self.heard.insert(message.from, self.ticks);
        let raft = &self.raft.raft;
        let last = raft.raft_log.last_index();
        if message.msg_type == MessageType::MsgHeartbeat && message.term >= raft.term && message.commit > last
        {
            // The leader says only what this node has acknowledged.
            return Err(lost(message.commit, last));
        }
        if message.msg_type == MessageType::MsgSnapshot && message.term >= raft.term {
            let of = message.get_snapshot().get_metadata();
            if of.index > raft.raft_log.committed && !raft.raft_log.match_term(of.index, of.term) {
                return self.ask_to_be_filled(of.index);
            }
            // It has caught up meanwhile; then the library answers so.
        }
        let size = self.raft.raft.max_msg_size;
        if message.msg_type == MessageType::MsgHeartbeatResponse && !self.is_first_beat(message.from) {
            self.raft.raft.max_msg_size = 0;
        }
        // What Raft refuses of a message is that it is of the past or of a stranger.
        let _ = self.raft.step(message);
        self.raft.raft.max_msg_size = size;
        self.draw_timeout();
        Ok(())
    }

    /// Whether a node answers a heartbeat for the first time in this tick. For each answer the library sends a node
    /// that is behind as many entries as a message holds, the same ones again while it does not know what the node
    /// has. Every batch of reads makes a heartbeat, and a node that comes back answers thousands at once: so it is
    /// sent much once in a tick, and otherwise one entry.
    fn is_first_beat(&mut self, node: u64) -> bool {
        self.beats.insert(node, self.ticks) != Some(self.ticks)
    }

    /// The leader does not have any more what this node needs next: it has to be filled when it is opened again.
    fn ask_to_be_filled(&mut self, index: u64) -> Result<()> {
        self.hard_state.fill = Fill::UpTo(index);
        self.write_hard_state()?;
        Err(Error::new(SqlState::NOT_IN_STATE, "this node is too far behind to go on")
            .with_detail(format!(
                "the others have a checkpoint that goes to index {index}, and the log from there on"
            ))
            .with_hint("start it again: it is filled from another node's checkpoint"))
    }

    /// Whether a message can be one of Raft's: its library takes much for granted, and panics where it is not so.
    fn is_sound(&self, message: &Message) -> bool {
        let raft = &self.raft.raft;
        if message.to != self.hard_state.node || message.from == self.hard_state.node {
            return false;
        }
        match message.msg_type {
            MessageType::MsgAppend => {
                let mut before = (message.index, message.log_term);
                let has_base = (message.index == 0) == (message.log_term == 0);
                has_base
                    && message.entries.iter().all(|entry| {
                        let next = (entry.index, entry.term);
                        let (index, term) = std::mem::replace(&mut before, next);
                        next.0 == index + 1 && (term..=message.term).contains(&next.1)
                    })
            }
            MessageType::MsgAppendResponse => message.reject || message.index <= raft.raft_log.last_index(),
            MessageType::MsgReadIndex => message.entries.len() == 1,
            MessageType::MsgSnapshot => message.get_snapshot().get_metadata().index > 0,
            MessageType::MsgTransferLeader => raft.state == StateRole::Leader,
            _ => true,
        }
    }

    /// Proposes an entry; whether that was possible, which it is for a leader that has not proposed too much already.
    pub(crate) fn propose(&mut self, data: Bytes) -> bool {
        let proposal = Message {
            msg_type: MessageType::MsgPropose,
            from: self.hard_state.node,
            entries: vec![Entry { data, ..Entry::default() }].into(),
            ..Message::default()
        };
        self.raft.raft.state == StateRole::Leader && self.raft.raft.step(proposal).is_ok()
    }

    /// How often entries were cut off the log, and how many were read from its segments.
    pub(crate) fn log_counts(&self) -> (u64, u64) {
        let store = self.raft.store();
        (store.cuts, store.read_again.get())
    }

    /// The newest time that an entry of the log was given.
    pub(crate) fn time_us(&self) -> i64 {
        self.raft.store().time_us()
    }

    /// Proposes another member, or one less.
    ///
    /// # Errors
    /// `55000` if this node does not lead, or the change before is not agreed on yet.
    pub(crate) fn propose_member(&mut self, change: ConfChangeType, member: &Member) -> Result<()> {
        let single =
            ConfChangeSingle { change_type: change, node_id: member.node, ..ConfChangeSingle::default() };
        let entry = ConfChangeV2 {
            changes: vec![single].into(),
            context: Bytes::copy_from_slice(member.address.as_bytes()),
            ..ConfChangeV2::default()
        };
        let not_now = || Error::new(SqlState::NOT_IN_STATE, "the members cannot be changed now");
        let raft = &self.raft.raft;
        if raft.state != StateRole::Leader {
            return Err(not_now().with_detail("this node is not the leader"));
        }
        if change == ConfChangeType::RemoveNode && member.node == self.hard_state.node {
            return Err(not_now()
                .with_detail("the leader cannot remove itself")
                .with_hint("hand the lead to another node first"));
        }
        if raft.has_pending_conf() {
            return Err(not_now().with_detail("a change before this one is not agreed on yet"));
        }
        if member.address.len() > ADDRESS_BYTES {
            return Err(not_now().with_detail("an address of a node has at most 255 bytes"));
        }
        let known = self.hard_state.members.iter().find(|known| known.node == member.node);
        match (change, known) {
            (ConfChangeType::RemoveNode, None) => {
                return Err(not_now().with_detail(format!("node {} is no member", member.node)));
            }
            (ConfChangeType::RemoveNode, Some(_)) | (_, None) => {}
            (ConfChangeType::AddNode, Some(known)) if !known.votes => {
                let follows = raft.prs().get(member.node).is_some_and(|progress| {
                    progress.recent_active && progress.matched + FAR_BEHIND >= raft.raft_log.last_index()
                });
                if !follows {
                    return Err(not_now()
                        .with_detail(format!("node {} does not follow closely enough to have a vote", member.node))
                        .with_hint("a node with a vote that is far behind may keep the others from agreeing; try again"));
                }
            }
            (_, Some(_)) => {
                return Err(not_now().with_detail(format!("node {} is a member already", member.node)));
            }
        }
        self.raft
            .propose_conf_change(Vec::new(), entry)
            .map_err(|error| not_now().with_detail(error.to_string()))
    }

    /// Asks up to where entries have to be taken before what somebody reads now is the newest; [`Turn::reads`] tells,
    /// if no message is lost.
    pub(crate) fn request_read(&mut self, request: Vec<u8>) {
        self.raft.read_index(request);
    }

    /// Hands the lead to another member.
    pub(crate) fn transfer(&mut self, to: u64) {
        // It may be about to be removed.
        if !self.raft.raft.has_pending_conf() {
            self.raft.transfer_leader(to);
        }
    }

    /// Notes that this node has computed something else than the majority, so that it is not opened again.
    ///
    /// # Errors
    /// As the disk fails.
    pub(crate) fn stay_out(&mut self, seq: Seq) -> Result<()> {
        self.hard_state.differs_at = seq.0;
        self.write_hard_state()
    }

    /// Does what has come up since the last turn.
    ///
    /// # Errors
    /// What ended the log, or as the disk fails: this node must not go on.
    pub(crate) fn turn(&mut self) -> Result<Turn> {
        self.guarded(Agreement::do_turn)
    }

    fn do_turn(&mut self) -> Result<Turn> {
        let mut turn = Turn::default();
        loop {
            self.persisted(&mut turn)?;
            if !self.raft.has_ready() {
                self.run_ahead(&mut turn)?;
                return Ok(turn);
            }
            let mut ready = self.raft.ready();
            if let Some((term, vote)) = ready.hs().map(|state| (state.term, state.vote)) {
                self.write_vote(term, vote)?;
            }
            let entries = ready.take_entries();
            if let Some(first) = entries.first() {
                if first.index <= self.given.index {
                    return Err(ran_ahead(first.index));
                }
                let store = self.raft.mut_store();
                if store.cuts_at(first.index) {
                    // What was appended before is durable, and of what is cut off nobody is told.
                    store.log().flush_now().map_err(|error| log_error(&error))?;
                    self.unsynced.iter_mut().for_each(|unsynced| unsynced.last_seq = 0);
                }
                store.append(entries)?;
            }
            let messages = ready.take_messages();
            self.go_on_probing(&messages);
            turn.messages.extend(messages);
            turn.reads
                .extend(ready.take_read_states().into_iter().map(|read| (read.request_ctx, read.index)));
            let agreed = ready.take_committed_entries();
            self.unsynced.push_back(Unsynced {
                number: ready.number(),
                last_seq: self.raft.store().last().seq,
                messages: ready.take_persisted_messages(),
            });
            self.raft.advance_append_async(ready);
            for entry in &agreed {
                if entry.entry_type != EntryType::EntryNormal && entry.index > self.hard_state.members_at {
                    self.change_members(entry)?;
                    turn.members_changed = true;
                }
            }
            if let Some(last) = agreed.last() {
                self.agreed = last.index;
                self.raft.advance_apply_to(last.index);
            }
            agreed.into_iter().for_each(|entry| self.give(entry, &mut turn));
            if turn.given_bytes >= AGREED_BYTES {
                turn.has_more = true;
                self.draw_timeout();
                return Ok(turn);
            }
            self.draw_timeout();
        }
    }

    /// Gives an entry to be taken, if it was not given already.
    fn give(&mut self, entry: Entry, turn: &mut Turn) {
        if entry.index <= self.given.index {
            return;
        }
        let seq = self.given.seq + u64::from(envelope::seqs(&entry));
        self.given = Point { seq, index: entry.index, term: entry.term };
        turn.given_bytes += entry.data.len() as u64;
        turn.given.push(entry);
    }

    /// With asynchronous replication, gives what is durable where this node leads, agreed on or not. What it checks
    /// itself by is only ever done for what is agreed on: checkpoints and changes of members hold back what is behind
    /// them.
    fn run_ahead(&mut self, turn: &mut Turn) -> Result<()> {
        if self.replication == Replication::Agreed || self.raft.raft.state != StateRole::Leader {
            return Ok(());
        }
        let durable = self.log().durable_seq();
        while self.given.index < self.raft.store().last().index {
            let entry = self.raft.store().entry(self.given.index + 1)?;
            let ends = self.given.seq + u64::from(envelope::seqs(&entry));
            let waits = entry.entry_type != EntryType::EntryNormal || content::is_checkpoint(&entry.data);
            if ends > durable || waits {
                break;
            }
            self.give(entry, turn);
            if turn.given_bytes >= AGREED_BYTES {
                turn.has_more = true;
                break;
            }
        }
        Ok(())
    }

    /// A node that is sent a snapshot answers only once it has caught up. Until then the leader tries again, as if it
    /// had failed.
    fn go_on_probing(&mut self, messages: &[Message]) {
        let told = messages.iter().filter(|message| message.msg_type == MessageType::MsgSnapshot);
        for message in told {
            self.raft.report_snapshot(message.to, SnapshotStatus::Failure);
        }
    }

    /// Tells Raft what has become durable, and lets go of the messages that waited for it.
    ///
    /// # Errors
    /// What ended the log: a leader that can write no more must not go on leading.
    fn persisted(&mut self, turn: &mut Turn) -> Result<()> {
        if let Some(failure) = self.log().failure() {
            return Err(log_error(&failure));
        }
        let durable = self.log().durable_seq();
        let mut last = None;
        while let Some(unsynced) = self.unsynced.pop_front_if(|unsynced| unsynced.last_seq <= durable) {
            turn.messages.extend(unsynced.messages);
            last = Some(unsynced.number);
        }
        if let Some(number) = last {
            self.raft.on_persist_ready(number);
        }
        Ok(())
    }

    fn write_vote(&mut self, term: u64, vote: u64) -> Result<()> {
        if (term, vote) == (self.hard_state.term, self.hard_state.vote) {
            return Ok(());
        }
        // Not what is agreed on as Raft knows it now: its entries may not be in the log yet, and others in their
        // places.
        let commit = self.agreed;
        self.hard_state = HardState { term, vote, commit, ..self.hard_state.clone() };
        self.write_hard_state()
    }

    fn write_hard_state(&self) -> Result<()> {
        self.hard_state.write(&*self.disk).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the vote of this node cannot be written")
                .with_detail(format!("{}: {error}", self.disk.directory().display()))
        })
    }

    /// Takes a change of members that is agreed on.
    fn change_members(&mut self, entry: &Entry) -> Result<()> {
        let change = ConfChangeV2::parse_from_bytes(&entry.data).map_err(|error| {
            Error::new(SqlState::DATA_CORRUPTED, "a change of members cannot be read")
                .with_detail(error.to_string())
        })?;
        let address = String::from_utf8_lossy(&change.context).into_owned();
        let me = self.hard_state.node;
        let is_removed = change
            .changes
            .iter()
            .any(|single| single.node_id == me && single.change_type == ConfChangeType::RemoveNode);
        if is_removed {
            return self.begin_to_leave(entry);
        }
        let states = self.raft.apply_conf_change(&change).map_err(|error| refused(&error))?;
        self.raft.mut_store().set_conf_state(states.clone());
        let members = &mut self.hard_state.members;
        for single in &change.changes {
            members.retain(|member| member.node != single.node_id);
            let votes = states.voters.contains(&single.node_id);
            if votes || states.learners.contains(&single.node_id) {
                members.push(Member { node: single.node_id, address: address.clone(), votes });
            }
        }
        members.sort_by_key(|member| member.node);
        self.hard_state.members_at = entry.index;
        self.hard_state.commit = self.hard_state.commit.max(entry.index);
        self.write_hard_state()
    }

    /// Takes the change that removes this node. It leads no more, and never again; Raft's library, which has no place
    /// for a node that is no member, is not told, so that it goes on to vote for those who do not know it yet.
    fn begin_to_leave(&mut self, entry: &Entry) -> Result<()> {
        self.leaving = Some(0);
        let raft = &mut self.raft.raft;
        if raft.state != StateRole::Follower {
            raft.become_follower(raft.term, raft::INVALID_ID);
        }
        self.hard_state.members.retain(|member| member.node != self.hard_state.node);
        self.hard_state.members_at = entry.index;
        self.write_hard_state()
    }

    /// Draws how long this node waits before it stands for election. The library draws by itself, from a source that
    /// no seed reaches, so what it has drawn is put aside after every step.
    fn draw_timeout(&mut self) {
        let raft = &mut self.raft.raft;
        let drawn =
            [self.hard_state.node, raft.term, self.elections].iter().fold(self.seed, |mixed, number| {
                let mixed = (mixed ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                mixed ^ (mixed >> 32)
            });
        raft.set_randomized_election_timeout(ELECTION_TICKS + drawn as usize % ELECTION_TICKS);
    }
}

/// The log ends before what it is known to have had.
fn lost(acknowledged: u64, last: u64) -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "this node has lost entries of its log")
        .with_detail(format!(
            "it has acknowledged the entry with index {acknowledged}, and its log ends with {last}"
        ))
        .with_hint("it stays out; remove it from the cluster, and add a new node")
}

/// What a leader with asynchronous replication has run is not what was agreed on.
fn ran_ahead(index: u64) -> Error {
    Error::new(RAN_AHEAD, "this node has run what was not agreed on")
        .with_detail(format!(
            "it led, with asynchronous replication; what it ran from index {index} on was lost with its lead"
        ))
        .with_hint("start it again: it begins with what is agreed on")
}

/// Whether a node has stopped because it has run what was not agreed on: opened again, it begins with what is.
pub fn has_run_ahead(failure: &Error) -> bool {
    failure.state() == RAN_AHEAD
}

fn refused(error: &raft::Error) -> Error {
    Error::new(SqlState::DATA_CORRUPTED, "what this node knows of its cluster does not fit")
        .with_detail(error.to_string())
}
