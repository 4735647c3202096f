//! Measurements from a release build.

use crate::cargo;

const FABIUS: &[&str] = &["run", "--quiet", "--release", "--package", "fabius-cli", "--"];

/// `fabius bench ARGUMENTS`.
pub fn bench(arguments: &[String]) -> bool {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    cargo::run(&[FABIUS, &["bench"], &arguments].concat(), &[])
}

/// `fabius bench figure ID` for each figure; whether all could be run.
pub fn figures(ids: &[String], quick: bool, out: &str) -> bool {
    let options: &[&str] = if quick { &["--quick", "--out", out] } else { &["--out", out] };
    let mut succeeded = true;
    for id in ids {
        succeeded &= cargo::run(&[FABIUS, &["bench", "figure", id], options].concat(), &[]);
    }
    succeeded
}
