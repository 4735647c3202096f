//! `lads-11`: YCSB throughput against the share of cross-partition calls (LADS, figure 11).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, Swept, along, spread};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-11", title: "YCSB throughput against the share of cross-partition calls", make };

/// Both ways to wait: the paper's, and ours.
const ENGINES: &[&str] = &["graph", "partitioned", "partitioned waiting=lends", "dora", "occ"];

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let panel = |theta: &f64| Panel::new(format!("theta {theta}"), &[("theta", theta)]);
    let with_results = Panel::new("theta 0.5, results wanted", &[("theta", &0.5), ("results", &"on")]);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::ycsb(laboratory),
        engines: ENGINES,
        panels: lads::CONTENTION.iter().map(panel).chain([with_results]).collect(),
        axis: Axis::linear("share of cross-partition calls"),
        points: along("cross", laboratory.choose(&lads::CROSS_QUICK[..], &lads::CROSS)),
        seconds: laboratory.choose(0.6, 3.0),
    };
    let swept = sweep.run(laboratory, lads::rounds(laboratory))?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    for (panel, theta) in lads::CONTENTION.iter().enumerate() {
        claims(&swept, panel, &format!("theta {theta}"), &mut figure);
    }
    claims(&swept, lads::CONTENTION.len(), "theta 0.5, results wanted", &mut figure);
    Ok(figure)
}

/// The claims on one level of contention, for the axis of [`lads::CROSS`].
pub fn claims(swept: &Swept, panel: usize, title: &str, figure: &mut Figure) {
    figure.claims.push(swept.claim(
        &format!("{title}: partitioned collapses as soon as calls cross partitions"),
        &[(panel, "partitioned")],
        |lines| {
            let fall = lines[0][0] / lines[0][1];
            vec![Finding::new("at 0 % as a multiple of at 1 %", fall, Band::between(2.0, 20.0))]
        },
        Reasons {
            fails: "a call that crosses stops two partitions: here one thread waits for the other, or goes on with \
                    partitions that are not stopped; in the paper many of 24 wait",
            differs: "a thread that waits sleeps, and is late when its turn comes",
        },
    ));
    for name in ["graph", "occ"] {
        figure.claims.push(swept.claim(
            &format!("{title}: {name} is robust"),
            &[(panel, name)],
            |lines| {
                vec![Finding::new("highest as a multiple of the lowest", spread(&lines[0]), Band::flat(1.18))]
            },
            Reasons {
                fails: "calls that cross are also calls whose records are further apart in memory",
                differs: "",
            },
        ));
    }
}
