//! Taking checkpoints while calls go on, and keeping as many of them, and as much of the log, as opening
//! may need.
//!
//! ```text
//! checkpoints          A (100)          B (500)       C (900)
//! log         1 ------- segment ------- segment ------- segment ---> 1000
//!             \__________________ /
//!              deleted with A, once C is durable: B and C stay, and the log from B on
//! ```
//!
//! In a cluster every node takes its checkpoints at the same places of the order, which the leader names, so that
//! digests of the state can be compared, and a node that was away for long can be filled from any other's.
//!
//! So a newest checkpoint that turns out to be damaged costs nothing but time: the one before it and the
//! log give the same state.

use crate::meeting::Meeting;
use fabius_cluster::{AgreedEngine, KeptCheckpoints, Point};
use fabius_engine::checkpoint::{self, Progress};
use fabius_engine::foundation::log_error;
use fabius_engine::{Batch, Engine, Foundation, Standpoint, entry};
use fabius_env::{DirectoryLock, Disk};
use fabius_log::{DatabaseId, Log};
use fabius_storage::checkpoint::{self as files, Counts, Found};
use fabius_value::{Error, Result, Seq, SqlState};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// Checkpoints that are kept.
const KEPT: usize = 2;

/// How often it is looked whether a checkpoint is due.
const LOOK: Duration = Duration::from_millis(200);

/// A checkpoint that was taken, or was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The state is that after the entry with this seq.
    pub seq: Seq,
    /// The name of its file, in the folder `checkpoints`.
    pub name: String,
    /// What it holds.
    pub counts: Counts,
    /// The checkpoint's size.
    pub bytes: u64,
    /// Segments of the log that are not needed any more, and gone.
    pub segments_deleted: u64,
    /// Whether it was taken now; if nothing has happened since the last one, that one is as good.
    pub is_new: bool,
}

/// How it stands with a database's checkpoints.
#[derive(Clone, Debug, Default)]
pub struct CheckpointStatus {
    /// The seq of the newest one; `None` if there is none.
    pub newest: Option<Seq>,
    /// Those that were found damaged when the database was opened, and passed over.
    pub passed_over: Vec<Error>,
    /// Why the last automatic one failed, if it did. It is tried again after as much of the log again.
    pub failed: Option<Error>,
}

/// The checkpoints of an open database.
pub(crate) struct Checkpoints {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) database: DatabaseId,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) foundation: Arc<Foundation>,
    pub(crate) log: Arc<Log>,
    /// How many write one.
    pub(crate) threads: usize,
    /// The node of a cluster that it is, and what is known of its checkpoints.
    pub(crate) agreed: Option<(Arc<AgreedEngine>, Arc<KeptCheckpoints>)>,
    /// Seqs of checkpoints that are known to be whole, newest first. Locked while one is taken.
    pub(crate) whole: Mutex<Vec<Seq>>,
    pub(crate) status: Mutex<CheckpointStatus>,
    /// The size of the newest one.
    pub(crate) newest_bytes: AtomicU64,
    /// What [`Checkpoints::log_bytes`] was when the last checkpoint was begun; below zero by what opening had
    /// to replay.
    pub(crate) counted_from: AtomicI64,
    /// The directory is ours for as long as this is there.
    pub(crate) _held: DirectoryLock,
}

impl Checkpoints {
    /// Takes a checkpoint.
    ///
    /// # Errors
    /// As the disk fails, or the error of `watch`; then the database goes on as before, with the checkpoints
    /// it had. Why it has stopped, if it has.
    pub(crate) fn take(&self, watch: &mut dyn FnMut(&Progress) -> Result<()>) -> Result<Checkpoint> {
        let whole = self.whole.lock();
        if let Some(failure) = self.foundation.failure() {
            return Err(failure.clone());
        }
        let at = self.engine.stand();
        if let Some(newest) = whole.first().copied().filter(|newest| *newest == at.seq()) {
            drop(at);
            self.count_from_here();
            return self.there(newest);
        }
        self.take_from(whole, at, None, watch)
    }

    /// Also before one that fails: the next automatic one is due after as much of the log again.
    fn count_from_here(&self) {
        self.counted_from.store(self.log_bytes(), Relaxed);
    }

    fn take_from(
        &self,
        mut whole: MutexGuard<'_, Vec<Seq>>,
        at: Standpoint<'_>,
        place: Option<Point>,
        watch: &mut dyn FnMut(&Progress) -> Result<()>,
    ) -> Result<Checkpoint> {
        self.count_from_here();
        let written = checkpoint::write(&*self.engine, at, &*self.disk, self.database, self.threads, watch)?;
        self.newest_bytes.store(written.bytes, Relaxed);
        if let (Some((agreed, kept)), Some(place)) = (&self.agreed, place) {
            kept.note(place);
            agreed.node().compare(written.seq, written.digests);
        }
        whole.insert(0, written.seq);
        match &self.agreed {
            Some((_, kept)) => *whole = kept.retain(&whole, KEPT),
            None => whole.truncate(KEPT),
        }
        self.status.lock().newest = Some(written.seq);
        let segments_deleted = self.clean_up(&whole)?;
        Ok(Checkpoint {
            seq: written.seq,
            name: written.name,
            counts: written.counts,
            bytes: written.bytes,
            segments_deleted,
            is_new: true,
        })
    }

    /// Has every node of the cluster take one, and returns when this one's is durable.
    ///
    /// # Errors
    /// As [`Checkpoints::take`]; what keeps the place from being agreed on.
    fn take_agreed(&self, meeting: &Meeting<Point>) -> Result<Checkpoint> {
        loop {
            let before = self.foundation.promised();
            self.status.lock().failed = None;
            self.engine.amend(&entry::encode_checkpoint())?;
            if !meeting.wait() {
                return Err(Error::new(SqlState::SHUTDOWN, "no more checkpoints are taken"));
            }
            let CheckpointStatus { newest, failed, .. } = self.status.lock().clone();
            match (newest.filter(|newest| *newest > before), failed) {
                (_, Some(failed)) => return Err(failed),
                (Some(newest), None) => return Ok(Checkpoint { is_new: true, ..self.there(newest)? }),
                // One was being written when the place came by.
                (None, None) => {}
            }
        }
    }

    fn there(&self, seq: Seq) -> Result<Checkpoint> {
        let found = Found { name: files::file_name(seq), seq };
        let inspection = files::inspect(&*self.disk, &found, Some(self.database.0))?;
        Ok(Checkpoint {
            seq,
            name: found.name,
            counts: inspection.counts,
            bytes: inspection.bytes,
            segments_deleted: 0,
            is_new: false,
        })
    }

    /// Deletes checkpoints that are not among those kept, then the log before the oldest one kept.
    fn clean_up(&self, whole: &[Seq]) -> Result<u64> {
        let mut names: Vec<String> = files::list(&*self.disk)?
            .into_iter()
            .filter(|found| !whole.contains(&found.seq))
            .map(|found| found.name)
            .collect();
        // Oldest first: whatever stops this, what is left is what is newest.
        names.reverse();
        files::delete(&*self.disk, &names)?;
        if let Some((agreed, kept)) = &self.agreed {
            if let [_, .., oldest] = whole
                && let Some(point) = kept.point(*oldest)
            {
                agreed.node().discard_up_to(point);
            }
            return Ok(0);
        }
        match whole {
            [_, .., oldest] => self.log.discard_before(oldest.next().0).map_err(|error| log_error(&error)),
            // With only one there is no second way yet but the whole log.
            _ => Ok(0),
        }
    }

    /// Whether so much was logged since the last checkpoint was begun, and as much as it takes: writing checkpoints
    /// takes at most about as much of the disk's time as writing the log.
    fn is_due(&self, every_bytes: u64) -> bool {
        let bytes = (self.log_bytes() - self.counted_from.load(Relaxed)).max(0) as u64;
        bytes >= every_bytes.max(self.newest_bytes.load(Relaxed))
    }

    /// Bytes logged since the database was opened.
    fn log_bytes(&self) -> i64 {
        self.foundation.counters.log_bytes.get() as i64
    }
}

/// Whether a thread is to end.
type Stop = (Mutex<bool>, Condvar);

/// A thread that takes a checkpoint whenever the log has grown by so much, and by as much as the last one
/// takes.
pub(crate) struct Automatic {
    stop: Arc<Stop>,
    meeting: Arc<Meeting<Point>>,
    thread: Option<JoinHandle<()>>,
}

impl Automatic {
    /// Starts it; in a cluster `meeting` is where it meets the thread that executes.
    pub(crate) fn start(
        checkpoints: Arc<Checkpoints>,
        every_bytes: u64,
        meeting: Arc<Meeting<Point>>,
    ) -> Automatic {
        let stop: Arc<Stop> = Arc::default();
        let (stopping, meeting_them) = (stop.clone(), meeting.clone());
        let work = move || match &checkpoints.agreed {
            None => alone(&checkpoints, every_bytes, &stopping),
            Some((agreed, _)) => in_cluster(&checkpoints, agreed, every_bytes, &meeting_them, &stopping),
        };
        let thread = std::thread::Builder::new().name("fabius-checkpoint".to_string()).spawn(work);
        Automatic { stop, meeting, thread: Some(thread.expect("the system gives us a thread")) }
    }

    /// Takes one where every node of the cluster takes one.
    ///
    /// # Errors
    /// As [`Checkpoints::take_agreed`].
    pub(crate) fn take_agreed(&self, checkpoints: &Checkpoints) -> Result<Checkpoint> {
        checkpoints.take_agreed(&self.meeting)
    }
}

fn alone(checkpoints: &Checkpoints, every_bytes: u64, stop: &Stop) {
    while !is_stopped_within(stop, LOOK) {
        if checkpoints.is_due(every_bytes) {
            attempt(checkpoints, stop, |watch| checkpoints.take(watch).map(drop));
        }
    }
}

/// The leader says where; every node takes one there, and compares its digests with the others'.
fn in_cluster(
    checkpoints: &Checkpoints,
    agreed: &AgreedEngine,
    every_bytes: u64,
    meeting: &Meeting<Point>,
    stop: &Stop,
) {
    let attendant = meeting.attendant();
    while !is_stopped_within(stop, Duration::ZERO) {
        if let Some((point, at)) = attendant.attend(LOOK, || agreed.beneath().stand()) {
            attempt(checkpoints, stop, |watch| {
                checkpoints.take_from(checkpoints.whole.lock(), at, Some(point), watch).map(drop)
            });
            attendant.is_free();
        }
        if checkpoints.is_due(every_bytes) && agreed.node().leads() {
            checkpoints.count_from_here();
            agreed.node().amend(Batch::of(entry::encode_checkpoint(), 1), None);
        }
    }
}

/// Notes why it failed, if it did.
fn attempt(
    checkpoints: &Checkpoints,
    stop: &Stop,
    take: impl FnOnce(&mut dyn FnMut(&Progress) -> Result<()>) -> Result<()>,
) {
    let mut watch = |_: &_| match *stop.0.lock() {
        true => Err(Error::new(SqlState::CANCELED, "the database is closing")),
        false => Ok(()),
    };
    let taken = catch_unwind(AssertUnwindSafe(|| take(&mut watch)));
    let panicked = || Error::new(SqlState::INTERNAL, "taking a checkpoint has panicked");
    checkpoints.status.lock().failed = taken.map_or_else(|_| Some(panicked()), Result::err);
}

impl Drop for Automatic {
    /// Stops it; a checkpoint that is being written is given up.
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // If it has panicked there are no more checkpoints; the log is complete without them.
            let _ = thread.join();
        }
    }
}

fn is_stopped_within(stop: &Stop, time: Duration) -> bool {
    let mut stopped = stop.0.lock();
    stop.1.wait_while_for(&mut stopped, |stopped| !*stopped, time);
    *stopped
}
