//! `doppel-incr-share`: increments against the share that goes to one key (Doppel, "even with low contention").

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along, ratios};
use crate::workloads::hot::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-incr-share", title: "increments against the share on one hot key", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let full: Vec<f64> = (0..=10).map(|tenth| f64::from(tenth) / 10.0).collect();
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD
            .defaults()
            .with(&[("keys", &laboratory.choose(200_000, 1_000_000)), ("in_flight", &doppel::IN_FLIGHT)]),
        engines: doppel::ENGINES,
        panels: vec![Panel::new("the other increments are uniform", &[])],
        axis: Axis::linear("share of calls on the hot key"),
        points: along("hot_share", laboratory.choose(&[0.0, 0.1, 0.3, 0.6, 1.0], &full)),
        seconds: laboratory.choose(1.5, 4.0),
    };
    let swept = sweep.run(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    swept.show(&mut figure, "increments/s", |sample| sample.throughput_tps);
    for other in ["occ", "2pl"] {
        figure.claims.push(swept.claim(
            &format!("split is never behind {other}"),
            &[(0, "split"), (0, other)],
            |lines| {
                let (low, _) = ratios(&lines[0], &lines[1]);
                let what = format!("split as a multiple of {other} where it is least");
                vec![Finding::new(what, low, Band::between(0.95, doppel::MOST))]
            },
            Reasons {
                fails: "where nothing is split, sampling and phases are pure cost",
                differs: doppel::REASONS.differs,
            },
        ));
    }
    figure.claims.push(swept.claim(
        "split is ahead of occ even at low contention",
        &[(0, "split"), (0, "occ")],
        |lines| {
            let low = lines[0][1] / lines[1][1];
            let what = "split as a multiple of occ at the first point with a hot key";
            vec![Finding::new(what, low, Band::between(1.0, doppel::MOST))]
        },
        doppel::REASONS,
    ));
    Ok(figure)
}
