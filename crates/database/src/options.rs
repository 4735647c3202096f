//! The settings of a database.

use fabius_cluster::Replication;
use fabius_engine_graph::Settings as GraphSettings;
use fabius_engine_lazy::Policy;
use fabius_engine_locking::Policy as LockingPolicy;
use fabius_engine_partitioned::Waiting;
use fabius_engine_split::Policy as SplitPolicy;
use fabius_value::{Error, Result, SqlState};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Threads that replay the log, or write a checkpoint, at most.
pub const THREADS_MAX: usize = 64;

/// The strategy that runs calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// Lazy evaluation (the default).
    #[default]
    Lazy,
    /// Strict two-phase locking, eager.
    TwoPhaseLocking,
    /// Dependency graphs of batches (LADS).
    Graph,
    /// Optimistic concurrency control (Silo), eager.
    Optimistic,
    /// Phase reconciliation (Doppel) on optimistic concurrency control, eager.
    Split,
    /// Locks in log order (Calvin), eager.
    Locking,
    /// Static partitions, one thread at a time in each (H-Store).
    Partitioned,
    /// Logical partitions with local locks (DORA).
    Dora,
}

impl EngineKind {
    /// Every engine, in the order of the documentation.
    pub const ALL: [EngineKind; 8] = [
        EngineKind::Lazy,
        EngineKind::TwoPhaseLocking,
        EngineKind::Optimistic,
        EngineKind::Split,
        EngineKind::Locking,
        EngineKind::Graph,
        EngineKind::Partitioned,
        EngineKind::Dora,
    ];

    /// The engine's name, as users give it.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Lazy => "lazy",
            EngineKind::TwoPhaseLocking => "2pl",
            EngineKind::Graph => "graph",
            EngineKind::Optimistic => "occ",
            EngineKind::Split => "split",
            EngineKind::Locking => "locking",
            EngineKind::Partitioned => "partitioned",
            EngineKind::Dora => "dora",
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<EngineKind> {
        EngineKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<&str> = EngineKind::ALL.iter().map(|kind| kind.name()).collect();
            let what = match name {
                "" => "the name of an engine is missing".to_string(),
                _ => format!("there is no engine {name:?}"),
            };
            Error::new(SqlState::INVALID_PARAMETER, what)
                .with_hint(format!("engines are {}", names.join(", ")))
        })
    }
}

/// When a caller is told that its call is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// When the log has been synced behind it (the default).
    #[default]
    Fsync,
    /// When it is decided; the log is written, but a crash of the machine may lose the newest calls.
    None,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Fsync => "fsync",
            Durability::None => "none",
        })
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(name: &str) -> Result<Durability> {
        match name {
            "fsync" => Ok(Durability::Fsync),
            "none" => Ok(Durability::None),
            _ => Err(Error::new(SqlState::INVALID_PARAMETER, format!("there is no durability {name:?}"))
                .with_hint("durabilities are fsync, none")),
        }
    }
}

/// The settings of a database; start from `Options::default()`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The strategy that runs calls. May differ from one opening to the next.
    pub engine: EngineKind,
    /// When a caller is told that its call is committed.
    pub durability: Durability,
    /// Threads of the database's own that do what callers leave to be done; with 0, only callers
    /// work (in [`crate::Database::help`] and while they wait).
    pub workers: usize,
    /// When the lazy engine does deferred work.
    pub policy: Policy,
    /// How the locking engine manages locks and predictions.
    pub locking: LockingPolicy,
    /// When the split engine splits records, and for how long.
    pub split: SplitPolicy,
    /// How long a batch of the graph engine should take, and how it is divided.
    pub graph: GraphSettings,
    /// How many partitions the engines `partitioned` and `dora` divide rows into, 64 at most. `None`: one for each
    /// core, and eight logical ones for each core.
    pub partitions: Option<usize>,
    /// What a thread of the engine `partitioned` does whose partition is held for a call that needs others too.
    pub waiting: Waiting,
    /// A checkpoint is taken whenever the log has grown by this many bytes (1 GiB), or by as much as the
    /// last one takes, if that is more: so much has opening to replay, and about twice as much of the log is
    /// kept. `None` leaves it to [`crate::Database::checkpoint`], and so does a database without workers.
    pub checkpoint_log_bytes: Option<u64>,
    /// How many calls back an idempotency key is remembered, from now on. The log says so to whoever
    /// replays it, so `None` leaves it as it was the last time; a new database remembers 10,000,000 calls.
    /// A key takes about 150 bytes, and its call's result.
    pub key_window_calls: Option<u64>,
    /// How long what was can still be read ([`crate::Database::standpoint_at`]), counted from when the database
    /// was opened: so long, every version of every row is kept in memory. `None` keeps no more than readers need.
    pub history: Option<Duration>,
    /// When a caller is told of a call, in a cluster.
    pub replication: Replication,
    /// Threads that replay the log when the database is opened, 64 at most: the calls that no checkpoint has. With one,
    /// the engine takes them one after the other; with several, they are run as the graph engine runs them, whichever
    /// engine goes on from there. `None`: as many as there are cores, 16 at most. A log with few calls is replayed by
    /// one thread in any case, and so is that of a node of a cluster.
    pub recovery_threads: Option<usize>,
    /// Threads that write a checkpoint, 64 at most, beside those that run calls. `None`: one for each four cores.
    pub checkpoint_threads: Option<usize>,
}

impl Options {
    /// How many threads replay the log.
    pub(crate) fn recovery_threads(&self) -> usize {
        self.recovery_threads.unwrap_or_else(cores).clamp(1, THREADS_MAX)
    }

    /// How many threads write a checkpoint.
    pub(crate) fn checkpoint_threads(&self) -> usize {
        self.checkpoint_threads.unwrap_or_else(|| cores() / 4).clamp(1, THREADS_MAX)
    }
}

/// As many threads as there are cores, 16 at most.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get()).clamp(1, 16)
}

impl Default for Options {
    fn default() -> Options {
        Options {
            engine: EngineKind::default(),
            durability: Durability::default(),
            workers: cores(),
            policy: Policy::default(),
            locking: LockingPolicy::default(),
            split: SplitPolicy::default(),
            graph: GraphSettings::default(),
            partitions: None,
            waiting: Waiting::default(),
            checkpoint_log_bytes: Some(1 << 30),
            key_window_calls: None,
            history: None,
            replication: Replication::default(),
            recovery_threads: None,
            checkpoint_threads: None,
        }
    }
}
