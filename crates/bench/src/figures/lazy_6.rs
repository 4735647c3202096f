//! `lazy-6`: blind writes make earlier work pointless (lazy evaluation, figure 6).

use crate::chart::{Axis, Chart, Series, cumulative};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::measured::{Measured, middle};
use crate::recorder::Latencies;
use crate::repeated::{Repeated, SPREAD};
use crate::settings::Settings;
use crate::sweep::{ends, spread};
use crate::table::{Table, grouped, time};
use crate::workloads::cart::KIND as WORKLOAD;
use fabius::{EngineKind, Result};
use std::fmt::Display;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lazy-6", title: "throughput against share of blind writes; check-out latency", make };

const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// In a hurry: fewer of them, each for long enough.
const SHARES_QUICK: [f64; 3] = [0.0, 0.5, 1.0];

/// How often throughput is measured, with the shares and the engines in turns.
const ROUNDS: usize = 3;

/// One engine's part of the figure.
struct Half {
    engine: EngineKind,
    throughput: Vec<Repeated>,
    skipped: Vec<u64>,
    /// By share of blind writes: latencies of purchases and of clearings.
    check_outs: Vec<(f64, Latencies, Latencies)>,
}

impl Half {
    fn of(engine: EngineKind) -> Half {
        Half { engine, throughput: Vec::new(), skipped: Vec::new(), check_outs: Vec::new() }
    }

    fn throughputs(&self) -> Vec<f64> {
        self.throughput.iter().map(|throughput| throughput.value).collect()
    }
}

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let shares = laboratory.choose(&SHARES_QUICK[..], &SHARES);
    let [mut lazy, mut eager] = [EngineKind::Lazy, EngineKind::TwoPhaseLocking].map(Half::of);
    measure_throughput(laboratory, shares, [&mut lazy, &mut eager])?;
    measure_check_outs(laboratory, &mut eager, &[0.5])?;
    measure_check_outs(laboratory, &mut lazy, &[0.25, 0.5])?;

    let mut table = Table::new(["blind share", "lazy", "never needed", "eager"]);
    for (at, share) in shares.iter().enumerate() {
        table.row([
            format!("{:.0} %", share * 100.0),
            lazy.throughput[at].to_string(),
            grouped(lazy.skipped[at] as f64),
            eager.throughput[at].to_string(),
        ]);
    }
    let mut latencies = Table::new(["check-outs", "buy p50", "buy p99", "clear p50", "clear p99"]);
    let mut series = Vec::new();
    for (engine, half) in [("lazy", &lazy), ("eager", &eager)] {
        for (share, buy, clear) in &half.check_outs {
            let name = format!("{engine}, {:.0} % blind", share * 100.0);
            let cells = [(buy, 0.5), (buy, 0.99), (clear, 0.5), (clear, 0.99)];
            let cells = cells.map(|(of, quantile)| time(of.value_at_quantile(quantile)));
            latencies.row(std::iter::once(name.clone()).chain(cells));
            series.push(cumulative(name, &both(buy, clear)));
        }
    }
    let line = |name: &str, values: &[Repeated]| {
        Series::new(name, shares.iter().map(|share| share * 100.0).zip(values.iter().copied()))
    };
    Ok(Figure {
        tables: vec![
            ("throughput, calls/s".to_string(), table),
            ("latency of check-outs, evaluated at once, calls made one at a time".to_string(), latencies),
        ],
        charts: vec![
            Chart {
                title: "throughput".to_string(),
                x: Axis::linear("% of check-outs that are blind writes"),
                y: Axis::linear("calls/s"),
                series: vec![line("lazy", &lazy.throughput), line("eager 2PL", &eager.throughput)],
            },
            Chart {
                title: "check-out latency".to_string(),
                x: Axis::log("latency, µs"),
                y: Axis::linear("share of check-outs"),
                series,
            },
        ],
        claims: claims(&lazy, &eager),
        notes: vec![
            "8,000 carts in turn, 100,000 items; a purchase waits for its price".to_string(),
            format!(
                "throughput: medians of {ROUNDS} rounds, shares and engines in turns; bars, and percents in tables: {SPREAD}"
            ),
        ],
    })
}

/// A run on a database of its own: sessions begin anew with every run, with empty carts.
fn run(
    laboratory: &mut Laboratory<'_>,
    engine: EngineKind,
    settings: &Settings,
    seconds: f64,
    what: &str,
) -> Result<Measured> {
    let target = laboratory.target(engine, &WORKLOAD, settings)?;
    let measured = laboratory.measure(&target, &WORKLOAD, settings, seconds, what)?;
    laboratory.finish(target, &WORKLOAD, settings)?;
    Ok(measured)
}

fn measure_throughput(
    laboratory: &mut Laboratory<'_>,
    shares: &[f64],
    mut halves: [&mut Half; 2],
) -> Result<()> {
    let mut runs = halves.each_ref().map(|_| vec![Vec::new(); shares.len()]);
    for _ in 0..ROUNDS {
        for (at, share) in shares.iter().enumerate() {
            let settings = WORKLOAD.defaults().with(&[("blind", share), ("idle", &"off")]);
            let what = format!("{:.0} % blind", share * 100.0);
            for (half, runs) in halves.iter().zip(&mut runs) {
                // What is claimed of lazy needs more than the first moments, in which memory is new.
                let seconds = match half.engine {
                    EngineKind::Lazy => laboratory.choose(3.0, 5.0),
                    _ => laboratory.choose(1.0, 2.0),
                };
                runs[at].push(run(laboratory, half.engine, &settings, seconds, &what)?);
            }
        }
    }
    for (half, runs) in halves.iter_mut().zip(runs) {
        for runs in runs {
            half.throughput.push(Repeated::of(runs.iter().map(Measured::throughput_tps).collect()));
            half.skipped.push(middle(runs, Measured::throughput_tps).counts.skipped);
        }
    }
    Ok(())
}

fn measure_check_outs(laboratory: &mut Laboratory<'_>, half: &mut Half, shares: &[f64]) -> Result<()> {
    let seconds = laboratory.choose(1.0, 5.0);
    for &share in shares {
        // Fewer carts, so that many of them come to their check-out in the time there is.
        let own: &[(_, &dyn Display)] =
            &[("blind", &share), ("idle", &"off"), ("batch", &1), ("clients", &200)];
        let what = format!("check-outs, {:.0} % blind", share * 100.0);
        let measured = run(laboratory, half.engine, &WORKLOAD.defaults().with(own), seconds, &what)?;
        let (buy, clear) = (measured.seen.of_kind("buy").1.clone(), measured.seen.of_kind("clear").0.clone());
        half.check_outs.push((share, buy, clear));
    }
    Ok(())
}

fn both(buy: &Latencies, clear: &Latencies) -> Latencies {
    let mut all = buy.clone();
    all.add(clear).expect("histograms of equal bounds");
    all
}

fn claims(lazy: &Half, eager: &Half) -> Vec<Claim> {
    let spread = spread(&eager.throughputs());
    let least = lazy.throughputs().windows(2).map(|pair| pair[1] / pair[0]).fold(f64::MAX, f64::min);
    let mut claims = vec![
        Claim::new(
            "lazy throughput grows with the share of blind writes",
            vec![
                Finding::new(
                    "at 100 % as a multiple of at 0 %",
                    ends(&lazy.throughputs()),
                    Band::between(3.0, 20.0),
                ),
                Finding::new("least growth from one share to the next", least, Band::between(0.95, 20.0)),
            ],
            Reasons {
                fails: "the now-phase, which every call needs, takes most of the time; what is skipped is too little",
                differs: "",
            },
        ),
        Claim::new(
            "eager throughput is flat",
            vec![Finding::new("highest as a multiple of the lowest", spread, Band::flat(1.3))],
            Reasons {
                fails: "a purchase updates 20 inventory records and a clearing none, which eager notices too",
                differs: "",
            },
        ),
    ];
    for (share, buy, clear) in &lazy.check_outs {
        // Between the two modes (on a logarithmic axis), nearer the slow one, whose lower end is sharp.
        let (fast, slow) = (clear.value_at_quantile(0.5), buy.value_at_quantile(0.5));
        let border = (fast as f64 * (slow as f64).powi(2)).cbrt() as u64;
        let all = both(buy, clear);
        let below = all.count_between(0, border) as f64 / all.len().max(1) as f64;
        claims.push(Claim::new(
            &format!(
                "lazy check-outs are bimodal; the fast share is about the blind share, {:.0} %",
                share * 100.0
            ),
            vec![
                Finding::new(
                    "buying as a multiple of clearing, at p50",
                    slow as f64 / fast.max(1) as f64,
                    Band::between(3.0, 1e4),
                ),
                Finding::new(
                    format!("% faster than {}, between the two", time(border)),
                    below * 100.0,
                    Band::within(share * 100.0 - 10.0, share * 100.0 + 10.0),
                ),
            ],
            Reasons { fails: "the two kinds of check-outs overlap", differs: "" },
        ));
    }
    claims
}
