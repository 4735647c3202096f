//! The graph engine agrees with the serial oracle on random programs, in the order of its own log.

use fabius_engine_graph::{GraphEngine, Settings};
use fabius_testing::differential::{self, Size};
use std::sync::Arc;

#[test]
fn the_graph_engine_agrees_with_the_oracle() {
    let settings = Settings { partitions: Some(3), ..Settings::default() };
    differential::run(&|foundation| Arc::new(GraphEngine::new(foundation, settings)), 0..60, Size::default());
}
