//! `lazy-8`: TPC-C throughput against warehouses (lazy evaluation, figure 8).

use crate::chart::{Axis, Chart, Series};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::repeated::{Repeated, SPREAD};
use crate::table::Table;
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

/// How often one warehouse is measured, with the engines in turns: two claims are about it.
const ROUNDS: usize = 5;
/// How often other numbers of warehouses are.
const ROUNDS_OF_OTHERS: usize = 3;
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
        for _ in 0..if at == 0 { ROUNDS } else { ROUNDS_OF_OTHERS } {
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
            line.push(Repeated::of(measured));
        }
    }

    let mut table = Table::new(std::iter::once("warehouses").chain(SERIES.iter().map(|(name, ..)| *name)));
    for (at, count) in warehouses.iter().enumerate() {
        table.row(
            std::iter::once(count.to_string()).chain(throughput.iter().map(|line| line[at].to_string())),
        );
    }
    let series = SERIES.iter().zip(&throughput).map(|((name, ..), line)| {
        Series::new(*name, warehouses.iter().map(|&count| count as f64).zip(line.iter().copied()))
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
            format!(
                "medians of {ROUNDS} rounds with {} warehouse, of {ROUNDS_OF_OTHERS} with more, the engines in turns; bars, \
                 and percents in tables: {SPREAD}",
                warehouses[0]
            ),
        ],
    })
}

/// What the paper says of eager.
const EAGER_RISES: &str = "eager rises to about 12 warehouses and levels off";

fn claims(throughput: &[Vec<Repeated>], warehouses: &[u64]) -> Vec<Claim> {
    let [eager, one, hundred] =
        [0, 1, 2].map(|line: usize| throughput[line].iter().map(|point| point.value).collect::<Vec<_>>());
    let rise = eager.iter().copied().fold(f64::MIN, f64::max) / eager[0];
    let at_twelve = warehouses.iter().position(|&count| count >= 12);
    let level = at_twelve.map(|at| eager[eager.len() - 1] / eager[at]);
    let mut rises =
        vec![Finding::new("eager's highest as a multiple of at 1 warehouse", rise, Band::between(1.2, 12.0))];
    let last = warehouses[warehouses.len() - 1];
    rises.extend(level.map(|level| {
        Finding::new(format!("eager at {last} warehouses as a multiple of at 12"), level, Band::equal(1.2))
    }));
    let ahead = |bound: u64, lazy: f64| {
        let what = format!("lazy with a bound of {bound} as a multiple of eager");
        Finding::new(what, lazy / eager[0], Band::between(1.5, 10.0))
    };
    vec![
        Claim::new(
            "with 1 warehouse both lazies are substantially ahead of eager",
            vec![ahead(1, one[0]), ahead(100, hundred[0])],
            Reasons {
                fails: "the paper's eager threads wait for each other; with two threads contention is a small part of the cost",
                differs: "",
            },
        ),
        Claim::new(
            "with 1 warehouse a bound of 100 is ahead of a bound of 1",
            vec![Finding::new("100 as a multiple of 1", hundred[0] / one[0], Band::between(1.0, 5.0))],
            Reasons {
                fails: "frequent external reads keep chains short, and short chains have little to gain",
                differs: "",
            },
        ),
        match level {
            Some(_) => Claim::new(
                EAGER_RISES,
                rises,
                Reasons {
                    fails: "two threads wait for each other at most once at a time, so that one warehouse costs eager little",
                    differs: "",
                },
            ),
            None => Claim::not_measured(EAGER_RISES, "points from 12 warehouses on are left out in a hurry"),
        },
    ]
}
