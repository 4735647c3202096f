//! Random transactions of several clients at once: there is an order, which keeps to real time, in which they
//! would have shown what they have shown.

mod shop;

use fabius::{
    Concurrency, Database, EngineKind, Grain, Hold, Options, SqlState, TransactionOptions, Value, block_on,
};
use fabius_env::Random;
use fabius_testing::recorded::{self, Committed};
use shop::{READ, SET, TAKE};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const ITEMS: u64 = 4;
const CLIENTS: u64 = 3;
const TRANSACTIONS: u64 = 25;

const SUM: &str = "procedure sum_all(low: bigint, high: bigint) -> bigint null {
    var quantities: list of bigint = []
    for row in stock[low .. high] { append quantities (row.quantity) }
    return sum(quantities)::bigint
}";

#[derive(Clone, Debug)]
enum Operation {
    Read(i64),
    Sum(i64, i64),
    Take(i64, i64),
    Set(i64, i64),
}

type Shown = Committed<Operation, Value>;

/// An operation on the shop, any.
fn operation(random: &mut Random) -> Operation {
    let item = 1 + random.below(ITEMS) as i64;
    match random.below(10) {
        0..2 => Operation::Read(item),
        2 => Operation::Sum(item, item + random.below(ITEMS) as i64),
        3..9 => Operation::Take(item, 1 + random.below(3) as i64),
        _ => Operation::Set(item, random.below(30) as i64),
    }
}

impl Operation {
    fn run(&self, model: &mut BTreeMap<i64, i64>) -> Value {
        match *self {
            Operation::Read(item) => {
                let row = |quantity: &i64| vec![Value::Text(format!("item {item}")), (*quantity).into()];
                Value::List(model.get(&item).map(row).into_iter().collect())
            }
            Operation::Sum(low, high) => {
                model.range(low..=high).map(|(_, quantity)| quantity).sum::<i64>().into()
            }
            Operation::Take(item, count) => match model.get_mut(&item) {
                Some(quantity) if *quantity >= count => {
                    *quantity -= count;
                    1i64.into()
                }
                _ => 0i64.into(),
            },
            Operation::Set(item, quantity) => {
                model.insert(item, quantity);
                1i64.into()
            }
        }
    }

    fn text(&self) -> (&'static str, Vec<Value>) {
        match *self {
            Operation::Read(item) => (READ, vec![item.into()]),
            Operation::Sum(low, high) => (SUM, vec![low.into(), high.into()]),
            Operation::Take(item, count) => (TAKE, vec![item.into(), count.into()]),
            Operation::Set(item, quantity) => (SET, vec![item.into(), quantity.into()]),
        }
    }
}

fn client(
    database: &Arc<Database>,
    clock: &AtomicU64,
    seed: u64,
    options: &TransactionOptions,
) -> Vec<Shown> {
    let mut random = Random::seeded(seed);
    let mut history = Vec::new();
    for _ in 0..TRANSACTIONS {
        let operations: Vec<Operation> = (0..1 + random.below(4)).map(|_| operation(&mut random)).collect();
        // Until it commits, as clients do.
        for attempt in 0.. {
            assert!(attempt < 10_000, "no progress");
            let began = clock.fetch_add(1, SeqCst);
            let mut transaction = database.begin(options.clone());
            let mut shown = Vec::new();
            let outcome = operations.iter().try_for_each(|operation| {
                let (text, arguments) = operation.text();
                let statement = database.statement_text(text)?;
                let hold = if random.below(8) == 0 { Hold::LockForUpdate } else { Hold::Observe };
                let results = block_on(transaction.run(&statement, &arguments, hold))?;
                shown.push((operation.clone(), results[0].clone()));
                Ok(())
            });
            let wrote = transaction.has_written();
            match outcome.and_then(|()| block_on(transaction.commit(None))) {
                Ok(seq) => {
                    let ended = clock.fetch_add(1, SeqCst);
                    history.push(Committed { seq, wrote, began, ended, shown });
                    break;
                }
                Err(error) => assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error:?}"),
            }
        }
    }
    history
}

/// Clients in these modes, in turns.
fn check(engine: EngineKind, options: &[TransactionOptions], seed: u64) {
    let database = Arc::new(Database::in_memory(Options { engine, ..Options::default() }));
    database.define(shop::TABLES).unwrap();
    let mut model = BTreeMap::new();
    for item in 1..=ITEMS as i64 {
        let add = database.statement_text(shop::ADD).unwrap();
        let row = [item.into(), format!("item {item}").into(), 20.into()];
        block_on(database.run(&add, &row, None)).unwrap();
        model.insert(item, 20);
    }
    let clock = AtomicU64::new(0);
    let history: Vec<Shown> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (database, clock) = (&database, &clock);
                let options = &options[number as usize % options.len()];
                scope.spawn(move || client(database, clock, seed * 100 + number, options))
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    });
    recorded::check(history, &mut model, |operation, model| operation.run(model))
        .unwrap_or_else(|wrong| panic!("{engine}, {options:?}, seed {seed}: {wrong}"));
    let rows = database.rows("stock").unwrap();
    let rows: BTreeMap<i64, i64> =
        rows.iter().filter_map(|row| Some((row[0].as_integer()?, row[2].as_integer()?))).collect();
    assert_eq!(rows, model, "{engine}, seed {seed}");
    assert_eq!((database.condition_locks(), database.waits()), (vec![], vec![]));
}

#[test]
fn optimistic() {
    for engine in EngineKind::ALL {
        check(engine, &[TransactionOptions::default()], 1);
    }
}

#[test]
fn pessimistic() {
    let options = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    for engine in EngineKind::ALL {
        check(engine, std::slice::from_ref(&options), 2);
    }
}

/// The modes of conventional transactions.
fn conventional_modes() -> impl Iterator<Item = TransactionOptions> {
    [Concurrency::Optimistic, Concurrency::Pessimistic].into_iter().flat_map(|concurrency| {
        [Grain::Row, Grain::Column].map(|grain| TransactionOptions {
            concurrency,
            conventional: Some(grain),
            ..Default::default()
        })
    })
}

#[test]
fn conventional() {
    for options in conventional_modes() {
        for engine in EngineKind::ALL {
            check(engine, std::slice::from_ref(&options), 3);
        }
    }
}

/// Goal: conventional transactions and others beside each other have an order, too.
#[test]
fn every_mode_at_once() {
    let pessimistic = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
    for (seed, options) in conventional_modes().enumerate() {
        for engine in EngineKind::ALL {
            let modes = [options.clone(), TransactionOptions::default(), pessimistic.clone()];
            check(engine, &modes, 10 + seed as u64);
        }
    }
}
