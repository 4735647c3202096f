//! Clusters under everything that can go wrong, each from a seed.
//!
//! `FABIUS_SEEDS=10000` runs as many, `FABIUS_SEED=7` one.

use fabius_cluster::simulation::{self, Mutation};
use fabius_engine::{Engine, Foundation};
use fabius_engine_lazy::{LazyEngine, Policy};
use std::collections::BTreeMap;
use std::sync::Arc;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
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
    let seeds = number("FABIUS_MUTATED_SEEDS").unwrap_or(200);
    for mutation in Mutation::ALL {
        let found = (0..seeds).find_map(|seed| {
            let error = simulation::run_mutated(seed, &two_phase_locking, mutation).err()?;
            Some((seed, error))
        });
        let (seed, error) =
            found.unwrap_or_else(|| panic!("{mutation:?} was not found within {seeds} seeds"));
        println!("{mutation:?}: seed {seed}: {error}");
    }
}

/// Goal: nothing that was acknowledged is lost or there twice, in whatever order things go wrong.
#[test]
fn nothing_acknowledged_is_lost() {
    let seeds = match number("FABIUS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FABIUS_SEEDS").unwrap_or(100),
    };
    let mut counts = BTreeMap::new();
    for seed in seeds.clone() {
        let make: fn(Arc<Foundation>) -> Arc<dyn Engine> =
            if seed % 4 == 0 { lazy } else { two_phase_locking };
        match simulation::run(seed, &make) {
            Ok(report) => {
                report.counts.iter().for_each(|(name, count)| *counts.entry(*name).or_insert(0) += count)
            }
            Err(error) => panic!(
                "seed {seed}: {error}\nagain: FABIUS_SEED={seed} cargo test -p fabius --test cluster_simulation"
            ),
        }
    }
    println!("{} seeds: {counts:#?}", seeds.count());
}
