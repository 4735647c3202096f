//! Contended counters: what was split adds up, reads see everything promised before, and the log replays.

use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_engine_split::Policy;
use fabius_env::{Random, schedule};
use fabius_program::arguments::ArgumentWriter;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;

const TEXT: &str = "
table counters {
    id: int, total: bigint, most: smallint, least: bigint, label: text, product: bigint, bid: int, bidder: text null,
    last: date, first: timestamp,
    primary key (id),
}
procedure open(id: int) {
    insert counters { id: id, total: 0, most: 0, least: 0, label: 'open', product: 1, bid: 0, bidder: null,
        last: date '2000-01-01', first: timestamp '2000-01-01 00:00:00',
    }
}
procedure add(id: int, n: int) { counters[id].total += n }
procedure mark(id: int, n: int) {
    counters[id].most = greatest(counters[id].most, n::smallint)
    counters[id].least = least(counters[id].least, n::bigint)
}
procedure date(id: int, n: int) {
    counters[id].last = greatest(counters[id].last, date '2000-01-01' + n)
    counters[id].first = least(counters[id].first, (date '2000-01-01' + n)::timestamp)
}
procedure grow(id: int, n: int) { counters[id].product *= n }
procedure bid(id: int, n: int, who: text) {
    if n > counters[id].bid { update counters[id] { bid: n, bidder: who } }
}
procedure move(one: int, other: int, n: int) {
    counters[one].total -= n
    counters[other].total += n
}
procedure read(id: int) -> bigint { return counters[id].total }
procedure name(id: int, n: int) { counters[id].label = 'named' }
";

/// The days from the first day of Unix to that of the counters' dates.
const NEW_YEAR_2000: i64 = 10_957;
const DAY_MICROS: i64 = 86_400_000_000;

fn make(foundation: Arc<Foundation>) -> Arc<dyn Engine> {
    let policy = Policy { conflicts_min: 1, applied_min: 1, impact_percent: 1, ..Policy::default() };
    Arc::new(fabius_engine_split::with_policy(foundation, policy))
}

/// What one thread has done in all.
#[derive(Clone, Copy)]
struct Done {
    added: i64,
    most: i64,
    least: i64,
    last: i64,
    first: i64,
    product: i64,
    bid: i64,
}

/// One thread's batches.
fn client(rig: &Rig, thread: u64, mut random: Random) -> Done {
    let mut done = Done { added: 0, most: 0, least: 0, last: 0, first: 0, product: 1, bid: 0 };
    for turn in 0..4 {
        let mut batch = BatchBuilder::new();
        let catalog = rig.foundation.definitions().catalog.clone();
        for _ in 0..40 {
            let n = random.below(200) as i64 - 100;
            let mut arguments = Vec::new();
            let name = match random.below(24) {
                0..10 => {
                    done.added += n;
                    ArgumentWriter::new(&mut arguments).int(0).int(n);
                    "add"
                }
                10..12 => {
                    (done.most, done.least) = (done.most.max(n), done.least.min(n));
                    ArgumentWriter::new(&mut arguments).int(0).int(n);
                    "mark"
                }
                12..14 => {
                    (done.last, done.first) = (done.last.max(n), done.first.min(n));
                    ArgumentWriter::new(&mut arguments).int(0).int(n);
                    "date"
                }
                14..18 => {
                    ArgumentWriter::new(&mut arguments).int(0).int(1).int(n);
                    "move"
                }
                19..22 => {
                    // Few bids, so that many are equal.
                    let bid = random.below(10) as i64;
                    done.bid = done.bid.max(bid);
                    let who = format!("{thread} in turn {turn}");
                    ArgumentWriter::new(&mut arguments).int(0).int(bid).text(&who);
                    "bid"
                }
                22 if done.product.abs() < 1 << 12 => {
                    let factor = random.below(6) as i64 - 2;
                    let factor = if factor == 0 { 1 } else { factor };
                    done.product *= factor;
                    ArgumentWriter::new(&mut arguments).int(0).int(factor);
                    "grow"
                }
                18 => {
                    ArgumentWriter::new(&mut arguments).int(0);
                    "read"
                }
                _ => {
                    ArgumentWriter::new(&mut arguments).int(1).int(n);
                    "name"
                }
            };
            let procedure = catalog.find_procedure(name).expect("defined");
            batch.push(procedure, &arguments, None, name == "read").expect("small");
        }
        let batch = batch.build();
        rig.engine.submit(batch.clone());
        while !batch.is_complete() {
            if !rig.engine.help() {
                schedule::give_way("client");
            }
        }
        (0..batch.count()).for_each(|call| assert_eq!(batch.outcome(call), Ok(())));
        // Everything promised is there at once.
        assert!(rig.foundation.promised() >= batch.outcomes().first_seq.unwrap_or_default());
    }
    done
}

#[test]
fn split_counters_add_up() {
    for seed in 0..150 {
        let story = move || {
            let rig = Arc::new(Rig::new(&make));
            rig.define(TEXT);
            for id in 0..2 {
                rig.call("open", &[Value::Int(id)]).expect("a new counter");
            }
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let rig = rig.clone();
                    let done = Arc::new(parking_lot::Mutex::new(None));
                    let to = done.clone();
                    let work = move || {
                        *to.lock() = Some(client(&rig, thread, Random::seeded(seed * 3 + thread)));
                    };
                    (schedule::spawn("client", work).expect("a thread"), done)
                })
                .collect();
            let mut all = Done { added: 0, most: 0, least: 0, last: 0, first: 0, product: 1, bid: 0 };
            for (thread, done) in threads {
                thread.join().expect("no panic");
                let done = done.lock().take().expect("it has ended");
                all.added += done.added;
                all.most = all.most.max(done.most);
                all.least = all.least.min(done.least);
                all.last = all.last.max(done.last);
                all.first = all.first.min(done.first);
                all.product *= done.product;
                all.bid = all.bid.max(done.bid);
            }
            let rows = rig.rows("counters");
            let int = |row: usize, column: usize| -> i64 {
                match rows[row][column] {
                    Value::SmallInt(value) => value.into(),
                    Value::Int(value) => value.into(),
                    Value::BigInt(value) => value,
                    Value::Date(days) => i64::from(days) - NEW_YEAR_2000,
                    Value::Timestamp(micros) => micros / DAY_MICROS - NEW_YEAR_2000,
                    ref other => panic!("{other:?}"),
                }
            };
            assert_eq!(int(0, 1) + int(1, 1), all.added, "seed {seed}");
            assert_eq!((int(0, 2), int(0, 3)), (all.most, all.least), "seed {seed}");
            assert_eq!((int(0, 8), int(0, 9)), (all.last, all.first), "seed {seed}");
            assert_eq!((int(0, 5), int(0, 6)), (all.product, all.bid), "seed {seed}");
            assert_eq!(rig.replayed(&make).rows("counters"), rows, "seed {seed}");
        };
        schedule::simulate(seed, story);
    }
}
