//! `doppel-phase`: read latency and throughput against the length of phases (Doppel, "phase length and read
//! latency").

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Point, Sweep, ends};
use crate::workloads::like::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-phase", title: "read latency and throughput against phase length", make };

/// Milliseconds of a split phase.
const LENGTHS_MS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];
/// Batches that each client has on the way, whatever the length: so many that no phase ends because nothing is left to
/// begin, and the same for all, since latency follows from what is on the way.
const IN_FLIGHT: u64 = 1600;

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let rows = laboratory.choose(100_000, 1_000_000);
    let points = LENGTHS_MS.into_iter().map(|length_ms| Point {
        x: length_ms as f64,
        label: length_ms.to_string(),
        set: vec![("phase_ms", length_ms.to_string())],
        threads: None,
    });
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[
            ("theta", &1.4),
            ("users", &rows),
            ("pages", &rows),
            ("batch", &64),
            ("in_flight", &IN_FLIGHT),
        ]),
        engines: &["split"],
        panels: vec![
            Panel::new("half reads, half writes", &[]),
            Panel::new("90 % reads", &[("writes", &0.1)]),
        ],
        axis: Axis::log("milliseconds of a split phase"),
        points: points.collect(),
        seconds: laboratory.choose(2.5, 10.0),
    };
    let swept = sweep.run(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    swept.show(&mut figure, "mean read latency, µs", |sample| sample.result_us.mean);
    figure.notes.push(format!("{IN_FLIGHT} batches of 64 calls on the way per client, at all points"));
    let judge = |lines: &[Vec<f64>]| {
        vec![Finding::new(
            "longest phase as a multiple of the shortest",
            ends(&lines[0]),
            Band::between(1.1, 100.0),
        )]
    };
    figure.claims = vec![
        swept.claim_of(
            |sample| sample.result_us.mean,
            "longer phases make reads wait longer",
            &[(0, "split")],
            judge,
            Reasons { fails: "reads that only read come before the phase", differs: "" },
        ),
        swept.claim(
            "longer phases give more throughput",
            &[(0, "split")],
            judge,
            Reasons { fails: "reconciling two slices costs little", differs: "" },
        ),
    ];
    Ok(figure)
}
