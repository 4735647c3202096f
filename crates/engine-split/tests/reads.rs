//! Calls that only read, in phases of all kinds: what they see is one state, with all that their caller was told of.

use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_engine_split::Policy;
use fabius_env::{Random, schedule};
use fabius_program::arguments::ArgumentWriter;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;

const TEXT: &str = "
table scales { id: int, weight: bigint, shifts: bigint, note: int, primary key (id) }
procedure open(id: int) { insert scales { id: id, weight: 0, shifts: 0, note: 0 } }
procedure shift(n: int) {
    scales[0].weight += n
    scales[1].weight -= n
    scales[0].shifts += 1
}
procedure note(n: int) { scales[1].note = n + scales[1].weight::int * 0 }
procedure weigh() -> (sum: bigint, shifts: bigint) {
    return scales[0].weight + scales[1].weight, scales[0].shifts
}
";

const TURNS: usize = 5;
const SHIFTS: i64 = 20;

fn make(foundation: Arc<Foundation>) -> Arc<dyn Engine> {
    let policy = Policy { conflicts_min: 1, applied_min: 1, impact_percent: 1, ..Policy::default() };
    Arc::new(fabius_engine_split::with_policy(foundation, policy))
}

/// One thread's batches: weights are shifted and weighed, and a few calls have to be stashed.
fn client(rig: &Rig, mut random: Random) {
    let catalog = rig.foundation.definitions().catalog.clone();
    let procedure = |name: &str| catalog.find_procedure(name).expect("defined");
    let mut told = 0;
    for _ in 0..TURNS {
        let mut batch = BatchBuilder::new();
        for _ in 0..SHIFTS {
            let mut arguments = Vec::new();
            ArgumentWriter::new(&mut arguments).int(random.below(100) as i64);
            batch.push(procedure("shift"), &arguments, None, false).expect("small");
            if random.below(8) == 0 {
                batch.push(procedure("note"), &arguments, None, false).expect("small");
            }
            batch.push(procedure("weigh"), &[], None, true).expect("small");
        }
        let batch = batch.build();
        rig.engine.submit(batch.clone());
        while !batch.is_complete() {
            if !rig.engine.help() {
                schedule::give_way("client");
            }
        }
        let outcomes = batch.outcomes();
        assert!(outcomes.aborts.is_empty() && outcomes.failure.is_none());
        drop(outcomes);
        let tickets: Vec<_> = (0..batch.count()).filter_map(|call| batch.ticket(call)).collect();
        assert_eq!(tickets.len() as i64, SHIFTS);
        for ticket in tickets {
            let values = ticket.values().expect("known").as_ref().expect("no error");
            let [Value::BigInt(sum), Value::BigInt(shifts)] = values[..] else { panic!("{values:?}") };
            assert_eq!(sum, 0, "both weights are of one state");
            assert!(shifts >= told, "{shifts} seen, {told} told of");
        }
        told += SHIFTS;
    }
}

#[test]
fn what_only_reads_sees_one_state_and_all_that_was_told() {
    for seed in 0..100 {
        let story = move || {
            let rig = Arc::new(Rig::new(&make));
            rig.define(TEXT);
            for id in 0..2 {
                rig.call("open", &[Value::Int(id)]).expect("a new row");
            }
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let rig = rig.clone();
                    let work = move || client(&rig, Random::seeded(seed * 3 + thread));
                    schedule::spawn("client", work).expect("a thread")
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            let rows = rig.rows("scales");
            assert_eq!(rows[0][2], Value::BigInt(3 * TURNS as i64 * SHIFTS), "seed {seed}");
            assert_eq!(rig.replayed(&make).rows("scales"), rows, "seed {seed}");
        };
        schedule::simulate(seed, story);
    }
}
