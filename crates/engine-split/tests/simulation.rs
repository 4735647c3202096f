//! The splitting engine under simulated schedules and crashes agrees with the serial oracle.

use fabius_engine_split::Policy;
use fabius_testing::differential::simulation::{self, Subject};

use std::sync::Arc;

fn subject() -> Subject {
    Subject::new("split", "doppel", |foundation| Arc::new(fabius_engine_split::new(foundation)))
}

/// Splits whatever two calls conflict on, and stays in a phase as long as it can.
fn splitting_soon() -> Subject {
    let policy = Policy { conflicts_min: 1, impact_percent: 0, applied_min: 1, ..Policy::default() };
    Subject::new("split", "splits-soon", move |foundation| {
        Arc::new(fabius_engine_split::with_policy(foundation, policy))
    })
}

/// Likewise, but reconciles as soon as a call is stashed.
fn joining_soon() -> Subject {
    let policy = Policy { stashed_max: 0, ..Policy::default() };
    let policy = Policy { conflicts_min: 1, impact_percent: 0, applied_min: 1, ..policy };
    Subject::new("split", "joins-soon", move |foundation| {
        Arc::new(fabius_engine_split::with_policy(foundation, policy))
    })
}

#[test]
fn doppel() {
    simulation::run(&subject(), 0..40);
}

#[test]
fn splits_soon() {
    simulation::run(&splitting_soon(), 1_000..1_150);
}

#[test]
fn joins_soon() {
    simulation::run(&joining_soon(), 2_000..2_150);
}

/// Likewise, and a call that loses once runs alone.
#[test]
fn one_attempt() {
    let policy = Policy { attempts_max: 1, applied_min: 1, ..Policy::default() };
    let policy = Policy { conflicts_min: 1, impact_percent: 0, ..policy };
    let subject = Subject::new("split", "one-attempt", move |foundation| {
        Arc::new(fabius_engine_split::with_policy(foundation, policy))
    });
    simulation::run(&subject, 3_000..3_100);
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    simulation::run_twice(&splitting_soon());
}
