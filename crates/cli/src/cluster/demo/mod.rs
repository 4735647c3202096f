//! `fabius cluster demo`: three nodes, a row that everyone wants, what befalls the nodes meanwhile, and proof that
//! nothing was lost.

mod customers;
mod proof;

use crate::cluster::client::{ANSWER, connect, failed, shown_by};
use crate::message::out;
use crate::number::{real, whole};
use clap::Args;
use customers::{Tally, order};
use fabius::{Error, Result, SqlState};
use fabius_bench::cluster_process::{ClusterProcess, Wiring};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::server_process::ServerProcess;
use fabius_bench::table::{grouped, time};
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_postgres::Client;

/// `fabius cluster demo ...`
#[derive(Args)]
#[command(after_help = "Examples:
  fabius cluster demo
  fabius cluster demo --seconds 60 --customers 32 --dir /data/tmp
")]
pub struct Demo {
    /// How long customers order
    #[arg(long, default_value_t = 25.0, value_name = "S", value_parser = real(10.0, 3600.0), allow_negative_numbers = true)]
    seconds: f64,
    /// Customers, each of whom sends one order after the other
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = whole::<u32>(1, 512), allow_negative_numbers = true)]
    customers: u32,
    /// Where to make the databases [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// What is said at once when the user wants no more of it.
pub const INTERRUPTED: &str =
    "\nInterrupted: nothing more is ordered; what was is added up on all nodes.\n\n";

const NODES: usize = 3;
/// How long the cluster may take to begin, and to be of one mind in the end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked meanwhile.
const NAP: Duration = Duration::from_millis(50);

const TABLES: &str = "CREATE TABLE stock (item integer PRIMARY KEY, sold bigint NOT NULL);
    INSERT INTO stock VALUES (1, 0);
    CREATE TABLE orders (customer integer, number bigint, PRIMARY KEY (customer, number))";

/// What is done to the nodes, once so much of the time has passed.
const EVENTS: [(f64, Event); 4] =
    [(0.2, Event::Killed), (0.4, Event::StartedAgain), (0.55, Event::CutOff), (0.8, Event::Mended)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// It happens to whoever leads, and so does the cut.
    Killed,
    StartedAgain,
    CutOff,
    Mended,
}

/// Runs the demo.
///
/// # Errors
/// If the nodes cannot be started, or do not answer.
pub fn run(arguments: &Demo, interrupt: &Interrupt) -> Result<ExitCode> {
    out(&format!(
        "Fabius: one database on three nodes. {} customers order the same item; each order is a transaction that two nodes have
synced before its customer is told. An order without an answer is sent again, to whichever node leads, under its key.\n\n",
        arguments.customers
    ));
    let program = ServerProcess::this_program()?;
    let parent = arguments.dir.as_deref();
    let cluster = ClusterProcess::start(&program, parent, NODES, Wiring::Links, &["--log", "error"])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| {
        Error::new(SqlState::IO_ERROR, "customers cannot be started").with_detail(error.to_string())
    })?;
    runtime.block_on(Stage { cluster, seconds: arguments.seconds }.play(arguments.customers, interrupt))
}

struct Stage {
    cluster: ClusterProcess,
    seconds: f64,
}

impl Stage {
    async fn play(mut self, customers: u32, interrupt: &Interrupt) -> Result<ExitCode> {
        let conninfo = |node: &ServerProcess| {
            format!("host=127.0.0.1 port={} user=demo dbname={}", node.port, node.database())
        };
        let nodes: Vec<String> = self.cluster.nodes.iter().map(conninfo).collect();
        let leader = who_leads(&nodes).await?;
        leader.batch_execute(TABLES).await.map_err(|error| failed("the tables cannot be made", &error))?;
        let tally = Arc::new(Tally::of(customers));
        let ordering: Vec<_> = (0..customers)
            .map(|customer| tokio::spawn(order(nodes.clone(), customer, tally.clone())))
            .collect();
        self.befall(&nodes, &tally, interrupt).await?;
        tally.end();
        for customer in ordering {
            let ended = timeout(PATIENCE, customer).await.map_err(|_| silent("a customer gets no answer"))?;
            ended.map_err(|error| {
                Error::new(SqlState::INTERNAL, "a customer has panicked").with_detail(error.to_string())
            })?;
        }
        out(&format!(
            "\n{} orders are acknowledged, {} of them were sent more than once.\n\nDoes it add up?\n",
            grouped(tally.total() as f64),
            grouped(tally.sent_again() as f64),
        ));
        let is_right = proof::prove(&nodes, &tally).await?;
        out("\nHow to run three nodes, and what each failure looks like: docs/cluster.md\n");
        Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Lets the time pass: a line each second, and what is to be done to the nodes, which are all well in the end.
    async fn befall(&mut self, nodes: &[String], tally: &Tally, interrupt: &Interrupt) -> Result<()> {
        out(" time   orders/s       p50       p99   calls that each node has executed\n");
        let mut watchers: Vec<Option<Client>> = nodes.iter().map(|_| None).collect();
        let mut events = EVENTS.iter().peekable();
        let (mut total, mut victim) = (0, None);
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        ticks.tick().await;
        let begun = Instant::now();
        let passed = |part: f64, seconds: f64| begun.elapsed().as_secs_f64() >= seconds * part;
        while !passed(1.0, self.seconds) && !interrupt.is_raised() {
            ticks.tick().await;
            let mut shown = Vec::new();
            for (watcher, node) in watchers.iter_mut().zip(nodes) {
                shown.push(show(watcher, node).await);
            }
            let latencies = tally.take_latencies();
            let before = std::mem::replace(&mut total, tally.total());
            let columns: Vec<String> = (1..).zip(&shown).map(|(node, shown)| column(node, shown)).collect();
            out(&format!(
                "{:>3.0} s {:>10} {:>9} {:>9}   {}\n",
                begun.elapsed().as_secs_f64(),
                grouped((total - before) as f64),
                time(latencies.value_at_quantile(0.5)),
                time(latencies.value_at_quantile(0.99)),
                columns.join("   ")
            ));
            if let Some((_, event)) = events.next_if(|(part, _)| passed(*part, self.seconds)) {
                let leads =
                    |shown: &Option<Value>| shown.as_ref().is_some_and(|shown| shown["leads"] == true);
                victim = victim.or_else(|| shown.iter().position(leads));
                if let Some(node) = victim {
                    self.happen(*event, node, tally)?;
                }
                victim = victim.filter(|_| matches!(event, Event::Killed | Event::CutOff));
            }
        }
        // Interrupted in between.
        if let (Some(node), Some((_, event))) = (victim, events.next()) {
            self.happen(*event, node, tally)?;
        }
        Ok(())
    }

    fn happen(&mut self, event: Event, node: usize, tally: &Tally) -> Result<()> {
        let number = node + 1;
        let waited = time(tally.take_longest_wait().as_nanos() as u64);
        let meanwhile = format!("meanwhile customers were without an answer for {waited} at most");
        let said = match event {
            Event::Killed => {
                self.cluster.nodes[node].kill();
                format!("node {number}, which leads, is killed")
            }
            Event::StartedAgain => {
                self.cluster.nodes[node].start_again()?;
                format!("node {number} is started again; {meanwhile}")
            }
            Event::CutOff => {
                self.cluster.cut_off(node, true);
                format!("node {number}, which leads, is cut off from the others")
            }
            Event::Mended => {
                self.cluster.cut_off(node, false);
                format!("node {number} is connected again; {meanwhile}")
            }
        };
        out(&format!("      -- {said}\n"));
        Ok(())
    }
}

/// A connection to the node that leads, once one does.
async fn who_leads(nodes: &[String]) -> Result<Client> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        for node in nodes {
            if let Some(client) = connect(&format!("{node} target_session_attrs=read-write")).await {
                return Ok(client);
            }
        }
        tokio::time::sleep(NAP).await;
    }
    Err(silent("no node leads"))
}

/// How a node says that it stands; nothing if it does not answer.
async fn show(watcher: &mut Option<Client>, node: &str) -> Option<Value> {
    if watcher.is_none() {
        // What it knows by itself, also when it is cut off.
        *watcher = connect(&format!("{node} options='-c fabius.reads=snapshot'")).await;
    }
    let shown = match watcher {
        Some(client) => shown_by(client, ANSWER).await,
        None => None,
    };
    if shown.is_none() {
        *watcher = None;
    }
    shown
}

/// A node's place in a line: what it has executed, and whether it leads.
fn column(node: usize, shown: &Option<Value>) -> String {
    let Some(shown) = shown else { return format!("{node}: {:>9}      ", "-") };
    let seq = shown["seq"].as_u64().unwrap_or_default();
    let leads = if shown["leads"] == true { "leads" } else { "" };
    format!("{node}: {:>9} {leads:<5}", grouped(seq as f64))
}

fn silent(what: &str) -> Error {
    Error::new(SqlState(*b"08006"), what)
        .with_detail(format!("not within {} s", PATIENCE.as_secs()))
        .with_hint("the machine may have too much to do; fewer customers may help")
}
