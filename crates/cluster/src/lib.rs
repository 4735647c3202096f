//! One agreed log on several nodes: Calvin's sequencing and replication.
//!
//! Calvin (Thomson et al., SIGMOD 2012) divides a database into a layer that puts calls in order and makes the order durable on
//! every replica, and one that runs them in that order, which needs no further agreement. This crate is the first: Raft agrees on
//! the order, by the library `raft`, over the segments of `fabius-log`; engines are the second.

mod agreed_engine;
mod agreed_log;
mod agreement;
mod content;
mod envelope;
mod executor;
mod fields;
mod gathering;
mod hard_state;
mod node;
mod opening;
mod point;
mod proposals;
mod reads;
mod replica;
pub mod simulation;
mod wire;

pub use agreed_engine::AgreedEngine;
pub use agreement::Standing;
pub use executor::Executor;
pub use hard_state::{FILE_NAME as HARD_STATE_FILE, HardState, HardStateError, Member};
pub use node::{Node, Status, TICK};
pub use opening::{Opening, init};
pub use point::Point;
pub use replica::{Agreed, BATCH_BYTES, Execution, Outbox, Replica};
