//! The splitting engine agrees with the serial oracle on random programs, in the order of its own log.

use fabius_engine_split::Policy;
use fabius_testing::differential::{self, Size};

use std::sync::Arc;

#[test]
fn the_splitting_engine_agrees_with_the_oracle() {
    let policy = Policy { conflicts_min: 1, impact_percent: 0, applied_min: 1, ..Policy::default() };
    let make = move |foundation| -> Arc<dyn fabius_engine::Engine> {
        Arc::new(fabius_engine_split::with_policy(foundation, policy))
    };
    differential::run(&make, 0..60, Size::default());
}
