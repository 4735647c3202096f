//! Miri: tests of unsafe and of lock-free code, interpreted under a model of memory that finds what is
//! undefined, and with schedules and stale values that a machine rarely shows.

use crate::cargo;
use std::process::Command;

/// Packages, the tests of them that Miri can run in minutes, and whether these depend on schedules.
const SUITES: &[Suite] = &[
    Suite { package: "fabius-storage", arguments: &["--lib", "--", "--skip", "agree"], schedules: false },
    Suite { package: "fabius-storage", arguments: &["--lib", "--", "agree"], schedules: false },
    Suite { package: "fabius-storage", arguments: &["--lib", "--", "snapshot"], schedules: true },
    Suite { package: "fabius-storage", arguments: &["--test", "chains"], schedules: true },
    Suite { package: "fabius-engine", arguments: &["--lib", "--", "entry", "batch"], schedules: true },
    Suite { package: "fabius-engine-2pl", arguments: &["--lib", "--", "lock", "wait"], schedules: true },
    Suite { package: "fabius-program", arguments: &["--lib", "--", "arguments"], schedules: false },
];

struct Suite {
    package: &'static str,
    arguments: &'static [&'static str],
    schedules: bool,
}

/// Tree borrows: the epoch collector that storage stands on does not keep to stacked ones, nor do slots
/// behind a version's header. Addresses are kept in words, so provenance is permissive. What the collector
/// has not freed at the end is no leak.
const FLAGS: &str = "-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks \
                     -Zmiri-disable-isolation";

/// Runs the suites, those that depend on schedules under so many; whether all passed.
pub fn miri(schedules: u32) -> bool {
    let found = Command::new("rustup").args(["run", "nightly", "cargo", "miri", "--version"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("Miri is not installed: rustup component add miri rust-src --toolchain nightly");
        return false;
    }
    let mut passed = true;
    for suite in SUITES {
        let flags = match suite.schedules {
            true => format!("{FLAGS} -Zmiri-many-seeds=0..{schedules}"),
            false => FLAGS.into(),
        };
        let arguments =
            [&["run", "nightly", "cargo", "miri", "test", "--package", suite.package], suite.arguments];
        let arguments = arguments.concat();
        eprintln!("\n== MIRIFLAGS=\"{flags}\" rustup {}", arguments.join(" "));
        let mut command = Command::new("rustup");
        command.args(arguments).current_dir(cargo::root()).env("MIRIFLAGS", flags);
        passed &= command.status().is_ok_and(|status| status.success());
    }
    passed
}
