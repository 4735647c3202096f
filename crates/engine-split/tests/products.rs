//! Products of factors of two and three, on rows that leave their types now and then: what threads multiply by side by
//! side comes to what the log's order comes to, and the same calls abort.

use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_engine_split::Policy;
use fabius_env::{Random, schedule};
use fabius_testing::rig::Rig;
use fabius_value::{SqlState, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TEXT: &str = "
table products { id: int, large: bigint, small: smallint, sum: smallint, primary key (id) }
procedure open(id: int) { insert products { id: id, large: 1, small: 1, sum: 0 } }
procedure grow(id: int, n: bigint) { products[id].large *= n }
procedure grow_both(id: int, n: bigint) {
    products[id].large *= n
    products[id].small = products[id].small * n::smallint
}
procedure add(id: int, n: bigint) { products[id].sum += n::smallint }
procedure reset(id: int, n: bigint) {
    if products[id].large <> 0 { update products[id] { large: n, small: 1, sum: 0 } }
}
";

const FACTORS: [i64; 8] = [2, 3, 2, 3, -2, 1, -1, 3];

fn make(foundation: Arc<Foundation>) -> Arc<dyn Engine> {
    let policy = Policy { conflicts_min: 1, applied_min: 1, impact_percent: 0, ..Policy::default() };
    Arc::new(fabius_engine_split::with_policy(foundation, policy))
}

/// One thread's batches; gives the product of the factors of row 0 whose calls have not aborted, and how many have.
fn client(rig: &Rig, mut random: Random) -> (i128, u64) {
    let (mut product, mut aborted) = (1, 0);
    for _ in 0..4 {
        let (mut batch, mut factors) = (BatchBuilder::new(), Vec::new());
        for _ in 0..30 {
            let factor = FACTORS[random.below(FACTORS.len() as u64) as usize];
            // Row 0 is only multiplied; row 1 begins anew from time to time.
            let (name, id, n) = match random.below(40) {
                0..15 => ("grow", 0, factor),
                15..20 => ("grow", 1, factor),
                20..34 => ("grow_both", 1, factor),
                34..39 => ("add", 1, 1_000 * factor),
                _ => ("reset", 1, factor),
            };
            rig.push(&mut batch, name, &[Value::Int(id), Value::BigInt(n)], None);
            factors.push(if id == 0 { n } else { 1 });
        }
        let batch = batch.build();
        rig.engine.submit(batch.clone());
        while !batch.is_complete() {
            if !rig.engine.help() {
                schedule::give_way("client");
            }
        }
        for (call, factor) in (0..).zip(factors) {
            match batch.outcome(call) {
                Ok(()) => product *= i128::from(factor),
                Err(error) => {
                    assert_eq!(error.state(), SqlState::OUT_OF_RANGE);
                    aborted += 1;
                }
            }
        }
    }
    (product, aborted)
}

/// Runs a seed on so many threads; gives how many calls have aborted.
fn run(seed: u64, threads: u64) -> u64 {
    let rig = Arc::new(Rig::new(&make));
    rig.define(TEXT);
    for id in 0..2 {
        rig.call("open", &[Value::Int(id)]).expect("a new row");
    }
    let working: Vec<_> = (0..threads)
        .map(|thread| {
            let done = Arc::new(parking_lot::Mutex::new(None));
            let (rig, to) = (rig.clone(), done.clone());
            let work = move || *to.lock() = Some(client(&rig, Random::seeded(seed * 8 + thread)));
            (schedule::spawn("client", work).expect("a thread"), done)
        })
        .collect();
    let (mut product, mut aborted) = (1i128, 0);
    for (thread, done) in working {
        thread.join().expect("no panic");
        let done = done.lock().take().expect("it has ended");
        (product, aborted) = (product * done.0, aborted + done.1);
    }
    let rows = rig.rows("products");
    assert_eq!(
        rows[0][1],
        Value::BigInt(i64::try_from(product).expect("others have aborted")),
        "seed {seed}"
    );
    // The serial way: the log's calls one after the other.
    let serial = rig.replayed(&make);
    assert_eq!(serial.rows("products"), rows, "seed {seed}");
    assert_eq!(serial.foundation.counters.counts(0).aborted, aborted, "seed {seed}");
    aborted
}

/// Goal: with any number of threads, products are those of a serial order, and calls abort that would abort in it.
#[test]
fn products_agree_with_the_serial_order() {
    let aborted = Arc::new(AtomicU64::new(0));
    for seed in 0..100 {
        let aborted = aborted.clone();
        let story = move || _ = aborted.fetch_add(run(seed, 2 + seed % 4), Relaxed);
        schedule::simulate(seed, story);
    }
    assert!(aborted.load(Relaxed) > 0, "products have left their types");
}
