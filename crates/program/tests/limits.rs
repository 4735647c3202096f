//! Goal: no text exhausts the stack or takes long; what is too much is refused with its bound.

use fabius_program::catalog::Catalog;
use fabius_program::ir::Program;
use fabius_program::slice::{TypesOnly, slice};
use fabius_program::syntax::{Diagnostics, parse};
use fabius_program::verify;
use fabius_value::{Error, SqlState, limit};
use std::sync::Arc;

const TABLES: &str = "table t { k: bigint, v: bigint, primary key (k) }\n";

/// On a stack of 1 MiB, half of what threads usually get.
fn load(body: String) -> Result<Arc<Program>, Diagnostics> {
    let run = move || {
        let text = format!("{TABLES}procedure p(a: bigint, b: boolean) {{\n{body}\n}}");
        verify::load(&text, "limits.fab", &Catalog::new())
            .map(|catalog| catalog.procedures().last().expect("a procedure").1.clone())
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap()
}

fn is_limit(body: String) {
    let shown: String = body.chars().take(60).collect();
    match load(body) {
        Ok(_) => panic!("accepted: {shown}"),
        Err(errors) => assert_eq!(Error::from(errors).state(), SqlState::PROGRAM_LIMIT, "{shown}"),
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    is_limit(format!("let x = {}1{}", "(".repeat(deep), ")".repeat(deep)));
    is_limit(format!("let x = {}1", "-".repeat(deep)));
    is_limit(format!("let x = {}b", "not ".repeat(deep)));
    is_limit(format!("let x = {}1{}", "abs(".repeat(deep), ")".repeat(deep)));
    is_limit(format!("let x = {}1{}", "t[".repeat(deep), "].v".repeat(deep)));
    is_limit(format!("let x = {}1", "if b then ".repeat(deep)));
    is_limit(format!("{}{}", "if b { ".repeat(deep), "}".repeat(deep)));
    is_limit(format!("{}{}", "for n in 1 to 2 { ".repeat(deep), "}".repeat(deep)));
    is_limit(format!("if b {{ }} {}", "else if b { }".repeat(deep)));
}

/// Goal: 20 errors are shown, and whoever reads them learns of others.
#[test]
fn more_errors_than_are_shown() {
    let errors = |count: usize| load("let x = y\n".repeat(count)).expect_err("y is not declared");
    let texts = |count| (errors(count).to_string(), Error::from(errors(count)).detail().unwrap().to_string());
    let (all, some) = (texts(20), texts(50));
    assert!(!all.0.contains("and more") && !all.1.contains("and more"));
    assert!(some.0.starts_with(&all.0) && some.1.starts_with(&all.1));
    assert!(some.0.ends_with("\n\nand more: the others are shown when these are mended\n"));
    assert!(some.1.ends_with("\nand more: the others are shown when these are mended"));
    // Of all definitions together, too.
    let texts = ["procedure p() { let }\n".repeat(21), "table t { a: int }\n".repeat(21)];
    for text in texts {
        let errors = verify::load(&text, "limits.fab", &Catalog::new()).expect_err("none is right");
        assert!(errors.to_string().contains("and more"), "{errors}");
    }
}

#[test]
fn tall_expressions_are_refused() {
    let tall = 100_000;
    is_limit(format!("let x = 1{}", " + 1".repeat(tall)));
    is_limit(format!("let x = b{}", " or b".repeat(tall)));
    is_limit(format!("let x = a{}", "::bigint".repeat(tall)));
    is_limit(format!("let x = b{}", " is null".repeat(tall)));
    is_limit(format!("let x = b{}", " between b and b".repeat(tall)));
    // Height adds up through keys and parentheses.
    let chain = " + 1".repeat(200);
    is_limit(format!("let x = t[1{chain}].v{chain}"));
    is_limit(format!("let x = (1{chain}) * 2{chain}"));
}

/// Goal: conditions within conditions are looked at once each, not three times at each level.
#[test]
fn nested_conditions_are_sliced_in_no_time() {
    let nested = (0..28).fold("t[a].v".to_string(), |inner, _| format!("(if {inner} > 0 then 1 else 0)"));
    let program = load(format!("t[a].v = {nested}")).expect("not too deep");
    let catalog = verify::load(TABLES, "limits.fab", &Catalog::new()).expect("tables");
    let phases = slice(&program, &catalog, &TypesOnly);
    assert!(!phases.steps.is_empty());
}

#[test]
fn copies_of_copies_are_refused() {
    // Each between compares its operand twice.
    let mut nested = "b".to_string();
    for _ in 0..40 {
        nested = format!("({nested} between b and b)");
    }
    is_limit(format!("let x = {nested}"));
}

#[test]
fn what_is_just_within_the_bounds_is_accepted() {
    // The procedure's body and the expression itself are levels too.
    let deep = limit::NESTING - 2;
    load(format!("let x = {}a{}", "(".repeat(deep), ")".repeat(deep))).unwrap();
    load(format!("let x = {}a", "- ".repeat(deep))).unwrap();
    load(format!("{}let x = 1{}", "if b { ".repeat(deep), "}".repeat(deep))).unwrap();
    load(format!("if b {{ }} {}", "else if b { }".repeat(deep - 1))).unwrap();
    load(format!("let x = a{}", " + a".repeat(limit::EXPRESSION_HEIGHT))).unwrap();
    let sum = format!("a{}", " + a".repeat(limit::EXPRESSION_HEIGHT));
    let deep = limit::NESTING - 3;
    load(format!("{}let x = {sum}{}", "if b { ".repeat(deep), "}".repeat(deep))).unwrap();
}

#[test]
fn long_programs_are_bounded_in_time_and_parts() {
    // Many handles, blocks and loops: the cost of what is remembered of rows stays linear.
    let many: String = (0..5_000).map(|n| format!("if t[{n}].v > 0 {{ t[a + {n}].v += 1 }}\n")).collect();
    let program = load(many).unwrap();
    assert_eq!(program.step_count, 40_000);
    is_limit((0..20_000).map(|n| format!("t[{n}].v += 1\n")).collect());
    is_limit("// no\n".repeat(10) + &format!("let x = '{}'", "x".repeat(limit::PROGRAM_BYTES)));
}

#[test]
fn names_have_a_bound() {
    let long = "n".repeat(limit::NAME_BYTES);
    load(format!("let {long} = 1")).unwrap();
    let errors = load(format!("let {long}n = 1")).unwrap_err();
    assert!(errors.to_string().contains("a name has 1 to 63 bytes"), "{errors}");
    assert!(parse("table `` { }", "x").is_err());
}

#[test]
fn columns_have_a_bound() {
    let columns = |count| (0..count).map(|n| format!("c{n}: int, ")).collect::<String>();
    let table = |count| format!("table t {{ {}primary key (c0) }}", columns(count));
    verify::load(&table(limit::COLUMNS), "x", &Catalog::new()).unwrap();
    let errors = verify::load(&table(limit::COLUMNS + 1), "x", &Catalog::new()).unwrap_err();
    assert_eq!(Error::from(errors).state(), SqlState::PROGRAM_LIMIT);
}
