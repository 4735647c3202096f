//! Calls on their way in, and their promises on the way out.
//!
//! A client hands calls in as a [`Batch`], as many as it likes at a time: one for a caller who waits,
//! thousands for a loader. The engine fills in the outcome of every call, and *completes* the batch
//! when all outcomes are final and durable. Then, and only then, the client may look. Before that a batch is
//! *decided*: the outcomes are final, and the log is to be synced behind them.
//!
//! A call that wants its result may ask for a [`Ticket`], which holds the returned values once they
//! have been computed; asking for them makes the engine compute them. Values that are known when the batch is decided
//! need none until then: they are kept together ([`Returned`]).

use crate::entry::{self, Call};
use crate::priority::Priority;
use crate::returned::{self, Returned};
use fabius_env::sync::{Condvar, Mutex};
use fabius_program::catalog::ProcedureId;
use fabius_storage::memory;
use fabius_value::{Error, Result, Seq, SqlState, Value};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

/// Calls handed in together.
pub struct Batch {
    calls: Vec<u8>,
    count: u32,
    priority: Priority,
    decided: AtomicBool,
    complete: AtomicBool,
    completed_ns: AtomicU64,
    outcomes: Mutex<Outcomes>,
    completion: Condvar,
    /// Tasks to wake at completion.
    wakers: parking_lot::Mutex<Vec<Waker>>,
}

/// What became of a batch's calls.
#[derive(Default)]
pub struct Outcomes {
    /// The seq of each call, if the engine gives consecutive ones: of the first.
    pub first_seq: Option<Seq>,
    /// Calls that aborted, and why, in ascending order; all others committed.
    pub aborts: Vec<(u32, Error)>,
    /// Where results of calls that want them will be, in ascending order.
    pub tickets: Vec<(u32, Arc<Ticket>)>,
    /// Those that are known, and that nobody has asked for by a ticket.
    pub returned: Returned,
    /// Why none of the outcomes are known, if the engine stopped.
    pub failure: Option<Error>,
}

impl Outcomes {
    /// Deals out what has become of calls that were taken together to batches that some of them came in: each with
    /// the place of its first call among them, in ascending order. What is of no batch is dropped.
    pub fn deal(mut self, batches: &[(u32, Arc<Batch>)]) {
        let (mut aborts, mut tickets) =
            (self.aborts.into_iter().peekable(), self.tickets.into_iter().peekable());
        for (first, batch) in batches {
            let places = *first..*first + batch.count();
            let mut outcomes = batch.outcomes();
            outcomes.first_seq = self.first_seq.map(|seq| Seq(seq.0 + u64::from(*first)));
            while let Some((place, abort)) = aborts.next_if(|(place, _)| *place < places.end) {
                outcomes.aborts.extend(places.contains(&place).then(|| (place - first, abort)));
            }
            while let Some((place, ticket)) = tickets.next_if(|(place, _)| *place < places.end) {
                outcomes.tickets.extend(places.contains(&place).then(|| (place - first, ticket)));
            }
            outcomes.returned.append(self.returned.split(places));
            outcomes.failure = self.failure.clone();
        }
    }
}

/// Where a call's returned values will be.
#[derive(Default)]
pub struct Ticket {
    values: OnceLock<Result<Vec<Value>>>,
    /// What computes them, in the engine's own terms; null once there is nothing to do.
    source: AtomicPtr<()>,
}

impl Ticket {
    /// A ticket whose values are known already.
    pub fn ready(values: Result<Vec<Value>>) -> Ticket {
        let ticket = Ticket::default();
        ticket.fulfil(values);
        ticket
    }

    /// The values, if they have been computed.
    pub fn values(&self) -> Option<&Result<Vec<Value>>> {
        self.values.get()
    }

    /// Stores the values (the first time).
    pub fn fulfil(&self, values: Result<Vec<Value>>) {
        let bytes = result_bytes(&values);
        if self.values.set(values).is_ok() {
            memory::add(bytes);
        }
        self.source.store(std::ptr::null_mut(), Release);
    }

    /// What computes the values, in the engine's own terms.
    pub fn source(&self) -> *mut () {
        self.source.load(Acquire)
    }

    /// Says what computes the values.
    pub fn set_source(&self, source: *mut ()) {
        self.source.store(source, Release);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(values) = self.values.get() {
            memory::add(-result_bytes(values));
        }
    }
}

/// What a ticket takes: a result stays for as long as its idempotency key is remembered.
fn result_bytes(values: &Result<Vec<Value>>) -> isize {
    (size_of::<Ticket>() + values.as_ref().map_or(0, |values| returned::bytes(values))) as isize
}

impl Batch {
    /// A batch of so many encoded calls.
    pub fn of(calls: Vec<u8>, count: u32) -> Arc<Batch> {
        Arc::new(Batch::new(calls, count, Priority::Normal))
    }

    fn new(calls: Vec<u8>, count: u32, priority: Priority) -> Batch {
        Batch {
            calls,
            count,
            priority,
            decided: AtomicBool::new(false),
            complete: AtomicBool::new(false),
            completed_ns: AtomicU64::new(0),
            outcomes: Mutex::default(),
            completion: Condvar::new(),
            wakers: parking_lot::Mutex::default(),
        }
    }

    /// The encoded calls.
    pub fn calls(&self) -> &[u8] {
        &self.calls
    }

    /// How urgent they are.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How many calls there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether all outcomes are final and durable.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.complete.load(Acquire)
    }

    /// Whether all outcomes are final, durable or not.
    #[inline]
    pub fn is_decided(&self) -> bool {
        self.decided.load(Acquire) || self.is_complete()
    }

    /// Says that all outcomes are final.
    pub fn decide(&self) {
        self.decided.store(true, Release);
    }

    /// Whether the batch is complete; if not, this waker is woken when it is.
    pub fn poll_complete(&self, waker: &Waker) -> bool {
        if self.is_complete() {
            return true;
        }
        let mut wakers = self.wakers.lock();
        // Completion comes first, then the wakers are taken: whoever finds it incomplete here is woken.
        if self.is_complete() {
            return true;
        }
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
        false
    }

    /// When it was completed, on the monotonic clock of the engine's foundation; 0 before.
    pub fn completed_ns(&self) -> u64 {
        self.completed_ns.load(Relaxed)
    }

    /// The outcomes; what they say is final only once the batch is complete.
    pub fn outcomes(&self) -> parking_lot::MutexGuard<'_, Outcomes> {
        self.outcomes.lock()
    }

    /// The outcome of one call of a complete batch.
    ///
    /// # Errors
    /// Why the call aborted, or why its outcome is not known.
    pub fn outcome(&self, call: u32) -> Result<()> {
        debug_assert!(self.is_complete());
        let outcomes = self.outcomes.lock();
        if let Some(failure) = &outcomes.failure {
            return Err(failure.clone());
        }
        match outcomes.aborts.binary_search_by_key(&call, |abort| abort.0) {
            Ok(at) => Err(outcomes.aborts[at].1.clone()),
            Err(_) => Ok(()),
        }
    }

    /// The ticket of a call that wants its result; `None` if it aborted or does not want it.
    pub fn ticket(&self, call: u32) -> Option<Arc<Ticket>> {
        let mut outcomes = self.outcomes.lock();
        let at = match outcomes.tickets.binary_search_by_key(&call, |ticket| ticket.0) {
            Ok(at) => at,
            Err(at) => {
                let values = outcomes.returned.take(call)?;
                outcomes.tickets.insert(at, (call, Arc::new(Ticket::ready(Ok(values)))));
                at
            }
        };
        Some(outcomes.tickets[at].1.clone())
    }

    /// Says that all outcomes are final and durable, and wakes who waits.
    pub fn complete(&self, now_ns: u64) {
        self.completed_ns.store(now_ns, Relaxed);
        let outcomes = self.outcomes.lock();
        self.complete.store(true, Release);
        self.completion.notify_all();
        drop(outcomes);
        let wakers = std::mem::take(&mut *self.wakers.lock());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Says that the engine stopped before the outcomes were known; not if they are.
    pub fn fail(&self, error: Error, now_ns: u64) {
        let mut outcomes = self.outcomes.lock();
        // Whoever has looked at complete outcomes has seen the last of them.
        if self.is_complete() {
            return;
        }
        outcomes.failure.get_or_insert(error);
        drop(outcomes);
        self.complete(now_ns);
    }

    /// Waits until the batch is complete, at most `timeout`; whether it is.
    pub fn wait(&self, timeout: Duration) -> bool {
        if self.is_complete() {
            return true;
        }
        let mut outcomes = self.outcomes.lock();
        while !self.is_complete() && !self.completion.wait_for(&mut outcomes, timeout) {}
        self.is_complete()
    }
}

/// Collects calls into a batch.
#[derive(Default)]
pub struct BatchBuilder {
    calls: Vec<u8>,
    count: u32,
    priority: Priority,
}

impl BatchBuilder {
    /// An empty batch.
    pub fn new() -> BatchBuilder {
        BatchBuilder::default()
    }

    /// An empty batch with room for so many bytes of calls.
    pub fn with_capacity(bytes: usize) -> BatchBuilder {
        BatchBuilder { calls: Vec::with_capacity(bytes), ..BatchBuilder::default() }
    }

    /// Gives the batch a priority: it may overtake less urgent ones that have not begun.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> BatchBuilder {
        BatchBuilder { priority, ..self }
    }

    /// Adds a call; gives its place in the batch.
    ///
    /// # Errors
    /// `54000` if the idempotency key or the arguments are too long.
    pub fn push(
        &mut self,
        procedure: ProcedureId,
        arguments: &[u8],
        key: Option<&[u8]>,
        wants_result: bool,
    ) -> Result<u32> {
        use fabius_value::limit::{ARGUMENT_BYTES, IDEMPOTENCY_KEY_BYTES};
        if arguments.len() > ARGUMENT_BYTES {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "arguments too large")
                .with_detail(format!(
                    "they have {} bytes, at most {ARGUMENT_BYTES} are allowed",
                    arguments.len()
                ))
                .with_hint("divide the work among several calls"));
        }
        if key.is_some_and(|key| key.len() > IDEMPOTENCY_KEY_BYTES) {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "idempotency key too long")
                .with_detail(format!(
                    "it has {} bytes, at most {IDEMPOTENCY_KEY_BYTES} are allowed",
                    key.map_or(0, <[u8]>::len)
                ))
                .with_hint("a number or a hash that tells the call from others will do"));
        }
        entry::encode_call(&Call { procedure, arguments, key, wants_result }, &mut self.calls);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// How many calls there are so far.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The batch, ready to be submitted.
    pub fn build(self) -> Arc<Batch> {
        Arc::new(Batch::new(self.calls, self.count, self.priority))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    const LONG: Duration = Duration::from_secs(60);

    /// Goal: whoever waits for a batch is woken, and then sees all that was said of it before; whether
    /// waiting begins before, while, or after it is completed. Under Miri each seed is another schedule.
    #[test]
    fn completion_wakes_everyone_and_shows_everything() {
        for turn in 0..if cfg!(miri) { 3 } else { 2_000u32 } {
            let mut builder = BatchBuilder::new();
            builder.push(ProcedureId(1), &[turn as u8], None, true).unwrap();
            let batch = builder.build();
            let said = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        assert!(batch.wait(LONG));
                        assert_eq!(said.load(Relaxed), turn + 1);
                        assert_eq!((batch.completed_ns(), batch.outcomes().first_seq), (7, Some(Seq(9))));
                        let ticket = batch.ticket(0).expect("a ticket");
                        assert!(ticket.values().is_some() && ticket.source().is_null());
                    });
                }
                if turn % 2 == 0 {
                    std::thread::yield_now();
                }
                said.store(turn + 1, Relaxed);
                let mut outcomes = batch.outcomes();
                outcomes.first_seq = Some(Seq(9));
                outcomes.tickets.push((0, Arc::new(Ticket::ready(Ok(vec![])))));
                drop(outcomes);
                batch.complete(7);
            });
            assert_eq!(batch.outcome(0), Ok(()));
        }
    }

    /// Goal: a task that waits for a batch is woken once it is complete, whether it asks before, while, or after;
    /// one that asks twice is woken once.
    #[test]
    fn completion_wakes_tasks() {
        struct Count(AtomicU32);
        impl std::task::Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        for turn in 0..if cfg!(miri) { 3 } else { 2_000u32 } {
            let mut builder = BatchBuilder::new();
            builder.push(ProcedureId(1), &[], None, false).unwrap();
            let batch = builder.build();
            let count = Arc::new(Count(AtomicU32::new(0)));
            let waker = Waker::from(count.clone());
            let was_complete = std::thread::scope(|scope| {
                let asked = scope.spawn(|| (batch.poll_complete(&waker), batch.poll_complete(&waker)));
                if turn % 2 == 0 {
                    std::thread::yield_now();
                }
                batch.decide();
                assert!(batch.is_decided());
                batch.complete(1);
                asked.join().unwrap()
            });
            assert!(batch.poll_complete(&waker));
            assert_eq!(count.0.load(Relaxed), u32::from(!was_complete.0));
        }
    }

    /// Goal: a ticket is fulfilled once; who sees its source gone sees its values.
    #[test]
    fn a_ticket_without_source_has_values() {
        for _ in 0..if cfg!(miri) { 3 } else { 2_000 } {
            let (ticket, mut deferred) = (Ticket::default(), 1u8);
            ticket.set_source((&raw mut deferred).cast());
            std::thread::scope(|scope| {
                for value in [1, 2] {
                    let ticket = &ticket;
                    scope.spawn(move || ticket.fulfil(Ok(vec![Value::Int(value)])));
                }
                scope.spawn(|| {
                    while !ticket.source().is_null() {
                        std::thread::yield_now();
                    }
                    let first = ticket.values().expect("fulfilled before").clone();
                    assert_eq!(ticket.values(), Some(&first));
                });
            });
        }
    }

    /// Goal: a failed batch knows no outcome, and nobody waits for it in vain.
    #[test]
    fn a_failed_batch_says_why() {
        let mut builder = BatchBuilder::new();
        builder.push(ProcedureId(0), &[], None, false).unwrap();
        let batch = builder.build();
        assert!(!batch.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(batch.wait(LONG)));
            batch.fail(Error::new(SqlState::SHUTDOWN, "closed"), 1);
        });
        assert_eq!(batch.outcome(0).unwrap_err().state(), SqlState::SHUTDOWN);
    }
}
