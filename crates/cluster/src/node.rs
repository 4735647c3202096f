//! A node of a cluster at work: one thread that agrees with the others, one that executes what is agreed on.
//!
//! ```text
//!   callers --- hand in, read ---> |           |
//!   network --- messages --------> | agreeing  | --- entries ---> | executing | ---> engine ---> callers are told
//!   log ------- durable up to ---> |           |
//! ```
//!
//! The agreeing thread never waits for an engine: a long call does not keep it from telling the others that it lives.

use crate::agreement::Standing;
use crate::digests::Compared;
use crate::{Agreed, Execution, Executor, Member, Point, Replica};
use bytes::Bytes;
use fabius_engine::checkpoint::Digest;
use fabius_engine::{Batch, Foundation};
use fabius_env::sync::{Condvar, Mutex};
use fabius_env::{Network, NodeId};
use fabius_value::{Error, Result, Seq, SqlState};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two ticks: a leader of which nothing is heard for ten to twenty is replaced.
pub const TICK: Duration = Duration::from_millis(50);
/// Messages that are heard before something else is done.
const MESSAGES: usize = 256;
/// Entries that wait to be executed, beyond which no more are agreed on here.
const WAITING: usize = 1_024;

/// A node of a cluster at work. It stops when it is dropped.
pub struct Node {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What callers and the node's threads share.
struct Shared {
    foundation: Arc<Foundation>,
    network: Arc<dyn Network>,
    wishes: Mutex<Vec<Wish>>,
    status: parking_lot::RwLock<Status>,
    queue: Queue,
    stops: AtomicBool,
}

/// How a node stands, and who is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The node's number.
    pub node: u64,
    /// How it stands to the others.
    pub standing: Standing,
    /// The members that it knows of.
    pub members: Vec<Member>,
    /// The index of the last entry that its engine has taken.
    pub taken: u64,
    /// The newest state that it has compared with another node's.
    pub compared: Option<Compared>,
    /// What keeps messages from passing now, in plain words.
    pub complaints: Vec<String>,
}

impl Status {
    /// The leader, if one is known.
    pub fn leader(&self) -> Option<&Member> {
        let leader = self.standing.leader?;
        self.members.iter().find(|member| member.node == leader)
    }
}

/// What somebody wants of the agreeing thread.
enum Wish {
    HandIn(Arc<Batch>, Option<u64>),
    Amend(Arc<Batch>, Option<u64>),
    Read(Arc<Batch>),
    Transfer(u64),
    Add(Member, Arc<Batch>),
    Remove(u64, Arc<Batch>),
    Compare(Seq, Vec<Digest>),
    Discard(Point),
}

/// Entries on their way from the one thread to the other.
struct Queue {
    work: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    work: VecDeque<Work>,
    ends: bool,
    failure: Option<Error>,
    taken: u64,
}

enum Work {
    Take(Agreed),
    Refuse(Arc<Batch>, Error),
    Reached(Vec<Arc<Batch>>),
}

impl Node {
    /// Sets a replica to work.
    ///
    /// # Panics
    /// If the system has no thread for it.
    pub fn start(
        replica: Replica,
        executor: Executor,
        foundation: Arc<Foundation>,
        network: Arc<dyn Network>,
    ) -> Node {
        let status = Status {
            node: replica.node(),
            standing: replica.standing(),
            members: replica.members().to_vec(),
            taken: replica.handed_out(),
            compared: None,
            complaints: Vec::new(),
        };
        let shared = Arc::new(Shared {
            foundation,
            network,
            wishes: Mutex::default(),
            status: parking_lot::RwLock::new(status),
            queue: Queue { work: Mutex::default(), more: Condvar::new() },
            stops: AtomicBool::new(false),
        });
        shared.set_peers(replica.members());
        let waker = shared.network.clone();
        replica.log().on_durable(move |_| waker.wake());
        let (agreeing, executing) = (shared.clone(), shared.clone());
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_string()).spawn(work);
            thread.expect("the system gives us a thread")
        };
        let threads = vec![
            spawn("fabius-agree", Box::new(move || agreeing.agree(replica))),
            spawn("fabius-execute", Box::new(move || executing.execute(executor))),
        ];
        Node { shared, threads: Mutex::new(threads) }
    }

    /// Hands calls in: they are agreed on, wherever the leader is, and complete once this node has taken them.
    /// With a fence, they are agreed on in that term or not at all (`40001`).
    pub fn hand_in(&self, batch: Arc<Batch>, fence: Option<u64>) {
        self.shared.wish(Wish::HandIn(batch, fence));
    }

    /// Hands in an entry other than calls, whose bytes are the batch's.
    pub fn amend(&self, entry: Arc<Batch>, fence: Option<u64>) {
        self.shared.wish(Wish::Amend(entry, fence));
    }

    /// Completes a batch without calls once this node shows everything that anybody was told of before, on any node.
    pub fn read(&self, reader: Arc<Batch>) {
        self.shared.wish(Wish::Read(reader));
    }

    /// Hands the lead to another member, if this node has it.
    pub fn transfer(&self, to: u64) {
        self.shared.wish(Wish::Transfer(to));
    }

    /// Adds a member, or gives one a vote: the batch is complete, without calls, once that is proposed.
    pub fn add(&self, member: Member, proposed: Arc<Batch>) {
        self.shared.wish(Wish::Add(member, proposed));
    }

    /// Removes a member, likewise.
    pub fn remove(&self, node: u64, proposed: Arc<Batch>) {
        self.shared.wish(Wish::Remove(node, proposed));
    }

    /// Compares what this node has computed of the state at a seq, where every node takes a checkpoint, with what the
    /// others have.
    pub fn compare(&self, seq: Seq, digests: Vec<Digest>) {
        self.shared.wish(Wish::Compare(seq, digests));
    }

    /// Lets go of the log up to a place of which there is a checkpoint; see [`Replica::discard_up_to`].
    pub fn discard_up_to(&self, point: Point) {
        self.shared.wish(Wish::Discard(point));
    }

    /// How the node stands.
    pub fn status(&self) -> Status {
        let taken = self.shared.queue.work.lock().taken;
        let mut status = self.shared.status.read().clone();
        status.taken = status.taken.max(taken);
        status.complaints = self.shared.network.complaints();
        if let Some(Compared { seq, differ, .. }) =
            status.compared.as_ref().filter(|compared| !compared.differ.is_empty())
        {
            let others: Vec<String> = differ.iter().map(|node| NodeId(*node).to_string()).collect();
            let others = others.join(", ");
            status
                .complaints
                .push(format!("after the entry with seq {seq}, this node has other rows than {others}"));
        }
        status
    }

    /// Whether this node leads.
    pub fn leads(&self) -> bool {
        self.shared.status.read().standing.leads
    }

    /// The term in which this node leads, if it does.
    pub fn leads_in(&self) -> Option<u64> {
        let Standing { term, leads, .. } = self.shared.status.read().standing;
        leads.then_some(term)
    }

    /// Stops it, and returns once nothing of it goes on; whoever waits is told why.
    pub fn stop(&self, reason: &Error) {
        self.shared.end(reason);
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // What it has panicked with has stopped the engine.
            let _ = thread.join();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stop(&Error::new(SqlState::SHUTDOWN, "the node is closing"));
    }
}

impl Shared {
    fn wish(&self, wish: Wish) {
        let mut wishes = self.wishes.lock();
        if self.stops.load(Acquire) {
            drop(wishes);
            let reason = self.why_stopped();
            wish.fail(&reason, self.foundation.clock.monotonic_ns());
            return;
        }
        wishes.push(wish);
        drop(wishes);
        self.network.wake();
    }

    fn why_stopped(&self) -> Error {
        let failure = self.queue.work.lock().failure.clone();
        failure.unwrap_or_else(|| Error::new(SqlState::SHUTDOWN, "the node is closing"))
    }

    fn end(&self, reason: &Error) {
        {
            let mut waiting = self.queue.work.lock();
            waiting.failure.get_or_insert_with(|| reason.clone());
            waiting.ends = true;
        }
        self.stops.store(true, Release);
        self.queue.more.notify_all();
        self.network.wake();
    }

    fn set_peers(&self, members: &[Member]) {
        // Who had this node's seat before would be looked for where this node is.
        let seat = NodeId(self.status.read().node).seat();
        let others = members.iter().filter(|member| NodeId(member.node).seat() != seat);
        let peers: Vec<_> = others.map(|member| (NodeId(member.node), member.address.clone())).collect();
        self.network.set_peers(&peers);
    }

    /// What the agreeing thread does.
    fn agree(&self, mut replica: Replica) {
        let ended = self.foundation.attempt(|| self.agree_until_stopped(&mut replica));
        let reason = match ended {
            Ok(()) => self.why_stopped(),
            Err(reason) => {
                self.foundation.fail(reason.clone());
                reason
            }
        };
        self.end(&reason);
        {
            // Clients look for whoever leads.
            let standing = &mut self.status.write().standing;
            (standing.leads, standing.leader) = (false, None);
        }
        let now = self.foundation.clock.monotonic_ns();
        replica.fail(&reason, now);
        // The executing thread may have gone before the last of it came.
        self.give_up(&mut self.queue.work.lock());
        let mut wishes = self.wishes.lock();
        wishes.drain(..).for_each(|wish| wish.fail(&reason, now));
    }

    fn agree_until_stopped(&self, replica: &mut Replica) -> Result<()> {
        let clock = &self.foundation.clock;
        let tick_ns = TICK.as_nanos() as u64;
        let mut next_tick_ns = clock.monotonic_ns() + tick_ns;
        while !self.stops.load(Acquire) {
            let wishes = std::mem::take(&mut *self.wishes.lock());
            wishes.into_iter().for_each(|wish| wish.come_true(replica, clock.monotonic_ns()));
            for _ in 0..MESSAGES {
                let Some((_, message)) = self.network.receive() else { break };
                replica.hear(&Bytes::from(message))?;
            }
            let now_ns = clock.monotonic_ns();
            if now_ns >= next_tick_ns {
                replica.tick()?;
                // A thread that was not run for long does not take that for silence of the others.
                next_tick_ns = now_ns + tick_ns;
            }
            let is_behind = self.queue.work.lock().work.len() >= WAITING;
            replica.hold_back(is_behind);
            let (mut outbox, mut queue) = (&*self.network, &self.queue);
            let turn = replica.turn(clock.now_us(), &mut outbox, &mut queue)?;
            self.tell(replica, turn.members_changed);
            let now_ns = clock.monotonic_ns();
            if !turn.has_more && self.wishes.lock().is_empty() {
                self.network.wait(Duration::from_nanos(next_tick_ns.saturating_sub(now_ns)));
            }
        }
        Ok(())
    }

    fn tell(&self, replica: &Replica, members_changed: bool) {
        let standing = replica.standing();
        if members_changed {
            self.set_peers(replica.members());
        }
        let is_new =
            |status: &Status| status.standing != standing || status.compared.as_ref() != replica.compared();
        if members_changed || is_new(&self.status.read()) {
            let mut status = self.status.write();
            status.standing = standing;
            status.compared = replica.compared().cloned();
            if members_changed {
                status.members = replica.members().to_vec();
            }
        }
    }

    /// What the executing thread does.
    fn execute(&self, mut executor: Executor) {
        loop {
            let work = {
                let mut waiting = self.queue.work.lock();
                while waiting.work.is_empty() && !waiting.ends {
                    self.queue.more.wait(&mut waiting);
                }
                if waiting.ends {
                    self.give_up(&mut waiting);
                    return;
                }
                waiting.work.pop_front()
            };
            match work {
                Some(Work::Take(agreed)) => {
                    let index = agreed.index;
                    if let Err(reason) = executor.take(agreed) {
                        self.foundation.fail(reason.clone());
                        self.end(&reason);
                        continue;
                    }
                    self.queue.work.lock().taken = index;
                }
                Some(Work::Refuse(batch, reason)) => executor.refuse(batch, reason),
                Some(Work::Reached(readers)) => executor.reached(readers),
                None => {}
            }
        }
    }

    fn give_up(&self, waiting: &mut Waiting) {
        let reason = waiting.failure.clone();
        let reason = reason.unwrap_or_else(|| Error::new(SqlState::SHUTDOWN, "the node is closing"));
        let now = self.foundation.clock.monotonic_ns();
        for work in waiting.work.drain(..) {
            match work {
                Work::Take(agreed) => {
                    agreed.ours.into_iter().for_each(|(_, batch)| batch.fail(reason.clone(), now));
                }
                Work::Refuse(batch, reason) => batch.fail(reason, now),
                Work::Reached(readers) => {
                    readers.into_iter().for_each(|reader| reader.fail(reason.clone(), now))
                }
            }
        }
    }
}

impl Wish {
    fn come_true(self, replica: &mut Replica, now_ns: u64) {
        let (done, batch) = match self {
            Wish::HandIn(batch, fence) => (replica.hand_in(batch.clone(), fence), batch),
            Wish::Amend(batch, fence) => (replica.amend(batch.clone(), fence), batch),
            Wish::Read(batch) => return replica.read(batch),
            Wish::Transfer(to) => return replica.transfer(to),
            Wish::Compare(seq, digests) => return replica.compare(seq, digests),
            Wish::Discard(point) => return replica.discard_up_to(point),
            Wish::Add(member, batch) => {
                let done = replica.add(&member);
                if done.is_ok() {
                    batch.complete(now_ns);
                }
                (done, batch)
            }
            Wish::Remove(node, batch) => {
                let done = replica.remove(node);
                if done.is_ok() {
                    batch.complete(now_ns);
                }
                (done, batch)
            }
        };
        if let Err(error) = done {
            batch.fail(error, now_ns);
        }
    }

    fn fail(self, reason: &Error, now_ns: u64) {
        match self {
            Wish::HandIn(batch, _)
            | Wish::Amend(batch, _)
            | Wish::Read(batch)
            | Wish::Add(_, batch)
            | Wish::Remove(_, batch) => batch.fail(reason.clone(), now_ns),
            Wish::Transfer(_) | Wish::Compare(..) | Wish::Discard(_) => {}
        }
    }
}

impl Execution for &Queue {
    fn take(&mut self, agreed: Agreed) -> Result<()> {
        self.push(Work::Take(agreed));
        Ok(())
    }

    fn refuse(&mut self, batch: Arc<Batch>, reason: Error) {
        self.push(Work::Refuse(batch, reason));
    }

    fn reached(&mut self, readers: Vec<Arc<Batch>>) {
        self.push(Work::Reached(readers));
    }
}

impl Queue {
    fn push(&self, work: Work) {
        self.work.lock().work.push_back(work);
        self.more.notify_one();
    }
}
