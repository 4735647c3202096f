//! Lazy state determination by plain SQL: a condition and an expression are not a read.

use crate::interleaving::{Played, Stage, Step, interleavings};
use crate::support::{Server, block_on};

/// How the item's row is named and kept.
struct Variant {
    column: &'static str,
    key: &'static str,
}

const VARIANTS: [Variant; 5] = [
    Variant { column: "qty integer NOT NULL", key: "id = 1" },
    Variant { column: "qty integer", key: "id = 1" },
    Variant { column: "qty integer", key: "id = 3 - 2" },
    Variant { column: "qty bigint NOT NULL", key: "id = abs(-1)" },
    Variant { column: "qty numeric(10, 2)", key: "name = 'pen'" },
];

fn tables(variant: &Variant) -> String {
    format!(
        "DROP TABLE IF EXISTS stock, orders;
         CREATE TABLE stock (id integer PRIMARY KEY, name text UNIQUE, {});
         CREATE TABLE orders (id integer PRIMARY KEY, item integer)",
        variant.column
    )
}

fn take(variant: &Variant) -> String {
    format!("update stock set qty = qty - 1 where {} and qty >= 1", variant.key)
}

/// A client that takes an item, and another that does the same: in blocks, or each statement by itself.
fn clients(variant: &Variant) -> Vec<Vec<Vec<Step>>> {
    let take = take(variant);
    let block = |who: char| vec![Step::new(who, &take), Step::new(who, "commit")];
    let order = |who: char, number: u32| {
        let insert = format!("insert into orders values ({number}, 1)");
        vec![Step::new(who, &take), Step::new(who, &insert), Step::new(who, "commit")]
    };
    vec![
        vec![block('a'), block('b')],
        vec![order('a', 1), order('b', 2)],
        vec![order('a', 1), vec![Step::new('B', &take)]],
        vec![vec![Step::new('A', &take)], vec![Step::new('B', &take)]],
    ]
}

/// How many have committed that were told that they have an item.
fn served(played: &Played, take: &str) -> usize {
    let committed = played.transactions.iter().filter(|one| one.has_committed == Some(true));
    committed.filter(|one| one.given.contains(&(take.to_string(), Ok(vec!["(1)".into()])))).count()
}

async fn check(server: &Server, mode: &'static str, quantity: u32, judge: impl Fn(&Played, &str)) {
    for variant in VARIANTS {
        let show = "SELECT trunc(qty) FROM stock";
        let reset =
            format!("DELETE FROM stock; DELETE FROM orders; INSERT INTO stock VALUES (1, 'pen', {quantity})");
        let mut stage = Stage::new(server, &reset, show).await;
        stage.run(&tables(&variant)).await;
        for lists in clients(&variant) {
            for script in interleavings(&lists) {
                let played = stage.play(&script, |_| mode).await;
                judge(&played, &take(&variant));
            }
        }
    }
}

/// Goal: of plenty, both get theirs, whatever comes first.
#[test]
fn of_plenty_everybody_takes() {
    let server = Server::start(&[]);
    for mode in ["optimistic", "pessimistic", "speculative"] {
        block_on(check(&server, mode, 10, |played, take| {
            assert_eq!(served(played, take), 2, "{mode}: {played:#?}");
            assert_eq!(played.rows, ["(1)", "8"], "{mode}: {played:#?}");
        }));
    }
}

/// Goal: the last item goes to exactly one; the other's count of rows, or its commit, says that it has none.
#[test]
fn the_last_goes_to_one() {
    let server = Server::start(&[]);
    for mode in ["optimistic", "pessimistic", "speculative"] {
        block_on(check(&server, mode, 1, |played, take| {
            assert_eq!(served(played, take), 1, "{mode}: {played:#?}");
            assert_eq!(played.rows, ["(1)", "0"], "{mode}: {played:#?}");
            for one in played.transactions.iter().filter(|one| one.has_committed != Some(true)) {
                let (_, given) = one.given.last().expect("it has run");
                assert_eq!(given, &Err("40001".to_string()), "{mode}: {played:#?}");
            }
        }));
    }
}
