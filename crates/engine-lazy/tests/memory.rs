//! The memory bound: promises go on, substantiation makes room, nothing is dropped.
//!
//! `FABIUS_CALLS` sets how many calls are pushed through (a million; ten million in the long form).

use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_program::arguments::ArgumentWriter;
use fabius_storage::memory;
use fabius_value::Value;
use std::sync::Arc;

const RECORDS: i64 = 1000;
const BOUND: usize = 128 << 20;

#[test]
fn promises_stay_inside_the_memory_bound() {
    let calls: i64 = std::env::var("FABIUS_CALLS").map_or(1_000_000, |text| text.parse().expect("a number"));
    let foundation = Arc::new(Foundation::new(Arc::new(fabius_env::RealClock::new())));
    let policy = Policy { chain_bound: u32::MAX, idle: false, memory_bytes: BOUND, backlog_calls: u64::MAX };
    let engine = LazyEngine::new(foundation, policy);
    for text in [
        "table cells { id: bigint, x: bigint, calls: bigint, primary key (id) using hash }",
        "procedure make(id: bigint) { insert cells { id: id, x: 0, calls: 0 } }",
        "procedure step(id: bigint) {
             update cells[id] { x: (cells[id].x * 31 + 7) % 1000003, calls: (cells[id].calls + 1) % 1000000007 }
         }",
    ] {
        engine.define(text).unwrap();
    }
    let definitions = engine.foundation().definitions();
    let submit = |name: &str, ids: &mut dyn Iterator<Item = i64>| {
        let procedure = definitions.catalog.find_procedure(name).unwrap();
        let mut builder = BatchBuilder::new();
        let mut bytes = Vec::new();
        for id in ids {
            bytes.clear();
            ArgumentWriter::new(&mut bytes).int(id);
            builder.push(procedure, &bytes, None, false).unwrap();
        }
        let batch = builder.build();
        engine.submit(batch.clone());
        while !batch.is_complete() {
            engine.admit();
        }
    };
    submit("make", &mut (0..RECORDS));
    let mut used_max = 0;
    let mut pushed = 0;
    while pushed < calls {
        submit("step", &mut (0..500).map(|at| (pushed + at) % RECORDS));
        pushed += 500;
        used_max = used_max.max(memory::used());
    }
    let counts = engine.counts();
    assert!(counts.slowed > 0, "the bound was met: {counts:?}, {used_max} bytes at most");
    // A turn may go past the bound before it is looked at, and epochs hold garbage for a moment.
    assert!(used_max < BOUND / 4 * 5, "{used_max} bytes at most, {BOUND} allowed");
    let table = definitions.catalog.find_table("cells").unwrap();
    let mut sum = 0;
    engine
        .rows(table, &mut |row| {
            sum += match row[2] {
                Value::BigInt(calls) => calls,
                _ => unreachable!("a bigint"),
            };
            Ok(())
        })
        .unwrap();
    assert_eq!(sum, pushed, "every call has had its effect");
}
