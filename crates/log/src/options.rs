//! The settings of a log.

use std::fmt;
use std::time::Duration;

/// Which database a log belongs to, so that the file of one is never read as another's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(pub [u8; 16]);

impl fmt::Display for DatabaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DatabaseId({self})")
    }
}

/// What a group has been through before it counts as durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Written and synced: survives the loss of power.
    Fsync,
    /// Written: survives the end of the process, but a power loss may take any part of what was
    /// written since the last clean close or [`Log::sync`](crate::Log::sync).
    None,
}

/// Who writes the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flusher {
    /// A thread of the log.
    Thread,
    /// The caller, by [`Log::flush_now`](crate::Log::flush_now), so that a simulation decides when;
    /// waiting for durability and a full buffer flush by themselves, where they would block.
    Manual,
}

/// The settings of a log; start from [`LogOptions::new`].
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// The database the log belongs to.
    pub database_id: DatabaseId,
    /// The first sequence number the caller needs. A new log starts with it; a log that starts
    /// later or ends before it is refused. One, unless older segments were discarded.
    pub first_seq: u64,
    /// What a group has been through before it counts as durable.
    pub durability: Durability,
    /// Who writes the groups.
    pub flusher: Flusher,
    /// A segment that would grow over this many bytes is ended and the next one begun. A batch
    /// longer than this gets a segment of its own.
    pub segment_bytes: u64,
    /// Appending blocks while this many bytes wait for the flusher; where threads append by place, each may have an
    /// equal part of it waiting. As many again may be on their way to the disk, and as many behind a gap. A batch
    /// longer than this waits until nothing else of its buffer does.
    pub buffer_bytes: usize,
    /// With [`Durability::None`], how long the flusher lets a small group grow when nobody waits
    /// for it. (With [`Durability::Fsync`] groups grow during the sync before them.)
    pub gather: Duration,
    /// With [`Durability::Fsync`], how long the log is idle before the flusher records how far the
    /// last sync reached, so that later damage to the last group cannot pass for a torn tail.
    pub idle_mark: Duration,
    /// Whether a tail that one changed bit explains is damage, and not torn. Torn writes look like that now and then,
    /// when few bytes of a frame stand in the sector that was not written; so a log is refused that could be used but
    /// for one loss of power in many thousands. Whoever can have it from elsewhere wants to know.
    pub doubts_tails: bool,
}

impl LogOptions {
    /// The defaults: `Fsync`, a flusher thread, 64 MiB segments and buffer.
    #[must_use]
    pub fn new(database_id: DatabaseId) -> Self {
        Self {
            database_id,
            first_seq: 1,
            durability: Durability::Fsync,
            flusher: Flusher::Thread,
            segment_bytes: 64 << 20,
            buffer_bytes: 64 << 20,
            gather: Duration::from_micros(200),
            idle_mark: Duration::from_millis(20),
            doubts_tails: false,
        }
    }
}
