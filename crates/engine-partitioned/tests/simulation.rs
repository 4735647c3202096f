//! The partitioned engine under simulated schedules and crashes agrees with the serial oracle.

use fabius_engine_partitioned::{PartitionedEngine, Policy, Scheme, Waiting};
use fabius_testing::differential::simulation::{self, Subject};
use std::sync::Arc;

fn subject(policy: &'static str, scheme: Scheme, partitions: usize) -> Subject {
    with_policy(policy, Policy { scheme, partitions, waiting: Waiting::Lends })
}

fn with_policy(name: &'static str, policy: Policy) -> Subject {
    Subject::new("partitioned", name, move |foundation| Arc::new(PartitionedEngine::new(foundation, policy)))
}

#[test]
fn two_partitions() {
    simulation::run(&subject("two-partitions", Scheme::Partitioned, 2), 0..150);
}

#[test]
fn many_partitions() {
    simulation::run(&subject("many-partitions", Scheme::Partitioned, 24), 150..300);
}

#[test]
fn owners_that_block() {
    let policy = Policy { scheme: Scheme::Partitioned, partitions: 6, waiting: Waiting::Blocks };
    simulation::run(&with_policy("blocks", policy), 500..600);
}

#[test]
fn dora() {
    simulation::run(&subject("dora", Scheme::Dora, 8), 300..500);
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    for (scheme, partitions) in [(Scheme::Partitioned, 3), (Scheme::Dora, 8)] {
        simulation::run_twice(&subject("reproduced", scheme, partitions));
    }
}
