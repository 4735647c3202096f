//! The two-phase locking engine agrees with the serial oracle on random programs, in the order of its own log.

use fabius_testing::differential::{self, Size};

use std::sync::Arc;

#[test]
fn the_two_phase_locking_engine_agrees_with_the_oracle() {
    differential::run(&|foundation| Arc::new(fabius_engine_2pl::new(foundation)), 0..60, Size::default());
}
