//! The lazy engine by hand: what a first user would try.

use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_program::arguments;
use fabius_value::{Result, Value};
use std::sync::Arc;

fn engine(policy: Policy) -> LazyEngine {
    LazyEngine::new(Arc::new(Foundation::new(Arc::new(fabius_env::RealClock::new()))), policy)
}

fn call(engine: &LazyEngine, name: &str, values: &[Value]) -> Result<Vec<Value>> {
    let definitions = engine.foundation().definitions();
    let id = definitions.catalog.find_procedure(name).expect("defined");
    let procedure = definitions.procedure(id)?;
    let bytes = arguments::encode(&procedure.program, values)?;
    let mut builder = BatchBuilder::new();
    builder.push(id, &bytes, None, true)?;
    let batch = builder.build();
    engine.submit(batch.clone());
    while !batch.is_complete() {
        engine.admit();
    }
    batch.outcome(0)?;
    let ticket = batch.ticket(0).expect("asked for a result");
    engine.resolve(&ticket);
    ticket.values().expect("resolved").clone()
}

#[test]
fn transfers_commit_abort_and_read_back() {
    let engine = engine(Policy::default());
    for text in [
        "table accounts { id: bigint, balance: bigint, primary key (id) using hash }",
        "procedure open_account(id: bigint, balance: bigint) { insert accounts { id: id, balance: balance } }",
        "procedure transfer(src: bigint, dst: bigint, amount: bigint) -> bigint {
             require accounts[src].balance >= amount, \"insufficient funds\"
             accounts[src].balance -= amount
             accounts[dst].balance += amount
             return accounts[src].balance
         }",
    ] {
        engine.define(text).unwrap();
    }
    call(&engine, "open_account", &[1i64.into(), 100i64.into()]).unwrap();
    call(&engine, "open_account", &[2i64.into(), 0i64.into()]).unwrap();
    let taken = call(&engine, "open_account", &[2i64.into(), 0i64.into()]).unwrap_err();
    assert_eq!(taken.state().as_str(), "23505");
    assert_eq!(
        call(&engine, "transfer", &[1i64.into(), 2i64.into(), 30i64.into()]).unwrap(),
        [Value::BigInt(70)]
    );
    let refused = call(&engine, "transfer", &[1i64.into(), 2i64.into(), 300i64.into()]).unwrap_err();
    assert_eq!(refused.message(), "insufficient funds");
    let missing = call(&engine, "transfer", &[1i64.into(), 3i64.into(), 1i64.into()]).unwrap_err();
    assert_eq!(missing.state().as_str(), "P0002");
    let mut rows = Vec::new();
    let table = engine.foundation().definitions().catalog.find_table("accounts").unwrap();
    engine
        .rows(table, &mut |row| {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    rows.sort_by_key(|row| row[0].as_integer());
    assert_eq!(rows, [[Value::BigInt(1), Value::BigInt(70)], [Value::BigInt(2), Value::BigInt(30)]]);
}

/// A million calls, each reading what the one before wrote: substantiating the last runs them all,
/// and nothing recurses.
#[test]
fn a_long_chain_substantiates_without_recursion() {
    let calls: i64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    let engine =
        engine(Policy { chain_bound: u32::MAX, idle: false, backlog_calls: u64::MAX, ..Policy::default() });
    for text in [
        "table cells { id: bigint, x: bigint, primary key (id) using hash }",
        "procedure make(id: bigint) { insert cells { id: id, x: 0 } }",
        "procedure step(id: bigint) { cells[id].x = (cells[id].x * 31 + 7) % 1000003 }",
    ] {
        engine.define(text).unwrap();
    }
    call(&engine, "make", &[1i64.into()]).unwrap();
    let definitions = engine.foundation().definitions();
    let id = definitions.catalog.find_procedure("step").unwrap();
    let bytes = arguments::encode(&definitions.procedure(id).unwrap().program, &[1i64.into()]).unwrap();
    for _ in 0..calls / 1000 {
        let mut builder = BatchBuilder::new();
        for _ in 0..1000 {
            builder.push(id, &bytes, None, false).unwrap();
        }
        engine.submit(builder.build());
        engine.admit();
    }
    assert_eq!(engine.counts().backlog, calls as u64, "nothing has run yet");
    let expected = (0..calls).fold(0i64, |x, _| (x * 31 + 7) % 1_000_003);
    let mut rows = Vec::new();
    let table = definitions.catalog.find_table("cells").unwrap();
    engine
        .rows(table, &mut |row| {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    assert_eq!(rows, [[Value::BigInt(1), Value::BigInt(expected)]]);
    assert_eq!(engine.counts().backlog, 0);
}

/// Goal: what a procedure's now-phases wait for is run before its calls come to the lane, once one has had to wait
/// there; and what nobody waits for is not run, though its later-phase reads it.
#[test]
fn what_is_waited_for_is_run_before_the_lane() {
    for index in ["", " using hash"] {
        let policy =
            Policy { chain_bound: u32::MAX, idle: false, backlog_calls: u64::MAX, ..Policy::default() };
        let engine = engine(policy);
        let table =
            format!("table cells {{ id: bigint, x: bigint, y: bigint, z: bigint, primary key (id){index} }}");
        for text in [
            table.as_str(),
            "procedure make(id: bigint) { insert cells { id: id, x: 0, y: 0, z: 0 } }",
            "procedure step(id: bigint) { cells[id].x = (cells[id].x * 31 + 7) % 1000003 }",
            "procedure other(id: bigint) { cells[id].y = (cells[id].y * 31 + 7) % 1000003 }",
            "procedure check(id: bigint) {
                 require cells[id].x >= 0, \"negative\"
                 cells[id].z = cells[id].y % 7
             }",
        ] {
            engine.define(text).unwrap();
        }
        for id in 1..=2 {
            call(&engine, "make", &[Value::BigInt(id)]).unwrap();
        }
        for round in 0..3 {
            (0..10).for_each(|_| submit(&engine, "step", 1));
            submit(&engine, "step", 2);
            submit(&engine, "other", 1);
            let before = engine.counts();
            submit(&engine, "check", 1);
            let after = engine.counts();
            assert_eq!(after.substantiated - before.substantiated, 10, "{index} round {round}");
            let in_lane = after.substantiated_in_lane - before.substantiated_in_lane;
            assert_eq!(in_lane, if round == 0 { 10 } else { 0 }, "{index} round {round}");
        }
        assert_eq!(engine.counts().backlog, 9, "{index}");
    }
}

/// A call that wants no result, decided.
fn submit(engine: &LazyEngine, name: &str, id: i64) {
    let definitions = engine.foundation().definitions();
    let procedure = definitions.catalog.find_procedure(name).expect("defined");
    let bytes =
        arguments::encode(&definitions.procedure(procedure).unwrap().program, &[Value::BigInt(id)]).unwrap();
    let mut builder = BatchBuilder::new();
    builder.push(procedure, &bytes, None, false).unwrap();
    let batch = builder.build();
    engine.submit(batch.clone());
    while !batch.is_decided() {
        engine.admit();
    }
    batch.outcome(0).unwrap();
}
