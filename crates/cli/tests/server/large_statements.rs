//! Statements that are long, wide or deep: answered or refused, and the server stands.

use crate::raw::{Message, Raw, field};
use crate::support::Server;

/// The words that say what a statement has done, or its error.
fn outcome(answer: &[Message]) -> String {
    match answer.iter().find(|(kind, _)| *kind == b'C') {
        Some((_, tag)) => String::from_utf8_lossy(tag).trim_end_matches('\0').to_string(),
        None => field(answer, b'C'),
    }
}

/// Goal: conditions of thousands of parts are taken by every kind of statement, as programs and as queries.
#[test]
fn long_conditions() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("CREATE TABLE t (id integer PRIMARY KEY, v integer)");
    raw.query("INSERT INTO t SELECT n, n FROM generate_series(1, 100) n");
    let chain = |part: &dyn Fn(usize) -> String, operator: &str| {
        (0..5000).map(part).collect::<Vec<_>>().join(operator)
    };
    let conditions = [
        (chain(&|n| format!("id = {n}"), " OR "), 100),
        (chain(&|n| format!("id <> {}", n + 51), " AND "), 50),
        (chain(&|n| format!("(id = {n} AND v > 10)"), " OR "), 90),
        (chain(&|n| format!("NOT (id = {} OR v = {})", n + 61, n + 71), " AND "), 60),
    ];
    for (condition, count) in conditions {
        for (statement, tag) in [
            ("SELECT id FROM t WHERE", "SELECT"),
            // Programs have no such quotients.
            ("SELECT v / 2.0 FROM t WHERE", "SELECT"),
            ("SELECT id FROM t GROUP BY id, v HAVING", "SELECT"),
            ("UPDATE t SET v = v WHERE", "UPDATE"),
            ("UPDATE t SET v = v FROM (SELECT 1 / 2.0) AS q WHERE", "UPDATE"),
            ("DELETE FROM t WHERE", "DELETE"),
        ] {
            raw.query("BEGIN");
            let text = format!("{statement} {condition}");
            assert_eq!(outcome(&raw.query(&text)), format!("{tag} {count}"), "{}", &text[..80]);
            raw.query("ROLLBACK");
        }
    }
    let check = chain(&|n| format!("id <> {n}"), " AND ");
    assert_eq!(
        outcome(&raw.query(&format!("CREATE TABLE checked (id integer, CHECK ({check}))"))),
        "CREATE TABLE"
    );
    assert_eq!(outcome(&raw.query("INSERT INTO checked VALUES (4999)")), "23514");
    for chain in [" + id", " - 1", " || 'x'"] {
        for statement in [
            format!("SELECT id{} FROM t", chain.repeat(200)),
            format!("SELECT v / 2.0, id{} FROM t", chain.repeat(200)),
        ] {
            assert_eq!(outcome(&raw.query(&statement)), "SELECT 100", "{chain}");
        }
    }
    let (mut other, _) = Raw::begin(&server);
    assert_eq!(outcome(&other.query("SELECT 1")), "SELECT 1");
}

/// Goal: what nests deep, or is much, is refused or answered; the server stands.
#[test]
fn deep_and_wide_statements() {
    let server = Server::start(&[]);
    let (mut raw, _) = Raw::begin(&server);
    raw.query("CREATE TABLE t (id integer PRIMARY KEY, d jsonb); INSERT INTO t VALUES (1, '{}')");
    let nested = |begin: &str, inner: &str, end: &str| {
        [50, 100, 1000, 100_000].map(|times| format!("{}{inner}{}", begin.repeat(times), end.repeat(times)))
    };
    let mut statements =
        vec!["/*".repeat(100_000), format!("{}{} SELECT 1", "/*".repeat(100_000), "*/".repeat(100_000))];
    for (begin, inner, end) in [
        ("(", "1", ")"),
        ("array[", "1", "]"),
        ("coalesce(d->'x', ", "d", ")"),
        ("(SELECT ", "1", ")"),
        ("exists (SELECT ", "1", ")"),
        ("CASE WHEN true THEN ", "1", " END"),
        ("NOT ", "true", ""),
        ("abs(", "1", ")"),
        ("CAST(", "1", " AS integer)"),
    ] {
        statements.extend(nested(begin, inner, end).map(|text| format!("SELECT {text} FROM t")));
    }
    statements.extend(nested("(", "SELECT 1", ")"));
    statements.extend(nested("SELECT * FROM (", "SELECT 1", ") x"));
    statements.extend(nested("WITH a AS (", "SELECT 1", ") SELECT * FROM a"));
    statements.extend(nested("SELECT 1 UNION ", "SELECT 1", ""));
    statements.extend(nested("EXPLAIN ", "SELECT 1", ""));
    statements.extend(nested("DO $$ BEGIN ", "NULL;", " END $$"));
    statements.extend(
        nested("IF true THEN ", "NULL;", " END IF;").map(|body| format!("DO $$ BEGIN {body} END $$")),
    );
    let elsif = "ELSIF x = 2 THEN NULL; ".repeat(5000);
    statements
        .push(format!("DO $$ DECLARE x integer := 3; BEGIN IF x = 1 THEN NULL; {elsif} END IF; END $$"));
    statements.push(format!("SELECT d{} FROM t", "->'a'".repeat(200)));
    for (begin, end) in [("[", "]"), ("{\"a\":", "}"), ("{", "}")] {
        for value in nested(begin, "1", end) {
            for to in ["json", "jsonb", "integer[]", "text[]"] {
                statements.push(format!("SELECT '{value}'::{to}"));
            }
        }
    }
    let tables: Vec<String> = (0..1000).map(|n| format!("(SELECT 1) t{n}")).collect();
    statements.push(format!("SELECT count(*) FROM {}", tables.join(", ")));
    for statement in statements {
        let shown: String = statement.chars().take(40).collect();
        let outcome = outcome(&raw.query(&statement));
        assert!(!outcome.starts_with("XX") && !outcome.is_empty(), "{shown}: {outcome}");
    }
    let (mut other, _) = Raw::begin(&server);
    assert_eq!(outcome(&other.query("SELECT 1")), "SELECT 1");
}
