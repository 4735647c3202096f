//! `lads-18`: where graph's time goes (LADS, figure 18).
//!
//! The engine's statistics know it, but hand nothing out yet; until they do, the figure has the throughput of
//! the same runs, and its claim is not measured.

use super::lads;
use crate::chart::Axis;
use crate::claim::Claim;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along};
use crate::workloads::{tpcc, ycsb};
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind = FigureKind {
    id: "lads-18",
    title: "shares of time in construction, partitioning, execution, communication",
    make,
};

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let seconds = laboratory.choose(2.0, 8.0);
    let over_contention = Sweep {
        workload: &ycsb::KIND,
        base: lads::ycsb(laboratory).with(&[("cross", &0.1)]),
        engines: &["graph"],
        panels: vec![Panel::new("YCSB, 10 % cross-partition calls", &[])],
        axis: Axis::linear("theta"),
        points: along("theta", &lads::CONTENTION),
        seconds,
    };
    let ycsb = over_contention.run(laboratory)?;
    let over_warehouses = Sweep {
        workload: &tpcc::KIND,
        base: lads::tpcc(laboratory),
        engines: &["graph"],
        panels: vec![Panel::new("TPC-C, 24 warehouses", &[])],
        axis: Axis::linear("share of cross-partition calls"),
        points: along("cross", &[0.0, 0.1]),
        seconds,
    };
    let tpcc = over_warehouses.run(laboratory)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(ycsb.notes());
    ycsb.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    tpcc.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = vec![Claim::not_measured(
        "about 75 % of the time is spent in resolving and executing calls",
        "measurements do not have the times of the engine's phases",
    )];
    Ok(figure)
}
