//! `lads-12`: TPC-C throughput against the share of cross-partition calls (LADS, figure 12).

use super::{lads, lads_11};
use crate::chart::Axis;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along};
use crate::workloads::tpcc::KIND as WORKLOAD;
use fabius::Result;
use std::fmt::Display;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-12", title: "TPC-C throughput against the share of cross-partition calls", make };

/// Low, medium and high contention.
const WAREHOUSES: [usize; 3] = [24, 8, 4];

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let panel = |count: &usize| {
        let set: &[(_, &dyn Display)] = &[("warehouses", count)];
        Panel::new(format!("{count} warehouses"), set).loaded_anew()
    };
    let with_results =
        Panel::new("8 warehouses, results wanted", &[("warehouses", &8), ("results", &"on")]).loaded_anew();
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::tpcc(laboratory, WAREHOUSES[0]),
        engines: lads::ENGINES,
        panels: WAREHOUSES.iter().map(panel).chain([with_results]).collect(),
        axis: Axis::linear("share of cross-partition calls"),
        points: along("cross", laboratory.choose(&lads::CROSS_QUICK[..], &lads::CROSS)),
        seconds: laboratory.choose(2.0, 4.0),
    };
    let swept = sweep.run(laboratory, lads::ROUNDS)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    let titles = WAREHOUSES.iter().map(|count| format!("{count} warehouses"));
    for (panel, title) in titles.chain(["8 warehouses, results wanted".to_string()]).enumerate() {
        lads_11::claims(&swept, panel, &title, &mut figure);
    }
    Ok(figure)
}
