//! `lsd-7a`, `lsd-7d`: interactive TPC-C, latency against throughput as clients grow (LSD, figure 7).

use crate::chart::{Axis, Chart, Series};
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::interactive::clients::{self, Load, Ran, abort_share, reasons};
use crate::interactive::tpcc::Tpcc;
use crate::interactive::{Client, Control, Protocol};
use crate::repeated::SPREAD;
use crate::sample::{Rounds, Sample};
use crate::server_process::ServerProcess;
use crate::table::{Table, time};
use fabius::{Grain, Result};
use std::sync::Arc;
use std::time::Duration;

/// One warehouse.
pub const HIGH: FigureKind = FigureKind {
    id: "lsd-7a",
    title: "interactive TPC-C, 1 warehouse: latency against throughput as clients grow",
    make: high,
};

/// Many warehouses.
pub const LOW: FigureKind = FigureKind {
    id: "lsd-7d",
    title: "interactive TPC-C, 32 warehouses: latency against throughput as clients grow",
    make: low,
};

const ONE_MACHINE: &str = "clients and server share the cores of one machine, which are busy with statements before the \
                           network's delay counts as it does in the paper";

/// Why lines lie further apart than in the paper.
const MESSAGES: &str = "a conventional transaction depends on what it has read until its commit, with a message for \
                        each read between, so that one at a time gets past a contended row; with LSD nothing is held \
                        over messages, and fewer are sent (see the messages of each line)";

/// A protocol with what was measured for each number of clients.
struct Line {
    protocol: Protocol,
    points: Vec<Place>,
}

/// What was measured with so many clients.
struct Place {
    clients: usize,
    /// In all rounds together.
    ran: Ran,
    rounds: Rounds,
}

/// How often each point is measured, with the protocols in turns, each time on rows that are loaded anew.
const ROUNDS: usize = 3;

fn high(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let lines = run(laboratory, 1)?;
    let mut figure = shown(&lines, laboratory, 1);
    let [occ_lsd, two_phase_lsd] =
        [Control::Optimistic, Control::Pessimistic].map(|control| of(&lines, Protocol::lsd(control)));
    let (clients, lazy_occ) = occ_lsd.peak();
    let (lazy_clients, lazy_two_phase) = two_phase_lsd.peak();
    let (occ_name, occ) = best(&lines, Control::Optimistic, clients);
    let (two_phase_name, two_phase) = best(&lines, Control::Pessimistic, lazy_clients);
    let ratio = |one: &Sample, other: &Sample| one.throughput_tps / other.throughput_tps.max(1e-9);
    let faster = |one: &Sample, other: &Sample| other.commit_us.mean / one.commit_us.mean.max(1e-9);
    let reasons = Reasons { fails: ONE_MACHINE, differs: MESSAGES };
    let times = |what: &str, lazy: &Sample, other: &Sample, (more, lower): (f64, f64)| {
        vec![
            Finding::new(format!("{what}, throughput"), ratio(lazy, other), Band::about(more)),
            Finding::new(
                format!("{what}, how many times lower the latency"),
                faster(lazy, other),
                Band::about(lower),
            ),
        ]
    };
    figure.claims = vec![
        Claim::new(
            "at its peak OCC-LSD has about 6.5 times OCC's throughput under the same load, at 2.5 times lower latency",
            times(&format!("OCC-LSD beside {occ_name}, {clients} clients"), &lazy_occ, &occ, (6.5, 2.5)),
            reasons,
        ),
        Claim::new(
            "at its peak 2PL-LSD has about 2.5 times 2PL's throughput under the same load, at 1.5 times lower latency",
            times(
                &format!("2PL-LSD beside {two_phase_name}, {lazy_clients} clients"),
                &lazy_two_phase,
                &two_phase,
                (2.5, 1.5),
            ),
            reasons,
        ),
        Claim::new(
            "where OCC-LSD is at its peak, OCC aborts 92 % of its attempts, OCC-LSD 8 %",
            vec![
                Finding::new(
                    format!("% of the attempts of {occ_name}"),
                    abort_share(&occ) * 100.0,
                    Band::within(82.0, 98.0),
                ),
                Finding::new(
                    "% of OCC-LSD's attempts",
                    abort_share(&lazy_occ) * 100.0,
                    Band::within(0.0, 13.0),
                ),
            ],
            reasons,
        ),
    ];
    Ok(figure)
}

fn low(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let warehouses = laboratory.choose(8, 32);
    let lines = run(laboratory, warehouses)?;
    let mut figure = shown(&lines, laboratory, warehouses);
    let lazy = of(&lines, Protocol::lsd(Control::Optimistic)).peak().1.throughput_tps;
    let grains = [Grain::Row, Grain::Column].map(|grain| Protocol::conventional(Control::Optimistic, grain));
    let peaks = grains.map(|protocol| (protocol, of(&lines, protocol).peak().1.throughput_tps));
    let (best, conventional) =
        peaks.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).unwrap_or((grains[0], 0.0));
    let ratio = lazy / conventional.max(1e-9);
    figure.claims = vec![Claim::new(
        "at low contention LSD's overhead is marginal",
        vec![Finding::new(
            format!("OCC-LSD's peak throughput as a multiple of that of {best}"),
            ratio,
            Band::equal(1.12),
        )],
        Reasons { fails: if ratio < 1.0 { ONE_MACHINE } else { MESSAGES }, differs: "" },
    )];
    Ok(figure)
}

fn run(laboratory: &mut Laboratory<'_>, warehouses: i32) -> Result<Vec<Line>> {
    let program = ServerProcess::this_program()?;
    let work = Arc::new(Tpcc {
        warehouses,
        items: laboratory.choose(10_000, 100_000),
        customers: laboratory.choose(100, 3000),
    });
    let counts: Vec<usize> = laboratory.choose(vec![4, 16, 64], vec![1, 4, 16, 32, 64, 128]);
    let time = Duration::from_secs_f64(laboratory.choose(3.0, 20.0) / ROUNDS as f64);
    let server = ServerProcess::fabius(&program, laboratory.parent.as_deref(), &["--durability", "none"])?;
    let mut runs = Protocol::SIX.map(|_| vec![Vec::new(); counts.len()]);
    for round in 0..ROUNDS {
        for (protocol, runs) in Protocol::SIX.into_iter().zip(&mut runs) {
            laboratory.go_on()?;
            (laboratory.say)(format!("{protocol}: loading {warehouses} warehouses"));
            clients::once(async {
                let client = Client::connect(server.port, Protocol::LOADING, Duration::ZERO).await?;
                work.load(&client).await
            })?;
            let mut committed = Vec::new();
            let (port, process, delay) = (server.port, server.process(), laboratory.network_delay);
            let mut load = Load { port, process, protocol, clients: 0, delay, time };
            for (&count, runs) in counts.iter().zip(runs) {
                laboratory.go_on()?;
                (laboratory.say)(format!("{protocol}: {count} clients, round {} of {ROUNDS}", round + 1));
                load.clients = count;
                let ran = clients::run(&work, &load, count as u64, &laboratory.interrupt)?;
                committed.extend(ran.committed.iter().copied());
                runs.push(ran);
            }
            (laboratory.say)(format!("{protocol}: checking"));
            clients::check(&*work, &load, &committed)?;
        }
    }
    let line = |(protocol, runs): (_, &Vec<Vec<Ran>>)| {
        let point = |(count, rounds): (&usize, &Vec<Ran>)| {
            let (ran, rounds) = Ran::together(rounds);
            Place { clients: *count, ran, rounds }
        };
        Line { protocol, points: counts.iter().zip(runs).map(point).collect() }
    };
    Ok(Protocol::SIX.into_iter().zip(&runs).map(line).collect())
}

fn shown(lines: &[Line], laboratory: &Laboratory<'_>, warehouses: i32) -> Figure {
    let mut table = Table::new([
        "",
        "clients",
        "transactions/s",
        "mean latency",
        "p99",
        "messages each",
        "server CPU each",
        "aborted attempts",
        "because",
    ]);
    for line in lines {
        for Place { clients, ran, rounds } in &line.points {
            let Ran { sample, conflicts, .. } = ran;
            table.row([
                line.protocol.to_string(),
                clients.to_string(),
                rounds.number(|sample| sample.throughput_tps).to_string(),
                rounds.number(|sample| sample.commit_us.mean * 1e3).cell(|ns| time(ns as u64)),
                time((sample.commit_us.p99 * 1e3) as u64),
                format!("{:.1}", ran.messages_each()),
                ran.server_cpu_us_each().map_or("not told".into(), |us| time((us * 1e3) as u64)),
                format!("{:.0} %", abort_share(sample) * 100.0),
                reasons(conflicts),
            ]);
        }
    }
    let point = |place: &Place| {
        (place.ran.sample.throughput_tps, place.rounds.number(|sample| sample.commit_us.mean / 1e3))
    };
    let series =
        lines.iter().map(|line| Series::new(line.protocol.to_string(), line.points.iter().map(point)));
    Figure {
        tables: vec![("as clients grow".to_string(), table)],
        charts: vec![Chart {
            title: format!("{warehouses} warehouses"),
            x: Axis::linear("transactions/s"),
            y: Axis::log("mean latency, ms"),
            series: series.collect(),
        }],
        notes: vec![
            format!(
                "{warehouses} warehouses; clients over TCP; each message is held back by {} ms, rounded up to the timer's; the log is not synced; \
                 a latency is that of all attempts",
                laboratory.network_delay.as_millis()
            ),
            format!("{ROUNDS} rounds, the protocols in turns; bars, and percents in tables: {SPREAD}"),
            "the full mix, customers by number, no remote warehouses; after each line the standard's consistency \
             conditions 1 to 4 held, and every order and payment was there once"
                .to_string(),
        ],
        ..Figure::default()
    }
}

/// The line of a protocol.
fn of(lines: &[Line], protocol: Protocol) -> &Line {
    lines.iter().find(|line| line.protocol == protocol).expect("every protocol has a line")
}

/// The better of the conventional lines, by rows and by columns, with so many clients.
fn best(lines: &[Line], control: Control, clients: usize) -> (String, Sample) {
    let of_grain = |grain| {
        let protocol = Protocol::conventional(control, grain);
        (protocol.to_string(), of(lines, protocol).with(clients))
    };
    let (by_row, by_column) = (of_grain(Grain::Row), of_grain(Grain::Column));
    if by_column.1.throughput_tps > by_row.1.throughput_tps { by_column } else { by_row }
}

impl Line {
    /// Where its throughput is highest: with how many clients, and what was measured.
    fn peak(&self) -> (usize, Sample) {
        let samples = self.points.iter().map(|place| (place.clients, place.ran.sample));
        samples.max_by(|(_, a), (_, b)| a.throughput_tps.total_cmp(&b.throughput_tps)).unwrap_or_default()
    }

    /// What was measured with so many clients.
    fn with(&self, clients: usize) -> Sample {
        let found = self.points.iter().find(|place| place.clients == clients);
        found.map_or_else(Sample::default, |place| place.ran.sample)
    }
}
