//! `lads-17`: a workload that keeps changing (LADS, figure 17).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Point, Sweep, spread};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;
use fabius_env::Random;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind = FigureKind {
    id: "lads-17",
    title: "YCSB throughput and latency over time while skew and cross-partition share change",
    make,
};

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    // How long a point takes in each round.
    let seconds = laboratory.choose(0.25, 2.0);
    let mut random = Random::seeded(17);
    let points = (0..laboratory.choose(10, 60)).map(|step: u32| {
        // Means of 0.7 and 10 %, as in section 5.7.
        let theta = 0.45 + 0.5 * random.unit_f64();
        let cross = 0.2 * random.unit_f64();
        let set = vec![("theta", format!("{theta:.2}")), ("cross", format!("{cross:.2}"))];
        let label = format!("{step}: theta {theta:.2}, cross {:.0} %", cross * 100.0);
        Point { x: f64::from(step) * seconds, label, set, threads: None }
    });
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::ycsb(laboratory),
        engines: lads::ENGINES,
        panels: vec![
            Panel::new("parameters change at every point", &[]),
            Panel::new("parameters change at every point, results wanted", &[("results", &"on")]),
        ],
        axis: Axis::linear("seconds"),
        points: points.collect(),
        seconds: seconds * lads::ROUNDS as f64,
    };
    let swept = sweep.run(laboratory, lads::ROUNDS)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    swept.show(&mut figure, "mean commit latency, µs", |sample| sample.commit_us.mean);
    for (panel, when) in [(0, ""), (1, "results wanted: ")] {
        figure.claims.push(swept.claim(
            &format!("{when}graph's throughput stays in a narrow range"),
            &[(panel, "graph")],
            |lines| {
                vec![Finding::new("highest as a multiple of the lowest", spread(&lines[0]), Band::flat(1.4))]
            },
            Reasons { fails: "skew changes how much of the work is in the cache", differs: "" },
        ));
        figure.claims.push(swept.claim(
            &format!("{when}partitioned fluctuates more"),
            &[(panel, "graph"), (panel, "partitioned")],
            |lines| {
                let more = spread(&lines[1]) / spread(&lines[0]);
                let what = "partitioned's range as a multiple of graph's, each highest by lowest";
                vec![Finding::new(what, more, Band::between(1.1, 5.0))]
            },
            Reasons {
                fails: "up to 20 % of calls that cross cost two threads little",
                differs: "a thread that waits for a partition sleeps, and is late when its turn comes",
            },
        ));
    }
    Ok(figure)
}
