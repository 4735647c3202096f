//! The partitioned engine agrees with the serial oracle on random programs, in the order of its own log.

use fabius_engine_partitioned::{PartitionedEngine, Policy, Scheme, Waiting};
use fabius_testing::differential::{self, Size};
use std::sync::Arc;

fn agrees(scheme: Scheme, partitions: usize, waiting: Waiting) {
    let policy = Policy { scheme, partitions, waiting };
    let make = move |foundation| -> Arc<dyn fabius_engine::Engine> {
        Arc::new(PartitionedEngine::new(foundation, policy))
    };
    differential::run(&make, 0..60, Size::default());
}

#[test]
fn partitions_agree_with_the_oracle() {
    agrees(Scheme::Partitioned, 3, Waiting::Lends);
}

#[test]
fn owners_that_block_agree_with_the_oracle() {
    agrees(Scheme::Partitioned, 3, Waiting::Blocks);
}

#[test]
fn dora_agrees_with_the_oracle() {
    agrees(Scheme::Dora, 8, Waiting::Lends);
}
