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
//! | [`control`] | which locks a call takes, and when |
//!
//! What it has in common with other engines that run calls whole is [`fabius_engine::eager`].
//!
//! It is meant to be good at what it does: a lock is taken with one atomic instruction, deadlock is
//! avoided without a graph, rows that a program updates are locked exclusively at once, and versions let
//! queries pass. Callers never see a conflict: a call that has to give way starts again.

pub mod control;
pub mod lock;
pub mod wait;

use control::WoundWait;
use fabius_engine::Foundation;
use fabius_engine::eager::EagerEngine;
use std::sync::Arc;

/// The two-phase locking engine.
pub type LockingEngine = EagerEngine<WoundWait>;

/// A two-phase locking engine with the foundation's definitions.
pub fn new(foundation: Arc<Foundation>) -> LockingEngine {
    EagerEngine::new(foundation, WoundWait::default())
}
