//! `calvin-2`: what agreement costs (Calvin, section 3.1.1: latency without replication, with asynchronous and with
//! agreed replication, at one site and at sites that are far apart).
//!
//! All three nodes are in this process, and share its processors: each call is run three times, where the paper's
//! replicas have machines of their own. So throughput is compared between ways of replication, not with one node
//! alone.

use crate::arrivals::Arrivals;
use crate::chart::{Axis, Chart, Series};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::recorder::{self, Latencies};
use crate::repeated::{Repeated, SPREAD};
use crate::sites::ROUND_TRIPS_MS;
use crate::table::{Table, grouped};

use crate::workloads::calvin_micro::KIND as WORKLOAD;
use fabius::{Durability, EngineKind, Replication, Result};
use std::time::Duration;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind = FigureKind {
    id: "calvin-2",
    title: "latency without, with asynchronous and with agreed replication",
    make,
};

const ENGINE: EngineKind = EngineKind::Locking;
/// Between two of the sites that are apart, in milliseconds: what a majority takes to hear of a call.
const MAJORITY_MS: u64 = ROUND_TRIPS_MS[0][1];

/// A way to replicate, and whether sites are apart.
const WAYS: [(&str, Option<Replication>, bool); 5] = [
    ("no replication", None, false),
    ("asynchronous, one site", Some(Replication::Asynchronous), false),
    ("agreed, one site", Some(Replication::Agreed), false),
    ("asynchronous, sites apart", Some(Replication::Asynchronous), true),
    ("agreed, sites apart", Some(Replication::Agreed), true),
];

/// Of what a way takes, what calls come at while its latencies are measured.
const LOAD: f64 = 0.3;

struct Way {
    name: &'static str,
    /// Calls per second, round by round.
    rates: Vec<f64>,
    /// Of all rounds.
    latencies: Latencies,
}

/// How often each way is measured, in turns.
const ROUNDS: usize = 3;

impl Way {
    fn throughput_tps(&self) -> Repeated {
        Repeated::of(self.rates.clone())
    }

    fn ms(&self, quantile: f64) -> f64 {
        self.latencies.value_at_quantile(quantile) as f64 / 1e6
    }
}

/// Why agreement may take longer than the journey.
const CROWDED: &str = "calls wait for processors and disk for longer than for the journey";

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    // So many on the way that nobody waits for them: 256 batches of 64 calls for each client.
    let settings = WORKLOAD.defaults().with(&[
        ("batch", &64),
        ("in_flight", &256),
        ("hot_records", &10_000),
        ("dependent", &0),
    ]);
    let seconds = laboratory.choose(3.0, 15.0) / ROUNDS as f64;
    let mut ways = WAYS.map(|(name, ..)| Way { name, rates: Vec::new(), latencies: recorder::latencies() });
    for _ in 0..ROUNDS {
        for (way, (name, replication, are_apart)) in ways.iter_mut().zip(WAYS) {
            let (target, sites) = match replication {
                None => (laboratory.target_with(ENGINE, &WORKLOAD, &settings, Durability::Fsync)?, None),
                Some(replication) => {
                    let (target, sites) = laboratory.replicated(ENGINE, &WORKLOAD, &settings, replication)?;
                    (target, Some(sites))
                }
            };
            sites.iter().for_each(|sites| sites.put_apart(are_apart));
            let throughput_tps =
                laboratory.measure(&target, &WORKLOAD, &settings, seconds, name)?.throughput_tps();
            let offered = Arrivals::steady(throughput_tps * LOAD).over(Duration::from_secs_f64(seconds));
            let what = format!("{name} at {} calls/s", grouped(throughput_tps * LOAD));
            let seen = laboratory.offer(&target, &WORKLOAD, &settings, &offered, &what)?.measured.seen;
            way.rates.push(throughput_tps);
            way.latencies.add(seen.all_commits()).expect("histograms of equal bounds");
            sites.iter().for_each(|sites| sites.put_apart(false));
            laboratory.finish(target, &WORKLOAD, &settings)?;
        }
    }
    Ok(shown(&ways))
}

fn shown(ways: &[Way]) -> Figure {
    let mut table = Table::new(["", "calls/s", "p50, ms", "p90, ms", "p99, ms"]);
    for way in ways {
        let latencies = [0.5, 0.9, 0.99].map(|quantile| format!("{:.2}", way.ms(quantile)));
        table.row([way.name.to_string(), way.throughput_tps().to_string()].into_iter().chain(latencies));
    }
    let quantiles = || (1..100).map(|percent| f64::from(percent) / 100.0);
    let series = ways.iter().map(|way| {
        Series::new(way.name, quantiles().map(|quantile| (quantile * 100.0, way.ms(quantile).max(0.001))))
    });
    let chart = Chart {
        title: "latency until a call is answered".to_string(),
        x: Axis::linear("percent of calls"),
        y: Axis::log("milliseconds"),
        series: series.collect(),
    };
    let [_, async_near, agreed_near, async_far, agreed_far] = ways else { return Figure::default() };
    let times = |one: &Way, other: &Way| one.throughput_tps().value / other.throughput_tps().value;
    let ratio = times(agreed_far, agreed_near);
    let modes = times(agreed_near, async_near);
    let journey = MAJORITY_MS as f64;
    let claims = vec![
        Claim::new(
            "throughput is the same in all ways of replication, at any distance",
            vec![
                Finding::new("agreed, apart as a multiple of at one site", ratio, Band::equal(1.25)),
                Finding::new("at one site, agreed as a multiple of asynchronous", modes, Band::equal(1.25)),
            ],
            Reasons {
                fails: "too few calls are on the way, or nodes on the same processors disturb each other",
                differs: "",
            },
        ),
        Claim::new(
            "agreement costs a journey to the nearest site and back, asynchronous replication does not",
            vec![
                Finding::new(
                    "agreed, median as a multiple of the journey",
                    agreed_far.ms(0.5) / journey,
                    Band::between(1.0, 1.5),
                ),
                Finding::new(
                    "asynchronous, median as a multiple of the journey",
                    async_far.ms(0.5) / journey,
                    Band::within(0.0, 0.5),
                ),
            ],
            Reasons { fails: CROWDED, differs: CROWDED },
        ),
    ];
    let notes = vec![
        format!(
            "round trips between sites {}, {} and {} ms",
            ROUND_TRIPS_MS[0][1], ROUND_TRIPS_MS[0][2], ROUND_TRIPS_MS[1][2]
        ),
        format!("throughput is the median of {ROUNDS} rounds, the ways in turns; percents: {SPREAD}"),
        format!("latencies while calls come at {LOAD} of the throughput"),
        "three nodes in one process: each call is run three times on the same processors, and synced by each"
            .to_string(),
    ];
    Figure { tables: vec![("at the node that leads".to_string(), table)], charts: vec![chart], claims, notes }
}
