//! Calls whose record actions are independent are executed action by action, and are whole all the same.

use fabius_engine::BatchBuilder;
use fabius_engine_graph::{GraphEngine, Settings};
use fabius_env::Random;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;

const PROGRAMS: &str = "
    table cells { id: int, value: bigint, primary key (id) }
    procedure fill(count: int) { for id in 0 to count - 1 { insert cells { id: id::int, value: 0 } } }
    procedure put(reads: list of int, writes: list of (id: int, value: bigint)) {
        var highest: bigint = 0
        for id in reads { highest = greatest(highest, cells[id].value) }
        for write in writes { cells[write.id].value = write.value }
    }
    procedure pair(one: int, other: int, value: bigint) {
        cells[one].value = value
        cells[other].value = value
    }
    procedure copy(src: int, dst: int) { cells[dst].value = cells[src].value }
    procedure raise(reads: list of int, dst: int, least: bigint) {
        for id in reads { require cells[id].value >= least, \"too small\" }
        cells[dst].value = least
    }
";
const CELLS: u64 = 24;

/// What the calls do, one after the other.
fn model(cells: &mut [i64], call: &str, values: &[Value]) -> bool {
    let int = |value: &Value| match value {
        Value::Int(value) => i64::from(*value),
        Value::BigInt(value) => *value,
        other => panic!("{other:?} is no number"),
    };
    let lists = |value: &Value| match value {
        Value::List(rows) => rows.iter().map(|row| row.iter().map(int).collect()).collect(),
        _ => Vec::<Vec<i64>>::new(),
    };
    match call {
        "put" => {
            let (reads, writes) = (lists(&values[0]), lists(&values[1]));
            let is_whole = reads.iter().chain(&writes).all(|row| (row[0] as usize) < cells.len());
            writes.iter().filter(|_| is_whole).for_each(|write| cells[write[0] as usize] = write[1]);
            is_whole
        }
        "pair" => {
            let (one, other) = (int(&values[0]) as usize, int(&values[1]) as usize);
            let is_whole = one.max(other) < cells.len();
            [one, other].into_iter().filter(|_| is_whole).for_each(|id| cells[id] = int(&values[2]));
            is_whole
        }
        "copy" => {
            cells[int(&values[1]) as usize] = cells[int(&values[0]) as usize];
            true
        }
        _ => {
            let least = int(&values[2]);
            let holds = lists(&values[0]).iter().all(|id| cells[id[0] as usize] >= least);
            if holds {
                cells[int(&values[1]) as usize] = least;
            }
            holds
        }
    }
}

/// Goal: actions come to nothing if a row is missing to one of them, and take their turns among calls that are
/// executed in one piece.
#[test]
fn calls_in_actions_are_whole() {
    let settings = Settings { partitions: Some(3), workers_max: 3, ..Settings::default() };
    let rig = Rig::new(&|foundation| Arc::new(GraphEngine::new(foundation, settings)));
    rig.define(PROGRAMS);
    rig.call("fill", &[Value::Int(CELLS as i32)]).expect("the cells are new");
    let mut random = Random::seeded(7);
    let mut cells = [0; CELLS as usize];
    rig.helped(2, || {
        for _ in 0..40 {
            let mut batch = BatchBuilder::new();
            let mut expected = Vec::new();
            for _ in 0..200 {
                let mut id = |above| Value::Int(random.below(CELLS + above) as i32);
                let (name, mut values) = match id(0) {
                    // Now and then a cell that is not there.
                    Value::Int(0..10) => ("put", vec![id(1), id(0), id(0), id(1), id(0)]),
                    Value::Int(10..14) => ("pair", vec![id(0), id(1)]),
                    Value::Int(14..19) => ("copy", vec![id(0), id(0)]),
                    _ => ("raise", vec![id(0), id(0), id(0)]),
                };
                let value = Value::BigInt(random.below(100) as i64);
                values = match name {
                    "put" => {
                        let writes = values.split_off(2).into_iter().map(|id| vec![id, value.clone()]);
                        let writes = Value::List(writes.collect());
                        vec![Value::List(values.into_iter().map(|id| vec![id]).collect()), writes]
                    }
                    "pair" => {
                        values.push(value);
                        values
                    }
                    "raise" => {
                        let dst = values.pop().expect("there are three");
                        let reads = values.into_iter().map(|id| vec![id]).collect();
                        vec![Value::List(reads), dst, value]
                    }
                    _ => values,
                };
                rig.push(&mut batch, name, &values, None);
                expected.push(model(&mut cells, name, &values));
            }
            let batch = batch.build();
            rig.run(&batch);
            for (call, expected) in expected.into_iter().enumerate() {
                let outcome = batch.outcome(call as u32);
                assert_eq!(outcome.is_ok(), expected, "call {call}: {outcome:?}");
            }
        }
    });
    let mut found = rig.rows("cells");
    found.sort_by_key(|row| if let Value::Int(id) = row[0] { id } else { unreachable!("ids are integers") });
    let found: Vec<Value> = found.into_iter().map(|mut row| row.remove(1)).collect();
    assert_eq!(found, cells.map(Value::BigInt));
}
