//! Random transactions of clients at all nodes of a cluster, which are far from each other and cut off now and then:
//! they have an order, which keeps to real time, in which they would have shown what they have shown.
//!
//! Each client stays at its node, in whatever state that is. What it gets no answer of it asks for by its key.
//! `FABIUS_HISTORIES` is how many histories are checked (1), `FABIUS_SEED` the first one's seed.

use crate::cluster::connect_patiently;
use crate::histories::{Answer, ITEMS, Operation, Stock, block, number, run};
use crate::support::PATIENCE;
use fabius_bench::cluster_process::{ClusterProcess, Wiring};
use fabius_env::Random;
use fabius_testing::recorded::{self, Committed};
use fabius_value::Seq;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::Client;

const NODES: usize = 3;
const CLIENTS: u64 = 5;
const TRANSACTIONS: u64 = 40;
/// Times that one transaction is tried before it is taken to get nowhere.
const ATTEMPTS: u64 = 2_000;
/// How long a client waits for an answer.
const ANSWER: Duration = Duration::from_secs(3);
/// How long it first waits for those of a transaction; each time it is tried again, it waits for as much longer.
const IMPATIENCE: Duration = Duration::from_millis(400);

/// What an operation has shown; `None` if that was lost on the way.
#[derive(Clone, Debug)]
struct Shown(Option<Answer>);

impl PartialEq for Shown {
    fn eq(&self, other: &Shown) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

type History = Vec<Committed<Operation, Shown>>;

/// A client that stays at its node.
struct Staying {
    conninfo: String,
    client: Client,
    /// Whether it locks rows, as long as its node leads.
    locks: bool,
}

impl Staying {
    async fn at(conninfo: String, mode: &str) -> Staying {
        let client = connect_patiently(std::slice::from_ref(&conninfo)).await;
        run(&client, &format!("SET fabius.concurrency = '{mode}'")).await.expect("a mode");
        Staying { conninfo, client, locks: mode.ends_with("pessimistic") }
    }

    async fn connect_again(&mut self) {
        *self = Staying::at(std::mem::take(&mut self.conninfo), "optimistic").await;
    }

    /// The first row's only column, once its node answers.
    async fn learn(&mut self, text: &str) -> String {
        loop {
            if let Ok(Ok(rows)) = timeout(ANSWER, run(&self.client, text)).await
                && let Some(first) = rows.into_iter().next()
            {
                return first;
            }
            self.connect_again().await;
        }
    }

    /// Where a transaction came in the order that was sent under a key; nowhere if it did not, and then it never will.
    async fn settle(&mut self, key: &str) -> Option<Seq> {
        self.connect_again().await;
        loop {
            if let Ok(Ok(own)) = timeout(ANSWER, self.claim(key)).await {
                let first = self.learn(&format!("SELECT fabius.outcome_seq('{key}')")).await;
                return (first != own).then(|| Seq(first.parse().expect("a number")));
            }
            self.connect_again().await;
        }
    }

    /// Takes a key, unless a transaction has: where that came in the order.
    async fn claim(&self, key: &str) -> Result<String, String> {
        run(&self.client, &format!("SET fabius.idempotency_key = '{key}'")).await?;
        run(&self.client, "UPDATE stock SET qty = qty WHERE id < 0").await?;
        run(&self.client, "RESET fabius.idempotency_key").await?;
        Ok(run(&self.client, "SELECT fabius.last_seq()").await?.remove(0))
    }
}

async fn client(mut at: Staying, (clock, settled): (&AtomicU64, &AtomicU64), seed: u64) -> History {
    let mut random = Random::seeded(seed);
    let mut history = Vec::new();
    for transaction in 0..TRANSACTIONS {
        let count = if random.chance(1, 3) { 1 } else { 1 + random.below(4) };
        let mut operations: Vec<Operation> = (0..count).map(|_| Operation::any(&mut random)).collect();
        let is_alone = count == 1 && random.chance(1, 2);
        for attempt in 0.. {
            assert!(attempt < ATTEMPTS, "no progress: {operations:?}");
            if !at.locks {
                // No node but the one that leads gives locks.
                for operation in &mut operations {
                    if let Operation::ReadLocked(item, _) = *operation {
                        *operation = Operation::Read(item);
                    }
                }
            }
            if attempt > 0 && at.locks {
                // Its node may lead no more.
                at.locks =
                    run(&at.client, "SELECT pg_is_in_recovery()").await.is_ok_and(|said| said == ["f"]);
            }
            let key = format!("{seed} {transaction} {attempt}");
            let keyed = format!("SET fabius.idempotency_key = '{key}'");
            let began = clock.fetch_add(1, SeqCst);
            let mut shown = Vec::new();
            let work = async {
                run(&at.client, &keyed).await?;
                match is_alone {
                    true => {
                        let answer = run(&at.client, &operations[0].text()).await?;
                        shown.push((operations[0].clone(), answer));
                    }
                    false => block(&at.client, &operations, &mut random, &mut shown).await?,
                }
                let seq = run(&at.client, "SELECT fabius.last_seq()").await?;
                seq.first().and_then(|seq| seq.parse().ok()).map(Seq).ok_or_else(|| "no seq".to_string())
            };
            let outcome = timeout(IMPATIENCE * (1 + attempt as u32), work)
                .await
                .unwrap_or_else(|_| Err("no answer".into()));
            let writes = operations.iter().any(Operation::writes);
            let known: Vec<(Operation, Shown)> = shown
                .iter()
                .map(|(operation, answer)| (operation.clone(), Shown(Some(answer.clone()))))
                .collect();
            let (seq, wrote, shown) = match outcome {
                Ok(seq) => {
                    let has_changed = |(operation, answer): &(Operation, Answer)| {
                        operation.writes() && answer != &["changed 0".to_string()]
                    };
                    (seq, shown.iter().any(has_changed), known)
                }
                Err(state) if state == "40001" => {
                    if run(&at.client, "ROLLBACK").await.is_err() {
                        at.connect_again().await;
                    }
                    continue;
                }
                Err(_) => match at.settle(&key).await {
                    // Reading does not use up a key.
                    Some(seq) if writes => {
                        settled.fetch_add(1, SeqCst);
                        let lost = |operation: &Operation| (operation.clone(), Shown(None));
                        let shown = if is_alone { operations.iter().map(lost).collect() } else { known };
                        (seq, true, shown)
                    }
                    _ => continue,
                },
            };
            let ended = clock.fetch_add(1, SeqCst);
            history.push(Committed { seq, wrote, began, ended, shown });
            break;
        }
    }
    history
}

/// What befalls links while clients go on.
fn disturb(cluster: &ClusterProcess, cuts: bool, random: &mut Random, is_over: &dyn Fn() -> bool) {
    let pause = |random: &mut Random, least_ms: u64| {
        let until = std::time::Instant::now() + Duration::from_millis(least_ms + random.below(1_000));
        while std::time::Instant::now() < until && !is_over() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    while !is_over() {
        let mut delays = [[Duration::ZERO; NODES]; NODES];
        delays.iter_mut().flatten().for_each(|delay| *delay = Duration::from_millis(random.below(15)));
        cluster.delay(|from, to| delays[from][to]);
        pause(random, 200);
        if cuts {
            let (node, other) = (random.index(NODES), random.index(NODES - 1));
            let other = if other >= node { other + 1 } else { other };
            let is_whole = random.chance(2, 3);
            let cut = |is_cut| match is_whole {
                true => cluster.cut_off(node, is_cut),
                false => cluster.cut(node, other, is_cut),
            };
            cut(true);
            pause(random, 200);
            cut(false);
            pause(random, 200);
        }
    }
}

fn check(cluster: &ClusterProcess, cuts: bool, seed: u64) {
    let conninfo =
        |node: usize| format!("host=127.0.0.1 port={} dbname=fabius user=tester", cluster.nodes[node].port);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let begun = runtime.block_on(async {
        let leads: Vec<String> =
            (0..NODES).map(|node| format!("{} target_session_attrs=read-write", conninfo(node))).collect();
        let writer = connect_patiently(&leads).await;
        for text in [
            "CREATE TABLE IF NOT EXISTS stock (id integer PRIMARY KEY, qty integer)",
            "CREATE INDEX IF NOT EXISTS stock_qty ON stock (qty)",
            "DELETE FROM stock",
            "INSERT INTO stock SELECT id, 10 FROM generate_series(1, 3) id",
        ] {
            run(&writer, text).await.expect(text);
        }
        let mut leader = 0;
        for node in 0..NODES {
            let client = connect_patiently(&[conninfo(node)]).await;
            if run(&client, "SELECT pg_is_in_recovery()").await.is_ok_and(|said| said == ["f"]) {
                leader = node;
            }
        }
        let mut begun = Vec::new();
        for number in 0..CLIENTS as usize {
            // The leader's locks and what other nodes write meet as long as nobody is cut off.
            let (node, mode) = match number {
                0 | 1 if !cuts => (leader, ["pessimistic", "conventional_pessimistic"][number]),
                _ => ((leader + number) % NODES, "optimistic"),
            };
            begun.push(Staying::at(conninfo(node), mode).await);
        }
        begun
    });
    let (clock, settled) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..)
        .zip(begun)
        .map(|(number, at)| {
            let (clock, settled) = (clock.clone(), settled.clone());
            runtime.spawn(async move { client(at, (&clock, &settled), seed * 100 + number).await })
        })
        .collect();
    let history: History = std::thread::scope(|scope| {
        let disturbing = is_over.clone();
        scope.spawn(move || {
            disturb(cluster, cuts, &mut Random::seeded(seed), &|| disturbing.load(SeqCst));
            cluster.delay(|_, _| Duration::ZERO);
        });
        let all = async { timeout(PATIENCE * 4, futures::future::join_all(clients)).await };
        let ended = runtime.block_on(all);
        is_over.store(true, SeqCst);
        let ended = ended.expect("clients come to their end");
        ended.into_iter().flat_map(|history| history.expect("a client")).collect()
    });
    println!(
        "{} transactions, of {} of which committed without an answer",
        history.len(),
        settled.load(SeqCst)
    );
    let again = format!(
        "FABIUS_SEED={seed} FABIUS_HISTORIES=1 cargo test --workspace --test server -- cluster_histories"
    );
    let mut stock: Stock = (1..=3).map(|id| (id, Some(10))).collect();
    recorded::check(history, &mut stock, |operation, stock| Shown(Some(operation.run(stock))))
        .unwrap_or_else(|wrong| panic!("{wrong}\nonce more: {again}"));
    for node in 0..NODES {
        let rows = runtime.block_on(async {
            let client = connect_patiently(&[conninfo(node)]).await;
            run(&client, &Operation::Scan(0, 10 * ITEMS as i64).text()).await.expect("the rows")
        });
        assert_eq!(
            rows,
            Operation::Scan(0, 10 * ITEMS as i64).run(&mut stock),
            "node {node}; once more: {again}"
        );
    }
}

/// Goal: whoever reads at a seq that is still to come is shown that state once it is there, at any node; a node that
/// is cut off shows what it has at once, and says how old that may be.
#[test]
fn a_seq_still_to_come_is_waited_for_and_old_states_say_their_age() {
    let program = Path::new(env!("CARGO_BIN_EXE_fabius"));
    let arguments = ["--log", "error", "--history", "1h"];
    let cluster = ClusterProcess::start(program, None, NODES, Wiring::Links, &arguments).expect("a cluster");
    let conninfo =
        |node: usize| format!("host=127.0.0.1 port={} dbname=fabius user=tester", cluster.nodes[node].port);
    let work = async {
        let writer = connect_patiently(&[conninfo(0)]).await;
        let leads: Vec<String> =
            (0..NODES).map(|node| format!("{} target_session_attrs=read-write", conninfo(node))).collect();
        let leader = connect_patiently(&leads).await;
        run(&leader, "CREATE TABLE t (id integer PRIMARY KEY)").await.expect("a table");
        run(&writer, "INSERT INTO t VALUES (0)").await.expect("a row");
        let now = run(&writer, "SELECT fabius.last_seq()").await.expect("its place")[0]
            .parse::<u64>()
            .expect("a number");
        let reading: Vec<_> = (0..NODES)
            .map(|node| {
                let conninfo = conninfo(node);
                tokio::spawn(async move {
                    let reader = connect_patiently(&[conninfo]).await;
                    run(&reader, &format!("SET fabius.as_of = '{}'", now + 20)).await.expect("a number");
                    run(&reader, "BEGIN").await.expect("a transaction");
                    let rows = run(&reader, "SELECT count(*) FROM t").await.expect("the rows");
                    let seq = run(&reader, "SELECT fabius.seq()").await.expect("where it reads");
                    (rows, seq)
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(reading.iter().all(|reading| !reading.is_finished()), "it is not there yet");
        for id in 1..40 {
            run(&leader, &format!("INSERT INTO t VALUES ({id})")).await.expect("a row");
        }
        let mut shown = Vec::new();
        for reading in reading {
            shown.push(timeout(PATIENCE, reading).await.expect("it ends").expect("it reads"));
        }
        assert_eq!(shown[0].1, [(now + 20).to_string()]);
        assert!(shown.iter().all(|other| *other == shown[0]), "{shown:?}");
        let cut = connect_patiently(&[conninfo(1)]).await;
        run(&cut, "SET fabius.reads = 'snapshot'").await.expect("a setting");
        assert!(age_of(&cut).await < 1.0, "it has just heard of the others");
        cluster.cut_off(1, true);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(run(&cut, "SELECT count(*) FROM t").await, Ok(vec!["40".to_string()]));
        let old = age_of(&cut).await;
        assert!(old > 1.0 && old < 60.0, "{old}");
        cluster.cut_off(1, false);
        let begun = std::time::Instant::now();
        while age_of(&cut).await > 0.5 {
            assert!(begun.elapsed() < PATIENCE, "it stays old");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async { timeout(PATIENCE * 2, work).await.expect("it ends in time") });
}

/// How old what a node shows at once may be, seconds.
async fn age_of(client: &Client) -> f64 {
    let shown = run(client, "SELECT fabius.snapshot_age()").await.expect("an age").remove(0);
    let parts: Vec<f64> = shown.split(':').map(|part| part.parse().expect("a number")).collect();
    parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]
}

fn histories(cuts: bool) {
    let program = Path::new(env!("CARGO_BIN_EXE_fabius"));
    let cluster =
        ClusterProcess::start(program, None, NODES, Wiring::Links, &["--log", "error"]).expect("a cluster");
    let first = number("FABIUS_SEED", 1);
    for seed in first..first + number("FABIUS_HISTORIES", 1) {
        check(&cluster, cuts, seed);
    }
}

/// Goal: histories of clients at nodes that are apart are strictly serializable, beside pessimistic ones at the node
/// that leads.
#[test]
fn nodes_that_are_apart_keep_one_order() {
    histories(false);
}

/// Goal: histories of clients at nodes that are cut off, wholly or one way, are strictly serializable: no read is
/// stale, no write is lost or done twice.
#[test]
fn nodes_that_are_cut_off_keep_one_order() {
    histories(true);
}
