//! Clients that always have work on the way: throughput, and latency without queues.
//!
//! Each client thread makes batches of calls, hands them in, and lends itself to the engine until
//! they are decided:
//!
//! ```text
//! make a batch, submit ... until `in_flight` are on the way
//! look at the oldest: decided? count it
//! otherwise: help the engine (now-phases first, then what is urgent)
//! ```
//!
//! When the time is up, the threads wait for what is on the way, work off the backlog together, and
//! only then the clock stops: a call counts when all of its work is done.

use crate::depth::Depth;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::measured::{Measured, difference, times_between};
use crate::operation::{Mode, Operation};
use crate::recorder::Recorder;
use crate::sent::{Sent, note_query};
use crate::settings::Settings;
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Workload};
use fabius::{BatchBuilder, Counts, Database, Procedure, Result};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);
/// Pieces of deferred work done between two batches, at most, when the queue is empty.
const PIECES_MAX: usize = 64;
/// How long a thread without anything to do sleeps for the outcome it waits for.
const NAP: Duration = Duration::from_micros(200);
/// Turns of waiting before the first sleep.
const SPINS: u32 = 200;

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// After this time, plus that for the rest of the work; each client makes a batch at least.
    Time(Duration),
    /// When each client has made this many calls, or this time is over.
    Calls(u64, Duration),
}

impl Limit {
    /// How many more calls a client may make that has made this many; none when the time is over.
    fn rest(self, made: u64, elapsed: Duration) -> u64 {
        match self {
            Limit::Time(time) if elapsed < time || made == 0 => u64::MAX,
            Limit::Calls(count, time) if elapsed < time => count.saturating_sub(made),
            _ => 0,
        }
    }
}

/// How a run is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Client threads; there are no others.
    pub threads: usize,
    /// When it ends.
    pub limit: Limit,
}

/// A run while it goes on, shown every tick.
pub struct Progress<'p> {
    /// Since it began.
    pub elapsed: Duration,
    /// What the engine counted since it began.
    pub counts: Counts,
    /// Whether calls are still being made, not only finished.
    pub is_offering: bool,
    recorders: &'p [Mutex<Recorder>],
}

impl Progress<'_> {
    /// What the clients have seen so far.
    pub fn seen(&self) -> Recorder {
        merged(self.recorders)
    }
}

/// Runs a workload on a target.
///
/// # Errors
/// What stopped the engine; a query that fails for another reason than its own.
pub fn run(
    target: &Target,
    workload: &dyn Workload,
    settings: &Settings,
    plan: Plan,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Progress<'_>),
) -> Result<Measured> {
    target.apply(settings);
    let operations = workload.operations();
    let procedures = target.procedures(operations)?;
    let recorders: Vec<Mutex<Recorder>> =
        (0..plan.threads).map(|_| Mutex::new(Recorder::new(operations))).collect();
    let busy = AtomicUsize::new(plan.threads);
    let run = target.begin_run();
    let before = target.database.counts();
    let times_before = target.database.engine().times();
    machine::reset_peak();
    let started = Instant::now();
    let (done, finished) = channel();
    let outcome = std::thread::scope(|scope| {
        for (number, recorder) in recorders.iter().enumerate() {
            let place = ClientPlace { number, count: plan.threads, run };
            let batch = settings.integer("batch") as usize;
            let mut thread = ClientThread {
                database: &target.database,
                operations,
                procedures: &procedures,
                client: workload.client(place),
                recorder,
                batch,
                depth: Depth::new(settings, target.durability, batch, workload.in_flight_max(plan.threads)),
                in_flight: VecDeque::new(),
                arguments: Vec::new(),
                queries: Vec::new(),
                spare: Vec::new(),
                made: 0,
                batch_bytes: 0,
            };
            let (done, busy) = (done.clone(), &busy);
            scope.spawn(move || {
                // Counted down also when the thread panics, so that the others do not wait for ever.
                let leaving = Leaving(busy);
                let outcome = thread.offer(started, plan.limit, interrupt);
                drop(leaving);
                let offered = started.elapsed();
                if outcome.is_ok() {
                    target.work_off_when_idle(settings);
                    while busy.load(SeqCst) > 0 || target.database.help() {
                        target.database.help();
                    }
                }
                let _ = done.send(outcome.map(|()| offered));
            });
        }
        drop(done);
        let mut offered = Duration::ZERO;
        let mut rest = plan.threads;
        let mut failure = None;
        while rest > 0 {
            match finished.recv_timeout(TICK) {
                Ok(Ok(time)) => offered = offered.max(time),
                Ok(Err(error)) => failure = Some(error),
                Err(RecvTimeoutError::Timeout) => {
                    observe(&Progress {
                        elapsed: started.elapsed(),
                        counts: difference(&target.database.counts(), &before),
                        is_offering: busy.load(SeqCst) > 0,
                        recorders: &recorders,
                    });
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
            rest -= 1;
        }
        if let Some(error) = failure {
            return Err(error);
        }
        if rest == 0 {
            target.database.settle();
        }
        // Before the threads are gone, whose allocators have much to give back.
        Ok((offered, started.elapsed()))
    });
    let (offered, elapsed) = outcome?;
    let seen = merged(&recorders);
    target.count(operations, &seen.committed);
    Ok(Measured {
        counts: difference(&target.database.counts(), &before),
        times: times_between(target.database.engine().times(), &times_before),
        seen,
        offered,
        elapsed,
        peak_rss_bytes: machine::peak_rss_bytes(),
        is_interrupted: interrupt.is_raised(),
    })
}

fn merged(recorders: &[Mutex<Recorder>]) -> Recorder {
    let mut all = recorders[0].lock().clone();
    recorders[1..].iter().for_each(|recorder| all.merge(&recorder.lock()));
    all
}

struct Leaving<'b>(&'b AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// One client thread.
struct ClientThread<'r> {
    database: &'r Database,
    operations: &'static [Operation],
    procedures: &'r [Arc<Procedure>],
    client: Box<dyn Client>,
    recorder: &'r Mutex<Recorder>,
    batch: usize,
    depth: Depth,
    in_flight: VecDeque<Sent>,
    arguments: Vec<u8>,
    queries: Vec<(usize, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    made: u64,
    batch_bytes: usize,
}

impl ClientThread<'_> {
    /// Makes calls until the limit, then waits for those on the way.
    fn offer(&mut self, started: Instant, limit: Limit, interrupt: &Interrupt) -> Result<()> {
        let mut idle = 0;
        loop {
            let rest = limit.rest(self.made, started.elapsed());
            if rest == 0 || interrupt.is_raised() {
                break;
            }
            // Queries are answered where they are made: of those alone nothing is ever on the way.
            if self.in_flight.len() < self.depth.now {
                self.send(rest.min(self.batch as u64) as usize)?;
            } else if self.reap()? {
                idle = 0;
                let mut pieces = 0;
                while self.in_flight.is_empty() && pieces < PIECES_MAX && self.database.help() {
                    pieces += 1;
                }
            } else {
                self.lend(&mut idle);
            }
        }
        while !self.in_flight.is_empty() {
            if !self.reap()? {
                self.lend(&mut idle);
            }
        }
        Ok(())
    }

    /// Makes one batch and hands it in; runs its queries.
    fn send(&mut self, count: usize) -> Result<()> {
        let mut builder = BatchBuilder::with_capacity(self.batch_bytes);
        let mut operations = self.spare.pop().unwrap_or_default();
        operations.clear();
        self.made += count as u64;
        for _ in 0..count {
            self.arguments.clear();
            let operation = self.client.next(&mut self.arguments);
            match self.operations[operation].mode {
                Mode::Query => self.queries.push((operation, self.arguments.clone())),
                mode => {
                    let wants_result = mode == Mode::CallForResult;
                    builder.push(self.procedures[operation].id, &self.arguments, None, wants_result)?;
                    operations.push(operation as u8);
                }
            }
        }
        if builder.is_empty() {
            self.spare.push(operations);
        } else {
            let batch = builder.build();
            self.batch_bytes = self.batch_bytes.max(batch.calls().len() + 64);
            let sent_ns = self.database.engine().foundation().clock.monotonic_ns();
            self.database.submit(batch.clone());
            self.in_flight.push_back(Sent { batch, sent_ns, operations });
        }
        for (operation, arguments) in std::mem::take(&mut self.queries) {
            let began = Instant::now();
            let outcome = self.database.engine().query(&self.procedures[operation], &arguments);
            note_query(&mut self.recorder.lock(), operation, began.elapsed(), outcome.map(drop))?;
        }
        Ok(())
    }

    /// Counts the oldest batch if it is decided; whether it is.
    fn reap(&mut self) -> Result<bool> {
        let Some(sent) = self.in_flight.pop_front_if(|sent| sent.batch.is_complete()) else {
            return Ok(false);
        };
        sent.record(self.database, self.operations, &mut self.recorder.lock())?;
        self.depth.heard(sent.batch.completed_ns().saturating_sub(sent.sent_ns));
        self.spare.push(sent.operations);
        Ok(true)
    }

    /// Lends the thread to the engine, or sleeps if there is nothing to do.
    fn lend(&mut self, idle: &mut u32) {
        if self.database.help() {
            *idle = 0;
            return;
        }
        *idle += 1;
        match self.in_flight.front() {
            Some(sent) if *idle > SPINS => {
                self.depth.starved();
                sent.batch.wait(NAP);
            }
            _ => std::hint::spin_loop(),
        }
    }
}
