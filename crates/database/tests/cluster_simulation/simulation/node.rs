//! One node of a simulated cluster.

use bytes::Bytes;
use fabius_cluster::{
    Agreed, Execution, Executor, KeptCheckpoints, Opening, Point, Replica, Replication, has_run_ahead,
};
use fabius_engine::checkpoint::{self, Digest, State};
use fabius_engine::foundation::log_error;
use fabius_engine::{Batch, Engine, Foundation};
use fabius_env::{Disk, Network, SimulatedClock, SimulatedDisk};
use fabius_log::{DatabaseId, Flusher, Log, LogError, LogOptions};
use fabius_storage::checkpoint as checkpoint_files;
use fabius_testing::rig::Make;
use fabius_value::{Error, Result, Seq, SqlState, Value};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The database that the simulated cluster is.
pub(super) const DATABASE: DatabaseId = DatabaseId([9; 16]);

/// How logs are opened from a sequence number on.
pub(super) fn log_options(first_seq: u64) -> LogOptions {
    LogOptions {
        flusher: Flusher::Manual,
        segment_bytes: 20_000,
        doubts_tails: true,
        first_seq,
        ..LogOptions::new(DATABASE)
    }
}

/// What was agreed on, whoever has taken it first: by index, a number made of its place and bytes.
pub(super) type History = BTreeMap<u64, (u64, Vec<u8>)>;

/// A life of a node.
pub(super) struct Life {
    pub(super) replica: Replica,
    pub(super) log: Arc<Log>,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) foundation: Arc<Foundation>,
    pub(super) network: Arc<dyn Network>,
    executor: Executor,
    /// The last entry that it has taken.
    pub(super) taken: u64,
    /// What it has taken, and is not agreed on as far as it knows.
    ahead: History,
    checkpoints: Arc<KeptCheckpoints>,
    /// The checkpoints that it has taken, on their way from executing to agreeing.
    taken_now: Taken,
}

/// Where checkpoints were taken, and their digests.
type Taken = Arc<Mutex<Vec<(Point, Vec<Digest>)>>>;

/// The directory of a node's checkpoints.
pub(super) fn checkpoints_of(disk: &SimulatedDisk) -> Result<Arc<dyn Disk>> {
    let failed = |error| checkpoint_files::io_error("opening", disk, "checkpoints", &error);
    disk.subdirectory("checkpoints").map_err(failed)
}

enum OpenError {
    Log(LogError),
    Replica(Error),
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> OpenError {
        OpenError::Log(error)
    }
}

impl Life {
    /// Begins a life on a disk.
    pub(super) fn open(
        make: Make<'_>,
        disk: &SimulatedDisk,
        clock: &SimulatedClock,
        network: Arc<dyn Network>,
        number: u64,
        replication: Replication,
    ) -> Result<Life> {
        let checkpoints = checkpoints_of(disk)?;
        let disk = Arc::new(disk.clone());
        let foundation = Arc::new(Foundation::new(Arc::new(clock.clone())));
        let engine = make(foundation.clone());
        let state = newest(&*checkpoints)?;
        let begins = state.as_ref().map_or(Seq::ZERO, |state| state.seq);
        state.into_iter().for_each(|state| engine.restore(state));
        checkpoint_files::delete_unfinished(&*checkpoints)?;
        let mut opening = Opening::begin(disk.clone(), begins)?;
        let opened = Log::open(disk, log_options(opening.needed()), |frame| {
            opening.note(&frame).map_err(OpenError::Replica)
        });
        let (log, _) = opened.map_err(|error| match error {
            OpenError::Log(error) => log_error(&error),
            OpenError::Replica(error) => error,
        })?;
        let log = Arc::new(log);
        foundation.attach_log(log.clone(), false);
        let kept = Arc::new(KeptCheckpoints::new(checkpoints.clone()));
        let replica = opening.finish(log.clone(), number, kept.clone(), replication)?;
        let mut executor = Executor::new(engine.clone());
        let taken_now = Taken::default();
        let (beneath, all) = (engine.clone(), taken_now.clone());
        executor.at_checkpoint(Box::new(move |point| {
            // One that cannot be written is left out.
            let written =
                checkpoint::write(&*beneath, beneath.stand(), &*checkpoints, DATABASE, 1, &mut |_| Ok(()));
            all.lock().extend(written.ok().map(|written| (point, written.digests)));
        }));
        let taken = replica.handed_out();
        let (ahead, checkpoints) = (History::new(), kept);
        Ok(Life { replica, log, engine, foundation, network, executor, taken, ahead, checkpoints, taken_now })
    }

    /// Hears up to so many messages, and does what there is to do.
    pub(super) fn turn(&mut self, messages: usize, history: &mut History, leaves_out: bool) -> Result<()> {
        for _ in 0..messages {
            let Some((_, message)) = self.network.receive() else { break };
            self.replica.hear(&Bytes::from(message))?;
        }
        let now_us = self.foundation.clock.now_us();
        let mut outbox = &*self.network;
        let mut execution = Checked {
            executor: &mut self.executor,
            ahead: &mut self.ahead,
            taken: &mut self.taken,
            leaves_out,
        };
        let turned = self.replica.turn(now_us, &mut outbox, &mut execution);
        if turned.as_ref().is_err_and(has_run_ahead) {
            // What it has run was not agreed on, and it says so.
            self.ahead.clear();
        }
        self.compare_with(history);
        turned?;
        let taken_now = std::mem::take(&mut *self.taken_now.lock());
        for (point, digests) in taken_now {
            self.replica.compare(Seq(point.seq), digests);
            self.keep_two(point)?;
        }
        Ok(())
    }

    /// What this node has taken and is agreed on now is what the others have taken there.
    fn compare_with(&mut self, history: &mut History) {
        let agreed = self.replica.standing().agreed;
        while let Some(first) = self.ahead.first_entry().filter(|first| *first.key() <= agreed) {
            let (index, found) = first.remove_entry();
            let known = history.entry(index).or_insert_with(|| found.clone());
            assert!(*known == found, "another entry was agreed on at index {index}");
        }
    }

    /// Keeps a checkpoint and the one before it, and the log from that one on.
    fn keep_two(&mut self, newest: Point) -> Result<()> {
        self.checkpoints.note(newest);
        let disk = self.checkpoints.disk();
        let found = checkpoint_files::list(disk)?;
        let newest_first: Vec<Seq> = found.iter().map(|found| found.seq).collect();
        let kept = self.checkpoints.retain(&newest_first, 2);
        let old = found.into_iter().filter(|found| !kept.contains(&found.seq)).map(|found| found.name);
        checkpoint_files::delete(disk, &old.collect::<Vec<String>>())?;
        if let Some(older) =
            kept.get(1..).and_then(<[Seq]>::last).and_then(|older| self.checkpoints.point(*older))
        {
            self.replica.discard_up_to(older);
        }
        Ok(())
    }

    /// Takes what is in the log, agreed on or not.
    pub(super) fn take_what_is_there(&mut self) -> Result<()> {
        let first_seq = self.foundation.promised().next();
        let mut reader = self.log.read_from(first_seq.0).map_err(|error| log_error(&error))?;
        while let Some(batch) = reader.next_batch().map_err(|error| log_error(&error))? {
            let agreed = Agreed::in_log(&batch.payload, Seq(batch.first_seq), batch.entry_count);
            let mut execution = Checked {
                executor: &mut self.executor,
                ahead: &mut self.ahead,
                taken: &mut self.taken,
                leaves_out: false,
            };
            execution.take(agreed.expect("an entry"))?;
        }
        Ok(())
    }

    /// What a procedure that writes nothing returns.
    pub(super) fn query(&self, name: &str) -> Result<Vec<Value>> {
        let definitions = self.foundation.definitions();
        let Some(id) = definitions.catalog.find_procedure(name) else { return Ok(vec![Value::BigInt(0)]) };
        let procedure = definitions.procedure(id)?;
        self.engine.query(procedure, &[])
    }
}

/// The newest checkpoint that is whole.
fn newest(checkpoints: &dyn Disk) -> Result<Option<State>> {
    for found in checkpoint_files::list(checkpoints)? {
        match checkpoint::read(checkpoints, &found, DATABASE, 1) {
            Ok(state) => return Ok(Some(state)),
            Err(error) if error.state() == SqlState::DATA_CORRUPTED => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Takes what is agreed on, and notes what it was.
struct Checked<'e> {
    executor: &'e mut Executor,
    ahead: &'e mut History,
    taken: &'e mut u64,
    /// Whether it leaves a call out now and then, by a mutation.
    leaves_out: bool,
}

impl Execution for Checked<'_> {
    fn take(&mut self, agreed: Agreed) -> Result<()> {
        let found = (agreed.first_seq.0, agreed.taken().unwrap_or_default().to_vec());
        if agreed.index <= *self.taken {
            // Taken before it was agreed on, by a mutation.
            return Ok(());
        }
        assert_eq!(agreed.index, *self.taken + 1, "an entry was left out");
        self.ahead.insert(agreed.index, found);
        *self.taken = agreed.index;
        let is_left_out =
            self.leaves_out && agreed.count == 1 && agreed.ours.is_empty() && agreed.index % 16 == 7;
        self.executor.take(if is_left_out { agreed.emptied() } else { agreed })
    }

    fn refuse(&mut self, batch: Arc<Batch>, reason: Error) {
        self.executor.refuse(batch, reason);
    }

    fn reached(&mut self, readers: Vec<Arc<Batch>>) {
        self.executor.reached(readers);
    }
}
