//! Fabius beside other databases: the same scripts, the same clients, the same machine, taking turns.
//!
//! | module | concept |
//! |---|---|
//! | [`script`], [`scripts`] | what is measured |
//! | `tpcc` | TPC-C's statements |
//! | [`pgbench`] | the clients |
//! | [`peer`] | a database under measurement: its version and settings |
//! | [`replicated`] | databases of which three servers hold a copy |

pub mod peer;
pub mod pgbench;
pub mod replicated;
pub mod script;
pub mod scripts;
mod tpcc;

use crate::interrupt::Interrupt;
use crate::machine;
use crate::measured::middle;
use crate::server_process::ServerProcess;
use crate::table::{Table, grouped, time};
use fabius::{Error, Result, SqlState};
use peer::Peer;
use pgbench::{Load, Outcomes, Sample};
use script::Script;
use scripts::SCRIPTS;
use serde_json::{Map, Value as Json, json};
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
    /// Whether three servers hold a copy.
    pub replicated: bool,
}

/// What was measured, and of what.
pub struct Compared {
    /// The databases: Fabius first.
    pub peers: Vec<Peer>,
    /// The clients.
    pub client: String,
    /// Script by script.
    pub comparisons: Vec<Comparison>,
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
    pub fn json(&self, compared: &Compared, options: &Options) -> Json {
        let sampled = self.peers.iter().zip(&compared.peers);
        let peers: Vec<Json> = sampled
            .map(|((name, sample), peer)| {
                let outcomes_json = |outcomes: &Outcomes| {
                    json!({
                        "mean": outcomes.mean_us(), "p50": outcomes.latency_us(0.5), "p99": outcomes.latency_us(0.99),
                        "max": outcomes.latency_us(1.0),
                    })
                };
                let all = sample.all();
                let kinds = (self.script.transactions)().into_iter().zip(&sample.by_transaction);
                let kinds: Map<String, Json> = kinds
                    .filter(|(kind, _)| !kind.name.is_empty())
                    .map(|(kind, outcomes)| (kind.name.to_string(), outcomes_json(outcomes)))
                    .collect();
                json!({
                    "name": name, "version": peer.version, "settings": peer.settings_json(),
                    "throughput_tps": sample.tps, "failed_share": all.failed_share(),
                    "latency_us": outcomes_json(&all), "latency_us_of": kinds,
                })
            })
            .collect();
        json!({
            "script": self.script.name, "client": compared.client, "clients": options.load.clients,
            "threads": options.load.threads, "seconds": options.load.seconds, "rounds": options.rounds,
            "rows": options.load.rows, "protocol": options.load.protocol, "machine": machine::summary(),
            "replicated": options.replicated, "peers": peers, "ratio": self.ratio(),
            "wanted": self.script.wanted_of(options.replicated),
        })
    }
}

/// Runs every script on Fabius and on PostgreSQL, if there is one, in turns.
///
/// # Errors
/// A script that does not exist; what a server or pgbench says; `57014` if interrupted.
pub fn run(options: &Options, interrupt: &Interrupt, say: &mut dyn FnMut(String)) -> Result<Compared> {
    let scripts = chosen(&options.scripts)?;
    let postgres = pgbench::find_postgres();
    let pgbench = pgbench::find(postgres.as_deref())?;
    let client = pgbench::version(&pgbench)?;
    let parent = options.parent.as_deref();
    say("starting fabius".into());
    let mut servers = vec![match options.replicated {
        true => replicated::fabius(&options.program, parent)?,
        false => ServerProcess::fabius(&options.program, parent, &["--durability", "fsync"])?,
    }];
    if let Some(programs) = &postgres {
        say("starting postgresql".into());
        servers.push(match options.replicated {
            true => replicated::postgres(programs, parent, options.load.clients)?,
            false => ServerProcess::postgres(programs, parent, options.load.clients)?,
        });
    }
    let peers = servers.iter().map(Peer::ask).collect::<Result<_>>()?;
    let runs = scripts.len() * servers.len() * options.rounds;
    let mut done = 0;
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
                let left = (runs - done) as u64 * options.load.seconds;
                say(format!(
                    "{}: {}, round {round} of {}; about {left} s left",
                    script.name, server.name, options.rounds
                ));
                samples.push(pgbench::measure(&pgbench, server, script, &options.load)?);
                done += 1;
            }
        }
        let names = servers.iter().map(|server| server.name.clone());
        let peers = names.zip(samples.into_iter().map(median)).collect();
        comparisons.push(Comparison { script, peers });
    }
    Ok(Compared { peers, client, comparisons })
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
fn median(samples: Vec<Sample>) -> Sample {
    if samples.is_empty() { Sample::default() } else { middle(samples, |sample| sample.tps) }
}

/// All of it for people.
pub fn table(compared: &Compared, options: &Options) -> String {
    let load = &options.load;
    let mut text = String::new();
    for peer in &compared.peers {
        text += &format!("{}: {}\n    {}\n", peer.name, peer.version, peer.settings_text());
    }
    text += &format!(
        "clients: {}, {} at a time on {} threads, protocol {}; {} s a run, medians of {} in turns\nmachine: {}\n\n",
        compared.client,
        load.clients,
        load.threads,
        load.protocol,
        load.seconds,
        options.rounds,
        machine::summary()
    );
    for comparison in &compared.comparisons {
        let mut table = Table::new(["", "transactions/s", "mean", "p50", "p99", "failed"]);
        for (name, sample) in &comparison.peers {
            let mut row = |name: String, rate: f64, outcomes: &Outcomes| {
                let latency = |share| time(outcomes.latency_us(share) * 1000);
                let failed = format!("{:.1} %", outcomes.failed_share() * 100.0);
                let mean = time(outcomes.mean_us() * 1000);
                table.row([name, grouped(rate), mean, latency(0.5), latency(0.99), failed]);
            };
            let all = sample.all();
            row(name.clone(), sample.tps, &all);
            let kinds = (comparison.script.transactions)().into_iter().zip(&sample.by_transaction);
            for (kind, outcomes) in kinds.filter(|(kind, _)| !kind.name.is_empty()) {
                let share = outcomes.latencies_us.len() as f64 / all.latencies_us.len().max(1) as f64;
                row(format!("  {}", kind.name), sample.tps * share, outcomes);
            }
        }
        text += &format!("{}\n{table}", comparison.script.title);
        text += &match comparison.ratio() {
            Some(ratio) => format!(
                "  fabius has {ratio:.2} times the rate of postgresql (wanted: {})\n\n",
                comparison.script.wanted_of(options.replicated)
            ),
            None => "  no PostgreSQL was found on this machine to compare with\n\n".to_string(),
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
