//! The partitioned engine does what every engine must do, with one partition, two and many, and its variant with
//! local locks too.

use fabius_engine::conformance;
use fabius_engine_partitioned::{PartitionedEngine, Policy, Scheme};

use std::sync::Arc;

fn conforms(scheme: Scheme, partitions: usize) {
    conformance::run(move |foundation| {
        Arc::new(PartitionedEngine::new(foundation, Policy { scheme, partitions }))
    });
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
fn dora_conforms() {
    conforms(Scheme::Dora, 16);
}
