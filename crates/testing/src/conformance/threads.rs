//! Calls from several threads at once: what must hold in every interleaving.

use super::programs::{BANK, PARTS, SHOP};
use super::{aborts, bank, big, int, ints, on_threads, settle, shop, text};
use crate::rig::{Make, Rig};
use fabius_engine::BatchBuilder;
use fabius_env::{Fault, Random};
use fabius_value::{SqlState, Value};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) fn transfers_keep_the_sum(make: Make<'_>) {
    let rig = bank(make, 10, 100);
    let all: Vec<Vec<Value>> = (0..10).map(|id| vec![int(id)]).collect();
    on_threads(&rig, |random, _| {
        for _ in 0..20 {
            let mut batch = BatchBuilder::new();
            for _ in 0..200 {
                let (src, dst) = (random.below(10) as i32, random.below(10) as i32);
                rig.push(&mut batch, "transfer", &[int(src), int(dst), big(random.below(60) as i64)], None);
            }
            let sum = rig.push(&mut batch, "sum_of", &[Value::List(all.clone())], None);
            let batch = batch.build();
            rig.run(&batch);
            assert_eq!(rig.result(&batch, sum), Ok(vec![big(1000)]));
            assert_eq!(rig.query("sum_of", &[Value::List(all.clone())]), Ok(vec![big(1000)]));
        }
    });
    assert!(rig.rows("accounts").iter().all(|row| matches!(row[2], Value::BigInt(balance) if balance >= 0)));
}

/// A thread that panics in the midst of a turn has locks, and a place in the order. Nobody waits for it: all are told
/// that the engine has stopped, and what it has promised is still there.
pub(super) fn a_panic_stops_the_engine(make: Make<'_>) {
    for operations in [0, 3, 50] {
        let rig = Rig::writing_through(make);
        rig.define(BANK);
        rig.call("open", &[int(0), big(0)]).unwrap();
        rig.fault(Fault::Panic { operations });
        let ended = AtomicBool::new(false);
        on_threads(&rig, |_, _| {
            while !ended.load(Relaxed) {
                let mut batch = BatchBuilder::new();
                (0..10).for_each(|_| _ = rig.push(&mut batch, "add", &[int(0), big(1)], None));
                let batch = batch.build();
                rig.run(&batch);
                if let Err(error) = batch.outcome(9) {
                    assert_eq!(error.state(), SqlState::INTERNAL);
                    assert!(
                        error.detail().is_some_and(|why| why.contains("the simulated disk has an error"))
                    );
                    ended.store(true, Relaxed);
                }
            }
        });
        let late = rig.call("add", &[int(0), big(1)]);
        aborts(late, SqlState::INTERNAL);
        aborts(rig.engine.define("procedure late() { }"), SqlState::INTERNAL);
        rig.engine.settle();
        let seen = rig.query("see", &[int(0)]).unwrap();
        assert_eq!(seen, rig.query("see", &[int(0)]).unwrap());
        rig.close();
    }
}

pub(super) fn hot_increments_count_exactly(make: Make<'_>) {
    let rig = bank(make, 2, 0);
    on_threads(&rig, |_, _| {
        for round in 0..30 {
            let mut batch = BatchBuilder::new();
            for n in 0..500 {
                let name = if n % 2 == 0 { "add" } else { "raise" };
                rig.push(&mut batch, name, &[int(0), big(if n % 2 == 0 { 1 } else { round })], None);
            }
            let batch = batch.build();
            rig.run(&batch);
            assert!((0..500).all(|call| batch.outcome(call).is_ok()));
        }
    });
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(3 * 30 * 250), big(29)]));
}

pub(super) fn scans_meet_no_phantoms(make: Make<'_>) {
    let rig = shop(make);
    // Each call scans, and inserts where its scan says: two that saw the same would collide.
    on_threads(&rig, |_, thread| {
        let mut batch = BatchBuilder::new();
        for _ in 0..100 {
            rig.push(&mut batch, "next_number", &[int(1), int(250)], None);
            rig.push(&mut batch, "number_in_state", &[text("open"), int(2)], None);
            rig.push(&mut batch, "number_in_state", &[text("shut"), int(10 + thread as i32)], None);
        }
        let batch = batch.build();
        rig.run(&batch);
        for call in 0..300 {
            if let Err(error) = batch.outcome(call) {
                assert_eq!(error.state(), SqlState::RAISED, "{error}");
            }
        }
    });
    let numbers = |shop: i32| rig.query("down", &[int(shop)]).unwrap();
    assert_eq!(numbers(1), ints(&(1..=250).rev().collect::<Vec<_>>()));
    assert_eq!(numbers(2), ints(&(0..300).rev().collect::<Vec<_>>()));
}

pub(super) fn one_of_many_gets_a_unique_value(make: Make<'_>) {
    let rig = shop(make);
    for id in 0..3 {
        rig.call("item", &[int(id), Value::Null, int(0)]).unwrap();
    }
    on_threads(&rig, |random, thread| {
        for round in 0..200 {
            let code = text(&format!("c{}", random.below(2)));
            let code = if round % 3 == 0 { Value::Null } else { code };
            let _either = rig.call("recode", &[int(thread as i32), code]);
            let rows = rig.rows("items");
            let codes: Vec<&Value> = rows.iter().map(|row| &row[1]).filter(|code| !code.is_null()).collect();
            assert!(codes.len() < 2 || codes[0] != codes[1], "{codes:?}");
            assert!(codes.len() < 3, "{codes:?}");
        }
    });
}

pub(super) fn queues_give_each_entry_once(make: Make<'_>) {
    let rig = shop(make);
    let taken = parking_lot::Mutex::new(Vec::new());
    on_threads(&rig, |_, thread| {
        for round in 0..60 {
            let number = thread as i32 * 1000 + round + 1;
            rig.call("order", &[int(1), int(number), Value::Null, text("queued")]).unwrap();
            if round % 2 == 1 {
                for _ in 0..2 {
                    let found = rig.call("take_first", &[int(1)]).unwrap();
                    taken.lock().extend(found);
                }
            }
        }
    });
    let mut taken = taken.into_inner();
    assert!(!taken.contains(&int(0)), "each thread puts in before it takes out");
    taken.sort_by_key(|value| format!("{value:?}"));
    taken.dedup();
    assert_eq!(taken.len(), 180);
    settle(&rig);
    assert!(rig.rows("orders").is_empty());
    assert_eq!(rig.query("in_state", &[text("queued")]).unwrap(), ints(&[]));
}

pub(super) fn snapshots_stand_still(make: Make<'_>) {
    let rig = bank(make, 20, 100);
    let all: Vec<Vec<Value>> = (0..20).flat_map(|id| [vec![int(id)], vec![int(id)]]).collect();
    let done = AtomicBool::new(false);
    rig.helped(1, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::seeded(9);
                for _ in 0..60 {
                    let mut batch = BatchBuilder::new();
                    for _ in 0..200 {
                        let (src, dst) = (random.below(20) as i32, random.below(20) as i32);
                        rig.push(&mut batch, "transfer", &[int(src), int(dst), big(7)], None);
                    }
                    rig.run(&batch.build());
                }
                done.store(true, Relaxed);
            });
            // Every balance is read twice, so a snapshot that moves would show.
            while !done.load(Relaxed) {
                assert_eq!(rig.query("sum_of", &[Value::List(all.clone())]), Ok(vec![big(4000)]));
                let sum: i64 = rig
                    .rows("accounts")
                    .iter()
                    .map(|row| match row[2] {
                        Value::BigInt(balance) => balance,
                        _ => unreachable!("a balance"),
                    })
                    .sum();
                assert_eq!(sum, 2000);
            }
        });
    });
}

pub(super) fn one_key_from_many_threads(make: Make<'_>) {
    let rig = bank(make, 2, 0);
    on_threads(&rig, |_, _| {
        for round in 0u32..100 {
            rig.call_with("add", &[int(0), big(1)], Some(&(round / 2).to_le_bytes())).unwrap();
        }
    });
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(50), big(0)]));
}

pub(super) fn replay_gives_the_same(make: Make<'_>) {
    let rig = bank(make, 8, 100);
    rig.define(SHOP);
    on_threads(&rig, |random, thread| {
        for round in 0..15 {
            let mut batch = BatchBuilder::new();
            for n in 0..10 {
                let (src, dst) = (random.below(8) as i32, random.below(8) as i32);
                let key = format!("{thread} {round} {n}");
                let key = (n % 3 == 0).then_some(key.as_bytes());
                match random.below(6) {
                    0 => rig.push(&mut batch, "stamp", &[int(src)], key),
                    1 => rig.push(&mut batch, "order", &[int(src), int(dst), int(1), text("new")], key),
                    2 => rig.push(&mut batch, "cancel", &[int(src), int(dst)], key),
                    3 => rig.push(&mut batch, "replace", &[int(src), int(dst)], key),
                    4 => rig.push(&mut batch, "next_number", &[int(src), int(30)], key),
                    _ => rig.push(&mut batch, "transfer", &[int(src), int(dst), big(40)], key),
                };
            }
            rig.run(&batch.build());
        }
    });
    let again = rig.replayed(make);
    assert_eq!(again.dump(), rig.dump());
    for shop in 0..8 {
        assert_eq!(again.query("down", &[int(shop)]), rig.query("down", &[int(shop)]));
    }
    assert_eq!(again.query("in_state", &[text("new")]), rig.query("in_state", &[text("new")]));
    // A log that does not go on where the engine stands is refused.
    let logged = rig.logged();
    let taken = again.engine.take(logged[0].first_seq, logged[0].count, &logged[0].payload);
    aborts(taken.map(|_| ()), SqlState::DATA_CORRUPTED);
}

/// What a loop looks up by the columns of its rows may be brought near before: it shows the same as what is looked up
/// by an operation.
pub(super) fn joins_show_what_lookups_show(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.define(PARTS);
    for id in 0..30 {
        rig.call("part", &[int(id), int(40)]).unwrap();
        rig.call("line", &[int(0), int(id), int(id)]).unwrap();
    }
    on_threads(&rig, |random, _| {
        for _ in 0..60 {
            let mut batch = BatchBuilder::new();
            for _ in 0..40 {
                let mut some = |most: u64| int(random.below(most) as i32);
                let (number, part) = (some(40), some(30));
                let (name, arguments) = match some(12) {
                    Value::Int(0) => ("line", vec![int(0), number, Value::Null]),
                    Value::Int(1) => ("line", vec![int(0), number, part]),
                    Value::Int(2) => ("follow", vec![int(0), number, part]),
                    Value::Int(3) => ("part", vec![part, int(30)]),
                    Value::Int(4) => ("rebuild", vec![part]),
                    Value::Int(5) => ("drop_part", vec![part]),
                    _ => ("take", vec![part, int(7)]),
                };
                // What is not there is refused.
                rig.push(&mut batch, name, &arguments, None);
            }
            rig.run(&batch.build());
            let reads = [
                ("stocks", vec![int(0)]),
                ("plenty", vec![int(0), int(35), big(4)]),
                ("newest", vec![int(0), big(20)]),
                ("of_parts", vec![int(5)]),
                ("around", vec![int(0), int(20)]),
            ];
            for (name, arguments) in reads {
                for read in [rig.query(name, &arguments), rig.call(name, &arguments)] {
                    let lists = read.unwrap();
                    assert_eq!(lists[0], lists[1], "{name}");
                }
            }
        }
    });
}
