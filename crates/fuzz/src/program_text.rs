//! The text form: parser, verifier, printer, and everything that is made of a verified program.
//!
//! ```text
//! byte            0: no tables; otherwise the seed of a schema that the text can name
//! rest            the text
//! ```

use crate::input::Input;
use fabius_program::access::accesses;
use fabius_program::arguments::{DecodedArguments, Signature};
use fabius_program::catalog::Catalog;
use fabius_program::compile::{compile_later, compile_now, compile_whole};
use fabius_program::explain::explain;
use fabius_program::explain_svg::explain_svg;
use fabius_program::ir::Program;
use fabius_program::key_plan::KeyPlan;
use fabius_program::slice::{TypesOnly, slice};
use fabius_program::syntax::{Diagnostics, parse};
use fabius_program::verify;
use fabius_testing::generate;
use fabius_value::Error;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let catalog = match input.byte() {
        0 => Catalog::new(),
        seed => generate::schema(seed.into()),
    };
    let text = String::from_utf8_lossy(input.rest());
    match parse(&text, "fuzz") {
        Ok(definitions) => {
            let printed: String = definitions.iter().map(ToString::to_string).collect();
            let again = parse(&printed, "printed").unwrap_or_else(|errors| panic!("{errors}\n{printed}"));
            assert_eq!(definitions, again, "{printed}");
        }
        Err(errors) => return show(errors),
    }
    match verify::load(&text, "fuzz", &catalog) {
        Ok(catalog) => catalog.procedures().for_each(|(_, program)| check(program, &catalog)),
        Err(errors) => show(errors),
    }
}

fn show(errors: Diagnostics) {
    assert!(!errors.to_string().is_empty());
    assert!(!Error::from(errors).to_string().is_empty());
}

fn check(program: &Program, catalog: &Catalog) {
    let again = verify::load(&program.text, "canonical", catalog)
        .unwrap_or_else(|errors| panic!("{errors}\n{}", program.text));
    let (_, again) = again.procedures().last().expect("the procedure");
    assert_eq!(*program, **again, "{}", program.text);

    let phases = slice(program, catalog, &TypesOnly);
    // Too many registers is an error like any other.
    let _ = compile_whole(program, catalog);
    let _ = compile_now(program, catalog, &phases);
    let _ = compile_later(program, catalog, &phases, false);
    let _ = compile_later(program, catalog, &phases, true);
    explain(program, catalog, &phases);
    explain_svg(program, catalog, &phases);
    accesses(program, catalog);
    program.writes_anything();
    let mut decoded = DecodedArguments::default();
    if let Ok(place) = decoded.push(&Signature::of(program), &[0; 64]) {
        KeyPlan::of(program).for_each(decoded.at(place), |_, _| {});
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let programs = [
        include_str!("../../bench/programs/bank.fab"),
        include_str!("../../bench/programs/cart.fab"),
        include_str!("../../bench/programs/hot.fab"),
        include_str!("../../bench/programs/rmw10.fab"),
        include_str!("../../bench/programs/tpcc.fab"),
    ];
    let given = programs.iter().map(|text| [&[0], text.as_bytes()].concat());
    let generated = (1..=60u8).map(|seed| {
        let program = generate::program(seed.into(), &generate::schema(seed.into()));
        [&[seed], program.text.as_bytes()].concat()
    });
    given.chain(generated).collect()
}
