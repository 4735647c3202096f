//! Random schemas, programs, rows and arguments, each from a seed.
//!
//! Programs are generated as text and go through the parser and verifier like any other, so a failing
//! one can be read, cut down and kept as a script. Keys come from small domains, so calls meet on
//! rows; some calls abort, most do not.
//!
//! ```
//! use fabius_program::arguments;
//! use fabius_testing::generate;
//! let catalog = generate::schema(7);
//! let program = generate::program(7, &catalog);
//! let values = generate::arguments(7, &program);
//! assert!(arguments::encode(&program, &values).is_ok());
//! assert_eq!(generate::program(7, &catalog).text, program.text);
//! ```
//!
//! | module | concept |
//! |---|---|
//! | `schema.rs` | tables |
//! | `values.rs` | rows and arguments |
//! | `scope.rs` | what a generated text can mention at some point |
//! | `expression.rs` | expressions of a kind |
//! | `statement.rs` | statements and whole procedures |
//!
//! A seed gives one answer on every machine, but not across versions of this module: a
//! failure worth keeping is kept as text.

mod expression;
mod schema;
mod scope;
mod statement;
mod values;

use fabius_env::Random;
use fabius_program::catalog::Catalog;
use fabius_program::ir::Program;
use fabius_program::syntax::{Definition, parse};
use fabius_program::verify;
use fabius_value::{TableId, Value};

/// Distinct values that a key column takes, from 0 (or `k0`, `x'00'`, `2026-11-01`, ...).
pub const KEYS: u64 = 6;

/// Two or three tables: keys of most types, columns of all, secondary indexes, hash tables.
pub fn schema(seed: u64) -> Catalog {
    let text = schema_text(seed);
    verify::load(&text, "generated", &Catalog::new())
        .unwrap_or_else(|errors| panic!("schema {seed} is refused: {errors}\n{text}"))
}

/// The tables of [`schema`] as text.
pub fn schema_text(seed: u64) -> String {
    schema::text(&mut Random::seeded(seed))
}

/// A program over the catalog's tables.
pub fn program(seed: u64, catalog: &Catalog) -> Program {
    accepted(seed, catalog, false)
}

/// A program of one or two statements that write to few rows, mostly to some columns, and returns nothing.
pub fn brief_program(seed: u64, catalog: &Catalog) -> Program {
    accepted(seed, catalog, true)
}

fn accepted(seed: u64, catalog: &Catalog, is_brief: bool) -> Program {
    let mut random = Random::seeded(seed);
    let mut refusals = Vec::new();
    // The generator keeps to the rules that are simple to keep to; the verifier knows the others.
    for _ in 0..ATTEMPTS {
        let text = statement::procedure(random.split(), catalog, is_brief);
        match verified(&text, catalog) {
            Ok(program) => return program,
            Err(refusal) => refusals.push(refusal),
        }
    }
    panic!("every program of seed {seed} is refused: {}", refusals.join("\n"))
}

const ATTEMPTS: usize = 20;

fn verified(text: &str, catalog: &Catalog) -> Result<Program, String> {
    let parsed = parse(text, "generated").map_err(|errors| format!("{errors}\n{text}"))?;
    match parsed.as_slice() {
        [Definition::Procedure(definition)] => {
            verify::procedure(definition, catalog).map_err(|errors| format!("{errors}\n{text}"))
        }
        _ => Err(format!("not one procedure: {text}")),
    }
}

/// Arguments that the program accepts: small numbers, known keys, now and then something large.
pub fn arguments(seed: u64, program: &Program) -> Vec<Value> {
    values::arguments(&mut Random::seeded(seed), program)
}

/// Rows to start with: a table, and a value for every column. No two collide in a unique index.
pub fn rows(seed: u64, catalog: &Catalog) -> Vec<(TableId, Vec<Value>)> {
    values::rows(&mut Random::seeded(seed), catalog)
}

/// A program that inserts one row, whose parameters are the table's columns: how rows are loaded.
pub fn loader(catalog: &Catalog, table: TableId) -> Program {
    let text = schema::loader(catalog.table(table));
    verified(&text, catalog).unwrap_or_else(|refusal| panic!("a loader is refused: {refusal}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Goal: most texts are accepted at the first attempt, and they differ.
    #[test]
    fn few_programs_are_refused() {
        let (mut refused, mut reasons) = (0, BTreeMap::<String, usize>::new());
        let mut texts = std::collections::HashSet::new();
        for seed in 0..1000 {
            let catalog = schema(seed / 10);
            let text = statement::procedure(Random::seeded(seed), &catalog, seed % 4 == 0);
            if let Err(refusal) = verified(&text, &catalog) {
                refused += 1;
                *reasons.entry(refusal.lines().next().unwrap_or_default().into()).or_default() += 1;
            }
            texts.insert(text);
        }
        assert!(refused < 100, "{refused} of 1000: {reasons:#?}");
        assert!(texts.len() > 990);
    }
}
