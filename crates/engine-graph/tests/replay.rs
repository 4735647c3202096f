//! Batches of a log, replayed several together by threads whose schedule a seed decides, give what the serial oracle
//! gives.

use fabius_engine::Engine;
use fabius_engine_graph::{GraphEngine, Logged, Settings};
use fabius_env::{Random, schedule};
use fabius_testing::differential::history::History;
use fabius_testing::differential::work::Work;
use fabius_testing::rig::{self, Rig};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};

/// The log of random programs, with definitions between calls.
fn log_of(seed: u64) -> Vec<rig::Logged> {
    let mut random = Random::seeded(seed);
    let work = Work::generate(&mut random, 5);
    let rig = Rig::new(&|foundation| Arc::new(GraphEngine::new(foundation, Settings::default())));
    work.define(&rig);
    let mut spare = None;
    for number in 0..30 {
        if random.chance(1, 10) {
            spare = Some(work.define_spare(&rig, random.index(3)));
        }
        let submitted = work.batch(&rig, &mut random, 12, &format!("{number}"), spare.as_deref());
        rig.run(&submitted.batch);
    }
    rig.logged()
}

/// Replays a log in stretches of some batches, with two threads that help; compares rows with the oracle's.
fn replay(seed: u64, log: &[rig::Logged]) {
    let made = AssertUnwindSafe(OnceLock::new());
    let settings = Settings { workers_max: 3, ..Settings::default() };
    let rig = Arc::new(Rig::new(&|foundation| {
        let made = &made;
        made.get_or_init(|| Arc::new(GraphEngine::new(foundation, settings))).clone()
    }));
    let engine: &Arc<GraphEngine> = made.get().expect("a rig makes its engine");
    let mut random = Random::seeded(seed);
    rig.helped_in_simulation(2, || {
        let mut rest = log;
        while !rest.is_empty() {
            let (stretch, behind) = rest.split_at((1 + random.index(20)).min(rest.len()));
            let batches = stretch.iter().map(|rig::Logged { first_seq, count, payload }| Logged {
                first_seq: *first_seq,
                count: *count,
                payload,
            });
            engine.replay(batches).expect("it is the log of an engine");
            rest = behind;
        }
    });
    let last = log.last().expect("there are calls");
    assert_eq!(engine.foundation().promised().0, last.first_seq.0 + u64::from(last.count) - 1);
    let mut history = History::default();
    history.follow(log, Vec::new());
    history.compare_rows(&rig, "the replaying engine's");
}

/// Goal: whatever the threads do one after the other, the rows are the oracle's.
#[test]
fn any_schedule_gives_the_same() {
    let only = std::env::var("FABIUS_SEED").ok().map(|seed| seed.parse().expect("a number"));
    for seed in (0..60).filter(|seed| only.is_none_or(|only: u64| only == *seed)) {
        println!("FABIUS_SEED={seed} cargo test -p fabius-engine-graph --test replay");
        let log = log_of(seed);
        schedule::simulate(seed, move || replay(seed, &log));
    }
}

/// Goal: a log that does not go on where the engine is is refused, and so is one with other entries than it says.
#[test]
fn what_does_not_come_next_is_refused() {
    let log = log_of(1);
    let engine = || {
        let made = OnceLock::new();
        let made = AssertUnwindSafe(&made);
        Rig::new(&|foundation| {
            made.get_or_init(|| Arc::new(GraphEngine::new(foundation, Settings::default()))).clone()
        });
        made.get().expect("a rig makes its engine").clone()
    };
    let logged =
        |at: usize| Logged { first_seq: log[at].first_seq, count: log[at].count, payload: &log[at].payload };
    let refused =
        |batches: &[Logged<'_>]| engine().replay(batches.iter().copied()).expect_err("it is refused");
    assert_eq!(refused(&[logged(0), logged(2)]).message(), "log goes on at 3, expected 2");
    let more = Logged { count: log[0].count + 1, ..logged(0) };
    assert_eq!(refused(&[more]).message(), "log batch at 1 has 1 entries, expected 2");
}
