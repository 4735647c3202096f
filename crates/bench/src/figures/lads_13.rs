//! `lads-13`: TPC-C throughput against threads (LADS, figure 13).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along_threads, ends};
use crate::workloads::tpcc::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-13", title: "TPC-C throughput against threads, 24 warehouses, 10 % cross", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::tpcc(laboratory, 24),
        engines: lads::ENGINES,
        panels: vec![
            Panel::new("24 warehouses", &[("cross", &0.1)]),
            Panel::new("24 warehouses, results wanted", &[("cross", &0.1), ("results", &"on")]),
        ],
        axis: Axis::linear("threads"),
        points: along_threads(&lads::THREADS),
        seconds: laboratory.choose(2.5, 5.0),
    };
    let swept = sweep.run(laboratory, lads::ROUNDS)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = [(0, ""), (1, "results wanted: ")].map(|(panel, when)| swept.claim(
        &format!("{when}graph scales best"),
        &[(panel, "graph"), (panel, "partitioned"), (panel, "dora"), (panel, "occ")],
        |lines| {
            let gains: Vec<f64> = lines.iter().map(|line| ends(line)).collect();
            let beside = |(gain, name): (&f64, &str)| {
                let what = format!("graph's gain from threads as a multiple of {name}'s");
                Finding::new(what, gains[0] / gain, Band::between(1.0, 4.0))
            };
            gains[1..].iter().zip(["partitioned", "dora", "occ"]).map(beside).collect()
        },
        Reasons {
            fails: "the paper's difference shows beyond 24 threads, where warehouses become fewer than threads",
            differs: "the others do not gain at all from a second thread here",
        },
    )).to_vec();
    Ok(figure)
}
