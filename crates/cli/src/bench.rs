//! `fabius bench list | run | compare | figure | figures | peers`.

use crate::allocator;
use crate::message::{out, tell};
use crate::number::{Size, real, whole};
use crate::progress::Line;
use clap::{Args, Subcommand};
use fabius::{Durability, EngineKind, Error, Result, SqlState};
use fabius_bench::compare;
use fabius_bench::figure::{self, FIGURES, FigureKind, Laboratory};
use fabius_bench::figure_page::{self, Made};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::peers::{self, pgbench::Load};
use fabius_bench::run::{self, RunOptions, Stage};
use fabius_bench::server_process::ServerProcess;
use fabius_bench::settings::Settings;
use fabius_bench::table::grouped;
use fabius_bench::workload::{Workload, WorkloadKind};
use fabius_bench::workload_list::{self, WORKLOADS};
use fabius_bench::workloads::own::Own;
use fabius_bench::{machine, settings};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is said at once when the user wants no more of it.
pub const INTERRUPTED: &str =
    "\ninterrupted: what was begun is finished or given up; once more ends it at once\n";

/// `fabius bench ...`
#[derive(Subcommand)]
pub enum Command {
    /// List workloads with their settings and defaults, and figures
    List,
    /// Run a workload on one engine after another
    Run(Run),
    /// Run a workload on every engine: one line for each
    Compare(Compare),
    /// Reproduce a figure of a paper: a table, the paper's claims and what was measured
    Figure(Figure),
    /// Reproduce all figures, and write one page with pictures, claims and verdicts
    Figures(Figures),
    /// Compare `fabius serve` with the PostgreSQL on this machine: the same clients and scripts, in turns
    Peers(Peers),
}

/// `fabius bench peers ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius bench peers
  fabius bench peers hot reservation --clients 64 --seconds 10
  fabius bench peers select --protocol simple --json
  fabius bench peers hot reservation cold --replicated
Both databases are made anew in a temporary directory, run with their own defaults, and sync every commit. Without a PostgreSQL only Fabius is measured; pgbench has to be there.
")]
pub struct Peers {
    /// hot, reservation, cold, select, tpcc [default: all]
    scripts: Vec<String>,
    /// Clients at a time
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = whole::<usize>(1, 10_000), allow_negative_numbers = true)]
    clients: usize,
    /// Threads of pgbench
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = whole::<usize>(1, 10_000), allow_negative_numbers = true)]
    threads: usize,
    /// How long one run takes
    #[arg(long, default_value_t = 5, value_name = "S", value_parser = whole::<u64>(1, 86_400), allow_negative_numbers = true)]
    seconds: u64,
    /// Runs of each script on each database, of which the median is shown
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = whole::<usize>(1, 10_000), allow_negative_numbers = true)]
    rounds: usize,
    /// Rows of the table that is read and written at random
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = whole::<u64>(1, 1_000_000_000), allow_negative_numbers = true)]
    rows: u64,
    /// How pgbench sends statements: as texts, with parameters apart, or prepared once
    #[arg(long, default_value = "prepared", value_name = "PROTOCOL", value_parser = ["simple", "extended", "prepared"])]
    protocol: String,
    /// Print one JSON object per script
    #[arg(long)]
    json: bool,
    /// Three servers of each hold a copy, and a commit is synced on two of them: three nodes of Fabius, and
    /// PostgreSQL with two standbys
    #[arg(long)]
    replicated: bool,
    /// Where to make the databases [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// `fabius bench figure ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius bench figure lazy-6 --quick
  fabius bench figure lazy-8 --out figures      writes figures/lazy-8.svg and figures/lazy-8.json
")]
pub struct Figure {
    /// The figure; see `fabius bench list`
    id: String,
    /// Fewer and shorter points: done within a minute
    #[arg(long)]
    quick: bool,
    /// Where to write ID.svg and ID.json
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads in all [default: the cores there are]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1024), allow_negative_numbers = true)]
    threads: Option<usize>,
    /// For lsd-*: how long each message of a client to the server is held back, in milliseconds
    #[arg(long, default_value_t = 1, value_name = "MS", value_parser = whole::<u64>(0, 60_000), allow_negative_numbers = true)]
    network_delay: u64,
    /// Memory taken from the system before anything is measured, such as 12GB [default: what the figure asks for]
    #[arg(long, value_name = "SIZE", value_parser = Size)]
    reserved_memory: Option<u64>,
    /// Where to make the databases [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// `fabius bench figures ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius bench figures --quick --out figures           all of them, within half an hour
  fabius bench figures --only lads-8,lads-9 --out figures
")]
pub struct Figures {
    /// Fewer and shorter points: done within half an hour; in full it takes a night
    #[arg(long)]
    quick: bool,
    /// Where to write figures.md, and ID.svg and ID.json of each
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// These alone, separated by commas; see `fabius bench list`
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    only: Vec<String>,
    /// Threads in all [default: the cores there are]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1024), allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Where to make the databases [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// `fabius bench run ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius bench run hot --set only=hot --durability none
  fabius bench run rmw10 --set distribution=normal --set chain_bound=1000 --set record_bytes=100
  fabius bench run tpcc --engine lazy,2pl --threads 2 --seconds 10 --set warehouses=4 --json
  fabius bench run crates/bench/programs/bank.fab --load 'open_account(1..1000, null, 100)' --call 'transfer(1..1000, 1..10, 1..20)'
")]
pub struct Run {
    /// A workload of `fabius bench list`, or a file with programs of your own (.fab)
    workload: String,
    /// Engines, separated by commas; see docs/engines.md
    #[arg(long, value_delimiter = ',', default_value = "lazy", value_name = "ENGINE")]
    engine: Vec<String>,
    #[command(flatten)]
    conditions: Conditions,
}

/// `fabius bench compare ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius bench compare hot --durability none --seconds 3
  fabius bench compare ycsb --set theta=0.9 --set cross=0.1 --json
  fabius bench compare bank.fab --load 'open_account(1..1000, null, 100)' \\
                                --call '3*transfer(1..1000, 1..10, 1..20)' --call 'balance(1..1000)'
  fabius bench compare bank.fab --call 'open_accounts([(1..1000000000, 100); 10])'   a list of ten rows, each drawn
")]
pub struct Compare {
    /// A workload of `fabius bench list`, or a file with programs of your own (.fab)
    workload: String,
    #[command(flatten)]
    conditions: Conditions,
}

/// What `run` and `compare` have in common.
#[derive(Args)]
struct Conditions {
    /// Threads in all: making calls and doing their work [default: the cores there are]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1024), allow_negative_numbers = true)]
    threads: Option<usize>,
    /// How long calls are made
    #[arg(long, default_value_t = 10.0, value_name = "S", value_parser = real(0.01, 86_400.0), allow_negative_numbers = true)]
    seconds: f64,
    /// When a call counts as committed: after the log is synced, or once it is decided
    #[arg(long, default_value = "fsync", value_name = "fsync|none")]
    durability: String,
    /// A setting of the workload (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// For a program file: a call that loads rows, once for each number of its first range (may be repeated)
    #[arg(long = "load", value_name = "CALL")]
    load: Vec<String>,
    /// For a program file: a call to make, with ranges to draw from, perhaps with a weight (may be repeated)
    #[arg(long = "call", value_name = "CALL")]
    calls: Vec<String>,
    /// Print one JSON object per engine
    #[arg(long)]
    json: bool,
    /// Memory taken from the system before anything is measured, such as 12GB
    #[arg(long, default_value = "0", value_name = "SIZE", value_parser = Size)]
    reserved_memory: u64,
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
        Command::Compare(arguments) => compare_engines(&arguments, interrupt),
        Command::Figure(arguments) => make_figure(&arguments, interrupt),
        Command::Figures(arguments) => make_figures(&arguments, interrupt),
        Command::Peers(arguments) => compare_peers(&arguments, interrupt),
    }
}

fn compare_peers(arguments: &Peers, interrupt: &Interrupt) -> Result<ExitCode> {
    let load = Load {
        clients: arguments.clients,
        threads: arguments.threads.min(arguments.clients),
        seconds: arguments.seconds,
        rows: arguments.rows,
        protocol: arguments.protocol.clone(),
    };
    let options = peers::Options {
        program: ServerProcess::this_program()?,
        scripts: arguments.scripts.clone(),
        load,
        rounds: arguments.rounds,
        parent: arguments.dir.clone(),
        replicated: arguments.replicated,
    };
    let line = Line::new();
    let compared = peers::run(&options, interrupt, &mut |text| line.say(text));
    line.clear();
    let compared = compared?;
    if arguments.json {
        let lines = compared.comparisons.iter();
        lines.for_each(|comparison| out(&format!("{}\n", comparison.json(&compared, &options))));
    } else {
        out(&peers::table(&compared, &options));
    }
    Ok(ExitCode::SUCCESS)
}

fn make_figure(arguments: &Figure, interrupt: &Interrupt) -> Result<ExitCode> {
    let kind = FigureKind::find(&arguments.id)?;
    let line = Line::new();
    allocator::reserve_visibly(arguments.reserved_memory.unwrap_or(0), &line, interrupt)?;
    let mut laboratory = Laboratory {
        is_quick: arguments.quick,
        threads: arguments.threads.unwrap_or_else(machine::cores),
        parent: arguments.dir.clone(),
        network_delay: Duration::from_millis(arguments.network_delay),
        interrupt: interrupt.clone(),
        say: &mut |text| line.say(format!("{}: {text}", kind.id)),
        reserve: &mut |bytes| match arguments.reserved_memory {
            None => allocator::reserve_prudently(bytes, &line, interrupt),
            Some(_) => Ok(()),
        },
    };
    let text = figure::make(kind, &mut laboratory, arguments.out.as_deref());
    line.clear();
    out(&text?);
    Ok(ExitCode::SUCCESS)
}

/// Each is made by a process of its own, whose words are shown as they come.
fn make_figures(arguments: &Figures, interrupt: &Interrupt) -> Result<ExitCode> {
    let kinds = match arguments.only.as_slice() {
        [] => FIGURES.iter().collect(),
        ids => ids.iter().map(|id| FigureKind::find(id)).collect::<Result<Vec<_>>>()?,
    };
    let program = ServerProcess::this_program()?;
    let begun = Instant::now();
    let mut made = Vec::with_capacity(kinds.len());
    for (number, kind) in kinds.iter().enumerate() {
        tell(&format!("figure {} of {}: {}\n", number + 1, kinds.len(), kind.id));
        let mut command = std::process::Command::new(&program);
        command.args(["bench", "figure", kind.id, "--out"]).arg(&arguments.out);
        command.args(arguments.quick.then_some("--quick"));
        if let Some(threads) = arguments.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        if let Some(dir) = &arguments.dir {
            command.arg("--dir").arg(dir);
        }
        let status = command.status().map_err(|error| {
            Error::new(SqlState::IO_ERROR, format!("{} cannot be made: {error}", kind.id))
        })?;
        if interrupt.is_raised() {
            return Err(Error::new(SqlState::CANCELED, "interrupted").with_detail("the page is not written"));
        }
        let failure =
            (!status.success()).then(|| format!("`fabius bench figure {}` ended with {status}", kind.id));
        made.push(Made { kind, failure });
    }
    let command = if arguments.quick { "fabius bench figures --quick" } else { "fabius bench figures" };
    figure_page::write_page(&arguments.out, &made, command, begun.elapsed())?;
    out(&format!("all on one page: {}\n", arguments.out.join(figure_page::PAGE).display()));
    let has_failed = made.iter().any(|made| made.failure.is_some());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn list() {
    let mut text = "workloads (fabius bench run WORKLOAD --set key=value):\n".to_string();
    for kind in WORKLOADS {
        text += &format!("\n  {}  {}\n{}", kind.name, kind.summary, settings_lines(kind.settings));
    }
    text += &format!("\n  every workload\n{}", settings_lines(settings::COMMON));
    text += "\nfigures (fabius bench figure ID):\n\n";
    for kind in FIGURES {
        text += &format!("  {}  {}\n", kind.id, kind.title);
    }
    out(&text);
}

fn settings_lines(list: &[settings::Setting]) -> String {
    let line = |setting: &settings::Setting| {
        let assignment = format!("{}={}", setting.name, setting.default);
        format!("    {assignment:<24} {} ({})\n", setting.help, setting.domain.allowed())
    };
    list.iter().map(line).collect()
}

impl Conditions {
    fn options(&self, workload: &str, engines: Vec<EngineKind>) -> Result<RunOptions> {
        let file = Path::new(workload);
        let is_file = file.extension().is_some_and(|extension| extension == "fab");
        let kind = (!is_file).then(|| workload_list::find(workload)).transpose()?;
        if kind.is_some() && !(self.load.is_empty() && self.calls.is_empty()) {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER,
                format!("workload {workload} has calls of its own"),
            )
            .with_hint("--load and --call go with a program file"));
        }
        let mut settings =
            kind.map_or_else(|| Settings::new("of a program file", &[]), WorkloadKind::defaults);
        self.settings.iter().try_for_each(|assignment| settings.set(assignment))?;
        let durability: Durability = self.durability.parse()?;
        let work: Arc<dyn Workload> = match kind {
            Some(kind) => (kind.build)(&settings).into(),
            None => Arc::new(Own::open(file, &self.load, &self.calls, &settings)?),
        };
        Ok(RunOptions {
            workload: work,
            name: workload.to_string(),
            engines,
            threads: self.threads.unwrap_or_else(machine::cores),
            time: Duration::from_secs_f64(self.seconds),
            durability,
            settings,
            parent: self.dir.clone(),
        })
    }

    fn head(&self, options: &RunOptions) -> String {
        format!(
            "{} on {} threads, calls made for {} s on each engine, durability {}{}",
            options.name,
            options.threads,
            self.seconds,
            options.durability,
            machine::reserved()
        )
    }
}

fn run_workload(arguments: &Run, interrupt: &Interrupt) -> Result<ExitCode> {
    let engines =
        arguments.engine.iter().map(|name| name.trim().parse()).collect::<Result<Vec<EngineKind>>>()?;
    let conditions = &arguments.conditions;
    let options = conditions.options(&arguments.workload, engines)?;
    let line = Line::new();
    allocator::reserve_visibly(conditions.reserved_memory, &line, interrupt)?;
    let reports = run::run(&options, interrupt, &mut |stage| line.say(describe(&stage)))?;
    line.clear();
    if conditions.json {
        reports.iter().for_each(|report| out(&format!("{}\n", report.json())));
    } else {
        out(&format!("{}\n\n{}", conditions.head(&options), run::table(&reports)));
    }
    let is_sound = reports.iter().all(run::Report::is_sound);
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare_engines(arguments: &Compare, interrupt: &Interrupt) -> Result<ExitCode> {
    let conditions = &arguments.conditions;
    let options = conditions.options(&arguments.workload, EngineKind::ALL.to_vec())?;
    let line = Line::new();
    allocator::reserve_visibly(conditions.reserved_memory, &line, interrupt)?;
    let entries = compare::run(&options, interrupt, &mut |stage| line.say(describe(&stage)));
    line.clear();
    if conditions.json {
        entries.iter().for_each(|entry| out(&format!("{}\n", entry.json(&options))));
    } else {
        out(&format!("{}\n\n{}", conditions.head(&options), compare::table(&entries)));
    }
    let is_sound = entries.iter().all(compare::Entry::is_sound);
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
