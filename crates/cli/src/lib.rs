//! The `fabius` program: reads the command line, and prints what became of it. A library, so that the Python package is
//! the program too (`python -m fabius`).
//!
//! It is *not* responsible for what happens in between: databases are `fabius`'s, measurements
//! `fabius_bench`'s. Exit codes: 0 fine, 1 error, 2 wrong usage.

mod allocator;
mod bench;
mod checkpoint;
#[cfg(feature = "serve")]
mod cluster;
mod demo;
mod explain;
mod flash_sale;
mod interrupt;
mod log;
mod message;
#[cfg(not(feature = "serve"))]
mod not_built;
mod number;
mod progress;
#[cfg(feature = "serve")]
mod serve;

use clap::{Parser, Subcommand};
use fabius::SqlState;
use fabius_bench::interrupt::Interrupt;
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = "Examples:
  fabius demo                                      see what it does, in half a minute
  fabius serve                                     be a PostgreSQL server
  fabius bench run tpcc --engine lazy,2pl          measure TPC-C on two engines
  fabius bench figure lazy-6 --quick --out out     reproduce a figure of a paper
  fabius explain crates/bench/programs/bank.fab    what of a procedure is done now, and what later
  fabius log verify DIR                            check a database's log and checkpoints
  fabius checkpoint DIR                            make the next opening short
  fabius cluster demo                              three nodes, one of which is killed, and one cut off
  fabius cluster init --help                       let three machines hold one database
";

/// Examples of what this program has.
fn examples() -> String {
    let is_there =
        |line: &&str| cfg!(feature = "serve") || !line.contains("serve") && !line.contains("cluster");
    EXAMPLES.split_inclusive('\n').filter(is_there).collect()
}

/// A transactional database for the rows that everyone wants at once.
#[derive(Parser)]
#[command(name = "fabius", version, max_term_width = 100)]
#[command(after_help = examples())]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// A flash sale on a durable database: what laziness buys, and proof that nothing is lost
    Demo(demo::Demo),
    /// Serve a database to PostgreSQL clients
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    /// Measure: list workloads, run one, reproduce a figure
    #[command(subcommand)]
    Bench(bench::Command),
    /// Explain procedures: what is done now, what later, and why
    Explain(explain::Explain),
    /// Look at a database's log: dump it, verify it
    #[command(subcommand)]
    Log(log::Command),
    /// Databases of which several machines hold a copy
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// What was not built
    #[cfg(not(feature = "serve"))]
    #[command(name = "serve", alias = "cluster", hide = true)]
    NotBuilt(not_built::NotBuilt),
    /// Take a checkpoint: what opening replays, and the log to keep, begins there
    Checkpoint(checkpoint::Checkpoint),
}

/// Runs the program with a command line, of which the first word is its name; the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    allocator::keep_memory();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        // Wrong usage; or `--help`, which is none.
        Err(said) => {
            let _ = said.print();
            return u8::try_from(said.exit_code()).unwrap_or(2);
        }
    };
    let interrupt = Interrupt::default();
    // The server has its own way to end; what only reads may end at once.
    match arguments.command {
        #[cfg(feature = "serve")]
        Command::Cluster(cluster::Command::Demo(_)) => {
            interrupt::handle(&interrupt, cluster::demo::INTERRUPTED)
        }
        #[cfg(feature = "serve")]
        Command::Cluster(cluster::Command::Add(_)) => {
            interrupt::handle(&interrupt, cluster::members::INTERRUPTED)
        }
        #[cfg(feature = "serve")]
        Command::Serve(_) | Command::Cluster(_) => {}
        #[cfg(not(feature = "serve"))]
        Command::NotBuilt(_) => {}
        Command::Explain(_) | Command::Log(_) => {}
        Command::Demo(_) => interrupt::handle(&interrupt, demo::INTERRUPTED),
        Command::Bench(_) => interrupt::handle(&interrupt, bench::INTERRUPTED),
        Command::Checkpoint(_) => interrupt::handle(&interrupt, checkpoint::INTERRUPTED),
    }
    let outcome = match arguments.command {
        #[cfg(feature = "serve")]
        Command::Serve(command) => serve::run(&command),
        Command::Demo(command) => demo::run(&command, &interrupt),
        Command::Bench(command) => bench::run(command, &interrupt),
        Command::Explain(command) => explain::run(&command),
        Command::Log(command) => log::run(&command),
        #[cfg(feature = "serve")]
        Command::Cluster(command) => cluster::run(&command, &interrupt),
        #[cfg(not(feature = "serve"))]
        Command::NotBuilt(_) => not_built::refuse(),
        Command::Checkpoint(command) => checkpoint::run(&command, &interrupt),
    };
    match outcome {
        Ok(code) => u8::from(code != ExitCode::SUCCESS),
        Err(error) => {
            message::print(&error);
            // Arguments are checked before anything begins: a wrong one is wrong usage.
            let is_usage = error.state() == SqlState::INVALID_PARAMETER;
            if is_usage { 2 } else { 1 }
        }
    }
}
