//! Everything that has to hold before a change goes in.

use crate::cargo;
use crate::tidy::{self, Missing};

/// Tidy, then all tests of the workspace; whether everything held. Ends with what cargo prints.
///
/// Tests run also if tidy has findings: one run tells everything. A compiler without rustfmt or
/// clippy is enough.
pub fn run(long: bool) -> bool {
    let is_tidy = tidy::run(false, Missing::IsSkipped);
    let environment: &[(&str, &str)] = if long { &[("FABIUS_LONG", "1")] } else { &[] };
    let passed = cargo::run(&["test", "--workspace"], environment);
    if passed && !is_tidy {
        eprintln!("\nthe tests passed, but tidy has findings: see above, or run cargo xtask tidy");
    }
    passed && is_tidy
}
