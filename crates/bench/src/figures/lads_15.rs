//! `lads-15`, `lads-16`: throughput and latency against the batch size (LADS, figures 15 and 16).

use super::lads;
use crate::chart::Axis;
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
                let rise = ends(line);
                let holds = rise >= 1.3 && (0.75..=1.25).contains(&last);
                (holds, format!("largest {rise:.2} times the smallest, {last:.2} times the one before"))
            },
            "very large batches leave the cache before they are executed",
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
                let grows = lines[0].windows(2).all(|pair| pair[1] >= pair[0] * 0.95);
                (grows, format!("largest {:.0} times the smallest", ends(&lines[0])))
            },
            "small batches wait for each other",
        ));
    }
    Ok(figure)
}
