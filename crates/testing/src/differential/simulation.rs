//! The differential run with nothing left to chance: threads take turns as the seed says, and the power
//! goes as the seed says.
//!
//! ```text
//! story    define | start clients, helper ............ | compare all | reopen crash 1: compare, go on | ...
//! client 0        | calls, waits, reads               |
//! client 1        | calls, waits, defines a program    |
//! helper          | helps, settles                     |
//! flusher  writes and syncs the log .................. | closed
//!                      ^ crash 1      ^ crash 2
//! ```
//!
//! A crash is a copy of the disk as a power loss at that point would leave it (unsynced bytes gone, torn,
//! or garbage), and the list of calls that had been answered. The run goes on untouched, so that one run
//! has several crashes, and none leaves threads halfway. Then, on each copy, another engine opens what
//! is left of the log:
//!
//! - it is the beginning of the log of the run that went on;
//! - every answered call is in it, with the outcome that was answered;
//! - the rows are those of the oracle after exactly these calls: none is half there;
//! - unanswered calls are handed in again under their keys, new ones too, and everything is compared again.
//!
//! Every failure prints the one command that takes the same way again:
//!
//! ```text
//! cargo xtask sim --seed 17 --engine lazy --policy short-chains
//! ```

use crate::differential::history::{History, Seen, texts};
use crate::differential::work::{Submitted, Work};
use crate::differential::{Size, Tally};
use crate::rig::{Logged, Rig};
use fabius_engine::standpoint::Standpoint;
use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_env::schedule::{self, Trace};
use fabius_env::{Random, SimulatedDisk};
use fabius_value::{Datum, Seq, TableId, Value};
use parking_lot::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, RefUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Crashes of one run that are recovered from, at most.
const CRASHES_MAX: usize = 2;
/// Seeds have at least so many calls, in the mean of [`SEEDS_OF_MEAN`]: the seeds of a test run stand for a number of
/// calls, 100,000 for each engine, and are no use if they become smaller.
const CALLS_PER_SEED: usize = 500;
/// Seeds whose mean is told from chance.
const SEEDS_OF_MEAN: usize = 40;
/// At about one point in so many the power goes.
const POINTS_PER_CRASH: u64 = 300;

/// Seeds that show whether an engine is reproduced exactly.
const SEEDS_TWICE: Range<u64> = 0..12;

/// An engine to simulate, and how it is set.
#[derive(Clone)]
pub struct Subject {
    engine: &'static str,
    policy: &'static str,
    make: Arc<dyn Fn(Arc<Foundation>) -> Arc<dyn Engine> + Send + Sync + RefUnwindSafe>,
}

impl Subject {
    /// An engine and a policy, as `cargo xtask sim` names them, and how one is made.
    pub fn new(
        engine: &'static str,
        policy: &'static str,
        make: impl Fn(Arc<Foundation>) -> Arc<dyn Engine> + Send + Sync + RefUnwindSafe + 'static,
    ) -> Subject {
        Subject { engine, policy, make: Arc::new(make) }
    }
}

/// How a simulation went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What became of the calls.
    pub tally: Tally,
    /// Crashes that were recovered from.
    pub crashes: usize,
    /// Deferred calls that were run.
    pub substantiated: u64,
    /// Deferred calls that were dropped.
    pub skipped: u64,
    /// Deltas merged into others.
    pub merged: u64,
    /// The schedule.
    pub trace: Trace,
    /// Hash over logs, outcomes and rows.
    pub outcomes: u64,
}

/// How many calls a seed has here: many, because tables and programs cost more than calls.
#[must_use]
pub fn size() -> Size {
    Size { programs: 4, threads: 3, batches: 16, calls: 24 }
}

/// Simulates one seed after the other. In the environment, `FABIUS_SIM_SEEDS=A..B` gives other seeds, and
/// `FABIUS_SIM_MINUTES=M` ends the run after that time.
///
/// # Panics
/// At the first difference, after printing the programs, and the command that repeats it. If the seeds have hardly
/// any calls.
pub fn run(subject: &Subject, seeds: Range<u64>) -> Report {
    let seeds = std::env::var("FABIUS_SIM_SEEDS").map_or(seeds, |text| parse_seeds(&text));
    let minutes = std::env::var("FABIUS_SIM_MINUTES").ok();
    let time = minutes.map(|text| Duration::from_secs_f64(60.0 * text.parse::<f64>().expect("a number")));
    let is_one = seeds.end - seeds.start == 1;
    let (begun, mut runs, mut all) = (Instant::now(), 0, Report::default());
    for seed in seeds {
        let report = run_seed(subject, seed);
        all.tally.add(report.tally);
        all.crashes += report.crashes;
        all.substantiated += report.substantiated;
        all.skipped += report.skipped;
        all.merged += report.merged;
        all.trace.points += report.trace.points;
        runs += 1;
        if is_one {
            let (schedule, outcomes) = (report.trace.digest, report.outcomes);
            println!("seed {seed}: schedule {schedule:016x}, outcomes {outcomes:016x}");
        }
        if time.is_some_and(|time| begun.elapsed() >= time) {
            break;
        }
    }
    let (Tally { committed, aborted }, seconds) = (all.tally, begun.elapsed().as_secs_f64());
    println!(
        "{}, {}: {runs} seeds, {committed} calls committed, {aborted} aborted, {} substantiated, {} dropped, {} deltas merged, \
         {} crashes, {} points, as on the oracle; {:.0} calls/s",
        subject.engine,
        subject.policy,
        all.substantiated,
        all.skipped,
        all.merged,
        all.crashes,
        all.trace.points,
        (committed + aborted) as f64 / seconds
    );
    let calls = committed + aborted;
    assert!(
        runs < SEEDS_OF_MEAN || calls >= runs * CALLS_PER_SEED,
        "{calls} calls are too few for {runs} seeds"
    );
    all
}

fn parse_seeds(text: &str) -> Range<u64> {
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("FABIUS_SIM_SEEDS is {text:?}, not A..B"))
}

/// Simulates some seeds twice: a seed takes the same way each time, to the same outcomes.
///
/// # Panics
/// As [`run`], and if one does not.
pub fn run_twice(subject: &Subject) {
    for seed in SEEDS_TWICE {
        let first = run_seed(subject, seed);
        assert_eq!(run_seed(subject, seed), first, "seed {seed}");
    }
}

/// Simulates one seed.
///
/// # Panics
/// As [`run`].
pub fn run_seed(subject: &Subject, seed: u64) -> Report {
    let mut random = Random::seeded(seed);
    let work = Arc::new(Work::generate(&mut random, size().programs));
    let story = {
        let (subject, work) = (subject.clone(), work.clone());
        move || {
            Simulation { subject, work, random, outcomes: DefaultHasher::new(), report: Report::default() }
                .tell()
        }
    };
    match std::panic::catch_unwind(AssertUnwindSafe(|| schedule::simulate(seed, story))) {
        Ok((report, trace)) => Report { trace, ..report },
        Err(panic) => {
            eprintln!("{work}");
            let Subject { engine, policy, .. } = subject;
            eprintln!("again: cargo xtask sim --seed {seed} --engine {engine} --policy {policy}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// One seed.
struct Simulation {
    subject: Subject,
    work: Arc<Work>,
    random: Random,
    outcomes: DefaultHasher,
    report: Report,
}

/// What clients have done, for all to see.
#[derive(Default)]
struct Done {
    submitted: Mutex<Vec<Submitted>>,
    seen: Mutex<Vec<Seen>>,
}

/// A power loss.
struct Crash {
    disk: SimulatedDisk,
    /// Batches that had been answered.
    answered: Vec<Submitted>,
    /// Batches that had been handed in, and not answered.
    open: Vec<Submitted>,
}

impl Simulation {
    fn tell(mut self) -> Report {
        let disk = SimulatedDisk::new(self.random.next_u64());
        let done = Arc::new(Done::default());
        let crashes = self.begin_crashing(&disk, &done);
        let rig = Arc::new(Rig::durable(&*self.subject.make, disk));
        self.work.define(&rig);
        self.hand_in(&rig, &done, size(), "first");
        schedule::interrupt_no_more();
        let mut history = History::default();
        self.compare(&rig, &done, &mut history);
        if self.random.chance(1, 4) {
            history.compare_rows(&rig.replayed(&*self.subject.make), "the replaying engine's");
            let checkpoint = rig.checkpoint();
            let from_there = rig.at_checkpoint(&*self.subject.make, &checkpoint);
            history.compare_rows(&from_there, "those of an engine with a checkpoint");
        }
        let counts = rig.engine.counts();
        let Report { substantiated, skipped, merged, .. } = &mut self.report;
        (*substantiated, *skipped, *merged) = (counts.substantiated, counts.skipped, counts.merged);
        let log = rig.logged();
        rig.log.close().expect("a simulated disk takes it");
        drop(rig);
        let crashes = std::mem::take(&mut *crashes.lock());
        for (number, crash) in crashes.into_iter().enumerate() {
            self.recover(crash, &log, &format!("crash {number}"));
        }
        self.report.outcomes = self.outcomes.finish();
        self.report
    }

    /// From now on the power goes at some points.
    fn begin_crashing(&mut self, disk: &SimulatedDisk, done: &Arc<Done>) -> Arc<Mutex<Vec<Crash>>> {
        let crashes = Arc::new(Mutex::new(Vec::new()));
        let (disk, done, list) = (disk.clone(), done.clone(), crashes.clone());
        let mut random = self.random.split();
        let mut count = 0;
        schedule::interrupt(POINTS_PER_CRASH, move || {
            // Every crash of the run is as likely as any other to be one that stays.
            count += 1;
            let mut list = list.lock();
            let place = if list.len() < CRASHES_MAX { list.len() } else { random.index(count) };
            if place >= CRASHES_MAX {
                return;
            }
            let submitted = done.submitted.lock().clone();
            let (answered, open) = submitted.into_iter().partition(|submitted| submitted.batch.is_complete());
            let crash = Crash { disk: disk.crash(random.next_u64()), answered, open };
            match list.get_mut(place) {
                Some(earlier) => *earlier = crash,
                None => list.push(crash),
            }
        });
        crashes
    }

    /// Hands calls in from several threads, while another helps.
    fn hand_in(&mut self, rig: &Arc<Rig>, done: &Arc<Done>, size: Size, id: &str) {
        let stop = Arc::new(AtomicBool::new(false));
        let helper = {
            let (rig, stop, random) = (rig.clone(), stop.clone(), self.random.split());
            schedule::spawn("helper", move || help(&rig, &stop, random))
                .expect("the system gives us a thread")
        };
        let client = |number| {
            let mut client = Client {
                rig: rig.clone(),
                work: self.work.clone(),
                done: done.clone(),
                random: self.random.split(),
                id: format!("{id} {number}"),
                number,
                spare: None,
            };
            schedule::spawn(&format!("client {number}"), move || client.run(size))
        };
        let clients: Vec<_> = (0..size.threads).map(client).collect();
        for client in clients {
            client.expect("the system gives us a thread").join().expect("a panic ends the simulation");
        }
        stop.store(true, Relaxed);
        helper.join().expect("a panic ends the simulation");
    }

    /// Compares everything that clients and snapshots saw, and the rows, with the oracle.
    fn compare(&mut self, rig: &Rig, done: &Done, history: &mut History) {
        let log = rig.logged();
        let submitted = done.submitted.lock();
        history.follow(&log[history.batches()..], std::mem::take(&mut done.seen.lock()));
        history.compare_calls(rig, &submitted);
        history.compare_rows(rig, "the engine's");
        rig.engine.settle();
        history.compare_rows(rig, "the settled engine's");
        self.report.tally.add(Tally::of(&submitted));
        for batch in &log {
            (batch.first_seq.0, &batch.payload).hash(&mut self.outcomes);
        }
        for Submitted { batch, .. } in &*submitted {
            let aborts = |place| batch.outcome(place).err().map(|error| format!("{error:?}"));
            (0..batch.count()).filter_map(aborts).for_each(|error| error.hash(&mut self.outcomes));
        }
        history.rows().for_each(|row| row.hash(&mut self.outcomes));
    }

    /// Opens what a crash has left, compares it, and goes on with it.
    fn recover(&mut self, crash: Crash, log_of_all: &[Logged], id: &str) {
        let rig = Arc::new(Rig::durable(&*self.subject.make, crash.disk));
        let left = rig.logged();
        assert!(
            log_of_all.starts_with(&left),
            "the log after {id} is not the beginning of the log without it"
        );
        let mut history = History::default();
        history.follow(&left, Vec::new());
        assert!(history.has(&rig, &crash.answered), "{id}: answered calls are lost");
        history.compare_rows(&rig, "the reopened engine's");
        self.report.crashes += 1;
        if self.work.is_defined(&rig) {
            let done = Arc::new(Done::default());
            for open in crash.open.into_iter().filter(|open| open.can_be_repeated(&rig)) {
                let again = Submitted::of(&rig, open.calls, Seq::ZERO);
                done.submitted.lock().push(again.clone());
                rig.engine.submit(again.batch);
            }
            self.hand_in(&rig, &done, Size { threads: 2, batches: 4, ..size() }, id);
            done.submitted.lock().iter().for_each(|submitted| rig.wait(&submitted.batch));
            self.compare(&rig, &done, &mut history);
        }
        rig.log.close().expect("a simulated disk takes it");
    }
}

/// One who hands calls in.
struct Client {
    rig: Arc<Rig>,
    work: Arc<Work>,
    done: Arc<Done>,
    random: Random,
    id: String,
    number: usize,
    /// A program that it has defined.
    spare: Option<String>,
}

impl Client {
    fn run(&mut self, size: Size) {
        let mut mine: Vec<Submitted> = Vec::new();
        let mut held = None;
        for number in 0..size.batches {
            self.rig.clock.advance(Duration::from_millis(1));
            let id = format!("{} {number}", self.id);
            let Client { rig, work, random, spare, .. } = self;
            let submitted = work.batch(rig, random, size.calls, &id, spare.as_deref());
            self.done.submitted.lock().push(submitted.clone());
            self.rig.engine.submit(submitted.batch.clone());
            match self.random.below(40) {
                0..12 => self.rig.wait(&submitted.batch),
                12..16 => self.look(),
                16 => self.spare = Some(self.work.define_spare(&self.rig, self.number)),
                17..21 => self.ask(),
                21..24 => self.want(&mine),
                24 | 25 => held = Some(Standpoint::held(&self.rig.foundation)),
                26..28 => held.take().into_iter().for_each(|held| self.look_back(&held)),
                _ => {}
            }
            mine.push(submitted);
        }
        held.into_iter().for_each(|held| self.look_back(&held));
        mine.iter().for_each(|submitted| self.rig.wait(&submitted.batch));
    }

    /// Reads a table on a snapshot.
    fn look(&mut self) {
        let tables: Vec<&str> = self.work.tables().collect();
        let table = tables[self.random.index(tables.len())].to_string();
        let at = Standpoint::newest(&self.rig.foundation);
        let id = at.definitions().catalog.find_table(&table).expect("it was defined");
        self.see(&at, id);
    }

    /// Reads all tables where it has stood for a while.
    fn look_back(&mut self, held: &Standpoint<'_>) {
        held.definitions().catalog.tables().for_each(|(table, _)| self.see(held, table));
    }

    fn see(&self, at: &Standpoint<'_>, table: TableId) {
        let types = at.definitions().table(table).types().clone();
        let mut rows = Vec::new();
        let mut visit = |row: &[Datum<'_>]| {
            rows.push(row.iter().zip(&*types).map(|(value, data_type)| value.to_value(*data_type)).collect());
            Ok(())
        };
        self.rig.engine.rows_at(at, table, &mut visit).expect("rows are read");
        let (seq, table) = (at.seq(), at.definitions().table(table).schema().name.clone());
        self.done.seen.lock().push(Seen { from: seq, until: seq, table, rows: texts(rows) });
    }

    /// Asks for what a call has returned that it has handed in before; whether that is right is seen at the end.
    fn want(&mut self, mine: &[Submitted]) {
        let answered: Vec<&Submitted> =
            mine.iter().filter(|submitted| submitted.batch.is_complete()).collect();
        let Some(submitted) = answered.get(self.random.index(answered.len().max(1))) else { return };
        let place = self.random.index(submitted.calls.len());
        if submitted.calls[place].wants_result {
            // Why it has aborted is compared too.
            _ = self.rig.result(&submitted.batch, place as u32);
        }
    }

    /// Reads a table by a call that has no key, which an engine need not log: the state that it has seen is one of
    /// those between what was promised before and after it.
    fn ask(&mut self) {
        let Some((table, reader)) = self.work.reader(&mut self.random) else { return };
        let mut batch = BatchBuilder::new();
        let call = self.rig.push(&mut batch, &reader, &[], None);
        let batch = batch.build();
        let from = self.rig.foundation.promised();
        self.rig.run(&batch);
        let result = self.rig.result(&batch, call).expect("nothing in it fails");
        let until = self.rig.foundation.promised();
        let [Value::List(rows)] = &result[..] else { panic!("one list, not {result:?}") };
        let seen = Seen { from, until, table: table.to_string(), rows: texts(rows.clone()) };
        self.done.seen.lock().push(seen);
    }
}

/// Lends a thread to the engine; now and then wants everything done.
fn help(rig: &Rig, stop: &AtomicBool, mut random: Random) {
    while !stop.load(Relaxed) {
        if random.chance(1, 200) {
            rig.engine.settle();
        } else if !rig.engine.help() {
            schedule::give_way("help");
        }
    }
}
