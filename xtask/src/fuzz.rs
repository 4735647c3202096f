//! Fuzzing: targets of `crates/fuzz` under libFuzzer.

use crate::cargo;
use std::process::Command;

/// Where inputs are kept, one folder per target; not part of the repository.
const CORPUS: &str = "fuzz/corpus";

/// Runs one target for so many seconds, from its seeds and what earlier runs have found; whether nothing
/// was found wrong.
pub fn fuzz(target: &str, seconds: u64) -> bool {
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
