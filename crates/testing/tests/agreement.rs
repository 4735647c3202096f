//! Different ways of running a program give the same: the reference interpreter, compiled code, and
//! the two phases, one call after the other or all now-phases before all later-phases.
//!
//! A failure names the seed. `FABIUS_SEED=123 cargo test -p fabius-testing --test agreement` runs that
//! one alone; `FABIUS_SEEDS=100000` runs that many.

use fabius_env::Random;
use fabius_program::arguments;
use fabius_program::catalog::Catalog;
use fabius_program::compile::{Code, compile_effects, compile_later, compile_now, compile_whole};
use fabius_program::ir::{Program, Type, VariableId};
use fabius_program::slice::{Assumptions, ColumnPhase, Interval, Phases, TypesOnly, slice};
use fabius_testing::generate;
use fabius_testing::memory::{Call, Memory, Phase};
use fabius_testing::ways::{Outcome, never, run_code, run_reference};
use fabius_value::{ColumnId, Decimal, TableId, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Seeds that every test runs.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("FABIUS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FABIUS_SEEDS").unwrap_or(400),
    }
}

/// A schema with rows, programs over it, and calls of them.
struct Scene {
    catalog: Catalog,
    programs: Vec<Program>,
    memory: Memory,
    /// Program and encoded arguments.
    calls: Vec<(usize, Vec<u8>)>,
}

const CALLS: usize = 12;

impl Scene {
    fn new(seed: u64) -> Scene {
        let mut random = Random::seeded(seed);
        let catalog = generate::schema(random.next_u64());
        let programs: Vec<Program> = (0..3).map(|_| generate::program(random.next_u64(), &catalog)).collect();
        let mut memory = Memory::new(&catalog);
        for (table, row) in generate::rows(random.next_u64(), &catalog) {
            let loader = generate::loader(&catalog, table);
            let bytes = arguments::encode(&loader, &row).unwrap();
            let outcome = run_reference(&loader, &catalog, &mut memory, 1, &bytes);
            assert_eq!(outcome, Ok(vec![]), "{}", loader.text);
        }
        let calls = (0..CALLS)
            .map(|_| {
                let program = random.index(programs.len());
                let values = generate::arguments(random.next_u64(), &programs[program]);
                (program, arguments::encode(&programs[program], &values).unwrap())
            })
            .collect();
        Scene { catalog, programs, memory, calls }
    }

    fn describe(&self, call: usize) -> String {
        let (program, bytes) = &self.calls[call];
        let program = &self.programs[*program];
        let values: Vec<String> =
            arguments::to_values(program, bytes).unwrap().iter().map(Value::to_string).collect();
        format!("call {call} ({})\n{}", values.join(", "), program.text)
    }
}

/// Goal: compiled code does what the interpreter does, also when any request blocks now and then.
#[test]
fn compiled_code_agrees_with_the_interpreter() {
    let (mut calls, mut aborts) = (0, 0);
    for seed in seeds() {
        let scene = Scene::new(seed);
        let codes: Vec<Code> =
            scene.programs.iter().map(|program| compile_whole(program, &scene.catalog).unwrap()).collect();
        let (mut by_interpreter, mut by_code) = (scene.memory.clone(), scene.memory.clone());
        for (at, (program, bytes)) in scene.calls.iter().enumerate() {
            let seq = at as u64 + 2;
            let reference =
                run_reference(&scene.programs[*program], &scene.catalog, &mut by_interpreter, seq, bytes);
            let mut call = Call::new(seq);
            call.obstacles = Some(Random::seeded(seed + seq));
            let outcome = run_code(&codes[*program], &mut by_code, &mut call, Phase::Whole, bytes, never);
            let outcome = outcome.map(|results| results.unwrap_or_default());
            let told = || format!("seed {seed}, {}\n{}", scene.describe(at), codes[*program]);
            assert_eq!(reference, outcome, "{}", told());
            assert_eq!(by_interpreter.dump(), by_code.dump(), "{}", told());
            calls += 1;
            aborts += usize::from(outcome.is_err());
        }
    }
    let percent = 100 * aborts / calls;
    assert!(calls < 1000 || (10..=30).contains(&percent), "{aborts} of {calls} calls abort");
}

/// Goal: without results a program aborts as with them, and leaves the same rows; it reads no more, and often less.
#[test]
fn programs_without_results_have_the_same_effects() {
    let (mut shorter, mut all) = (0, 0);
    for seed in seeds() {
        let scene = Scene::new(seed);
        let compiled = scene.programs.iter().map(|program| {
            let whole = compile_whole(program, &scene.catalog).unwrap();
            (whole, compile_effects(program, &scene.catalog).unwrap())
        });
        let codes: Vec<(Code, Code)> = compiled.collect();
        let (mut with, mut without) = (scene.memory.clone(), scene.memory.clone());
        for (at, (program, bytes)) in scene.calls.iter().enumerate() {
            let (whole, effects) = &codes[*program];
            let seq = at as u64 + 2;
            let run = |code: &Code, memory: &mut Memory| {
                run_code(code, memory, &mut Call::new(seq), Phase::Whole, bytes, never).map(drop)
            };
            let told = || format!("seed {seed}, {}\nwhole\n{whole}\neffects\n{effects}", scene.describe(at));
            assert_eq!(run(whole, &mut with), run(effects, &mut without), "{}", told());
            assert_eq!(with.dump(), without.dump(), "{}", told());
            shorter += usize::from(effects.to_string().lines().count() < whole.to_string().lines().count());
            all += 1;
        }
    }
    assert!(all < 1000 || shorter > all / 10, "{shorter} of {all} calls run less without results");
}

/// A program in its parts.
struct Parts {
    whole: Code,
    now: Code,
    later: Code,
    later_with_results: Code,
    phases: Phases,
}

/// What is so at one place of the order: the narrowest assumptions there are.
struct Facts {
    columns: HashMap<(TableId, ColumnId), Interval>,
    parameters: HashMap<(VariableId, u16), Interval>,
    lengths: HashMap<VariableId, u64>,
}

fn exact(value: &Value) -> Option<Interval> {
    let number = match value {
        Value::Numeric(number) => Some(number.mantissa),
        other => other.as_integer().map(i128::from),
    };
    number.map(Interval::only)
}

fn hull<'v>(values: impl Iterator<Item = &'v Value>) -> Interval {
    values.filter_map(exact).fold(Interval::EMPTY, Interval::hull)
}

impl Facts {
    fn of(program: &Program, catalog: &Catalog, memory: &Memory, bytes: &[u8]) -> Facts {
        let mut facts =
            Facts { columns: columns(catalog, memory), parameters: HashMap::new(), lengths: HashMap::new() };
        let values = arguments::to_values(program, bytes).unwrap();
        for (at, (value, variable)) in values.iter().zip(&program.variables).enumerate() {
            let parameter = VariableId(at as u16);
            match (value, &variable.ty) {
                (Value::List(rows), Type::List(fields)) => {
                    facts.lengths.insert(parameter, rows.len() as u64);
                    for (field, _) in fields.iter().enumerate().filter(|(_, f)| f.scalar.data_type.is_exact())
                    {
                        let interval = hull(rows.iter().map(|row| &row[field]));
                        facts.parameters.insert((parameter, field as u16), interval);
                    }
                }
                (value, Type::Scalar(scalar)) if scalar.data_type.is_exact() => {
                    facts.parameters.insert((parameter, 0), hull([value].into_iter()));
                }
                _ => {}
            }
        }
        facts
    }
}

/// The interval of every exact column.
fn columns(catalog: &Catalog, memory: &Memory) -> HashMap<(TableId, ColumnId), Interval> {
    let mut columns = HashMap::new();
    let dump = memory.dump();
    for (table, schema) in catalog.tables() {
        for (at, column) in schema.columns.iter().enumerate().filter(|(_, c)| c.data_type.is_exact()) {
            let (of, name) = (format!("{}: ", schema.name), format!("{}=", column.name));
            let rows = dump.iter().filter_map(|line| line.strip_prefix(&of));
            let texts = rows.filter_map(|row| row.split(' ').find_map(|cell| cell.strip_prefix(&name)));
            let mantissas = texts.filter_map(Decimal::parse).map(|number| Interval::only(number.mantissa));
            columns.insert((table, ColumnId(at as u8)), mantissas.fold(Interval::EMPTY, Interval::hull));
        }
    }
    columns
}

impl Assumptions for Facts {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        self.columns.get(&(table, column)).copied()
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval> {
        self.parameters.get(&(parameter, field)).copied()
    }

    fn length(&self, parameter: VariableId) -> Option<u64> {
        self.lengths.get(&parameter).copied()
    }
}

/// Checks that a call has left columns in the intervals that its phases promise.
fn check_promise(before: &Facts, phases: &Phases, catalog: &Catalog, after: &Memory, program: &Program) {
    let stored_now = phases.writes.iter().flatten().any(|(_, phase)| *phase == ColumnPhase::Now);
    if stored_now {
        return;
    }
    for ((table, column), interval) in columns(catalog, after) {
        let of = |all: &[(TableId, ColumnId, Interval)]| {
            all.iter().find(|(t, c, _)| (*t, *c) == (table, column)).map(|found| found.2)
        };
        let assumed = before.columns[&(table, column)].hull(of(&phases.written).unwrap_or(Interval::EMPTY));
        let promised = assumed.hull(assumed.plus(of(&phases.added).unwrap_or(Interval::only(0))));
        assert!(
            promised.covers(interval),
            "{table:?} {column:?}: {promised} not {interval}\n{}",
            program.text
        );
    }
}

impl Parts {
    fn of(program: &Program, catalog: &Catalog, assumptions: &dyn Assumptions) -> Parts {
        let phases = slice(program, catalog, assumptions);
        Parts {
            whole: compile_whole(program, catalog).unwrap(),
            now: compile_now(program, catalog, &phases).unwrap(),
            later: compile_later(program, catalog, &phases, false).unwrap(),
            later_with_results: compile_later(program, catalog, &phases, true).unwrap(),
            phases,
        }
    }
}

/// A call whose later-phase has not run.
struct Deferred<'s> {
    call: Call,
    parts: Rc<Parts>,
    bytes: &'s [u8],
    results: Option<Vec<Value>>,
    wants_results: bool,
    done: bool,
}

impl Deferred<'_> {
    fn run_later(&mut self, memory: &mut Memory) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let code = if self.wants_results { &self.parts.later_with_results } else { &self.parts.later };
        let results = run_code(code, memory, &mut self.call, Phase::Later, self.bytes, never).unwrap();
        assert!(self.call.tape_is_used_up(), "the later-phase leaves something on the tape");
        self.results = self.results.take().or(results);
    }
}

/// Runs a scene's calls whole and in phases, with up to `pending` deferred calls at a time. Phases are
/// sliced with nothing known, or for each call with all the facts.
fn phases_agree(seed: u64, pending: usize, with_facts: bool) {
    let scene = Scene::new(seed);
    let parts = |program: &Program| Rc::new(Parts::of(program, &scene.catalog, &TypesOnly));
    let parts: Vec<Rc<Parts>> = scene.programs.iter().map(parts).collect();
    let (mut whole, mut phased) = (scene.memory.clone(), scene.memory.clone());
    let mut deferred: Vec<Deferred<'_>> = Vec::new();
    let mut expected: Vec<Outcome> = Vec::new();
    for (at, (program, bytes)) in scene.calls.iter().enumerate() {
        let seq = at as u64 + 2;
        let mut parts = parts[*program].clone();
        let facts = Facts::of(&scene.programs[*program], &scene.catalog, &whole, bytes);
        if with_facts {
            parts = Rc::new(Parts::of(&scene.programs[*program], &scene.catalog, &facts));
        }
        let told = || {
            let (now, later) = (&parts.now, &parts.later_with_results);
            format!("seed {seed}, {}\nnow\n{now}\nlater\n{later}", scene.describe(at))
        };
        let reference = run_code(&parts.whole, &mut whole, &mut Call::new(seq), Phase::Whole, bytes, never)
            .map(|results| results.unwrap_or_default());
        let mut call = Call::new(seq);
        let outcome = run_code(&parts.now, &mut phased, &mut call, Phase::Now, bytes, |memory, blocker| {
            // In order, so that no later-phase meets what another has left.
            for earlier in deferred.iter_mut().filter(|earlier| earlier.call.seq <= blocker) {
                earlier.run_later(memory);
            }
        });
        assert_eq!(reference.as_ref().err(), outcome.as_ref().err(), "{}", told());
        if with_facts {
            check_promise(&facts, &parts.phases, &scene.catalog, &whole, &scene.programs[*program]);
        }
        if let Ok(results) = outcome {
            let wants_results = seed.is_multiple_of(2) || results.is_some();
            deferred.push(Deferred {
                call,
                parts: parts.clone(),
                bytes,
                results,
                wants_results,
                done: false,
            });
            expected.push(reference);
        }
        if deferred.len() >= pending {
            settle(&mut deferred, &mut expected, &mut phased, &told());
            assert_eq!(whole.dump(), phased.dump(), "{}", told());
        }
    }
    settle(&mut deferred, &mut expected, &mut phased, "at the end");
    assert_eq!(whole.dump(), phased.dump(), "seed {seed}");
}

fn settle(deferred: &mut Vec<Deferred<'_>>, expected: &mut Vec<Outcome>, memory: &mut Memory, told: &str) {
    for (mut deferred, expected) in deferred.drain(..).zip(expected.drain(..)) {
        deferred.run_later(memory);
        if deferred.wants_results {
            assert_eq!(Ok(deferred.results.unwrap_or_default()), expected, "{told}");
        }
    }
}

/// Goal: the now-phase followed by the later-phase is the whole program.
#[test]
fn now_then_later_is_the_whole() {
    seeds().for_each(|seed| phases_agree(seed, 1, false));
}

/// Goal: later-phases may wait while other calls run their now-phases.
#[test]
fn deferred_calls_agree_with_whole_ones() {
    seeds().for_each(|seed| phases_agree(seed, 5, false));
}

/// Goal: what is proven from facts about data and arguments holds for them: no later-phase aborts,
/// and columns stay in the intervals that are promised.
#[test]
fn proofs_from_facts_hold() {
    seeds().for_each(|seed| phases_agree(seed, 1 + seed as usize % 5, true));
}
