//! `lazy-3`: throughput against the bound on chain length (lazy evaluation, figure 3).

use crate::chart::{Axis, Chart, Series};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::table::{Table, grouped};
use crate::workloads::rmw10::KIND as WORKLOAD;
use fabius::{EngineKind, Result};

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-3", title: "throughput against the bound on chain length, lazy and eager", make };

const BOUNDS: [u64; 9] = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];
const DISTRIBUTIONS: [&str; 2] = ["normal", "uniform"];

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let records = laboratory.choose(200_000u64, 1_000_000);
    let seconds = laboratory.choose(1.0, 4.0);
    let bounds: Vec<u64> = BOUNDS.into_iter().step_by(laboratory.choose(2, 1)).collect();
    let base = WORKLOAD.defaults().with(&[("records", &records), ("memory_mb", &4096), ("idle", &"off")]);

    let target = laboratory.target(EngineKind::TwoPhaseLocking, &WORKLOAD, &base)?;
    let mut eager = Vec::new();
    for distribution in DISTRIBUTIONS {
        let settings = base.with(&[("distribution", &distribution)]);
        eager
            .push(laboratory.measure(&target, &WORKLOAD, &settings, seconds, distribution)?.throughput_tps());
    }
    laboratory.finish(target, &WORKLOAD, &base)?;

    let target = laboratory.target(EngineKind::Lazy, &WORKLOAD, &base)?;
    let mut lazy = vec![Vec::new(); DISTRIBUTIONS.len()];
    for (line, distribution) in lazy.iter_mut().zip(DISTRIBUTIONS) {
        for &bound in &bounds {
            let settings = base.with(&[("distribution", &distribution), ("chain_bound", &bound)]);
            let what = format!("{distribution}, chain bound {bound}");
            line.push(laboratory.measure(&target, &WORKLOAD, &settings, seconds, &what)?.throughput_tps());
        }
    }
    laboratory.finish(target, &WORKLOAD, &base)?;

    let mut table =
        Table::new(["chain bound", "lazy normal", "eager normal", "lazy uniform", "eager uniform"]);
    for (at, bound) in bounds.iter().enumerate() {
        let numbers = [lazy[0][at], eager[0], lazy[1][at], eager[1]];
        table.row(std::iter::once(bound.to_string()).chain(numbers.map(grouped)));
    }
    let line = |name: &str, values: &dyn Fn(usize) -> f64| Series {
        name: name.to_string(),
        points: bounds.iter().enumerate().map(|(at, &bound)| (bound as f64, values(at))).collect(),
    };
    let chart = |at: usize| Chart {
        title: format!("rmw10, {}", DISTRIBUTIONS[at]),
        x: Axis::log("bound on chain length"),
        y: Axis::linear("calls/s"),
        series: vec![line("lazy", &|point| lazy[at][point]), line("eager 2PL", &|_| eager[at])],
    };
    Ok(Figure {
        tables: vec![("throughput, calls/s".to_string(), table)],
        charts: vec![chart(0), chart(1)],
        claims: claims(&lazy, &eager),
        notes: vec![format!(
            "{records} records of 1024 bytes; eager does not depend on the bound and is run once"
        )],
    })
}

fn claims(lazy: &[Vec<f64>], eager: &[f64]) -> Vec<Claim> {
    let (normal, uniform) = (&lazy[0], &lazy[1]);
    let ratios: Vec<f64> = normal.iter().map(|tps| tps / eager[0]).collect();
    let (first, last) = (ratios[0], ratios[ratios.len() - 1]);
    let spread =
        uniform.iter().copied().fold(f64::MIN, f64::max) / uniform.iter().copied().fold(f64::MAX, f64::min);
    let mean = uniform.iter().sum::<f64>() / uniform.len() as f64 / eager[1];
    let beside = |at: &str| format!("lazy as a multiple of eager at the {at} bound");
    vec![
        Claim::new(
            "normal: lazy is significantly ahead of eager",
            vec![Finding::new(beside("highest"), last, Band::between(1.2, 4.0))],
            Reasons {
                fails: "what a chain saves in cache misses does not outweigh the cost of keeping it here",
                differs: "eager threads wait for each other's rows, which are near each other",
            },
        ),
        Claim::new(
            "normal: the lead grows with the bound",
            vec![Finding::new(
                "the lead at the highest bound as a multiple of that at the lowest",
                last / first,
                Band::between(1.05, 4.0),
            )],
            Reasons {
                fails: "calls that write the same records are already close together in time at low bounds",
                differs: "at a bound of 1 every call is handed on by itself, which costs more than a run of the backlog",
            },
        ),
        Claim::new(
            "uniform: lazy and eager are equal",
            vec![Finding::new("lazy as a multiple of eager, on average", mean, Band::equal(1.25))],
            Reasons {
                fails: "behind: two threads share one lane, and each call is handled twice; ahead: a now-phase looks keys up \
                        in batches and takes no locks",
                differs: "",
            },
        ),
        Claim::new(
            "uniform: lazy is flat in the bound",
            vec![Finding::new("highest as a multiple of the lowest", spread, Band::flat(1.3))],
            Reasons {
                fails: "at a bound of 1 every call is handed on by itself, which costs more than a run of the backlog",
                differs: "",
            },
        ),
    ]
}
