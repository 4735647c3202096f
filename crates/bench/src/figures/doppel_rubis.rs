//! `doppel-rubis`: RUBiS with uniform and skewed bids (Doppel, "RUBiS benchmark").

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along_threads, ratios};
use crate::workloads::rubis::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-rubis", title: "RUBiS, uniform and skewed bids, against threads", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let users = laboratory.choose(100_000, 1_000_000);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[("users", &users), ("in_flight", &doppel::IN_FLIGHT)]),
        engines: doppel::ENGINES,
        panels: vec![
            Panel::new("bidding mix, uniform bids", &[("bids", &"uniform")]),
            Panel::new(
                "half the calls are bids, half of these on one auction",
                &[("bids", &"skewed"), ("bid_share", &0.5)],
            ),
        ],
        axis: Axis::linear("threads"),
        points: along_threads(&doppel::THREADS),
        seconds: laboratory.choose(2.0, 10.0),
    };
    let swept = sweep.run_in_turns(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    figure.notes.push(format!("{users} users, 33,000 auctions; reads are calls in the order of the others"));
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = vec![
        swept.claim(
            "with uniform bids split and occ are equal",
            &[(0, "split"), (0, "occ")],
            |lines| {
                let (low, high) = ratios(&lines[0], &lines[1]);
                let beside = |at: &str, ratio| {
                    Finding::new(
                        format!("split as a multiple of occ where it is {at}"),
                        ratio,
                        Band::equal(1.18),
                    )
                };
                vec![beside("least", low), beside("most", high)]
            },
            Reasons {
                fails: "what split samples and synchronises costs more than conflicts do",
                differs: "",
            },
        ),
        swept.claim(
            "with skewed bids split is far ahead",
            &[(1, "split"), (1, "occ")],
            |lines| {
                let ratio = lines[0][lines[0].len() - 1] / lines[1][lines[1].len() - 1];
                vec![Finding::new(
                    "split as a multiple of occ on all cores",
                    ratio,
                    Band::between(1.3, doppel::MOST),
                )]
            },
            doppel::REASONS,
        ),
    ];
    Ok(figure)
}
