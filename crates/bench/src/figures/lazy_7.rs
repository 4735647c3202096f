//! `lazy-7`: latency of New-Order and Stock-Level (lazy evaluation, figure 7).

use crate::arrivals::Arrivals;
use crate::chart::{Axis, Chart, cumulative};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::recorder::{self, Latencies};
use crate::table::{Table, grouped, time};
use crate::workloads::tpcc::KIND as WORKLOAD;
use fabius::{EngineKind, Result};
use std::time::Duration;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-7", title: "latency of New-Order and Stock-Level, lazy and eager", make };

/// The loads, as parts of what eager can do at most with one warehouse: one that it sustains, which claims are about,
/// and one nearer to its limit.
const LOADS: [f64; 2] = [HALF, 0.8];
/// Few calls wait for anything.
const HALF: f64 = 0.5;
/// Calls that wait for their outcome at a time, at most; more are refused.
const QUEUE_CALLS: usize = 1000;

/// How often the lines are measured, in turns, each time at loads by what eager does then: a load that lazy is
/// offered in a slow minute must not be what eager did in a fast one.
const ROUNDS: usize = 3;
/// What calls leave for later, and what the rows take, in a hurry and in full: as in `lazy-8`.
const RESERVED_BYTES: (u64, u64) = (1 << 30, 8 << 30);

/// One line of the figure: the calls of all rounds.
struct Line {
    name: String,
    engine: EngineKind,
    warehouses: u64,
    load: f64,
    /// The mean of the rounds.
    load_tps: f64,
    /// Calls that found the queue full.
    refused: u64,
    new_order: Latencies,
    stock_level: Latencies,
}

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    laboratory.reserve(laboratory.choose(RESERVED_BYTES.0, RESERVED_BYTES.1))?;
    let warehouses = [1, laboratory.choose(4u64, 20)];
    let (probe, each_ms) = laboratory.choose((1.0, 700), (3.0, 5_000));
    let mut lines = Vec::new();
    for count in warehouses {
        for (word, engine) in [("eager", EngineKind::TwoPhaseLocking), ("lazy", EngineKind::Lazy)] {
            lines.extend(LOADS.map(|load| Line {
                name: format!("{word}, {count} warehouse{}", if count == 1 { "" } else { "s" }),
                engine,
                warehouses: count,
                load,
                load_tps: 0.0,
                refused: 0,
                new_order: recorder::latencies(),
                stock_level: recorder::latencies(),
            }));
        }
    }
    for _ in 0..ROUNDS {
        let most_tps = most_of_eager(laboratory, probe)?;
        for lines in lines.chunks_mut(LOADS.len()) {
            // A database of its own for each, since orders pile up.
            let settings = WORKLOAD.defaults().with(&[("warehouses", &lines[0].warehouses)]);
            let target = laboratory.target(lines[0].engine, &WORKLOAD, &settings)?;
            for line in lines {
                let load_tps = most_tps * line.load;
                let arrivals = Arrivals { queue_calls: QUEUE_CALLS, ..Arrivals::steady(load_tps) };
                let offered = arrivals.over(Duration::from_millis(each_ms));
                let what = format!("{} at {} calls/s", line.name, grouped(load_tps));
                let open = laboratory.offer(&target, &WORKLOAD, &settings, &offered, &what)?;
                line.refused += open.refused;
                let seen = open.measured.seen;
                line.load_tps += load_tps / ROUNDS as f64;
                for (all, of) in [
                    (&mut line.new_order, seen.of_kind("new-order").0),
                    (&mut line.stock_level, seen.of_kind("stock-level").1),
                ] {
                    all.add(of).expect("histograms of equal bounds");
                }
            }
            laboratory.finish(target, &WORKLOAD, &settings)?;
        }
    }

    let mut table = Table::new([
        "",
        "load, calls/s",
        "refused",
        "New-Order p50",
        "p90",
        "p99",
        "Stock-Level p50",
        "p90",
        "p99",
    ]);
    for line in &lines {
        let cells = [&line.new_order, &line.stock_level]
            .into_iter()
            .flat_map(|of| [0.5, 0.9, 0.99].map(|quantile| time(of.value_at_quantile(quantile))));
        table.row(
            [line.name.clone(), grouped(line.load_tps), grouped(line.refused as f64)]
                .into_iter()
                .chain(cells),
        );
    }
    let chart = |title: &str, of: &dyn Fn(&Line) -> &Latencies| Chart {
        title: title.to_string(),
        x: Axis::log("latency, µs"),
        y: Axis::linear("share of calls"),
        series: at(&lines, HALF).map(|line| cumulative(line.name.clone(), of(line))).collect(),
    };
    Ok(Figure {
        charts: vec![
            chart("New-Order: until the outcome is known", &|line| &line.new_order),
            chart("Stock-Level: until the answer is there", &|line| &line.stock_level),
        ],
        tables: vec![("latency from when a call was due".to_string(), table)],
        claims: claims(&lines),
        notes: vec![
            format!(
                "full mix; calls come at random times, at {} % of what eager does at most with 1 warehouse",
                LOADS.map(|load| format!("{:.0}", load * 100.0)).join(", ")
            ),
            format!(
                "curves and claims are at {:.0} %, which eager sustains; at most {QUEUE_CALLS} calls wait, others are refused",
                HALF * 100.0
            ),
            "one thread makes the calls and runs lazy's now-phases, the others do the rest".to_string(),
            format!("{ROUNDS} rounds, the lines in turns, each round's loads by what eager does then"),
            format!("the paper has 1 and 20 warehouses, here {} and {}", warehouses[0], warehouses[1]),
        ],
    })
}

/// How many calls a second the eager engine makes at most with one warehouse, measured for so many seconds.
fn most_of_eager(laboratory: &mut Laboratory<'_>, seconds: f64) -> Result<f64> {
    let settings = WORKLOAD.defaults();
    let target = laboratory.target(EngineKind::TwoPhaseLocking, &WORKLOAD, &settings)?;
    let what = "what eager can do with 1 warehouse";
    let measured = laboratory.measure(&target, &WORKLOAD, &settings, seconds, what)?;
    laboratory.finish(target, &WORKLOAD, &settings)?;
    Ok(measured.throughput_tps())
}

/// The lines at one of the loads.
fn at(lines: &[Line], load: f64) -> impl Iterator<Item = &Line> {
    lines.iter().filter(move |line| line.load == load)
}

fn claims(lines: &[Line]) -> Vec<Claim> {
    let find = |load, engine, one: bool| {
        at(lines, load)
            .find(|line| line.engine == engine && (line.warehouses == 1) == one)
            .expect("one of each engine with one warehouse and with more, at each load")
    };
    let pair = |load, one| (find(load, EngineKind::Lazy, one), find(load, EngineKind::TwoPhaseLocking, one));
    let ((lazy_one, eager_one), (lazy_many, eager_many)) = (pair(HALF, true), pair(HALF, false));
    let median = |latencies: &Latencies| latencies.value_at_quantile(0.5).max(1) as f64;
    let times = |eager: &Line, lazy: &Line| median(&eager.new_order) / median(&lazy.new_order);
    let (one, many) = (times(eager_one, lazy_one), times(eager_many, lazy_many));
    let apart = median(&lazy_many.new_order) / median(&lazy_one.new_order);
    let stock = |(lazy, eager): (&Line, &Line)| median(&lazy.stock_level) / median(&eager.stock_level);
    let (stock, stock_many) = (stock(pair(HALF, true)), stock(pair(HALF, false)));
    let lower =
        |times| Finding::new("eager's p50 as a multiple of lazy's", times, Band::between(10.0, 1000.0));
    let reasons = Reasons {
        fails: "eager keeps up with this load; what is left is the difference in work before the outcome",
        differs: "",
    };
    let comparable = |count: &str, ratio| {
        Finding::new(format!("lazy's p50 as a multiple of eager's, {count}"), ratio, Band::equal(2.0))
    };
    vec![
        Claim::new(
            "New-Order: with 1 warehouse lazy is at least 10 times lower than eager",
            vec![lower(one)],
            reasons,
        ),
        Claim::new(&format!("New-Order: the same with {}", lazy_many.warehouses), vec![lower(many)], reasons),
        Claim::new(
            "New-Order: lazy does not depend on the number of warehouses",
            vec![Finding::new(
                format!("p50 with {} as a multiple of with 1", lazy_many.warehouses),
                apart,
                Band::equal(1.5),
            )],
            Reasons {
                fails: "more warehouses are more rows, of which fewer are in the cache when a now-phase looks them up",
                differs: "",
            },
        ),
        Claim::new(
            "Stock-Level: lazy and eager are comparable",
            vec![
                comparable("1 warehouse", stock),
                comparable(&format!("{} warehouses", lazy_many.warehouses), stock_many),
            ],
            Reasons { fails: "an answer waits for what it needs to be substantiated", differs: "" },
        ),
    ]
}
