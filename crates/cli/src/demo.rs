//! `fabius demo`: a flash sale on the lazy engine, the same calls on eager two-phase locking, and
//! proof that nothing was lost.

use crate::allocator;
use crate::flash_sale::{self, FlashSale};
use crate::message::out;
use crate::number::real;
use crate::progress::Line;
use clap::Args;
use fabius::{Durability, EngineKind, Result};
use fabius_bench::closed_loop::{self, Limit, Plan, Progress};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::loading;
use fabius_bench::machine;
use fabius_bench::measured::Measured;
use fabius_bench::settings::Settings;
use fabius_bench::table::{Table, bytes, grouped, time};
use fabius_bench::target::{Target, TargetOptions};
use fabius_bench::workload::Workload;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// `fabius demo ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius demo
  fabius demo --seconds 10 --dir /data/tmp
")]
pub struct Demo {
    /// How long it takes, about
    #[arg(long, default_value_t = 30.0, value_name = "S", value_parser = real(2.0, 3600.0), allow_negative_numbers = true)]
    seconds: f64,
    /// Where to make the databases [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What is said at once when the user wants no more of it.
pub const INTERRUPTED: &str =
    "\nInterrupted: no more calls are made. The work of those that were made is finished, the rows are
added up, and the database is closed and opened again to see that nothing is lost.\n\n";

const SHOPPERS: u64 = 50_000;
/// Pieces of each item for each call of the sale: a little less than what is wanted, so that items sell
/// out towards its end.
const PIECES_PER_CALL: f64 = 0.3 / 6.0 * 0.98;
/// How the time is divided: finding out what this machine does, the lazy engine, at most for eager;
/// the rest is for opening the databases again.
const PARTS: (f64, f64, f64) = (0.03, 0.12, 0.3);
/// Memory taken before the sale for each second of the whole.
const RESERVED_BYTES_PER_SECOND: f64 = 36e6;
/// Memory taken before the sale, at most.
const RESERVED_BYTES_MAX: u64 = 1 << 30;
/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// One engine's part.
struct Half {
    target: Target,
    measured: Measured,
}

impl Half {
    /// Calls that have an outcome.
    fn decided(&self) -> u64 {
        self.measured.seen.committed_total() + self.measured.seen.aborted_total()
    }
}

/// Runs the demo.
///
/// # Errors
/// If a database cannot be made or an engine stops.
pub fn run(arguments: &Demo, interrupt: &Interrupt) -> Result<ExitCode> {
    let settings = flash_sale::settings();
    let stage = Stage { dir: arguments.dir.clone(), settings, interrupt };
    let seconds = |part: f64| Duration::from_secs_f64(arguments.seconds * part);

    out(
        "Fabius: a flash sale. Six items that everyone wants, 50,000 shoppers, every call durable (fsync).\n\n",
    );
    stage.take_memory((arguments.seconds * RESERVED_BYTES_PER_SECOND) as u64);
    let calls = stage.calls_in(seconds(PARTS.0), seconds(PARTS.1))?;
    if interrupt.is_raised() {
        out("Interrupted before the sale began.\n");
        return Ok(ExitCode::SUCCESS);
    }
    let threads = machine::cores();
    let total = calls * threads as u64;
    let sale = FlashSale { seed: 1, shoppers: SHOPPERS, stock: (total as f64 * PIECES_PER_CALL) as i64 };
    out(&format!(
        "{} calls on {threads} threads, first on the lazy engine, then the same on eager two-phase locking.\n\n",
        grouped(total as f64)
    ));
    let mut halves = Vec::new();
    for (engine, part) in [(EngineKind::Lazy, PARTS.1 * 3.0), (EngineKind::TwoPhaseLocking, PARTS.2)] {
        halves.extend(stage.half(engine, &sale, Limit::Calls(calls, seconds(part)))?);
    }
    if halves.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    out(&format!("\n{}", side_by_side(&halves)));
    if let [_, eager] = &halves[..]
        && eager.decided() < total
        && !interrupt.is_raised()
    {
        out(&format!(
            "(eager was stopped after {} of {} calls, so that this ends)\n",
            grouped(eager.decided() as f64),
            grouped(total as f64)
        ));
    }
    out("\nDoes it add up?\n");
    let mut is_right = true;
    for half in halves {
        is_right &= stage.prove(half, &sale)?;
    }
    if interrupt.is_raised() {
        out("\nInterrupted: the numbers are those of the calls that were made until then.\n");
    }
    // Cargo says so to what it runs.
    let fabius = match (std::env::var_os("CARGO"), cfg!(feature = "serve")) {
        (None, _) => "fabius",
        (Some(_), true) => "cargo run --release --",
        // Built with SQL it would take ten minutes first.
        (Some(_), false) => "cargo run --release --no-default-features --",
    };
    let serve = if fabius == "fabius" { "fabius serve" } else { "cargo run --release -- serve" };
    out(&format!(
        "\nWhere to go next:
  {fabius} bench run tpcc --engine lazy,2pl --seconds 5   TPC-C on both engines, with its consistency check
  {fabius} bench figure lazy-6 --quick                    the paper's figure on work that is never needed
  {fabius} explain crates/cli/programs/flash_sale.fab     what of each procedure is done now, and what later
  {fabius} bench list                                     everything that can be measured
  {serve}                                                 a server for psql and every PostgreSQL driver
"
    ));
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What both halves share.
struct Stage<'d> {
    dir: Option<PathBuf>,
    settings: Settings,
    interrupt: &'d Interrupt,
}

impl Stage<'_> {
    fn target(&self, engine: EngineKind, sale: &FlashSale) -> Result<Target> {
        // Shoppers are there in a moment: a sale that is interrupted begins, so that it can end in its own words.
        let interrupt = Interrupt::default();
        let options =
            TargetOptions { engine, durability: Durability::Fsync, parent: self.dir.clone(), interrupt };
        loading::load(&options, sale, &self.settings)
    }

    /// Takes so much memory, or [`RESERVED_BYTES_MAX`]: whichever engine goes first would pay for what both use
    /// (`docs/decisions/memory-is-reserved.md`).
    fn take_memory(&self, bytes: u64) {
        let line = Line::new();
        // Where it is not to be had, the sale goes on without.
        let _ = allocator::reserve_prudently(bytes.min(RESERVED_BYTES_MAX), &line, self.interrupt);
        line.clear();
    }

    /// How many calls each client makes in `time` on the lazy engine, by a short trial.
    fn calls_in(&self, trial: Duration, time: Duration) -> Result<u64> {
        let line = Line::new();
        line.say("getting ready");
        let sale = FlashSale { seed: 2, shoppers: SHOPPERS, stock: 1_000_000_000 };
        let target = self.target(EngineKind::Lazy, &sale)?;
        let plan = Plan { threads: machine::cores(), limit: Limit::Time(trial) };
        let measured = closed_loop::run(&target, &sale, &self.settings, plan, self.interrupt, &mut |_| {})?;
        line.clear();
        let per_client = measured.throughput_tps() * time.as_secs_f64() / plan.threads as f64;
        Ok((per_client as u64).max(1000))
    }

    /// One engine's part; nothing if the user has had enough before its first call.
    fn half(&self, engine: EngineKind, sale: &FlashSale, limit: Limit) -> Result<Option<Half>> {
        let not_run = || {
            out(&format!("{:<4}  not run: interrupted before its first call\n", engine.name()));
            Ok(None)
        };
        if self.interrupt.is_raised() {
            return not_run();
        }
        let line = Line::new();
        line.say(format!("{engine}: opening the shop"));
        let target = self.target(engine, sale)?;
        let plan = Plan { threads: machine::cores(), limit };
        let mut ticker = Ticker::new(engine, &line);
        let mut watch = |progress: &Progress<'_>| ticker.tick(progress);
        let measured = closed_loop::run(&target, sale, &self.settings, plan, self.interrupt, &mut watch)?;
        line.clear();
        let half = Half { target, measured };
        if half.decided() == 0 {
            half.target.database.close()?;
            return not_run();
        }
        let measured = &half.measured;
        let dropped = match measured.counts.skipped {
            0 => String::new(),
            skipped => format!(", but for {} whose writes nobody can read any more", grouped(skipped as f64)),
        };
        out(&format!(
            "{:<4}  done in {:.1} s: {} calls/s, every one of them with all its work{dropped}\n",
            engine.name(),
            measured.elapsed.as_secs_f64(),
            grouped(measured.throughput_tps()),
        ));
        Ok(Some(half))
    }

    /// Checks the rows, closes the database, opens it again and checks once more.
    fn prove(&self, half: Half, sale: &FlashSale) -> Result<bool> {
        let engine = half.target.engine;
        let first = sale.check(&half.target)?;
        let began = Instant::now();
        let target = half.target.reopen(&self.settings)?;
        let reopened = began.elapsed();
        let again = sale.check(&target)?;
        let entries = target.database.recovery().map_or(0, |report| report.entries);
        let (mark, text) = match &first {
            Ok(text) => ("yes", text),
            Err(text) => ("NO", text),
        };
        out(&format!("{:<4}  {mark}: {text}\n", engine.name()));
        let same = again == first;
        let word =
            if same && again.is_ok() { "the same: nothing acknowledged is lost" } else { "NOT THE SAME" };
        out(&format!(
            "      closed and opened again in {:.1} s from a log of {} entries: {word}\n",
            reopened.as_secs_f64(),
            grouped(entries as f64)
        ));
        target.database.close()?;
        Ok(same && first.is_ok())
    }
}

/// Shows progress: a line that changes on a terminal, lines now and then elsewhere.
struct Ticker<'l> {
    engine: EngineKind,
    line: &'l Line,
    printed: Duration,
}

impl<'l> Ticker<'l> {
    fn new(engine: EngineKind, line: &'l Line) -> Ticker<'l> {
        Ticker { engine, line, printed: Duration::ZERO }
    }

    fn tick(&mut self, progress: &Progress<'_>) {
        if !self.line.is_shown() && progress.elapsed < self.printed + LINE_EVERY {
            return;
        }
        self.printed = progress.elapsed;
        let seconds = progress.elapsed.as_secs_f64();
        let counts = &progress.counts;
        let promised = counts.committed + counts.aborted;
        let commits = progress.seen().all_commits();
        let text = format!(
            "{:<4}  {seconds:>4.1} s  {} promised/s  {} done/s  backlog {}  never needed {}  commit p50 {} p99 {}",
            self.engine.name(),
            grouped(promised as f64 / seconds),
            grouped(promised.saturating_sub(counts.backlog) as f64 / seconds),
            grouped(counts.backlog as f64),
            grouped(counts.skipped as f64),
            time(commits.value_at_quantile(0.5)),
            time(commits.value_at_quantile(0.99)),
        );
        if self.line.is_shown() {
            self.line.say(text);
        } else {
            out(&format!("{text}\n"));
        }
    }
}

fn side_by_side(halves: &[Half]) -> String {
    let head = halves.iter().map(|half| match half.target.engine {
        EngineKind::Lazy => "lazy",
        _ => "eager 2PL",
    });
    let mut table = Table::new(std::iter::once("").chain(head));
    let mut line = |name: &str, cell: &dyn Fn(&Measured) -> String| {
        let cells = halves.iter().map(|half| cell(&half.measured));
        table.row(std::iter::once(name.to_string()).chain(cells));
    };
    line("calls/s, all work done", &|of| grouped(of.throughput_tps()));
    line("promised/s", &|of| grouped(of.promised_tps()));
    line("committed", &|of| grouped(of.seen.committed_total() as f64));
    line("sold out (the program's own abort)", &|of| grouped(of.seen.aborted_total() as f64));
    line("aborted by conflicts", &|of| grouped(of.seen.conflicts as f64));
    line("tried again", &|of| grouped(of.counts.retries as f64));
    line("work done later", &|of| grouped(of.counts.substantiated as f64));
    line("work never needed (overwritten unread)", &|of| grouped(of.counts.skipped as f64));
    line("commit latency p50 / p99", &|of| {
        let commits = of.seen.all_commits();
        format!("{} / {}", time(commits.value_at_quantile(0.5)), time(commits.value_at_quantile(0.99)))
    });
    line("reading one's cart p50 / p99", &|of| {
        let results = of.seen.all_results();
        format!("{} / {}", time(results.value_at_quantile(0.5)), time(results.value_at_quantile(0.99)))
    });
    line("log", &|of| bytes(of.counts.log_bytes));
    table.to_string()
}
