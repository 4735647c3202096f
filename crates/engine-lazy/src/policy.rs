//! When deferred work is done (lazy evaluation, sections 2.6 and 3.1.2).

/// The settings of the lazy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// A record on which this many calls have left stickies, since the last write that did not depend on them, hands
    /// the newest of them to substantiation; 1 substantiates every call as soon as it is promised.
    pub chain_bound: u32,
    /// Whether threads with nothing else to do work off the backlog, oldest first.
    pub idle: bool,
    /// Rows and deferred work may take this many bytes before callers are slowed down in favour of
    /// substantiation.
    pub memory_bytes: usize,
    /// At most this many calls wait for substantiation before callers are slowed down.
    pub backlog_calls: u64,
}

impl Policy {
    /// Whether every call is substantiated as soon as it is promised.
    pub fn is_eager(&self) -> bool {
        self.chain_bound <= 1
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy { chain_bound: 100, idle: true, memory_bytes: 8 << 30, backlog_calls: 1_000_000 }
    }
}
