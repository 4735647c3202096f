//! `lsd-8ad`, `lsd-8be`, `lsd-8cf`: the microbenchmarks HOTKEY and ASSERT (LSD, figure 8), throughput and aborts.

use crate::chart::Axis;
use crate::claim::{Band, Claim, Finding, Reasons};
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::interactive::clients::{self, Load, Ran, abort_share, reasons};
use crate::interactive::counters::{Change, Counters};
use crate::interactive::{Client, Protocol};
use crate::repeated::SPREAD;
use crate::server_process::ServerProcess;
use crate::sweep::{Point, Swept};
use fabius::Result;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// HOTKEY.
pub const HOTKEY: FigureKind =
    FigureKind { id: "lsd-8ad", title: "HOTKEY: increments against the share on one counter", make: hotkey };

/// ASSERT without contention.
pub const PRIVATE: FigureKind = FigureKind {
    id: "lsd-8be",
    title: "ASSERT on private counters, against how often the condition changes",
    make: private,
};

/// ASSERT on one counter.
pub const HOT: FigureKind = FigureKind {
    id: "lsd-8cf",
    title: "ASSERT on one counter, against how often the condition changes",
    make: hot,
};

/// Clients at a time: so many that waiting for messages does not bound the lines that have no conflicts.
const CLIENTS: usize = 64;
/// How often each point is measured.
const ROUNDS: usize = 3;

/// Why lines lie closer than in the paper.
const ONE_MACHINE: &str = "clients and server share the cores of one machine, which bound the lines without conflicts; \
                           with fewer cores the others come closer";

/// Why a claim does not hold here, or differs.
const REASONS: Reasons<'static> = Reasons {
    fails: ONE_MACHINE,
    differs: "a conventional transaction depends on the counter from the message that reads it to the one that \
              commits, so that the delay bounds it to one at a time, whatever the server could do",
};

fn hotkey(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let shares = laboratory.choose(vec![0, 500, 1000], vec![0, 100, 250, 500, 750, 1000]);
    let points = shares.into_iter().map(|per_mille| {
        let label = format!("{} %", per_mille / 10);
        (per_mille as f64 / 10.0, label, Counters { change: Change::Increment, hot_per_mille: per_mille })
    });
    let swept = run(laboratory, "share on the hot counter, %", false, points.collect(), &Protocol::FOUR)?;
    let mut figure = shown(&swept);
    let last = |line: &[f64]| line[line.len() - 1];
    figure.claims.push(swept.claim(
        "LSD's throughput is flat in the share",
        &[(0, "OCC-LSD"), (0, "2PL-LSD")],
        |lines| {
            let end = |line: &[f64]| last(line) / line[0].max(1e-9);
            let beside = |name: &str, line: &[f64]| {
                Finding::new(format!("{name} at 100 % as a multiple of at 0 %"), end(line), Band::equal(1.25))
            };
            vec![beside("OCC-LSD", &lines[0]), beside("2PL-LSD", &lines[1])]
        },
        REASONS,
    ));
    figure.claims.push(compared(&swept, "OCC-LSD", "2PL", 5.0, "at 100 % LSD has about 5 times 2PL"));
    figure.claims.push(compared(&swept, "OCC-LSD", "OCC", 30.0, "at 100 % LSD has about 30 times OCC"));
    Ok(figure)
}

fn private(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let swept = asserts(laboratory, 0)?;
    let mut figure = shown(&swept);
    figure.claims.push(swept.claim(
        "without contention LSD costs 1.1 to 1.25 times",
        &[(0, "OCC"), (0, "OCC-LSD")],
        |lines| {
            let cost = lines[0].iter().sum::<f64>() / lines[1].iter().sum::<f64>().max(1e-9);
            vec![Finding::new("OCC's throughput as a multiple of OCC-LSD's", cost, Band::within(1.0, 1.35))]
        },
        REASONS,
    ));
    figure.claims.push(compared(
        &swept,
        "OCC-LSD+",
        "OCC",
        1.3,
        "LSD+ gains up to 1.3 times as its assumptions become true",
    ));
    Ok(figure)
}

fn hot(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let swept = asserts(laboratory, 1000)?;
    let mut figure = shown(&swept);
    figure.claims.push(compared(&swept, "OCC-LSD", "OCC", 17.0, "OCC-LSD reaches 17 times OCC"));
    figure.claims.push(compared(&swept, "2PL-LSD", "2PL", 2.0, "2PL-LSD reaches 2 times 2PL"));
    figure.claims.push(compared(&swept, "OCC-LSD+", "OCC", 30.0, "OCC-LSD+ reaches 30 times OCC"));
    Ok(figure)
}

/// ASSERT for several initial values: with `n`, the condition changes with one transaction in `n`.
fn asserts(laboratory: &mut Laboratory<'_>, hot_per_mille: u64) -> Result<Swept> {
    let initials = laboratory.choose(vec![10, 1000], vec![2, 5, 10, 100, 1000]);
    let points = initials.into_iter().map(|initial| {
        let work = Counters { change: Change::Decrement { initial }, hot_per_mille };
        (100.0 / initial as f64, format!("{} %", 100.0 / initial as f64), work)
    });
    let mut protocols = Protocol::FOUR.to_vec();
    protocols.push(Protocol::SPECULATIVE);
    run(laboratory, "transactions that change the condition, %", true, points.collect(), &protocols)
}

fn run(
    laboratory: &mut Laboratory<'_>,
    axis: &str,
    is_log: bool,
    points: Vec<(f64, String, Counters)>,
    protocols: &[Protocol],
) -> Result<Swept> {
    let program = ServerProcess::this_program()?;
    let time = Duration::from_secs_f64(laboratory.choose(1.5, 10.0) / ROUNDS as f64);
    let axis = if is_log { Axis::log(axis) } else { Axis::linear(axis) };
    let point = |(x, label, _): &(f64, String, Counters)| Point {
        x: *x,
        label: label.clone(),
        set: Vec::new(),
        threads: None,
    };
    let mut swept = Swept::new(axis, points.iter().map(point).collect(), &["all clients"]);
    (laboratory.say)("starting the server".into());
    let server = ServerProcess::fabius(&program, laboratory.parent.as_deref(), &["--durability", "none"])?;
    swept.note(format!(
        "{CLIENTS} clients over TCP; a counter is a row of one column besides its key, so that rows and columns are the \
         same objects; each message is held back by {} ms, rounded up to the timer's; the log is not \
         synced; after each point every counter was as its committed transactions leave it one at a time",
        laboratory.network_delay.as_millis()
    ));
    let mut runs = protocols.iter().map(|_| vec![Vec::new(); points.len()]).collect::<Vec<_>>();
    for round in 0..ROUNDS {
        for (at, (_, label, work)) in points.iter().enumerate() {
            for (protocol, runs) in protocols.iter().zip(&mut runs) {
                laboratory.go_on()?;
                (laboratory.say)(format!("{protocol}, {label}, round {} of {ROUNDS}", round + 1));
                let load = Load {
                    port: server.port,
                    process: server.process(),
                    protocol: *protocol,
                    clients: CLIENTS,
                    delay: laboratory.network_delay,
                    time,
                };
                clients::once(async {
                    let client = Client::connect(server.port, *protocol, Duration::ZERO).await?;
                    work.load(&client, CLIENTS).await
                })?;
                let ran = clients::run(&Arc::new(work.clone()), &load, at as u64, &laboratory.interrupt)?;
                clients::check(work, &load, &ran.committed)?;
                runs[at].push(ran);
            }
        }
    }
    swept.note(format!(
        "medians of {ROUNDS} rounds, all lines and points in turns; bars, and percents in tables: {SPREAD}"
    ));
    for (protocol, runs) in protocols.iter().zip(&runs) {
        let (mut line, mut each) = (Vec::new(), Vec::new());
        let mut conflicts = BTreeMap::new();
        for ((_, label, _), rounds) in points.iter().zip(runs) {
            let (ran, rounds) = Ran::together(rounds);
            let cpu = ran
                .server_cpu_us_each()
                .map_or(String::new(), |us| format!(", {us:.0} us of the server's time"));
            each.push(format!("{label}: {:.2} messages{cpu}", ran.messages_each()));
            ran.conflicts
                .into_iter()
                .for_each(|(reason, count)| *conflicts.entry(reason).or_insert(0) += count);
            line.push(Some(rounds));
        }
        swept.note(format!("{protocol}, for each transaction at {}", each.join("; ")));
        if !conflicts.is_empty() {
            swept.note(format!("{protocol} aborted because: {}", reasons(&conflicts)));
        }
        swept.add_line(0, (protocol.to_string(), line));
    }
    Ok(swept)
}

fn shown(swept: &Swept) -> Figure {
    let mut figure = Figure { notes: swept.notes(), ..Figure::default() };
    swept.show(&mut figure, "transactions/s", |sample| sample.throughput_tps);
    swept.show(&mut figure, "aborted attempts, %", |sample| abort_share(sample) * 100.0);
    figure
}

/// A claim about the last point of two lines.
fn compared(swept: &Swept, one: &'static str, other: &'static str, times: f64, text: &str) -> Claim {
    swept.claim(
        text,
        &[(0, one), (0, other)],
        |lines| {
            let last = |line: &[f64]| line[line.len() - 1];
            let ratio = last(&lines[0]) / last(&lines[1]).max(1e-9);
            vec![Finding::new(
                format!("{one} as a multiple of {other} at the last point"),
                ratio,
                Band::about(times),
            )]
        },
        REASONS,
    )
}
