//! `doppel-phase`: read latency and throughput against the length of phases (Doppel, "phase length and read
//! latency").

use crate::chart::Axis;
use crate::claim::Claim;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along, ends};
use crate::workloads::like::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-phase", title: "read latency and throughput against phase length", make };

/// The split engine's setting: milliseconds of a split phase.
const PHASE: &str = "phase_ms";

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let rows = laboratory.choose(100_000, 1_000_000);
    let base =
        WORKLOAD.defaults().with(&[("theta", &1.4), ("users", &rows), ("pages", &rows), ("batch", &16)]);
    let can_be_set = base.has(PHASE);
    let lengths_ms: &[u64] = if can_be_set { &[1, 2, 5, 10, 20, 50, 100] } else { &[10] };
    let sweep = Sweep {
        workload: &WORKLOAD,
        base,
        engines: &["split"],
        panels: vec![
            Panel::new("half reads, half writes", &[]),
            Panel::new("90 % reads", &[("writes", &0.1)]),
        ],
        axis: Axis::log("milliseconds of a split phase"),
        points: along(PHASE, lengths_ms),
        seconds: laboratory.choose(2.5, 10.0),
    };
    let swept = sweep.run(laboratory)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    swept.show(&mut figure, "mean read latency, µs", |sample| sample.result_us.mean);
    let (latency, throughput) =
        ("longer phases make reads wait longer", "longer phases give more throughput");
    if !can_be_set {
        let why = "the length of phases cannot be set in this build";
        figure.claims = vec![Claim::not_measured(latency, why), Claim::not_measured(throughput, why)];
        return Ok(figure);
    }
    let judge = |lines: &[Vec<f64>]| {
        (ends(&lines[0]) > 1.1, format!("longest {:.2} times the shortest", ends(&lines[0])))
    };
    figure.claims = vec![
        swept.claim_of(
            |sample| sample.result_us.mean,
            latency,
            &[(0, "split")],
            judge,
            "reads that are stashed end a phase early",
        ),
        swept.claim(throughput, &[(0, "split")], judge, "reconciling two slices costs little"),
    ];
    Ok(figure)
}
