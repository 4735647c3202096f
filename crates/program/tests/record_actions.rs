//! Record actions, access sets and their picture.

use fabius_program::access::{KeySource, accesses};
use fabius_program::catalog::Catalog;
use fabius_program::explain_svg::explain_svg;
use fabius_program::ir::Program;
use fabius_program::known_key::AccessKind;
use fabius_program::record_action::{Dependency, DependencyKind, RecordAction, record_actions};
use fabius_program::slice::{TypesOnly, slice};
use fabius_program::verify::load;

const TABLES: &str = "
table accounts { id: int, balance: numeric(12, 2), owner: int, primary key (id) using hash }
table orders { o_id: int, line: int, account: int, amount: numeric(12, 2), primary key (o_id, line) }
";

fn program(text: &str) -> (Catalog, Program) {
    let catalog = load(&format!("{TABLES}{text}"), "test", &Catalog::new()).unwrap_or_else(|e| panic!("{e}"));
    let program = catalog.procedures().next().expect("a procedure").1.clone();
    (catalog, Program::clone(&program))
}

/// `record -> what it comes after`.
fn told(actions: &[RecordAction]) -> Vec<String> {
    let kind = |kind| match kind {
        DependencyKind::Data => "data",
        DependencyKind::Key => "key",
        DependencyKind::Condition => "condition",
    };
    let line = |action: &RecordAction| {
        let mut text = action.record.clone();
        for Dependency { on, kind: why } in &action.dependencies {
            text += &format!(", {} {}", kind(*why), on + 1);
        }
        action.previous.iter().for_each(|previous| text += &format!(", again after {}", previous + 1));
        text
    };
    actions.iter().map(line).collect()
}

/// Goal: the example of the LADS paper: the second account waits for the check of the first.
#[test]
fn transfer_is_two_actions() {
    let (catalog, program) = program(
        "procedure transfer(src: int, dst: int, amount: numeric(12, 2)) {
            require accounts[src].balance >= amount, \"insufficient funds\"
            accounts[src].balance -= amount
            accounts[dst].balance += amount
        }",
    );
    let actions = record_actions(&program, &catalog);
    assert_eq!(told(&actions), ["accounts[src]", "accounts[dst], condition 1"]);
    assert!(actions[0].decides);
    assert!(program.writes_anything());
}

/// Goal: a record is visited twice where once would close a cycle.
#[test]
fn swapping_values_takes_a_second_action() {
    let (catalog, program) = program(
        "procedure swap(a: int, b: int) {
            let x = accounts[a].balance
            accounts[a].balance = accounts[b].balance
            accounts[b].balance = x
        }",
    );
    let actions = record_actions(&program, &catalog);
    assert_eq!(told(&actions), ["accounts[a], data 2", "accounts[b]", "accounts[b], data 1, again after 2"]);
}

/// Goal: keys that depend on reads are told apart from those that arguments give; ranges are coarse.
#[test]
fn keys_from_reads_and_ranges() {
    let (catalog, program) = program(
        "procedure pay(o_id: int) {
            for line in orders[o_id] {
                accounts[line.account].balance -= line.amount
            }
        }",
    );
    let all = accesses(&program, &catalog);
    assert_eq!(all.len(), 2);
    assert_eq!((all[0].kind, &all[0].source), (AccessKind::Range, &KeySource::Arguments));
    assert_eq!(all[0].text, "orders[o_id, ..]");
    assert!(matches!(&all[1].source, KeySource::EarlierReads(steps) if !steps.is_empty()));
    assert!(all[1].writes_anything() && !all[0].writes_anything());
    let actions = record_actions(&program, &catalog);
    assert!(actions[0].coarse && !actions[1].coarse);
    assert_eq!(actions[1].loops.len(), 1);
    assert!(actions[1].dependencies.contains(&Dependency { on: 0, kind: DependencyKind::Key }));
}

/// Goal: the picture is one SVG element with a box per action, and text in it is escaped.
#[test]
fn the_picture_is_well_formed() {
    let (catalog, program) = program(
        "procedure pay(o_id: int) {
            for line in orders[o_id, 1 ..< 5] {
                accounts[line.account].balance -= line.amount
            }
        }",
    );
    let svg = explain_svg(&program, &catalog, &slice(&program, &catalog, &TypesOnly));
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("orders[o_id, 1 ..&lt; 5]"), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    let marks = svg.matches('<').count();
    assert_eq!(marks, svg.matches('>').count());
}
