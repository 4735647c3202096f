//! `lazy-3`: throughput against the bound on chain length (lazy evaluation, figure 3).

use crate::chart::Axis;
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, Swept, along, ends, spread};
use crate::workloads::rmw10::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-3", title: "throughput against the bound on chain length, lazy and eager", make };

const BOUNDS: [u64; 9] = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];
const DISTRIBUTIONS: [&str; 2] = ["normal", "uniform"];

/// The engine that runs calls at once.
const EAGER: &str = "2pl";
/// How often each point is measured.
const ROUNDS: usize = 5;

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let records = laboratory.choose(200_000u64, 1_000_000);
    let bounds: Vec<u64> = BOUNDS.into_iter().step_by(laboratory.choose(2, 1)).collect();
    let panel =
        |distribution| Panel::new(format!("rmw10, {distribution}"), &[("distribution", &distribution)]);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[("records", &records), ("memory_mb", &4096), ("idle", &"off")]),
        engines: &["lazy", EAGER],
        panels: DISTRIBUTIONS.map(panel).to_vec(),
        axis: Axis::log("bound on chain length"),
        points: along("chain_bound", &bounds),
        seconds: laboratory.choose(1.5, 4.0),
    };
    let swept = sweep.run(laboratory, ROUNDS)?;
    let mut figure = Figure { claims: claims(&swept), notes: swept.notes(), ..Figure::default() };
    figure.notes.push(format!(
        "{records} records of 1024 bytes; eager does not depend on the bound, and is measured beside each"
    ));
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    Ok(figure)
}

fn claims(swept: &Swept) -> Vec<Claim> {
    let lines = |panel| [(panel, "lazy"), (panel, EAGER)];
    let lead = |lines: &[Vec<f64>]| -> Vec<f64> {
        lines[0].iter().zip(&lines[1]).map(|(lazy, eager)| lazy / eager.max(1e-9)).collect()
    };
    vec![
        swept.claim(
            "normal: lazy is significantly ahead of eager",
            &lines(0),
            |lines| {
                let last = lead(lines)[lines[0].len() - 1];
                let what = "lazy as a multiple of eager at the highest bound";
                vec![Finding::new(what, last, Band::between(1.2, 4.0))]
            },
            Reasons {
                fails: "what a chain saves in cache misses does not outweigh the cost of keeping it here",
                differs: "eager threads wait for each other's rows, which are near each other",
            },
        ),
        swept.claim(
            "normal: the lead grows with the bound",
            &lines(0),
            |lines| {
                let growth = ends(&lead(lines));
                let what = "the lead at the highest bound as a multiple of that at the lowest";
                vec![Finding::new(what, growth, Band::between(1.05, 4.0))]
            },
            Reasons {
                fails: "calls that write the same records are already close together in time at low bounds",
                differs: "at a bound of 1 every call is handed on by itself, which costs more than a run of the backlog",
            },
        ),
        swept.claim(
            "uniform: lazy and eager are equal",
            &lines(1),
            |lines| {
                let mean = lead(lines).iter().sum::<f64>() / lines[0].len() as f64;
                vec![Finding::new("lazy as a multiple of eager, on average", mean, Band::equal(1.25))]
            },
            Reasons {
                fails: "behind: two threads share one lane, and each call is handled twice; ahead: a now-phase looks keys up \
                        in batches and takes no locks",
                differs: "",
            },
        ),
        swept.claim(
            "uniform: lazy is flat in the bound",
            &lines(1),
            |lines| {
                vec![Finding::new("highest as a multiple of the lowest", spread(&lines[0]), Band::flat(1.3))]
            },
            Reasons {
                fails: "at a bound of 1 every call is handed on by itself, which costs more than a run of the backlog",
                differs: "",
            },
        ),
    ]
}
