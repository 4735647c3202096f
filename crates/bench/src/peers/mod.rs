//! Fabius beside other databases: the same scripts, the same clients, the same machine, taking turns.
//!
//! | module | concept |
//! |---|---|
//! | [`script`] | what is measured |
//! | [`pgbench`] | the clients |

pub mod pgbench;
pub mod script;

use crate::interrupt::Interrupt;
use crate::server_process::ServerProcess;
use crate::table::{Table, grouped, time};
use fabius::{Error, Result, SqlState};
use pgbench::{Load, Sample};
use script::{SCRIPTS, Script};
use serde_json::{Value as Json, json};
use std::path::PathBuf;

/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program that has `serve`.
    pub program: PathBuf,
    /// Scripts by name; all if there are none.
    pub scripts: Vec<String>,
    /// Clients, seconds, rows.
    pub load: Load,
    /// How many runs of each, in turns; medians are shown.
    pub rounds: usize,
    /// Where to make the databases.
    pub parent: Option<PathBuf>,
}

/// One script on every peer.
pub struct Comparison {
    /// The script.
    pub script: &'static Script,
    /// Names and medians: Fabius first.
    pub peers: Vec<(String, Sample)>,
}

impl Comparison {
    /// How many times the peer's rate Fabius has, if there is a peer.
    pub fn ratio(&self) -> Option<f64> {
        match self.peers.as_slice() {
            [(_, fabius), (_, peer), ..] => Some(fabius.tps / peer.tps),
            _ => None,
        }
    }

    /// As one JSON object.
    pub fn json(&self, options: &Options) -> Json {
        let peers: Vec<Json> = self
            .peers
            .iter()
            .map(|(name, sample)| {
                json!({
                    "name": name, "throughput_tps": sample.tps, "failed_share": sample.failed_share,
                    "latency_us": { "p50": sample.latency_us(0.5), "p99": sample.latency_us(0.99), "max": sample.latency_us(1.0) },
                })
            })
            .collect();
        json!({
            "script": self.script.name, "clients": options.load.clients, "seconds": options.load.seconds,
            "rounds": options.rounds, "rows": options.load.rows, "protocol": options.load.protocol,
            "peers": peers, "ratio": self.ratio(), "wanted": self.script.wanted,
        })
    }
}

/// Runs every script on Fabius and on PostgreSQL, if there is one, in turns.
///
/// # Errors
/// A script that does not exist; what a server or pgbench says; `57014` if interrupted.
pub fn run(options: &Options, interrupt: &Interrupt, say: &mut dyn FnMut(String)) -> Result<Vec<Comparison>> {
    let scripts = chosen(&options.scripts)?;
    let postgres = pgbench::find_postgres();
    let pgbench = pgbench::find(postgres.as_deref())?;
    let parent = options.parent.as_deref();
    say("starting servers".into());
    let mut servers = vec![ServerProcess::fabius(&options.program, parent, &["--durability", "fsync"])?];
    if let Some(programs) = &postgres {
        servers.push(ServerProcess::postgres(programs, parent, options.load.clients)?);
    }
    let mut comparisons = Vec::new();
    for script in scripts {
        for server in &servers {
            say(format!("{}: making tables on {}", script.name, server.name));
            pgbench::set_up(&pgbench, server, script, &options.load)?;
        }
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
        for round in 1..=options.rounds {
            for (server, samples) in servers.iter().zip(&mut samples) {
                if interrupt.is_raised() {
                    return Err(Error::new(SqlState::CANCELED, "interrupted"));
                }
                say(format!("{}: {}, round {round} of {}", script.name, server.name, options.rounds));
                samples.push(pgbench::measure(&pgbench, server, script, &options.load)?);
            }
        }
        let names = servers.iter().map(|server| server.name.clone());
        let peers = names.zip(samples.into_iter().map(median)).collect();
        comparisons.push(Comparison { script, peers });
    }
    Ok(comparisons)
}

fn chosen(names: &[String]) -> Result<Vec<&'static Script>> {
    let find = |name: &String| {
        SCRIPTS.iter().find(|script| script.name == name).ok_or_else(|| {
            let known: Vec<&str> = SCRIPTS.iter().map(|script| script.name).collect();
            Error::new(SqlState::INVALID_PARAMETER, format!("there is no script {name:?}"))
                .with_hint(format!("scripts are {}", known.join(", ")))
        })
    };
    if names.is_empty() { Ok(SCRIPTS.iter().collect()) } else { names.iter().map(find).collect() }
}

/// The run with the rate in the middle.
fn median(mut samples: Vec<Sample>) -> Sample {
    samples.sort_by(|a, b| a.tps.total_cmp(&b.tps));
    let middle = samples.len() / 2;
    if samples.is_empty() { Sample::default() } else { samples.swap_remove(middle) }
}

/// All of them for people.
pub fn table(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for comparison in comparisons {
        let mut table = Table::new(["", "transactions/s", "p50", "p99", "failed"]);
        for (name, sample) in &comparison.peers {
            let latency = |share| time(sample.latency_us(share) * 1000);
            let failed = format!("{:.1} %", sample.failed_share * 100.0);
            table.row([name.clone(), grouped(sample.tps), latency(0.5), latency(0.99), failed]);
        }
        text += &format!("{}\n{table}", comparison.script.title);
        text += &match comparison.ratio() {
            Some(ratio) => format!("  {ratio:.1} times, wanted {:.1}\n\n", comparison.script.wanted),
            None => "  no PostgreSQL was found to compare with\n\n".to_string(),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: scripts are found by name, and the middle run is the one that is shown.
    #[test]
    fn scripts_and_medians() {
        assert_eq!(chosen(&[]).unwrap().len(), SCRIPTS.len());
        assert_eq!(chosen(&["cold".into()]).unwrap()[0].name, "cold");
        assert!(chosen(&["warm".into()]).is_err());
        let run = |tps| Sample { tps, ..Sample::default() };
        assert_eq!(median(vec![run(3.0), run(1.0), run(2.0)]).tps, 2.0);
    }
}
