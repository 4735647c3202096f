//! The database: a directory, an engine, some threads.

use crate::call::{Prepared, Promise};
use crate::checkpoints::{Automatic, Checkpoint, CheckpointStatus, Checkpoints};
use crate::history::{History, Moment};
use crate::identity::is_member;
use crate::meeting::Meeting;
use crate::opening;
use crate::options::{Durability, EngineKind, Options};
use crate::recovery::Recovery;
use crate::session::shared::Sessions;
use crate::signal::Signal;
use crate::statement::Caller;
use fabius_cluster::{AgreedEngine, KeptCheckpoints, Point};
use fabius_engine::checkpoint::Progress as CheckpointProgress;
use fabius_engine::counters::Counts;
use fabius_engine::entry;
use fabius_engine::foundation::log_error;
use fabius_engine::{Batch, Definitions, Engine, Foundation, Procedure, Room, Standpoint};

use fabius_engine_graph::GraphEngine;
use fabius_engine_lazy::LazyEngine;
use fabius_engine_partitioned::{PartitionedEngine, Policy as Partitioning, Scheme};
use fabius_engine_split::SplitEngine;
use fabius_env::{Clock, DirectoryLock, Disk, RealClock, RealDisk};
use fabius_log::{DatabaseId, Flusher, Frame, Log, LogError, LogOptions, RecoveryReport};
use fabius_program::arguments;
use fabius_program::catalog::Catalog;
use fabius_storage::block;
use fabius_value::{Error, Result, Seq, SqlState, Value};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Release},
};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an idle worker sleeps at most before it looks again for something to do.
const IDLE: Duration = Duration::from_millis(50);

/// An open database. Usable from many threads; closes when dropped.
pub struct Database {
    foundation: Arc<Foundation>,
    pub(crate) engine: Arc<dyn Engine>,
    /// The engine once more, if it is that of a cluster's node.
    pub(crate) agreed: Option<Arc<AgreedEngine>>,
    lazy: Option<Arc<LazyEngine>>,
    split: Option<Arc<SplitEngine>>,
    graph: Option<Arc<GraphEngine>>,
    signal: Arc<Signal>,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
    pub(crate) log: Option<Arc<Log>>,
    pub(crate) recovery: Option<RecoveryReport>,
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
    /// Where a node of a cluster takes its checkpoints.
    pub(crate) meeting: Arc<Meeting<Point>>,
    automatic: Option<Automatic>,
    history: Option<History>,
    sessions: Sessions,
    /// Comes last, so that it is dropped when the tables are gone.
    _memory: GivesMemoryBack,
}

/// What a database's directory holds, taken for this process.
pub(crate) struct Files {
    pub(crate) log_disk: Arc<dyn Disk>,
    pub(crate) checkpoints: Arc<dyn Disk>,
    pub(crate) held: DirectoryLock,
    pub(crate) id: DatabaseId,
}

/// Leaves the process's memory in order.
struct GivesMemoryBack;

impl Drop for GivesMemoryBack {
    fn drop(&mut self) {
        block::give_back_all();
    }
}

impl Database {
    /// Opens the database in a directory, or begins one there: loads the newest whole checkpoint and runs again what
    /// the log has behind it, by [`Options::recovery_threads`]. Every call whose outcome was ever acknowledged is
    /// there.
    ///
    /// # Errors
    /// A directory that cannot be read or written or is in use, damage in the log (named with segment
    /// and offset), checkpoints that are all damaged without a log that reaches back, files of a newer
    /// version.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Database> {
        let path = path.as_ref();
        if is_member(path) {
            return Err(Error::new(SqlState::NOT_IN_STATE, "the directory is that of a node of a cluster")
                .with_detail(path.display().to_string())
                .with_hint("serve it with `fabius serve`, or open it as a member; alone it would part from the others"));
        }
        let disk = RealDisk::create(path).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the database directory cannot be created")
                .with_detail(format!("{}: {error}", path.display()))
                .with_hint("name a directory in which this user may write")
        })?;
        Database::open_on(Arc::new(disk), Arc::new(RealClock::new()), Flusher::Thread, options)
    }

    /// A database that is nowhere but in memory, without a log.
    pub fn in_memory(options: Options) -> Database {
        let foundation = Arc::new(Foundation::new(Arc::new(RealClock::new())));
        let mut database = Database::start(foundation, options);
        database.keep_history(options);
        database
    }

    /// Opens a database on any disk and clock: how simulations run it.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        flusher: Flusher,
        options: Options,
    ) -> Result<Database> {
        let Files { log_disk, checkpoints: disk, held, id } = Files::of(&*disk)?;
        let threads = options.recovery_threads();
        let begin = opening::begin(&*disk, &*log_disk, id, threads)?;
        let mut log_options = LogOptions::new(id);
        log_options.flusher = flusher;
        log_options.durability = match options.durability {
            Durability::Fsync => fabius_log::Durability::Fsync,
            Durability::None => fabius_log::Durability::None,
        };
        let foundation = Arc::new(Foundation::new(clock));
        let mut database = Database::start(foundation.clone(), Options { workers: 0, ..options });
        let newest = begin.state.as_ref().map(|state| state.seq);
        let (chosen, graph) = ((options.engine, database.engine.clone()), database.graph.clone());
        let recovery = RefCell::new(Recovery::begin(chosen, graph, foundation.clone(), begin.state, threads));
        let last = newest.unwrap_or_default();
        log_options.first_seq = last.next().0;
        let mut bytes_replayed = 0;
        let mut begins_late = None;
        let take = |frame: Frame<'_>| {
            // What begins too late cannot be replayed; the log refuses it once it has all been judged.
            if *begins_late.get_or_insert(frame.first_seq > last.next().0) || frame.last_seq() <= last.0 {
                return Ok(());
            }
            bytes_replayed += frame.payload.len() as i64;
            recovery.borrow_mut().take(&frame).map_err(Opening::Replay)
        };
        let end = || recovery.borrow_mut().end();
        let opened = Log::open_when(log_disk, log_options, take, || end().map_err(Opening::Replay));
        let (log, report) = opened.map_err(|error| match error {
            // What is wrong with an entry before the damage is told first.
            Opening::Log(error) => {
                end().err().unwrap_or_else(|| opening::explain(&error, &begin.passed_over))
            }
            Opening::Replay(error) => error,
        })?;
        fabius_storage::checkpoint::delete_unfinished(&*disk)?;
        let log = Arc::new(log);
        foundation.attach_log(log.clone(), options.durability == Durability::Fsync);
        database.log = Some(log.clone());
        database.recovery = Some(report);
        let status = CheckpointStatus { newest, passed_over: begin.passed_over, failed: None };
        let threads = options.checkpoint_threads();
        database.keep_checkpoints(disk, id, log, held, begin.bytes, bytes_replayed, status, None, threads);
        database.begin_work(options)?;
        Ok(database)
    }

    /// Takes checkpoints from now on, of the state that the log gives.
    #[expect(clippy::too_many_arguments, reason = "the fields of one struct")]
    pub(crate) fn keep_checkpoints(
        &mut self,
        disk: Arc<dyn Disk>,
        database: DatabaseId,
        log: Arc<Log>,
        held: DirectoryLock,
        newest_bytes: u64,
        bytes_replayed: i64,
        status: CheckpointStatus,
        kept: Option<Arc<KeptCheckpoints>>,
        threads: usize,
    ) {
        self.checkpoints = Some(Arc::new(Checkpoints {
            disk,
            database,
            engine: self.engine.clone(),
            foundation: self.foundation.clone(),
            log,
            threads,
            agreed: self.agreed.clone().zip(kept),
            whole: Mutex::new(status.newest.into_iter().collect()),
            status: Mutex::new(status),
            newest_bytes: AtomicU64::new(newest_bytes),
            counted_from: AtomicI64::new(-bytes_replayed),
            _held: held,
        }));
    }

    /// Settings and threads, once everything that was there is there again.
    pub(crate) fn begin_work(&mut self, options: Options) -> Result<()> {
        self.recall_unnamed();
        let window = self.definitions().key_window.calls;
        // In a cluster that is for all to agree on, and not for whoever is opened.
        let wanted = options.key_window_calls.filter(|_| self.agreed.is_none());
        if let Some(calls) = wanted.filter(|calls| *calls != window) {
            self.engine.amend(&entry::encode_key_window(calls))?;
        }
        self.start_workers(options.workers);
        self.keep_history(options);
        // In a cluster a node takes those that others want, too.
        let every_bytes = options.checkpoint_log_bytes.or(self.agreed.as_ref().map(|_| u64::MAX));
        if let (Some(checkpoints), Some(bytes), 1..) = (&self.checkpoints, every_bytes, options.workers) {
            let meeting = self.meeting.clone();
            self.automatic = Some(Automatic::start(checkpoints.clone(), bytes, meeting));
        }
        Ok(())
    }

    fn keep_history(&mut self, options: Options) {
        let start = |keep| History::start(self.foundation.clone(), keep);
        self.history = options.history.map(start);
    }

    /// Stands at the newest promised seq, for as long as the caller likes: what queries read from, through
    /// [`Database::query_at`] and [`Engine::scan_at`]. It blocks no call; what it can see is kept meanwhile.
    ///
    /// What is seen may not be durable yet: queries wait for that, and whoever scans does by
    /// [`fabius_engine::Foundation::wait_durable`]. There are some 4,000 places for all readers; who finds none waits
    /// until another one has gone.
    pub fn standpoint(&self) -> Standpoint<'static> {
        Standpoint::held(&self.foundation)
    }

    /// Stands at a seq of the past, if [`Options::history`] reaches back to it.
    ///
    /// A seq at which a reader stood, or could have, is always one to stand at. Engines also put calls in force
    /// together: then there is a state before all of them and one after, at the last of their seqs.
    ///
    /// # Errors
    /// `55000` if that seq is no longer there, or not yet; its detail says what is. The same if it is of a call that
    /// came into force together with some behind it; its hint names the nearest seqs that can be read at.
    pub fn standpoint_at(&self, seq: Seq) -> Result<Standpoint<'static>> {
        self.kept_history()?.at(Moment::Seq(seq))
    }

    /// Stands at the newest seq that was promised at a time (microseconds since 1970), to a few milliseconds.
    ///
    /// # Errors
    /// `55000` if that time is before what is kept, or in the future; its detail says what is there.
    pub fn standpoint_at_time(&self, time_us: i64) -> Result<Standpoint<'static>> {
        self.kept_history()?.at(Moment::Time(time_us))
    }

    pub(crate) fn kept_history(&self) -> Result<&History> {
        self.history.as_ref().ok_or_else(|| {
            Error::new(SqlState::NOT_IN_STATE, "no history is kept")
                .with_hint("open the database with a history: how long what was can be read")
        })
    }

    pub(crate) fn start(foundation: Arc<Foundation>, options: Options) -> Database {
        let (mut lazy, mut split, mut graph) = (None, None, None);
        let engine: Arc<dyn Engine> = match options.engine {
            EngineKind::Lazy => {
                lazy.insert(Arc::new(LazyEngine::new(foundation.clone(), options.policy))).clone()
            }
            EngineKind::TwoPhaseLocking => Arc::new(fabius_engine_2pl::new(foundation.clone())),
            EngineKind::Graph => {
                graph.insert(Arc::new(GraphEngine::new(foundation.clone(), options.graph))).clone()
            }
            EngineKind::Optimistic => Arc::new(fabius_engine_occ::new(foundation.clone())),
            EngineKind::Split => {
                let engine = fabius_engine_split::with_policy(foundation.clone(), options.split);
                split.insert(Arc::new(engine)).clone()
            }
            EngineKind::Locking => {
                Arc::new(fabius_engine_locking::LockingEngine::new(foundation.clone(), options.locking))
            }
            EngineKind::Partitioned => partitioned(Scheme::Partitioned, foundation.clone(), options),
            EngineKind::Dora => partitioned(Scheme::Dora, foundation.clone(), options),
        };
        let mut database = Database {
            foundation,
            engine,
            agreed: None,
            lazy,
            split,
            graph,
            signal: Arc::default(),
            stop: Arc::default(),
            workers: Vec::new(),
            log: None,
            recovery: None,
            checkpoints: None,
            meeting: Arc::default(),
            automatic: None,
            history: None,
            sessions: Sessions::default(),
            _memory: GivesMemoryBack,
        };
        database.start_workers(options.workers);
        database
    }

    fn start_workers(&mut self, count: usize) {
        for number in 0..count {
            let (engine, signal, stop) = (self.engine.clone(), self.signal.clone(), self.stop.clone());
            let work = move || {
                while !stop.load(Acquire) {
                    if !engine.help() {
                        signal.wait(|| stop.load(Acquire) || engine.help(), IDLE);
                    }
                }
            };
            let worker = std::thread::Builder::new().name(format!("fabius-worker-{number}")).spawn(work);
            self.workers.push(worker.expect("the system gives us a thread"));
        }
    }

    /// What was found in the log at opening; `None` without a log.
    pub fn recovery(&self) -> Option<&RecoveryReport> {
        self.recovery.as_ref()
    }

    /// What whoever runs the database should be told of how it was opened, a sentence each: a torn end of the log
    /// that was cut off, checkpoints that were passed over.
    pub fn warnings(&self) -> Vec<String> {
        let torn = self.recovery.as_ref().and_then(|report| report.torn_tail.as_ref()).map(|torn| {
            format!(
                "the end of the log was torn and has been cut off: {} bytes of {} from offset {} on ({}); calls up to \
                 {} are there, none behind them was acknowledged as synced",
                torn.bytes_cut, torn.segment, torn.offset, torn.why, torn.last_good_seq
            )
        });
        let passed_over = self
            .checkpoint_status()
            .passed_over
            .into_iter()
            .map(|error| format!("a checkpoint was passed over for an older one and the log: {error}"));
        torn.into_iter().chain(passed_over).collect()
    }

    /// The engine that runs the calls.
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// What the engine stands on.
    pub(crate) fn foundation(&self) -> &Arc<Foundation> {
        &self.foundation
    }

    /// What transactions share.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The lazy engine, if that is the one: for its policy.
    pub fn lazy(&self) -> Option<&LazyEngine> {
        self.lazy.as_deref()
    }

    /// The splitting engine, if that is the one: for the length of its phases.
    pub fn split(&self) -> Option<&SplitEngine> {
        self.split.as_deref()
    }

    /// The graph engine, if that is the one: for the size of its batches.
    pub fn graph(&self) -> Option<&GraphEngine> {
        self.graph.as_deref()
    }

    /// The definitions in force.
    pub fn definitions(&self) -> Arc<Definitions> {
        self.foundation.definitions()
    }

    /// Adds tables and procedures, given in the text form; all of them or, on an error, those before
    /// it. Returns when they are durable.
    ///
    /// # Errors
    /// What the parser and the verifier find wrong, with line and column.
    pub fn define(&self, text: &str) -> Result<()> {
        for definition in fabius_program::syntax::parse(text, "definition")? {
            self.engine.define(&definition.to_string())?;
        }
        Ok(())
    }

    /// The newest procedure of a name.
    ///
    /// # Errors
    /// `42883` if there is none.
    pub fn procedure(&self, name: &str) -> Result<Arc<Procedure>> {
        find_procedure(&self.definitions(), name)
    }

    /// A procedure, ready to be called.
    ///
    /// # Errors
    /// `42883` if there is none of this name.
    pub fn prepare(&self, name: &str) -> Result<Prepared<'_>> {
        Ok(Prepared::new(self, self.procedure(name)?))
    }

    /// Calls a procedure and waits until the outcome is decided and durable.
    ///
    /// # Errors
    /// Why the call aborted: its own `require`, a constraint, or its arguments.
    pub fn call(&self, name: &str, arguments: &[Value]) -> Result<Promise<'_>> {
        self.prepare(name)?.call(arguments)
    }

    /// Runs a procedure that writes nothing on the newest promised state, on this thread.
    ///
    /// # Errors
    /// `42883` if there is none of this name, `25006` if it writes; why it aborted.
    pub fn query(&self, name: &str, arguments: &[Value]) -> Result<Vec<Value>> {
        let (procedure, bytes) = read_only(&self.definitions(), name, arguments)?;
        self.engine.query(&procedure, &bytes)
    }

    /// Runs a procedure that writes nothing at a [standpoint](Database::standpoint), on this thread: several queries
    /// see the same state.
    ///
    /// ```
    /// # use fabius::{Database, Options};
    /// # fn main() -> fabius::Result<()> {
    /// let database = Database::in_memory(Options::default());
    /// database.define(
    ///     "table pages { id: bigint, hits: bigint, primary key (id) }
    ///      procedure open(id: bigint) { insert pages { id: id, hits: 0 } }
    ///      procedure hit(id: bigint) { pages[id].hits += 1 }
    ///      procedure hits(id: bigint) -> bigint { return pages[id].hits }",
    /// )?;
    /// database.call("open", &[1i64.into()])?;
    /// let before = database.standpoint();
    /// database.call("hit", &[1i64.into()])?;
    /// assert_eq!(database.query_at(&before, "hits", &[1i64.into()])?, [0i64.into()]);
    /// assert_eq!(database.query("hits", &[1i64.into()])?, [1i64.into()]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Database::query`], by the definitions of the standpoint; `22023` if that is one of another database.
    pub fn query_at(&self, at: &Standpoint<'static>, name: &str, arguments: &[Value]) -> Result<Vec<Value>> {
        if !at.is_of(&self.foundation) {
            return Err(Error::new(SqlState::INVALID_PARAMETER, "the standpoint is one of another database")
                .with_hint("stand in the database that is asked"));
        }
        let (procedure, bytes) = read_only(at.definitions(), name, arguments)?;
        let outcome = self.engine.query_at(at, &procedure, &bytes, Room::unbounded());
        self.foundation.wait_durable(at.seq())?;
        outcome
    }

    /// Every row of a table on the newest promised state, once that is durable.
    ///
    /// # Errors
    /// `42P01` if there is no such table; if the log has failed, why.
    pub fn rows(&self, table: &str) -> Result<Vec<Vec<Value>>> {
        let definitions = self.definitions();
        let id = definitions
            .catalog
            .find_table(table)
            .ok_or_else(|| unknown_table(&definitions.catalog, table))?;
        let mut rows = Vec::new();
        let seq = self.engine.rows(id, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        self.foundation.wait_durable(seq)?;
        Ok(rows)
    }

    /// Hands in many calls at once; see [`fabius_engine::BatchBuilder`].
    ///
    /// A batch that would change what an interactive transaction has locked is held back until it would not.
    pub fn submit(&self, batch: Arc<Batch>) {
        self.admit(batch, &Caller::default(), None);
    }

    /// Hands a batch to the engine.
    pub(crate) fn hand_in(&self, batch: Arc<Batch>) {
        self.engine.submit(batch);
        self.signal.ring();
    }

    /// Lends the calling thread for one piece of work; whether there was any.
    pub fn help(&self) -> bool {
        self.engine.help()
    }

    /// Writes the log's entries up to here to its files, as happens by itself within a moment: with
    /// [`Durability::None`] calls are acknowledged before that, and would be lost if the process ended without
    /// closing the database.
    ///
    /// # Errors
    /// What ended the log.
    pub fn flush(&self) -> Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.flush_now().map_err(|error| log_error(&error)))
    }

    /// Finishes all deferred work of calls promised so far.
    pub fn settle(&self) {
        self.engine.settle();
    }

    /// Takes a checkpoint while calls go on; returns when it is durable. From then on opening replays only
    /// what came after it. The two newest are kept, and the log from the older one on.
    ///
    /// It is a snapshot: what is overwritten meanwhile stays in memory until it is done. In a cluster every node
    /// takes one at the same place of the order, and they compare digests of it.
    ///
    /// # Errors
    /// `53100`, `58030` as the disk fails: the database goes on with the checkpoints it had. What ended the
    /// log, if it has failed. `0A000` for a database that is nowhere but in memory.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        self.checkpoint_watched(&mut |_| Ok(()))
    }

    /// Takes a checkpoint as [`Database::checkpoint`] does; `watch` is told how far it is, and gives it up with an
    /// error, where the database is no node of a cluster.
    ///
    /// # Errors
    /// As [`Database::checkpoint`], and the error of `watch`.
    pub fn checkpoint_watched(
        &self,
        watch: &mut dyn FnMut(&CheckpointProgress) -> Result<()>,
    ) -> Result<Checkpoint> {
        let Some(checkpoints) = &self.checkpoints else {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "a database in memory has no checkpoints")
                .with_hint("open it in a directory"));
        };
        match self.automatic.as_ref().filter(|_| self.is_replicated()) {
            Some(automatic) => automatic.take_agreed(checkpoints),
            None => checkpoints.take(watch),
        }
    }

    /// How it stands with the checkpoints: also which were passed over when this was opened.
    pub fn checkpoint_status(&self) -> CheckpointStatus {
        let checkpoints = self.checkpoints.as_ref();
        checkpoints.map_or_else(CheckpointStatus::default, |checkpoints| checkpoints.status.lock().clone())
    }

    /// How many rows a table has, about; `None` if there is no such table.
    pub fn rows_about(&self, table: &str) -> Option<usize> {
        let definitions = self.definitions();
        Some(definitions.table(definitions.catalog.find_table(table)?).records())
    }

    /// Bytes that rows take, with their older versions and with calls whose work is still to be done: those of all
    /// databases of the process.
    pub fn rows_bytes(&self) -> usize {
        fabius_storage::memory::used()
    }

    /// What the engine has done so far.
    pub fn counts(&self) -> Counts {
        self.engine.counts()
    }

    /// Why it has stopped, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.foundation.failure().cloned()
    }

    /// Stops taking calls, makes everything promised durable, and closes the log. Deferred work that
    /// was not done is done after the next opening.
    ///
    /// # Errors
    /// What ended the log, if it failed, or stopped the database.
    pub fn close(mut self) -> Result<()> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<()> {
        if self.stop.swap(true, Release) {
            return Ok(());
        }
        self.engine.close(Error::new(SqlState::SHUTDOWN, "the database is closing"));
        self.signal.ring();
        self.automatic = None;
        self.history = None;
        for worker in self.workers.drain(..) {
            if worker.join().is_err() {
                return Err(Error::new(SqlState(*b"XX000"), "a worker thread failed"));
            }
        }
        let closed = self.log.take().map_or(Ok(()), |log| log.close().map_err(|error| log_error(&error)));
        self.foundation.failure().cloned().map_or(closed, Err)
    }
}

/// A procedure that writes nothing, and its encoded arguments.
fn read_only(
    definitions: &Definitions,
    name: &str,
    arguments: &[Value],
) -> Result<(Arc<Procedure>, Vec<u8>)> {
    let procedure = find_procedure(definitions, name)?;
    if !procedure.is_read_only {
        return Err(
            Error::new(SqlState(*b"25006"), format!("procedure {name} writes")).with_hint("use call for it")
        );
    }
    let bytes = arguments::encode(&procedure.program, arguments)?;
    Ok((procedure, bytes))
}

/// The newest procedure of a name.
fn find_procedure(definitions: &Definitions, name: &str) -> Result<Arc<Procedure>> {
    let id = definitions.catalog.find_procedure(name).ok_or_else(|| {
        let known: Vec<&str> =
            definitions.catalog.procedures().map(|(_, program)| program.name.as_str()).take(20).collect();
        Error::new(SqlState::UNDEFINED_FUNCTION, format!("there is no procedure {name:?}")).with_hint(
            if known.is_empty() {
                "none are defined yet".to_string()
            } else {
                format!("defined are {}", known.join(", "))
            },
        )
    })?;
    definitions.procedure(id).cloned()
}

impl Drop for Database {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.shut_down();
    }
}

/// The error for a table that there is not.
fn unknown_table(catalog: &Catalog, name: &str) -> Error {
    let mut known: Vec<&str> = catalog.tables().map(|(_, schema)| schema.name.as_str()).collect();
    known.sort_unstable();
    let hint = match known.as_slice() {
        [] => "none are defined yet".to_string(),
        known => format!("defined are {}", known[..known.len().min(20)].join(", ")),
    };
    Error::new(SqlState::UNDEFINED_TABLE, format!("there is no table {name:?}")).with_hint(hint)
}

fn partitioned(scheme: Scheme, foundation: Arc<Foundation>, options: Options) -> Arc<dyn Engine> {
    let usual = Partitioning::of(scheme);
    let partitions = options.partitions.unwrap_or(usual.partitions);
    let policy = Partitioning { partitions, waiting: options.waiting, ..usual };
    Arc::new(PartitionedEngine::new(foundation, policy))
}

/// What can go wrong while the log is read.
enum Opening {
    Log(LogError),
    Replay(Error),
}

impl From<LogError> for Opening {
    fn from(error: LogError) -> Opening {
        Opening::Log(error)
    }
}
