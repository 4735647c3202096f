//! Promises near the ends of a type: what the lane knows of a column's values always covers them, though it moves for many
//! calls at a time and only now and then (`interval.rs`, `variant.rs`). Were it ever too narrow, a promised call would fail.

use fabius_engine::BatchBuilder;
use fabius_engine::rig::Rig;
use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_program::arguments;
use fabius_value::Value;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

const SCHEMA: &str = "
    table cells { id: bigint, x: smallint, primary key (id) using hash }
    procedure make(id: bigint) { insert cells { id: id, x: 0 } }
    procedure add(id: bigint, n: smallint) { cells[id].x += n }
    procedure twice(id: bigint) { cells[id].x = (cells[id].x * 2)::smallint }
    procedure put(id: bigint, n: smallint) { update cells[id] { x: n } }";

/// What a call does to a number, `None` if it aborts.
fn after(name: &str, number: i64, n: i64) -> Option<i64> {
    let result = match name {
        "add" => number + n,
        "twice" => number * 2,
        _ => n,
    };
    i16::try_from(result).ok().map(i64::from)
}

#[test]
fn promises_near_the_ends_of_a_type_are_kept() {
    for seed in 0..20 {
        let mut random = SmallRng::seed_from_u64(seed);
        let policy = Policy { chain_bound: u32::MAX, idle: false, ..Policy::default() };
        let rig = Rig::new(&move |foundation| Arc::new(LazyEngine::new(foundation, policy)));
        rig.define(SCHEMA);
        let mut model = [0_i64; 3];
        (0..3).for_each(|id: i64| drop(rig.call("make", &[id.into()]).expect("it is new")));
        // Small steps for long, so that intervals move many calls at a time; then larger ones, and other values.
        for range in [1, 3, 40, 900, 9000, 3] {
            for _ in 0..20 {
                let mut builder = BatchBuilder::new();
                let mut expected = Vec::new();
                for _ in 0..random.random_range(1..40) {
                    let (cell, n) = (random.random_range(0..3_usize), random.random_range(-range..=range));
                    let name = match random.random_range(0..60) {
                        0 => "put",
                        1 => "twice",
                        _ => "add",
                    };
                    let mut values: Vec<Value> = vec![(cell as i64).into()];
                    if name != "twice" {
                        values.push(Value::SmallInt(n as i16));
                    }
                    let procedure = rig.procedure(name);
                    let bytes = arguments::encode(&procedure.program, &values).expect("arguments fit");
                    builder.push(procedure.id, &bytes, None, false).expect("a small call");
                    let result = after(name, model[cell], n);
                    model[cell] = result.unwrap_or(model[cell]);
                    expected.push(result.is_some());
                }
                let batch = builder.build();
                rig.run(&batch);
                let committed: Vec<bool> =
                    (0..batch.count()).map(|call| batch.outcome(call).is_ok()).collect();
                assert_eq!(committed, expected, "seed {seed}, steps to {range}");
            }
        }
        let rows: Vec<Option<i64>> = rig.rows("cells").iter().map(|row| row[1].as_integer()).collect();
        assert_eq!(rows, model.map(Some), "seed {seed}");
    }
}
