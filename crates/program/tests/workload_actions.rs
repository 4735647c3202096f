//! How the graph engine executes the workloads' programs: which are taken apart into record actions, and why others
//! are not.

use fabius_program::catalog::Catalog;
use fabius_program::ir::Program;
use fabius_program::slice::{ColumnBounds, are_independent, take_apart};
use fabius_program::verify::load;
use std::fmt::Write;

const WORKLOADS: [(&str, &str); 10] = [
    ("assert", include_str!("../../bench/programs/assert.fab")),
    ("bank", include_str!("../../bench/programs/bank.fab")),
    ("calvin_micro", include_str!("../../bench/programs/calvin_micro.fab")),
    ("cart", include_str!("../../bench/programs/cart.fab")),
    ("hot", include_str!("../../bench/programs/hot.fab")),
    ("like", include_str!("../../bench/programs/like.fab")),
    ("rmw10", include_str!("../../bench/programs/rmw10.fab")),
    ("rubis", include_str!("../../bench/programs/rubis.fab")),
    ("tpcc", include_str!("../../bench/programs/tpcc.fab")),
    ("ycsb", include_str!("../../bench/programs/ycsb.fab")),
];

/// What is known of the programs that write, but for those that load: a line for each.
fn listing() -> String {
    let mut text = String::new();
    for (workload, definitions) in WORKLOADS {
        let catalog = load(definitions, workload, &Catalog::new()).unwrap_or_else(|error| panic!("{error}"));
        let mut bounds = ColumnBounds::default();
        let programs: Vec<&Program> = catalog.procedures().map(|(_, program)| &**program).collect();
        bounds.follow(&catalog, &programs, 0);
        for (_, program) in catalog.procedures().filter(|(_, program)| program.writes_anything()) {
            if program.name.starts_with("load_") || program.name.starts_with("open_account") {
                continue;
            }
            let how = match take_apart(program, &catalog, &bounds) {
                Ok(_) if are_independent(program, &catalog, &bounds) => "independent".to_string(),
                Ok(_) => "dependent".to_string(),
                Err(reason) => format!("whole: {reason:?}"),
            };
            writeln!(text, "{workload} {}: {how}", program.name).expect("memory suffices");
        }
    }
    text
}

/// Goal: decisions say which workloads' calls are taken apart (`docs/decisions/record-actions-with-dependencies.md`).
#[test]
fn workloads_are_taken_apart() {
    let expected = "\
assert decrement: independent
bank transfer: dependent
bank deposit: dependent
calvin_micro micro: dependent
calvin_micro micro_dependent: whole: Loop
calvin_micro exchange_names: whole: Index
cart add_item: dependent
cart buy: dependent
cart clear: independent
hot increment: independent
like like: independent
rmw10 rmw10: independent
rmw10 blind10: independent
rubis store_bid: dependent
rubis store_buy_now: whole: Held
rubis store_comment: dependent
rubis register_user: dependent
rubis register_item: dependent
tpcc new_order: whole: UnknownKey
tpcc payment: whole: Held
tpcc payment_by_name: whole: Loop
tpcc delivery: whole: Loop
ycsb ycsb: independent
";
    assert_eq!(listing(), expected);
}
