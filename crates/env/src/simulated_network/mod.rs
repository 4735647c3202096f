//! A network in memory whose weather, cuts and crashes are decided by one seed and its driver's calls.
//!
//! Time is that of a [`SimulatedClock`], which the driver moves: a message gets its time of arrival when it is
//! sent, and can be received once the clock is there. A driver that has nothing else to do jumps:
//!
//! ```
//! use fabius_env::{Clock, Network, NodeId, SimulatedClock, SimulatedNetwork};
//! use std::time::Duration;
//!
//! let clock = SimulatedClock::at(0);
//! let network = SimulatedNetwork::seeded(7, clock.clone());
//! let (one, two) = (network.node(NodeId(1)), network.node(NodeId(2)));
//! one.send(NodeId(2), b"hello".to_vec());
//! assert_eq!(two.receive(), None);
//! let arrival_ns = network.next_arrival_ns().expect("it is on its way");
//! clock.advance(Duration::from_nanos(arrival_ns - clock.monotonic_ns()));
//! assert_eq!(two.receive(), Some((NodeId(1), b"hello".to_vec())));
//! ```
//!
//! A message that has left is on its way: a later cut does not stop it, and it outlives its sender. Of the
//! messages on their way to a node that crashes some are lost with it; others arrive where the node has been,
//! and if it lives again by then, its new life gets what was meant for the old one.

mod hub;
mod weather;

pub use weather::Weather;

use crate::network::check_length;
use crate::schedule::point;
use crate::{Clock, Network, NodeId, SimulatedClock};
use hub::Hub;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All the simulated nodes and what is on its way between them. Clones share the network.
#[derive(Debug, Clone)]
pub struct SimulatedNetwork {
    clock: SimulatedClock,
    hub: Arc<Mutex<Hub>>,
}

impl SimulatedNetwork {
    /// A network without nodes, in [calm weather](Weather::calm), whose accidents are decided by `seed`.
    #[must_use]
    pub fn seeded(seed: u64, clock: SimulatedClock) -> Self {
        Self { clock, hub: Arc::new(Mutex::new(Hub::seeded(seed))) }
    }

    /// What a node sees in the life it has now; its first life begins when it is first asked for. After a
    /// [`crash`](Self::crash) that view sends nothing and receives nothing any more. Until
    /// [`Network::set_peers`] is called, the node can send to all others.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Arc<dyn Network> {
        let life = self.hub().life(id);
        self.view(id, life)
    }

    /// Ends a node's life. What it has not received is lost; what it has sent goes on its way.
    pub fn crash(&self, id: NodeId) {
        self.hub().crash(id);
    }

    /// Begins another life of a node, after a crash if it is alive, and returns what the node sees in it.
    #[must_use]
    pub fn restart(&self, id: NodeId) -> Arc<dyn Network> {
        let life = self.hub().restart(id);
        self.view(id, life)
    }

    /// The weather from now on, on every link.
    pub fn set_weather(&self, weather: Weather) {
        self.hub().set_weather(weather);
    }

    /// The weather from now on for messages of one node to another, until the weather of all links is set.
    pub fn set_weather_between(&self, from: NodeId, to: NodeId, weather: Weather) {
        self.hub().set_weather_of_link(from, to, weather);
    }

    /// Makes every message to and from a node take so many times as long; one is the usual speed.
    pub fn set_slowness(&self, id: NodeId, factor: u64) {
        self.hub().set_slowness(id, factor);
    }

    /// Loses all messages that one node sends to another from now on. Those the other way still pass.
    pub fn cut(&self, from: NodeId, to: NodeId) {
        self.hub().cut(from, to);
    }

    /// Ends a [`cut`](Self::cut).
    pub fn heal(&self, from: NodeId, to: NodeId) {
        self.hub().heal(from, to);
    }

    /// Ends all cuts.
    pub fn heal_all(&self) {
        self.hub().heal_all();
    }

    /// When the next message arrives, in nanoseconds of the clock's monotonic time; later than now. None if
    /// nothing is on its way. What has arrived is not counted, received or not.
    #[must_use]
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.hub().next_arrival_ns()
    }

    /// What has happened so far, how many times; what never happened may be missing.
    ///
    /// - `sent`: messages that living nodes sent.
    /// - `delivered`: messages that have arrived, copies included.
    /// - `lost`, `doubled`: by the weather.
    /// - `reordered`: arrived after one that was sent later on the same link.
    /// - `cut`: sent over a link that was cut.
    /// - `to strangers`: sent to a node that is no peer of the sender.
    /// - `to the dead`: sent to, or on the way to, a node that was not alive.
    /// - `from the dead`: sent through the view of a life that is over.
    /// - `unread at a crash`: arrived, and not received before the crash.
    /// - `late across lives`: delivered to another life than the one it was sent to.
    #[must_use]
    pub fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.hub().counters()
    }

    /// A number made of everything that has arrived so far: when, where, from whom, and every byte. Two runs
    /// of one seed have equal histories.
    #[must_use]
    pub fn history(&self) -> u64 {
        self.hub().history()
    }

    fn view(&self, id: NodeId, life: u64) -> Arc<dyn Network> {
        Arc::new(View { network: self.clone(), id, life })
    }

    /// The hub, after everything that is due has arrived.
    fn hub(&self) -> MutexGuard<'_, Hub> {
        // Only a failed assertion can leave it poisoned, and the test has failed then anyway.
        let mut hub = self.hub.lock().unwrap_or_else(PoisonError::into_inner);
        hub.deliver(self.clock.monotonic_ns());
        hub
    }
}

/// What one life of a node sees.
#[derive(Debug)]
struct View {
    network: SimulatedNetwork,
    id: NodeId,
    life: u64,
}

impl Network for View {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        check_length(&message);
        point("network send");
        let now_ns = self.network.clock.monotonic_ns();
        self.network.hub().send(now_ns, self.id, self.life, to, message);
    }

    fn receive(&self) -> Option<(NodeId, Vec<u8>)> {
        point("network receive");
        self.network.hub().receive(self.id, self.life)
    }

    fn wait(&self, _at_most: Duration) {
        point("network wait");
    }

    fn wake(&self) {}

    fn set_peers(&self, peers: &[(NodeId, String)]) {
        let peers = peers.iter().map(|(id, _)| *id).collect();
        self.network.hub().set_peers(self.id, self.life, peers);
    }
}
