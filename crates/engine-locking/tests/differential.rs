//! The locking engine agrees with the serial oracle on random programs, in the order of its own log.

use fabius_engine_locking::{LockingEngine, Policy};
use fabius_testing::differential::{self, Size};

use std::sync::Arc;

#[test]
fn the_locking_engine_agrees_with_the_oracle() {
    differential::run(
        &|foundation| Arc::new(LockingEngine::new(foundation, Policy::default())),
        0..60,
        Size::default(),
    );
}
