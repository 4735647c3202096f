//! The differential simulation (`crates/testing/src/differential/simulation.rs`), by seed or for long.

use crate::cargo;
use clap::Args;
use std::ops::Range;

/// Engines that are simulated, and their packages. The tests of each are its policies.
const ENGINES: &[(&str, &str)] = &[
    ("lazy", "fabius-engine-lazy"),
    ("2pl", "fabius-engine-2pl"),
    ("occ", "fabius-engine-occ"),
    ("split", "fabius-engine-split"),
    ("locking", "fabius-engine-locking"),
    ("graph", "fabius-engine-graph"),
    ("partitioned", "fabius-engine-partitioned"),
];

/// The first seed of a run that only its time ends: beyond those of every test run.
const FAR_SEED: u64 = 1_000_000;

/// What is simulated. Without options, what every test run simulates.
#[derive(Args)]
pub struct Options {
    /// The seed that a failure has named
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "minutes"])]
    seed: Option<u64>,
    /// Seeds from A up to, not including, B
    #[arg(long, value_name = "A..B", value_parser = seeds)]
    seeds: Option<Range<u64>>,
    /// Goes on to further seeds for so long, for each policy
    #[arg(long = "for", value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Goes on to further seeds until it is stopped or finds a difference, a minute for each policy in turn
    #[arg(long, conflicts_with_all = ["seed", "seeds", "minutes"])]
    forever: bool,
    /// Clusters of nodes instead, under everything that can go wrong with them
    #[arg(long, conflicts_with_all = ["minutes", "forever", "engine", "policy"])]
    cluster: bool,
    /// This engine alone
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ENGINES.iter().map(|(name, _)| *name)))]
    engine: Option<String>,
    /// This policy alone, as a failure has named it
    #[arg(long)]
    policy: Option<String>,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.filter(|range| !range.is_empty()).ok_or_else(|| "give two numbers, as in 0..100".into())
}

/// Runs the simulation, optimised; whether every engine agreed with the oracle.
pub fn run(options: &Options) -> bool {
    if options.cluster {
        return simulate_clusters(options);
    }
    if options.forever {
        let mut rounds = 1..;
        return rounds.all(|round| simulate(options, Some(FAR_SEED * round..u64::MAX), Some(1.0)));
    }
    let seeds = match (options.seed, options.minutes) {
        (Some(seed), _) => Some(seed..seed + 1),
        (None, Some(_)) => Some(options.seeds.clone().unwrap_or(FAR_SEED..u64::MAX)),
        (None, None) => options.seeds.clone(),
    };
    simulate(options, seeds, options.minutes)
}

/// Runs simulated clusters (`crates/database/tests/cluster_simulation`), optimised; whether all was as it must be.
fn simulate_clusters(options: &Options) -> bool {
    let arguments =
        ["test", "--release", "--package", "fabius", "--test", "cluster_simulation", "--", "--nocapture"];
    let seeds = options.seed.map(|seed| seed..seed + 1).or_else(|| options.seeds.clone());
    let seeds = seeds.map(|seeds| format!("{}..{}", seeds.start, seeds.end));
    let environment: Vec<_> = seeds.iter().map(|seeds| ("FABIUS_CLUSTER_SEEDS", seeds.as_str())).collect();
    cargo::run(&arguments, &environment)
}

/// Runs it once over these seeds, for so long.
fn simulate(options: &Options, seeds: Option<Range<u64>>, minutes: Option<f64>) -> bool {
    let packages =
        ENGINES.iter().filter(|(name, _)| options.engine.as_deref().is_none_or(|only| only == *name));
    let mut arguments = vec!["test", "--release", "--no-fail-fast", "--test", "simulation"];
    arguments.extend(packages.flat_map(|(_, package)| ["--package", package]));
    arguments.extend(["--", "--nocapture"]);
    let test = options.policy.as_ref().map(|policy| policy.replace('-', "_"));
    if let Some(test) = &test {
        arguments.extend(["--exact", test]);
    }
    let seeds = seeds.map(|seeds| format!("{}..{}", seeds.start, seeds.end));
    let minutes = minutes.map(|minutes| minutes.to_string());
    let mut environment = Vec::new();
    environment.extend(seeds.as_deref().map(|seeds| ("FABIUS_SIM_SEEDS", seeds)));
    environment.extend(minutes.as_deref().map(|minutes| ("FABIUS_SIM_MINUTES", minutes)));
    cargo::run(&arguments, &environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ranges of seeds are read as they are written, and nonsense is refused.
    #[test]
    fn ranges_of_seeds() {
        assert_eq!(seeds("3..7"), Ok(3..7));
        assert!(["", "3", "3..", "7..3", "3..3", "a..b"].iter().all(|text| seeds(text).is_err()));
    }
}
