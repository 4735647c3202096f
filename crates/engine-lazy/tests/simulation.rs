//! The lazy engine under simulated schedules and crashes agrees with the serial oracle, whenever it does
//! the deferred work. Each test is a policy, as `cargo xtask sim --policy` names it.

use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_testing::differential::simulation::{self, Subject};
use std::sync::Arc;

/// Seeds of each policy.
const SEEDS: u64 = 100;

fn subject(name: &'static str, policy: Policy) -> Subject {
    Subject::new("lazy", name, move |foundation| Arc::new(LazyEngine::new(foundation, policy)))
}

fn run(name: &'static str, policy: Policy) {
    let report = simulation::run(&subject(name, policy), 0..SEEDS);
    let is_usual = std::env::var_os("FABIUS_SIM_SEEDS").is_none();
    let is_telling = report.substantiated > 1000 && report.skipped > 20 && report.merged > 20;
    assert!(is_telling || !is_usual, "hardly anything was deferred, dropped or merged: {report:?}");
}

#[test]
fn idle() {
    run("idle", Policy::default());
}

/// Nothing is done before somebody asks.
#[test]
fn on_demand() {
    run("on-demand", Policy { chain_bound: u32::MAX, idle: false, ..Policy::default() });
}

#[test]
fn short_chains() {
    run("short-chains", Policy { chain_bound: 2, ..Policy::default() });
}

#[test]
fn eager() {
    run("eager", Policy { chain_bound: 1, idle: false, ..Policy::default() });
}

/// Callers always have to make room first.
#[test]
fn no_memory() {
    run("no-memory", Policy { memory_bytes: 0, idle: false, ..Policy::default() });
}

#[test]
fn short_backlog() {
    run("short-backlog", Policy { backlog_calls: 10, idle: false, ..Policy::default() });
}

/// Goal: a seed takes the same way each time, to the same outcomes.
#[test]
fn a_seed_is_reproduced_exactly() {
    simulation::run_twice(&subject("idle", Policy::default()));
}
