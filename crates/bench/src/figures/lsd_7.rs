//! `lsd-7a`, `lsd-7d`: interactive TPC-C, latency against throughput as clients grow (LSD, figure 7).

use crate::chart::{Axis, Chart, Series};
use crate::claim::Claim;
use crate::figure::{Figure, FigureKind, Laboratory};
use crate::interactive::clients::{self, Load, abort_share};
use crate::interactive::tpcc::Tpcc;
use crate::interactive::{Client, Protocol};
use crate::server_process::ServerProcess;
use crate::sweep::Sample;
use crate::table::{Table, grouped, time};
use fabius::Result;
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

const ONE_MACHINE: &str = "clients and server share two cores, which are busy before the network's delay counts as it does in the paper";

type Line = (Protocol, Vec<(usize, Sample)>);

fn high(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let lines = run(laboratory, 1)?;
    let mut figure = shown(&lines, laboratory, 1);
    let (occ, two_phase) = (peak(&lines, 0), peak(&lines, 1));
    let (lazy_occ, lazy_two_phase) = (peak(&lines, 2), peak(&lines, 3));
    let ratio = |one: &Sample, other: &Sample| one.throughput_tps / other.throughput_tps.max(1e-9);
    let faster = occ.commit_us.mean / lazy_occ.commit_us.mean.max(1e-9);
    figure.claims = vec![
        Claim::new(
            "OCC-LSD has about 6.5 times OCC's throughput, at 2.5 times lower latency",
            ratio(&lazy_occ, &occ) >= 6.5 * 0.8 && faster >= 2.5 * 0.8,
            format!(
                "{:.1} times, at {faster:.1} times lower latency, each at its peak",
                ratio(&lazy_occ, &occ)
            ),
            ONE_MACHINE,
        ),
        Claim::new(
            "2PL-LSD has about 2.5 times 2PL's throughput",
            ratio(&lazy_two_phase, &two_phase) >= 2.5 * 0.8,
            format!("{:.1} times", ratio(&lazy_two_phase, &two_phase)),
            ONE_MACHINE,
        ),
        Claim::new(
            "where OCC-LSD is at its peak, OCC aborts 92 % of its attempts, OCC-LSD 8 %",
            abort_share(&last(&lines, 0)) > 0.5 && abort_share(&lazy_occ) < 0.15,
            format!(
                "OCC {:.0} % with most clients, OCC-LSD {:.0} % at its peak",
                abort_share(&last(&lines, 0)) * 100.0,
                abort_share(&lazy_occ) * 100.0
            ),
            ONE_MACHINE,
        ),
    ];
    Ok(figure)
}

fn low(laboratory: &mut Laboratory<'_>) -> Result<Figure> {
    let warehouses = laboratory.choose(4, 32);
    let lines = run(laboratory, warehouses)?;
    let mut figure = shown(&lines, laboratory, warehouses);
    let ratio = peak(&lines, 2).throughput_tps / peak(&lines, 0).throughput_tps.max(1e-9);
    figure.claims = vec![Claim::new(
        "at low contention LSD's overhead is marginal",
        ratio >= 0.9,
        format!("OCC-LSD has {ratio:.2} times OCC's peak throughput"),
        ONE_MACHINE,
    )];
    Ok(figure)
}

fn run(laboratory: &mut Laboratory<'_>, warehouses: i32) -> Result<Vec<Line>> {
    let program = ServerProcess::this_program()?;
    let work = Arc::new(Tpcc {
        warehouses,
        items: laboratory.choose(1000, 100_000),
        customers: laboratory.choose(100, 3000),
    });
    let counts: Vec<usize> = laboratory.choose(vec![4, 32], vec![1, 4, 16, 32, 64, 128]);
    let time = Duration::from_secs_f64(laboratory.choose(2.5, 20.0));
    let mut lines = Vec::new();
    for protocol in Protocol::FOUR {
        laboratory.go_on()?;
        (laboratory.say)(format!("{protocol}: loading {warehouses} warehouses"));
        let server =
            ServerProcess::fabius(&program, laboratory.parent.as_deref(), &["--durability", "none"])?;
        clients::once(async {
            let client = Client::connect(server.port, protocol, Duration::ZERO).await?;
            work.load(&client).await
        })?;
        let mut line = Vec::new();
        for &count in &counts {
            laboratory.go_on()?;
            (laboratory.say)(format!("{protocol}: {count} clients"));
            let load =
                Load { port: server.port, protocol, clients: count, delay: laboratory.network_delay, time };
            line.push((count, clients::run(&work, &load, count as u64, &laboratory.interrupt)?));
        }
        lines.push((protocol, line));
    }
    Ok(lines)
}

fn shown(lines: &[Line], laboratory: &Laboratory<'_>, warehouses: i32) -> Figure {
    let mut table = Table::new(["", "clients", "transactions/s", "mean latency", "p99", "aborted attempts"]);
    for (protocol, line) in lines {
        for (count, sample) in line {
            table.row([
                protocol.to_string(),
                count.to_string(),
                grouped(sample.throughput_tps),
                time((sample.commit_us.mean * 1e3) as u64),
                time((sample.commit_us.p99 * 1e3) as u64),
                format!("{:.0} %", abort_share(sample) * 100.0),
            ]);
        }
    }
    let series = lines.iter().map(|(protocol, line)| Series {
        name: protocol.to_string(),
        points: line.iter().map(|(_, sample)| (sample.throughput_tps, sample.commit_us.mean / 1e3)).collect(),
    });
    Figure {
        tables: vec![("as clients grow".to_string(), table)],
        charts: vec![Chart {
            title: format!("{warehouses} warehouses"),
            x: Axis::linear("transactions/s"),
            y: Axis::log("mean latency, ms"),
            series: series.collect(),
        }],
        notes: vec![format!(
            "clients over TCP; each message is held back by {} ms; full mix; the log is not synced; \
             a latency is that of all attempts",
            laboratory.network_delay.as_millis()
        )],
        ..Figure::default()
    }
}

/// A line's sample with the highest throughput.
fn peak(lines: &[Line], at: usize) -> Sample {
    let samples = lines.get(at).into_iter().flat_map(|(_, line)| line.iter().map(|(_, sample)| *sample));
    samples.max_by(|a, b| a.throughput_tps.total_cmp(&b.throughput_tps)).unwrap_or_default()
}

/// A line's sample with the most clients.
fn last(lines: &[Line], at: usize) -> Sample {
    lines.get(at).and_then(|(_, line)| line.last()).map_or_else(Sample::default, |(_, sample)| *sample)
}
