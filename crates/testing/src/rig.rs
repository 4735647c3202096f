//! An engine set up for a test: a log on a simulated disk, calls by name, helping threads.
//!
//! ```
//! # use fabius_testing::rig::{Make, Rig};
//! # fn example(make: Make<'_>) {
//! let rig = Rig::new(make);
//! rig.define("table t { a: int, primary key (a) } procedure add(a: int) { insert t { a: a } }");
//! rig.call("add", &[1.into()]).unwrap();
//! assert_eq!(rig.rows("t"), [[1.into()]]);
//! let again = rig.replayed(make);      // a second engine that has run the first one's log
//! assert_eq!(again.rows("t"), rig.rows("t"));
//! # }
//! ```

use fabius_engine::checkpoint::{self, State, Written};
use fabius_engine::{Batch, BatchBuilder, Engine, Foundation, Procedure};
use fabius_env::{Disk, Fault, SimulatedClock, SimulatedDisk, schedule};
use fabius_log::{DatabaseId, Durability, Flusher, Log, LogError, LogOptions};
use fabius_program::{arguments, syntax};
use fabius_storage::checkpoint::Found;
use fabius_value::{Error, Result, Seq, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Makes an engine on a foundation.
pub type Make<'m> = &'m (dyn Fn(Arc<Foundation>) -> Arc<dyn Engine> + Sync + std::panic::RefUnwindSafe);

/// How long anything in a test may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The database that rigs are.
const DATABASE: DatabaseId = DatabaseId([1; 16]);

/// A batch as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The seq of its first entry.
    pub first_seq: Seq,
    /// How many entries.
    pub count: u32,
    /// Their bytes ([`fabius_engine::entry`]).
    pub payload: Vec<u8>,
}

/// An engine set up for a test.
pub struct Rig {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// What it stands on.
    pub foundation: Arc<Foundation>,
    /// The time, which stands still unless a test moves it.
    pub clock: Arc<SimulatedClock>,
    /// The engine's log, flushed by hand, or by a thread if it is durable.
    pub log: Arc<Log>,
    disk: Arc<SimulatedDisk>,
}

fn log_options() -> LogOptions {
    LogOptions { flusher: Flusher::Manual, durability: Durability::None, ..LogOptions::new(DATABASE) }
}

/// Segments of a simulated log: so small that calls come to their ends.
const SEGMENT_BYTES: u64 = 16 << 10;

impl Rig {
    /// An engine with an empty log, for which nobody waits.
    pub fn new(make: Make<'_>) -> Rig {
        Rig::with_log(make, false)
    }

    /// An engine with an empty log; with `waits`, calls are complete only when it is flushed.
    pub fn with_log(make: Make<'_>, waits: bool) -> Rig {
        Rig::open(make, SimulatedDisk::new(1), log_options(), None, waits)
    }

    /// An engine whose log is written by whoever appends: what was appended before, each time.
    pub fn writing_through(make: Make<'_>) -> Rig {
        let options = LogOptions { buffer_bytes: 1, ..log_options() };
        Rig::open(make, SimulatedDisk::new(1), options, None, false)
    }

    /// Makes the disk fail from now on.
    pub fn fault(&self, fault: Fault) {
        self.disk.fault(fault);
    }

    /// An engine that has run the log on `disk`, with a thread that flushes and syncs; calls are complete
    /// when they are durable.
    ///
    /// # Panics
    /// If it refuses any of the log.
    pub fn durable(make: Make<'_>, disk: SimulatedDisk) -> Rig {
        let options = LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::new(DATABASE) };
        Rig::open(make, disk, options, None, true)
    }

    /// A second engine that has run this one's log and goes on from there, apart from this one.
    ///
    /// # Panics
    /// If it refuses any of the log.
    pub fn replayed(&self, make: Make<'_>) -> Rig {
        Rig::open(make, self.copy_of_disk(), log_options(), None, false)
    }

    /// Takes a checkpoint, whatever else is going on.
    ///
    /// # Panics
    /// If that fails, which it has no reason to.
    pub fn checkpoint(&self) -> Written {
        let disk = self.checkpoints();
        checkpoint::write(&*self.engine, self.engine.stand(), &*disk, DATABASE, 1, &mut |_| Ok(()))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// A second engine that has this state alone, with an empty log behind it.
    pub fn at_checkpoint(&self, make: Make<'_>, written: &Written) -> Rig {
        Rig::open(make, SimulatedDisk::new(2), log_options(), Some(self.state(written)), false)
    }

    /// A second engine that began with this state and has run the rest of the log.
    pub fn after_checkpoint(&self, make: Make<'_>, written: &Written) -> Rig {
        Rig::open(make, self.copy_of_disk(), log_options(), Some(self.state(written)), false)
    }

    fn checkpoints(&self) -> Arc<dyn Disk> {
        self.disk.subdirectory("checkpoints").expect("a simulated disk makes it")
    }

    fn state(&self, written: &Written) -> State {
        let found = Found { name: written.name.clone(), seq: written.seq };
        let state = checkpoint::read(&*self.checkpoints(), &found, DATABASE, 1);
        state.unwrap_or_else(|error| panic!("{error}"))
    }

    fn open(
        make: Make<'_>,
        disk: SimulatedDisk,
        mut options: LogOptions,
        state: Option<State>,
        waits: bool,
    ) -> Rig {
        let clock = Arc::new(SimulatedClock::at(1_700_000_000_000_000));
        let foundation = Arc::new(Foundation::new(clock.clone()));
        let engine = make(foundation.clone());
        let disk = Arc::new(disk);
        if let Some(state) = state {
            options.first_seq = state.seq.0 + 1;
            engine.restore(state);
        }
        let needed = options.first_seq;
        let opened = Log::open(disk.clone(), options, |frame| {
            if frame.last_seq() < needed {
                return Ok::<(), LogError>(());
            }
            let seq = Seq(frame.first_seq);
            let done = engine.take(seq, frame.entry_count, frame.payload);
            done.unwrap_or_else(|error| panic!("replay at {seq}: {error}"));
            Ok(())
        });
        let log = Arc::new(opened.expect("what was written is read").0);
        foundation.attach_log(log.clone(), waits);
        Rig { engine, foundation, clock, log, disk }
    }

    /// Adds definitions, one by one, as a database does.
    ///
    /// # Panics
    /// If they are refused.
    pub fn define(&self, text: &str) {
        let definitions = syntax::parse(text, "test").unwrap_or_else(|errors| panic!("{errors}"));
        for definition in definitions {
            let text = definition.to_string();
            self.engine.define(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }

    /// The newest procedure of a name.
    pub fn procedure(&self, name: &str) -> Arc<Procedure> {
        let definitions = self.foundation.definitions();
        let id = definitions.catalog.find_procedure(name).unwrap_or_else(|| panic!("no procedure {name}"));
        definitions.procedure(id).expect("it was found").clone()
    }

    /// Adds a call that wants its result to a batch.
    pub fn push(&self, batch: &mut BatchBuilder, name: &str, values: &[Value], key: Option<&[u8]>) -> u32 {
        self.push_call(batch, name, values, key, true)
    }

    /// Adds a call to a batch.
    pub fn push_call(
        &self,
        batch: &mut BatchBuilder,
        name: &str,
        values: &[Value],
        key: Option<&[u8]>,
        wants_result: bool,
    ) -> u32 {
        let procedure = self.procedure(name);
        let bytes = arguments::encode(&procedure.program, values).expect("arguments fit");
        batch.push(procedure.id, &bytes, key, wants_result).expect("a small call")
    }

    /// Hands a batch in, and lends this thread until it is complete.
    pub fn run(&self, batch: &Arc<Batch>) {
        self.engine.submit(batch.clone());
        self.wait(batch);
    }

    /// Lends this thread until a batch is complete.
    ///
    /// # Panics
    /// If it takes too long.
    pub fn wait(&self, batch: &Arc<Batch>) {
        let begun = Instant::now();
        while !batch.is_complete() {
            assert!(begun.elapsed() < PATIENCE, "a batch of {} does not end", batch.count());
            if !self.engine.admit() && !self.engine.help() {
                schedule::give_way("batch");
            }
        }
    }

    /// What a call of a complete batch returned, or why it aborted.
    ///
    /// # Errors
    /// Why it aborted.
    pub fn result(&self, batch: &Batch, call: u32) -> Result<Vec<Value>> {
        batch.outcome(call)?;
        let ticket = batch.ticket(call).expect("a committed call that wants its result has a ticket");
        let begun = Instant::now();
        loop {
            if let Some(values) = ticket.values() {
                return values.clone();
            }
            assert!(begun.elapsed() < PATIENCE, "a result does not come");
            self.engine.resolve(&ticket);
        }
    }

    /// Runs one call and gives its result.
    ///
    /// # Errors
    /// Why it aborted.
    pub fn call(&self, name: &str, values: &[Value]) -> Result<Vec<Value>> {
        self.call_with(name, values, None)
    }

    /// Runs one call with an idempotency key.
    ///
    /// # Errors
    /// Why it aborted.
    pub fn call_with(&self, name: &str, values: &[Value], key: Option<&[u8]>) -> Result<Vec<Value>> {
        let mut builder = BatchBuilder::new();
        self.push(&mut builder, name, values, key);
        let batch = builder.build();
        self.run(&batch);
        self.result(&batch, 0)
    }

    /// Runs a procedure that writes nothing on a snapshot.
    ///
    /// # Errors
    /// Why it aborted.
    pub fn query(&self, name: &str, values: &[Value]) -> Result<Vec<Value>> {
        let procedure = self.procedure(name);
        let bytes = arguments::encode(&procedure.program, values).expect("arguments fit");
        self.engine.query(&procedure, &bytes)
    }

    /// Every row of a table, in an order that does not depend on the engine.
    pub fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        let id = self.foundation.definitions().catalog.find_table(table);
        let mut rows = Vec::new();
        let mut visit = |row| {
            rows.push(row);
            Ok(())
        };
        self.engine
            .rows(id.unwrap_or_else(|| panic!("no table {table}")), &mut visit)
            .expect("rows are read");
        rows.sort_by_cached_key(|row| format!("{row:?}"));
        rows
    }

    /// Every row of every table, as text.
    pub fn dump(&self) -> Vec<String> {
        let definitions = self.foundation.definitions();
        let tables = definitions.catalog.tables().map(|(_, schema)| schema.name.clone());
        tables
            .flat_map(|name| self.rows(&name).into_iter().map(move |row| format!("{name}: {row:?}")))
            .collect()
    }

    /// Everything that was logged so far.
    pub fn logged(&self) -> Vec<Logged> {
        let mut list = Vec::new();
        Log::open(Arc::new(self.copy_of_disk()), log_options(), |frame| {
            let payload = frame.payload.to_vec();
            list.push(Logged { first_seq: Seq(frame.first_seq), count: frame.entry_count, payload });
            Ok::<(), LogError>(())
        })
        .expect("what was written is read");
        list
    }

    fn copy_of_disk(&self) -> SimulatedDisk {
        self.log.flush_now().expect("a simulated disk takes it");
        let copy = self.disk.copy();
        copy.release_locks();
        copy
    }

    /// Runs `work` while `count` threads help the engine.
    pub fn helped<R>(&self, count: usize, work: impl FnOnce() -> R) -> R {
        let stop = Stop(AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(|| {
                    while !stop.0.load(Relaxed) {
                        if !self.engine.help() {
                            schedule::give_way("help");
                        }
                    }
                });
            }
            // Also when `work` panics, or the scope would wait for ever.
            let _stopping = Stopping(&stop);
            work()
        })
    }

    /// Runs `work` while `count` threads of a [simulated schedule](schedule::simulate) help the engine.
    pub fn helped_in_simulation<R>(self: &Arc<Rig>, count: usize, work: impl FnOnce() -> R) -> R {
        let stop = Arc::new(AtomicBool::new(false));
        let helper = |number: usize| {
            let (rig, stop) = (self.clone(), stop.clone());
            let work = move || {
                while !stop.load(Relaxed) {
                    if !rig.engine.help() {
                        schedule::give_way("help");
                    }
                }
            };
            schedule::spawn(&format!("helper {number}"), work).expect("the system gives us a thread")
        };
        let helpers: Vec<_> = (0..count).map(helper).collect();
        let result = work();
        stop.store(true, Relaxed);
        helpers.into_iter().for_each(|helper| helper.join().expect("a panic ends the simulation"));
        result
    }

    /// Refuses further calls.
    pub fn close(&self) {
        self.engine.close(Error::new(fabius_value::SqlState::SHUTDOWN, "the test is over"));
    }
}

struct Stop(AtomicBool);

struct Stopping<'s>(&'s Stop);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}
