//! A call's encoded arguments, by every reader of them.
//!
//! ```text
//! byte            parameters, 1 to 6
//! 4 bytes each    type (3), then bits: 1 null allowed, 2 list, 4 a second field in it
//! rest            the arguments
//! ```

use crate::input::Input;
use crate::value_text::data_type;
use bumpalo::Bump;
use fabius_program::argument_range::{Reliance, holds, ranges};
use fabius_program::arguments::{DecodedArguments, Signature, decode, encode, to_values};
use fabius_program::catalog::Catalog;
use fabius_program::compile::compile_whole;
use fabius_program::execute::Frame;
use fabius_program::ir::{Program, Type, VariableId};
use fabius_program::verify;
use fabius_testing::generate;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let program = program(&mut input);
    let arguments = input.rest();
    let arena = Bump::new();
    let code = compile_whole(&program, &Catalog::new()).expect("an empty program");
    let mut frame: Frame<'_, u32, ()> = Frame::new();
    let started = frame.start(&code, arguments, &arena);
    let signature = Signature::of(&program);
    let mut decoded = DecodedArguments::default();
    let at_once = decoded.push(&signature, arguments);
    match decode(&program, arguments) {
        Ok(_) => {
            started.expect("what decodes can be run");
            let values = to_values(&program, arguments).expect("what decodes");
            let again = encode(&program, &values).unwrap_or_else(|error| panic!("{error:?}: {values:?}"));
            assert_eq!(again, arguments, "{values:?}");
            let decoded = decoded.at(at_once.expect("what decodes one by one"));
            let ranges = ranges(&program, decoded);
            assert!(holds(&reliance(&program, &ranges), decoded, &program), "{ranges:?}");
        }
        Err(error) => {
            assert_eq!(started.expect_err("what does not decode"), error);
            assert_eq!(at_once.expect_err("what does not decode"), error);
        }
    }
}

/// A program that does nothing, with parameters of any types.
fn program(input: &mut Input<'_>) -> Program {
    let mut parameters = Vec::new();
    for at in 0..input.byte() % 6 + 1 {
        let (data_type, bits) = (data_type(input), input.byte());
        let null = if bits & 1 != 0 { " null" } else { "" };
        parameters.push(match bits & 6 {
            2 => format!("p{at}: list of {data_type}{null}"),
            6 => format!("p{at}: list of (a: {data_type}{null}, b: bytea null)"),
            _ => format!("p{at}: {data_type}{null}"),
        });
    }
    let text = format!("procedure p({}) {{ }}", parameters.join(", "));
    let catalog = verify::load(&text, "fuzz", &Catalog::new());
    let catalog = catalog.unwrap_or_else(|errors| panic!("{errors}"));
    let (_, program) = catalog.procedures().next().expect("one procedure");
    Program::clone(program)
}

/// What holds of these very arguments.
fn reliance(program: &Program, ranges: &[(Vec<fabius_program::slice::Interval>, u64)]) -> Reliance {
    let mut reliance = Reliance::default();
    for (at, (fields, length)) in ranges.iter().enumerate() {
        let parameter = VariableId(at as u16);
        for (field, interval) in fields.iter().enumerate() {
            reliance.intervals.push((parameter, field as u16, *interval));
        }
        if matches!(program.variables[at].ty, Type::List(_)) {
            reliance.lengths.push((parameter, *length));
        }
    }
    reliance
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let header = |kinds: &[(u8, u8)]| -> Vec<u8> {
        let parameters = kinds.iter().flat_map(|(kind, bits)| [*kind, 11, 2, *bits]);
        std::iter::once(kinds.len() as u8 - 1).chain(parameters).collect()
    };
    let all: Vec<Vec<(u8, u8)>> = (0..12u8)
        .flat_map(|kind| [0, 1, 2, 3, 6].map(|bits| vec![(kind, bits)]))
        .chain([vec![(3, 0), (6, 1), (4, 6), (0, 2), (10, 1), (8, 0)]])
        .collect();
    let mut seeds = Vec::new();
    for (at, kinds) in all.iter().enumerate() {
        let header = header(kinds);
        let program = program(&mut Input::new(&header));
        for seed in 0..3 {
            let values = generate::arguments(at as u64 * 3 + seed, &program);
            if let Ok(arguments) = encode(&program, &values) {
                seeds.push([header.as_slice(), &arguments].concat());
            }
        }
    }
    seeds
}
