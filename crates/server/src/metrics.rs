//! What is counted, for Prometheus.
//!
//! Handles are made once; counting a statement costs two atomic additions. What the engine counts itself is read
//! when somebody asks.

use fabius::Database;
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bounds of the latency histograms, seconds.
const LATENCIES: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

/// Kinds of statements that are told apart: the first word of their tags.
const KINDS: &[&str] = &[
    "SELECT", "INSERT", "UPDATE", "DELETE", "COPY", "BEGIN", "COMMIT", "ROLLBACK", "SET", "SHOW", "CALL",
    "other",
];

struct Kind {
    count: Counter,
    seconds: Histogram,
}

/// The server's counters.
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    kinds: Vec<Kind>,
    errors: Mutex<HashMap<[u8; 5], Counter>>,
    /// Sessions that are open.
    pub connections: Gauge,
    /// Connections that came.
    pub accepted: Counter,
    /// Connections that were turned away because there were too many.
    pub rejected: Counter,
    /// Transactions that waited at their `BEGIN`.
    pub held_back: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let builder = PrometheusBuilder::new();
        let builder = builder.set_buckets(LATENCIES).unwrap_or_else(|_| PrometheusBuilder::new());
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        let made = metrics::with_local_recorder(&recorder, || {
            describe();
            let kind = |kind: &&'static str| Kind {
                count: counter!("fabius_statements_total", "kind" => *kind),
                seconds: histogram!("fabius_statement_duration_seconds", "kind" => *kind),
            };
            (
                KINDS.iter().map(kind).collect(),
                gauge!("fabius_connections"),
                counter!("fabius_connections_accepted_total"),
                counter!("fabius_connections_rejected_total"),
                counter!("fabius_transactions_held_back_total"),
            )
        });
        let (kinds, connections, accepted, rejected, held_back) = made;
        let errors = Mutex::default();
        Metrics { recorder, handle, kinds, errors, connections, accepted, rejected, held_back }
    }
}

fn describe() {
    describe_gauge!("fabius_connections", "Sessions that are open");
    describe_counter!("fabius_connections_accepted_total", "Connections that came");
    describe_counter!("fabius_connections_rejected_total", "Connections turned away: too many");
    describe_counter!(
        "fabius_transactions_held_back_total",
        "Transactions that waited at their BEGIN while locks were waited for"
    );
    describe_counter!("fabius_statements_total", "Statements that were done, by kind");
    describe_histogram!("fabius_statement_duration_seconds", "How long statements took, by kind");
    describe_counter!("fabius_errors_total", "Statements that failed, by SQLSTATE");
    describe_counter!("fabius_calls_promised_total", "Calls whose outcome is decided: committed");
    describe_counter!("fabius_calls_aborted_total", "Calls whose outcome is decided: aborted");
    describe_counter!("fabius_calls_substantiated_total", "Deferred calls whose later-phase has run");
    describe_counter!(
        "fabius_calls_substantiated_in_lane_total",
        "Those of them that ran while the lane waited, because a now-phase read what they write"
    );
    describe_counter!("fabius_calls_skipped_total", "Deferred calls dropped unread, without running");
    describe_counter!("fabius_calls_immediate_total", "Calls that needed no later-phase");
    describe_counter!("fabius_calls_retried_total", "Attempts given up and repeated");
    describe_counter!(
        "fabius_callers_slowed_total",
        "Times that callers were slowed down for want of memory"
    );
    describe_gauge!("fabius_backlog_calls", "Deferred calls neither run nor dropped yet");
    describe_counter!("fabius_log_bytes_total", "Bytes appended to the log");
    describe_counter!("fabius_deltas_merged_total", "Deltas merged into one that stood there already");
    describe_gauge!(
        "fabius_checkpoint_failed",
        "1 if the last checkpoint that the log's growth asked for has failed: the log grows on, and opening takes longer"
    );
    describe_gauge!("fabius_cluster_leads", "1 if this node leads its cluster");
    describe_gauge!("fabius_cluster_members", "Members of the cluster that this node knows of");
    describe_gauge!("fabius_cluster_term", "The newest term that this node knows of");
    describe_gauge!(
        "fabius_cluster_agreed_index",
        "Entries of the log that are agreed on, as far as this node knows"
    );
    describe_gauge!("fabius_cluster_taken_index", "Entries of the log that this node has executed");
    describe_gauge!("process_resident_memory_bytes", "Memory of the process");
}

impl Metrics {
    /// Counts a statement that is done; `tag` is its command's.
    pub fn statement(&self, tag: &str, took: Duration) {
        let word = tag.split(' ').next().unwrap_or_default();
        let at = KINDS.iter().position(|kind| *kind == word).unwrap_or(KINDS.len() - 1);
        self.kinds[at].count.increment(1);
        self.kinds[at].seconds.record(took.as_secs_f64());
    }

    /// Counts a statement that failed.
    pub fn error(&self, state: [u8; 5]) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = errors.entry(state).or_insert_with(|| {
            let code = String::from_utf8_lossy(&state).into_owned();
            metrics::with_local_recorder(
                &self.recorder,
                || counter!("fabius_errors_total", "sqlstate" => code),
            )
        });
        counter.increment(1);
    }

    /// All of it in Prometheus' text format, the engine's counts as they are now.
    pub fn render(&self, database: &Database) -> String {
        let counts = database.counts();
        metrics::with_local_recorder(&self.recorder, || {
            for (name, value) in [
                ("fabius_calls_promised_total", counts.committed),
                ("fabius_calls_aborted_total", counts.aborted),
                ("fabius_calls_substantiated_total", counts.substantiated),
                ("fabius_calls_substantiated_in_lane_total", counts.substantiated_in_lane),
                ("fabius_calls_skipped_total", counts.skipped),
                ("fabius_calls_immediate_total", counts.immediate),
                ("fabius_calls_retried_total", counts.retries),
                ("fabius_callers_slowed_total", counts.slowed),
                ("fabius_log_bytes_total", counts.log_bytes),
                ("fabius_deltas_merged_total", counts.merged),
            ] {
                counter!(name).absolute(value);
            }
            gauge!("fabius_backlog_calls").set(counts.backlog as f64);
            let has_failed = database.checkpoint_status().failed.is_some();
            gauge!("fabius_checkpoint_failed").set(f64::from(u8::from(has_failed)));
            if let Some(status) = database.member_status() {
                gauge!("fabius_cluster_leads").set(f64::from(u8::from(status.standing.leads)));
                gauge!("fabius_cluster_members").set(status.members.len() as f64);
                gauge!("fabius_cluster_term").set(status.standing.term as f64);
                gauge!("fabius_cluster_agreed_index").set(status.standing.agreed as f64);
                gauge!("fabius_cluster_taken_index").set(status.taken as f64);
            }
            if let Some(bytes) = resident_bytes() {
                gauge!("process_resident_memory_bytes").set(bytes as f64);
            }
        });
        self.handle.render()
    }

    /// Takes in what histograms have gathered; called every few seconds so that they stay small.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }
}

/// Memory of this process, where the system says.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
