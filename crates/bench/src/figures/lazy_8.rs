//! `lazy-8`: TPC-C throughput against warehouses (lazy evaluation, figure 8).

use crate::chart::{Axis, Chart, Series};
use crate::claim::Claim;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::measured::middle;
use crate::table::{Table, grouped};
use crate::workloads::tpcc::KIND as WORKLOAD;
use fabius::{EngineKind, Result};

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-8", title: "TPC-C throughput against warehouses, eager, lazy-1, lazy-100", make };

const FULL: &[u64] = &[1, 2, 4, 8, 12, 16, 20];
const QUICK: &[u64] = &[1, 2, 4];
/// Engines with their chain bounds; eager has none.
const SERIES: [(&str, EngineKind, u64); 3] = [
    ("eager 2PL", EngineKind::TwoPhaseLocking, 1),
    ("lazy-1", EngineKind::Lazy, 1),
    ("lazy-100", EngineKind::Lazy, 100),
];

/// How often one warehouse is measured, with the engines in turns: the median counts, since two claims are about it.
const ROUNDS: usize = 5;
/// What a run leaves behind, 2 KB a call and more, and what the rows take, in a hurry and in full. New memory is not
/// what engines differ in, and its price is the machine's (`docs/decisions/memory-is-reserved.md`).
const RESERVED_BYTES: (u64, u64) = (1 << 30, 8 << 30);

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    laboratory.reserve(laboratory.choose(RESERVED_BYTES.0, RESERVED_BYTES.1))?;
    let warehouses = laboratory.choose(QUICK, FULL);
    let seconds = laboratory.choose(1.0, 5.0);
    let mut throughput = vec![Vec::new(); SERIES.len()];
    for (at, count) in warehouses.iter().enumerate() {
        let mut rounds = [const { Vec::new() }; SERIES.len()];
        for _ in 0..if at == 0 { ROUNDS } else { 1 } {
            for (measured, (name, engine, bound)) in rounds.iter_mut().zip(SERIES) {
                // A database of its own for each, since orders pile up.
                let settings = WORKLOAD.defaults().with(&[
                    ("warehouses", count),
                    ("chain_bound", &bound),
                    ("idle", &"off"),
                ]);
                let target = laboratory.target(engine, &WORKLOAD, &settings)?;
                let what = format!("{count} warehouses, {name}");
                measured.push(
                    laboratory.measure(&target, &WORKLOAD, &settings, seconds, &what)?.throughput_tps(),
                );
                laboratory.finish(target, &WORKLOAD, &settings)?;
            }
        }
        for (line, measured) in throughput.iter_mut().zip(rounds) {
            line.push(middle(measured, |&tps| tps));
        }
    }

    let mut table = Table::new(std::iter::once("warehouses").chain(SERIES.iter().map(|(name, ..)| *name)));
    for (at, count) in warehouses.iter().enumerate() {
        table.row(std::iter::once(count.to_string()).chain(throughput.iter().map(|line| grouped(line[at]))));
    }
    let series = SERIES.iter().zip(&throughput).map(|((name, ..), line)| Series {
        name: name.to_string(),
        points: warehouses.iter().map(|&count| count as f64).zip(line.iter().copied()).collect(),
    });
    Ok(Figure {
        charts: vec![Chart {
            title: "TPC-C, full mix".to_string(),
            x: Axis::linear("warehouses"),
            y: Axis::linear("calls/s"),
            series: series.collect(),
        }],
        tables: vec![("throughput, calls/s".to_string(), table)],
        claims: claims(&throughput, warehouses),
        notes: vec![
            "every call substantiated within the time counted".to_string(),
            format!("{} warehouse: median of {ROUNDS} rounds, the engines in turns", warehouses[0]),
        ],
    })
}

fn claims(throughput: &[Vec<f64>], warehouses: &[u64]) -> Vec<Claim> {
    let [eager, one, hundred] = [&throughput[0], &throughput[1], &throughput[2]];
    let rise = eager.iter().copied().fold(f64::MIN, f64::max) / eager[0];
    let at_twelve = warehouses.iter().position(|&count| count >= 12);
    let level = at_twelve.map(|at| eager[eager.len() - 1] / eager[at]);
    let two_cores =
        "two threads wait for each other at most once at a time, so that one warehouse costs eager little";
    vec![
        Claim::new(
            "with 1 warehouse both lazies are substantially ahead of eager",
            one[0] >= eager[0] * 1.5 && hundred[0] >= eager[0] * 1.5,
            format!(
                "lazy-1 {:.2} times eager, lazy-100 {:.2} times",
                one[0] / eager[0],
                hundred[0] / eager[0]
            ),
            "the paper's eager threads wait for each other; with two threads contention is a small part of the cost",
        ),
        Claim::new(
            "with 1 warehouse a bound of 100 is ahead of a bound of 1",
            hundred[0] > one[0],
            format!("lazy-100 is {:.2} times lazy-1", hundred[0] / one[0]),
            "frequent external reads keep chains short, and short chains have little to gain",
        ),
        Claim::new(
            "eager rises to about 12 warehouses and levels off",
            rise >= 1.2 && level.is_some_and(|level| (0.8..=1.2).contains(&level)),
            match level {
                Some(level) => format!(
                    "eager rises {rise:.2} times; from 12 to {} warehouses {level:.2} times",
                    warehouses[warehouses.len() - 1]
                ),
                None => format!(
                    "eager rises {rise:.2} times up to {} warehouses; more were not run",
                    warehouses[warehouses.len() - 1]
                ),
            },
            if level.is_none() { "points from 12 warehouses on are left out in a hurry" } else { two_cores },
        ),
    ]
}
