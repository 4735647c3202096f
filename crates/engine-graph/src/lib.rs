//! LADS: batches of calls as dependency graphs, divided among workers and executed without locks on
//! records.
//!
//! "Exploiting single-threaded model in multi-core in-memory systems" (LADS) separates the resolution of
//! conflicts from execution. Calls are taken in batches; a batch becomes graphs of record actions; a graph's
//! record queues are divided into partitions of about the same weight with few dependencies across; then each
//! partition is executed by a single worker.
//!
//! ```text
//! batches --> seqs, log --> graphs --> partitions --> execution, records | promised --> durable
//!             initiator     construct  divide         all together    barrier, graph by graph
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`initiator`] | takes calls in: timestamps, log, outcomes |
//! | [`batch_size`] | how many calls a batch takes |
//! | [`decomposition`] | what a call will access: record actions, coarse actions |
//! | [`graph`] | record actions, record queues, the dependency graph |
//! | [`range`] | coarse actions among those of records |
//! | [`construction`] | building it (algorithm 1) |
//! | [`partitioning`] | dividing it (algorithm 2) |
//! | [`execution`] | executing it (algorithm 3) |
//! | [`standing`] | how far an action is that depends on others |
//! | [`turns`] | the turns of a loop, which end in any order |
//! | [`handed`] | values that one action hands to others |
//! | [`record_action`] | one action after the other on a record, which is written once |
//! | [`row_change`] | rows that come or go there |
//! | [`composite`] | calls that are one composite action |
//! | [`round`] | the phases, and the barrier at the end of each graph |
//! | [`crew`] | the threads that are lent |
//! | [`statistics`] | where time goes |
//! | [`engine`] | the engine behind the contract |
//! | [`replay`] | the log's calls as graphs again |
//!
//! It is not responsible for running a call from beginning to end: that is `fabius_engine::eager`.

#[cfg(test)]
mod accounts;
pub mod batch_size;
pub mod composite;
pub mod construction;
pub mod crew;
pub mod decomposition;
pub mod engine;
pub mod execution;
pub mod graph;
pub mod handed;
pub mod initiator;
pub mod partitioning;
pub mod range;
pub mod record_action;
pub mod replay;
pub mod round;
pub mod row_change;
pub mod standing;
pub mod statistics;
pub mod turns;

pub use engine::{GraphEngine, Settings};
pub use replay::Logged;
