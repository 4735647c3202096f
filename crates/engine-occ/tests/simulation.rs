//! The optimistic engine under simulated schedules and crashes agrees with the serial oracle.

use fabius_engine_occ::Policy;
use fabius_testing::differential::simulation::{self, Subject};

use std::sync::Arc;

fn subject() -> Subject {
    Subject::new("occ", "silo", |foundation| Arc::new(fabius_engine_occ::new(foundation)))
}

#[test]
fn silo() {
    simulation::run(&subject(), 0..300);
}

/// A call that loses once runs alone.
#[test]
fn one_attempt() {
    let subject = Subject::new("occ", "one-attempt", |foundation| {
        Arc::new(fabius_engine_occ::with_policy(foundation, Policy { attempts_max: 1 }))
    });
    simulation::run(&subject, 300..450);
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    simulation::run_twice(&subject());
}
