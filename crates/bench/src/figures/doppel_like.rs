//! `doppel-like`: likes and reads of them (Doppel, "a wide range of read/write mixes").

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Finding};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along};
use crate::workloads::like::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-like", title: "likes of pages against the share of writes, Zipfian", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let full: Vec<f64> = (0..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
    let shares = laboratory.choose(vec![0.0, 0.1, 0.3, 0.5, 0.8, 1.0], full);
    let half = shares.iter().position(|&share| share == 0.5).unwrap_or_default();
    let rows = laboratory.choose(100_000, 1_000_000);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[
            ("theta", &1.4),
            ("users", &rows),
            ("pages", &rows),
            ("in_flight", &doppel::IN_FLIGHT),
        ]),
        engines: doppel::ENGINES,
        panels: vec![Panel::new("pages with theta 1.4", &[])],
        axis: Axis::linear("share of writes"),
        points: along("writes", &shares),
        seconds: laboratory.choose(1.2, 4.0),
    };
    let swept = sweep.run(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    figure.notes.push(format!("{rows} users and pages; reads are calls in the order of the others"));
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = vec![
        swept.claim(
            "split is ahead of occ over a wide range",
            &[(0, "split"), (0, "occ")],
            |lines| {
                let ratios: Vec<f64> =
                    lines[0].iter().zip(&lines[1]).map(|(split, occ)| split / occ).collect();
                let ahead = ratios.iter().filter(|ratio| **ratio > 1.0).count();
                let shown: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
                let what = format!("% of the points where it is ahead ({} times occ)", shown.join(", "));
                let share = ahead as f64 / ratios.len() as f64 * 100.0;
                vec![Finding::new(what, share, Band::within(50.0, 100.0))]
            },
            doppel::REASONS,
        ),
        swept.claim(
            "split is ahead of occ also when half the calls read the same pages",
            &[(0, "split"), (0, "occ")],
            |lines| {
                let ratio = lines[0][half] / lines[1][half];
                vec![Finding::new(
                    "split as a multiple of occ at 50 % writes",
                    ratio,
                    Band::between(1.0, doppel::MOST),
                )]
            },
            doppel::REASONS,
        ),
    ];
    Ok(figure)
}
