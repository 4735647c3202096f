//! What a run of calls leaves of a row that all of them have written.

use fabius_engine::BatchBuilder;
use fabius_engine_partitioned::{PartitionedEngine, Policy, Scheme};
use fabius_storage::Version;
use fabius_testing::rig::Rig;
use fabius_value::{Datum, Key, Value};
use std::iter::successors;
use std::sync::Arc;

const PROGRAMS: &str = "
    table counters { id: int, count: bigint, note: text, primary key (id) }
    procedure make(id: int) { insert counters { id: id, count: 0, note: 'some text' } }
    procedure add(id: int) { counters[id].count += 1 }
    procedure count(id: int) -> bigint { return counters[id].count }
";
/// No more than a run takes.
const CALLS: i64 = 50;

/// The versions of the only row, whose key is 0.
fn versions(rig: &Rig) -> usize {
    let (definitions, guard) = (rig.foundation.definitions(), crossbeam_epoch::pin());
    let table = definitions.table(definitions.catalog.find_table("counters").expect("it was defined"));
    let mut key = Key::new();
    table.encode_key(&[Datum::Int(0)], &mut key).expect("a short key");
    let record = table.find(&key, &guard).expect("the row was made");
    // SAFETY: the epoch is pinned.
    let linked = |version: *const Version| unsafe { version.as_ref() };
    successors(linked(record.head()), |version| linked(version.next())).count()
}

fn add(rig: &Rig) {
    let mut batch = BatchBuilder::new();
    (0..CALLS).for_each(|_| _ = rig.push(&mut batch, "add", &[Value::Int(0)], None));
    rig.run(&batch.build());
}

/// Goal: of what a run writes to a row, the last is enough, and nothing stays below it but the whole row; as long as
/// somebody reads what was before, that stays too.
#[test]
fn a_run_leaves_one_version() {
    let policy = Policy { partitions: 1, ..Policy::of(Scheme::Partitioned) };
    let rig = Rig::new(&|foundation| Arc::new(PartitionedEngine::new(foundation, policy)));
    rig.define(PROGRAMS);
    rig.call("make", &[Value::Int(0)]).expect("it is new");
    for round in 1..4 {
        add(&rig);
        assert_eq!(versions(&rig), 2, "round {round}: the count, and the row");
    }
    let before = rig.foundation.snapshots.begin(|| rig.foundation.promised());
    add(&rig);
    assert_eq!(versions(&rig), 3, "the count now and before, and the row");
    drop(before);
    add(&rig);
    assert_eq!(versions(&rig), 2, "the count, and the row");
    assert_eq!(rig.query("count", &[Value::Int(0)]).expect("it is there"), [Value::BigInt(5 * CALLS)]);
    rig.close();
}
