//! Ranges below prefixes of keys: which calls lock them, and what they keep apart.

use fabius_engine::eager::plan::Schema;
use fabius_engine::entry::Call;
use fabius_engine::{BatchBuilder, Foundation};
use fabius_engine_locking::footprint::{Footprints, Way};
use fabius_engine_locking::policy::LockManager;
use fabius_engine_locking::{LockingEngine, Policy};
use fabius_env::Random;
use fabius_testing::rig::{Make, Rig};
use fabius_value::Value;
use std::sync::Arc;

/// Groups of entries; whoever adds or takes one reads which, and changes it for the next.
const GROUPS: &str = "
table groups { g: int, next: int, total: bigint, primary key (g) using hash }
table entries { g: int, n: int, line: int, value: int, primary key (g, n, line) }

procedure open(g: int) { insert groups { g: g, next: 1, total: 0 } }

procedure add(g: int, value: int) -> int {
    let n = groups[g].next
    groups[g].next += 1
    for line in 1 to 3 { insert entries { g: g, n: n, line: line::int, value: value } }
    return n
}

procedure take_first(g: int) {
    for entry in entries[g] limit 2 { delete entry }
}

procedure raise(g: int, n: int, value: int) {
    if exists entries[g, n, 2] { entries[g, n, 2].value += value }
}

procedure add_up(g: int) {
    var total = 0::bigint
    for entry in entries[g] { total += entry.value }
    groups[g].total = total
}

procedure add_up_one(g: int, n: int) {
    var total = 0::bigint
    for entry in entries[g, n] { total += entry.value }
    groups[g].total = total
}
";

fn ways(rig: &Rig, names: &[&str]) -> Vec<Way> {
    let schema = Schema::of(rig.engine.foundation().definitions(), &Schema::default());
    let footprints = Footprints::default().follow(&schema);
    let way = |name: &&str| {
        let call = Call { procedure: rig.procedure(name).id, arguments: &[], key: None, wants_result: false };
        footprints.way(&call, &schema)
    };
    names.iter().map(way).collect()
}

/// Goal: in TPC-C, numbers that a district or a queue gives need no reconnaissance; names do.
#[test]
fn tpcc_calls_know_their_ranges() {
    let make: Make<'_> =
        &|foundation: Arc<Foundation>| Arc::new(LockingEngine::new(foundation, Policy::default()));
    let rig = Rig::new(make);
    rig.define(include_str!("../../bench/programs/tpcc.fab"));
    let names = ["new_order", "payment", "payment_by_name", "delivery", "order_status", "stock_level"];
    let expected = [Way::Declared, Way::Declared, Way::Dependent, Way::Declared, Way::Query, Way::Query];
    assert_eq!(ways(&rig, &names), expected);
}

/// Goal: calls that lock ranges, rows in them, and what they have found in them, give what running them in the order
/// of the log gives.
#[test]
fn ranges_keep_rows_apart() {
    for lock_manager in [LockManager::Queues, LockManager::Counters] {
        let policy = Policy { lock_manager, ..Policy::default() };
        let make: Make<'_> = &|foundation: Arc<Foundation>| Arc::new(LockingEngine::new(foundation, policy));
        let rig = Rig::new(make);
        rig.define(GROUPS);
        let expected = [Way::Declared, Way::Declared, Way::Declared, Way::Dependent, Way::Dependent];
        assert_eq!(ways(&rig, &["add", "take_first", "raise", "add_up", "add_up_one"]), expected);
        (0..3).for_each(|g| drop(rig.call("open", &[Value::Int(g)]).unwrap()));
        let client = &|seed: u64| {
            let mut random = Random::seeded(seed);
            for _ in 0..30 {
                let mut batch = BatchBuilder::new();
                for _ in 0..40 {
                    let (g, n) = (Value::Int(random.below(3) as i32), Value::Int(random.below(200) as i32));
                    let (name, values) = match random.below(6) {
                        0 | 1 => ("add", vec![g, n]),
                        2 => ("take_first", vec![g]),
                        3 => ("raise", vec![g, n, Value::Int(7)]),
                        4 => ("add_up", vec![g]),
                        _ => ("add_up_one", vec![g, n]),
                    };
                    rig.push(&mut batch, name, &values, None);
                }
                let batch = batch.build();
                rig.run(&batch);
                assert!((0..40).all(|call| batch.outcome(call).is_ok()));
            }
        };
        rig.helped(1, || {
            std::thread::scope(|scope| (0..3).for_each(|seed| drop(scope.spawn(move || client(seed)))))
        });
        assert_eq!(rig.replayed(make).dump(), rig.dump());
    }
}
