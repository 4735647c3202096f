//! Random SQL on PostgreSQL and on Fabius, side by side; where there is no PostgreSQL, programs and queries beside
//! queries that are not optimized.
//!
//! A difference is printed with the command that shows it again, and its script is in `target/sql-differential`.
//! `FABIUS_STATEMENTS=1000000 cargo test -p fabius-fuzz --test sql_differential` is the long form.

use fabius_fuzz::sql_differential::{Settings, known, run};
use std::path::{Path, PathBuf};

/// Statements of the short form.
const STATEMENTS: usize = 5_000;

fn settings(statements: usize, with_postgres: bool) -> Settings {
    Settings {
        seed: 1,
        cases: None,
        statements: Some(statements),
        jobs: 2,
        with_postgres,
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join("sql-differential"),
        program: PathBuf::from(env!("CARGO_BIN_EXE_fabius-fuzz")),
    }
}

/// Goal: what PostgreSQL answers, Fabius answers, in every form and protocol.
#[test]
fn statements_are_answered_as_postgresql_answers_them() {
    let statements = std::env::var("FABIUS_STATEMENTS").ok().and_then(|number| number.parse().ok());
    let summary = run(&settings(statements.unwrap_or(STATEMENTS), true)).expect("servers start");
    eprintln!("{}", summary.text);
    assert_eq!(summary.differences, 0, "{}", summary.text);
}

/// Goal: without PostgreSQL, programs and queries give what queries give that are not optimized.
#[test]
fn programs_are_answered_as_queries_are() {
    let summary = run(&settings(STATEMENTS / 10, false)).expect("servers start");
    assert_eq!(summary.differences, 0, "{}", summary.text);
}

/// Goal: `docs/sql.md` lists what the comparison passes over. `UPDATE_GOLDEN=1` writes it.
#[test]
fn the_list_of_known_differences_is_in_the_documentation() {
    const BEGIN: &str = "<!-- crates/fuzz/src/sql_differential/known.rs -->\n";
    const END: &str = "<!-- end -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql.md");
    let text = std::fs::read_to_string(&path).expect("docs/sql.md");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the list");
    let (list, after) = rest.split_once(END).expect("the end of the list");
    let expected = known::markdown();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}"))
            .expect("docs/sql.md is written");
        return;
    }
    assert_eq!(list, expected, "UPDATE_GOLDEN=1 writes the list");
}
