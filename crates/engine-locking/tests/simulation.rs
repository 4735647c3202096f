//! The locking engine under simulated schedules and crashes agrees with the serial oracle. Each test is a
//! policy, as `cargo xtask sim --policy` names it.

use fabius_engine_locking::policy::LockManager;
use fabius_engine_locking::{LockingEngine, Policy};
use fabius_testing::differential::simulation::{self, Subject};
use std::sync::Arc;

/// Seeds of each policy.
const SEEDS: u64 = 80;

fn subject(name: &'static str, policy: Policy) -> Subject {
    Subject::new("locking", name, move |foundation| Arc::new(LockingEngine::new(foundation, policy)))
}

fn run(name: &'static str, policy: Policy) {
    simulation::run(&subject(name, policy), 0..SEEDS);
}

#[test]
fn queues() {
    run("queues", Policy::default());
}

#[test]
fn counters() {
    run("counters", Policy { lock_manager: LockManager::Counters, ..Policy::default() });
}

/// A prediction that is wrong is the only one.
#[test]
fn no_restarts() {
    run("no-restarts", Policy { restarts_max: 0, ..Policy::default() });
}

/// A prediction may be wrong many times. What passes before it is used is in `delays.rs`.
#[test]
fn many_restarts() {
    run("many-restarts", Policy { restarts_max: 100, ..Policy::default() });
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    simulation::run_twice(&subject("queues", Policy::default()));
}
