//! What the policy bounds: how many calls lie on a row's chain, and how many wait in all; and what is counted of it.

use fabius_engine::BatchBuilder;
use fabius_engine::counters::Counts;
use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_program::arguments;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;

const SCHEMA: &str = "
    table cells { id: bigint, x: bigint, primary key (id) using hash }
    procedure make(id: bigint) { insert cells { id: id, x: 1 } }
    procedure step(id: bigint) { update cells[id] { x: (cells[id].x * 31 + 7) % 1009 } }
    procedure add(id: bigint, n: bigint) { cells[id].x += n }";

/// Nothing is run before it must be, but for what the policy says.
const LAZY: Policy =
    Policy { chain_bound: u32::MAX, idle: false, memory_bytes: 8 << 30, backlog_calls: u64::MAX };

/// An engine with the cells 1 to 3.
fn rig(policy: Policy) -> Rig {
    let rig = Rig::new(&move |foundation| Arc::new(LazyEngine::new(foundation, policy)));
    rig.define(SCHEMA);
    promise(&rig, "make", &[&[1], &[2], &[3]]);
    rig
}

/// Makes calls whose results nobody wants, in one turn.
fn promise(rig: &Rig, name: &str, calls: &[impl AsRef<[i64]>]) -> Counts {
    let procedure = rig.procedure(name);
    let mut builder = BatchBuilder::new();
    for values in calls {
        let values: Vec<Value> = values.as_ref().iter().map(|&value| value.into()).collect();
        let bytes = arguments::encode(&procedure.program, &values).expect("arguments fit");
        builder.push(procedure.id, &bytes, None, false).expect("a small call");
    }
    rig.run(&builder.build());
    rig.engine.counts()
}

/// What a cell has after so many steps.
fn stepped(steps: u64) -> Value {
    Value::BigInt((0..steps).fold(1, |x, _| (x * 31 + 7) % 1009))
}

/// Goal: no row has more calls pending than the bound once threads have helped, however many come in one turn; and no
/// more are run than that takes.
#[test]
fn chains_stay_within_their_bound() {
    for bound in [1_u32, 2, 5, 40] {
        let rig = rig(Policy { chain_bound: bound, ..LAZY });
        let mut steps = 0;
        for calls in [1, 1, 3, 7, 40, 100, 2] {
            promise(&rig, "step", &vec![&[2_i64][..]; calls]);
            steps += calls as u64;
            // What is urgent is run by whoever helps; there is an end to it.
            let _ = (0..1000).take_while(|_| rig.engine.help()).count();
            let counts = rig.engine.counts();
            let left = steps % u64::from(bound);
            assert_eq!(counts.backlog, left, "bound {bound}, {steps} steps");
            assert_eq!(counts.substantiated, steps - left, "bound {bound}, {steps} steps");
        }
        assert_eq!(rig.rows("cells")[1][1], stepped(steps), "bound {bound}");
    }
    let rig = rig(LAZY);
    promise(&rig, "step", &[&[2]; 100]);
    let _ = (0..1000).take_while(|_| rig.engine.help()).count();
    assert_eq!(rig.engine.counts().backlog, 100, "without a bound none are run");
}

/// Goal: once so many calls wait, callers have to run some before theirs are promised, and no more ever wait than that
/// and one turn's; nothing is lost by it.
#[test]
fn the_backlog_stays_within_its_bound() {
    const BOUND: u64 = 100;
    const TURN: usize = 20;
    let rig = rig(Policy { backlog_calls: BOUND, ..LAZY });
    let mut most = 0;
    for turn in 1..=50_u64 {
        let counts = promise(&rig, "step", &[&[2]; TURN]);
        most = most.max(counts.backlog);
        assert!(counts.backlog <= BOUND + TURN as u64, "{counts:?} after {turn} turns");
        let is_over = turn * TURN as u64 > BOUND + TURN as u64;
        assert_eq!(counts.slowed > 0, is_over, "{counts:?} after {turn} turns");
        assert_eq!(counts.backlog + counts.substantiated, turn * TURN as u64);
    }
    assert!(most > BOUND, "the bound is met, not something lower: {most}");
    assert_eq!(rig.rows("cells")[1][1], stepped(50 * TURN as u64));
}

/// Goal: deltas of one turn on one row are one delta, and each that went into another is counted; those of different
/// turns, rows and of calls that read are not.
#[test]
fn deltas_of_a_turn_are_merged() {
    let rig = rig(LAZY);
    promise(&rig, "add", &[&[1, 1]]);
    assert_eq!(promise(&rig, "add", &[&[1, 1]]).merged, 0, "in turns of their own");
    assert_eq!(promise(&rig, "add", &[&[1, 1], &[2, 1], &[3, 1]]).merged, 0, "of different rows");
    assert_eq!(promise(&rig, "add", &[&[1, 5]; 10]).merged, 9);
    assert_eq!(promise(&rig, "add", &[&[1, 5], &[2, 5], &[1, 5], &[2, 5]]).merged, 9 + 2);
    promise(&rig, "step", &[&[3]; 4]);
    assert_eq!(rig.engine.counts().merged, 9 + 2, "steps read what they write");
    let numbers: Vec<Option<i64>> = rig.rows("cells").iter().map(|row| row[1].as_integer()).collect();
    let third = (0..4).fold(2, |x, _| (x * 31 + 7) % 1009);
    assert_eq!(numbers, [Some(1 + 3 + 50 + 10), Some(2 + 10), Some(third)]);
}
