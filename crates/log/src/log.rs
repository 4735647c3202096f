//! The log that a caller holds.

use std::sync::Arc;

use fabius_env::schedule::JoinHandle;
use fabius_env::{DirectoryLock, Disk};
use parking_lot::Mutex;

use crate::frame::Frame;
use crate::group_commit::{GroupCommit, start_flusher};
use crate::reader::Reader;
use crate::recovery::{RecoveryReport, recover};
use crate::{Flusher, LogError, LogErrorKind, LogOptions};

/// An open log: one per directory, shared by reference among all threads.
///
/// Dropping it closes it, but only [`close`](Self::close) tells of errors.
///
/// ```
/// use fabius_log::{DatabaseId, Log, LogError, LogOptions};
///
/// let disk = std::sync::Arc::new(fabius_env::SimulatedDisk::new(1));
/// let options = LogOptions::new(DatabaseId([7; 16]));
/// let (log, _) = Log::open(disk.clone(), options.clone(), |_| Ok::<(), LogError>(()))?;
/// log.append(1, 2, b"two entries")?;
/// log.wait_durable(2)?;
/// log.close()?;
/// drop(log);
///
/// let mut read = Vec::new();
/// let (log, report) = Log::open(disk, options, |batch| {
///     read.push((batch.first_seq, batch.payload.to_vec()));
///     Ok::<(), LogError>(())
/// })?;
/// assert_eq!(read, [(1, b"two entries".to_vec())]);
/// assert_eq!((log.next_seq(), report.closed_cleanly), (3, true));
/// # Ok::<(), LogError>(())
/// ```
#[derive(Debug)]
pub struct Log {
    commit: Arc<GroupCommit>,
    flusher: Mutex<Option<JoinHandle>>,
    lock: Mutex<Option<DirectoryLock>>,
}

impl Log {
    /// Opens the log in the directory `disk`, or begins one, and shows `visit` every batch in
    /// order; segments that hold only entries before the first one needed are left out. A torn tail is
    /// cut off and reported. What `visit` has been shown counts for nothing
    /// if an error is returned.
    ///
    /// # Errors
    /// Damage, a newer format, another database's log, a directory in use or not writable, or the
    /// error of `visit`; then nothing was changed.
    pub fn open<E: From<LogError>>(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        visit: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<(Self, RecoveryReport), E> {
        Self::open_when(disk, options, visit, || Ok(()))
    }

    /// Opens the log as [`open`](Self::open) does, for a `visit` that only notes what it is shown: `is_taken` is
    /// asked once everything has been read, before anything is changed.
    ///
    /// # Errors
    /// As [`open`](Self::open), or the error of `is_taken`; then nothing was changed.
    pub fn open_when<E: From<LogError>>(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        visit: impl FnMut(Frame<'_>) -> Result<(), E>,
        is_taken: impl FnOnce() -> Result<(), E>,
    ) -> Result<(Self, RecoveryReport), E> {
        assert!(options.first_seq > 0, "sequence numbers begin with 1");
        let lock = disk.lock().map_err(|error| LogError::io("locking the log", disk.directory(), error))?;
        let (writer, report) = recover(disk, &options, visit, is_taken)?;
        let has_thread = options.flusher == Flusher::Thread;
        let commit = Arc::new(GroupCommit::new(options, writer));
        let flusher = if has_thread { Some(start_flusher(&commit)?) } else { None };
        let log = Self { commit, flusher: Mutex::new(flusher), lock: Mutex::new(Some(lock)) };
        Ok((log, report))
    }

    /// Adds a batch of `entry_count` entries, the first of which has the sequence number
    /// `first_seq`, to what the flusher writes next. Copies `payload` and returns; blocks only
    /// while the buffer is full.
    ///
    /// # Errors
    /// The error that ended the log; or that the batch is too large.
    ///
    /// # Panics
    /// If `first_seq` is not [`next_seq`](Self::next_seq) or `entry_count` is zero: batches come in
    /// order, without gaps, and it is the caller who keeps the order.
    pub fn append(&self, first_seq: u64, entry_count: u32, payload: &[u8]) -> Result<(), LogError> {
        self.commit.append(first_seq, entry_count, payload)
    }

    /// Waits until a batch of so many bytes fits into the calling thread's buffer, so that
    /// [`append_at`](Self::append_at) never waits: whoever comes before must be able to append what others wait for.
    ///
    /// # Errors
    /// The error that ended the log; or that the batch is too large.
    pub fn make_room(&self, payload_bytes: usize) -> Result<(), LogError> {
        self.commit.make_room(payload_bytes)
    }

    /// Adds a batch as [`append`](Self::append) does, at the place that `first_seq` says: batches may come in any order
    /// and from many threads, each of which has a buffer of its own. What is behind a gap waits in memory, and becomes
    /// durable when the gap is closed. A log is appended to in order or by place, not in both ways.
    ///
    /// # Errors
    /// The error that ended the log.
    ///
    /// # Panics
    /// If `entry_count` is zero; the flusher panics, which ends the log, if entries come twice.
    pub fn append_at(&self, first_seq: u64, entry_count: u32, payload: &[u8]) -> Result<(), LogError> {
        self.commit.append_at(first_seq, entry_count, payload)
    }

    /// The sequence number that the next batch begins with, if batches are appended in order.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.commit.next_seq()
    }

    /// Everything up to and including this sequence number is durable, in the sense of the log's
    /// [`Durability`](crate::Durability). One atomic load.
    #[must_use]
    pub fn durable_seq(&self) -> u64 {
        self.commit.watermark.durable_seq()
    }

    /// Waits until `seq` is durable.
    ///
    /// # Errors
    /// The error that ended the log before `seq` was durable. Whether `seq` is there when the log
    /// is opened again is then not known.
    pub fn wait_durable(&self, seq: u64) -> Result<(), LogError> {
        self.commit.wait_durable(seq)
    }

    /// Registers a function that is told whenever the durable watermark has moved, and, once, the
    /// error if the log fails. It is called by the flusher between two groups and must be quick;
    /// it must not append, flush, sync or close.
    ///
    /// # Panics
    /// If there is a listener already.
    pub fn on_durable(&self, listener: impl Fn(Result<u64, &LogError>) + Send + Sync + 'static) {
        let registered = self.commit.watermark.listen(Box::new(listener));
        assert!(registered, "the log has a listener already");
    }

    /// The error that ended the log, if one has.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        let failure = self.commit.watermark.failure();
        failure.filter(|failure| failure.kind() != LogErrorKind::Closed).cloned()
    }

    /// Writes everything appended so far, up to the first gap, as a group, by the calling thread; with nothing to
    /// write, leaves an idle mark if one is due. This is how a log with [`Flusher::Manual`] is written.
    ///
    /// # Errors
    /// The error that ended the log.
    pub fn flush_now(&self) -> Result<(), LogError> {
        self.commit.flush_group()
    }

    /// Makes everything appended so far, up to the first gap, survive a power loss, whatever the log's durability; to
    /// be called before something durable (a checkpoint) relies on the log.
    ///
    /// # Errors
    /// The error that ended the log.
    pub fn sync(&self) -> Result<(), LogError> {
        self.commit.flush_group()?;
        self.commit.change_segments(|writer| writer.sync_entries())
    }

    /// Deletes the segments that hold nothing from `seq` on, and says how many. Called when a
    /// checkpoint makes them needless.
    ///
    /// # Errors
    /// The error that ended the log.
    pub fn discard_before(&self, seq: u64) -> Result<u64, LogError> {
        self.commit.change_segments(|writer| writer.discard_before(seq))
    }

    /// Removes every entry behind `seq`, durably: what a log under agreement does with entries that the others never
    /// agreed to. `seq` is the last entry of a batch, or the one before the first; the next batch begins behind it.
    /// It is for the one who appends: nobody else may meanwhile.
    ///
    /// # Errors
    /// The error that ended the log; then entries behind `seq` may still be there when it is opened again. That what
    /// comes next to `seq` was discarded.
    ///
    /// # Panics
    /// If `seq` was never appended.
    pub fn truncate_after(&self, seq: u64) -> Result<(), LogError> {
        self.commit.truncate_after(seq)
    }

    /// A reader of what has been written so far, beginning with the batch that holds `seq`. Waits for a group that is
    /// being written.
    ///
    /// # Errors
    /// The error that ended the log; [`LogErrorKind::MissingEntries`] if `seq` has been discarded, which does not end
    /// it.
    pub fn read_from(&self, seq: u64) -> Result<Reader, LogError> {
        self.commit.read_segments(|writer| writer.read_from(seq))
    }

    /// The sequence number of the first entry that is there (of the next one, if there is none).
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.commit.first_seq()
    }

    /// Writes and syncs everything, notes that the log was closed cleanly, and gives the directory
    /// free. Appending fails from now on; closing again does nothing.
    ///
    /// # Errors
    /// The error that ended the log, now or before.
    pub fn close(&self) -> Result<(), LogError> {
        if !self.commit.begin_closing() {
            return Ok(());
        }
        let flusher = self.flusher.lock().take();
        if let Some(flusher) = flusher {
            // A panic of the flusher has been recorded as the log's failure.
            let _ = flusher.join();
        }
        let closed =
            self.commit.flush_group().and_then(|()| self.commit.change_segments(|writer| writer.close()));
        self.commit.watermark.close();
        *self.lock.lock() = None;
        closed
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // The error, if there is one, has been given to everyone who appended or waited.
        let _ = self.close();
    }
}
