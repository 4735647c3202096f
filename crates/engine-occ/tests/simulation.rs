//! The optimistic engine under simulated schedules and crashes agrees with the serial oracle.

use fabius_engine::differential::simulation::{self, Subject};

use std::sync::Arc;

fn subject() -> Subject {
    Subject::new("occ", "silo", |foundation| Arc::new(fabius_engine_occ::new(foundation)))
}

#[test]
fn silo() {
    simulation::run(&subject(), 0..300);
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    for seed in 0..3 {
        let first = simulation::run_seed(&subject(), seed);
        assert_eq!(simulation::run_seed(&subject(), seed), first, "seed {seed}");
    }
}
