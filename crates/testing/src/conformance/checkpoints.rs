//! Checkpoints: what they hold, and what an engine that begins with one does.

use super::programs::SHOP;
use super::{aborts, bank, big, int, ints, on_threads, text};
use crate::oracle::Oracle;
use crate::rig::{Make, Rig};
use fabius_engine::BatchBuilder;
use fabius_engine::checkpoint::Written;
use fabius_engine::entry::{self, Entries};
use fabius_value::{Seq, SqlState, Value};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Every row that running the log up to `last` gives, as [`Rig::dump`] shows them.
fn oracle_rows(rig: &Rig, last: Seq) -> Vec<String> {
    let mut oracle = Oracle::new();
    for batch in rig.logged() {
        if batch.first_seq > last {
            break;
        }
        match entry::decode(&batch.payload).unwrap() {
            Entries::Definition(text) => oracle.define(text).unwrap(),
            Entries::KeyWindow(calls) => oracle.set_key_window(calls),
            Entries::Nothing | Entries::Checkpoint => oracle.pass(),
            Entries::Calls { time_us, bytes } => {
                for call in entry::calls(bytes) {
                    let call = call.unwrap();
                    oracle.call(call.procedure, call.arguments, call.key, time_us);
                }
            }
        }
    }
    assert_eq!(oracle.last(), last, "a checkpoint stands between two batches of the log");
    let mut lines = Vec::new();
    for (table, schema) in oracle.catalog().tables() {
        let mut rows: Vec<String> = oracle.rows(table).iter().map(|row| format!("{row:?}")).collect();
        rows.sort();
        lines.extend(rows.into_iter().map(|row| format!("{}: {row}", schema.name)));
    }
    lines
}

pub(super) fn a_checkpoint_is_the_state_at_its_seq(make: Make<'_>) {
    let rig = bank(make, 8, 1000);
    rig.define(SHOP);
    let taken: Mutex<Vec<Written>> = Mutex::default();
    let done = AtomicBool::new(false);
    let all: Vec<Vec<Value>> = (0..8).map(|id| vec![int(id)]).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                taken.lock().push(rig.checkpoint());
                // Readers read while the next one is written.
                assert!(rig.query("sum_of", &[Value::List(all.clone())]).is_ok());
            }
        });
        on_threads(&rig, |random, thread| {
            for round in 0..12 {
                let mut batch = BatchBuilder::new();
                for n in 0..20 {
                    let (src, dst) = (random.below(8) as i32, random.below(8) as i32);
                    let key = format!("{thread} {round} {n}");
                    let key = (n % 4 == 0).then_some(key.as_bytes());
                    match random.below(8) {
                        0 => rig.push(&mut batch, "order", &[int(src), int(dst), int(1), text("new")], key),
                        1 => rig.push(&mut batch, "cancel", &[int(src), int(dst)], key),
                        2 => rig.push(&mut batch, "replace", &[int(src), int(dst)], key),
                        3 => rig.push(&mut batch, "next_number", &[int(src), int(30)], key),
                        4 => rig.push(&mut batch, "rename", &[int(src), text("new owner")], key),
                        5 => rig.push(&mut batch, "raise", &[int(src), big(2000 + round)], key),
                        _ => rig.push(&mut batch, "transfer", &[int(src), int(dst), big(40)], key),
                    };
                }
                rig.run(&batch.build());
                if thread == 0 && round == 6 {
                    rig.define("table more { id: int, primary key (id) }");
                    rig.define("procedure fill(id: int) { insert more { id: id } }");
                    rig.call("fill", &[int(1)]).unwrap();
                }
            }
        });
        done.store(true, Relaxed);
    });
    let mut taken = taken.into_inner();
    taken.push(rig.checkpoint());
    // Some of the many, the first and the last among them.
    let step = taken.len().div_ceil(5);
    for written in taken.iter().rev().step_by(step).chain(taken.first()) {
        assert_eq!(
            rig.at_checkpoint(make, written).dump(),
            oracle_rows(&rig, written.seq),
            "rows at {}: the checkpoint's, the oracle's",
            written.seq
        );
        let again = rig.after_checkpoint(make, written);
        assert_eq!(again.dump(), rig.dump(), "rows after the checkpoint at {}", written.seq);
        for state in ["new", "open"] {
            assert_eq!(again.query("in_state", &[text(state)]), rig.query("in_state", &[text(state)]));
        }
    }
}

pub(super) fn a_checkpoint_keeps_keys_and_results(make: Make<'_>) {
    let rig = bank(make, 2, 100);
    // Nobody has asked for the result when the checkpoint is taken.
    let mut batch = BatchBuilder::new();
    let call = rig.push(&mut batch, "transfer", &[int(0), int(1), big(10)], Some(b"one"));
    rig.run(&batch.build());
    assert_eq!(call, 0);
    let refused = rig.call_with("transfer", &[int(0), int(1), big(1000)], Some(b"two")).unwrap_err();
    let written = rig.checkpoint();
    assert_eq!(written.counts.keys, 2);
    rig.call_with("transfer", &[int(0), int(1), big(20)], Some(b"three")).unwrap();
    rig.call("add", &[int(0), big(5000)]).unwrap();
    for again in [rig.after_checkpoint(make, &written), rig.after_checkpoint(make, &rig.checkpoint())] {
        let transfer =
            |amount, key: &[u8]| again.call_with("transfer", &[int(0), int(1), big(amount)], Some(key));
        assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
        assert_eq!(transfer(1000, b"two"), Err(refused.clone()));
        assert_eq!(transfer(20, b"three"), Ok(vec![big(70)]));
        assert_eq!(transfer(70, b"four"), Ok(vec![big(5000)]));
        assert_eq!(again.query("see", &[int(1)]), Ok(vec![big(200), big(100)]));
    }
}

pub(super) fn every_type_comes_back(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.define(
        "table all { a: int, b: smallint null, c: boolean null, d: numeric(38, 5) null, e: double precision null,
                     f: char(5) null, g: varchar(3) null, h: text null, i: bytea null, j: date null,
                     k: timestamp null, primary key (a) }
         procedure fill(a: int, d: numeric(38, 5), t: timestamp, h: text, i: bytea) {
             insert all { a: a, b: -1, c: true, d: d, e: 0.5::double precision, f: 'ab  ', g: 'xyz', h: h, i: i,
                          j: t::date, k: t }
         }
         procedure nothing(a: int) { insert all { a: a } }",
    );
    rig.call("nothing", &[int(1)]).unwrap();
    let decimal = fabius_value::Decimal { mantissa: -(10i128.pow(38) - 1), scale: 5 };
    for (id, time) in [(2, 0), (3, i64::MAX), (4, i64::MIN)] {
        let long = text(&"é\0".repeat(200_000));
        let call = [int(id), decimal.into(), Value::Timestamp(time), long, Value::Bytea(vec![0; 300_000])];
        // A time without a date may be refused; what is stored comes back.
        let _either = rig.call("fill", &call);
    }
    assert!(rig.rows("all").len() > 1);
    assert_eq!(rig.at_checkpoint(make, &rig.checkpoint()).dump(), rig.dump());
}

pub(super) fn constraints_hold_after_a_checkpoint(make: Make<'_>) {
    let rig = bank(make, 1, i64::MAX - 5);
    rig.define(SHOP);
    rig.call("item", &[int(1), text("a"), int(1)]).unwrap();
    rig.call("item", &[int(2), text("b"), int(1)]).unwrap();
    rig.call("drop_item", &[int(2)]).unwrap();
    for number in 1..=3 {
        rig.call("order", &[int(1), int(number), Value::Null, text("open")]).unwrap();
    }
    let written = rig.checkpoint();
    let again = rig.at_checkpoint(make, &written);
    // Proofs know the values that came from the checkpoint.
    aborts(again.call("add", &[int(0), big(6)]), SqlState::OUT_OF_RANGE);
    again.call("add", &[int(0), big(5)]).unwrap();
    aborts(again.call("open", &[int(0), big(1)]), SqlState::UNIQUE_VIOLATION);
    aborts(again.call("item", &[int(3), text("a"), int(1)]), SqlState::UNIQUE_VIOLATION);
    again.call("item", &[int(3), text("b"), int(1)]).unwrap();
    assert_eq!(again.query("in_state", &[text("open")]).unwrap(), ints(&[1, 2, 3]));
    again.call("cancel", &[int(1), int(2)]).unwrap();
    again.call("next_number", &[int(1), int(9)]).unwrap();
    assert_eq!(again.query("down", &[int(1)]).unwrap(), ints(&[4, 3, 1]));
    super::settle(&again);
    assert_eq!(again.query("in_state", &[text("open")]).unwrap(), ints(&[1, 3]));
    // A checkpoint of a database that began with one.
    let second = again.checkpoint();
    assert_eq!(again.at_checkpoint(make, &second).dump(), again.dump());
}
