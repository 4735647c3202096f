//! `lads-15`, `lads-16`: throughput and latency against the batch size (LADS, figures 15 and 16).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, Swept, along, ends};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// Throughput, as `fabius bench list` shows it.
pub const THROUGHPUT: FigureKind =
    FigureKind { id: "lads-15", title: "YCSB throughput against batch size", make: make_throughput };

/// Latency, as `fabius bench list` shows it.
pub const LATENCY: FigureKind =
    FigureKind { id: "lads-16", title: "YCSB latency against batch size", make: make_latency };

const FULL: &[u64] = &[1, 4, 16, 64, 256, 1024, 4096, 16_384];
const QUICK: &[u64] = &[1, 16, 128, 1024, 8192];

fn sweep(laboratory: &mut Laboratory<'_>, figure: &mut Figure) -> Result<Swept> {
    let sweep = Sweep {
        workload: &WORKLOAD,
        // One batch on the way from each thread: an engine's batch is what the threads have handed in.
        base: lads::ycsb(laboratory).with(&[("in_flight", &1)]),
        engines: &["graph"],
        panels: vec![
            Panel::new("theta 0.5", &[("theta", &0.5)]),
            Panel::new("theta 0.9", &[("theta", &0.9)]),
        ],
        axis: Axis::log("calls that each thread hands in together"),
        points: along("batch", laboratory.choose(QUICK, FULL)),
        seconds: laboratory.choose(1.5, 3.0),
    };
    let swept = sweep.run(laboratory)?;
    figure.notes = lads::notes(laboratory);
    figure.notes.extend(swept.notes());
    Ok(swept)
}

fn make_throughput(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let swept = sweep(laboratory, &mut figure)?;
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    for (panel, theta) in [0.5, 0.9].into_iter().enumerate() {
        figure.claims.push(swept.claim(
            &format!("theta {theta}: throughput rises with the batch to a plateau"),
            &[(panel, "graph")],
            |lines| {
                let line = &lines[0];
                let last = line[line.len() - 1] / line[line.len() - 2];
                vec![
                    Finding::new(
                        "largest batch as a multiple of the smallest",
                        ends(line),
                        Band::between(1.3, 10.0),
                    ),
                    Finding::new("largest as a multiple of the one before", last, Band::equal(1.25)),
                ]
            },
            Reasons {
                fails: "very large batches leave the cache before they are executed",
                differs: "a batch of one call pays for a whole round of all workers",
            },
        ));
    }
    Ok(figure)
}

fn make_latency(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let swept = sweep(laboratory, &mut figure)?;
    swept.show(&mut figure, "mean commit latency, µs", |sample| sample.commit_us.mean);
    for (panel, theta) in [0.5, 0.9].into_iter().enumerate() {
        figure.claims.push(swept.claim_of(
            |sample| sample.commit_us.mean,
            &format!("theta {theta}: latency grows with the batch"),
            &[(panel, "graph")],
            |lines| {
                let line = &lines[0];
                let least = line.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::MAX, f64::min);
                vec![
                    Finding::new(
                        "largest batch as a multiple of the smallest",
                        ends(line),
                        Band::between(1.5, 1e4),
                    ),
                    Finding::new("least growth from one batch to the next", least, Band::between(0.95, 1e4)),
                ]
            },
            Reasons { fails: "small batches wait for each other", differs: "" },
        ));
    }
    Ok(figure)
}
