//! Fuzzing: targets of `crates/fuzz` under libFuzzer, and SQL beside PostgreSQL.

use crate::cargo;
use clap::Args;
use std::process::Command;

/// The target that needs no libFuzzer: `crates/fuzz/src/sql_differential/mod.rs`.
const DIFFERENTIAL: &str = "sql-differential";

/// What is fuzzed. Targets of libFuzzer need nightly Rust and cargo-fuzz, and say so.
#[derive(Args)]
pub struct Options {
    /// The target's name; a wrong one is answered with all there are
    #[arg(value_name = "TARGET")]
    target: String,
    /// How long; for targets of libFuzzer
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// sql-differential: the seed of the first case
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// sql-differential: ends with so many cases
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// sql-differential: ends with so many statements; 5,000 without this and --cases
    #[arg(long, value_name = "N")]
    statements: Option<u64>,
    /// sql-differential: cases at a time
    #[arg(long, value_name = "N")]
    jobs: Option<u64>,
    /// sql-differential: without PostgreSQL; programs are compared with queries
    #[arg(long)]
    alone: bool,
    /// sql-differential: optimised, which takes long to compile and less to run
    #[arg(long)]
    release: bool,
    /// sql-differential: where scripts of differences go
    #[arg(long, value_name = "DIR")]
    out: Option<String>,
}

/// Runs what is asked for; whether nothing was found wrong.
pub fn run(options: &Options) -> bool {
    match options.target.as_str() {
        DIFFERENTIAL => differential(options),
        target => fuzz(target, options.seconds),
    }
}

/// Compares statements with PostgreSQL's answers.
fn differential(options: &Options) -> bool {
    let numbers = [
        ("--seed", options.seed),
        ("--cases", options.cases),
        ("--statements", options.statements),
        ("--jobs", options.jobs),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name, number?.to_string())));
    let mut given: Vec<String> = numbers.flat_map(|(name, number)| [name.to_string(), number]).collect();
    given.extend(options.alone.then(|| "--alone".to_string()));
    given.extend(options.out.iter().flat_map(|folder| ["--out".to_string(), folder.clone()]));
    let mut arguments = vec!["run", "--package", "fabius-fuzz"];
    arguments.extend(options.release.then_some("--release"));
    arguments.extend(["--", DIFFERENTIAL]);
    arguments.extend(given.iter().map(String::as_str));
    cargo::run(&arguments, &[])
}

/// Where inputs are kept, one folder per target; not part of the repository.
const CORPUS: &str = "fuzz/corpus";

/// Runs one target for so many seconds, from its seeds and what earlier runs have found; whether nothing
/// was found wrong.
fn fuzz(target: &str, seconds: u64) -> bool {
    if !has("rustup", &["run", "nightly", "cargo", "--version"]) {
        return missing("a nightly compiler", "rustup toolchain install nightly");
    }
    if !has("rustup", &["run", "nightly", "cargo", "fuzz", "--version"]) {
        return missing("cargo-fuzz", "cargo install cargo-fuzz --locked");
    }
    let corpus = format!("{CORPUS}/{target}");
    if !cargo::run(&["run", "--quiet", "--package", "fabius-fuzz", "--", "seeds", target, &corpus], &[]) {
        return false;
    }
    let limit = format!("-max_total_time={seconds}");
    let arguments = ["run", "nightly", "cargo", "fuzz", "run", target, "--", &limit, "-timeout=20"];
    eprintln!("\n== rustup {}", arguments.join(" "));
    let status = Command::new("rustup").args(arguments).current_dir(cargo::root()).status();
    let succeeded = status.is_ok_and(|status| status.success());
    if !succeeded {
        eprintln!(
            "\nthe input is in fuzz/artifacts/{target}; with an ordinary build: \
             cargo run --package fabius-fuzz -- run {target} FILE"
        );
    }
    succeeded
}

fn has(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn missing(what: &str, action: &str) -> bool {
    eprintln!(
        "fuzzing needs {what}: {action}\n\
         without it, the targets run on random inputs: FABIUS_SEEDS=100000 cargo test --package fabius-fuzz"
    );
    false
}
