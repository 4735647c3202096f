//! Clusters under everything that can go wrong, each from a seed.
//!
//! `cargo xtask sim --cluster --seeds 0..10000` runs as many, `--seed 7` one.

mod simulation;

use fabius_engine::{Engine, Foundation};
use fabius_engine_lazy::{LazyEngine, Policy};
use simulation::{Mutation, RARE};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The seeds to run: `FABIUS_CLUSTER_SEEDS=A..B`, or as many as every test run has.
fn seeds(usual: u64) -> Range<u64> {
    let Ok(text) = std::env::var("FABIUS_CLUSTER_SEEDS") else { return 0..usual };
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("FABIUS_CLUSTER_SEEDS is {text:?}, not A..B"))
}

fn two_phase_locking(foundation: Arc<Foundation>) -> Arc<dyn Engine> {
    Arc::new(fabius_engine_2pl::new(foundation))
}

fn lazy(foundation: Arc<Foundation>) -> Arc<dyn Engine> {
    Arc::new(LazyEngine::new(foundation, Policy::default()))
}

/// Goal: a rule of agreement that is broken is noticed, within so many seeds.
#[test]
fn broken_rules_are_found() {
    let seeds = 1_000;
    for mutation in Mutation::ALL {
        let found = (0..seeds).find_map(|seed| {
            let error = simulation::run_mutated(seed, &two_phase_locking, mutation).err()?;
            // Who misses a call tells clients something else sooner or later; digests have to tell, too.
            let is_told = mutation != Mutation::CallLeftOut || error.contains("has computed something else");
            is_told.then_some((seed, error))
        });
        let (seed, error) =
            found.unwrap_or_else(|| panic!("{mutation:?} was not found within {seeds} seeds"));
        println!("{mutation:?}: seed {seed}: {error}");
    }
}

/// Goal: a damaged node comes into its seat also where it does not know who leads, which one seed in thousands reaches.
#[test]
fn a_successor_is_told_on_to_the_leader() {
    simulation::run(4629, &two_phase_locking).unwrap_or_else(|error| panic!("seed 4629: {error}"));
}

/// Goal: a seed says all that happens, so that what fails fails again.
#[test]
fn a_seed_is_one_history() {
    for seed in 0..5 {
        let history = || simulation::run(seed, &two_phase_locking).expect("it is well").history;
        assert_eq!(history(), history(), "seed {seed}");
    }
}

/// Goal: nothing that was acknowledged is lost or there twice, in whatever order things go wrong.
#[test]
fn nothing_acknowledged_is_lost() {
    let seeds = seeds(100);
    let mut counts = BTreeMap::new();
    for seed in seeds.clone() {
        let make: fn(Arc<Foundation>) -> Arc<dyn Engine> =
            if seed % 4 == 0 { lazy } else { two_phase_locking };
        match simulation::run(seed, &make) {
            Ok(report) => {
                report.counts.iter().for_each(|(name, count)| *counts.entry(*name).or_insert(0) += count)
            }
            Err(error) => panic!("seed {seed}: {error}\nagain: cargo xtask sim --cluster --seed {seed}"),
        }
    }
    let unreached: Vec<_> =
        RARE.iter().filter(|name| counts.get(*name).is_none_or(|count| *count == 0)).collect();
    let count = seeds.count();
    println!("{count} seeds: {counts:#?}\nnever happened: {unreached:?}");
    assert!(count < 1_000 || unreached.is_empty(), "so many seeds should reach everything: {unreached:?}");
}
