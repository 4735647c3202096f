//! The graph engine under simulated schedules and crashes agrees with the serial oracle.

use fabius_engine_graph::{GraphEngine, Settings};
use fabius_testing::differential::simulation::{self, Subject};
use std::sync::Arc;

fn subject(policy: &'static str, partitions: Option<usize>) -> Subject {
    let settings = Settings { partitions, workers_max: 3, ..Settings::default() };
    Subject::new("graph", policy, move |foundation| Arc::new(GraphEngine::new(foundation, settings)))
}

/// Goal: as many partitions as threads.
#[test]
fn adaptive() {
    simulation::run(&subject("adaptive", None), 0..150);
}

/// Goal: calls go from partition to partition, whoever lends a thread.
#[test]
fn three_partitions() {
    simulation::run(&subject("three-partitions", Some(3)), 150..300);
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    simulation::run_twice(&subject("three-partitions", Some(3)));
}
