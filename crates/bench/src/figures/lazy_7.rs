//! `lazy-7`: latency of New-Order and Stock-Level (lazy evaluation, figure 7).

use crate::chart::{Axis, Chart, cumulative};
use crate::claim::Claim;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::open_loop::Arrivals;
use crate::recorder::Latencies;
use crate::table::{Table, grouped, time};
use crate::workloads::tpcc::KIND as WORKLOAD;
use fabius::{EngineKind, Result};
use std::time::Duration;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-7", title: "latency of New-Order and Stock-Level, lazy and eager", make };

/// The loads, as parts of what eager can do at most with one warehouse. In the paper threads always have a next call, so
/// that with one warehouse calls wait: for locks there, for one of two threads here.
const LOADS: [f64; 2] = [0.5, FULL];
const FULL: f64 = 1.0;

/// One line of the figure.
struct Line {
    name: String,
    engine: EngineKind,
    warehouses: u64,
    load: f64,
    load_tps: f64,
    new_order: Latencies,
    stock_level: Latencies,
}

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let warehouses = [1, laboratory.choose(4u64, 20)];
    let seconds = laboratory.choose(3, 15);
    let mut lines = Vec::new();
    let mut most_tps = 0.0;
    for count in warehouses {
        let settings = WORKLOAD.defaults().with(&[("warehouses", &count)]);
        for engine in [EngineKind::TwoPhaseLocking, EngineKind::Lazy] {
            let target = laboratory.target(engine, &WORKLOAD, &settings)?;
            if lines.is_empty() {
                let (probe, what) = (laboratory.choose(1.5, 5.0), "what eager can do with 1 warehouse");
                most_tps = laboratory.measure(&target, &WORKLOAD, &settings, probe, what)?.throughput_tps();
            }
            for load in LOADS {
                let load_tps = most_tps * load;
                let offered = Arrivals::steady(load_tps).over(Duration::from_secs(seconds));
                let what = format!("{count} warehouses at {} calls/s", grouped(load_tps));
                let seen = laboratory.offer(&target, &WORKLOAD, &settings, &offered, &what)?.measured.seen;
                let word = if engine == EngineKind::Lazy { "lazy" } else { "eager" };
                lines.push(Line {
                    name: format!("{word}, {count} warehouse{}", if count == 1 { "" } else { "s" }),
                    engine,
                    warehouses: count,
                    load,
                    load_tps,
                    new_order: seen.of_kind("new-order").0.clone(),
                    stock_level: seen.of_kind("stock-level").1.clone(),
                });
            }
            laboratory.finish(target, &WORKLOAD, &settings)?;
        }
    }

    let mut table =
        Table::new(["", "load, calls/s", "New-Order p50", "p90", "p99", "Stock-Level p50", "p90", "p99"]);
    for line in &lines {
        let cells = [&line.new_order, &line.stock_level]
            .into_iter()
            .flat_map(|of| [0.5, 0.9, 0.99].map(|quantile| time(of.value_at_quantile(quantile))));
        table.row([line.name.clone(), grouped(line.load_tps)].into_iter().chain(cells));
    }
    let chart = |title: &str, of: &dyn Fn(&Line) -> &Latencies| Chart {
        title: title.to_string(),
        x: Axis::log("latency, µs"),
        y: Axis::linear("share of calls"),
        series: full(&lines).map(|line| cumulative(line.name.clone(), of(line))).collect(),
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
                "full mix; calls come at random times, at {:.0} and {:.0} % of what eager does at most with 1 warehouse",
                LOADS[0] * 100.0,
                FULL * 100.0
            ),
            "claims and curves are at the full load; at half of it few calls wait for anything".to_string(),
            "one thread makes the calls and runs lazy's now-phases, the others do the rest".to_string(),
            format!("the paper has 1 and 20 warehouses, here {} and {}", warehouses[0], warehouses[1]),
        ],
    })
}

/// The lines at the full load.
fn full(lines: &[Line]) -> impl Iterator<Item = &Line> {
    lines.iter().filter(|line| line.load == FULL)
}

fn claims(lines: &[Line]) -> Vec<Claim> {
    let find = |engine, one: bool| {
        full(lines)
            .find(|line| line.engine == engine && (line.warehouses == 1) == one)
            .expect("all four lines")
    };
    let (lazy_one, lazy_many) = (find(EngineKind::Lazy, true), find(EngineKind::Lazy, false));
    let (eager_one, eager_many) =
        (find(EngineKind::TwoPhaseLocking, true), find(EngineKind::TwoPhaseLocking, false));
    let median = |latencies: &Latencies| latencies.value_at_quantile(0.5).max(1) as f64;
    let times = |eager: &Line, lazy: &Line| median(&eager.new_order) / median(&lazy.new_order);
    let (one, many) = (times(eager_one, lazy_one), times(eager_many, lazy_many));
    let apart = median(&lazy_many.new_order) / median(&lazy_one.new_order);
    let stock = median(&lazy_one.stock_level) / median(&eager_one.stock_level);
    let stock_many = median(&lazy_many.stock_level) / median(&eager_many.stock_level);
    vec![
        Claim::new(
            "New-Order: with 1 warehouse lazy is at least 10 times lower than eager",
            one >= 10.0,
            format!("at p50 {one:.1} times lower"),
            "eager keeps up with this load; what is left is the difference in work before the outcome",
        ),
        Claim::new(
            &format!("New-Order: the same with {}", lazy_many.warehouses),
            many >= 10.0,
            format!("at p50 {many:.1} times lower"),
            "with more warehouses eager does more than this load; what is left is the difference in work before the outcome",
        ),
        Claim::new(
            "New-Order: lazy does not depend on the number of warehouses",
            (0.5..=2.0).contains(&apart),
            format!("p50 with {} warehouses is {apart:.2} times that with 1", lazy_many.warehouses),
            "more warehouses are more rows, of which fewer are in the cache when a now-phase looks them up",
        ),
        Claim::new(
            "Stock-Level: lazy and eager are comparable",
            (0.33..=3.0).contains(&stock) && (0.33..=3.0).contains(&stock_many),
            format!(
                "lazy's p50 is {stock:.2} times eager's with 1 warehouse, {stock_many:.2} times with {}",
                lazy_many.warehouses
            ),
            "an answer waits for what it needs to be substantiated (lazy), or in the queue behind other calls (eager)",
        ),
    ]
}
