//! How far the log is durable, and who waits for it.
//!
//! Waiting callers stand in two rooms, as the group in flight and the one after it have: finishing
//! a group wakes those it serves and nobody else. Publishing costs one atomic store and an
//! uncontended lock when nobody waits.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use fabius_env::sync::{Condvar, Mutex};

use crate::LogError;

type Listener = Box<dyn Fn(Result<u64, &LogError>) + Send + Sync>;

/// The durable watermark of one log.
pub(crate) struct Watermark {
    durable_seq: AtomicU64,
    failure: OnceLock<LogError>,
    in_flight: Mutex<GroupInFlight>,
    rooms: [Condvar; 2],
    listener: OnceLock<Listener>,
}

/// The group the flusher writes now, or wrote last.
#[derive(Debug)]
struct GroupInFlight {
    last_seq: u64,
    room: usize,
}

impl Watermark {
    pub(crate) fn at(durable_seq: u64) -> Self {
        Self {
            durable_seq: AtomicU64::new(durable_seq),
            failure: OnceLock::new(),
            in_flight: Mutex::new(GroupInFlight { last_seq: durable_seq, room: 0 }),
            rooms: [Condvar::new(), Condvar::new()],
            listener: OnceLock::new(),
        }
    }

    /// Entries up to here are durable.
    pub(crate) fn durable_seq(&self) -> u64 {
        self.durable_seq.load(Ordering::Acquire)
    }

    /// The error that ended the log, if one has; also that it was closed.
    pub(crate) fn failure(&self) -> Option<&LogError> {
        self.failure.get()
    }

    /// Registers the one listener; false if there is one already.
    pub(crate) fn listen(&self, listener: Listener) -> bool {
        self.listener.set(listener).is_ok()
    }

    /// The flusher takes a group that ends with `last_seq`.
    pub(crate) fn begin_group(&self, last_seq: u64) {
        let mut in_flight = self.in_flight.lock();
        in_flight.room = 1 - in_flight.room;
        in_flight.last_seq = last_seq;
    }

    /// Entries up to `durable_seq` have become durable.
    pub(crate) fn publish(&self, durable_seq: u64) {
        let room = {
            // Under the lock, so that nobody goes to wait between our store and our waking.
            let in_flight = self.in_flight.lock();
            self.durable_seq.store(durable_seq, Ordering::Release);
            in_flight.room
        };
        self.rooms[room].notify_all();
        if let Some(listener) = self.listener.get() {
            listener(Ok(durable_seq));
        }
    }

    /// Entries behind `seq` are about to be removed.
    pub(crate) fn lower(&self, seq: u64) {
        let mut in_flight = self.in_flight.lock();
        in_flight.last_seq = in_flight.last_seq.min(seq);
        self.durable_seq.fetch_min(seq, Ordering::AcqRel);
    }

    /// The log has failed for good; everyone waiting learns why. Only the first failure counts.
    pub(crate) fn fail(&self, error: LogError) {
        let first = {
            let _in_flight = self.in_flight.lock();
            self.failure.set(error).is_ok()
        };
        for room in &self.rooms {
            room.notify_all();
        }
        if let (true, Some(listener), Some(failure)) = (first, self.listener.get(), self.failure()) {
            listener(Err(failure));
        }
    }

    /// The log was closed: whoever waits for an entry that was never appended waits in vain.
    pub(crate) fn close(&self) {
        {
            let _in_flight = self.in_flight.lock();
            let _ = self.failure.set(LogError::closed());
        }
        for room in &self.rooms {
            room.notify_all();
        }
    }

    /// Waits until `seq` is durable or the log has failed.
    pub(crate) fn wait(&self, seq: u64) -> Result<(), LogError> {
        if self.durable_seq() >= seq {
            return Ok(());
        }
        let mut in_flight = self.in_flight.lock();
        loop {
            // Durable first: what was acknowledged stays so, whatever failed later.
            if self.durable_seq() >= seq {
                return Ok(());
            }
            if let Some(failure) = self.failure() {
                return Err(failure.clone());
            }
            let room = if seq <= in_flight.last_seq { in_flight.room } else { 1 - in_flight.room };
            self.rooms[room].wait(&mut in_flight);
        }
    }
}

impl fmt::Debug for Watermark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watermark")
            .field("durable_seq", &self.durable_seq())
            .field("failure", &self.failure())
            .finish_non_exhaustive()
    }
}
