//! `lazy-4`: how long an external read takes (lazy evaluation, figure 4).

use crate::chart::{Axis, Chart, cumulative};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::recorder::{self, Latencies};
use crate::repeated::{Repeated, SPREAD};
use crate::settings::Settings;
use crate::table::{Table, time};
use crate::target::Target;
use crate::workloads::rmw10::KIND as WORKLOAD;
use fabius::{EngineKind, Result};

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-4", title: "latency of external reads, 1 in 1000, by chain bound", make };

const BOUNDS: [u64; 3] = [10, 100, 1000];
const DISTRIBUTIONS: [&str; 2] = ["normal", "uniform"];

/// How often each line is measured.
const ROUNDS: usize = 3;

/// A line of the figure: the reads of all rounds, and the mean of each.
struct Line<'t> {
    target: &'t Target,
    name: String,
    settings: Settings,
    all: Latencies,
    means: Vec<f64>,
}

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let records = laboratory.choose(200_000u64, 1_000_000);
    let seconds = laboratory.choose(4.5, 10.0);
    let base = WORKLOAD.defaults().with(&[
        ("idle", &"off"),
        ("records", &records),
        ("reads", &0.001),
        ("batch", &64),
        ("memory_mb", &4096),
    ]);
    let lazy = laboratory.target(EngineKind::Lazy, &WORKLOAD, &base)?;
    let eager = laboratory.target(EngineKind::TwoPhaseLocking, &WORKLOAD, &base)?;
    let mut lines = Vec::new();
    for distribution in DISTRIBUTIONS {
        let line = |target, name: String, bound: &u64| Line {
            target,
            name: format!("{name}, {distribution}"),
            settings: base.with(&[("distribution", &distribution), ("chain_bound", bound)]),
            all: recorder::latencies(),
            means: Vec::new(),
        };
        lines.push(line(&eager, "eager".into(), &1));
        lines.extend(BOUNDS.iter().map(|bound| line(&lazy, format!("lazy {bound}"), bound)));
    }
    for _ in 0..ROUNDS {
        for line in &mut lines {
            let seconds = seconds / ROUNDS as f64;
            let measured = laboratory.measure(line.target, &WORKLOAD, &line.settings, seconds, &line.name)?;
            let reads = measured.seen.of_kind("read_one").1;
            line.all.add(reads).expect("histograms of equal bounds");
            line.means.push(reads.mean());
        }
    }

    let mut table = Table::new(["series", "reads", "p10", "p50", "p90", "p99", "mean"]);
    for line in &lines {
        let quantile = |q| time(line.all.value_at_quantile(q));
        let mean = Repeated::together(line.all.mean(), line.means.clone()).cell(|mean| time(mean as u64));
        let cells = [quantile(0.1), quantile(0.5), quantile(0.9), quantile(0.99), mean];
        table.row([line.name.clone(), line.all.len().to_string()].into_iter().chain(cells));
    }
    let chart = |distribution: &str| Chart {
        title: format!("external reads, {distribution}"),
        x: Axis::log("latency, µs"),
        y: Axis::linear("share of reads"),
        series: lines
            .iter()
            .filter(|line| line.name.ends_with(distribution))
            .map(|line| cumulative(line.name.clone(), &line.all))
            .collect(),
    };
    let figure = Figure {
        tables: vec![("latency of reads, from the start of their execution".to_string(), table)],
        charts: DISTRIBUTIONS.map(chart).to_vec(),
        claims: claims(&lines),
        notes: vec![
            format!("{records} records of 1024 bytes; reads run on the client threads"),
            format!("the reads of {ROUNDS} rounds, the lines in turns; percents of means: {SPREAD}"),
        ],
    };
    drop(lines);
    laboratory.finish(lazy, &WORKLOAD, &base)?;
    laboratory.finish(eager, &WORKLOAD, &base)?;
    Ok(figure)
}

fn claims(lines: &[Line<'_>]) -> Vec<Claim> {
    let mean = |name: &str| lines.iter().find(|line| line.name == name).map_or(0.0, |line| line.all.mean());
    let lazy = |bound: u64, distribution: &str| mean(&format!("lazy {bound}, {distribution}"));
    let mut claims = Vec::new();
    for distribution in DISTRIBUTIONS {
        let eager = mean(&format!("eager, {distribution}"));
        let means = BOUNDS.map(|bound| lazy(bound, distribution));
        let lowest = means.iter().copied().fold(f64::MAX, f64::min);
        claims.push(Claim::new(
            &format!("{distribution}: eager is always fastest"),
            vec![Finding::new("the fastest lazy mean as a multiple of eager's", lowest / eager, Band::between(1.0, 1e4))],
            Reasons {
                fails: "a read under 2PL waits for locks of calls in progress, which costs more here than the chain does",
                differs: "",
            },
        ));
        let growth = means.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::MAX, f64::min);
        claims.push(Claim::new(
            &format!("{distribution}: lower bounds are better"),
            vec![Finding::new(
                "least growth of the mean from one bound to the next",
                growth,
                Band::between(1.0, 10.0),
            )],
            Reasons {
                fails: "the reads themselves end chains before the higher bound is reached",
                differs: "chains are as long as their bound, and their calls are nowhere near each other",
            },
        ));
    }
    let better = BOUNDS.map(|bound| {
        let ratio = lazy(bound, "uniform") / lazy(bound, "normal");
        Finding::new(
            format!("uniform's mean as a multiple of normal's at bound {bound}"),
            ratio,
            Band::between(1.0, 10.0),
        )
    });
    claims.push(Claim::new(
        "normal is better than uniform",
        better.into(),
        Reasons {
            fails: "chains of clustered calls are longer, and on two cores their length counts for more than their locality",
            differs: "",
        },
    ));
    claims
}
