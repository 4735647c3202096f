//! Many clients at a time, measured.

use super::client::{self, Client, Protocol};
use crate::interrupt::Interrupt;
use crate::machine;
use crate::recorder::{Latencies, latencies};
use crate::repeated::Repeated;
use crate::sample::{Percentiles, Rounds, Sample};
use fabius::{Error, Result, SqlState};
use fabius_env::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Kinds of transactions that one work has, at most.
pub const KINDS: usize = 5;

/// How many transactions of each kind.
pub type Kinds = [u64; KINDS];

/// Transactions that clients make.
pub trait Work: Send + Sync + 'static {
    /// What a connection keeps: prepared statements.
    type Statements: Send + Sync;

    /// Prepares a connection's statements.
    fn prepare(
        &self,
        client: &Client,
    ) -> impl Future<Output = Result<Self::Statements, tokio_postgres::Error>> + Send;

    /// Tries a transaction; every random choice comes from `random`. Gives its kind if it has committed.
    fn attempt(
        &self,
        client: &Client,
        statements: &Self::Statements,
        attempt: Attempt,
        random: &mut Random,
    ) -> impl Future<Output = Result<usize, tokio_postgres::Error>> + Send;

    /// Whether the database holds what so many transactions of each client leave behind, run one at a time.
    ///
    /// # Errors
    /// `XX000` with what is not so.
    fn check(&self, client: &Client, committed: &[Kinds]) -> impl Future<Output = Result<()>> + Send;
}

/// Whose attempt it is, and which.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The number of the client, from 0.
    pub client: usize,
    /// Whether the same transaction has conflicted before.
    pub is_again: bool,
}

/// How many clients, for how long.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server's port.
    pub port: u16,
    /// The server's process.
    pub process: u32,
    /// What the clients tell the database, and how they are kept apart.
    pub protocol: Protocol,
    /// Clients at a time.
    pub clients: usize,
    /// How long each message to the server is held back.
    pub delay: Duration,
    /// How long.
    pub time: Duration,
}

/// What clients have done.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Rates and latencies.
    pub sample: Sample,
    /// Of all attempts of each transaction.
    pub latencies: Latencies,
    /// What each client has committed.
    pub committed: Vec<Kinds>,
    /// How many attempts were given up, by reason.
    pub conflicts: BTreeMap<String, u64>,
    /// Messages that were sent.
    pub messages: u64,
    /// Processor time of the server; none where the system does not tell.
    pub server_cpu: Option<Duration>,
}

impl Ran {
    /// What several rounds gave, at least one: the throughput is the middle one, all else is of all together.
    pub fn together(rounds: &[Ran]) -> (Ran, Rounds) {
        let mut all = rounds[0].clone();
        for round in &rounds[1..] {
            all.latencies.add(&round.latencies).expect("histograms of equal bounds");
            all.committed.extend(&round.committed);
            round
                .conflicts
                .iter()
                .for_each(|(reason, count)| *all.conflicts.entry(reason.clone()).or_default() += count);
            all.messages += round.messages;
            all.server_cpu = all.server_cpu.zip(round.server_cpu).map(|(one, other)| one + other);
        }
        let each: Vec<Sample> = rounds.iter().map(|round| round.sample).collect();
        all.sample = Sample {
            throughput_tps: Repeated::of(each.iter().map(|sample| sample.throughput_tps).collect()).value,
            commit_us: Percentiles::of(&all.latencies),
            committed: each.iter().map(|sample| sample.committed).sum(),
            retries: each.iter().map(|sample| sample.retries).sum(),
            ..Sample::default()
        };
        (all.clone(), Rounds { all: all.sample, each })
    }

    /// Messages for each transaction that has committed, those of attempts that were given up among them.
    pub fn messages_each(&self) -> f64 {
        self.messages as f64 / self.sample.committed.max(1.0)
    }

    /// Processor time of the server for each transaction that has committed, in microseconds.
    pub fn server_cpu_us_each(&self) -> Option<f64> {
        self.server_cpu.map(|time| time.as_secs_f64() * 1e6 / self.sample.committed.max(1.0))
    }
}

struct Seen {
    messages: u64,
    committed: Kinds,
    conflicts: BTreeMap<String, u64>,
    latencies: Latencies,
}

/// Waits for something that a client does.
///
/// # Errors
/// Its own.
pub fn once<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| {
        Error::new(SqlState::IO_ERROR, "clients cannot be started").with_detail(error.to_string())
    })?;
    runtime.block_on(work)
}

/// Runs the clients; a transaction that conflicts is tried again until it commits, and its latency is that of all
/// its attempts. Retries are what the papers count as aborts.
///
/// # Errors
/// What ended a client but a conflict; `57014` if interrupted.
pub fn run<W: Work>(work: &Arc<W>, load: &Load, seed: u64, interrupt: &Interrupt) -> Result<Ran> {
    let (seen, elapsed, server_cpu) = once(async {
        let ready = Arc::new(tokio::sync::Barrier::new(load.clients + 1));
        let clients: Vec<_> = (0..load.clients)
            .map(|number| {
                let (work, load, ready, interrupt) =
                    (work.clone(), load.clone(), ready.clone(), interrupt.clone());
                tokio::spawn(async move { one(&*work, &load, number, seed, &ready, &interrupt).await })
            })
            .collect();
        let used = machine::processor_time(load.process);
        ready.wait().await;
        let began = Instant::now();
        let mut all = Vec::new();
        for client in clients {
            let seen = client.await.map_err(|error| {
                Error::new(SqlState(*b"XX000"), "a client failed").with_detail(error.to_string())
            })?;
            all.push(seen?);
        }
        let elapsed = began.elapsed();
        let used = machine::processor_time(load.process).zip(used).map(|(after, before)| after - before);
        Ok::<_, Error>((all, elapsed, used))
    })?;
    if interrupt.is_raised() {
        return Err(Error::new(SqlState::CANCELED, "interrupted"));
    }
    let mut all = latencies();
    let mut conflicts = BTreeMap::new();
    for one in &seen {
        all.add(&one.latencies).expect("histograms of equal bounds");
        for (reason, count) in &one.conflicts {
            *conflicts.entry(reason.clone()).or_default() += count;
        }
    }
    let committed: Vec<Kinds> = seen.iter().map(|one| one.committed).collect();
    let total = committed.iter().flatten().sum::<u64>() as f64;
    let sample = Sample {
        throughput_tps: total / elapsed.as_secs_f64(),
        commit_us: Percentiles::of(&all),
        committed: total,
        retries: conflicts.values().sum::<u64>() as f64,
        ..Sample::default()
    };
    let messages = seen.iter().map(|one| one.messages).sum();
    Ok(Ran { sample, latencies: all, committed, conflicts, messages, server_cpu })
}

async fn one<W: Work>(
    work: &W,
    load: &Load,
    number: usize,
    seed: u64,
    ready: &tokio::sync::Barrier,
    interrupt: &Interrupt,
) -> Result<Seen> {
    let prepared = async {
        let client = Client::connect(load.port, load.protocol, load.delay).await?;
        let statements = work.prepare(&client).await.map_err(client::refused)?;
        Ok::<_, Error>((client, statements))
    };
    let prepared = prepared.await;
    ready.wait().await;
    let (client, statements) = prepared?;
    let mut random = Random::seeded(seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut seen =
        Seen { messages: 0, committed: [0; KINDS], conflicts: BTreeMap::new(), latencies: latencies() };
    let end = Instant::now() + load.time;
    while Instant::now() < end && !interrupt.is_raised() {
        let (began, choices) = (Instant::now(), random.clone());
        let mut attempt = Attempt { client: number, is_again: false };
        loop {
            random = choices.clone();
            let error = match work.attempt(&client, &statements, attempt, &mut random).await {
                Ok(kind) => {
                    seen.committed[kind] += 1;
                    seen.latencies.saturating_record(began.elapsed().as_nanos() as u64);
                    break;
                }
                Err(error) => error,
            };
            let Some(reason) = client::conflict(&error) else { return Err(client::refused(error)) };
            *seen.conflicts.entry(reason).or_default() += 1;
            client.abandon().await.map_err(client::refused)?;
            attempt.is_again = true;
            if Instant::now() >= end {
                break;
            }
        }
    }
    seen.messages = client.messages();
    Ok(seen)
}

/// Checks the work's database.
///
/// # Errors
/// As [`Work::check`]; if there is no connection.
pub fn check<W: Work>(work: &W, load: &Load, committed: &[Kinds]) -> Result<()> {
    once(async {
        let client = Client::connect(load.port, Protocol::FOUR[0], Duration::ZERO).await?;
        work.check(&client, committed).await
    })
}

/// The error of a check.
pub fn not_so(what: String) -> Error {
    Error::new(SqlState(*b"XX000"), "the database does not hold what its transactions have left")
        .with_detail(what)
}

/// The share of attempts that were given up.
pub fn abort_share(sample: &Sample) -> f64 {
    sample.retries / (sample.committed + sample.retries).max(1.0)
}

/// The most frequent reasons, with their shares: `district changed 71 %, stock changed 29 %`.
pub fn reasons(conflicts: &BTreeMap<String, u64>) -> String {
    let all = conflicts.values().sum::<u64>().max(1) as f64;
    let mut sorted: Vec<_> = conflicts.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shares = sorted
        .iter()
        .take(3)
        .map(|(reason, count)| format!("{reason} {:.0} %", **count as f64 / all * 100.0));
    shares.collect::<Vec<_>>().join(", ")
}
