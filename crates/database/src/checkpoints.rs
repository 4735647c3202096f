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
//! So a newest checkpoint that turns out to be damaged costs nothing but time: the one before it and the
//! log give the same state.

use fabius_engine::checkpoint::{self, Progress};
use fabius_engine::foundation::log_error;
use fabius_engine::{Engine, Foundation};
use fabius_env::{DirectoryLock, Disk};
use fabius_log::{DatabaseId, Log};
use fabius_storage::checkpoint::{self as files, Counts, Found};
use fabius_value::{Error, Result, Seq, SqlState};
use parking_lot::{Condvar, Mutex};
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
    /// Its size.
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
    /// Whether the log stays whole, for others of a cluster that may need it.
    pub(crate) keeps_log: bool,
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
        let mut whole = self.whole.lock();
        if let Some(failure) = self.foundation.failure() {
            return Err(failure.clone());
        }
        // Also if it fails: the next automatic one is due after as much of the log again.
        self.counted_from.store(self.log_bytes(), Relaxed);
        let at = self.engine.stand();
        if let Some(newest) = whole.first().copied().filter(|newest| *newest == at.seq()) {
            drop(at);
            return self.there(newest);
        }
        let written = checkpoint::write(&*self.engine, at, &*self.disk, self.database, watch)?;
        self.newest_bytes.store(written.bytes, Relaxed);
        whole.insert(0, written.seq);
        whole.truncate(KEPT);
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
        match whole {
            _ if self.keeps_log => Ok(0),
            [_, .., oldest] => self.log.discard_before(oldest.next().0).map_err(|error| log_error(&error)),
            // With only one there is no second way yet but the whole log.
            _ => Ok(0),
        }
    }

    /// Bytes logged since the last checkpoint was begun.
    fn bytes_since(&self) -> u64 {
        (self.log_bytes() - self.counted_from.load(Relaxed)).max(0) as u64
    }

    /// Bytes logged since the database was opened.
    fn log_bytes(&self) -> i64 {
        self.foundation.counters.log_bytes.get() as i64
    }
}

/// A thread that takes a checkpoint whenever the log has grown by so much, and by as much as the last one
/// takes.
pub(crate) struct Automatic {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Automatic {
    /// Starts it.
    pub(crate) fn start(checkpoints: Arc<Checkpoints>, every_bytes: u64) -> Automatic {
        let stop: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let stopping = stop.clone();
        let work = move || {
            while !is_stopped_within(&stopping, LOOK) {
                // Writing checkpoints takes at most about as much of the disk's time as writing the log.
                if checkpoints.bytes_since() < every_bytes.max(checkpoints.newest_bytes.load(Relaxed)) {
                    continue;
                }
                let mut watch = |_: &_| match *stopping.0.lock() {
                    true => Err(Error::new(SqlState::CANCELED, "the database is closing")),
                    false => Ok(()),
                };
                let taken = catch_unwind(AssertUnwindSafe(|| checkpoints.take(&mut watch)));
                let panicked = || Error::new(SqlState::INTERNAL, "taking a checkpoint has panicked");
                checkpoints.status.lock().failed = taken.map_or_else(|_| Some(panicked()), Result::err);
            }
        };
        let thread = std::thread::Builder::new().name("fabius-checkpoint".to_string()).spawn(work);
        Automatic { stop, thread: Some(thread.expect("the system gives us a thread")) }
    }
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

fn is_stopped_within(stop: &(Mutex<bool>, Condvar), time: Duration) -> bool {
    let mut stopped = stop.0.lock();
    stop.1.wait_while_for(&mut stopped, |stopped| !*stopped, time);
    *stopped
}
