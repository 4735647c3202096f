//! Random programs on an engine and on the oracle, side by side.
//!
//! ```text
//! seed --> schema, rows, programs --> threads hand in random calls --> outcomes, results, rows
//!                                             |                                  must be equal
//!                                        the engine's log -- in its order --> the oracle's
//! ```
//!
//! Whatever order the engine took, it said so in its log. The oracle runs the log's calls one after the
//! other, and every outcome, every result and every row must be the same; so must the rows of a second
//! engine that replays the log.
//!
//! | module | concept |
//! |---|---|
//! | [`work`] | what is handed in |
//! | [`history`] | what the oracle makes of a log, and whether an engine agrees |
//! | [`simulation`] | everything from the seed, the schedule of threads and crashes too |
//!
//! [`run`] lets real threads run as they will. That finds races that no schedule has a point for, but a
//! failure comes again by chance only; [`simulation`] takes the same way each time.

pub mod history;
pub mod simulation;
pub mod work;

use crate::rig::{Make, Rig};
use fabius_env::Random;
use history::History;
use std::time::Duration;
use work::{Submitted, Work};

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Different programs.
    pub programs: usize,
    /// Threads that hand in calls; one more helps.
    pub threads: usize,
    /// Batches of each thread.
    pub batches: usize,
    /// Calls of a batch, at most.
    pub calls: usize,
}

impl Default for Size {
    fn default() -> Size {
        Size { programs: 5, threads: 3, batches: 8, calls: 12 }
    }
}

/// Runs one seed after the other on free threads; with `FABIUS_SEED` in the environment, that one alone.
///
/// # Panics
/// At the first difference, after printing the seed and the programs.
pub fn run(make: Make<'_>, seeds: std::ops::Range<u64>, size: Size) {
    let only = std::env::var("FABIUS_SEED").ok().map(|seed| seed.parse().expect("FABIUS_SEED is a number"));
    let mut tally = Tally::default();
    for seed in seeds.filter(|seed| only.is_none_or(|only: u64| only == *seed)) {
        let mut random = Random::seeded(seed);
        let work = Work::generate(&mut random, size.programs);
        let run = std::panic::AssertUnwindSafe(|| run_work(make, &work, random, size));
        match std::panic::catch_unwind(run) {
            Ok(calls) => tally.add(calls),
            Err(panic) => {
                eprintln!("seed {seed}, on threads that run freely\n{work}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{} calls committed, {} aborted, as on the oracle", tally.committed, tally.aborted);
}

/// What became of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls that committed.
    pub committed: usize,
    /// Calls that aborted.
    pub aborted: usize,
}

impl Tally {
    fn of(submitted: &[Submitted]) -> Tally {
        let mut tally = Tally::default();
        for Submitted { batch, .. } in submitted {
            let committed = (0..batch.count()).filter(|&place| batch.outcome(place).is_ok()).count();
            tally.committed += committed;
            tally.aborted += batch.count() as usize - committed;
        }
        tally
    }

    fn add(&mut self, more: Tally) {
        self.committed += more.committed;
        self.aborted += more.aborted;
    }
}

fn run_work(make: Make<'_>, work: &Work, random: Random, size: Size) -> Tally {
    let rig = Rig::new(make);
    work.define(&rig);
    let submitted = submit(&rig, work, random, size);
    let mut history = History::default();
    history.follow(&rig.logged(), Vec::new());
    history.compare_calls(&rig, &submitted);
    history.compare_rows(&rig, "the engine's");
    rig.engine.settle();
    history.compare_rows(&rig, "the settled engine's");
    history.compare_rows(&rig.replayed(make), "the replaying engine's");
    let checkpoint = rig.checkpoint();
    history.compare_rows(&rig.at_checkpoint(make, &checkpoint), "those of an engine with a checkpoint");
    Tally::of(&submitted)
}

/// Hands calls in from several threads.
fn submit(rig: &Rig, work: &Work, mut random: Random, size: Size) -> Vec<Submitted> {
    let all = parking_lot::Mutex::new(Vec::new());
    rig.helped(1, || {
        std::thread::scope(|scope| {
            for thread in 0..size.threads {
                let mut random = random.split();
                let all = &all;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for number in 0..size.batches {
                        rig.clock.advance(Duration::from_millis(1));
                        let id = format!("{thread} {number}");
                        let submitted = work.batch(rig, &mut random, size.calls, &id, None);
                        rig.engine.submit(submitted.batch.clone());
                        if random.chance(1, 2) {
                            rig.wait(&submitted.batch);
                        }
                        mine.push(submitted);
                    }
                    mine.iter().for_each(|submitted: &Submitted| rig.wait(&submitted.batch));
                    all.lock().extend(mine);
                });
            }
        });
    });
    all.into_inner()
}
