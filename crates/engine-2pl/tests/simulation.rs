//! The two-phase locking engine under simulated schedules and crashes agrees with the serial oracle.

use fabius_testing::differential::simulation::{self, Subject};

use std::sync::Arc;

fn subject() -> Subject {
    Subject::new("2pl", "wound-wait", |foundation| Arc::new(fabius_engine_2pl::new(foundation)))
}

#[test]
fn wound_wait() {
    simulation::run(&subject(), 0..300);
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    simulation::run_twice(&subject());
}
