//! Group commit: whatever has gathered while the disk was busy is written and synced together.
//!
//! ```text
//!   appenders   | a b c |   d e f g h    |  i j ...
//!   flusher             | write a-c sync | write d-h sync | ...
//! ```
//!
//! The size of a group adapts by itself: the slower the sync, the more gathers during it. Without
//! syncs there is nothing to wait for, and a flusher that wrote each small batch at once would
//! spend a core on system calls; so it lets a small group grow for a moment ([`GATHERED_BYTES`],
//! [`LogOptions::gather`]), unless somebody waits.
//!
//! The flusher's states, and what moves it on:
//!
//! ```text
//!            bytes, or stop                 enough bytes, a waiter, time, or stop
//!   Idle ----------------------> Gathering ---------------------------------------> Busy
//!    ^   (leaves an idle mark                                                        |
//!    |    after a while)                                                             |
//!    +----------------------------- nothing left in the buffer ---------------------+
//! ```
//!
//! The idle mark is a frame without entries that says how far the last sync reached. It is what
//! lets a reader tell later damage to the last group from a group that was torn.
//!
//! **Failure is final.** After an error of the disk the durable watermark never moves again, and
//! everybody who appends or waits gets that error. A failed sync is not tried again: the system may
//! have dropped the bytes and would report success.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::thread;

use fabius_env::schedule::{self, JoinHandle};
use fabius_env::sync::{Condvar, Mutex};
use parking_lot::MutexGuard;

use crate::batch_buffer::BatchBuffer;
use crate::segment_writer::SegmentWriter;
use crate::watermark::Watermark;
use crate::{Durability, Flusher, LogError, LogErrorKind, LogOptions};

/// Bytes of one batch, at most. One that is longer than the buffer goes alone.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// With this much gathered, a group is worth its system calls.
const GATHERED_BYTES: usize = 256 << 10;

/// What appenders and the flusher share.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    options: LogOptions,
    intake: Mutex<Intake>,
    /// The flusher waits here.
    work: Condvar,
    /// Appenders wait here for the flusher to take a full buffer.
    room: Condvar,
    /// Locked for the whole of a group; never while holding `intake`.
    outlet: Mutex<Outlet>,
    /// Of the oldest segment.
    first_seq: AtomicU64,
    pub(crate) watermark: Watermark,
}

#[derive(Debug)]
struct Intake {
    buffer: BatchBuffer,
    flusher: FlusherState,
    /// Somebody waits for what is in the buffer.
    hurry: bool,
    /// Nothing is taken any more.
    closing: bool,
}

#[derive(Debug)]
struct Outlet {
    writer: SegmentWriter,
    /// The vector that the buffer does not use now.
    spare: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlusherState {
    /// Waiting for the first batch of a group.
    Idle,
    /// Letting a small group grow.
    Gathering,
    /// Awake, or told to be.
    Busy,
}

impl GroupCommit {
    pub(crate) fn new(options: LogOptions, writer: SegmentWriter) -> Self {
        let next_seq = writer.next_seq;
        Self {
            intake: Mutex::new(Intake {
                buffer: BatchBuffer::starting_at(next_seq),
                flusher: FlusherState::Busy,
                hurry: false,
                closing: false,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            first_seq: AtomicU64::new(writer.first_seq()),
            outlet: Mutex::new(Outlet { writer, spare: Vec::new() }),
            watermark: Watermark::at(next_seq - 1),
            options,
        }
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.intake.lock().buffer.next_seq()
    }

    pub(crate) fn append(&self, first_seq: u64, entry_count: u32, payload: &[u8]) -> Result<(), LogError> {
        Self::check_size(payload)?;
        let mut intake = self.intake.lock();
        while !intake.buffer.is_empty() && intake.buffer.len() + payload.len() > self.options.buffer_bytes {
            self.check_open(&intake)?;
            self.make_room(&mut intake)?;
        }
        self.check_open(&intake)?;
        intake.buffer.push(first_seq, entry_count, payload);
        let wake = match intake.flusher {
            FlusherState::Idle => true,
            FlusherState::Gathering => intake.buffer.len() >= GATHERED_BYTES,
            FlusherState::Busy => false,
        };
        if wake {
            intake.flusher = FlusherState::Busy;
        }
        drop(intake);
        if wake {
            self.work.notify_one();
        }
        Ok(())
    }

    fn check_size(payload: &[u8]) -> Result<(), LogError> {
        if payload.len() <= PAYLOAD_BYTES_MAX {
            return Ok(());
        }
        Err(LogError::new(
            LogErrorKind::TooLarge,
            format!("a batch of {} bytes is over the limit of {PAYLOAD_BYTES_MAX}", payload.len()),
        )
        .hint_is("append it as several batches"))
    }

    fn check_open(&self, intake: &Intake) -> Result<(), LogError> {
        match self.watermark.failure() {
            Some(failure) => Err(failure.clone()),
            None if intake.closing => Err(LogError::closed()),
            None => Ok(()),
        }
    }

    /// Waits until the flusher has taken the full buffer; without a flusher, takes it.
    fn make_room(&self, intake: &mut MutexGuard<'_, Intake>) -> Result<(), LogError> {
        match self.options.flusher {
            Flusher::Thread => {
                self.wake_flusher(intake);
                self.room.wait(intake);
                Ok(())
            }
            Flusher::Manual => MutexGuard::unlocked(intake, || self.flush_group()),
        }
    }

    fn wake_flusher(&self, intake: &mut Intake) {
        if intake.flusher != FlusherState::Busy {
            intake.flusher = FlusherState::Busy;
            self.work.notify_one();
        }
    }

    /// Waits until `seq` is durable.
    pub(crate) fn wait_durable(&self, seq: u64) -> Result<(), LogError> {
        if self.watermark.durable_seq() >= seq {
            return Ok(());
        }
        match self.options.flusher {
            Flusher::Thread => {
                if self.gathers() {
                    let mut intake = self.intake.lock();
                    intake.hurry = true;
                    if intake.flusher == FlusherState::Gathering {
                        self.wake_flusher(&mut intake);
                    }
                }
                self.watermark.wait(seq)
            }
            Flusher::Manual => {
                self.flush_group()?;
                assert!(
                    self.watermark.durable_seq() >= seq,
                    "waiting for an entry that nobody can append meanwhile"
                );
                Ok(())
            }
        }
    }

    fn gathers(&self) -> bool {
        self.options.durability == Durability::None && !self.options.gather.is_zero()
    }

    /// Writes what is in the buffer as one group. With nothing in it, leaves the idle mark if one
    /// is due.
    pub(crate) fn flush_group(&self) -> Result<(), LogError> {
        let mut outlet = self.outlet.lock();
        if let Some(failure) = self.watermark.failure() {
            return Err(failure.clone());
        }
        let Outlet { writer, spare } = &mut *outlet;
        let next_seq = {
            let mut intake = self.intake.lock();
            intake.hurry = false;
            intake.buffer.take(spare)
        };
        self.room.notify_all();
        let result = if !spare.is_empty() {
            self.watermark.begin_group(next_seq - 1);
            writer.write_group(spare, next_seq)
        } else if writer.mark_is_due() {
            writer.write_mark()
        } else {
            return Ok(());
        };
        match result {
            Ok(()) if spare.is_empty() => Ok(()),
            Ok(()) => {
                self.watermark.publish(next_seq - 1);
                Ok(())
            }
            Err(error) => {
                self.fail(error.clone());
                Err(error)
            }
        }
    }

    /// Does `change` to the segments between groups. An error of it ends the log.
    pub(crate) fn change_segments<T>(
        &self,
        change: impl FnOnce(&mut SegmentWriter) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut outlet = self.outlet.lock();
        if let Some(failure) = self.watermark.failure() {
            return Err(failure.clone());
        }
        let changed = change(&mut outlet.writer).inspect_err(|error| self.fail(error.clone()));
        self.first_seq.store(outlet.writer.first_seq(), Release);
        changed
    }

    /// Looks at the segments between groups.
    pub(crate) fn read_segments<T>(
        &self,
        read: impl FnOnce(&SegmentWriter) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let outlet = self.outlet.lock();
        match self.watermark.failure() {
            Some(failure) => Err(failure.clone()),
            None => read(&outlet.writer),
        }
    }

    pub(crate) fn first_seq(&self) -> u64 {
        self.first_seq.load(Acquire)
    }

    /// Removes every entry behind `seq`, which is the last of its batch.
    pub(crate) fn truncate_after(&self, seq: u64) -> Result<(), LogError> {
        self.flush_group()?;
        self.change_segments(|writer| {
            let mut intake = self.intake.lock();
            assert!(intake.buffer.is_empty(), "nobody appends while the log is cut");
            assert!(seq < intake.buffer.next_seq(), "what is kept of a log that is cut is there");
            self.watermark.lower(seq);
            writer.truncate_after(seq)?;
            intake.buffer = BatchBuffer::starting_at(seq + 1);
            Ok(())
        })
    }

    /// Takes nothing more; false if that was so already.
    pub(crate) fn begin_closing(&self) -> bool {
        let mut intake = self.intake.lock();
        let begun = !std::mem::replace(&mut intake.closing, true);
        intake.flusher = FlusherState::Busy;
        self.work.notify_one();
        begun
    }

    /// Ends the log: appenders and waiters get `error` from now on.
    pub(crate) fn fail(&self, error: LogError) {
        self.watermark.fail(error);
        // Under the lock, so that no appender goes to wait between its check and our waking.
        let _intake = self.intake.lock();
        self.room.notify_all();
    }

    /// The flusher thread's work, until closing or failure.
    fn run(&self) {
        while self.await_group() {
            if self.flush_group().is_err() {
                return;
            }
        }
    }

    /// Waits until there is a group worth writing, or a mark; false when closing and all is written.
    fn await_group(&self) -> bool {
        let mut intake = self.intake.lock();
        let mut mark_is_due = self.options.durability == Durability::Fsync;
        while intake.buffer.is_empty() && !intake.closing {
            intake.flusher = FlusherState::Idle;
            if mark_is_due {
                let is_late = self.work.wait_for(&mut intake, self.options.idle_mark);
                if is_late && intake.buffer.is_empty() {
                    mark_is_due =
                        MutexGuard::unlocked(&mut intake, || self.outlet.lock().writer.mark_is_due());
                    if mark_is_due {
                        intake.flusher = FlusherState::Busy;
                        return true;
                    }
                }
            } else {
                self.work.wait(&mut intake);
            }
        }
        if self.gathers() && !intake.closing && !intake.hurry && intake.buffer.len() < GATHERED_BYTES {
            intake.flusher = FlusherState::Gathering;
            self.work.wait_for(&mut intake, self.options.gather);
        }
        intake.flusher = FlusherState::Busy;
        !intake.buffer.is_empty()
    }
}

/// Starts the flusher thread.
pub(crate) fn start_flusher(commit: &Arc<GroupCommit>) -> Result<JoinHandle, LogError> {
    let commit = Arc::clone(commit);
    let flusher = schedule::spawn("fabius-log", move || {
        let stopped = StopNotice(&commit);
        commit.run();
        drop(stopped);
    });
    flusher.map_err(|error| {
        LogError::new(LogErrorKind::Io, format!("cannot start the log's flusher thread: {error}"))
    })
}

/// Whatever ends the flusher, nobody waits for it afterwards.
struct StopNotice<'a>(&'a GroupCommit);

impl Drop for StopNotice<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(LogError::new(LogErrorKind::Io, "the log's flusher thread has panicked"));
        }
    }
}
