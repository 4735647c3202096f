//! Compiled code and the two phases against the interpreter, on generated programs and calls.
//!
//! ```text
//! u64             seed of the schema, with rows from the same seed
//! u64             seed of the program
//! u64 each        seeds of the arguments of at most eight calls; what is left over are bytes that are
//!                 taken as arguments themselves
//! ```
//!
//! `crates/testing/tests/agreement.rs` does the same, which also runs later-phases late; here the
//! fuzzer chooses.

use crate::input::Input;
use fabius_program::arguments;
use fabius_program::catalog::Catalog;
use fabius_program::compile::{compile_later, compile_now, compile_whole};
use fabius_program::ir::Program;
use fabius_program::slice::{TypesOnly, slice};
use fabius_testing::generate;
use fabius_testing::memory::{Call, Memory, Phase};
use fabius_testing::ways::{never, run_code, run_reference};

const CALLS: usize = 8;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let schema_seed = input.u64();
    let catalog = generate::schema(schema_seed);
    let program = generate::program(input.u64(), &catalog);
    let mut calls = Vec::new();
    while !input.is_empty() && calls.len() < CALLS {
        calls.push(match input.rest().len() {
            0..8 => input.take(8).to_vec(),
            _ => {
                let values = generate::arguments(input.u64(), &program);
                arguments::encode(&program, &values).expect("generated arguments")
            }
        });
    }
    let mut memory = Memory::new(&catalog);
    for (table, row) in generate::rows(schema_seed, &catalog) {
        let loader = generate::loader(&catalog, table);
        let bytes = arguments::encode(&loader, &row).expect("a generated row");
        run_reference(&loader, &catalog, &mut memory, 1, &bytes).expect("a row that can be inserted");
    }
    compare(&program, &catalog, &memory, &calls);
}

fn compare(program: &Program, catalog: &Catalog, memory: &Memory, calls: &[Vec<u8>]) {
    let phases = slice(program, catalog, &TypesOnly);
    let whole = compile_whole(program, catalog).expect("a small program");
    let now = compile_now(program, catalog, &phases).expect("a small program");
    let later = compile_later(program, catalog, &phases, true).expect("a small program");
    let [mut interpreted, mut compiled, mut sliced] = [memory.clone(), memory.clone(), memory.clone()];
    for (at, bytes) in calls.iter().enumerate() {
        let seq = at as u64 + 2;
        let told = || format!("call {at}, {bytes:02x?}\n{}", program.text);
        let expected = run_reference(program, catalog, &mut interpreted, seq, bytes);
        let got = run_code(&whole, &mut compiled, &mut Call::new(seq), Phase::Whole, bytes, never);
        assert_eq!(got.map(Option::unwrap_or_default), expected, "{}", told());
        assert_eq!(compiled.dump(), interpreted.dump(), "{}", told());
        let mut call = Call::new(seq);
        let promised = run_code(&now, &mut sliced, &mut call, Phase::Now, bytes, never);
        let got = promised.and_then(|results| {
            let later = run_code(&later, &mut sliced, &mut call, Phase::Later, bytes, never)?;
            Ok(results.or(later).unwrap_or_default())
        });
        assert_eq!(got, expected, "in phases, {}", told());
        assert_eq!(sliced.dump(), interpreted.dump(), "in phases, {}", told());
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    (0..40u64)
        .map(|seed| (0..8).flat_map(|word| (seed * 8 + word).to_le_bytes()).chain([seed as u8; 5]).collect())
        .collect()
}
