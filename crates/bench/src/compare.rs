//! `fabius bench compare`: the same work on every engine there is, one line for each.
//!
//! An engine that stops does not end the comparison: its line says why. What each engine orders, waits for, begins
//! again on and costs stands below, as the engines' page has it.

use crate::interrupt::Interrupt;
use crate::run::{self, Report, RunOptions, Stage};
use crate::table::{Table, grouped, time};
use fabius::{EngineKind, Error, SqlState};
use serde_json::{Value as Json, json};

/// The engines' page, whose first table says what each of them does.
const PAGE: &str = include_str!("../../../docs/engines.md");

/// One engine's part.
pub struct Entry {
    /// The engine.
    pub engine: EngineKind,
    /// The engine's run, or what stopped it.
    pub outcome: Result<Report, Error>,
}

/// Runs the workload on each of the engines that `options` names; ends early when interrupted.
pub fn run(options: &RunOptions, interrupt: &Interrupt, observe: &mut dyn FnMut(Stage<'_>)) -> Vec<Entry> {
    let mut entries = Vec::new();
    for &engine in &options.engines {
        let alone = RunOptions { engines: vec![engine], ..options.clone() };
        let outcome = run::run(&alone, interrupt, observe);
        match outcome.map(|mut reports| reports.pop()) {
            Ok(Some(report)) => entries.push(Entry { engine, outcome: Ok(report) }),
            Ok(None) => break,
            // What there is so far is shown.
            Err(error) if error.state() == SqlState::CANCELED && !entries.is_empty() => break,
            Err(error) => entries.push(Entry { engine, outcome: Err(error) }),
        }
    }
    entries
}

impl Entry {
    /// The object that `--json` prints: that of `fabius bench run`, or the error.
    pub fn json(&self, options: &RunOptions) -> Json {
        match &self.outcome {
            Ok(report) => report.json(),
            Err(error) => json!({
                "workload": options.name,
                "engine": self.engine.name(),
                "error": error.to_string(),
            }),
        }
    }

    /// Whether it ran, its check holds, and no call was given up by the engine.
    pub fn is_sound(&self) -> bool {
        self.outcome.as_ref().is_ok_and(Report::is_sound)
    }
}

/// The engines below each other, for people.
pub fn table(entries: &[Entry]) -> String {
    let head = ["engine", "calls/s", "commit p50", "p99", "aborts", "conflicts", "retries", "check"];
    let mut table = Table::new(head);
    let mut notes = String::new();
    for Entry { engine, outcome } in entries {
        let report = match outcome {
            Ok(report) => report,
            Err(error) => {
                table.row([engine.name(), "-", "-", "-", "-", "-", "-", "-"]);
                notes += &format!("{engine}: not run: {error}\n");
                continue;
            }
        };
        let (seen, counts) = (&report.measured.seen, &report.measured.counts);
        let commits = seen.all_commits();
        table.row([
            engine.to_string(),
            grouped(report.measured.throughput_tps()),
            time(commits.value_at_quantile(0.5)),
            time(commits.value_at_quantile(0.99)),
            grouped((seen.aborted_total() - seen.conflicts) as f64),
            grouped(seen.conflicts as f64),
            grouped(counts.retries as f64),
            if report.check.is_ok() { "holds" } else { "FAILS" }.to_string(),
        ]);
        match &report.check {
            Ok(found) => notes += &format!("{engine}: {found}\n"),
            Err(why) => notes += &format!("{engine}: the check fails: {why}\n"),
        }
        if seen.committed_total() == 0 {
            notes += &report.aborts();
        }
    }
    let done: String = entries.iter().map(|entry| description(entry.engine)).collect();
    format!("{table}\n{notes}\nwhat they do (docs/engines.md)\n{done}")
}

/// What an engine does, a line for each column of the page's table.
fn description(engine: EngineKind) -> String {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim);
    let mut rows = PAGE.lines().filter(|line| line.starts_with('|'));
    let head: Vec<&str> = rows.next().map(|line| cells(line).collect()).unwrap_or_default();
    let name = format!("`{}`", engine.name());
    let Some(row) = rows.find(|line| cells(line).next() == Some(&name)) else { return String::new() };
    let parts = head.iter().zip(cells(row)).skip(1);
    let lines: String = parts.map(|(what, how)| format!("    {what:<16} {how}\n")).collect();
    format!("  {}\n{lines}", engine.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the page says of every engine what it orders calls by, waits for, begins again on and costs.
    #[test]
    fn every_engine_is_described() {
        for engine in EngineKind::ALL {
            let description = description(engine);
            for what in ["after", "orders calls by", "waits for", "begins again on", "costs"] {
                assert!(description.contains(&format!("    {what:<16} ")), "{engine}: {description}");
            }
        }
    }
}
