//! The statements of a transaction as one program: its text, read as a specification.

use fabius_program::catalog::Catalog;
use fabius_program::compose::{Part, Run, arguments, compose, is_repeatable, parts};
use fabius_program::syntax::{Definition, ProcedureDefinition, parse};
use fabius_program::verify;
use fabius_value::Value;

const TABLES: &str = "
    table stock { item: int, quantity: int, primary key (item) }
    table n { item: int, primary key (item) }
";

fn statement(text: &str) -> ProcedureDefinition {
    match parse(text, "statement").expect("a text").remove(0) {
        Definition::Procedure(procedure) => procedure,
        Definition::Table(_) | Definition::Drop(_) => panic!("no procedure"),
    }
}

fn take() -> ProcedureDefinition {
    statement(
        "procedure take(item: int, stock: int) -> bigint {
            var n: bigint = 0
            for row in stock[item] where row.quantity >= stock {
                row.quantity -= stock
                n += 1
            }
            return n
        }",
    )
}

fn show() -> ProcedureDefinition {
    statement(
        "procedure show(n: int) -> list of (item: int, quantity: int) {
            var rows: list of (item: int, quantity: int) = []
            for row in stock[n] { append rows (row.item, row.quantity) }
            return rows
        }",
    )
}

fn verified(parts: &[Part<&ProcedureDefinition>]) -> String {
    verified_beside(TABLES, parts)
}

fn verified_beside(tables: &str, parts: &[Part<&ProcedureDefinition>]) -> String {
    let catalog = verify::load(tables, "tables", &Catalog::new()).expect("tables");
    let names = catalog.tables().map(|(_, schema)| schema.name.as_str());
    let definition = compose("transaction", parts, names).expect("small enough");
    verify::procedure(&definition, &catalog).unwrap_or_else(|errors| panic!("{errors}\n{definition}"));
    definition.to_string()
}

/// Goal: names get a prefix, those of tables do not, even if a variable has the same name; what was shown is a
/// parameter; an empty list of statements is an empty program.
#[test]
fn statements_are_inlined() {
    let (take, show) = (take(), show());
    let text = verified(&[Part::Once(&take), Part::Once(&show)]);
    assert_eq!(
        text,
        "procedure transaction(s1_item: int, s1_stock: int, e1_1: bigint null, s2_n: int, \
e2_1: list of (item: int null, quantity: int null)) {
    var s1_n: bigint = 0
    for s1_row in stock[s1_item] where s1_row.quantity >= s1_stock {
        s1_row.quantity -= s1_stock
        s1_n += 1
    }
    let r1_1: bigint null = s1_n
    require r1_1 is not distinct from e1_1, \"could not serialize access due to concurrent update\", \
sqlstate '40001'
    var s2_rows: list of (item: int, quantity: int) = []
    for s2_row in stock[s2_n] {
        append s2_rows (s2_row.item, s2_row.quantity)
    }
    require count(s2_rows) is not distinct from count(e2_1), \
\"could not serialize access due to concurrent update\", sqlstate '40001'
    for n2_1 in 1 to count(s2_rows) {
        require s2_rows[n2_1].item is not distinct from e2_1[n2_1].item, \
\"could not serialize access due to concurrent update\", sqlstate '40001'
        require s2_rows[n2_1].quantity is not distinct from e2_1[n2_1].quantity, \
\"could not serialize access due to concurrent update\", sqlstate '40001'
    }
}
"
    );
    assert_eq!(verified(&[]), "procedure transaction() {\n}\n");
}

/// Goal: no list has the name of a table, whatever tables are called.
#[test]
fn tables_are_not_hidden() {
    let count = statement("procedure count(item: int) { t1[item].quantity += 1 }");
    let total = statement(
        "procedure total() -> bigint { var n: bigint = 0 for row in t1 { n += row.quantity } return n }",
    );
    for name in ["t1", "t_1", "e1_1", "s1_rows", "t__9x"] {
        let tables = format!(
            "{TABLES} table t1 {{ item: int, quantity: int, primary key (item) }}
             table other_{name} {{ a: int, primary key (a) }}"
        );
        let tables = match name {
            "t1" => tables,
            _ => format!("{tables} table {name} {{ a: int, primary key (a) }}"),
        };
        let text = verified_beside(&tables, &[Part::Repeated(vec![&count]), Part::Once(&total)]);
        let list = if name.contains("__") {
            "t___1"
        } else if name.contains("t_") {
            "t__1"
        } else {
            "t_1"
        };
        assert!(text.contains(&format!("for u1 in {list} {{")), "{name}: {text}");
    }
}

/// Goal: what repeats is a loop, whatever it returns; the longest repetition is taken.
#[test]
fn repetitions_are_loops() {
    let (take, show) = (take(), show());
    assert!(is_repeatable(&take) && is_repeatable(&show));
    assert!(!is_repeatable(&statement("procedure p(values: list of int) { }")));
    let text = verified(&[Part::Repeated(vec![&show, &take])]);
    assert!(text.contains("for u1 in t1 {"), "{text}");
    assert!(text.contains("e1_1[u1.o1_1 + n1_1].item"), "{text}");
    let found = parts(&["a", "b", "c", "b", "c", "b", "c", "x", "d", "d"], |of| *of != "x");
    let expected = [
        (Part::Once("a"), 1),
        (Part::Repeated(vec!["b", "c"]), 6),
        (Part::Once("x"), 1),
        (Part::Repeated(vec!["d"]), 2),
    ];
    assert_eq!(found, expected);
}

/// Goal: the arguments of a loop are one list, and one more for each list that a turn returns.
#[test]
fn arguments_follow_the_parts() {
    let rows = |rows: &[[i32; 2]]| {
        Value::List(rows.iter().map(|row| row.iter().map(|value| (*value).into()).collect()).collect())
    };
    let shown = [rows(&[[1, 5], [2, 6]]), rows(&[]), rows(&[[3, 7]])];
    let keys: [[Value; 1]; 3] = [[1.into()], [2.into()], [3.into()]];
    let runs: Vec<Run<'_, &str>> = keys
        .iter()
        .zip(&shown)
        .map(|(key, shown)| Run { statement: "show", arguments: key, results: std::slice::from_ref(shown) })
        .collect();
    let turn = |key: i32, offset: i64, count: i64| vec![key.into(), offset.into(), count.into()];
    let expected =
        vec![Value::List(vec![turn(1, 0, 2), turn(2, 2, 0), turn(3, 2, 1)]), rows(&[[1, 5], [2, 6], [3, 7]])];
    assert_eq!(arguments(&[(Part::Repeated(vec!["show"]), 3)], &runs), expected);
}
