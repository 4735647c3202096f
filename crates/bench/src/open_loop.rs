//! Calls that arrive when they arrive, whether or not earlier ones are answered: latency under load,
//! and load beyond what an engine can do.
//!
//! One thread is the front: it makes the calls that are due, hands them in and admits them. The
//! others do what is left to do: queries first, then help. Latency counts from when a call was due,
//! not from when the front came to it.
//!
//! ```text
//! front:   due calls -> submit -> admit (lazy: the now-phase; eager: nothing, or a call)
//! others:  queries, then substantiation (lazy) or calls (eager)
//! ```
//!
//! A call that is due while `queue_calls` others wait for their outcome is refused and counted.

use crate::arrivals::Offered;
use crate::interrupt::Interrupt;
use crate::machine;
use crate::measured::{Measured, difference, times_between};
use crate::operation::{Mode, Operation};
use crate::recorder::Recorder;
use crate::sent::{Sent, note_query};
use crate::settings::Settings;
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Workload};
use fabius::{BatchBuilder, Counts, EngineKind, Procedure, Result};
use fabius_env::Random;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How often the series is sampled (lazy evaluation, section 4.2).
pub const SAMPLE: Duration = Duration::from_millis(100);
/// Calls that are due together go in batches of this many at most.
const BATCH_MAX: usize = 64;

/// One sample: what happened since the one before.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Since the beginning, at the end of the sample.
    pub at: Duration,
    /// Calls that were due.
    pub offered: u64,
    /// Of those, calls that were refused.
    pub refused: u64,
    /// Calls decided.
    pub promised: u64,
    /// Calls whose work was done (or not needed).
    pub done: u64,
    /// Deferred calls waiting at the end of the sample.
    pub backlog: u64,
}

/// What an open run gave.
pub struct Open {
    /// As for other runs.
    pub measured: Measured,
    /// Every [`SAMPLE`].
    pub samples: Vec<Sample>,
    /// Calls that were due.
    pub offered: u64,
    /// Of those, refused.
    pub refused: u64,
}

/// What a run at a given load decides by itself.
pub const SETTINGS_WITHOUT_EFFECT: [&str; 3] = ["batch", "in_flight", "idle"];

/// Runs a workload at a given load.
///
/// # Errors
/// What stopped the engine; a query that fails for another reason than its own.
pub fn run(
    target: &Target,
    workload: &dyn Workload,
    settings: &Settings,
    offered: &Offered,
    threads: usize,
    interrupt: &Interrupt,
) -> Result<Open> {
    // The others have nothing to do but deferred work, so they do it at once.
    let settings = &settings.with(&[("idle", &"on")]);
    target.apply(settings);
    let operations = workload.operations();
    let procedures = target.procedures(operations)?;
    let place = ClientPlace { number: 0, count: 1, run: target.begin_run() };
    let before = target.database.counts();
    let times_before = target.database.engine().times();
    machine::reset_peak();
    let queries = Queries::default();
    let is_over = AtomicBool::new(false);
    let started = Instant::now();
    let mut front = Front {
        target,
        operations,
        procedures: &procedures,
        client: workload.client(place),
        random: super::workloads::random_for(settings.integer("seed") ^ 0xa5a5, place),
        offered,
        threads,
        started,
        start_ns: target.database.engine().foundation().clock.monotonic_ns(),
        before,
        queries: &queries,
        recorder: Recorder::new(operations),
        sent: VecDeque::new(),
        waiting: 0,
        arguments: Vec::new(),
        samples: Vec::new(),
        total_offered: 0,
        total_refused: 0,
    };
    let outcome = std::thread::scope(|scope| {
        let ending = Raised(&is_over);
        for _ in 1..threads {
            scope.spawn(|| {
                while !is_over.load(SeqCst) {
                    if !queries.run_one(target, &procedures, started) && !target.database.help() {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        let outcome = front.run(interrupt);
        let offered_time = started.elapsed().min(offered.time);
        if outcome.is_ok() {
            target.database.settle();
        }
        // Before the threads are gone, whose allocators have much to give back.
        let elapsed = started.elapsed();
        drop(ending);
        outcome.map(|()| (offered_time, elapsed))
    });
    let (offered_time, elapsed) = outcome?;
    front.finish_samples(elapsed);
    let Front { mut recorder, samples, total_offered, total_refused, .. } = front;
    for (operation, took, outcome) in queries.answered.into_inner() {
        note_query(&mut recorder, operation, took, outcome)?;
    }
    target.count(operations, &recorder.committed);
    let measured = Measured {
        counts: difference(&target.database.counts(), &before),
        times: times_between(target.database.engine().times(), &times_before),
        seen: recorder,
        offered: offered_time,
        elapsed,
        peak_rss_bytes: machine::peak_rss_bytes(),
        is_interrupted: interrupt.is_raised(),
    };
    Ok(Open { measured, samples, offered: total_offered, refused: total_refused })
}

/// Raises a flag when dropped, however that comes about.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Queries on their way to whoever has time for them.
#[derive(Default)]
struct Queries {
    due: Mutex<VecDeque<(usize, Vec<u8>, Duration)>>,
    answered: Mutex<Vec<(usize, Duration, Result<()>)>>,
}

impl Queries {
    fn run_one(&self, target: &Target, procedures: &[Arc<Procedure>], started: Instant) -> bool {
        let Some((operation, arguments, due)) = self.due.lock().pop_front() else { return false };
        let outcome = target.database.engine().query(&procedures[operation], &arguments).map(drop);
        let took = started.elapsed().saturating_sub(due);
        self.answered.lock().push((operation, took, outcome));
        true
    }
}

struct Front<'r> {
    target: &'r Target,
    operations: &'static [Operation],
    procedures: &'r [Arc<Procedure>],
    client: Box<dyn Client>,
    random: Random,
    offered: &'r Offered,
    threads: usize,
    started: Instant,
    start_ns: u64,
    before: Counts,
    queries: &'r Queries,
    recorder: Recorder,
    sent: VecDeque<Sent>,
    /// Calls in `sent`.
    waiting: usize,
    arguments: Vec<u8>,
    samples: Vec<Sample>,
    total_offered: u64,
    total_refused: u64,
}

impl Front<'_> {
    fn run(&mut self, interrupt: &Interrupt) -> Result<()> {
        let mut due = Duration::ZERO;
        let is_eager = self.target.engine != EngineKind::Lazy;
        while due < self.offered.time && !interrupt.is_raised() {
            let now = self.started.elapsed();
            // All that is due, however far behind the front is: load does not wait for the engine.
            while due <= now && due < self.offered.time {
                let first = due;
                let mut count = 0;
                while due <= now && count < BATCH_MAX && due < self.offered.time {
                    due += self.gap(due);
                    count += 1;
                }
                self.hand_in(first, count)?;
            }
            self.reap()?;
            self.sample(now);
            // The lazy front only admits: the pieces of deferred work are long beside a now-phase.
            // With one thread there is nobody else to do them.
            let has_helped = self.target.database.engine().admit();
            if !has_helped && (is_eager || self.threads == 1) && due > self.started.elapsed() {
                self.target.database.help();
            }
            if self.threads == 1 && due > self.started.elapsed() {
                self.queries.run_one(self.target, self.procedures, self.started);
            }
        }
        while !self.sent.is_empty() || !self.queries.due.lock().is_empty() {
            self.reap()?;
            if !self.queries.run_one(self.target, self.procedures, self.started) {
                self.target.database.help();
            }
        }
        // The backlog is worked off in view of the samples.
        while !interrupt.is_raised() && self.target.database.help() {
            self.sample(self.started.elapsed());
        }
        Ok(())
    }

    fn gap(&mut self, at: Duration) -> Duration {
        let mean = 1.0 / self.offered.rate(at);
        let gap =
            if self.offered.arrivals.is_random { -mean * (1.0 - self.random.unit_f64()).ln() } else { mean };
        Duration::from_secs_f64(gap)
    }

    /// Makes calls that are due since `first`, and hands them in or refuses them.
    fn hand_in(&mut self, first: Duration, count: usize) -> Result<()> {
        self.total_offered += count as u64;
        if self.waiting + count > self.offered.arrivals.queue_calls {
            self.total_refused += count as u64;
            return Ok(());
        }
        let mut builder = BatchBuilder::with_capacity(count * 64);
        let mut operations = Vec::with_capacity(count);
        for _ in 0..count {
            self.arguments.clear();
            let operation = self.client.next(&mut self.arguments);
            match self.operations[operation].mode {
                Mode::Query => self.queries.due.lock().push_back((operation, self.arguments.clone(), first)),
                mode => {
                    let wants_result = mode == Mode::CallForResult;
                    builder.push(self.procedures[operation].id, &self.arguments, None, wants_result)?;
                    operations.push(operation as u8);
                }
            }
        }
        if !builder.is_empty() {
            let batch = builder.build();
            self.waiting += operations.len();
            self.target.database.submit(batch.clone());
            self.sent.push_back(Sent { batch, sent_ns: self.start_ns + first.as_nanos() as u64, operations });
        }
        Ok(())
    }

    fn reap(&mut self) -> Result<()> {
        while let Some(sent) = self.sent.pop_front_if(|sent| sent.batch.is_complete()) {
            self.waiting -= sent.operations.len();
            sent.record(&self.target.database, self.operations, &mut self.recorder)?;
        }
        Ok(())
    }

    fn sample(&mut self, now: Duration) {
        let last = self.samples.last().map_or(Duration::ZERO, |sample| sample.at);
        if now < last + SAMPLE {
            return;
        }
        let counts = difference(&self.target.database.counts(), &self.before);
        let sum = |of: &dyn Fn(&Sample) -> u64| self.samples.iter().map(of).sum::<u64>();
        let promised = counts.committed + counts.aborted;
        self.samples.push(Sample {
            at: now,
            offered: self.total_offered - sum(&|sample| sample.offered),
            refused: self.total_refused - sum(&|sample| sample.refused),
            promised: promised.saturating_sub(sum(&|sample| sample.promised)),
            done: promised.saturating_sub(counts.backlog).saturating_sub(sum(&|sample| sample.done)),
            backlog: counts.backlog,
        });
    }

    fn finish_samples(&mut self, elapsed: Duration) {
        self.sample(elapsed + SAMPLE);
    }
}
