//! What Fabius asks of a network: messages between the nodes of one cluster, as good as they come.
//!
//! A network loses messages, doubles them, and brings them late and out of order; it may even bring what was
//! sent to an earlier life of a node, or by a node that is dead by now. Whoever uses it asks again, and takes
//! every message for one that may have come before. In return [`Network::send`] never waits, and nothing that
//! another node does or fails to do makes a call here fail.
//!
//! What arrives is whole, and as it was sent.

use std::fmt::{self, Debug, Display};
use std::time::Duration;

/// The most bytes of one message. What is longer, such as a snapshot, is sent in parts.
pub const MAX_MESSAGE: usize = 64 << 20;

/// A node of a cluster, by a number of two parts: the lower half is its seat, by which people call it; the upper one
/// says how many have had the seat before it. Who comes back without what it had promised to keep takes its seat
/// under the next number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The seat that the node has, by which people call it.
    pub fn seat(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }

    /// How many have had the seat before.
    pub fn predecessors(self) -> u64 {
        self.0 >> 32
    }

    /// The next one in its seat.
    pub fn successor(self) -> NodeId {
        NodeId(self.0.wrapping_add(1 << 32))
    }
}

impl Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.predecessors() {
            0 => write!(formatter, "node {}", self.seat()),
            count => write!(formatter, "node {}.{count}", self.seat()),
        }
    }
}

/// What one node sees of the network. All methods may be called from any thread.
pub trait Network: Debug + Send + Sync {
    /// Sends a message if it can, and returns at once either way. The message may be lost, arrive more than
    /// once, late, or after messages that were sent later. To a node that
    /// [`set_peers`](Self::set_peers) did not name it is lost.
    ///
    /// # Panics
    /// If the message is longer than [`MAX_MESSAGE`].
    fn send(&self, to: NodeId, message: Vec<u8>);

    /// The next message that has arrived, and who sent it; none if there is none yet. Does not wait.
    fn receive(&self) -> Option<(NodeId, Vec<u8>)>;

    /// Waits until a message has arrived, [`wake`](Self::wake) is called or was called since the last wait, or
    /// this much time has passed. A simulated network returns at once, since time there is its driver's.
    fn wait(&self, at_most: Duration);

    /// Ends the wait that goes on now, or else the next one.
    fn wake(&self);

    /// What keeps messages from passing now, in plain words, for whoever looks after the cluster.
    fn complaints(&self) -> Vec<String> {
        Vec::new()
    }

    /// The nodes that messages can be sent to from now on, and where they listen. What waits to be sent to
    /// others is lost; messages are received from any node of the cluster, named here or not, because others
    /// may hear of a new node first.
    fn set_peers(&self, peers: &[(NodeId, String)]);
}

/// A longer message is an error of whoever sends it, whatever network carries it.
pub(crate) fn check_length(message: &[u8]) {
    assert!(message.len() <= MAX_MESSAGE, "a message of {} bytes is too long to send", message.len());
}
