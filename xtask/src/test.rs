//! Everything that has to hold before a change goes in.

use crate::cargo;
use crate::clients;
use crate::tidy::{self, Extent, Missing};

/// Settings of the long campaigns, which their tests read; without them, tests take their short form.
const LONG: &[(&str, &str)] = &[
    ("FABIUS_SEEDS", "100000"), // random programs, disks, fuzzing: agreement.rs, faults.rs, fuzz
    ("FABIUS_STATEMENTS", "1000000"), // statements beside PostgreSQL's: sql_differential.rs
    ("FABIUS_KILLS", "2000"),   // killed processes: crates/database/tests/crash.rs
    ("FABIUS_CLUSTER_SEEDS", "0..10000"), // simulated clusters: cluster_simulation.rs
    ("FABIUS_CLUSTER_KILLS", "500"), // killed nodes of a cluster: crates/cli/tests/server/cluster.rs
    ("FABIUS_PARTS", "300000"), // parts of a statement: crates/cli/tests/server/every_shape.rs
    ("FABIUS_CALLS", "10000000"), // promised calls: crates/engine-lazy/tests/memory.rs
];

/// Tidy, then all tests of the workspace; whether everything held. Ends with what cargo prints.
///
/// Tests run also if tidy has findings: one run tells everything. A compiler without rustfmt or
/// clippy is enough. The long campaigns run optimised.
pub fn run(long: bool) -> bool {
    let clients = clients::folder().display().to_string();
    let mut environment = vec![("FABIUS_CLIENTS", clients.as_str())];
    if clients::fetch() {
        // None may be passed over then.
        environment.push(("FABIUS_CLIENTS_REQUIRED", "1"));
    }
    let is_tidy = tidy::run(Extent::Everything, Missing::IsSkipped);
    let passed = match long {
        false => cargo::run(&["test", "--workspace", "--no-fail-fast"], &environment),
        true => {
            environment.extend(LONG);
            cargo::run(&["test", "--workspace", "--no-fail-fast", "--release"], &environment)
        }
    };
    if passed && !is_tidy {
        eprintln!("\nthe tests passed, but tidy has findings: see above, or run cargo xtask tidy");
    }
    passed && is_tidy
}
