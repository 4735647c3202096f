//! The partitioned engine does what every engine must do, with one partition, two and many, and its variant with
//! local locks too.

use fabius_engine_partitioned::{PartitionedEngine, Policy, Scheme, Waiting};
use fabius_testing::conformance;
use std::sync::Arc;

fn conforms(scheme: Scheme, partitions: usize) {
    conforms_to(Policy { scheme, partitions, waiting: Waiting::Lends });
}

fn conforms_to(policy: Policy) {
    conformance::run(move |foundation| Arc::new(PartitionedEngine::new(foundation, policy)));
}

#[test]
fn one_partition_conforms() {
    conforms(Scheme::Partitioned, 1);
}

#[test]
fn two_partitions_conform() {
    conforms(Scheme::Partitioned, 2);
}

#[test]
fn many_partitions_conform() {
    conforms(Scheme::Partitioned, 24);
}

#[test]
fn owners_that_block_conform() {
    conforms_to(Policy { scheme: Scheme::Partitioned, partitions: 4, waiting: Waiting::Blocks });
}

#[test]
fn dora_conforms() {
    conforms(Scheme::Dora, 16);
}
