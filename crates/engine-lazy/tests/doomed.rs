//! Calls that blind writes have made pointless are dropped, and only those (lazy evaluation, section 4.3).

use fabius_engine::BatchBuilder;
use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_program::arguments;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;

const SCHEMA: &str = "
    table cells { id: bigint, x: bigint, y: bigint, primary key (id) using hash }
    procedure make(id: bigint) { insert cells { id: id, x: 1, y: 1 } }
    procedure step(id: bigint) { update cells[id] { x: (cells[id].x * 31 + 7) % 1009 } }
    procedure both(a: bigint, b: bigint) {
        let x = (cells[a].x * 31 + cells[b].x) % 1009
        update cells[a] { x: x }
        update cells[b] { x: (x + 1) % 1009 }
    }
    procedure note(a: bigint, b: bigint) { update cells[b] { y: (cells[a].x * 3) % 1009 } }
    procedure pair(id: bigint) {
        update cells[id] { x: (cells[id].x * 31 + 7) % 1009, y: (cells[id].x * 5) % 1009 }
    }
    procedure clear(id: bigint) { update cells[id] { x: 0 } }";

/// An engine that computes nothing before somebody asks, with the cells 1 to 3.
fn rig() -> Rig {
    rig_with(u32::MAX)
}

/// An engine with the cells 1 to 3, and a bound on chains.
fn rig_with(chain_bound: u32) -> Rig {
    let policy = Policy { chain_bound, idle: false, ..Policy::default() };
    let rig = Rig::new(&move |foundation| Arc::new(LazyEngine::new(foundation, policy)));
    rig.define(SCHEMA);
    (1..=3).for_each(|id| promise(&rig, &[("make", &[id])]));
    rig
}

/// Makes calls whose results nobody wants, in one turn.
fn promise(rig: &Rig, calls: &[(&str, &[i64])]) {
    let mut builder = BatchBuilder::new();
    for (name, values) in calls {
        let procedure = rig.procedure(name);
        let values: Vec<Value> = values.iter().map(|&value| value.into()).collect();
        let bytes = arguments::encode(&procedure.program, &values).expect("arguments fit");
        builder.push(procedure.id, &bytes, None, false).expect("a small call");
    }
    rig.run(&builder.build());
}

/// Takes turns until what was doomed before has been dropped; gives how many calls have been so far.
fn dropped(rig: &Rig) -> u64 {
    (0..3).for_each(|_| promise(rig, &[("clear", &[3])]));
    rig.engine.counts().skipped
}

fn numbers(rig: &Rig) -> Vec<[Option<i64>; 2]> {
    rig.rows("cells").iter().map(|row| [row[1].as_integer(), row[2].as_integer()]).collect()
}

/// Goal: a chain of any length is dropped as a whole, across the turns that it was made in, and nothing of it is
/// computed.
#[test]
fn a_whole_chain_is_dropped() {
    let rig = rig();
    for calls in [1, 2, 7, 60] {
        let before = dropped(&rig);
        (0..calls).for_each(|_| promise(&rig, &[("step", &[1]), ("step", &[2])]));
        promise(&rig, &[("clear", &[1]), ("step", &[2])]);
        assert_eq!(dropped(&rig) - before, calls, "those of cell 1");
        promise(&rig, &[("clear", &[2])]);
        assert_eq!(dropped(&rig) - before, 2 * calls + 1);
    }
    assert_eq!(rig.engine.counts().substantiated, 0);
    assert_eq!(numbers(&rig), [[Some(0), Some(1)]; 3]);
}

/// Goal: calls that a blind write has made pointless do not count as part of the chain, so that a bound on chains is no
/// reason to compute some of them.
#[test]
fn a_bound_counts_what_may_be_needed() {
    let rig = rig_with(10);
    for _ in 0..7 {
        (0..9).for_each(|_| promise(&rig, &[("step", &[1])]));
        promise(&rig, &[("clear", &[1])]);
    }
    rig.engine.help();
    assert_eq!((rig.engine.counts().substantiated, dropped(&rig)), (0, 63));
    (0..10).for_each(|_| promise(&rig, &[("step", &[1])]));
    rig.engine.help();
    assert_eq!(rig.engine.counts().substantiated, 10);
}

/// Goal: what the call that overwrites will read itself is not pointless, also below stickies that it does not read.
#[test]
fn what_is_read_below_another_sticky_stays() {
    let rig = rig();
    promise(&rig, &[("pair", &[1]), ("note", &[2, 1]), ("pair", &[1])]);
    assert_eq!(dropped(&rig), 1, "the note");
    assert_eq!(numbers(&rig)[0], [Some(176), Some(190)]);
}

/// Goal: a call that has written two rows is dropped once both are overwritten, with what only it could read, in
/// whichever order and turn that happens.
#[test]
fn a_call_goes_when_all_that_it_has_written_is_overwritten() {
    let clears: [&[(&str, &[i64])]; 3] =
        [&[("clear", &[1]), ("clear", &[2])], &[("clear", &[2]), ("clear", &[1])], &[("clear", &[2])]];
    for last in clears {
        let rig = rig();
        promise(
            &rig,
            &[("step", &[1]), ("step", &[2]), ("both", &[1, 2]), ("both", &[2, 1]), ("step", &[1])],
        );
        assert_eq!(dropped(&rig), 0);
        promise(&rig, &[("clear", &[1])]);
        assert_eq!(dropped(&rig), 1, "the rest has written cell 2 too, or is read by what has");
        promise(&rig, last);
        // Those that were passed by before stay in the backlog: nobody walks down there again.
        let dropped = dropped(&rig);
        assert!((2..=5).contains(&dropped), "{dropped} dropped");
        assert_eq!(numbers(&rig), [[Some(0), Some(1)], [Some(0), Some(1)], [Some(0), Some(1)]]);
        rig.engine.settle();
        let counts = rig.engine.counts();
        assert_eq!((counts.substantiated + counts.skipped, counts.backlog), (5, 0));
    }
}

/// Goal: what another row's call still has to read is not dropped.
#[test]
fn what_is_read_elsewhere_stays() {
    let rig = rig();
    promise(&rig, &[("step", &[1]), ("step", &[1]), ("note", &[1, 2]), ("step", &[1]), ("clear", &[1])]);
    assert_eq!(dropped(&rig), 1, "the one that came behind the note");
    let step = |x: i64| (x * 31 + 7) % 1009;
    let expected = step(step(1)) * 3 % 1009;
    assert_eq!(numbers(&rig), [[Some(0), Some(1)], [Some(1), Some(expected)], [Some(0), Some(1)]]);
}
