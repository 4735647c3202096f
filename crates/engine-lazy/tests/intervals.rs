//! Promises near the ends of a type: what the lane knows of a column's values always covers them, though it moves for
//! many calls at a time and only now and then (`interval.rs`, `variant.rs`). Were it ever too narrow, a promised call
//! would fail.

use fabius_engine::BatchBuilder;
use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_program::arguments;
use fabius_testing::rig::Rig;
use fabius_value::{DataType, Decimal, Value, calendar};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// A type of column, its values as whole numbers: cents of a numeric, days, microseconds.
struct Column {
    data_type: DataType,
    /// What is added to it.
    step: DataType,
    add: &'static str,
    twice: &'static str,
    /// The values that there are.
    range: (i128, i128),
}

impl Column {
    fn exact(data_type: DataType, twice: &'static str) -> Column {
        let range = data_type.exact_range().expect("an exact type");
        Column { data_type, step: data_type, add: "cells[id].x += n", twice, range }
    }

    fn schema(&self) -> String {
        let Column { data_type, step, add, twice, .. } = self;
        format!(
            "table cells {{ id: bigint, x: {data_type}, primary key (id) using hash }}
             procedure put(id: bigint, n: {data_type}) {{ update cells[id] {{ x: n }} }}
             procedure make(id: bigint, n: {data_type}) {{ insert cells {{ id: id, x: n }} }}
             procedure add(id: bigint, n: {step}) {{ {add} }}
             procedure twice(id: bigint) {{ {twice} }}"
        )
    }

    /// What a call does to a number, `None` if it aborts.
    fn after(&self, name: &str, number: i128, n: i128) -> Option<i128> {
        let result = match name {
            "add" => number + n,
            "twice" => number * 2,
            _ => n,
        };
        (self.range.0..=self.range.1).contains(&result).then_some(result)
    }
}

/// A whole number as a value of a type.
fn value(number: i128, data_type: DataType) -> Value {
    match data_type {
        DataType::Date => Value::Date(number as i32),
        DataType::Timestamp => Value::Timestamp(number as i64),
        exact => Value::Numeric(Decimal { mantissa: number, scale: exact.scale() })
            .cast(exact)
            .expect("steps are small"),
    }
}

fn number(value: &Value) -> i128 {
    match value {
        Value::Date(days) => (*days).into(),
        Value::Timestamp(micros) => (*micros).into(),
        Value::Numeric(decimal) => decimal.mantissa,
        other => other.as_integer().expect("an integer").into(),
    }
}

fn promises_are_kept(column: &Column, seeds: u64) {
    let Column { data_type, step, range: (low, high), .. } = *column;
    for seed in 0..seeds {
        let mut random = SmallRng::seed_from_u64(seed);
        let policy = Policy { chain_bound: u32::MAX, idle: false, ..Policy::default() };
        let rig = Rig::new(&move |foundation| Arc::new(LazyEngine::new(foundation, policy)));
        rig.define(&column.schema());
        let mut model = [0, high - high / 40, low - low / 40];
        for (id, start) in model.iter().enumerate() {
            rig.call("make", &[(id as i64).into(), value(*start, data_type)]).expect("it is new");
        }
        // Small steps for long, so that intervals move many calls at a time; then larger ones, and other values.
        for range in [1, high / 10_000, high / 800, high / 36, high / 4, 3] {
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
                    match name {
                        "put" => values.push(value(n, data_type)),
                        "add" => values.push(value(n, step)),
                        _ => {}
                    }
                    let procedure = rig.procedure(name);
                    let bytes = arguments::encode(&procedure.program, &values).expect("arguments fit");
                    builder.push(procedure.id, &bytes, None, false).expect("a small call");
                    let result = column.after(name, model[cell], n);
                    model[cell] = result.unwrap_or(model[cell]);
                    expected.push(result.is_some());
                }
                let batch = builder.build();
                rig.run(&batch);
                let committed: Vec<bool> =
                    (0..batch.count()).map(|call| batch.outcome(call).is_ok()).collect();
                assert_eq!(committed, expected, "{data_type}, seed {seed}, steps to {range}");
            }
        }
        let rows: Vec<i128> = rig.rows("cells").iter().map(|row| number(&row[1])).collect();
        assert_eq!(rows, model, "{data_type}, seed {seed}");
    }
}

#[test]
fn promises_near_the_ends_of_a_type_are_kept() {
    promises_are_kept(&Column::exact(DataType::SmallInt, "cells[id].x = (cells[id].x * 2)::smallint"), 20);
}

#[test]
fn promises_near_the_ends_of_int_are_kept() {
    promises_are_kept(&Column::exact(DataType::Int, "cells[id].x = cells[id].x * 2"), 8);
}

#[test]
fn promises_near_the_ends_of_bigint_are_kept() {
    promises_are_kept(&Column::exact(DataType::BigInt, "cells[id].x = cells[id].x * 2"), 8);
}

#[test]
fn promises_near_the_ends_of_numerics_are_kept() {
    let twice = "cells[id].x = cells[id].x * 2";
    for (precision, scale) in [(4, 2), (18, 4), (36, 10)] {
        promises_are_kept(&Column::exact(DataType::Numeric { precision, scale }, twice), 5);
    }
}

#[test]
fn promises_near_the_first_and_last_day_are_kept() {
    let (first, last) = calendar::DATE_RANGE;
    let days = Column {
        data_type: DataType::Date,
        step: DataType::Int,
        add: "cells[id].x = cells[id].x + n",
        twice: "cells[id].x = cells[id].x + (cells[id].x - date '1970-01-01')",
        range: (first.into(), last.into()),
    };
    promises_are_kept(&days, 8);
}

#[test]
fn promises_near_the_first_and_last_microsecond_are_kept() {
    let micros = Column {
        data_type: DataType::Timestamp,
        step: DataType::BigInt,
        add: "cells[id].x = add_micros(cells[id].x, n)",
        twice: "cells[id].x = add_micros(cells[id].x, micros_between(cells[id].x, timestamp '1970-01-01'))",
        range: (i64::MIN.into(), i64::MAX.into()),
    };
    promises_are_kept(&micros, 8);
}
