//! Goal: functions give what PostgreSQL 15 gives, errors included, interpreted and compiled.
//!
//! `tests/golden/functions.txt` has an expression and its value on each line.

use bumpalo::Bump;
use fabius_program::catalog::Catalog;
use fabius_program::compile::compile_whole;
use fabius_program::context::Stop;
use fabius_program::execute::{Frame, run};
use fabius_program::interpret::interpret;
use fabius_program::verify;
use fabius_testing::memory::{Call, Memory, Phase, View};
use std::fmt::Write;

/// The value of an expression as text, or its error, by both ways of running it.
fn value(expression: &str) -> String {
    let text = format!("procedure p() {{ require false, ({expression})::text, sqlstate 'VALUE' }}");
    let catalog = match verify::load(&text, "test", &Catalog::new()) {
        Ok(catalog) => catalog,
        Err(errors) => return format!("[{}] {}", errors.list[0].state, errors.list[0].message),
    };
    let program = catalog.procedure(catalog.find_procedure("p").unwrap()).unwrap();
    let arena = Bump::new();
    let told = |outcome: Result<(), Stop>| match outcome {
        Err(Stop::Abort(error)) if error.state().as_str() == "VALUE" => error.message().to_string(),
        Err(Stop::Abort(error)) => format!("[{}] {}", error.state(), error.message()),
        other => format!("{other:?}"),
    };
    let (mut memory, mut state) = (Memory::new(&catalog), Call::new(1));
    let mut view = View { memory: &mut memory, call: &mut state, phase: Phase::Whole, arena: &arena };
    let interpreted = told(interpret(program, &catalog, &[], &mut view, &arena).map(|_| ()));

    let code = compile_whole(program, &catalog).unwrap();
    let (mut frame, mut state) = (Frame::new(), Call::new(1));
    let mut view = View { memory: &mut memory, call: &mut state, phase: Phase::Whole, arena: &arena };
    frame.start(&code, &[], &arena).unwrap();
    assert_eq!(interpreted, told(run(&mut frame, &code, &mut view, &arena)), "{expression}");
    interpreted
}

#[test]
fn functions_give_what_postgresql_gives() {
    let path = "tests/golden/functions.txt";
    let content = std::fs::read_to_string(path).unwrap();
    let mut rewritten = String::new();
    for line in content.lines() {
        match line.split_once(" = ") {
            Some((expression, _)) => writeln!(rewritten, "{expression} = {}", value(expression)).unwrap(),
            None => writeln!(rewritten, "{line}").unwrap(),
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, rewritten).unwrap();
        return;
    }
    for (was, is) in content.lines().zip(rewritten.lines()) {
        assert_eq!(was, is, "run with UPDATE_GOLDEN=1 and read the difference");
    }
}
