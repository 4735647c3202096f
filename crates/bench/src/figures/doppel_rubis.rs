//! `doppel-rubis`: RUBiS with uniform and skewed bids (Doppel, "RUBiS benchmark").
//!
//! The mixes are the paper's: RUBiS-B, which is the bidding mix, with bids on any auction; the bidding mix with half of
//! the bids on one auction, as in the authors' talk; and RUBiS-C (OSDI 2014, table 4), in which half of the calls are
//! bids, on auctions of Zipfian popularity, and all others in proportion.

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, Swept, along_threads, ratios};
use crate::workloads::rubis::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-rubis", title: "RUBiS-B and RUBiS-C, against threads", make };

/// Skew of the auctions' popularity in RUBiS-C: the most popular one has 53 % of the bids.
const ALPHA: f64 = 1.8;

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let users = laboratory.choose(100_000, 1_000_000);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[("users", &users), ("in_flight", &doppel::IN_FLIGHT)]),
        engines: doppel::ENGINES,
        panels: vec![
            Panel::new("RUBiS-B: bidding mix, bids on any auction", &[]),
            Panel::new("bidding mix, half the bids on one auction", &[("bids", &"skewed")]),
            Panel::new(
                "RUBiS-C: half the calls are bids, by popularity of the auction",
                &[("bids", &"zipfian"), ("theta", &ALPHA), ("bid_share", &0.5)],
            ),
        ],
        axis: Axis::linear("threads"),
        points: along_threads(&doppel::THREADS),
        seconds: laboratory.choose(2.0, 10.0),
    };
    let swept = sweep.run(laboratory, doppel::ROUNDS)?;
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    figure.notes.push(format!("{users} users, 33,000 auctions; reads are calls in the order of the others"));
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    figure.claims = vec![
        equal(&swept),
        ahead(
            &swept,
            (1, "occ"),
            doppel::MOST,
            "with half the bids on one auction split is far ahead of occ",
        ),
        ahead(&swept, (2, "occ"), 3.0 * 1.25, "in RUBiS-C split is far ahead of occ: 3.0 times on 20 cores"),
        ahead(&swept, (2, "2pl"), 6.6 * 1.25, "in RUBiS-C split is far ahead of 2pl: 6.6 times on 20 cores"),
    ];
    Ok(figure)
}

/// The claim on RUBiS-B.
fn equal(swept: &Swept) -> Claim {
    swept.claim(
        "in RUBiS-B split and occ are equal",
        &[(0, "split"), (0, "occ")],
        |lines| {
            let (low, high) = ratios(&lines[0], &lines[1]);
            let beside = |at: &str, ratio| {
                let what = format!("split as a multiple of occ where it is {at}");
                Finding::new(what, ratio, Band::equal(1.18))
            };
            vec![beside("least", low), beside("most", high)]
        },
        Reasons { fails: "what split samples and synchronises costs more than conflicts do", differs: "" },
    )
}

/// The claim that split is ahead of another engine on all cores, so many times at the most.
fn ahead(swept: &Swept, (panel, other): (usize, &str), most: f64, text: &str) -> Claim {
    let judge = |lines: &[Vec<f64>]| {
        let ratio = lines[0][lines[0].len() - 1] / lines[1][lines[1].len() - 1];
        let what = format!("split as a multiple of {other} on all cores");
        vec![Finding::new(what, ratio, Band::between(1.3, most))]
    };
    swept.claim(text, &[(panel, "split"), (panel, other)], judge, doppel::REASONS)
}
