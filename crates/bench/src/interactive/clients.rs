//! Many clients at a time, measured.

use super::client::{self, Client, Protocol};
use crate::interrupt::Interrupt;
use crate::recorder::{Latencies, latencies};
use crate::sweep::{Percentiles, Sample};
use fabius::{Error, Result, SqlState};
use fabius_env::Random;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Transactions that clients make.
pub trait Work: Send + Sync + 'static {
    /// What a connection keeps: prepared statements.
    type Statements: Send + Sync;

    /// Prepares a connection's statements.
    fn prepare(
        &self,
        client: &Client,
    ) -> impl Future<Output = Result<Self::Statements, tokio_postgres::Error>> + Send;

    /// Tries one transaction; every random choice comes from `random`.
    fn attempt(
        &self,
        client: &Client,
        statements: &Self::Statements,
        number: usize,
        random: &mut Random,
    ) -> impl Future<Output = Result<(), tokio_postgres::Error>> + Send;
}

/// How many clients, for how long.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server's port.
    pub port: u16,
    /// What the clients tell the database, and how they are kept apart.
    pub protocol: Protocol,
    /// Clients at a time.
    pub clients: usize,
    /// How long each message to the server is held back.
    pub delay: Duration,
    /// How long.
    pub time: Duration,
}

struct Seen {
    committed: u64,
    conflicts: u64,
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
pub fn run<W: Work>(work: &Arc<W>, load: &Load, seed: u64, interrupt: &Interrupt) -> Result<Sample> {
    let (seen, elapsed) = once(async {
        let ready = Arc::new(tokio::sync::Barrier::new(load.clients + 1));
        let clients: Vec<_> = (0..load.clients)
            .map(|number| {
                let (work, load, ready, interrupt) =
                    (work.clone(), load.clone(), ready.clone(), interrupt.clone());
                tokio::spawn(async move { one(&*work, &load, number, seed, &ready, &interrupt).await })
            })
            .collect();
        ready.wait().await;
        let began = Instant::now();
        let mut all = Vec::new();
        for client in clients {
            let seen = client.await.map_err(|error| {
                Error::new(SqlState(*b"XX000"), "a client failed").with_detail(error.to_string())
            })?;
            all.push(seen?);
        }
        Ok::<_, Error>((all, began.elapsed()))
    })?;
    if interrupt.is_raised() {
        return Err(Error::new(SqlState::CANCELED, "interrupted"));
    }
    let mut all = latencies();
    for one in &seen {
        all.add(&one.latencies).expect("histograms of equal bounds");
    }
    let committed = seen.iter().map(|one| one.committed).sum::<u64>() as f64;
    Ok(Sample {
        throughput_tps: committed / elapsed.as_secs_f64(),
        commit_us: Percentiles::of(&all),
        committed,
        retries: seen.iter().map(|one| one.conflicts).sum::<u64>() as f64,
        ..Sample::default()
    })
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
    let mut seen = Seen { committed: 0, conflicts: 0, latencies: latencies() };
    let end = Instant::now() + load.time;
    while Instant::now() < end && !interrupt.is_raised() {
        let (began, choices) = (Instant::now(), random.clone());
        loop {
            random = choices.clone();
            match work.attempt(&client, &statements, number, &mut random).await {
                Ok(()) => {
                    seen.committed += 1;
                    seen.latencies.saturating_record(began.elapsed().as_nanos() as u64);
                    break;
                }
                Err(error) if client::is_conflict(&error) => {
                    seen.conflicts += 1;
                    if Instant::now() >= end {
                        break;
                    }
                }
                Err(error) => return Err(client::refused(error)),
            }
        }
    }
    Ok(seen)
}

/// The share of attempts that were given up.
pub fn abort_share(sample: &Sample) -> f64 {
    sample.retries / (sample.committed + sample.retries).max(1.0)
}
