//! `doppel-adapt`: the hot key changes (Doppel, "adapts to changing popular data").

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Point, Sweep};
use crate::workloads::hot::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-adapt", title: "throughput over time while the hot key changes", make };

/// Points for each hot key: the first has the change in it.
const WINDOWS: usize = 4;

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let (keys, seconds) = laboratory.choose((3, 0.5), (6, 1.5));
    let points = (0..keys * WINDOWS).map(|window| {
        let key = window / WINDOWS * 7919;
        let x = window as f64 * seconds;
        let label = format!("{x:.1}: key {key}");
        Point { x, label, set: vec![("hot_key", key.to_string())], threads: None }
    });
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD
            .defaults()
            .with(&[("hot_share", &0.1), ("keys", &laboratory.choose(200_000, 1_000_000))]),
        engines: doppel::ENGINES,
        panels: vec![Panel::new("10 % of increments on one key, which changes", &[])],
        axis: Axis::linear("seconds"),
        points: points.collect(),
        seconds: seconds * doppel::ROUNDS as f64,
    };
    let swept = sweep.run(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    figure.notes.push(format!("the key changes every {WINDOWS} points; clients pause between points"));
    swept.show(&mut figure, "increments/s", |sample| sample.throughput_tps);
    figure.claims = vec![
        swept.claim(
            "split finds the new key and recovers",
            &[(0, "split"), (0, "occ")],
            |lines| {
                // Beside occ, which has nothing to find: the machine itself is faster in some minutes than in others.
                let at_ends = |line: &[f64]| -> Vec<f64> {
                    line.chunks(WINDOWS).map(|key| key[WINDOWS / 2..].iter().sum()).collect()
                };
                let (split, occ) = (at_ends(&lines[0]), at_ends(&lines[1]));
                let beside: Vec<f64> = split.iter().zip(&occ).map(|(split, occ)| split / occ).collect();
                let worst = beside.iter().copied().fold(f64::MAX, f64::min) / beside[0];
                let what = "beside occ, the second half of the worst key as a multiple of that of the first";
                vec![Finding::new(what, worst, Band::equal(1.18))]
            },
            Reasons {
                fails: "a key that is hot for so short a time is not sampled often enough to be split",
                differs: "",
            },
        ),
        swept.claim(
            "split is ahead of occ over the whole time",
            &[(0, "split"), (0, "occ")],
            |lines| {
                let ratio = lines[0].iter().sum::<f64>() / lines[1].iter().sum::<f64>();
                vec![Finding::new("split as a multiple of occ", ratio, Band::between(1.05, doppel::MOST))]
            },
            doppel::REASONS,
        ),
    ];
    Ok(figure)
}
