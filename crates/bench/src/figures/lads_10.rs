//! `lads-10`: throughput against Zipfian skew (LADS, figure 10).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along, ends};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-10", title: "YCSB throughput against Zipfian skew within partitions", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let full: Vec<f64> = (0..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
    let sweep = Sweep {
        workload: &WORKLOAD,
        // What skew saves in cache misses shows with more records than the cache holds only.
        base: lads::ycsb(laboratory).with(&[("records", &lads::YCSB_RECORDS), ("cross", &0)]),
        engines: lads::ENGINES,
        panels: vec![
            Panel::new("no cross-partition calls", &[]),
            Panel::new("no cross-partition calls, results wanted", &[("results", &"on")]),
        ],
        axis: Axis::linear("theta"),
        points: along("theta", laboratory.choose(&[0.0, 0.3, 0.6, 0.9, 1.0], &full)),
        seconds: laboratory.choose(1.2, 4.0),
    };
    let swept = sweep.run(laboratory, lads::ROUNDS)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure
        .notes
        .push("1,000,000 records also with --quick: fewer would be in the cache whatever the skew".into());
    figure.notes.extend(swept.notes());
    figure.notes.push("cache misses are not counted: processes here may not read those counters".to_string());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    let judge = |panel: usize, name: &'static str, rises: bool| {
        let when = if panel == 0 { "" } else { "results wanted: " };
        swept.claim(
            &format!("{when}{name} {} with theta", if rises { "rises" } else { "falls" }),
            &[(panel, name)],
            |lines| {
                let ends = ends(&lines[0]);
                let (what, value) = match rises {
                    true => ("at theta 1 as a multiple of at 0", ends),
                    false => ("at theta 0 as a multiple of at 1", 1.0 / ends),
                };
                vec![Finding::new(what, value, Band::between(1.05, 5.0))]
            },
            Reasons {
                fails: "on two cores what skew saves in cache misses and costs in conflicts are about as much",
                differs: "rows that everyone wants stay in the cache of the one core that others share",
            },
        )
    };
    for panel in 0..2 {
        let claims = [("graph", true), ("partitioned", true), ("occ", false)];
        figure.claims.extend(claims.map(|(name, rises)| judge(panel, name, rises)));
    }
    Ok(figure)
}
