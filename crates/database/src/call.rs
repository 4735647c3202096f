//! Calls from the caller's side: prepare, call or submit, wait, ask for the result.

use crate::Database;
use fabius_engine::{Batch, BatchBuilder, Priority, Procedure, Ticket};
use fabius_program::arguments;
use fabius_value::{Error, Result, Seq, SqlState, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a waiting caller sleeps before it looks again for something to do.
const NAP: Duration = Duration::from_millis(20);

/// A procedure, ready to be called.
#[derive(Clone)]
pub struct Prepared<'d> {
    database: &'d Database,
    procedure: Arc<Procedure>,
    key: Option<Vec<u8>>,
    priority: Priority,
}

impl<'d> Prepared<'d> {
    pub(crate) fn new(database: &'d Database, procedure: Arc<Procedure>) -> Prepared<'d> {
        Prepared { database, procedure, key: None, priority: Priority::default() }
    }

    /// The procedure.
    pub fn procedure(&self) -> &Arc<Procedure> {
        &self.procedure
    }

    /// Gives the call an idempotency key: a second call with the same key does nothing and gets the first
    /// one's outcome, also after a restart, for as many calls as
    /// [`key_window_calls`](crate::Options::key_window_calls) says. After that the key is as good as new.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<Vec<u8>>) -> Prepared<'d> {
        self.key = Some(key.into());
        self
    }

    /// Gives the call a priority: an urgent one overtakes others that were handed in before and have not begun. On the
    /// nodes of a cluster all are alike.
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Prepared<'d> {
        self.priority = priority;
        self
    }

    /// Hands the call in and returns at once.
    ///
    /// # Errors
    /// Arguments that do not fit the parameters; they are not handed in.
    pub fn submit(&self, arguments: &[Value]) -> Result<Pending<'d>> {
        let bytes = arguments::encode(&self.procedure.program, arguments)?;
        let mut builder = BatchBuilder::with_capacity(bytes.len() + 16).with_priority(self.priority);
        let wants_result = !self.procedure.program.results.is_empty();
        builder.push(self.procedure.id, &bytes, self.key.as_deref(), wants_result)?;
        let batch = builder.build();
        self.database.submit(batch.clone());
        Ok(Pending { database: self.database, batch })
    }

    /// Calls, and waits until the outcome is decided and durable.
    ///
    /// # Errors
    /// Why the call aborted, or why its outcome is not known.
    pub fn call(&self, arguments: &[Value]) -> Result<Promise<'d>> {
        self.submit(arguments)?.wait()
    }
}

/// A call that was handed in.
pub struct Pending<'d> {
    database: &'d Database,
    batch: Arc<Batch>,
}

impl<'d> Pending<'d> {
    /// Whether the outcome is decided and durable.
    pub fn is_decided(&self) -> bool {
        self.batch.is_complete()
    }

    /// Waits until it is.
    ///
    /// # Errors
    /// Why the call aborted, or why its outcome is not known.
    pub fn wait(self) -> Result<Promise<'d>> {
        self.database.wait(&self.batch);
        self.promise()
    }

    /// Waits at most so long. Giving up does not take the call back: it stays in order, and its
    /// outcome can be asked for under its idempotency key.
    ///
    /// # Errors
    /// `57014` if the time was not enough; else as [`Pending::wait`].
    pub fn wait_for(self, timeout: Duration) -> Result<Promise<'d>> {
        if !self.database.wait_until(&self.batch, Instant::now().checked_add(timeout)) {
            return Err(Error::new(SqlState::CANCELED, "gave up waiting for the outcome")
                .with_hint("the call goes on; ask again under its idempotency key"));
        }
        self.promise()
    }

    fn promise(self) -> Result<Promise<'d>> {
        self.batch.outcome(0)?;
        let seq = self.batch.outcomes().first_seq.unwrap_or_default();
        Ok(Promise { database: self.database, seq, ticket: self.batch.ticket(0) })
    }
}

/// A committed call: final and durable.
pub struct Promise<'d> {
    database: &'d Database,
    seq: Seq,
    ticket: Option<Arc<Ticket>>,
}

impl std::fmt::Debug for Promise<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Promise").field("seq", &self.seq.0).finish_non_exhaustive()
    }
}

impl Promise<'_> {
    /// The call's place in the order.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The returned values; computes them now if nobody has.
    ///
    /// # Errors
    /// None for a procedure's own reasons: what could fail was decided before the promise.
    pub fn result(&self) -> Result<Vec<Value>> {
        self.ticket.as_ref().map_or(Ok(Vec::new()), |ticket| self.database.resolve(ticket))
    }
}

impl Database {
    /// The values that a ticket stands for; computes them now if nobody has.
    pub(crate) fn resolve(&self, ticket: &Ticket) -> Result<Vec<Value>> {
        loop {
            if let Some(values) = ticket.values() {
                return values.clone();
            }
            self.engine().resolve(ticket);
        }
    }

    /// Waits for a batch, lending the thread to the engine as long as calls are to be taken in.
    pub fn wait(&self, batch: &Batch) {
        self.wait_until(batch, None);
    }

    fn wait_until(&self, batch: &Batch, deadline: Option<Instant>) -> bool {
        while !batch.is_complete() {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return false;
            }
            if !self.engine().admit() {
                let rest =
                    deadline.map_or(NAP, |deadline| deadline.saturating_duration_since(Instant::now()));
                batch.wait(rest.min(NAP));
            }
        }
        true
    }
}
