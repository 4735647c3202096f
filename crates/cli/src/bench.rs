//! `fabius bench list | run | figure`.

use crate::progress::Line;
use clap::{Args, Subcommand};
use fabius::{Durability, EngineKind, Error, Result, SqlState};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::run::{self, RunOptions, Stage};
use fabius_bench::table::grouped;
use fabius_bench::workload::{WORKLOADS, WorkloadKind};
use fabius_bench::{machine, settings};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// `fabius bench ...`
#[derive(Subcommand)]
pub enum Command {
    /// List workloads with their settings and defaults, and figures
    List,
    /// Run a workload on one engine after another
    Run(Run),
}

/// `fabius bench run ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius bench run hot --set only=hot --durability none
  fabius bench run rmw10 --set distribution=normal --set chain_bound=1000 --set record_bytes=100
  fabius bench run tpcc --engine lazy,2pl --threads 2 --seconds 10 --set warehouses=4 --json
")]
pub struct Run {
    /// The workload; see `fabius bench list`
    workload: String,
    /// Engines, separated by commas: lazy, 2pl
    #[arg(long, value_delimiter = ',', default_value = "lazy", value_name = "ENGINE")]
    engine: Vec<String>,
    /// Threads in all: making calls and doing their work [default: the cores there are]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// How long calls are made
    #[arg(long, default_value_t = 10.0, value_name = "S")]
    seconds: f64,
    /// When a call counts as committed: after the log is synced, or once it is decided
    #[arg(long, default_value = "fsync", value_name = "fsync|none")]
    durability: String,
    /// A setting of the workload (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Print one JSON object per engine
    #[arg(long)]
    json: bool,
    /// Where to make the databases [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs a bench command.
///
/// # Errors
/// Settings that are not allowed; what stopped a run.
pub fn run(command: Command, interrupt: &Interrupt) -> Result<ExitCode> {
    match command {
        Command::List => {
            list();
            Ok(ExitCode::SUCCESS)
        }
        Command::Run(arguments) => run_workload(&arguments, interrupt),
    }
}

fn list() {
    println!("workloads (fabius bench run WORKLOAD --set key=value):");
    for kind in WORKLOADS {
        println!("\n  {}  {}", kind.name, kind.summary);
        settings_lines(kind.settings);
    }
    println!("\n  every workload");
    settings_lines(settings::COMMON);
}

fn settings_lines(list: &[settings::Setting]) {
    for setting in list {
        let assignment = format!("{}={}", setting.name, setting.default);
        println!("    {assignment:<24} {} ({})", setting.help, setting.domain.allowed());
    }
}

/// A number of threads from the command line.
pub fn threads(given: Option<usize>) -> Result<usize> {
    match given.unwrap_or_else(machine::cores) {
        count @ 1..=1024 => Ok(count),
        count => Err(Error::new(SqlState::INVALID_PARAMETER, format!("{count} threads are not possible"))
            .with_hint("threads are 1 to 1024")),
    }
}

fn run_workload(arguments: &Run, interrupt: &Interrupt) -> Result<ExitCode> {
    let kind = WorkloadKind::find(&arguments.workload)?;
    let mut settings = kind.defaults();
    arguments.settings.iter().try_for_each(|assignment| settings.set(assignment))?;
    let engines = arguments.engine.iter().map(|name| name.trim().parse()).collect::<Result<Vec<EngineKind>>>()?;
    let durability: Durability = arguments.durability.parse()?;
    if !(0.01..=86_400.0).contains(&arguments.seconds) {
        return Err(Error::new(SqlState::INVALID_PARAMETER, format!("{} seconds are not possible", arguments.seconds))
            .with_hint("seconds are 0.01 to 86400"));
    }
    let options = RunOptions {
        workload: kind.name,
        engines,
        threads: threads(arguments.threads)?,
        time: Duration::from_secs_f64(arguments.seconds),
        durability,
        settings,
        parent: arguments.dir.clone(),
    };
    let line = Line::new();
    let reports = run::run(&options, interrupt, &mut |stage| line.say(describe(&stage)))?;
    line.clear();
    if arguments.json {
        reports.iter().for_each(|report| println!("{}", report.json()));
    } else {
        println!(
            "{} on {} threads, {} for each engine, durability {}\n",
            kind.name,
            options.threads,
            format_args!("{} s", arguments.seconds),
            durability
        );
        print!("{}", run::table(&reports));
    }
    let is_sound = reports.iter().all(run::Report::is_sound);
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe(stage: &Stage<'_>) -> String {
    match stage {
        Stage::Loading(engine) => format!("{engine}: loading"),
        Stage::Checking(engine) => format!("{engine}: checking"),
        Stage::Running(engine, progress) => {
            let seconds = progress.elapsed.as_secs_f64();
            let counts = &progress.counts;
            let rest = if progress.is_offering { "" } else { ", finishing deferred work" };
            format!(
                "{engine}: {seconds:.1} s, {} promised/s, backlog {}{rest}",
                grouped((counts.committed + counts.aborted) as f64 / seconds.max(0.001)),
                grouped(counts.backlog as f64),
            )
        }
    }
}
