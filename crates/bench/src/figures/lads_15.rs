//! `lads-15`, `lads-16`: throughput and latency against the engine's maximum batch (LADS, section 5.6, figures 15 and
//! 16).
//!
//! The load generator does the same at all points: so many calls are on the way, in small batches of the clients, that
//! the engine's largest batch always finds enough of them. What differs is how many of those the engine takes at once.
//! The mean latency is then what is on the way by throughput, whatever the batch (Little's law): it can only grow where
//! throughput falls. So latency is measured a second time, where calls come at a rate that all points sustain.

use super::lads;
use crate::arrivals::Arrivals;
use crate::chart::Axis;
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sample::Rounds;
use crate::settings::Settings;
use crate::sweep::{Panel, Sweep, Swept, along, ends};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::{EngineKind, Result};
use std::time::Duration;

/// Throughput, as `fabius bench list` shows it.
pub const THROUGHPUT: FigureKind = FigureKind {
    id: "lads-15",
    title: "YCSB throughput against the engine's maximum batch",
    make: make_throughput,
};

/// Latency, as `fabius bench list` shows it.
pub const LATENCY: FigureKind = FigureKind {
    id: "lads-16",
    title: "YCSB latency against the engine's maximum batch",
    make: make_latency,
};

/// Calls that the engine takes as one batch at the most. The last is the engine's default, and the paper's, about; a
/// batch of more calls would be longer than the megabyte that the engine appends to the log at once.
const MAXIMA: [u64; 5] = [16, 64, 256, 1024, 4096];
/// Calls that a client hands in together: no more than the smallest maximum, so that none waits for other batches of
/// the engine than its own.
const HANDED_IN: u64 = 16;
/// Calls on the way at all points, of all clients together: two of the largest batches, so that one waits while the
/// other is executed.
const IN_FLIGHT_CALLS: u64 = 2 * MAXIMA[MAXIMA.len() - 1];

/// Theta of the two panels.
const THETAS: [f64; 2] = [0.5, 0.9];
/// The load of calls that come at a rate, as a share of the throughput with the smallest maximum.
const LOAD: f64 = 0.5;
/// How many times the latency with the smallest maximum that with the largest may be: as many times as it has calls.
const LATENCY_MOST: f64 = (MAXIMA[MAXIMA.len() - 1] / MAXIMA[0]) as f64;
/// How often each point is measured, in turn with the others.
const ROUNDS: usize = 5;

/// What all points have in common.
fn base(laboratory: &Laboratory<'_>) -> Settings {
    lads::ycsb(laboratory).with(&[
        ("batch", &HANDED_IN),
        ("in_flight", &(IN_FLIGHT_CALLS / HANDED_IN / laboratory.threads as u64).max(1)),
        // The maximum decides, not how long a batch takes.
        ("batch_latency_us", &60_000_000),
    ])
}

fn axis() -> Axis {
    Axis::log("calls of a batch of the engine, at most")
}

fn sweep(laboratory: &mut Laboratory<'_>, figure: &mut Figure) -> Result<Swept> {
    let panel = |theta: f64| Panel::new(format!("theta {theta}"), &[("theta", &theta)]);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: base(laboratory),
        engines: &["graph"],
        panels: THETAS.map(panel).to_vec(),
        axis: axis(),
        points: along("engine_batch", &MAXIMA),
        seconds: laboratory.choose(2.5, 6.0),
    };
    let swept = sweep.run(laboratory, ROUNDS)?;
    figure.notes = lads::notes(laboratory);
    figure.notes.push(format!(
        "{IN_FLIGHT_CALLS} calls on the way at all points, handed in by {HANDED_IN}; the engine takes them as batches \
         of up to the maximum on the axis"
    ));
    figure.notes.extend(swept.notes());
    Ok(swept)
}

fn make_throughput(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let swept = sweep(laboratory, &mut figure)?;
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    for (panel, theta) in THETAS.into_iter().enumerate() {
        figure.claims.push(swept.claim(
            &format!("theta {theta}: throughput rises with the maximum batch to a plateau"),
            &[(panel, "graph")],
            |lines| {
                let line = &lines[0];
                let last = line[line.len() - 1] / line[line.len() - 2];
                vec![
                    Finding::new(
                        "largest maximum as a multiple of the smallest",
                        ends(line),
                        Band::between(1.3, 10.0),
                    ),
                    Finding::new("largest as a multiple of the one before", last, Band::equal(1.25)),
                ]
            },
            Reasons {
                fails: "very large batches leave the cache before they are executed",
                differs: "a batch of a few calls pays for a whole round of all workers",
            },
        ));
    }
    Ok(figure)
}

/// Measures the same points where calls come at these rates, one for each theta.
fn at_rates(laboratory: &mut Laboratory<'_>, rates: [f64; 2]) -> Result<Swept> {
    let titles = THETAS.map(|theta| format!("theta {theta}, calls come at a rate"));
    let points = along("engine_batch", &MAXIMA);
    let mut swept = Swept::new(axis(), points, &titles.each_ref().map(String::as_str));
    let settings = base(laboratory);
    let target = laboratory.target(EngineKind::Graph, &WORKLOAD, &settings)?;
    let time = Duration::from_secs_f64(laboratory.choose(2.0, 6.0) / ROUNDS as f64);
    for (panel, (theta, rate)) in THETAS.into_iter().zip(rates).enumerate() {
        let mut runs = MAXIMA.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (maximum, runs) in MAXIMA.iter().zip(&mut runs) {
                let settings = settings.with(&[("theta", &theta), ("engine_batch", maximum)]);
                let what = format!("theta {theta}, {rate:.0} calls/s, batches of up to {maximum}");
                let offered = Arrivals::steady(rate).over(time);
                runs.push(laboratory.offer(&target, &WORKLOAD, &settings, &offered, &what)?.measured);
            }
        }
        let line = runs.iter().map(|runs| Rounds::of_runs(runs)).collect();
        swept.add_line(panel, ("graph".to_string(), line));
        swept.note(format!(
            "theta {theta}: {rate:.0} calls/s come, {:.0} % of what the smallest maximum allows",
            LOAD * 100.0
        ));
    }
    laboratory.finish(target, &WORKLOAD, &settings)?;
    Ok(swept)
}

fn make_latency(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure::default();
    let full = sweep(laboratory, &mut figure)?;
    let rate = |panel| {
        let line = full.numbers(panel, "graph", |sample| sample.throughput_tps);
        line.expect("every point was run")[0] * LOAD
    };
    let half = at_rates(laboratory, [rate(0), rate(1)])?;
    figure.notes.extend(half.notes());
    for (swept, when, fails) in [
        (
            &full,
            "as many calls are on the way",
            "calls that do not fit the batch wait for the next ones: the mean latency is what is on the way by \
             throughput, and falls as throughput rises",
        ),
        (
            &half,
            "calls come at a rate that all sustain",
            "below saturation a batch is what waits, which is less than the larger maxima: those change nothing",
        ),
    ] {
        swept.show(&mut figure, "mean commit latency, µs", |sample| sample.commit_us.mean);
        for (panel, theta) in THETAS.into_iter().enumerate() {
            let text = format!("theta {theta}: latency grows with the maximum batch, where {when}");
            figure.claims.push(grows(swept, panel, &text, fails));
        }
    }
    Ok(figure)
}

/// The claim that latency grows along a panel's line.
fn grows(swept: &Swept, panel: usize, text: &str, fails: &str) -> Claim {
    swept.claim_of(
        |sample| sample.commit_us.mean,
        text,
        &[(panel, "graph")],
        |lines| {
            let line = &lines[0];
            let least = line.windows(2).map(|pair| pair[1] / pair[0]).fold(f64::MAX, f64::min);
            vec![
                Finding::new(
                    "largest maximum as a multiple of the smallest",
                    ends(line),
                    Band::between(1.5, LATENCY_MOST),
                ),
                Finding::new(
                    "least growth from one maximum to the next",
                    least,
                    Band::between(0.95, LATENCY_MOST),
                ),
            ]
        },
        Reasons { fails, differs: "" },
    )
}
