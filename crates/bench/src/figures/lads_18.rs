//! `lads-18`: where graph's time goes (LADS, figure 18).
//!
//! The engine's statistics manager sums the time of all workers by phase: construction and partitioning of
//! graphs, execution, and communication, which is waiting for other workers. Making calls is no part of it.

use super::lads;
use crate::chart::{Axis, Chart, Series};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::repeated::{Repeated, SPREAD};
use crate::settings::Settings;
use crate::table::Table;
use crate::workload::WorkloadKind;
use crate::workloads::{tpcc, ycsb};
use fabius::{EngineKind, Result};

/// As `fabius bench list` shows it.
pub const KIND: FigureKind = FigureKind {
    id: "lads-18",
    title: "shares of time in construction, partitioning, execution, communication",
    make,
};

const WAREHOUSES: [usize; 3] = [4, 8, 24];

/// Time by phase at one place of the axis, as shares of all.
type Shares = Vec<(&'static str, Repeated)>;

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    let over_contention: Vec<(f64, Settings)> = lads::CONTENTION
        .iter()
        .map(|theta| (*theta, lads::ycsb(laboratory).with(&[("theta", theta)])))
        .collect();
    let over_warehouses: Vec<(f64, Settings)> = WAREHOUSES
        .iter()
        .map(|count| (*count as f64, lads::tpcc(laboratory, *count).with(&[("cross", &0.1)])))
        .collect();
    let ycsb = shares(laboratory, &ycsb::KIND, &over_contention)?;
    let tpcc = shares(laboratory, &tpcc::KIND, &over_warehouses)?;
    show(&mut figure, "YCSB, 10 % cross-partition calls", "theta", &ycsb);
    show(&mut figure, "TPC-C, 10 % cross-partition calls", "warehouses", &tpcc);
    figure.notes.push(format!(
        "medians of {} rounds, the points of a chart in turns; bars, and ranges in tables: {SPREAD}",
        lads::ROUNDS
    ));
    figure.claims = vec![resolving_and_executing(&ycsb), communication(&tpcc)];
    Ok(figure)
}

/// Measures the shares with each of these settings, on rows of their own, in turns.
fn shares(
    laboratory: &mut Laboratory<'_>,
    kind: &WorkloadKind,
    places: &[(f64, Settings)],
) -> Result<Vec<(f64, Shares)>> {
    let seconds = laboratory.choose(2.0, 8.0) / lads::ROUNDS as f64;
    let mut targets = Vec::new();
    for (_, settings) in places {
        targets.push(laboratory.target(EngineKind::Graph, kind, settings)?);
    }
    let mut rounds = vec![Vec::new(); places.len()];
    for _ in 0..lads::ROUNDS {
        for ((target, (at, settings)), rounds) in targets.iter().zip(places).zip(&mut rounds) {
            rounds.push(laboratory.measure(target, kind, settings, seconds, &at.to_string())?.times);
        }
    }
    for (target, (_, settings)) in targets.into_iter().zip(places) {
        laboratory.finish(target, kind, settings)?;
    }
    let shares = |rounds: &Vec<Vec<(&'static str, u64)>>| {
        let share = |times: &[(&str, u64)], phase: usize| {
            let total: u64 = times.iter().map(|(_, time)| time).sum();
            times[phase].1 as f64 / total.max(1) as f64
        };
        let phases = rounds[0].iter().map(|(phase, _)| *phase).enumerate();
        phases
            .map(|(at, phase)| (phase, Repeated::of(rounds.iter().map(|times| share(times, at)).collect())))
            .collect()
    };
    Ok(places.iter().zip(&rounds).map(|((at, _), rounds)| (*at, shares(rounds))).collect())
}

/// Adds a table and a chart of the shares.
fn show(figure: &mut Figure, title: &str, axis: &str, places: &[(f64, Shares)]) {
    let phases: Vec<&str> = places[0].1.iter().map(|(phase, _)| *phase).collect();
    let mut table = Table::new([axis].iter().chain(&phases).copied());
    for (at, shares) in places {
        let percent = |share| format!("{:.1} %", share * 100.0);
        let cells = shares.iter().map(|(_, share)| {
            format!("{} ({} to {})", percent(share.value), percent(share.low), percent(share.high))
        });
        table.row([at.to_string()].into_iter().chain(cells));
    }
    figure.tables.push((format!("share of time, {title}"), table));
    let percent = |share: Repeated| {
        let [value, low, high] = [share.value, share.low, share.high].map(|share| share * 100.0);
        Repeated { value, low, high }
    };
    let line = |(number, phase): (usize, &&str)| {
        Series::new(*phase, places.iter().map(|(at, shares)| (*at, percent(shares[number].1))))
    };
    figure.charts.push(Chart {
        title: title.to_string(),
        x: Axis::linear(axis),
        y: Axis::linear("% of time"),
        series: phases.iter().enumerate().map(line).collect(),
    });
}

fn share(shares: &[(&str, Repeated)], wanted: &[&str]) -> f64 {
    shares.iter().filter(|(phase, _)| wanted.contains(phase)).map(|(_, share)| share.value).sum()
}

fn resolving_and_executing(places: &[(f64, Shares)]) -> Claim {
    let found: Vec<f64> =
        places.iter().map(|(_, shares)| share(shares, &["construction", "execution"])).collect();
    let (low, high) = (found.iter().copied().fold(1.0, f64::min), found.iter().copied().fold(0.0, f64::max));
    Claim::new(
        "YCSB: about 75 % of the time is spent in resolving and executing calls, whatever the contention",
        vec![
            Finding::new("lowest share, %", low * 100.0, Band::within(67.0, 83.0)),
            Finding::new("highest share, %", high * 100.0, Band::within(67.0, 83.0)),
        ],
        Reasons {
            fails: "phases end when the slower of two workers is done, and the other waits",
            differs: "",
        },
    )
}

fn communication(places: &[(f64, Shares)]) -> Claim {
    let found: Vec<f64> = places.iter().map(|(_, shares)| share(shares, &["communication"])).collect();
    let (few, many) = (found[0], found[found.len() - 1]);
    Claim::new(
        "TPC-C: the share of communication is smaller with 24 warehouses than with 4",
        vec![Finding::new(
            "share with 4 as a multiple of with 24",
            few / many.max(1e-9),
            Band::between(1.1, 20.0),
        )],
        Reasons { fails: "two partitions are balanced with 4 warehouses already", differs: "" },
    )
}
