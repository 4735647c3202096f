//! Measurements from a release build.

use crate::cargo;

const FABIUS: &[&str] = &["run", "--quiet", "--release", "--package", "fabius-cli", "--"];

/// `fabius bench ARGUMENTS`.
pub fn bench(arguments: &[String]) -> bool {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    cargo::run(&[FABIUS, &["bench"], &arguments].concat(), &[])
}

/// `fabius bench figures`, of these or of all; whether all could be made.
pub fn figures(ids: &[String], quick: bool, out: &str) -> bool {
    let only = ids.join(",");
    let mut arguments = vec!["bench", "figures", "--out", out];
    arguments.extend(quick.then_some("--quick"));
    if !ids.is_empty() {
        arguments.extend(["--only", &only]);
    }
    cargo::run(&[FABIUS, &arguments].concat(), &[])
}
