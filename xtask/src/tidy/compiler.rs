//! What rustfmt and clippy find, as findings.

use super::{Finding, Missing};
use crate::cargo;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

/// The release whose lints are kept. A newer one has lints that nobody has seen yet: they are shown
/// and do not count, so that a new compiler does not break an old commit.
const LINTED_WITH: &str = "0.1.95";

/// What is looked at: everything, and the program without SQL, whose code another feature leaves out.
const SELECTIONS: [&[&str]; 2] =
    [&["--workspace", "--all-targets"], &["--package", "fabius-cli", "--no-default-features"]];

const LINT_ACTION: &str = "cargo clippy --workspace --all-targets explains it";

/// Files that rustfmt would change.
pub fn format(missing: Missing) -> Vec<Finding> {
    if version(&["fmt", "--version"]).is_none() {
        return missing_tool("rustfmt", missing);
    }
    let output = match cargo::command(&["fmt", "--all", "--check"]).output() {
        Ok(output) => output,
        Err(error) => {
            return vec![Finding::new("Cargo.toml", 1, format!("cargo fmt: {error}"), "install Rust")];
        }
    };
    let mut findings = unformatted(&String::from_utf8_lossy(&output.stdout), &cargo::root());
    if findings.is_empty() && !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        findings.push(Finding::new("Cargo.toml", 1, "cargo fmt failed", "see its message above"));
    }
    findings
}

/// One finding per file, at its first difference.
fn unformatted(output: &str, root: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for place in output.lines().filter_map(|line| line.strip_prefix("Diff in ")) {
        let Some((path, line)) = place.trim_end_matches(':').rsplit_once(':') else { continue };
        let path = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path)).display().to_string();
        if findings.iter().all(|known| known.path != path) {
            findings.push(Finding::new(
                &path,
                line.parse().unwrap_or(1),
                "not formatted",
                "run cargo fmt --all",
            ));
        }
    }
    findings
}

/// Warnings and errors of clippy in the whole workspace, tests and examples included.
pub fn lint(missing: Missing) -> Vec<Finding> {
    let Some(found) = version(&["clippy", "--version"]) else { return missing_tool("clippy", missing) };
    let findings: BTreeSet<Finding> =
        SELECTIONS.iter().flat_map(|selection| lint_selection(selection, &found)).collect();
    findings.into_iter().collect()
}

fn lint_selection(selection: &[&str], found: &str) -> Vec<Finding> {
    // Everything is a warning, and every warning a finding: an error would keep crates that use this
    // one from being looked at.
    let flags = ["--keep-going", "--message-format", "short", "--", "-W", "clippy::correctness"];
    let arguments = [&["clippy"], selection, flags.as_slice()].concat();
    eprintln!("== cargo {}", arguments.join(" "));
    let spawned = cargo::command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let (mut child, stderr) = match spawned {
        Ok(mut child) => match child.stderr.take() {
            Some(stderr) => (child, stderr),
            None => return Vec::new(),
        },
        Err(error) => {
            return vec![Finding::new("Cargo.toml", 1, format!("cargo clippy: {error}"), "install Rust")];
        }
    };
    let mut findings = BTreeSet::new();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        match diagnostic(&line) {
            Some(finding) => {
                findings.insert(finding);
            }
            None if is_summary(&line) => {}
            None => eprintln!("{line}"),
        }
    }
    let succeeded = child.wait().is_ok_and(|status| status.success());
    let is_known = found.split_whitespace().nth(1).is_some_and(|found| found == LINTED_WITH);
    if succeeded && !is_known && !findings.is_empty() {
        findings.iter().for_each(|finding| eprintln!("{finding}"));
        eprintln!(
            "tidy: {found} is not the release that lints are kept for ({LINTED_WITH}); they do not count"
        );
        return Vec::new();
    }
    if !succeeded && findings.is_empty() {
        findings.insert(Finding::new("Cargo.toml", 1, "cargo clippy failed", "see its message above"));
    }
    findings.into_iter().collect()
}

/// `path:line:column: warning: text`.
fn diagnostic(line: &str) -> Option<Finding> {
    let mut parts = line.splitn(4, ':');
    let (path, number, _column, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let text = rest.trim_start();
    (text.starts_with("warning") || text.starts_with("error"))
        .then(|| Some(Finding::new(path, number.parse().ok()?, text, LINT_ACTION)))?
}

/// Counts that cargo adds after a crate's diagnostics.
fn is_summary(line: &str) -> bool {
    line.starts_with("warning: `") && line.contains("generated")
}

/// What a cargo command says of its version; `None` if it is not installed.
fn version(arguments: &[&str]) -> Option<String> {
    let output = cargo::command(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn missing_tool(name: &str, missing: Missing) -> Vec<Finding> {
    let what = format!("{name} is not installed");
    let action = format!("rustup component add {name}");
    match missing {
        Missing::Fails => vec![Finding::new("Cargo.toml", 1, what, action)],
        Missing::IsSkipped => {
            eprintln!("tidy: {what}, so it was skipped; {action}");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the compilers' own forms become findings; a file counts once.
    #[test]
    fn output_becomes_findings() {
        let output = "Diff in /r/crates/a/src/lib.rs:12:\n-x\n+y\nDiff in /r/crates/a/src/lib.rs:40:\n\
                      Diff in /r/b.rs:3:\n";
        let found: Vec<String> =
            unformatted(output, Path::new("/r")).iter().map(ToString::to_string).collect();
        let expected = [
            "crates/a/src/lib.rs:12: not formatted; run cargo fmt --all",
            "b.rs:3: not formatted; run cargo fmt --all",
        ];
        assert_eq!(found, expected);
        let line = "crates/a/src/lib.rs:7:9: warning: unused variable: `x`";
        let expected = Finding::new("crates/a/src/lib.rs", 7, "warning: unused variable: `x`", LINT_ACTION);
        assert_eq!(diagnostic(line), Some(expected));
        assert_eq!(diagnostic("    Checking fabius-value v0.1.0 (/r/crates/value)"), None);
        assert!(is_summary("warning: `fabius-log` (lib) generated 2 warnings"));
    }
}
