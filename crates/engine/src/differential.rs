//! Random programs on an engine and on the oracle, side by side.
//!
//! ```text
//! seed --> schema, rows, programs --> threads hand in random calls --> outcomes, results, rows
//!                                             |                                  must be equal
//!                                        the engine's log -- in its order --> the oracle's
//! ```
//!
//! Whatever order the engine took, it said so in its log. The oracle runs the log's calls one after the
//! other, and every outcome, every result and every row must be the same; so must the rows of a second
//! engine that replays the log. A failure names its seed, which is all it takes to run it again:
//!
//! ```text
//! FABIUS_SEED=1234 cargo test -p fabius-engine-lazy --test differential
//! ```
//!
//! A call of a batch is found in the log by its idempotency key, and a call without one by its seq; such
//! calls are handed in alone, and must write, because an engine need not log what only reads.

use crate::entry::{self, Entries};
use crate::oracle::Oracle;
use crate::rig::{Make, Rig};
use crate::{Batch, BatchBuilder};
use fabius_env::Random;
use fabius_program::{arguments, generate};
use fabius_value::{Result, Seq, TableSchema, Value};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// How large a run is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Different programs.
    pub programs: usize,
    /// Threads that hand in calls; one more helps.
    pub threads: usize,
    /// Batches of each thread.
    pub batches: usize,
    /// Calls of a batch, at most.
    pub calls: usize,
}

impl Default for Size {
    fn default() -> Size {
        Size { programs: 5, threads: 3, batches: 8, calls: 12 }
    }
}

/// A call that was handed in, and where its outcome is.
struct Submitted {
    batch: Arc<Batch>,
    place: u32,
    key: Option<Vec<u8>>,
}

/// Runs one seed after the other; with `FABIUS_SEED` in the environment, that one alone.
///
/// # Panics
/// At the first difference, after printing the seed and the programs.
pub fn run(make: Make<'_>, seeds: std::ops::Range<u64>, size: Size) {
    let only = std::env::var("FABIUS_SEED").ok().map(|seed| seed.parse().expect("FABIUS_SEED is a number"));
    let mut tally = (0, 0);
    for seed in seeds.filter(|seed| only.is_none_or(|only: u64| only == *seed)) {
        let mut story = format!("seed {seed}\n");
        let done =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_seed(make, seed, size, &mut story)));
        match done {
            Ok((committed, aborted)) => tally = (tally.0 + committed, tally.1 + aborted),
            Err(panic) => {
                eprintln!("{story}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{} calls committed, {} aborted, as on the oracle", tally.0, tally.1);
}

/// Runs a seed; gives how many calls committed and aborted.
fn run_seed(make: Make<'_>, seed: u64, size: Size, story: &mut String) -> (usize, usize) {
    let mut random = Random::seeded(seed);
    let rig = Rig::new(make);
    let names = define(&rig, &mut random, size, story);
    let submitted = submit(&rig, &mut random, size, &names);
    let oracle = compare_calls(&rig, &submitted, story);
    compare_rows(&rig, &oracle, "the engine's");
    rig.engine.settle();
    compare_rows(&rig, &oracle, "the settled engine's");
    compare_rows(&rig.replayed(make), &oracle, "the replaying engine's");
    let checkpoint = rig.checkpoint();
    compare_rows(&rig.at_checkpoint(make, &checkpoint), &oracle, "those of an engine with a checkpoint");
    let committed = submitted.iter().filter(|call| call.batch.outcome(call.place).is_ok()).count();
    (committed, submitted.len() - committed)
}

/// Defines tables and programs, and loads rows; gives the names of the programs.
fn define(rig: &Rig, random: &mut Random, size: Size, story: &mut String) -> Vec<String> {
    let catalog = generate::schema(random.next_u64());
    for (_, schema) in catalog.tables() {
        let text = table_text(schema);
        writeln!(story, "{text}").expect("writing to a string");
        rig.define(&text);
    }
    let mut names = Vec::new();
    for number in 0..size.programs {
        let program = generate::program(random.next_u64(), &catalog);
        writeln!(story, "{}", program.text).expect("writing to a string");
        // Every program has the same name, and a name of its own here.
        let text =
            program.text.replacen(&format!("procedure {}", program.name), &format!("procedure p{number}"), 1);
        rig.define(&text);
        names.push(format!("p{number}"));
    }
    for (table, _) in catalog.tables() {
        rig.define(&generate::loader(&catalog, table).text);
    }
    let mut batch = BatchBuilder::new();
    for (table, row) in generate::rows(random.next_u64(), &catalog) {
        rig.push(&mut batch, &format!("load_{}", catalog.table(table).name), &row, None);
    }
    rig.run(&batch.build());
    names
}

/// Hands calls in from several threads.
fn submit(rig: &Rig, random: &mut Random, size: Size, names: &[String]) -> Vec<Submitted> {
    let all = parking_lot::Mutex::new(Vec::new());
    rig.helped(1, || {
        std::thread::scope(|scope| {
            for thread in 0..size.threads {
                let mut random = random.split();
                let all = &all;
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for number in 0..size.batches {
                        rig.clock.advance(Duration::from_millis(1));
                        mine.extend(submit_batch(
                            rig,
                            &mut random,
                            size,
                            names,
                            &format!("{thread} {number}"),
                        ));
                    }
                    mine.iter().for_each(|call: &Submitted| rig.wait(&call.batch));
                    all.lock().extend(mine);
                });
            }
        });
    });
    all.into_inner()
}

fn submit_batch(rig: &Rig, random: &mut Random, size: Size, names: &[String], id: &str) -> Vec<Submitted> {
    let mut builder = BatchBuilder::new();
    let mut keys = Vec::new();
    let is_alone = random.chance(1, 3);
    let count = if is_alone { 1 } else { 1 + random.index(size.calls) };
    for place in 0..count {
        let name = &names[random.index(names.len())];
        let procedure = rig.procedure(name);
        let values = generate::arguments(random.next_u64(), &procedure.program);
        let key = format!("{id} {place}").into_bytes();
        let key = (!is_alone || procedure.is_read_only).then_some(key);
        rig.push(&mut builder, name, &values, key.as_deref());
        keys.push(key);
    }
    let batch = builder.build();
    rig.engine.submit(batch.clone());
    if random.chance(1, 2) {
        rig.wait(&batch);
    }
    let call = |(place, key)| Submitted { batch: batch.clone(), place: place as u32, key };
    keys.into_iter().enumerate().map(call).collect()
}

/// Runs the engine's log on the oracle, and compares what became of each call.
fn compare_calls(rig: &Rig, submitted: &[Submitted], story: &mut String) -> Oracle {
    let mut oracle = Oracle::new();
    let mut by_key = HashMap::new();
    let mut by_seq = HashMap::new();
    for batch in rig.logged() {
        assert_eq!(batch.first_seq, oracle.last().next(), "the log has a gap");
        match entry::decode(&batch.payload).expect("the engine's own entries") {
            Entries::Definition(text) => oracle.define(text).expect("the engine took it"),
            Entries::KeyWindow(calls) => oracle.set_key_window(calls),
            Entries::Calls { time_us, bytes } => {
                for call in entry::calls(bytes) {
                    let call = call.expect("the engine's own entries");
                    let outcome = oracle.call(call.procedure, call.arguments, call.key, time_us);
                    writeln!(story, "{}: {} -> {:?}", outcome.seq, shown(&oracle, &call), outcome.result)
                        .expect("writing to a string");
                    if let Some(key) = call.key {
                        by_key.entry(key.to_vec()).or_insert(outcome.result.clone());
                    }
                    by_seq.insert(outcome.seq, outcome.result);
                }
            }
        }
    }
    for call in submitted {
        let (batch, place) = (&call.batch, call.place);
        let (expected, which): (&Result<Vec<Value>>, String) = match &call.key {
            Some(key) => (by_key.get(key).expect("a call with a key is logged"), format!("{key:?}")),
            None => {
                let seq = batch.outcomes().first_seq.unwrap_or(Seq::ZERO);
                (by_seq.get(&seq).expect("a call that writes is logged"), format!("{seq}"))
            }
        };
        let actual = rig.result(batch, place);
        assert_eq!(format!("{actual:?}"), format!("{expected:?}"), "outcome of call {which}: engine, oracle");
    }
    oracle
}

fn shown(oracle: &Oracle, call: &entry::Call<'_>) -> String {
    let Some(program) = oracle.catalog().procedure(call.procedure) else { return "?".into() };
    let values = arguments::decode(program, call.arguments);
    format!("{} {:?} key {:?}", program.name, values, call.key)
}

fn compare_rows(rig: &Rig, oracle: &Oracle, whose: &str) {
    for (table, schema) in oracle.catalog().tables() {
        let text = |rows: Vec<Vec<Value>>| {
            let mut lines: Vec<String> = rows.into_iter().map(|row| format!("{row:?}")).collect();
            lines.sort();
            lines
        };
        let (actual, expected) = (text(rig.rows(&schema.name)), text(oracle.rows(table)));
        assert_eq!(actual, expected, "rows of {}: {whose}, the oracle's", schema.name);
    }
}

/// A table's definition as text.
fn table_text(schema: &TableSchema) -> String {
    let names = |columns: &[fabius_value::ColumnId]| {
        let names: Vec<&str> =
            columns.iter().map(|column| schema.columns[usize::from(column.0)].name.as_str()).collect();
        names.join(", ")
    };
    let mut parts: Vec<String> = Vec::new();
    for column in &schema.columns {
        parts.push(format!(
            "{}: {}{}",
            column.name,
            column.data_type,
            if column.nullable { " null" } else { "" }
        ));
    }
    parts.push(format!(
        "primary key ({}){}",
        names(&schema.primary_key),
        if schema.hash { " using hash" } else { "" }
    ));
    for index in &schema.indexes {
        let unique = if index.unique { "unique " } else { "" };
        parts.push(format!("{unique}index {} ({})", index.name, names(&index.columns)));
    }
    format!("table {} {{ {} }}", schema.name, parts.join(", "))
}
