//! Eager strict two-phase locking with wound-wait: the conventional engine, to compare the others with.
//!
//! A call runs whole, on the thread that takes it. It locks what it reads and writes, keeps its writes to
//! itself, takes its place in the log when it has all its locks, installs its writes as versions with that
//! seq, and gives the locks back. Readers on snapshots take no locks.
//!
//! ```text
//! batches --> intake --> turns, on any number of threads --------------------> promised --> durable
//!                         lock, read, write aside | seq, log | install | unlock
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`lock`] | a lock: one word |
//! | [`wait`] | waiting for it, and wound-wait |
//! | [`granule`] | locks on what is not a record: ranges, unique values, idempotency keys |
//! | [`plan`] | what is known of a program before it runs |
//! | [`transaction`] | what a call sees and locks |
//! | [`workspace`] | what it has written so far |
//! | [`turn`] | calls from beginning to end |
//! | [`sequencer`] | the order of calls, and what of it readers may see |
//! | [`commit`] | versions, and notes for purging |
//! | [`intake`] | calls that have not begun |
//! | [`engine`] | the engine behind the contract |
//!
//! It is meant to be good at what it does: a lock is taken with one atomic instruction, deadlock is
//! avoided without a graph, rows that a program updates are locked exclusively at once, and versions let
//! queries pass. Callers never see a conflict: a call that has to give way starts again.

pub mod commit;
pub mod engine;
pub mod granule;
pub mod intake;
pub mod lock;
pub mod plan;
pub mod sequencer;
pub mod transaction;
pub mod turn;
pub mod wait;
pub mod workspace;

pub use engine::LockingEngine;
