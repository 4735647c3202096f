//! Goal: what the front of this crate says and makes of texts, side by side.
//!
//! Each file in `tests/golden` is a list of cases: `=== name`, a text, `---`, the output. The case
//! named `schema` is loaded first and seen by all others. `UPDATE_GOLDEN=1 cargo test` rewrites outputs.
//!
//! | file | output |
//! |---|---|
//! | `errors_*.txt` | the errors of loading the text, or `ok` |
//! | `printing.txt` | the canonical text |
//! | `lowering_*.txt` | the steps of the last procedure |

mod steps;

use fabius_program::catalog::Catalog;
use fabius_program::syntax::parse;
use fabius_program::verify;
use std::fmt::Write;
use std::path::Path;

fn run(file: &str, output: impl Fn(&str, &Catalog) -> String) {
    let path = Path::new("tests/golden").join(file);
    let content = std::fs::read_to_string(&path).unwrap();
    let mut catalog = Catalog::new();
    let mut rewritten = String::new();
    let (head, cases) = content.split_once("=== ").expect("a golden file has cases");
    rewritten += head;
    for case in cases.split("\n=== ") {
        let (name, rest) = case.split_once('\n').expect("a case has a name");
        let text = rest.split_once("\n---").map_or(rest, |(text, _)| text).trim_end();
        if name == "schema" {
            catalog = verify::load(text, "schema", &catalog).unwrap_or_else(|errors| panic!("{errors}"));
            write!(rewritten, "=== {name}\n{text}\n\n").unwrap();
            continue;
        }
        write!(rewritten, "=== {name}\n{text}\n---\n{}\n\n", output(text, &catalog).trim_end()).unwrap();
    }
    let rewritten = format!("{}\n", rewritten.trim_end());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, rewritten).unwrap();
        return;
    }
    for (line, (was, is)) in content.lines().zip(rewritten.lines()).enumerate() {
        assert_eq!(was, is, "{file}:{}: run with UPDATE_GOLDEN=1 and read the difference", line + 1);
    }
    assert_eq!(content.lines().count(), rewritten.lines().count(), "{file}: run with UPDATE_GOLDEN=1");
}

fn errors(text: &str, catalog: &Catalog) -> String {
    match verify::load(text, "test.fab", catalog) {
        Ok(_) => "ok".into(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn errors_of_syntax() {
    run("errors_syntax.txt", errors);
}

#[test]
fn errors_of_names() {
    run("errors_names.txt", errors);
}

#[test]
fn errors_of_types() {
    run("errors_types.txt", errors);
}

#[test]
fn errors_of_rules() {
    run("errors_rules.txt", errors);
}

#[test]
fn printing() {
    run("printing.txt", |text, _| match parse(text, "test.fab") {
        Ok(definitions) => {
            let printed: Vec<String> = definitions.iter().map(ToString::to_string).collect();
            assert_eq!(parse(&printed.concat(), "printed").unwrap(), definitions);
            printed.join("\n")
        }
        Err(errors) => errors.to_string(),
    });
}

fn lowering(text: &str, catalog: &Catalog) -> String {
    match verify::load(text, "test.fab", catalog) {
        Ok(catalog) => {
            let (_, program) = catalog.procedures().last().expect("the case has a procedure");
            steps::dump(program, &catalog)
        }
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn lowering_of_rows() {
    run("lowering_rows.txt", lowering);
}

#[test]
fn lowering_of_types() {
    run("lowering_types.txt", lowering);
}

#[test]
fn lowering_of_loops() {
    run("lowering_loops.txt", lowering);
}
