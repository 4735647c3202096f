//! Messages between the nodes of a cluster over TCP.
//!
//! ```text
//!              node 1                                             node 2
//!   send --> outbox for 2 --> writing thread --connection--> reading thread --> inbox --> receive
//!            bounded: what                                   waits while the
//!            is too much, is lost                            inbox is full
//!   receive <-- inbox <-- reading thread <--another connection-- writing thread <-- outbox for 1 <-- send
//! ```
//!
//! Each node connects to those it has something to send to, and sends over that connection only: `hello.rs` is
//! how it begins, `frame.rs` how it goes on, `line.rs` how both sides notice that it is over. A connection is
//! opened for the first message, and again for the next one after it was lost.
//!
//! Nothing that another machine sends can do more than end its own connection.

mod frame;
mod hello;
mod inbox;
mod incoming;
mod line;
mod outbox;
mod outgoing;
mod status;
mod threads;
mod transport;

pub use hello::ClusterId;
pub use status::{Direction, Problem};
pub use transport::{Connection, Incoming, PlainTransport, Transport};

use crate::network::check_length;
use crate::sync::RwLock;
use crate::{Network, NodeId};
use inbox::Inbox;
use incoming::Visitors;
use outbox::Outbox;
use status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use threads::Threads;

/// How long a network that is dropped waits for its threads; one may be connecting, or looking up a name.
const STOP_WAIT: Duration = Duration::from_secs(3);

/// How long it may take to wake the thread that accepts connections.
const KNOCK_WAIT: Duration = Duration::from_secs(1);

/// What a network may hold, and what protects it.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// What lies between connections and TCP.
    pub transport: Arc<dyn Transport>,
    /// What messages make a node do, as a number: nodes of other numbers are refused.
    pub semantics: u32,
    /// The most bytes that wait to be sent to one peer; what is sent beyond is lost.
    pub outgoing_bytes_max: usize,
    /// The most bytes that have arrived and wait to be received; who sends more has to wait.
    pub incoming_bytes_max: usize,
}

impl Default for NetworkSettings {
    /// Plain TCP, 128 MiB to each peer, and 256 MiB from all.
    fn default() -> Self {
        Self {
            transport: Arc::new(PlainTransport),
            semantics: 0,
            outgoing_bytes_max: 128 << 20,
            incoming_bytes_max: 256 << 20,
        }
    }
}

/// One node's end of a network over TCP. Dropping it closes its connections and its port.
#[derive(Debug)]
pub struct RealNetwork {
    station: Arc<Station>,
    outgoing_bytes_max: usize,
    address: SocketAddr,
    outboxes: RwLock<BTreeMap<NodeId, Arc<Outbox>>>,
}

/// What all threads of one network share.
#[derive(Debug)]
struct Station {
    me: NodeId,
    cluster: ClusterId,
    semantics: u32,
    transport: Arc<dyn Transport>,
    inbox: Inbox,
    visitors: Arc<Visitors>,
    status: Status,
    threads: Arc<Threads>,
}

impl RealNetwork {
    /// Listens at an address, such as `127.0.0.1:7000`, for the other nodes of a cluster, and sends to `peers`
    /// from now on; see [`Network::set_peers`].
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if other machines could reach the address and the transport does
    /// not protect what is sent; otherwise if the address cannot be bound, or threads cannot be begun.
    pub fn listen(
        me: NodeId,
        cluster: ClusterId,
        address: &str,
        peers: &[(NodeId, String)],
        settings: NetworkSettings,
    ) -> io::Result<Self> {
        let station = Arc::new(Station {
            me,
            cluster,
            semantics: settings.semantics,
            transport: settings.transport,
            inbox: Inbox::bounded(settings.incoming_bytes_max),
            visitors: Arc::default(),
            status: Status::default(),
            threads: Arc::default(),
        });
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        addresses.iter().try_for_each(|address| station.check_protected(*address))?;
        let listener = TcpListener::bind(&addresses[..])?;
        let address = listener.local_addr()?;
        let accepting = Arc::clone(&station);
        station.threads.spawn("fabius-accept".to_owned(), move || {
            incoming::accept(&accepting, &listener);
        })?;
        let outboxes = RwLock::new(BTreeMap::new());
        let network = Self { station, outgoing_bytes_max: settings.outgoing_bytes_max, address, outboxes };
        network.set_peers(peers);
        Ok(network)
    }

    /// Where it listens; its port is known here also if it was asked to take any.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The last problem with the connections to and from each node.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.station.status.problems()
    }

    /// What has happened so far, how many times; what never happened is missing.
    ///
    /// - `sent`: messages given to a connection, which says nothing of whether they arrive.
    /// - `received`: messages that have arrived.
    /// - `queue full`, `unreachable`, `lost with a connection`, `to strangers`: messages that were lost because
    ///   too many waited, the peer could not be reached, the connection broke while they were written, or the
    ///   receiver is no peer.
    /// - `connected`, `accepted`, `refused`: connections made to others, by others, and by strangers.
    /// - `bad frames`: connections ended because something else than messages came.
    #[must_use]
    pub fn counters(&self) -> BTreeMap<&'static str, u64> {
        self.station.status.counters()
    }

    /// Begins to send to a peer.
    fn add(&self, id: NodeId, address: &str) -> io::Result<Arc<Outbox>> {
        let outbox = Arc::new(Outbox::bounded(self.outgoing_bytes_max, address.to_owned()));
        let (station, sending) = (Arc::clone(&self.station), Arc::clone(&outbox));
        self.station.threads.spawn(format!("fabius-send-{}", id.0), move || {
            outgoing::run(&station, id, &sending);
        })?;
        Ok(outbox)
    }
}

impl Station {
    /// An address of another machine, or for other machines, needs protection.
    fn check_protected(&self, address: SocketAddr) -> io::Result<()> {
        if self.transport.is_protected() || address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{address} is not only for this machine, and what nodes send each other is not protected; \
                 configure TLS between the nodes, or use an address such as 127.0.0.1"
            ),
        ))
    }
}

impl Network for RealNetwork {
    fn complaints(&self) -> Vec<String> {
        self.problems().iter().filter(|problem| !problem.is_over).map(ToString::to_string).collect()
    }

    fn send(&self, to: NodeId, message: Vec<u8>) {
        check_length(&message);
        let status = &self.station.status;
        if to == self.station.me {
            let is_full = self.station.inbox.put(to, message, Duration::ZERO).is_err();
            return status.count("queue full", u64::from(is_full));
        }
        match self.outboxes.read().get(&to) {
            Some(outbox) => status.count("queue full", u64::from(!outbox.put(message))),
            None => status.count("to strangers", 1),
        }
    }

    fn receive(&self) -> Option<(NodeId, Vec<u8>)> {
        self.station.inbox.take()
    }

    fn wait(&self, at_most: Duration) {
        self.station.inbox.wait(at_most);
    }

    fn wake(&self) {
        self.station.inbox.wake();
    }

    fn set_peers(&self, peers: &[(NodeId, String)]) {
        let me = self.station.me;
        let ids: BTreeSet<NodeId> = peers.iter().map(|(id, _)| *id).filter(|id| *id != me).collect();
        let mut outboxes = self.outboxes.write();
        outboxes.retain(|id, outbox| {
            let stays = ids.contains(id);
            if !stays {
                outbox.close();
            }
            stays
        });
        self.station.status.keep(&ids);
        for (id, address) in peers.iter().filter(|(id, _)| *id != me) {
            if let Some(outbox) = outboxes.get(id) {
                outbox.retarget(address);
                continue;
            }
            match self.add(*id, address) {
                Ok(outbox) => {
                    outboxes.insert(*id, outbox);
                }
                Err(error) => {
                    let reason = format!("the thread that sends could not begin: {error}");
                    self.station.status.note(Some(*id), Direction::Outgoing, reason);
                }
            }
        }
    }
}

impl Drop for RealNetwork {
    fn drop(&mut self) {
        self.station.threads.stop();
        self.outboxes.read().values().for_each(|outbox| outbox.close());
        self.station.visitors.close();
        self.station.inbox.close();
        // A connection makes the thread that accepts them look up. If this fails, that thread stays behind.
        let knock_at = SocketAddr::new(reachable(self.address.ip()), self.address.port());
        let _ = TcpStream::connect_timeout(&knock_at, KNOCK_WAIT);
        self.station.threads.wait_for_end(STOP_WAIT);
    }
}

/// The address of this machine under which what listens at `ip` can be reached.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}
