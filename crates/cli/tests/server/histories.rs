//! Random transactions of several clients at once, over SQL: they have an order, which keeps to real time, in which
//! they would have shown what they have shown.
//!
//! Each client has a mode of its own, and does some transactions in blocks, with savepoints now and then, and some as
//! statements by themselves. `FABIUS_HISTORIES` is how many histories are checked (3), `FABIUS_SEED` the first one's
//! seed.

use crate::support::{Server, block_on, connect};
use fabius_env::Random;
use fabius_testing::recorded::{self, Committed};
use fabius_value::Seq;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio_postgres::{Client, SimpleQueryMessage};

pub const ITEMS: u64 = 5;
const MODES: [&str; 4] = ["optimistic", "pessimistic", "optimistic", "conventional_pessimistic"];
const TRANSACTIONS: u64 = 40;
/// Failures of one transaction, at most, before it is taken to get nowhere.
const ATTEMPTS: u64 = 2_000;

/// The items that are there, with how many there are of each; `None` is null.
pub type Stock = BTreeMap<i64, Option<i64>>;

#[derive(Clone, Debug)]
pub enum Operation {
    Read(i64),
    ReadLocked(i64, &'static str),
    Scan(i64, i64),
    Sum(i64, i64),
    AtLeast(i64),
    Pairs,
    Take(i64, i64),
    Set(i64, Option<i64>),
    Raise(i64),
    Insert(i64, i64),
    CopyFirst,
    Delete(i64),
}

/// What a statement has shown: its rows, or how many it has changed.
pub type Answer = Vec<String>;

fn shown(quantity: Option<i64>) -> String {
    quantity.map_or("null".into(), |quantity| quantity.to_string())
}

impl Operation {
    pub fn any(random: &mut Random) -> Operation {
        let item = 1 + random.below(ITEMS) as i64;
        let quantity = random.below(20) as i64;
        match random.below(25) {
            0..3 => Operation::Read(item),
            3 => Operation::ReadLocked(item, ["FOR UPDATE", "FOR SHARE"][random.index(2)]),
            4 => Operation::Scan(item, item + random.below(ITEMS) as i64),
            5 => Operation::Sum(item, item + random.below(ITEMS) as i64),
            6 => Operation::AtLeast(quantity),
            7 => Operation::Pairs,
            8..16 => Operation::Take(item, 1 + random.below(3) as i64),
            16 => Operation::Set(item, random.chance(3, 4).then_some(quantity)),
            17 => Operation::Raise(quantity),
            18..22 => Operation::Insert(item, quantity),
            22 => Operation::CopyFirst,
            _ => Operation::Delete(item),
        }
    }

    pub fn text(&self) -> String {
        match self {
            Operation::Read(item) => format!("SELECT qty FROM stock WHERE id = {item}"),
            Operation::ReadLocked(item, lock) => format!("SELECT qty FROM stock WHERE id = {item} {lock}"),
            Operation::Scan(low, high) => {
                format!("SELECT id, qty FROM stock WHERE id BETWEEN {low} AND {high} ORDER BY id")
            }
            Operation::Sum(low, high) => {
                format!("SELECT count(*), sum(qty) FROM stock WHERE id BETWEEN {low} AND {high}")
            }
            Operation::AtLeast(least) => format!("SELECT id FROM stock WHERE qty >= {least} ORDER BY id"),
            // The query library answers this one.
            Operation::Pairs => {
                "SELECT id, rank() OVER (ORDER BY qty) FROM stock WHERE qty IS NOT NULL ORDER BY id"
                    .to_string()
            }
            Operation::Take(item, count) => {
                format!("UPDATE stock SET qty = qty - {count} WHERE id = {item} AND qty >= {count}")
            }
            Operation::Set(item, quantity) => {
                format!("UPDATE stock SET qty = {} WHERE id = {item}", shown(*quantity))
            }
            Operation::Raise(below) => format!("UPDATE stock SET qty = qty + 1 WHERE qty < {below}"),
            Operation::Insert(item, quantity) => {
                format!("INSERT INTO stock VALUES ({item}, {quantity}) ON CONFLICT DO NOTHING")
            }
            // The query library finds the row.
            Operation::CopyFirst => "INSERT INTO stock SELECT id + 1, qty FROM
                (SELECT id, qty, row_number() OVER (ORDER BY id) AS place FROM stock) AS placed WHERE place = 1
                ON CONFLICT DO NOTHING"
                .to_string(),
            Operation::Delete(item) => format!("DELETE FROM stock WHERE id = {item}"),
        }
    }

    /// What it shows where these are there, which it changes.
    pub fn run(&self, stock: &mut Stock) -> Answer {
        let count = |count: usize| vec![format!("changed {count}")];
        match *self {
            Operation::Read(item) | Operation::ReadLocked(item, _) => {
                stock.get(&item).map(|quantity| shown(*quantity)).into_iter().collect()
            }
            Operation::Scan(low, high) => {
                stock.range(low..=high).map(|(id, quantity)| format!("{id},{}", shown(*quantity))).collect()
            }
            Operation::Sum(low, high) => {
                let known: Vec<i64> = stock.range(low..=high).filter_map(|(_, quantity)| *quantity).collect();
                let sum = (!known.is_empty()).then(|| known.iter().sum());
                vec![format!("{},{}", stock.range(low..=high).count(), shown(sum))]
            }
            Operation::AtLeast(least) => {
                let enough = stock.iter().filter(|(_, quantity)| quantity.is_some_and(|of| of >= least));
                enough.map(|(id, _)| id.to_string()).collect()
            }
            Operation::Pairs => {
                let known = stock.iter().filter_map(|(id, quantity)| Some((id, (*quantity)?)));
                let rank = |of: i64| 1 + known.clone().filter(|(_, other)| *other < of).count();
                known.clone().map(|(id, quantity)| format!("{id},{}", rank(quantity))).collect()
            }
            Operation::Take(item, taken) => match stock.get_mut(&item) {
                Some(Some(quantity)) if *quantity >= taken => {
                    *quantity -= taken;
                    count(1)
                }
                _ => count(0),
            },
            Operation::Set(item, quantity) => {
                count(stock.get_mut(&item).map(|of| *of = quantity).into_iter().count())
            }
            Operation::Raise(below) => {
                let few = stock.values_mut().flatten().filter(|quantity| **quantity < below);
                count(few.map(|quantity| *quantity += 1).count())
            }
            Operation::Insert(item, quantity) => {
                let is_new = !stock.contains_key(&item);
                stock.entry(item).or_insert(Some(quantity));
                count(usize::from(is_new))
            }
            Operation::CopyFirst => {
                let first = stock.first_key_value().map(|(id, quantity)| (id + 1, *quantity));
                let new = first.filter(|(id, _)| !stock.contains_key(id));
                stock.extend(new);
                count(usize::from(new.is_some()))
            }
            Operation::Delete(item) => count(usize::from(stock.remove(&item).is_some())),
        }
    }

    pub fn writes(&self) -> bool {
        self.text().split(' ').next() != Some("SELECT")
    }
}

/// Runs one statement; an error's SQLSTATE if it fails.
pub async fn run(client: &Client, text: &str) -> Result<Answer, String> {
    let messages = client.simple_query(text).await;
    let messages = messages.map_err(|error| error.code().map_or("gone", |code| code.code()).to_string())?;
    let is_read = text.starts_with("SELECT");
    let shown = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let values: Vec<&str> = (0..row.len()).map(|at| row.get(at).unwrap_or("null")).collect();
            Some(values.join(","))
        }
        SimpleQueryMessage::CommandComplete(count) if !is_read => Some(format!("changed {count}")),
        _ => None,
    });
    Ok(shown.collect())
}

/// Runs the operations as one transaction, in a block; those behind a savepoint that is gone back to do not count.
/// `shown` is what it was shown, also of one that fails.
pub async fn block(
    client: &Client,
    operations: &[Operation],
    random: &mut Random,
    shown: &mut Vec<(Operation, Answer)>,
) -> Result<(), String> {
    run(client, "BEGIN").await?;
    for operation in operations {
        let is_taken_back = random.chance(1, 10);
        if is_taken_back {
            run(client, "SAVEPOINT before").await?;
        }
        let answer = run(client, &operation.text()).await?;
        if is_taken_back {
            run(client, "ROLLBACK TO before").await?;
        } else {
            shown.push((operation.clone(), answer));
        }
    }
    run(client, "COMMIT").await.map(drop)
}

async fn client(
    conninfo: &str,
    mode: &str,
    clock: &AtomicU64,
    seed: u64,
) -> Vec<Committed<Operation, Answer>> {
    let mut random = Random::seeded(seed);
    let client = connect(conninfo).await;
    run(&client, &format!("SET fabius.concurrency = '{mode}'")).await.expect("a mode");
    let mut history = Vec::new();
    for _ in 0..TRANSACTIONS {
        let count = if random.chance(1, 3) { 1 } else { 1 + random.below(4) };
        let operations: Vec<Operation> = (0..count).map(|_| Operation::any(&mut random)).collect();
        let is_alone = count == 1 && random.chance(1, 2);
        for attempt in 0.. {
            assert!(attempt < ATTEMPTS, "no progress: {operations:?}");
            let began = clock.fetch_add(1, SeqCst);
            let mut shown = Vec::new();
            let outcome = match is_alone {
                true => run(&client, &operations[0].text())
                    .await
                    .map(|answer| shown.push((operations[0].clone(), answer))),
                false => block(&client, &operations, &mut random, &mut shown).await,
            };
            match outcome {
                Ok(()) => {
                    let ended = clock.fetch_add(1, SeqCst);
                    let seq = run(&client, "SELECT fabius.last_seq()").await.expect("its place").remove(0);
                    let has_changed = |(operation, answer): &(Operation, Answer)| {
                        operation.writes() && answer != &["changed 0".to_string()]
                    };
                    let wrote = shown.iter().any(has_changed);
                    history.push(Committed {
                        seq: Seq(seq.parse().expect("a number")),
                        wrote,
                        began,
                        ended,
                        shown,
                    });
                    break;
                }
                Err(state) => {
                    assert_eq!(state, "40001", "{operations:?}");
                    assert!(!is_alone, "a statement by itself does not fail: {operations:?}");
                    run(&client, "ROLLBACK").await.expect("it ends");
                }
            }
        }
    }
    history
}

fn check(server: &Server, seed: u64) {
    server.run("DELETE FROM stock; INSERT INTO stock SELECT id, 10 FROM generate_series(1, 3) id");
    let mut stock: Stock = (1..=3).map(|id| (id, Some(10))).collect();
    let clock = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = MODES
        .into_iter()
        .enumerate()
        .map(|(number, mode)| {
            let (conninfo, clock) = (server.conninfo(), clock.clone());
            let seed = seed * 100 + number as u64;
            std::thread::spawn(move || block_on(client(&conninfo, mode, &clock, seed)))
        })
        .collect();
    let history = clients.into_iter().flat_map(|client| client.join().expect("a client")).collect();
    let again =
        format!("FABIUS_SEED={seed} FABIUS_HISTORIES=1 cargo test --workspace --test server -- histories");
    recorded::check(history, &mut stock, |operation, stock| operation.run(stock))
        .unwrap_or_else(|wrong| panic!("{wrong}\nonce more: {again}"));
    let rows = block_on(async {
        let client = connect(&server.conninfo()).await;
        assert_eq!(
            run(&client, "SELECT count(*) FROM pg_locks WHERE locktype = 'condition'").await,
            Ok(vec!["0".into()])
        );
        run(&client, &Operation::Scan(0, 100).text()).await.expect("the rows")
    });
    assert_eq!(rows, Operation::Scan(0, 100).run(&mut stock), "once more: {again}");
}

/// A number of the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Goal: histories of optimistic, pessimistic and conventional clients together are strictly serializable.
#[test]
fn histories_are_strictly_serializable() {
    let server = Server::start(&[]);
    server.run("CREATE TABLE stock (id integer PRIMARY KEY, qty integer); CREATE INDEX ON stock (qty)");
    let first = number("FABIUS_SEED", 1);
    for seed in first..first + number("FABIUS_HISTORIES", 3) {
        check(&server, seed);
    }
}
