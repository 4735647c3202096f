//! The front door for development: `cargo xtask tidy | test | clients | sim | fuzz | miri | bench | figures`.
//!
//! Every command is a sequence of ordinary cargo commands, printed before they run, so that each can
//! be repeated alone. This crate uses none of the crates it checks: a broken crate cannot break it.

mod cargo;
mod clients;
mod fuzz;
mod measure;
mod miri;
mod sim;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tidy::{Extent, Missing};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The front door for development")]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check what the compiler does not: floors, module docs, names, sizes, paths in docs, format, lints
    Tidy {
        /// Only the checks that need no compilation (about a second)
        #[arg(long)]
        quick: bool,
    },
    /// Run tidy and every test; on a fresh machine too
    Test {
        /// Run the long campaigns (hours) instead of their short forms
        #[arg(long)]
        long: bool,
    },
    /// Fetch the PostgreSQL clients that tests of the server use; `test` does so itself
    Clients,
    /// Simulate: random programs, calls, schedules of threads and crashes, on every engine and on the oracle
    Sim(sim::Options),
    /// Run one fuzz target of crates/fuzz, or compare SQL with PostgreSQL's: `sql-differential`
    Fuzz(fuzz::Options),
    /// Run the tests of unsafe and lock-free code under Miri; needs it installed, and says so
    Miri {
        /// Schedules to try for tests that depend on them
        #[arg(long, value_name = "N", default_value_t = 16)]
        schedules: u32,
    },
    /// Run `fabius bench` from a release build
    Bench {
        /// Passed on; `list` shows what there is
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
        arguments: Vec<String>,
    },
    /// Reproduce figures of the papers, one after another
    Figures {
        /// Which figures, as `cargo xtask bench list` names them [default: all]
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// Within 60 seconds each, on smaller data
        #[arg(long)]
        quick: bool,
        /// Where tables, plots and measurements go
        #[arg(long, value_name = "DIR", default_value = "target/figures")]
        out: String,
    },
}

fn main() -> ExitCode {
    let succeeded = match CommandLine::parse().command {
        Command::Tidy { quick } => {
            let extent = if quick { Extent::Quick } else { Extent::Everything };
            tidy::run(extent, Missing::Fails)
        }
        Command::Test { long } => test::run(long),
        Command::Clients => clients::fetch(),
        Command::Sim(options) => sim::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Miri { schedules } => miri::miri(schedules),
        Command::Bench { arguments } => measure::bench(&arguments),
        Command::Figures { ids, quick, out } => measure::figures(&ids, quick, &out),
    };
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
