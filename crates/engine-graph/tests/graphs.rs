//! Graphs are executed one after the other, and each writes a record once.

use fabius_engine::BatchBuilder;
use fabius_engine_graph::{GraphEngine, Settings};
use fabius_env::schedule;
use fabius_storage::{Record, Version};
use fabius_testing::rig::Rig;
use fabius_value::{Datum, Key, Seq, Value};
use std::iter::successors;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const PROGRAMS: &str = "
    table accounts { id: int, balance: bigint, note: text, primary key (id) }
    procedure open(count: int) {
        for id in 0 to count - 1 { insert accounts { id: id::int, balance: 0, note: 'some text' } }
    }
    procedure set(value: bigint, one: int, other: int) {
        accounts[one].balance = value
        accounts[other].balance = value
    }
    procedure move(value: bigint, one: int, other: int) {
        accounts[one].balance -= value
        accounts[other].balance += value
    }
";

/// Calls of a graph, if a batch is as small as these are.
const GRAPH_CALLS: u64 = 16;

fn rig(accounts: i32) -> Rig {
    let settings = Settings { partitions: Some(3), workers_max: 3, ..Settings::default() };
    let rig = Rig::new(&|foundation| Arc::new(GraphEngine::new(foundation, settings)));
    rig.define(PROGRAMS);
    rig.call("open", &[Value::Int(accounts)]).expect("they are new");
    rig
}

/// Adds a call that nobody wants the result of.
fn push(rig: &Rig, batch: &mut BatchBuilder, name: &str, value: i64, accounts: [i32; 2]) {
    let procedure = rig.procedure(name);
    let values = [Value::BigInt(value), accounts[0].into(), accounts[1].into()];
    let bytes = fabius_program::arguments::encode(&procedure.program, &values).expect("arguments fit");
    batch.push(procedure.id, &bytes, None, false).expect("a small call");
}

/// The versions of an account, from the newest on: their seqs.
fn versions(rig: &Rig, account: i32) -> Vec<Seq> {
    let (definitions, guard) = (rig.foundation.definitions(), crossbeam_epoch::pin());
    let table = definitions.table(definitions.catalog.find_table("accounts").expect("it was defined"));
    let mut key = Key::new();
    table.encode_key(&[Datum::Int(account.into())], &mut key).expect("a short key");
    let record: &Record = table.find(&key, &guard).expect("the account is open");
    // SAFETY: the epoch is pinned.
    let linked = |version: *const Version| unsafe { version.as_ref() };
    successors(linked(record.head()), |version| linked(version.next())).map(Version::seq).collect()
}

/// What looks at accounts while every thread stands still, and how often it has.
fn watch(looks: &Arc<AtomicUsize>, mut look: impl FnMut() + Send + 'static) {
    let looks = looks.clone();
    schedule::interrupt(1, move || {
        looks.fetch_add(1, Relaxed);
        look();
    });
}

/// Goal: nothing of a graph is executed before all of the one before has been, and been committed, whatever threads
/// build and execute; and readers see whole graphs only. Each call writes an account of its own, which tells that it
/// has been executed, and one of all.
#[test]
fn a_graph_is_executed_as_a_whole_before_the_next() {
    const GRAPHS: u64 = 4;
    const CALLS: u64 = GRAPHS * GRAPH_CALLS;
    for seed in 0..30 {
        schedule::simulate(seed, move || {
            let rig = Arc::new(rig(CALLS as i32 + 1));
            let before = rig.foundation.promised().0;
            let mut batch = BatchBuilder::new();
            for call in 0..CALLS {
                let name = if call % 3 == 0 { "move" } else { "set" };
                push(&rig, &mut batch, name, call as i64, [call as i32 + 1, 0]);
            }
            let batch = batch.build();
            let looks = Arc::new(AtomicUsize::new(0));
            watch(&looks, {
                let rig = rig.clone();
                move || {
                    let committed = rig.foundation.promised().0 - before;
                    assert_eq!(committed % GRAPH_CALLS, 0, "{committed} calls are visible");
                    let is_executed = |call: u64| versions(&rig, call as i32 + 1)[0] > Seq(before);
                    assert!((0..committed).all(is_executed), "not all of {committed} calls are executed");
                    let later = committed + GRAPH_CALLS..CALLS;
                    assert!(
                        !later.into_iter().any(is_executed),
                        "a graph has begun, with {committed} calls committed"
                    );
                }
            });
            rig.helped_in_simulation(2, || {
                rig.run(&batch);
                schedule::interrupt_no_more();
            });
            assert_eq!(rig.foundation.promised().0 - before, CALLS);
            assert!(looks.load(Relaxed) > CALLS as usize, "somebody looked all the time");
        });
    }
}

/// Goal: of what a graph writes to a record, the last alone modifies it (section 4.2.2): independent actions leave it
/// as it is until the last has run, calls in one piece replace what the graph has left before; what a reader sees who
/// has come before the graph stays.
#[test]
fn the_last_write_of_a_graph_modifies_the_record() {
    for (seed, name) in (0..10).zip(["set", "move"].into_iter().cycle()) {
        schedule::simulate(seed, move || {
            let rig = Arc::new(rig(2));
            let of_row = versions(&rig, 0)[0];
            let looks = Arc::new(AtomicUsize::new(0));
            for round in 1..4 {
                let before = rig.foundation.snapshots.begin(|| rig.foundation.promised());
                let was = versions(&rig, 0);
                assert_eq!(was.len(), if round == 1 { 1 } else { 2 }, "{name}, round {round}: {was:?}");
                let last = Seq(rig.foundation.promised().0 + GRAPH_CALLS);
                watch(&looks, {
                    let (rig, was) = (rig.clone(), was.clone());
                    move || {
                        let now = versions(&rig, 0);
                        if now != was {
                            assert_eq!(now[1..], was, "{name}: one version, over those that were there");
                            assert!(
                                name == "move" || now[0] == last,
                                "{name}: {now:?}, but {last} is the last"
                            );
                        }
                    }
                });
                let mut batch = BatchBuilder::new();
                (0..GRAPH_CALLS).for_each(|call| push(&rig, &mut batch, name, call as i64, [0, 1]));
                rig.run(&batch.build());
                schedule::interrupt_no_more();
                assert_eq!(versions(&rig, 0)[0], last, "{name}, round {round}");
                drop(before);
                // A graph that comes when nobody reads any more takes what is not needed along.
                let mut batch = BatchBuilder::new();
                push(&rig, &mut batch, name, 1, [0, 1]);
                rig.run(&batch.build());
                let now = versions(&rig, 0);
                assert_eq!((now.len(), now[1]), (2, of_row), "{name}, round {round}: the value, and the row");
            }
            assert!(looks.load(Relaxed) > 0);
        });
    }
}
