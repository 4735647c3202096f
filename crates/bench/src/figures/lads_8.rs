//! `lads-8`: YCSB throughput against the share of writes (LADS, figure 8).

use super::lads;
use crate::chart::Axis;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along, ends, spread};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-8", title: "YCSB throughput against the share of writes, theta 0.8", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::ycsb(laboratory).with(&[("theta", &0.8)]),
        engines: lads::ENGINES,
        panels: vec![
            Panel::new("no cross-partition calls", &[("cross", &0)]),
            Panel::new("10 % cross-partition calls", &[("cross", &0.1)]),
        ],
        axis: Axis::linear("share of writes"),
        points: along("writes", laboratory.choose(&[0.0, 0.5, 1.0], &[0.0, 0.25, 0.5, 0.75, 1.0])),
        seconds: laboratory.choose(1.2, 8.0),
    };
    let swept = sweep.run_in_rounds(laboratory, lads::rounds(laboratory))?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = vec![
        swept.claim(
            "occ falls sharply with the share of writes",
            &[(0, "occ")],
            |lines| {
                (ends(&lines[0]) < 0.7, format!("at 100 % writes {:.2} times that at 0 %", ends(&lines[0])))
            },
            "with few threads few calls overlap: what occ loses at commit is little",
        ),
        swept.claim(
            "graph does not depend much on the share of writes",
            &[(0, "graph")],
            |lines| (spread(&lines[0]) <= 1.3, format!("highest {:.2} times the lowest", spread(&lines[0]))),
            "a write costs a version, a read does not",
        ),
        swept.claim(
            "with cross-partition calls partitioned falls, graph does not",
            &[(0, "partitioned"), (1, "partitioned"), (0, "graph"), (1, "graph")],
            |lines| {
                let mean = |line: &[f64]| line.iter().sum::<f64>() / line.len() as f64;
                let (fall, stay) = (mean(&lines[1]) / mean(&lines[0]), mean(&lines[3]) / mean(&lines[2]));
                (fall < 0.8 && stay > 0.85, format!("partitioned {fall:.2} times, graph {stay:.2} times"))
            },
            "with two threads a call that crosses stops one other thread, not 23",
        ),
    ];
    Ok(figure)
}
