//! `lads-9`: throughput against threads, all load on one partition (LADS, figure 9).

use super::lads;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::sweep::{Panel, Sweep, along_threads, ends, spread};
use crate::workloads::ycsb::KIND as WORKLOAD;
use fabius::Result;

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "lads-9", title: "YCSB throughput against threads, all load on one partition", make };

/// DORA also with several logical partitions for each core, as the engine has them by default: with one for each core,
/// the load is on one of them.
const ENGINES: &[&str] = &["graph", "partitioned", "dora", "dora engine_partitions=auto", "occ"];

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let panel = |theta: &f64| Panel::new(format!("theta {theta}"), &[("theta", theta)]);
    let with_results = Panel::new("theta 0.5, results wanted", &[("theta", &0.5), ("results", &"on")]);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: lads::ycsb(laboratory).with(&[("active_partitions", &1)]),
        engines: ENGINES,
        panels: lads::CONTENTION.iter().map(panel).chain([with_results]).collect(),
        axis: Axis::linear("threads"),
        points: along_threads(&lads::THREADS),
        seconds: laboratory.choose(1.0, 4.0),
    };
    let swept = sweep.run(laboratory, lads::ROUNDS)?;
    let mut figure = Figure { notes: lads::notes(laboratory), ..Figure::default() };
    figure.notes.extend(swept.notes());
    swept.show(&mut figure, "calls/s", |sample| sample.throughput_tps);
    let titles = lads::CONTENTION.iter().map(|theta| format!("theta {theta}"));
    for (panel, title) in titles.chain(["theta 0.5, results wanted".to_string()]).enumerate() {
        figure.claims.push(swept.claim(
            &format!("{title}: partitioned is flat, since one thread owns the partition"),
            &[(panel, "partitioned")],
            |lines| {
                vec![Finding::new("highest as a multiple of the lowest", spread(&lines[0]), Band::flat(1.2))]
            },
            Reasons {
                fails: "making and logging calls is part of the work, and is shared among the threads",
                differs: "",
            },
        ));
        figure.claims.push(swept.claim(
            &format!("{title}: graph scales with the threads"),
            &[(panel, "graph")],
            |lines| {
                // Of all threads, three quarters at the least.
                let most = lads::THREADS[lines[0].len() - 1] as f64;
                let band = Band::between(0.75 * most, 1.1 * most);
                vec![Finding::new("most threads as a multiple of one", ends(&lines[0]), band)]
            },
            Reasons {
                fails: "construction is ordered by the log, which one thread at a time appends to",
                differs: "one thread alone does work that several divide so that it fits their caches",
            },
        ));
    }
    Ok(figure)
}
