//! Throughput and latency of several engines along an axis: what most figures are.
//!
//! ```text
//! Sweep { workload, engines, panels, points }      engine --load--> target --each panel, each point--> Sample
//!            |
//!            +--run--> Swept --table, chart, claim--> figure
//! ```
//!
//! Engines are named as users name them, and settings of their own follow the name (`graph batch_latency_us=500`), or
//! that callers are told when the log is synced (`graph synced`).
//! Points with more threads than there are cores are left out, and the figure says so; claims that need them are not
//! measured.

use crate::chart::{Axis, Chart, Series};
use crate::claim::{Claim, Finding, Reasons};
use crate::figure::{Figure, Laboratory};
use crate::machine;
use crate::measured::Measured;
use crate::repeated::SPREAD;
use crate::sample::{Rounds, Sample};
use crate::settings::Settings;
use crate::table::{Table, grouped};
use crate::target::Target;
use crate::workload::WorkloadKind;
use fabius::{Durability, EngineKind, Result};
use std::fmt::Display;

/// Assignments of settings.
pub type Assignments = Vec<(&'static str, String)>;

/// A place on the axis.
#[derive(Clone, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How the table calls it.
    pub label: String,
    /// What is set there.
    pub set: Assignments,
    /// Threads, if not those of the laboratory.
    pub threads: Option<usize>,
}

/// Points that set one setting to each of these values.
pub fn along<T: Display + Copy>(setting: &'static str, values: &[T]) -> Vec<Point> {
    let point = |value: &T| {
        let label = value.to_string();
        Point { x: label.parse().unwrap_or(0.0), set: vec![(setting, label.clone())], label, threads: None }
    };
    values.iter().map(point).collect()
}

/// Points that differ in the number of threads.
pub fn along_threads(counts: &[usize]) -> Vec<Point> {
    let point = |&count: &usize| Point {
        x: count as f64,
        label: count.to_string(),
        set: Vec::new(),
        threads: Some(count),
    };
    counts.iter().map(point).collect()
}

/// One chart of a figure: the same lines and points under settings of its own.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What is set in it.
    pub set: Assignments,
    /// Whether it needs rows of its own.
    pub is_loaded_anew: bool,
}

impl Panel {
    /// A panel over the rows that all have.
    pub fn new(title: impl Into<String>, set: &[(&'static str, &dyn Display)]) -> Panel {
        let set = set.iter().map(|(name, value)| (*name, value.to_string())).collect();
        Panel { title: title.into(), set, is_loaded_anew: false }
    }

    /// This panel with rows of its own.
    #[must_use]
    pub fn loaded_anew(self) -> Panel {
        Panel { is_loaded_anew: true, ..self }
    }
}

/// What to measure.
pub struct Sweep<'s> {
    /// The work.
    pub workload: &'s WorkloadKind,
    /// Settings of all runs.
    pub base: Settings,
    /// Engines, as users name them.
    pub engines: &'s [&'static str],
    /// Charts.
    pub panels: Vec<Panel>,
    /// The axis.
    pub axis: Axis,
    /// Places on it.
    pub points: Vec<Point>,
    /// How long each point takes.
    pub seconds: f64,
}

/// What was measured.
pub struct Swept {
    axis: Axis,
    points: Vec<Point>,
    /// Titles, and lines by the engine's name; `None` where a point was not run.
    panels: Vec<(String, Vec<Line>)>,
    notes: Vec<String>,
}

/// A line: its name and what was measured at each point.
pub type Line = (String, Vec<Option<Rounds>>);

/// By panel, and the line in it, what there is of each point.
type ByPanel<T> = Vec<Vec<Vec<T>>>;

/// The engine of a user's name.
fn engine(name: &str) -> EngineKind {
    let kind = name.split(' ').next().and_then(|kind| kind.parse().ok());
    kind.unwrap_or_else(|| panic!("a figure names no engine: {name}"))
}

/// When callers of a line are told.
fn durability(name: &str) -> Durability {
    if name.split(' ').any(|word| word == "synced") { Durability::Fsync } else { Durability::None }
}

/// The settings that follow an engine's name.
fn own_settings(name: &'static str) -> Assignments {
    let words = name.split(' ').skip(1).filter_map(|word| word.split_once('='));
    words.map(|(setting, value)| (setting, value.to_string())).collect()
}

impl Sweep<'_> {
    /// Measures every point of every panel in so many rounds, with all engines in turn at each point, and panels over
    /// the same rows together: a machine that becomes slower or faster for a while does so for all engines and points
    /// alike. The databases of all engines are there at once.
    ///
    /// # Errors
    /// What stopped a run; a check that fails.
    pub fn run(self, laboratory: &mut Laboratory<'_>, rounds: usize) -> Result<Swept> {
        let panels = self.panels.iter().map(|panel| (panel.title.clone(), Vec::new())).collect();
        let mut swept =
            Swept { axis: self.axis.clone(), points: self.points.clone(), panels, notes: Vec::new() };
        let cores = machine::cores();
        let most = cores.max(laboratory.threads);
        let beyond: Vec<&str> =
            self.points.iter().filter(|p| p.threads > Some(most)).map(|p| p.label.as_str()).collect();
        if !beyond.is_empty() {
            swept
                .notes
                .push(format!("not run, with more threads than the {cores} cores: {}", beyond.join(", ")));
        }
        let points = self.points.len() - beyond.len();
        let mut tally = Tally { number: 0, total: self.engines.len() * self.panels.len() * points * rounds };
        if rounds > 1 {
            swept.notes.push(format!(
                "medians of {rounds} rounds, all lines and points of a panel in turns; bars, and percents in tables: {SPREAD}"
            ));
        }
        let mut lines = swept.panels.iter_mut().map(|(_, lines)| lines);
        // Panels over the same rows.
        for panels in self.panels.chunk_by(|_, next| !next.is_loaded_anew) {
            let settings = assigned(&self.base, &panels[0].set);
            let mut targets = Vec::new();
            for name in self.engines {
                let settings = assigned(&settings, &own_settings(name));
                let target =
                    laboratory.target_with(engine(name), self.workload, &settings, durability(name))?;
                targets.push(target);
            }
            let measured = self.lines(laboratory, panels, &targets, (rounds, most), &mut tally)?;
            for (measured, lines) in measured.into_iter().zip(lines.by_ref()) {
                lines.extend(self.engines.iter().map(ToString::to_string).zip(measured));
            }
            let settings = assigned(&self.base, &panels[panels.len() - 1].set);
            targets.into_iter().try_for_each(|target| laboratory.finish(target, self.workload, &settings))?;
        }
        Ok(swept)
    }

    /// Measures the points of panels on these targets, in so many rounds over all of them, up to so many threads: by
    /// panel, the line of each target.
    fn lines(
        &self,
        laboratory: &mut Laboratory<'_>,
        panels: &[Panel],
        targets: &[Target],
        (rounds, most): (usize, usize),
        tally: &mut Tally,
    ) -> Result<ByPanel<Option<Rounds>>> {
        let points = || self.points.iter().map(|_| Vec::new()).collect();
        let lines = || targets.iter().map(|_| points()).collect();
        let mut runs: ByPanel<Vec<Measured>> = panels.iter().map(|_| lines()).collect();
        let seconds = self.seconds / rounds as f64;
        for round in 0..rounds {
            for (panel, runs) in panels.iter().zip(&mut runs) {
                for (at, point) in self.points.iter().enumerate() {
                    let threads = point.threads.unwrap_or(laboratory.threads);
                    if threads > most {
                        continue;
                    }
                    let settings = assigned(&assigned(&self.base, &panel.set), &point.set);
                    for turn in 0..targets.len() {
                        // Another one begins in each round: what went before leaves its traces in the machine.
                        let number = (round + turn) % targets.len();
                        let (target, what) = (&targets[number], tally.next(&panel.title, &point.label));
                        let run = laboratory.measure_on(
                            threads,
                            target,
                            self.workload,
                            &settings,
                            seconds,
                            &what,
                        )?;
                        runs[number][at].push(run);
                    }
                }
            }
        }
        let line = |points: &Vec<Vec<Measured>>| points.iter().map(|runs| Rounds::of_runs(runs)).collect();
        Ok(runs.iter().map(|lines| lines.iter().map(line).collect()).collect())
    }
}

/// Runs so far, of all.
struct Tally {
    number: usize,
    total: usize,
}

impl Tally {
    /// What the next one is, for who waits.
    fn next(&mut self, panel: &str, point: &str) -> String {
        self.number += 1;
        format!("{} of {}: {panel}, {point}", self.number, self.total)
    }
}

fn assigned(settings: &Settings, set: &Assignments) -> Settings {
    let list: Vec<(&str, &dyn Display)> =
        set.iter().map(|(name, value)| (*name, value as &dyn Display)).collect();
    settings.with(&list)
}

impl Swept {
    /// Nothing yet: lines are added as they are measured.
    pub fn new(axis: Axis, points: Vec<Point>, panels: &[&str]) -> Swept {
        let panels = panels.iter().map(|title| (title.to_string(), Vec::new())).collect();
        Swept { axis, points, panels, notes: Vec::new() }
    }

    /// Adds a line that was measured in another way.
    pub fn add_line(&mut self, panel: usize, line: Line) {
        self.panels[panel].1.push(line);
    }

    /// Puts tables and charts of a number into a figure, one of each for every panel.
    pub fn show(&self, figure: &mut Figure, what: &str, number: impl Fn(&Sample) -> f64) {
        for (title, lines) in &self.panels {
            let head =
                [self.axis.label.clone()].into_iter().chain(lines.iter().map(|(name, _)| name.clone()));
            let mut table = Table::new(head);
            for (at, point) in self.points.iter().enumerate() {
                let cell = |(_, line): &Line| {
                    line[at].as_ref().map_or("not run".into(), |rounds| rounds.number(&number).cell(grouped))
                };
                table.row([point.label.clone()].into_iter().chain(lines.iter().map(cell)));
            }
            figure.tables.push((format!("{what}, {title}"), table));
            let series = lines.iter().map(|(name, line)| {
                let points = self.points.iter().zip(line);
                let points =
                    points.filter_map(|(point, rounds)| Some((point.x, rounds.as_ref()?.number(&number))));
                Series::new(name.clone(), points)
            });
            figure.charts.push(Chart {
                title: title.clone(),
                x: self.axis.clone(),
                y: Axis::linear(what),
                series: series.collect(),
            });
        }
    }

    /// Adds a remark.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// What was not run.
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// A number along a line, where it was run; `None` if the line was not, or has fewer than two points.
    pub fn numbers(&self, panel: usize, name: &str, number: impl Fn(&Sample) -> f64) -> Option<Vec<f64>> {
        let (_, line) = self.panels[panel].1.iter().find(|(of, _)| of == name)?;
        let numbers: Vec<f64> = line.iter().flatten().map(|rounds| number(&rounds.all)).collect();
        (numbers.len() > 1).then_some(numbers)
    }

    /// A claim about the throughput of some lines, each named by panel and engine, judged by what `judge` finds; or
    /// that it was not measured.
    pub fn claim(
        &self,
        text: &str,
        lines: &[(usize, &str)],
        judge: impl Fn(&[Vec<f64>]) -> Vec<Finding>,
        reasons: Reasons<'_>,
    ) -> Claim {
        self.claim_of(|sample| sample.throughput_tps, text, lines, judge, reasons)
    }

    /// A claim as [`Swept::claim`] makes it, about another number than the throughput.
    pub fn claim_of(
        &self,
        number: impl Fn(&Sample) -> f64,
        text: &str,
        lines: &[(usize, &str)],
        judge: impl Fn(&[Vec<f64>]) -> Vec<Finding>,
        reasons: Reasons<'_>,
    ) -> Claim {
        let found = |(panel, name): &(usize, &str)| self.numbers(*panel, name, &number);
        let mut missing: Vec<&str> =
            lines.iter().filter(|line| found(line).is_none()).map(|(_, name)| *name).collect();
        missing.dedup();
        if !missing.is_empty() {
            let why = format!("needs at least two points of {}", missing.join(", "));
            return Claim::not_measured(text, &why);
        }
        Claim::new(text, judge(&lines.iter().filter_map(found).collect::<Vec<_>>()), reasons)
    }
}

/// The last number as a multiple of the first.
pub fn ends(line: &[f64]) -> f64 {
    line[line.len() - 1] / line[0].max(1e-9)
}

/// The highest as a multiple of the lowest.
pub fn spread(line: &[f64]) -> f64 {
    line.iter().copied().fold(f64::MIN, f64::max) / line.iter().copied().fold(f64::MAX, f64::min).max(1e-9)
}

/// Where one line is, point by point, as a multiple of another: the lowest and the highest.
pub fn ratios(one: &[f64], other: &[f64]) -> (f64, f64) {
    let ratios = one.iter().zip(other).map(|(one, other)| one / other.max(1e-9));
    ratios.fold((f64::MAX, f64::MIN), |(low, high), ratio| (low.min(ratio), high.max(ratio)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Band, Verdict};

    fn swept(lines: Vec<Line>) -> Swept {
        Swept {
            axis: Axis::linear("threads"),
            points: along_threads(&[1, 2, 4]),
            panels: vec![("all".to_string(), lines)],
            notes: Vec::new(),
        }
    }

    fn line(name: &str, numbers: [Option<f64>; 3]) -> Line {
        let rounds = |tps: f64| Rounds::from(Sample { throughput_tps: tps, ..Sample::default() });
        (name.to_string(), numbers.into_iter().map(|number| number.map(rounds)).collect())
    }

    /// Goal: an engine is known by its name, whatever settings it has.
    #[test]
    fn settings_follow_the_name() {
        let name = "partitioned waiting=lends engine_partitions=2";
        assert_eq!(engine(name), EngineKind::Partitioned);
        let set = [("waiting", "lends"), ("engine_partitions", "2")];
        assert_eq!(own_settings(name), set.map(|(setting, value)| (setting, value.to_string())));
        assert_eq!((engine("occ"), own_settings("occ")), (EngineKind::Optimistic, Vec::new()));
        assert_eq!(["graph synced", "graph"].map(durability), [Durability::Fsync, Durability::None]);
    }

    /// Goal: a claim is judged by the points that were run, and not at all without its lines.
    #[test]
    fn claims_need_their_lines() {
        let swept = swept(vec![line("2pl", [Some(10.0), Some(20.0), None])]);
        let judge = |lines: &[Vec<f64>]| vec![Finding::new("gain", ends(&lines[0]), Band::between(2.0, 4.0))];
        let reasons = Reasons { fails: "one core", differs: "" };
        let claim = swept.claim("it scales", &[(0, "2pl")], judge, reasons);
        assert_eq!((claim.verdict, claim.findings[0].value), (Verdict::Holds, 2.0));
        let claim = swept.claim("it scales", &[(0, "graph")], judge, reasons);
        assert_eq!((claim.verdict, claim.findings.len()), (Verdict::NotMeasured, 0));
    }

    /// Goal: points that were not run are marked in the table and left out of the chart.
    #[test]
    fn points_not_run_are_marked() {
        let mut figure = Figure::default();
        let swept = swept(vec![line("2pl", [Some(10.0), Some(20.0), None])]);
        swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
        assert!(figure.tables[0].1.to_string().contains("4        not run"));
        assert_eq!(figure.charts[0].series[0].points, [(1.0, 10.0.into()), (2.0, 20.0.into())]);
    }
}
