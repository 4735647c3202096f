//! Every message on its way between simulated nodes, and every node that may get one.
//!
//! ```text
//!   send --(lost? cut? dead?)--> in flight, by time of arrival --(dead? another life?)--> inbox --> receive
//! ```
//!
//! Chance is asked only when something is sent and when a node crashes, in the order of those calls; what has
//! arrived follows from the clock. So the same calls at the same times take the same way for one seed.

use super::Weather;
use crate::{NodeId, Random};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A directed link.
type Link = (NodeId, NodeId);

/// The order of arrivals: the time in nanoseconds, then the order in which they were sent off.
type Arrival = (u64, u64);

/// The state behind all handles of a simulated network.
#[derive(Debug)]
pub(super) struct Hub {
    random: Random,
    weather: Weather,
    weather_of_link: BTreeMap<Link, Weather>,
    cuts: BTreeSet<Link>,
    slowness: BTreeMap<NodeId, u64>,
    nodes: BTreeMap<NodeId, Node>,
    passages: BTreeMap<Link, Passage>,
    in_flight: BTreeMap<Arrival, InFlight>,
    serial_next: u64,
    counters: BTreeMap<&'static str, u64>,
    history: u64,
}

/// One node in the life it has now, or had last.
#[derive(Debug, Default)]
struct Node {
    /// The node's lives so far, this one included.
    life: u64,
    is_alive: bool,
    inbox: VecDeque<(NodeId, Vec<u8>)>,
    /// To whom it can send; everybody, as long as it has not said.
    peers: Option<BTreeSet<NodeId>>,
}

/// What has gone over one link.
#[derive(Debug, Default)]
struct Passage {
    sent: u64,
    /// The latest arrival planned so far.
    arrival_ns_max: u64,
    /// The number of the last message, in order of sending, that has arrived.
    arrived_max: u64,
}

#[derive(Debug, Clone)]
struct InFlight {
    from: NodeId,
    to: NodeId,
    /// The life of the receiver that the message was sent to.
    life: u64,
    /// The message's place among those of its link.
    number: u64,
    is_copy: bool,
    message: Vec<u8>,
}

impl Hub {
    pub(super) fn seeded(seed: u64) -> Self {
        Self {
            random: Random::seeded(seed),
            weather: Weather::calm(),
            weather_of_link: BTreeMap::new(),
            cuts: BTreeSet::new(),
            slowness: BTreeMap::new(),
            nodes: BTreeMap::new(),
            passages: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            serial_next: 0,
            counters: BTreeMap::new(),
            history: FNV_OFFSET,
        }
    }

    pub(super) fn set_weather(&mut self, weather: Weather) {
        self.weather = weather;
        self.weather_of_link.clear();
    }

    pub(super) fn set_weather_of_link(&mut self, from: NodeId, to: NodeId, weather: Weather) {
        self.weather_of_link.insert((from, to), weather);
    }

    pub(super) fn set_slowness(&mut self, id: NodeId, factor: u64) {
        self.slowness.insert(id, factor);
    }

    pub(super) fn cut(&mut self, from: NodeId, to: NodeId) {
        self.cuts.insert((from, to));
    }

    pub(super) fn heal(&mut self, from: NodeId, to: NodeId) {
        self.cuts.remove(&(from, to));
    }

    pub(super) fn heal_all(&mut self) {
        self.cuts.clear();
    }

    /// The present life of a node, or the last one of a dead node; the first, if nobody has asked before.
    pub(super) fn life(&mut self, id: NodeId) -> u64 {
        let born = || Node { life: 1, is_alive: true, ..Node::default() };
        self.nodes.entry(id).or_insert_with(born).life
    }

    /// Begins another life of a node, and says which.
    pub(super) fn restart(&mut self, id: NodeId) -> u64 {
        self.crash(id);
        let life = self.life(id) + 1;
        self.nodes.insert(id, Node { life, is_alive: true, ..Node::default() });
        life
    }

    /// Ends the life of a node, if it is alive. Of what is on its way to it about half gets lost; the rest
    /// arrives in time, at whatever is there then.
    pub(super) fn crash(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.is_alive) else { return };
        node.is_alive = false;
        let unread = std::mem::take(&mut node.inbox).len() as u64;
        self.count("unread at a crash", unread);
        let before = self.in_flight.len();
        let random = &mut self.random;
        self.in_flight.retain(|_, flight| flight.to != id || random.chance(1, 2));
        self.count("to the dead", (before - self.in_flight.len()) as u64);
    }

    /// Takes a message from a life of a node, and decides what becomes of it.
    pub(super) fn send(&mut self, now_ns: u64, from: NodeId, life: u64, to: NodeId, message: Vec<u8>) {
        let Some(sender) = self.living(from, life) else { return self.count("from the dead", 1) };
        let is_peer = sender.peers.as_ref().is_none_or(|peers| peers.contains(&to));
        self.count("sent", 1);
        if !is_peer {
            return self.count("to strangers", 1);
        }
        if self.cuts.contains(&(from, to)) {
            return self.count("cut", 1);
        }
        let Some(life) = self.nodes.get(&to).filter(|node| node.is_alive).map(|node| node.life) else {
            return self.count("to the dead", 1);
        };
        let weather = self.weather_of_link.get(&(from, to)).unwrap_or(&self.weather).clone();
        if weather.loses(&mut self.random) {
            return self.count("lost", 1);
        }
        let passage = self.passages.entry((from, to)).or_default();
        passage.sent += 1;
        let flight = InFlight { from, to, life, number: passage.sent, is_copy: false, message };
        if weather.doubles(&mut self.random) {
            self.count("doubled", 1);
            let copy = InFlight { is_copy: true, ..flight.clone() };
            self.send_off(now_ns, &weather, flight);
            self.send_off(now_ns, &weather, copy);
        } else {
            self.send_off(now_ns, &weather, flight);
        }
    }

    fn send_off(&mut self, now_ns: u64, weather: &Weather, flight: InFlight) {
        let slowness = [flight.from, flight.to]
            .iter()
            .fold(1_u64, |factor, id| factor.saturating_mul(self.slowness.get(id).copied().unwrap_or(1)));
        let delay_ns = weather.delay_ns(&mut self.random).saturating_mul(slowness);
        let mut arrival_ns = now_ns.saturating_add(delay_ns);
        let passage = self.passages.entry((flight.from, flight.to)).or_default();
        if weather.is_in_order {
            arrival_ns = arrival_ns.max(passage.arrival_ns_max);
        }
        passage.arrival_ns_max = passage.arrival_ns_max.max(arrival_ns);
        self.in_flight.insert((arrival_ns, self.serial_next), flight);
        self.serial_next += 1;
    }

    /// Puts everything that has arrived by now where it arrives.
    pub(super) fn deliver(&mut self, now_ns: u64) {
        while let Some(first) = self.in_flight.first_entry().filter(|first| first.key().0 <= now_ns) {
            let (arrival_ns, _) = *first.key();
            let flight = first.remove();
            self.arrive(arrival_ns, flight);
        }
    }

    fn arrive(&mut self, arrival_ns: u64, flight: InFlight) {
        let Some(node) = self.nodes.get_mut(&flight.to).filter(|node| node.is_alive) else {
            return self.count("to the dead", 1);
        };
        let life = node.life;
        for number in [arrival_ns, flight.from.0, flight.to.0, life, flight.message.len() as u64] {
            self.history = hash(self.history, &number.to_le_bytes());
        }
        self.history = hash(self.history, &flight.message);
        node.inbox.push_back((flight.from, flight.message));

        self.count("delivered", 1);
        if life != flight.life {
            self.count("late across lives", 1);
        }
        let passage = self.passages.entry((flight.from, flight.to)).or_default();
        let is_overtaken = flight.number < passage.arrived_max;
        passage.arrived_max = passage.arrived_max.max(flight.number);
        if is_overtaken && !flight.is_copy {
            self.count("reordered", 1);
        }
    }

    pub(super) fn receive(&mut self, id: NodeId, life: u64) -> Option<(NodeId, Vec<u8>)> {
        self.living(id, life)?.inbox.pop_front()
    }

    pub(super) fn set_peers(&mut self, id: NodeId, life: u64, peers: BTreeSet<NodeId>) {
        if let Some(node) = self.living(id, life) {
            node.peers = Some(peers);
        }
    }

    pub(super) fn next_arrival_ns(&self) -> Option<u64> {
        self.in_flight.first_key_value().map(|((arrival_ns, _), _)| *arrival_ns)
    }

    pub(super) fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.counters.clone()
    }

    pub(super) fn history(&self) -> u64 {
        self.history
    }

    fn living(&mut self, id: NodeId, life: u64) -> Option<&mut Node> {
        self.nodes.get_mut(&id).filter(|node| node.is_alive && node.life == life)
    }

    fn count(&mut self, what: &'static str, more: u64) {
        *self.counters.entry(what).or_default() += more;
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, whose result is the same for ever and on every platform.
fn hash(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |state, byte| (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
