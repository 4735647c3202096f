//! Predictions that become old before they are used: time passes between a call's reconnaissance and its place in the
//! order, and others change what decides about its locks meanwhile.

use fabius_engine::{BatchBuilder, Foundation};
use fabius_engine_locking::policy::LockManager;
use fabius_engine_locking::{LockingEngine, Policy};
use fabius_env::{Random, schedule};
use fabius_testing::rig::{Make, Rig};
use fabius_value::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const PROGRAMS: &str = "
    table names { id: int, target: int, primary key (id) }
    table targets { id: int, count: bigint, primary key (id) }
    procedure open(id: int) {
        insert names { id: id, target: id }
        insert targets { id: id, count: 0 }
    }
    procedure rename(id: int, target: int) { names[id].target = target }
    procedure follow(id: int) -> int {
        let target = names[id].target
        targets[target].count = targets[target].count * 3 + id
        return target
    }
    procedure fold() { for target in targets { target.count = target.count % 1000 } }
";
const ROWS: u64 = 6;
/// What passes between reconnaissance and place, and what passes while nobody has anything to do.
const DELAY: Duration = Duration::from_micros(500);
const IDLE: Duration = Duration::from_micros(100);

fn client(rig: &Rig, mut random: Random) {
    for _ in 0..4 {
        let mut batch = BatchBuilder::new();
        for _ in 0..12 {
            let mut id = || Value::Int(random.below(ROWS) as i32);
            let (name, values) = match id() {
                Value::Int(0 | 1) => ("rename", vec![id(), id()]),
                Value::Int(2) => ("fold", vec![]),
                _ => ("follow", vec![id()]),
            };
            rig.push(&mut batch, name, &values, None);
        }
        let batch = batch.build();
        rig.run(&batch);
        assert!((0..batch.count()).all(|call| batch.outcome(call).is_ok()));
    }
}

/// Goal: whatever becomes old, and however often it is predicted again, the rows are those of the log's order.
#[test]
fn old_predictions_come_to_nothing() {
    let simulated = |seed, restarts_max, lock_manager| {
        let story = move || {
            let policy = Policy { lock_manager, restarts_max, delay: DELAY };
            let make: Make<'_> =
                &|foundation: Arc<Foundation>| Arc::new(LockingEngine::new(foundation, policy));
            let rig = Arc::new(Rig::new(make));
            rig.define(PROGRAMS);
            (0..ROWS).for_each(|id| drop(rig.call("open", &[Value::Int(id as i32)]).expect("it is new")));
            let stop = Arc::new(AtomicBool::new(false));
            let helper = {
                let (rig, stop) = (rig.clone(), stop.clone());
                let work = move || {
                    while !stop.load(Relaxed) {
                        if !rig.engine.help() {
                            rig.clock.advance(IDLE);
                            schedule::give_way("help");
                        }
                    }
                };
                schedule::spawn("helper", work).expect("the system gives us a thread")
            };
            let client = |number: u64| {
                let rig = rig.clone();
                let work = move || client(&rig, Random::seeded(seed * 3 + number));
                schedule::spawn("client", work).expect("the system gives us a thread")
            };
            let clients: Vec<_> = (0..3).map(client).collect();
            clients.into_iter().for_each(|client| client.join().expect("a panic ends the simulation"));
            stop.store(true, Relaxed);
            helper.join().expect("a panic ends the simulation");
            assert_eq!(rig.replayed(make).dump(), rig.dump(), "seed {seed}");
            rig.foundation.counters.retries.get()
        };
        schedule::simulate(seed, story).0
    };
    let mut restarts = 0;
    for seed in 0..60 {
        let lock_manager = if seed % 2 == 0 { LockManager::Queues } else { LockManager::Counters };
        restarts += simulated(seed, [0, 3, 100][seed as usize % 3], lock_manager);
    }
    assert!(restarts > 100, "{restarts} restarts");
}
