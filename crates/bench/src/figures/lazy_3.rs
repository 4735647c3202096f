//! `lazy-3`: throughput against the bound on chain length (lazy evaluation, figure 3).

use crate::chart::{Axis, Chart, Series};
use crate::claim::Claim;
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
    let ends = format!("{first:.2} times eager at the lowest bound, {last:.2} times at the highest");
    let spread =
        uniform.iter().copied().fold(f64::MIN, f64::max) / uniform.iter().copied().fold(f64::MAX, f64::min);
    let mean = uniform.iter().sum::<f64>() / uniform.len() as f64 / eager[1];
    vec![
        Claim::new(
            "normal: lazy is significantly ahead of eager",
            last >= 1.2,
            ends.clone(),
            "what a chain saves in cache misses does not outweigh the cost of keeping it here",
        ),
        Claim::new(
            "normal: the lead grows with the bound",
            last > first * 1.05,
            ends,
            "calls that write the same records are already close together in time at low bounds",
        ),
        Claim::new(
            "uniform: lazy and eager are equal",
            (0.75..=1.33).contains(&mean),
            format!("lazy is {mean:.2} times eager on average"),
            if mean > 1.0 {
                "lazy is ahead: its now-phase looks keys up in batches and takes no locks"
            } else {
                "lazy is behind: two threads share one lane, and each call is handled twice"
            },
        ),
        Claim::new(
            "uniform: lazy is flat in the bound",
            spread <= 1.3,
            format!("the highest throughput is {spread:.2} times the lowest"),
            "at a bound of 1 every call is handed on by itself, which costs more than a run of the backlog",
        ),
    ]
}
