//! `lads-14`: what logging costs (LADS, figure 14).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along_threads};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-14", title: "YCSB throughput with the log synced and not", make };

/// The log is written.
const WRITTEN: &str = "graph";
/// The log is synced before callers are told.
const SYNCED: &str = "graph synced";

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::ycsb(laboratory),
        engines: &[WRITTEN, SYNCED],
        panels: vec![
            Panel::new("nobody wants results", &[]),
            Panel::new("results wanted", &[("results", &"on")]),
        ],
        axis: Axis::linear("threads"),
        points: along_threads(&lads::THREADS),
        seconds: laboratory.choose(5.0, 10.0),
    };
    let swept = sweep.run(laboratory, lads::ROUNDS)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    figure.notes.push(
        "the log is the order of calls and cannot be left out: the paper's runs without logging are those \
         without syncing here"
            .to_string(),
    );
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = [(0, ""), (1, "results wanted: ")].map(|(panel, when)| swept.claim(
        &format!("{when}logging costs about 15 %"),
        &[(panel, WRITTEN), (panel, SYNCED)],
        |lines| {
            let cost = 1.0 - lines[1].iter().sum::<f64>() / lines[0].iter().sum::<f64>();
            vec![Finding::new("%, over all numbers of threads", cost * 100.0, Band::within(10.0, 20.0))]
        },
        Reasons {
            fails: "if it costs more, the disk takes longer to sync than two threads can make calls for; if less, what \
                    is logged are calls and not their actions",
            differs: "",
        },
    )).to_vec();
    Ok(figure)
}
