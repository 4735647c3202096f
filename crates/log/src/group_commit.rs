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
    AtomicBool, AtomicU8, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};
use std::thread;

use fabius_env::schedule::{self, JoinHandle};
use fabius_env::sync::{Condvar, Mutex};
use parking_lot::MutexGuard;

use crate::segment_writer::SegmentWriter;
use crate::watermark::Watermark;
use crate::worker_buffers::{BUFFERS, Buffer, InOrder, WorkerBuffers};
use crate::{Durability, Flusher, LogError, LogErrorKind, LogOptions};

/// Bytes of one batch, at most. One that is longer than the buffer goes alone.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// With this much gathered, a group is worth its system calls.
const GATHERED_BYTES: usize = 256 << 10;

/// What appenders and the flusher share.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    options: LogOptions,
    buffers: WorkerBuffers,
    flusher: FlusherState,
    /// Nothing is taken any more. Looked at with a buffer locked: whoever takes all buffers after it was set has seen
    /// the last of each.
    closing: AtomicBool,
    /// Where threads wait for each other: before a buffer is locked, never while one is.
    waits: Mutex<Waits>,
    /// The flusher waits here.
    work: Condvar,
    /// Appenders wait here for the flusher to take a full buffer.
    room: Condvar,
    /// Locked for the whole of a group; never while holding `waits`.
    outlet: Mutex<Outlet>,
    /// What was taken and waits behind a gap.
    waiting_bytes: AtomicUsize,
    /// Of the oldest segment.
    first_seq: AtomicU64,
    pub(crate) watermark: Watermark,
}

#[derive(Debug, Default)]
struct Waits {
    /// Somebody waits for what is in the buffers.
    hurry: bool,
}

#[derive(Debug)]
struct Outlet {
    writer: SegmentWriter,
    in_order: InOrder,
    /// The group that is written now.
    group: Vec<u8>,
}

/// What the flusher is doing. It lies down, and is woken, with `waits` locked; appenders only look.
#[derive(Debug)]
struct FlusherState(AtomicU8);

/// Awake, or told to be.
const BUSY: u8 = 0;
/// Letting a small group grow.
const GATHERING: u8 = 1;
/// Waiting for the first batch of a group.
const IDLE: u8 = 2;

impl FlusherState {
    fn is(&self, state: u8) -> bool {
        self.0.load(Acquire) == state
    }

    fn becomes(&self, state: u8) {
        self.0.store(state, Release);
    }

    /// Whether a buffer that is now so long is a reason to wake it.
    fn wants(&self, gathered: usize) -> bool {
        match self.0.load(Acquire) {
            IDLE => true,
            GATHERING => gathered >= GATHERED_BYTES,
            _ => false,
        }
    }
}

impl GroupCommit {
    pub(crate) fn new(options: LogOptions, writer: SegmentWriter) -> Self {
        let next_seq = writer.next_seq;
        Self {
            buffers: WorkerBuffers::starting_at(next_seq),
            flusher: FlusherState(AtomicU8::new(BUSY)),
            closing: AtomicBool::new(false),
            waits: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            waiting_bytes: AtomicUsize::new(0),
            first_seq: AtomicU64::new(writer.first_seq()),
            outlet: Mutex::new(Outlet {
                writer,
                in_order: InOrder::starting_at(next_seq),
                group: Vec::new(),
            }),
            watermark: Watermark::at(next_seq - 1),
            options,
        }
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.buffers.in_order().lock().next_seq()
    }

    /// Appends behind everything that was appended so far.
    pub(crate) fn append(&self, first_seq: u64, entry_count: u32, payload: &[u8]) -> Result<(), LogError> {
        let buffer = self.buffers.in_order();
        self.make_room_in(buffer, payload.len(), self.options.buffer_bytes)?;
        let buffer = buffer.lock();
        assert_eq!(first_seq, buffer.next_seq(), "a batch must begin with the log's next sequence number");
        self.push(buffer, first_seq, entry_count, payload)
    }

    /// Waits until a batch of so many bytes fits into the calling thread's buffer.
    pub(crate) fn make_room(&self, payload_bytes: usize) -> Result<(), LogError> {
        self.make_room_in(self.buffers.own(), payload_bytes, self.options.buffer_bytes / BUFFERS)
    }

    /// Appends at the place that the sequence number says, without waiting.
    pub(crate) fn append_at(&self, first_seq: u64, entry_count: u32, payload: &[u8]) -> Result<(), LogError> {
        self.check_open()?;
        self.push(self.buffers.own().lock(), first_seq, entry_count, payload)
    }

    fn push(
        &self,
        mut buffer: MutexGuard<'_, Buffer>,
        first_seq: u64,
        entry_count: u32,
        payload: &[u8],
    ) -> Result<(), LogError> {
        if self.closing.load(Acquire) {
            return Err(LogError::closed());
        }
        let gathered = buffer.push(first_seq, entry_count, payload);
        drop(buffer);
        // The flusher says that it lies down before it looks into the buffers. So it has seen this batch, or its state
        // is seen here.
        if self.flusher.wants(gathered) {
            self.wake_flusher(&self.waits.lock());
        }
        Ok(())
    }

    fn check_size(payload_bytes: usize) -> Result<(), LogError> {
        if payload_bytes <= PAYLOAD_BYTES_MAX {
            return Ok(());
        }
        Err(LogError::new(
            LogErrorKind::TooLarge,
            format!("a batch of {payload_bytes} bytes is over the limit of {PAYLOAD_BYTES_MAX}"),
        )
        .hint_is("append it as several batches"))
    }

    fn check_open(&self) -> Result<(), LogError> {
        match self.watermark.failure() {
            Some(failure) => Err(failure.clone()),
            None if self.closing.load(Acquire) => Err(LogError::closed()),
            None => Ok(()),
        }
    }

    /// Waits until the flusher has taken a full buffer; without a flusher, takes it.
    fn make_room_in(
        &self,
        buffer: &Mutex<Buffer>,
        payload_bytes: usize,
        bytes_max: usize,
    ) -> Result<(), LogError> {
        Self::check_size(payload_bytes)?;
        let has_flusher = self.options.flusher == Flusher::Thread;
        let has_room = || {
            // Whoever closes the gap has been here before.
            let is_behind = has_flusher && self.waiting_bytes.load(Acquire) > self.options.buffer_bytes;
            !is_behind && buffer.lock().has_room(payload_bytes, bytes_max)
        };
        self.check_open()?;
        while !has_room() {
            match self.options.flusher {
                Flusher::Thread => {
                    let mut waits = self.waits.lock();
                    self.check_open()?;
                    if !has_room() {
                        self.wake_flusher(&waits);
                        self.room.wait(&mut waits);
                    }
                }
                Flusher::Manual => self.flush_group()?,
            }
            self.check_open()?;
        }
        Ok(())
    }

    fn wake_flusher(&self, _: &MutexGuard<'_, Waits>) {
        if !self.flusher.is(BUSY) {
            self.flusher.becomes(BUSY);
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
                    let mut waits = self.waits.lock();
                    waits.hurry = true;
                    if self.flusher.is(GATHERING) {
                        self.wake_flusher(&waits);
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
        let Outlet { writer, in_order, group } = &mut *outlet;
        let hurry = std::mem::take(&mut self.waits.lock().hurry);
        let next_seq = in_order.take(&self.buffers, group);
        self.waiting_bytes.store(in_order.waiting_bytes(), Release);
        {
            // Under the lock, so that no appender goes to wait between its look at its buffer and our waking.
            let mut waits = self.waits.lock();
            waits.hurry |= hurry && in_order.has_gap();
            self.room.notify_all();
        }
        let result = if !group.is_empty() {
            self.watermark.begin_group(next_seq - 1);
            writer.write_group(group, next_seq)
        } else if writer.mark_is_due() && !in_order.has_gap() {
            writer.write_mark()
        } else {
            return Ok(());
        };
        match result {
            Ok(()) if group.is_empty() => Ok(()),
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
        self.change_outlet(|outlet| change(&mut outlet.writer))
    }

    fn change_outlet<T>(
        &self,
        change: impl FnOnce(&mut Outlet) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut outlet = self.outlet.lock();
        if let Some(failure) = self.watermark.failure() {
            return Err(failure.clone());
        }
        let changed = change(&mut outlet).inspect_err(|error| self.fail(error.clone()));
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
        self.change_outlet(|Outlet { writer, in_order, .. }| {
            assert!(self.buffers.len() == 0 && !in_order.has_gap(), "nobody appends while the log is cut");
            assert!(seq < self.next_seq(), "what is kept of a log that is cut is there");
            self.watermark.lower(seq);
            writer.truncate_after(seq)?;
            self.buffers.restart_at(seq + 1);
            *in_order = InOrder::starting_at(seq + 1);
            Ok(())
        })
    }

    /// Takes nothing more; false if that was so already.
    pub(crate) fn begin_closing(&self) -> bool {
        let begun = !self.closing.swap(true, AcqRel);
        let _waits = self.waits.lock();
        self.flusher.becomes(BUSY);
        self.work.notify_one();
        begun
    }

    /// Ends the log: appenders and waiters get `error` from now on.
    pub(crate) fn fail(&self, error: LogError) {
        self.watermark.fail(error);
        // Under the lock, so that no appender goes to wait between its check and our waking.
        let _waits = self.waits.lock();
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
        let mut waits = self.waits.lock();
        let mut mark_is_due = self.options.durability == Durability::Fsync;
        let is_closing = || self.closing.load(Acquire);
        loop {
            self.flusher.becomes(IDLE);
            if self.buffers.len() > 0 || is_closing() {
                break;
            }
            if mark_is_due {
                let is_late = self.work.wait_for(&mut waits, self.options.idle_mark);
                if is_late && self.buffers.len() == 0 {
                    mark_is_due =
                        MutexGuard::unlocked(&mut waits, || self.outlet.lock().writer.mark_is_due());
                    if mark_is_due {
                        self.flusher.becomes(BUSY);
                        return true;
                    }
                }
            } else {
                self.work.wait(&mut waits);
            }
        }
        if self.gathers() && !is_closing() && !waits.hurry && self.buffers.len() < GATHERED_BYTES {
            self.flusher.becomes(GATHERING);
            self.work.wait_for(&mut waits, self.options.gather);
        }
        self.flusher.becomes(BUSY);
        // Whoever flushes besides may have taken what woke this thread.
        !is_closing() || self.buffers.len() > 0
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
