//! What is proven of the values of columns holds for all that were ever written.

use fabius_engine::BatchBuilder;
use fabius_engine_graph::{GraphEngine, Settings};
use fabius_testing::rig::{Make, Rig};
use fabius_value::{SqlState, Value};
use std::sync::Arc;

const PROGRAMS: &str = "
    table counters { id: int, n: bigint, primary key (id) }
    procedure add(id: int) { insert counters { id: id, n: 0 } }
    procedure increment(id: int) { counters[id].n += 1 }
";
const SET: &str = "procedure set(id: int, n: bigint) { counters[id].n = n }";

/// A call that nobody waits for a result of: its actions are independent if nothing can fail.
fn increment(rig: &Rig) -> Result<(), SqlState> {
    let mut batch = BatchBuilder::new();
    rig.push_call(&mut batch, "increment", &[Value::Int(1)], None, false);
    let batch = batch.build();
    rig.run(&batch);
    batch.outcome(0).map(|_| ()).map_err(|error| error.state())
}

/// Goal: an addition that is proven not to fail can fail from when on a program has been defined that writes anything,
/// also when that is gone again, and what it has written comes from a checkpoint or from the log.
#[test]
fn values_of_programs_that_are_gone_count() {
    let make: Make<'_> = &|foundation| Arc::new(GraphEngine::new(foundation, Settings::default()));
    let rig = Rig::new(make);
    rig.define(PROGRAMS);
    rig.call("add", &[Value::Int(1)]).expect("it is new");
    increment(&rig).expect("there is room");
    rig.define(SET);
    rig.call("set", &[Value::Int(1), Value::BigInt(i64::MAX - 1)]).expect("the row is there");
    rig.define("drop procedure set");
    increment(&rig).expect("there is room for one");
    let written = rig.checkpoint();
    for rig in [&rig, &rig.at_checkpoint(make, &written), &rig.replayed(make)] {
        assert_eq!(increment(rig), Err(SqlState::OUT_OF_RANGE));
        assert_eq!(rig.rows("counters"), [[Value::Int(1), Value::BigInt(i64::MAX)]]);
    }
}
