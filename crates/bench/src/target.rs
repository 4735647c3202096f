//! A database under measurement: where it is, what was loaded, what was done to it since.

use crate::interrupt::Interrupt;
use crate::operation::{Mode, Operation};
use crate::settings::Settings;
use crate::temporary::TemporaryDirectory;
use fabius::{
    Database, Durability, EngineKind, GraphSettings, LockManager, LockingPolicy, Options, Policy, Procedure,
    Result, SplitPolicy, Waiting,
};
use fabius_env::RealDisk;
use fabius_log::Log;
use fabius_value::{Error, SqlState};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A loaded database.
pub struct Target {
    /// The database; it has no threads of its own.
    pub database: Database,
    /// The target's engine.
    pub engine: EngineKind,
    /// When callers are told.
    pub durability: Durability,
    directory: PathBuf,
    /// Deleted with the target.
    _temporary: TemporaryDirectory,
    committed: Mutex<HashMap<&'static str, u64>>,
    runs: Mutex<u64>,
}

/// Which database to make.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// The engine.
    pub engine: EngineKind,
    /// When callers are told.
    pub durability: Durability,
    /// Where to make a directory for it; the system's place for temporary files if `None`.
    pub parent: Option<PathBuf>,
    /// Raised if the user does not want it any more.
    pub interrupt: Interrupt,
}

impl Target {
    /// A database in a directory of its own, which is deleted with the target.
    pub(crate) fn new(database: Database, directory: TemporaryDirectory, options: &TargetOptions) -> Target {
        Target {
            database,
            engine: options.engine,
            durability: options.durability,
            directory: directory.path().to_path_buf(),
            _temporary: directory,
            committed: Mutex::default(),
            runs: Mutex::default(),
        }
    }

    /// Closes the database and opens it again, as after a restart.
    ///
    /// # Errors
    /// As [`Database::close`] and [`Database::open`].
    pub fn reopen(self, settings: &Settings) -> Result<Target> {
        let Target { database, engine, durability, directory, .. } = self;
        database.close()?;
        let database = Database::open(&directory, database_options(engine, durability, settings))?;
        Ok(Target { database, engine, durability, directory, ..self })
    }

    /// The procedures behind operations, in their order.
    ///
    /// # Errors
    /// `42883` if the workload's programs do not define one.
    pub fn procedures(&self, operations: &[Operation]) -> Result<Vec<Arc<Procedure>>> {
        operations.iter().map(|operation| self.database.procedure(operation.procedure)).collect()
    }

    /// Puts those settings in force that may change while the engine lives: those of the lazy, the split and the graph
    /// engine.
    pub fn apply(&self, settings: &Settings) {
        if let Some(split) = self.database.split() {
            split.protocol().set_phase_ms_max(split_policy(settings).phase_ms_max);
        }
        if let Some(lazy) = self.database.lazy() {
            lazy.set_policy(policy(settings));
        }
        if let Some(graph) = self.database.graph() {
            graph.set_batch_calls_max(graph_settings(settings).batch_calls_max);
        }
    }

    /// Lets waiting threads work off the lazy engine's backlog from now on.
    pub fn work_off_when_idle(&self, settings: &Settings) {
        if let Some(lazy) = self.database.lazy() {
            lazy.set_policy(Policy { idle: true, ..policy(settings) });
        }
    }

    /// The number of the run that begins now, from 0.
    pub fn begin_run(&self) -> u64 {
        let mut runs = self.runs.lock();
        *runs += 1;
        *runs - 1
    }

    /// Remembers calls that committed.
    pub fn count(&self, operations: &[Operation], committed: &[u64]) {
        let mut counts = self.committed.lock();
        for (operation, count) in operations.iter().zip(committed).filter(|(of, _)| of.mode != Mode::Query) {
            *counts.entry(operation.procedure).or_default() += count;
        }
    }

    /// How many calls of a procedure have committed since loading.
    pub fn committed(&self, procedure: &str) -> u64 {
        self.committed.lock().get(procedure).copied().unwrap_or_default()
    }

    /// The log's directory, with everything written that was appended so far.
    ///
    /// # Errors
    /// What ended the log.
    pub fn written_log(&self) -> Result<RealDisk> {
        let log: Option<Arc<Log>> = self.database.engine().foundation().log();
        if let Some(log) = log {
            log.sync().map_err(|error| fabius_engine::foundation::log_error(&error))?;
        }
        let path = self.directory.join("log");
        RealDisk::open(&path).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the log cannot be read")
                .with_detail(format!("{}: {error}", path.display()))
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A database without threads of its own: only clients work.
pub(crate) fn database_options(engine: EngineKind, durability: Durability, settings: &Settings) -> Options {
    Options {
        engine,
        durability,
        workers: 0,
        policy: policy(settings),
        locking: locking_policy(settings),
        split: split_policy(settings),
        graph: graph_settings(settings),
        partitions: settings.auto("engine_partitions").map(|count| count as usize),
        waiting: waiting(settings),
        ..Options::default()
    }
}

/// The lazy engine's policy by the common settings.
pub fn policy(settings: &Settings) -> Policy {
    Policy {
        chain_bound: settings.integer("chain_bound") as u32,
        idle: settings.text("idle") == "on",
        memory_bytes: (settings.integer("memory_mb") as usize) << 20,
        backlog_calls: settings.integer("backlog"),
    }
}

/// The locking engine's policy by the common settings.
pub fn locking_policy(settings: &Settings) -> LockingPolicy {
    let lock_manager = match settings.text("lock_manager") {
        "counters" => LockManager::Counters,
        _ => LockManager::Queues,
    };
    LockingPolicy {
        lock_manager,
        delay: std::time::Duration::from_micros(settings.integer("delay_us")),
        ..LockingPolicy::default()
    }
}

/// The graph engine's settings that the common ones ask for.
fn graph_settings(settings: &Settings) -> GraphSettings {
    GraphSettings {
        latency_target_us: settings.integer("batch_latency_us"),
        batch_calls_max: settings.integer("engine_batch") as u32,
        ..GraphSettings::default()
    }
}

/// How the partitioned engine waits, by the common settings.
fn waiting(settings: &Settings) -> Waiting {
    match settings.text("waiting") {
        "blocks" => Waiting::Blocks,
        _ => Waiting::Lends,
    }
}

/// The split engine's policy that settings ask for.
fn split_policy(settings: &Settings) -> SplitPolicy {
    SplitPolicy { phase_ms_max: settings.integer("phase_ms"), ..SplitPolicy::default() }
}
