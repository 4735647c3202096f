//! A cluster whose nodes are in this process, at sites that are so far apart: messages between them take as long as
//! the distance.

use fabius::{
    Connect, Database, Error, Member, MemberChange, NodeId, Options, Result, SqlState, block_on, identity,
    init_member,
};
use fabius_env::{Network, RealClock};
use fabius_log::Flusher;
use parking_lot::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Nodes of a cluster, and sites.
pub const SITES: usize = 3;

/// Milliseconds from each site to each and back, once they are apart.
pub const ROUND_TRIPS_MS: [[u64; SITES]; SITES] = [[0, 100, 170], [100, 0, 140], [170, 140, 0]];

/// How often the first node is given the lead, until it has it.
const ATTEMPTS: usize = 20;

/// A node at each site; the first one leads.
pub struct Sites {
    /// Those that follow.
    _others: Vec<Database>,
    between: Arc<Between>,
}

/// What lies between sites.
#[derive(Debug, Default)]
struct Between {
    ends: [End; SITES],
    /// Whether they are apart; together, nothing takes time.
    are_apart: AtomicBool,
}

/// What is on its way to a site.
#[derive(Debug, Default)]
struct End {
    arriving: Mutex<Arriving>,
    more: Condvar,
}

/// A message: when it arrives, how many were sent before, who sent it, its bytes. The first to arrive is the greatest.
type OnItsWay = Reverse<(Instant, u64, u64, Vec<u8>)>;

#[derive(Debug, Default)]
struct Arriving {
    messages: BinaryHeap<OnItsWay>,
    sent: u64,
    is_woken: bool,
}

/// One site's end of the network.
#[derive(Debug)]
struct Site {
    number: u64,
    between: Arc<Between>,
}

impl Sites {
    /// Opens a node at each site, in directories within one; gives the one that leads, with the others.
    ///
    /// # Errors
    /// As [`Database::open_member`]; `55000` if the first node does not come to lead.
    pub fn open(parent: &Path, options: &[Options; SITES]) -> Result<(Database, Sites)> {
        let between = Arc::new(Between::default());
        let member = |number: u64| Member { node: number, address: format!("site {number}"), votes: true };
        let members: Vec<Member> = (1..).take(SITES).map(member).collect();
        let id = identity::make();
        let mut nodes = Vec::new();
        for (number, options) in (1..).zip(options) {
            let directory = parent.join(format!("node{number}"));
            init_member(&directory, number, members.clone(), id)?;
            let disk = fabius_env::RealDisk::create(&directory).map_err(|error| {
                Error::new(SqlState::IO_ERROR, "a node's directory cannot be opened")
                    .with_detail(error.to_string())
            })?;
            let between = between.clone();
            let connect: Connect<'_> = &mut |_, _, _| Ok(Arc::new(Site { number, between: between.clone() }));
            let clock = Arc::new(RealClock::new());
            nodes.push(Database::open_member_on(Arc::new(disk), clock, Flusher::Thread, *options, connect)?);
        }
        for _ in 0..ATTEMPTS {
            // Answered once there is a leader.
            block_on(nodes[0].catch_up())?;
            if nodes[0].leads() {
                break;
            }
            if let Some(leader) = nodes.iter().find(|node| node.leads()) {
                // It may have lost the lead meanwhile.
                let _ = leader.change_members(MemberChange::Lead(1));
            }
        }
        if !nodes[0].leads() {
            return Err(Error::new(SqlState::NOT_IN_STATE, "the first node does not come to lead"));
        }
        let leader = nodes.remove(0);
        Ok((leader, Sites { _others: nodes, between }))
    }

    /// Puts the sites apart, or together.
    pub fn put_apart(&self, are_apart: bool) {
        self.between.are_apart.store(are_apart, Relaxed);
    }
}

impl Between {
    fn end(&self, node: u64) -> Option<&End> {
        self.ends.get(usize::try_from(node).ok()?.checked_sub(1)?)
    }
}

impl Network for Site {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        let Some(end) = self.between.end(to.0) else { return };
        let round_trip = ROUND_TRIPS_MS[self.number as usize - 1][to.0 as usize - 1];
        let delay = if self.between.are_apart.load(Relaxed) { round_trip * 500 } else { 0 };
        let arrives = Instant::now() + Duration::from_micros(delay);
        let mut arriving = end.arriving.lock();
        arriving.sent += 1;
        let sent = arriving.sent;
        arriving.messages.push(Reverse((arrives, sent, self.number, message)));
        drop(arriving);
        end.more.notify_all();
    }

    fn receive(&self) -> Option<(NodeId, Vec<u8>)> {
        let mut arriving = self.between.end(self.number)?.arriving.lock();
        if arriving.messages.peek().is_none_or(|Reverse((arrives, ..))| *arrives > Instant::now()) {
            return None;
        }
        arriving.messages.pop().map(|Reverse((_, _, from, message))| (NodeId(from), message))
    }

    fn wait(&self, at_most: Duration) {
        let Some(end) = self.between.end(self.number) else { return };
        let until = Instant::now() + at_most;
        let mut arriving = end.arriving.lock();
        loop {
            let next = arriving.messages.peek().map(|Reverse((arrives, ..))| *arrives);
            let wait_until = next.map_or(until, |next| next.min(until));
            if std::mem::take(&mut arriving.is_woken) || wait_until <= Instant::now() {
                return;
            }
            end.more.wait_until(&mut arriving, wait_until);
        }
    }

    fn wake(&self) {
        if let Some(end) = self.between.end(self.number) {
            end.arriving.lock().is_woken = true;
            end.more.notify_all();
        }
    }

    fn set_peers(&self, _peers: &[(NodeId, String)]) {}
}
