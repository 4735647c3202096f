//! `doppel-incr-cores`: increments of one key against threads (Doppel, "contentious workloads scale well").

use super::doppel;
use crate::chart::Axis;
use crate::claim::{Band, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::machine;
use crate::sample::{Rounds, Sample};
use crate::sweep::{Panel, Sweep, along_threads, ends};
use crate::workloads::hot::KIND as WORKLOAD;
use fabius::Result;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// As `fabius bench list` shows it.
pub const KIND: FigureKind =
    FigureKind { id: "doppel-incr-cores", title: "increments of one hot key against threads", make };

fn make(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let seconds = laboratory.choose(3.0, 10.0);
    let points = along_threads(&doppel::THREADS);
    let sweep = Sweep {
        workload: &WORKLOAD,
        base: WORKLOAD.defaults().with(&[("only", &"hot")]),
        engines: doppel::ENGINES,
        panels: vec![Panel::new("all increments on one key", &[])],
        axis: Axis::linear("threads"),
        points,
        seconds,
    };
    let mut swept = sweep.run(laboratory, doppel::ROUNDS)?;
    let atomic = |&threads: &usize| {
        let rounds = |tps| Rounds::from(Sample { throughput_tps: tps, ..Sample::default() });
        (threads <= machine::cores().max(laboratory.threads)).then(|| rounds(atomic_adds_per_second(threads)))
    };
    swept.add_line(0, ("atomic add".to_string(), doppel::THREADS.iter().map(atomic).collect()));
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    figure.notes.push("an atomic add is a bare instruction: no call, no log".to_string());
    swept.show(&mut figure, "increments/s", |sample| sample.throughput_tps);
    figure.claims = vec![
        swept.claim(
            "split scales with the cores",
            &[(0, "split")],
            |lines| {
                // Of all threads, seven tenths at the least.
                let most = doppel::THREADS[lines[0].len() - 1] as f64;
                vec![gain(&lines[0], Band::between(0.7 * most, 1.1 * most))]
            },
            Reasons {
                fails: "the log's order is given to one call after another, whichever slice it adds to",
                differs: "one thread alone takes samples and changes phases too",
            },
        ),
        swept.claim(
            "occ does not",
            &[(0, "occ")],
            |lines| vec![gain(&lines[0], Band::within(0.1, 1.2))],
            Reasons {
                fails: "making and encoding calls is a large part of the work here, and is shared among the threads",
                differs: "",
            },
        ),
        swept.claim(
            "2pl does not",
            &[(0, "2pl")],
            |lines| vec![gain(&lines[0], Band::within(0.1, 1.2))],
            Reasons {
                fails: "making and encoding calls is a large part of the work here, and is shared among the threads",
                differs: "",
            },
        ),
        swept.claim(
            "on all cores split is at least 2 times occ",
            &[(0, "split"), (0, "occ")],
            |lines| {
                let ratio = lines[0][lines[0].len() - 1] / lines[1][lines[1].len() - 1];
                vec![Finding::new("split as a multiple of occ", ratio, Band::between(2.0, doppel::MOST))]
            },
            doppel::REASONS,
        ),
        swept.claim(
            "an atomic add does not scale either",
            &[(0, "atomic add")],
            |lines| vec![gain(&lines[0], Band::within(0.1, 1.2))],
            Reasons { fails: "these cores share a cache", differs: "" },
        ),
    ];
    Ok(figure)
}

fn gain(line: &[f64], band: Band) -> Finding {
    Finding::new("most threads as a multiple of one", ends(line), band)
}

fn atomic_adds_per_second(threads: usize) -> f64 {
    let (counter, time) = (AtomicU64::new(0), Duration::from_millis(200));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while began.elapsed() < time {
                    (0..1000).for_each(|_| _ = counter.fetch_add(1, SeqCst));
                }
            });
        }
    });
    counter.into_inner() as f64 / began.elapsed().as_secs_f64()
}
