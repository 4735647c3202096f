//! The `fabius` program: reads the command line, and prints what became of it.
//!
//! It is *not* responsible for what happens in between: databases are `fabius`'s, measurements
//! `fabius_bench`'s. Exit codes: 0 fine, 1 error, 2 wrong usage.

mod bench;
mod message;
mod progress;

use clap::{Parser, Subcommand};
use fabius_bench::interrupt::Interrupt;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A transactional database for the rows that everyone wants at once.
#[derive(Parser)]
#[command(name = "fabius", version, max_term_width = 100)]
#[command(after_help = "Examples:
  fabius demo                                      see what it does, in half a minute
  fabius bench run tpcc --engine lazy,2pl          measure TPC-C on two engines
  fabius bench figure lazy-6 --quick --out out     reproduce a figure of a paper
")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure: list workloads, run one, reproduce a figure
    #[command(subcommand)]
    Bench(bench::Command),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let interrupt = Interrupt::default();
    let raised = interrupt.clone();
    if let Err(error) = ctrlc::set_handler(move || raised.raise()) {
        eprintln!("warning: Ctrl-C ends the program at once: {error}");
    }
    let outcome = match arguments.command {
        Command::Bench(command) => bench::run(command, &interrupt),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            message::print(&error);
            ExitCode::FAILURE
        }
    }
}
