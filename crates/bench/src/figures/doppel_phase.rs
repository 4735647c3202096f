//! `doppel-phase`: read latency and throughput against the length of phases (Doppel, "phase length and read
//! latency").

use super::doppel;
use crate::chart::Axis;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Point, Sweep, ends};
use crate::workloads::like::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-phase", title: "read latency and throughput against phase length", make };

/// Milliseconds of a split phase.
const LENGTHS_MS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];
/// Batches that each client has on the way for a millisecond of a phase. A phase ends when nothing is left to begin,
/// and answers wait for its end: clients with less on the way than it takes would cut it short.
const BATCHES_PER_MS: u64 = 16;

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let rows = laboratory.choose(100_000, 1_000_000);
    let points = LENGTHS_MS.into_iter().map(|length_ms| Point {
        x: length_ms as f64,
        label: length_ms.to_string(),
        set: vec![
            ("phase_ms", length_ms.to_string()),
            ("in_flight", (length_ms * BATCHES_PER_MS).to_string()),
        ],
        threads: None,
    });
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[
            ("theta", &1.4),
            ("users", &rows),
            ("pages", &rows),
            ("batch", &64),
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
    let swept = sweep.run_in_turns(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    swept.show(&mut figure, "mean read latency, µs", |sample| sample.result_us.mean);
    figure.notes.push(format!("{BATCHES_PER_MS} batches of 64 calls on the way per client and millisecond"));
    let judge = |lines: &[Vec<f64>]| {
        (ends(&lines[0]) > 1.1, format!("longest {:.2} times the shortest", ends(&lines[0])))
    };
    figure.claims = vec![
        swept.claim_of(
            |sample| sample.result_us.mean,
            "longer phases make reads wait longer",
            &[(0, "split")],
            judge,
            "phases end when nothing is left to begin",
        ),
        swept.claim(
            "longer phases give more throughput",
            &[(0, "split")],
            judge,
            "reconciling two slices costs little",
        ),
    ];
    Ok(figure)
}
