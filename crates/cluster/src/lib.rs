//! One agreed log on several nodes: Calvin's sequencing and replication.
//!
//! Calvin (Thomson et al., SIGMOD 2012) divides a database into a layer that puts calls in order and makes the order
//! durable on every replica, and one that runs them in that order, which needs no further agreement. This crate is
//! the first: Raft agrees on the order, by the library `raft`, over the segments of `fabius-log`; engines are the
//! second.
//!
//! | file | one noun |
//! |---|---|
//! | `node.rs` | a [`Node`] at work: its two threads |
//! | `agreed_engine.rs` | an engine whose calls are agreed on before they run |
//! | `executor.rs` | an engine that takes what is agreed on |
//! | `replica.rs` | a [`Replica`]: what is handed in, what is agreed on, who is told |
//! | `proposals.rs` | what this node has handed in and has not seen agreed on |
//! | `gathering.rs` | what a leader gathers for the next entry: Calvin's epoch |
//! | `reads.rs` | when what is read here is the newest |
//! | `digests.rs` | whether all nodes have computed the same |
//! | `agreement.rs` | Raft, stepped by its owner |
//! | `agreed_log.rs` | our segments as Raft's log |
//! | `envelope.rs`, `content.rs` | an entry's bytes in the log; what is agreed on in it |
//! | `kept.rs` | a node's checkpoints, of which others can be filled |
//! | `filling.rs` | filling a node whose log is not enough |
//! | `succession.rs` | how a damaged node comes back: as its successor |
//! | `hard_state.rs` | what a node must not forget besides its log |
//! | `opening.rs` | opening a replica |
//! | `wire.rs`, `fields.rs` | what nodes say to each other |
//! | `replication.rs` | when a leader answers |
//! | `tls.rs` | how nodes make sure of each other, and nobody listens |

mod agreed_engine;
mod agreed_log;
mod agreement;
mod content;
mod digests;
mod envelope;
mod executor;
mod fields;
mod filling;
mod gathering;
mod hard_state;
mod kept;
mod node;
mod opening;
mod point;
mod proposals;
mod reads;
mod replica;
mod replication;
mod succession;
mod tls;
mod wire;

pub use agreed_engine::AgreedEngine;
pub use agreement::{Standing, has_run_ahead};
pub use digests::Compared;
pub use executor::{AtCheckpoint, Executor};
pub use filling::{Filled, Filling, must_be_filled};
pub use hard_state::{FILE_NAME as HARD_STATE_FILE, Fill, HardState, HardStateError, Member};
pub use kept::KeptCheckpoints;
pub use node::{Node, Status, TICK};
pub use opening::{Opening, init};
pub use point::Point;
pub use replica::{Agreed, BATCH_BYTES, Execution, Outbox, Replica, TurnEnd, other_leader};
pub use replication::Replication;
pub use succession::{begin_anew, can_begin_anew};
pub use tls::{Certificates, name_of as certificate_name};
