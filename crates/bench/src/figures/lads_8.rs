//! `lads-8`: YCSB throughput against the share of writes (LADS, figure 8).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, Swept, along, ends, spread};
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
            Panel::new("no cross-partition calls, results wanted", &[("cross", &0), ("results", &"on")]),
            Panel::new("10 % cross-partition calls, results wanted", &[("cross", &0.1), ("results", &"on")]),
        ],
        axis: Axis::linear("share of writes"),
        points: along("writes", laboratory.choose(&[0.0, 0.5, 1.0], &[0.0, 0.25, 0.5, 0.75, 1.0])),
        seconds: laboratory.choose(1.0, 8.0),
    };
    let swept = sweep.run(laboratory, lads::rounds(laboratory))?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = claims(&swept, 0, "");
    figure.claims.extend(claims(&swept, 2, "results wanted: "));
    Ok(figure)
}

/// The claims on two panels, the first without calls that cross.
fn claims(swept: &Swept, first: usize, when: &str) -> Vec<Claim> {
    vec![
        swept.claim(
            &format!("{when}occ falls sharply with the share of writes"),
            &[(first, "occ")],
            |lines| {
                let fall = 1.0 / ends(&lines[0]);
                vec![Finding::new(
                    "without writes as a multiple of only writes",
                    fall,
                    Band::between(1.5, 10.0),
                )]
            },
            Reasons {
                fails: "with few threads few calls overlap: what occ loses at commit is little",
                differs: "calls run again that had nobody in their way in the paper",
            },
        ),
        swept.claim(
            &format!("{when}graph does not depend much on the share of writes"),
            &[(first, "graph")],
            |lines| {
                vec![Finding::new("highest as a multiple of the lowest", spread(&lines[0]), Band::flat(1.3))]
            },
            Reasons {
                fails: "a write costs a version, a read does not; where results are wanted, the actions of a call \
                        have to bring it to its end together, too",
                differs: "",
            },
        ),
        swept.claim(
            &format!("{when}with cross-partition calls partitioned falls, graph does not"),
            &[(first, "partitioned"), (first + 1, "partitioned"), (first, "graph"), (first + 1, "graph")],
            |lines| {
                let mean = |line: &[f64]| line.iter().sum::<f64>() / line.len() as f64;
                let (fall, stay) = (mean(&lines[0]) / mean(&lines[1]), mean(&lines[3]) / mean(&lines[2]));
                vec![
                    Finding::new(
                        "partitioned without as a multiple of with",
                        fall,
                        Band::between(1.25, 20.0),
                    ),
                    Finding::new("graph with as a multiple of without", stay, Band::equal(1.18)),
                ]
            },
            Reasons {
                fails: "with two threads a call that crosses stops one other thread, not 23",
                differs: "a thread that waits here sleeps, and is late when its turn comes",
            },
        ),
    ]
}
