//! `lads-9`: throughput against threads, all load on one partition (LADS, figure 9).

use super::lads;
use crate::chart::Axis;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along_threads, ends, spread};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-9", title: "YCSB throughput against threads, all load on one partition", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let panel = |theta: &f64| Panel::new(format!("theta {theta}"), &[("theta", theta)]);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::ycsb(laboratory).with(&[("active_partitions", &1)]),
        engines: lads::ENGINES,
        panels: lads::CONTENTION.iter().map(panel).collect(),
        axis: Axis::linear("threads"),
        points: along_threads(&lads::THREADS),
        seconds: laboratory.choose(1.0, 4.0),
    };
    let swept = sweep.run(laboratory)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    for (panel, theta) in lads::CONTENTION.iter().enumerate() {
        figure.claims.push(swept.claim(
            &format!("theta {theta}: partitioned is flat, since one thread owns the partition"),
            &[(panel, "partitioned")],
            |lines| (spread(&lines[0]) <= 1.2, format!("highest {:.2} times the lowest", spread(&lines[0]))),
            "making and logging calls is part of the work, and is shared among the threads",
        ));
        figure.claims.push(swept.claim(
            &format!("theta {theta}: graph scales with the threads"),
            &[(panel, "graph")],
            |lines| (ends(&lines[0]) >= 1.5, format!("most threads {:.2} times one", ends(&lines[0]))),
            "construction is ordered by the log, which one thread at a time appends to",
        ));
    }
    Ok(figure)
}
