//! The settings of the engine.

use std::time::Duration;

/// How the lock manager knows when a call may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockManager {
    /// A queue of requests for each lock; a lock is handed on when it is released (Calvin, section 3.2).
    #[default]
    Queues,
    /// A count of requests for each lock; a call that did not get all of its locks at once has them when it
    /// is the oldest (Calvin, section 9).
    Counters,
}

/// The settings of the locking engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How the lock manager knows when a call may run.
    pub lock_manager: LockManager,
    /// How often a dependent call goes back to reconnaissance before it locks whole tables.
    pub restarts_max: u32,
    /// What passes between a call's reconnaissance and its place in the order, on the foundation's clock:
    /// stands for the delay of replication (Calvin, section 7.4).
    pub delay: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { lock_manager: LockManager::Queues, restarts_max: 3, delay: Duration::ZERO }
    }
}
