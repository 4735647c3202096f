//! What every engine must do, as tests that every engine runs.
//!
//! An engine's own tests call [`run`] with a way to make one; each case gets a fresh engine. Cases that
//! use threads say what must hold in every interleaving, and leave the interleaving to chance;
//! [`crate::differential`] compares whole histories with the oracle.

mod checkpoints;
mod drops;
mod order;
mod programs;
mod rows;
mod scans;
mod threads;

use crate::rig::{Make, Rig};
use fabius_engine::{BatchBuilder, Engine, Foundation};
use fabius_env::Random;
use fabius_value::{SqlState, Value};
use programs::{BANK, SHOP};
use std::panic::RefUnwindSafe;
use std::sync::Arc;

/// A case: its name and what it does.
type Case = (&'static str, fn(Make<'_>));

const CASES: &[Case] = &[
    ("committed_effects_are_read_back", rows::committed_effects_are_read_back),
    ("an_abort_undoes_everything", rows::an_abort_undoes_everything),
    ("bad_calls_abort", rows::bad_calls_abort),
    ("nulls_are_kept_out", rows::nulls_are_kept_out),
    ("taken_values_are_refused", rows::taken_values_are_refused),
    ("a_value_is_given_away_in_one_call", rows::a_value_is_given_away_in_one_call),
    ("what_is_promised_is_kept", rows::what_is_promised_is_kept),
    ("increments_and_extremes_add_up", rows::increments_and_extremes_add_up),
    ("increments_leave_earlier_reads_alone", rows::increments_leave_earlier_reads_alone),
    ("long_loops_abort", rows::long_loops_abort),
    ("scans_follow_their_index", rows::scans_follow_their_index),
    ("a_call_scans_its_own_writes", rows::a_call_scans_its_own_writes),
    ("a_row_leaves_an_index_and_comes_back", rows::a_row_leaves_an_index_and_comes_back),
    ("deleted_keys_come_back", rows::deleted_keys_come_back),
    ("a_key_is_used_once", order::a_key_is_used_once),
    ("calls_that_only_read_give_results", rows::calls_that_only_read_give_results),
    ("now_is_the_logged_time", order::now_is_the_logged_time),
    ("time_never_goes_back", order::time_never_goes_back),
    ("entries_that_are_taken_answer_their_batches", order::entries_that_are_taken_answer_their_batches),
    ("definitions_take_their_place", order::definitions_take_their_place),
    ("calls_wait_for_the_log", order::calls_wait_for_the_log),
    ("a_closed_engine_refuses", order::a_closed_engine_refuses),
    ("a_failed_log_refuses", order::a_failed_log_refuses),
    ("a_panic_stops_the_engine", threads::a_panic_stops_the_engine),
    ("settling_leaves_nothing_open", order::settling_leaves_nothing_open),
    ("many_rows_in_one_call", rows::many_rows_in_one_call),
    ("transfers_keep_the_sum", threads::transfers_keep_the_sum),
    ("hot_increments_count_exactly", threads::hot_increments_count_exactly),
    ("scans_meet_no_phantoms", threads::scans_meet_no_phantoms),
    ("one_of_many_gets_a_unique_value", threads::one_of_many_gets_a_unique_value),
    ("joins_show_what_lookups_show", threads::joins_show_what_lookups_show),
    ("queues_give_each_entry_once", threads::queues_give_each_entry_once),
    ("snapshots_stand_still", threads::snapshots_stand_still),
    ("one_key_from_many_threads", threads::one_key_from_many_threads),
    ("replay_gives_the_same", threads::replay_gives_the_same),
    ("keys_are_forgotten_by_seq", order::keys_are_forgotten_by_seq),
    ("a_checkpoint_is_the_state_at_its_seq", checkpoints::a_checkpoint_is_the_state_at_its_seq),
    ("a_checkpoint_keeps_keys_and_results", checkpoints::a_checkpoint_keeps_keys_and_results),
    ("every_type_comes_back_from_a_checkpoint", checkpoints::every_type_comes_back),
    ("a_dropped_table_is_gone", drops::a_dropped_table_is_gone),
    ("a_dropped_procedure_is_gone", drops::a_dropped_procedure_is_gone),
    ("tables_come_and_go", drops::tables_come_and_go),
    ("ranges_are_read_at_a_standpoint", scans::ranges_are_read_at_a_standpoint),
    ("constraints_hold_after_a_checkpoint", checkpoints::constraints_hold_after_a_checkpoint),
    (
        "a_key_that_is_too_long_matters_where_it_is_used",
        rows::a_key_that_is_too_long_matters_where_it_is_used,
    ),
];

/// Runs every case.
///
/// # Panics
/// After all cases have run, if in some the engine did not do as it must.
pub fn run(make: impl Fn(Arc<Foundation>) -> Arc<dyn Engine> + Sync + RefUnwindSafe) {
    run_matching(&make, "");
}

/// Runs the cases whose names contain `part`.
///
/// # Panics
/// As [`run`].
pub fn run_matching(make: Make<'_>, part: &str) {
    let mut failed = Vec::new();
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(part)) {
        println!("case {name}");
        if std::panic::catch_unwind(|| case(make)).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

fn bank(make: Make<'_>, accounts: i32, balance: i64) -> Rig {
    let rig = Rig::new(make);
    rig.define(BANK);
    let mut batch = BatchBuilder::new();
    for id in 0..accounts {
        rig.push(&mut batch, "open", &[Value::Int(id), Value::BigInt(balance)], None);
    }
    let batch = batch.build();
    rig.run(&batch);
    assert!((0..accounts as u32).all(|call| batch.outcome(call).is_ok()));
    rig
}

fn shop(make: Make<'_>) -> Rig {
    let rig = Rig::new(make);
    rig.define(SHOP);
    rig
}

fn int(value: i32) -> Value {
    Value::Int(value)
}

fn big(value: i64) -> Value {
    Value::BigInt(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

fn ints(values: &[i32]) -> Vec<Value> {
    vec![Value::List(values.iter().map(|&value| vec![int(value)]).collect())]
}

#[track_caller]
fn aborts<T: std::fmt::Debug>(result: fabius_value::Result<T>, state: SqlState) {
    assert_eq!(result.expect_err("it aborts").state(), state);
}

/// Lets the engine do everything it has put off, purging included.
fn settle(rig: &Rig) {
    rig.engine.settle();
    for _ in 0..3 {
        while rig.engine.help() {}
    }
}

/// Runs `work` on several threads, each with its own random numbers, while others help.
fn on_threads(rig: &Rig, work: impl Fn(&mut Random, usize) + Sync) {
    rig.helped(1, || {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let work = &work;
                scope.spawn(move || work(&mut Random::seeded(thread as u64 + 1), thread));
            }
        });
    });
}
