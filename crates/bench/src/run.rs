//! `fabius bench run`: the same work on each engine in turn.

use crate::closed_loop::{self, Limit, Plan, Progress};
use crate::interrupt::Interrupt;
use crate::loading;
use crate::measured::Measured;
use crate::open_loop;
use crate::recorder::{Abort, Latencies};
use crate::settings::Settings;
use crate::table::{Table, bytes, grouped, time};
use crate::target::TargetOptions;
use crate::workload::{Verdict, Workload};
use fabius::{Durability, EngineKind, Result};
use fabius_env::memory::reserved_bytes;
use fabius_value::SqlState;
use serde_json::{Map, Value as Json, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What to run.
#[derive(Clone)]
pub struct RunOptions {
    /// The workload.
    pub workload: Arc<dyn Workload>,
    /// What it is called.
    pub name: String,
    /// Engines, one after another.
    pub engines: Vec<EngineKind>,
    /// Threads in all.
    pub threads: usize,
    /// How long calls are made.
    pub time: Duration,
    /// When callers are told.
    pub durability: Durability,
    /// The workload's settings.
    pub settings: Settings,
    /// Where databases are made.
    pub parent: Option<PathBuf>,
}

/// What is going on.
pub enum Stage<'p> {
    /// An engine's database is being filled.
    Loading(EngineKind),
    /// Calls are made.
    Running(EngineKind, &'p Progress<'p>),
    /// The rows are compared with the calls.
    Checking(EngineKind),
}

/// One engine's run.
pub struct Report {
    /// What the workload is called.
    pub workload: String,
    /// The engine.
    pub engine: EngineKind,
    /// Threads in all.
    pub threads: usize,
    /// When callers were told.
    pub durability: Durability,
    settings: Settings,
    /// What was measured.
    pub measured: Measured,
    /// How long loading took.
    pub loading: Duration,
    /// The workload's own check.
    pub check: Verdict,
}

/// Runs the workload on each engine; ends early, with what there is, when interrupted.
///
/// # Errors
/// `22023` for a setting that does nothing here; if a database cannot be made or loaded, or an engine stops.
pub fn run(
    options: &RunOptions,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(Stage<'_>),
) -> Result<Vec<Report>> {
    if options.workload.arrivals().is_some() {
        options.settings.refuse_changed(
            &open_loop::SETTINGS_WITHOUT_EFFECT,
            "calls come at a rate of their own, one by one, and threads that make none do deferred work",
        )?;
    }
    let mut reports = Vec::new();
    for &engine in &options.engines {
        if interrupt.is_raised() {
            break;
        }
        match run_engine(options, engine, interrupt, observe) {
            // What there is so far is shown.
            Err(error) if error.state() == SqlState::CANCELED && !reports.is_empty() => break,
            report => reports.push(report?),
        }
    }
    Ok(reports)
}

fn run_engine(
    options: &RunOptions,
    engine: EngineKind,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(Stage<'_>),
) -> Result<Report> {
    let workload = &*options.workload;
    observe(Stage::Loading(engine));
    let began = Instant::now();
    let (durability, settings) = (options.durability, &options.settings);
    let target_options =
        TargetOptions { engine, durability, parent: options.parent.clone(), interrupt: interrupt.clone() };
    let target = loading::load(&target_options, workload, settings)?;
    let loading = began.elapsed();
    let mut watch = |progress: &Progress<'_>| observe(Stage::Running(engine, progress));
    let measured = match workload.arrivals() {
        None => {
            let plan = Plan { threads: options.threads, limit: Limit::Time(options.time) };
            closed_loop::run(&target, workload, settings, plan, interrupt, &mut watch)?
        }
        Some(arrivals) => {
            let offered = arrivals.over(options.time);
            open_loop::run(&target, workload, settings, &offered, options.threads, interrupt)?.measured
        }
    };
    observe(Stage::Checking(engine));
    let check = workload.check(&target)?;
    target.database.close()?;
    let settings = settings.clone();
    Ok(Report {
        workload: options.name.clone(),
        engine,
        threads: options.threads,
        durability,
        settings,
        measured,
        loading,
        check,
    })
}

impl Report {
    /// The object that `--json` prints: what scripts rely on, and nothing else.
    pub fn json(&self) -> Json {
        let Measured { seen, counts, elapsed, peak_rss_bytes, .. } = &self.measured;
        let settings: Map<String, Json> =
            self.settings.iter().map(|(name, value)| (name.to_string(), scalar(value))).collect();
        json!({
            "workload": self.workload,
            "engine": self.engine.name(),
            "settings": settings,
            "threads": self.threads,
            "seconds": rounded(elapsed.as_secs_f64(), 1e6),
            "committed": seen.committed_total(),
            "aborted_user": seen.aborted_total() - seen.conflicts,
            "aborted_conflict": seen.conflicts,
            "retries": counts.retries,
            "substantiated": counts.substantiated,
            "skipped": counts.skipped,
            "throughput_tps": rounded(self.measured.throughput_tps(), 10.0),
            "latency_us": { "commit": percentiles(&seen.all_commits()), "result": percentiles(&seen.all_results()) },
            "durability": self.durability.to_string(),
            "log_bytes": counts.log_bytes,
            "peak_rss_bytes": peak_rss_bytes,
            "reserved_memory_bytes": reserved_bytes(),
            "check": match &self.check {
                Ok(_) if self.measured.is_interrupted => "interrupted: pass".to_string(),
                Ok(_) => "pass".to_string(),
                Err(why) => format!("fail: {why}"),
            },
        })
    }

    /// Why calls aborted: a line for each SQLSTATE, the most frequent first.
    pub fn aborts(&self) -> String {
        let mut aborts = self.measured.seen.aborts.clone();
        aborts.sort_by_key(|abort| std::cmp::Reverse(abort.count));
        let line = |Abort { first, count }: &Abort| {
            let count = grouped(*count as f64);
            format!(
                "aborts on {}: {count} with {}, such as: {}\n",
                self.engine,
                first.state().as_str(),
                first.message()
            )
        };
        let mut text: String = aborts.iter().map(line).collect();
        if self.measured.seen.committed_total() == 0 && !aborts.is_empty() {
            text += &format!("warning: nothing has committed on {}\n", self.engine);
        }
        text
    }

    /// Whether the check holds and nothing was aborted for the engine's own reasons.
    pub fn is_sound(&self) -> bool {
        self.check.is_ok() && self.measured.seen.conflicts == 0
    }
}

/// The reports side by side, for people.
pub fn table(reports: &[Report]) -> String {
    let mut table = Table::new(std::iter::once("").chain(reports.iter().map(|report| report.engine.name())));
    let mut line = |name: &str, cell: &dyn Fn(&Report) -> String| {
        table.row(std::iter::once(name.to_string()).chain(reports.iter().map(cell)));
    };
    let count = |number: u64| grouped(number as f64);
    line("throughput, calls/s", &|of| grouped(of.measured.throughput_tps()));
    line("promised, calls/s", &|of| grouped(of.measured.promised_tps()));
    line("committed", &|of| count(of.measured.seen.committed_total()));
    line("aborted by program", &|of| count(of.measured.seen.aborted_total() - of.measured.seen.conflicts));
    line("aborted by conflict", &|of| count(of.measured.seen.conflicts));
    line("retries", &|of| count(of.measured.counts.retries));
    line("substantiated later", &|of| count(of.measured.counts.substantiated));
    line("substantiated while others waited", &|of| count(of.measured.counts.substantiated_in_lane));
    line("never needed", &|of| count(of.measured.counts.skipped));
    line("nothing left for later", &|of| count(of.measured.counts.immediate));
    line("deltas merged", &|of| count(of.measured.counts.merged));
    line("callers slowed", &|of| count(of.measured.counts.slowed));
    line("log", &|of| bytes(of.measured.counts.log_bytes));
    line("peak memory", &|of| bytes(of.measured.peak_rss_bytes));
    line("loading", &|of| format!("{:.1} s", of.loading.as_secs_f64()));
    line("calls made for", &|of| format!("{:.2} s", of.measured.offered.as_secs_f64()));
    line("all work done after", &|of| format!("{:.2} s", of.measured.elapsed.as_secs_f64()));
    let kinds = reports.first().map(|report| report.measured.seen.kinds.clone()).unwrap_or_default();
    for kind in kinds {
        for (what, at) in [("commit", 0), ("result", 1)] {
            let cell = |of: &Report| {
                let (commit, result) = of.measured.seen.of_kind(kind);
                let latencies = [commit, result][at];
                let quantile = |q| time(latencies.value_at_quantile(q));
                if latencies.is_empty() {
                    "-".to_string()
                } else {
                    format!("{} / {}", quantile(0.5), quantile(0.99))
                }
            };
            if reports.iter().any(|report| cell(report) != "-") {
                line(&format!("{kind}: {what} p50 / p99"), &cell);
            }
        }
    }
    let mut text = table.to_string();
    for report in reports {
        let (word, why) = match &report.check {
            Ok(found) => ("pass", found),
            Err(why) => ("FAIL", why),
        };
        text += &format!("check on {}: {word}: {why}\n", report.engine);
        text += &report.aborts();
        if report.measured.is_interrupted {
            text += &format!(
                "{} was interrupted: the figures are those of the calls made until then\n",
                report.engine
            );
        }
    }
    text
}

fn percentiles(latencies: &Latencies) -> Json {
    let us = |ns: u64| rounded(ns as f64 / 1e3, 1e3);
    if latencies.is_empty() {
        return json!({ "p50": null, "p99": null, "p999": null, "max": null });
    }
    json!({
        "p50": us(latencies.value_at_quantile(0.5)),
        "p99": us(latencies.value_at_quantile(0.99)),
        "p999": us(latencies.value_at_quantile(0.999)),
        "max": us(latencies.max()),
    })
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

/// A setting's value as a number if it is one.
fn scalar(text: &str) -> Json {
    text.parse::<u64>()
        .map(Json::from)
        .or_else(|_| text.parse::<f64>().map(Json::from))
        .unwrap_or_else(|_| Json::from(text))
}
