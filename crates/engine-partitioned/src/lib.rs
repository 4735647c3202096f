//! Static partitions with one thread at a time in each, as in H-Store; and logical partitions with local locks,
//! as in DORA. Both as LADS describes the systems that it compares with (sections 2.2 and 5).
//!
//! ```text
//! batches --> intake --> dispatch: which partitions? --> queues, one a partition --> promised --> durable
//!                        (one thread, in order)           owner: log a run of calls, run it
//! ```
//!
//! Which partitions a call touches is found from the program and the arguments before it runs. A call that
//! stays in one partition needs no locks and is never in conflict with anything; one that crosses stops all
//! its partitions. So the engine is fast for as long as calls stay at home, and collapses when they do not.
//!
//! | module | concept |
//! |---|---|
//! | [`policy`] | which of the two, and how many partitions |
//! | [`layout`] | the partition of a key; replicated tables |
//! | [`route`] | the partitions that a call touches |
//! | [`partition_set`] | a set of partitions |
//! | [`division`] | what both have in common |
//! | [`rotation`] | partitions that threads look at in turn |
//! | [`partition`] | H-Store: queues, owners, calls that cross |
//! | [`rendezvous`] | DORA: actions, owners, rendezvous points |
//! | [`flow`] | DORA: a call and its demands |
//! | [`local_lock`] | DORA: an owner's lock table |
//! | [`run`] | calls logged together, then run |
//! | [`keys_in_flight`] | idempotency keys of calls that have not ended |
//! | [`owner`] | the control of a call that owns what it touches |
//! | [`engine`] | the engine behind the contract, and dispatch |
//!
//! What it has in common with other engines that run calls whole is [`fabius_engine::eager`].

pub mod division;
pub mod engine;
pub mod flow;
pub mod keys_in_flight;
pub mod layout;
pub mod local_lock;
pub mod owner;
pub mod partition;
pub mod partition_set;
pub mod policy;
pub mod rendezvous;
pub mod rotation;
pub mod route;
pub mod run;

pub use engine::PartitionedEngine;
pub use policy::{Policy, Scheme, Waiting};
