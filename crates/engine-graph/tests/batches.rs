//! Batches are as large as the latency target lets them be.

use fabius_engine::BatchBuilder;
use fabius_engine_graph::{GraphEngine, Settings};
use fabius_env::schedule;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;
use std::time::Duration;

const CALLS: i32 = 2000;

/// How many calls each batch takes of those that are handed in together, with a latency target, if time passes wherever
/// another thread could go on.
fn batches(latency_target_us: u64, passes: Duration) -> Vec<u32> {
    let story = move || {
        let settings = Settings { workers_max: 1, latency_target_us, ..Settings::default() };
        let rig = Rig::new(&|foundation| Arc::new(GraphEngine::new(foundation, settings)));
        rig.define("table t { a: int, primary key (a) } procedure add(a: int) { insert t { a: a } }");
        let before = rig.logged().len();
        let clock = rig.clock.clone();
        schedule::interrupt(1, move || clock.advance(passes));
        let mut batch = BatchBuilder::new();
        (0..CALLS).for_each(|a| _ = rig.push(&mut batch, "add", &[Value::Int(a)], None));
        rig.run(&batch.build());
        schedule::interrupt_no_more();
        rig.logged()[before..].iter().map(|batch| batch.count).collect()
    };
    schedule::simulate(1, story).0
}

/// Goal: batches that take longer than the target become smaller, down to the least; batches that do not, do not.
#[test]
fn a_batch_keeps_to_the_latency_target() {
    assert_eq!(batches(10_000, Duration::ZERO), [1024, 976]);
    let slow = Duration::from_micros(50);
    assert_eq!(batches(10_000, slow), [1024, 512, 256, 128, 80]);
    assert_eq!(batches(60_000_000, slow), [1024, 976]);
}
