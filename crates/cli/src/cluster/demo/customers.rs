//! Customers: each sends one order after the other, and the same again until it is answered.

use super::{ANSWER, connect};
use fabius_bench::recorder::{Latencies, latencies};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

/// What the customers were told.
pub(super) struct Tally {
    /// By customer: how many orders were acknowledged. They are numbered from one on.
    acknowledged: Vec<AtomicU64>,
    sent_again: AtomicU64,
    /// From the first time that an order was sent, since it was looked last.
    latencies: Mutex<Latencies>,
    begun: Instant,
    /// When an order was acknowledged last.
    last_us: AtomicU64,
    /// The longest time between two since it was looked last.
    longest_us: AtomicU64,
    has_ended: AtomicBool,
}

impl Tally {
    pub(super) fn of(customers: u32) -> Tally {
        Tally {
            acknowledged: (0..customers).map(|_| AtomicU64::new(0)).collect(),
            sent_again: AtomicU64::new(0),
            latencies: Mutex::new(latencies()),
            begun: Instant::now(),
            last_us: AtomicU64::new(0),
            longest_us: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Nobody begins another order.
    pub(super) fn end(&self) {
        self.has_ended.store(true, Relaxed);
    }

    /// Orders that were acknowledged.
    pub(super) fn total(&self) -> u64 {
        self.acknowledged().sum()
    }

    /// How many orders of each customer were acknowledged.
    pub(super) fn acknowledged(&self) -> impl Iterator<Item = u64> {
        self.acknowledged.iter().map(|count| count.load(Relaxed))
    }

    /// How often an order was sent another time.
    pub(super) fn sent_again(&self) -> u64 {
        self.sent_again.load(Relaxed)
    }

    /// Latencies in nanoseconds since this was asked last.
    pub(super) fn take_latencies(&self) -> Latencies {
        let mut kept = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *kept, latencies())
    }

    /// The longest time in which nobody was answered since this was asked last.
    pub(super) fn take_longest_wait(&self) -> Duration {
        let since_us = self.begun.elapsed().as_micros() as u64 - self.last_us.load(Relaxed);
        Duration::from_micros(self.longest_us.swap(0, Relaxed).max(since_us))
    }

    fn note(&self, customer: u32, number: u64, latency: Duration) {
        self.acknowledged[customer as usize].store(number, Relaxed);
        let now_us = self.begun.elapsed().as_micros() as u64;
        let last_us = self.last_us.fetch_max(now_us, Relaxed);
        self.longest_us.fetch_max(now_us.saturating_sub(last_us), Relaxed);
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.saturating_record(latency.as_nanos() as u64);
    }
}

/// Orders until the tally ends, and until the last order is answered.
pub(super) async fn order(nodes: Vec<String>, customer: u32, tally: Arc<Tally>) {
    let mut client = None;
    let mut number = 0;
    while !tally.has_ended.load(Relaxed) {
        number += 1;
        let begun = Instant::now();
        let mut is_sent = false;
        loop {
            let connection = match client.take() {
                Some(connection) => connection,
                None => connect_to_leader(&nodes).await,
            };
            let key = format!("order-{customer}-{number}");
            // It may have been taken without a word.
            if is_sent && is_done(&connection, &key).await {
                client = Some(connection);
                break;
            }
            if is_sent {
                tally.sent_again.fetch_add(1, Relaxed);
            }
            is_sent = true;
            let text = format!(
                "BEGIN; SET LOCAL fabius.idempotency_key = '{key}'; \
                 UPDATE stock SET sold = sold + 1 WHERE item = 1; \
                 INSERT INTO orders VALUES ({customer}, {number}); COMMIT"
            );
            if matches!(timeout(ANSWER, connection.batch_execute(&text)).await, Ok(Ok(()))) {
                client = Some(connection);
                break;
            }
        }
        tally.note(customer, number, begun.elapsed());
    }
}

async fn connect_to_leader(nodes: &[String]) -> Client {
    loop {
        for node in nodes {
            if let Some(client) = connect(&format!("{node} target_session_attrs=read-write")).await {
                return client;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether the transaction with a key has been committed. If it has not, its key keeps it from being committed twice,
/// should both it and the one that is sent again come through.
async fn is_done(client: &Client, key: &str) -> bool {
    let query = format!("SELECT fabius.outcome('{key}')");
    let asked = timeout(ANSWER, client.simple_query(&query)).await;
    let messages = asked.ok().and_then(Result::ok).unwrap_or_default();
    let outcome = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    outcome == Some("committed")
}
