//! The graph engine does what every engine must do.

use fabius_engine_graph::{GraphEngine, Settings};
use fabius_testing::conformance;
use std::sync::Arc;

#[test]
fn the_graph_engine_conforms() {
    conformance::run(|foundation| Arc::new(GraphEngine::new(foundation, Settings::default())));
}

/// Goal: partitions that nobody has a thread for are executed all the same.
#[test]
fn with_more_partitions_than_threads_it_conforms() {
    let settings = Settings { partitions: Some(4), ..Settings::default() };
    conformance::run(|foundation| Arc::new(GraphEngine::new(foundation, settings)));
}
