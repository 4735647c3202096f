//! `calvin-10`, `calvin-11`, `calvin-12`: calls whose keys depend on a secondary index (Calvin, section 7.4).
//!
//! Such a call is looked up before it gets its place in the order, and again when it runs; if the index has
//! changed in between, it starts again. What passes in between stands for replication.

use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, Swept, along, ends};
use crate::workloads::calvin_micro::KIND as WORKLOAD;
use fabius::Result;

/// Throughput, as `fabius bench list` shows it.
pub const THROUGHPUT: FigureKind = FigureKind {
    id: "calvin-10",
    title: "dependent calls: throughput against index volatility",
    make: make_throughput,
};

/// Restarts, as `fabius bench list` shows it.
pub const RESTARTS: FigureKind = FigureKind {
    id: "calvin-11",
    title: "dependent calls: restarts against index volatility",
    make: make_restarts,
};

/// Latency, as `fabius bench list` shows it.
pub const LATENCY: FigureKind = FigureKind {
    id: "calvin-12",
    title: "dependent calls: latency against index volatility",
    make: make_latency,
};

/// Milliseconds between reconnaissance and execution.
const DELAYS_MS: [u64; 3] = [0, 100, 500];
/// The locking engine's setting for it, in microseconds.
const DELAY: &str = "delay_us";
const ENGINE: &str = "locking";
/// How often each point is measured, for long enough that calls get past the delay.
const ROUNDS: usize = 2;
const FULL: &[f64] = &[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0];
const QUICK: &[f64] = &[0.01, 0.2, 1.0, 10.0];

/// One panel for each share of dependent calls and each delay, in that order.
fn sweep(laboratory: &mut Laboratory<'_>, shares: &[f64], figure: &mut Figure) -> Result<Swept> {
    // Room for what is on its way during the delay; small batches, since a batch is answered as a whole.
    let base = WORKLOAD.defaults().with(&[("batch", &16), ("in_flight", &512), ("hot_records", &10_000)]);
    let mut panels = Vec::new();
    for share in shares {
        for delay in DELAYS_MS {
            let title = format!("{:.0} % dependent, delay {delay} ms", share * 100.0);
            panels.push(Panel::new(title, &[("dependent", share), (DELAY, &(delay * 1000))]).loaded_anew());
        }
    }
    let points = laboratory.choose(QUICK, FULL);
    let seconds = laboratory.choose(60.0 / (panels.len() * points.len()) as f64, 4.0 * ROUNDS as f64);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base,
        engines: &[ENGINE],
        panels,
        axis: Axis::log("updates of each index entry a second"),
        points: along("volatility", points),
        seconds,
    };
    let swept = sweep.run(laboratory, ROUNDS)?;
    figure.notes = swept.notes();
    figure.notes.push("1,000 names; a name changes by exchange with another".to_string());
    Ok(swept)
}

fn make_throughput(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let shares = laboratory.choose(&[0.2, 1.0][..], &[0.0, 0.2, 0.5, 1.0]);
    let swept = sweep(laboratory, shares, &mut figure)?;
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = vec![swept.claim(
        "volatility of an index costs little while it is low",
        &[(0, ENGINE)],
        |lines| {
            let low = lines[0][1] / lines[0][0];
            vec![Finding::new(
                "without delay, the second volatility as a multiple of the first",
                low,
                Band::equal(1.12),
            )]
        },
        Reasons { fails: "exchanging names is work of its own, which is not counted apart", differs: "" },
    )];
    Ok(figure)
}

fn make_restarts(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let swept = sweep(laboratory, &[1.0], &mut figure)?;
    let restarts = |sample: &crate::sample::Sample| sample.retries / sample.committed.max(1.0);
    swept.show(&mut figure, "restarts of 1000 calls", |sample| restarts(sample) * 1000.0);
    let volatilities = laboratory.choose(QUICK, FULL);
    for (panel, delay_ms) in DELAYS_MS.iter().enumerate().skip(1) {
        let seconds = *delay_ms as f64 / 1e3;
        figure.claims.push(swept.claim_of(
            restarts,
            &format!("delay {delay_ms} ms: a call restarts v*d / (1 - v*d) times"),
            &[(panel, ENGINE)],
            |lines| {
                // Where v*d is between 1 % and 60 %: below, restarts are few, above the model has no meaning.
                let pairs: Vec<(f64, f64)> = volatilities
                    .iter()
                    .map(|volatility| volatility * seconds)
                    .zip(lines[0].iter().copied())
                    .filter(|(vd, _)| (0.01..0.6).contains(vd))
                    .map(|(vd, measured)| (vd / (1.0 - vd), measured))
                    .collect();
                let beside = |(model, measured): &(f64, f64)| {
                    let what = format!("restarts as a multiple of the model's {model:.3}");
                    Finding::new(what, measured / model, Band::equal(2.5))
                };
                pairs.iter().map(beside).collect()
            },
            Reasons {
                fails: "calls wait for more than the delay: for others that are on their way",
                differs: "",
            },
        ));
    }
    Ok(figure)
}

fn make_latency(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let swept = sweep(laboratory, &[1.0], &mut figure)?;
    swept.show(&mut figure, "p50 of commit latency, µs", |sample| sample.commit_us.p50);
    swept.show(&mut figure, "p90 of commit latency, µs", |sample| sample.commit_us.p90);
    swept.show(&mut figure, "p99 of commit latency, µs", |sample| sample.commit_us.p99);
    figure.claims = vec![swept.claim_of(
        |sample| sample.commit_us.p99,
        "at low volatility latency does not depend on it",
        &[(0, ENGINE)],
        |lines| {
            let low = ends(&lines[0][..2]);
            let what = "p99 without delay, the second volatility as a multiple of the first";
            vec![Finding::new(what, low, Band::equal(1.5))]
        },
        Reasons { fails: "exchanges of names take their share of the threads", differs: "" },
    )];
    Ok(figure)
}
