//! Programs as record actions that depend on each other: which are taken apart, and what an action comes after.

use fabius_program::catalog::Catalog;
use fabius_program::compile::{compile_action_slice, compile_results};
use fabius_program::record_action::{Dependency, DependencyKind};
use fabius_program::slice::{ActionSlices, Indivisible, TypesOnly, take_apart};
use fabius_program::verify::load;

const TABLES: &str = "
table t { a: int, b: bigint, c: bigint, d: bigint null, primary key (a) using hash }
table u { a: int, b: bigint, c: bigint, primary key (a) using hash, index by_c (c) }
table v { a: int, c: bigint, primary key (a) using hash, unique index by_c (c) }
";

fn apart(body: &str) -> Result<ActionSlices, Indivisible> {
    let text = format!("{TABLES}procedure p(x: int, y: int, z: int, n: bigint, l: list of int) {body}");
    let catalog = load(&text, "test", &Catalog::new()).unwrap_or_else(|error| panic!("{error}"));
    slices(&catalog, "p")
}

fn slices(catalog: &Catalog, name: &str) -> Result<ActionSlices, Indivisible> {
    let id = catalog.find_procedure(name).expect("it is there");
    let (_, program) = catalog.procedures().find(|(of, _)| *of == id).expect("a procedure");
    let slices = take_apart(program, catalog, &TypesOnly)?;
    for action in &slices.actions {
        compile_action_slice(program, catalog, action).expect("it is small");
    }
    compile_results(program, catalog, &slices).expect("it is small");
    Ok(slices)
}

/// By action: whether it decides, writes, what it comes after, what it takes and gives, and whom it disables.
fn told(slices: &ActionSlices) -> Vec<String> {
    let line = |action: &fabius_program::slice::ActionSlice| {
        let mut text = String::new();
        text += if action.decides { "decides " } else { "" };
        text += if action.writes { "writes " } else { "" };
        text += if action.holds { "later " } else { "" };
        text += if action.key.list().is_some() { "turns " } else { "" };
        for Dependency { on, kind } in &action.after {
            let kind = match kind {
                DependencyKind::Data => "data",
                DependencyKind::Key => "key",
                DependencyKind::Condition => "condition",
            };
            let turn = if action.after_same_turn.contains(on) { "same-turn " } else { "" };
            text += &format!("{turn}{kind} {on} ");
        }
        let counts = [("takes", action.takes()), ("gives", action.gives())];
        counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .for_each(|(verb, count)| text += &format!("{verb} {count} "));
        action.disables().for_each(|other| text += &format!("disables {other} "));
        text.trim_end().to_string()
    };
    slices.actions.iter().map(line).collect()
}

fn told_of(body: &str) -> Vec<String> {
    told(&apart(body).unwrap_or_else(|reason| panic!("{reason:?}")))
}

/// Goal: the paper's own example is two actions, and the second comes after the check of the first. What is returned
/// is handed over.
#[test]
fn transfer_is_two_actions() {
    let catalog = load(include_str!("../../bench/programs/bank.fab"), "bank.fab", &Catalog::new());
    let catalog = catalog.unwrap_or_else(|error| panic!("{error}"));
    let transfer = slices(&catalog, "transfer").expect("it is taken apart");
    assert_eq!(told(&transfer), ["decides writes later gives 1", "decides writes condition 0"]);
    assert_eq!((transfer.deciding, transfer.handed), (vec![0, 1], vec![0]));
    assert_eq!(told(&slices(&catalog, "deposit").expect("one action")), ["decides writes"]);
    assert_eq!(slices(&catalog, "open_accounts").unwrap_err(), Indivisible::Held);
    assert_eq!(told(&slices(&catalog, "open_account").expect("one action")), ["decides writes"]);
}

/// Goal: values, conditions and aborts are dependencies; what needs nothing of the others has none.
#[test]
fn actions_come_after_what_they_need() {
    assert_eq!(told_of("{ t[x].b = n t[y].b = n }"), ["writes", "writes"]);
    assert_eq!(told_of("{ t[x].b = t[y].c }"), ["writes data 1 takes 1", "gives 1"]);
    assert_eq!(
        told_of("{ require t[x].b > n, \"small\" t[y].b = n t[z].b = t[x].c }"),
        ["decides gives 1", "writes condition 0", "writes data 0 condition 0 takes 1"]
    );
    // Adding may not fit: who has the last word writes at once.
    assert_eq!(
        told_of("{ t[x].b += n t[y].b += n t[z].b = n }"),
        ["decides writes later", "decides writes condition 0", "writes condition 1"]
    );
    // A condition on two rows is checked where the second is; arguments are checked by whoever checks first.
    assert_eq!(
        told_of("{ require n > 0, \"n\" require t[x].b + t[y].b > n, \"small\" t[x].b = n }"),
        ["writes later gives 1", "decides condition 0 takes 1"]
    );
    assert_eq!(
        told_of("{ require n > 0, \"n\" t[x].b = n t[y].b = n }"),
        ["decides writes", "writes condition 0"]
    );
}

/// Goal: who finds out about a condition disables what stands in the other branch.
#[test]
fn false_branches_are_disabled() {
    assert_eq!(
        told_of("{ if t[x].b > n { t[y].b = n } else { t[z].b = n } }"),
        ["gives 1 disables 1 disables 2", "writes condition 0 takes 1", "writes condition 0 takes 1"]
    );
    // Arguments alone decide, so nobody finds it out.
    assert_eq!(told_of("{ if n > 0 { t[y].b = n } else { t[z].b = n } }"), ["writes", "writes"]);
}

/// Goal: a loop over an argument is an action for each turn, which waits for the same turn of another action, or for
/// all turns.
#[test]
fn loops_are_an_action_for_each_turn() {
    assert_eq!(
        told_of("{ for k in l { t[k].b += n } u[x].b = n }"),
        ["decides writes later turns", "writes condition 0"]
    );
    assert_eq!(
        told_of("{ for k in l { t[k].b = u[k].b } }"),
        ["writes turns same-turn data 1 takes 1", "turns gives 1"]
    );
    assert_eq!(
        told_of("{ for k in l { require t[k].b > n, \"t\" u[k].b = n } }"),
        ["decides turns", "writes turns condition 0"]
    );
    assert_eq!(
        told_of("{ var m = n for k in l { m = greatest(m, t[k].b) } u[x].b = m t[y].b += n }"),
        ["turns gives 1", "writes data 0 condition 2 takes 1", "decides writes"]
    );
    // Two loops over one list are at one row in each turn.
    assert_eq!(
        told_of("{ for k in l { require t[k].c > 0, \"t\" } for k in l { t[k].b = n } t[x].b = n }"),
        ["decides writes later turns", "writes condition 0"]
    );
    assert_eq!(
        told_of(
            "{ for k in l { if t[k].b > n { u[k].b = n } } if t[x].b > n { for k in l { u[k].b = 3 } } }"
        ),
        ["turns gives 1", "writes turns same-turn condition 0 condition 2 takes 2", "gives 1"]
    );
    assert_eq!(
        told_of("{ if t[x].b > n { for k in l { u[k].b = 3 } } }"),
        ["gives 1 disables 1", "writes turns condition 0 takes 1"]
    );
    assert_eq!(
        told_of("{ for k in l { if t[k].b > n { u[k].b = n } } }"),
        ["turns gives 1 disables 1", "writes turns same-turn condition 0 takes 1"]
    );
    // One row that a loop returns to is one action; lists are computed for the results.
    assert_eq!(told_of("{ for k in l { t[x].b = least(t[x].b, k) } }"), ["writes"]);
    assert_eq!(
        told_of(
            "-> (r: list of bigint) { var r: list of bigint = [] for k in l { append r (t[k].b) } return r }"
        ),
        ["turns gives 1"]
    );
}

/// Goal: whether a key is free, or a row there that may have gone, is decided where the row is; others are told.
#[test]
fn rows_that_come_or_go_are_decided_about() {
    assert_eq!(told_of("{ insert u { a: x, b: n, c: n } }"), ["decides writes"]);
    assert_eq!(told_of("{ delete t[x] }"), ["decides writes"]);
    assert_eq!(
        told_of("{ insert u { a: x, b: t[y].b, c: n } t[z].b = n }"),
        ["gives 1", "decides writes data 0 takes 1", "writes condition 1"]
    );
    assert_eq!(
        told_of("{ if exists t[x] { t[x].b = n } else { insert t { a: x, b: n, c: n } } }"),
        ["decides writes"]
    );
    assert_eq!(
        told_of("{ if not exists t[x] { insert t { a: x, b: n, c: n } u[y].b = n } else { u[z].b = n } }"),
        [
            "decides writes gives 1 disables 1 disables 2",
            "writes condition 0 takes 1",
            "writes condition 0 takes 1"
        ]
    );
    assert_eq!(
        told_of("{ for k in l { insert u { a: k, b: n, c: n } } t[x].b = n }"),
        ["decides writes later turns", "writes condition 0"]
    );
}

/// Goal: a program that is not taken apart says why.
#[test]
fn what_is_whole_says_why() {
    let reason = |body: &str| apart(body).expect_err("it is whole");
    assert_eq!(reason("{ for i in 1 to 3 { t[x].b = i } }"), Indivisible::Loop);
    assert_eq!(reason("{ for k in l { for j in l { t[k].b = n } } }"), Indivisible::Loop);
    assert_eq!(reason("{ var i = 0::bigint for k in l { i = n - i t[k].b = i } }"), Indivisible::Carried);
    assert_eq!(reason("{ for k in l { t[k].b = t[x].c } }"), Indivisible::Carried);
    assert_eq!(
        reason("{ for k in l { require t[k].b > 0, \"t\" require u[k].b > 0, \"u\" } }"),
        Indivisible::AlternatingChecks
    );
    assert_eq!(
        reason("{ var m = n for k in l { m = greatest(m, t[k].b) } for k in l { t[k].b = m } }"),
        Indivisible::Carried
    );
    assert_eq!(reason("{ t[x].b = (random() * 9.0)::bigint }"), Indivisible::Random);
    assert_eq!(reason("{ for k in l { t[k].b += n } }"), Indivisible::Held);
    assert_eq!(reason("{ insert v { a: x, c: n } }"), Indivisible::Index);
    assert_eq!(reason("{ u[x].c = n }"), Indivisible::Index);
    assert_eq!(reason("{ require n > 0, \"n\" }"), Indivisible::Nothing);
    assert_eq!(reason("{ t[t[x].b::int].b = n }"), Indivisible::UnknownKey);
    assert_eq!(reason("{ let v = t[x].b t[x].b = t[y].b t[y].b = v }"), Indivisible::Circle);
    assert_eq!(
        reason("{ require t[x].b > 0, \"x\" require t[y].b > 0, \"y\" t[x].c = t[x].c + n }"),
        Indivisible::AlternatingChecks
    );
    assert_eq!(reason("-> bigint { t[x].b = n return t[y].b + n }"), Indivisible::FailingResult);
}
