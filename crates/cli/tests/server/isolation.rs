//! The anomalies that isolation levels are told apart by: none is possible, whatever the mode.
//!
//! The cases of `isolation.txt` are those of the Hermitage suite (M. Kleppmann, 2014) under its names, and some more.

use crate::interleaving::{Stage, Step};
use crate::support::{Server, block_on};

const MODES: [&str; 5] =
    ["optimistic", "pessimistic", "speculative", "conventional_optimistic", "conventional_pessimistic"];

const RESET: &str = "DELETE FROM test; INSERT INTO test VALUES (1, 10), (2, 20)";

fn server() -> Server {
    let server = Server::start(&[]);
    server.run("CREATE TABLE test (id integer PRIMARY KEY, value integer)");
    server
}

fn cases() -> Vec<(&'static str, Vec<Step>)> {
    let sections = include_str!("isolation.txt").split("# ").filter(|section| !section.trim().is_empty());
    let case = |section: &'static str| {
        let (name, script) = section.split_once('\n').expect("a name and a script");
        (name, Step::read(script))
    };
    sections.map(case).collect()
}

/// Goal: everybody in one mode: whoever commits has seen what some order, one after the other, would have shown; and
/// somebody commits.
#[test]
fn no_anomaly_in_any_mode() {
    let server = server();
    for mode in MODES {
        block_on(async {
            let mut stage = Stage::new(&server, RESET, "SELECT id, value FROM test").await;
            for (name, script) in cases() {
                let played = stage.play(&script, |_| mode).await;
                println!("{mode}: {name}: {} committed", played.committed());
                assert!(!played.committed().is_empty(), "{mode}: {name}: {played:#?}");
                assert!(stage.is_serializable(&played).await, "{mode}: {name}: {played:#?}");
            }
        });
    }
}

/// Goal: the same when everybody has a mode of its own.
#[test]
fn no_anomaly_between_modes() {
    let server = server();
    block_on(async {
        let mut stage = Stage::new(&server, RESET, "SELECT id, value FROM test").await;
        for [of_a, of_b] in [["optimistic", "pessimistic"], ["pessimistic", "optimistic"]] {
            for (name, script) in cases() {
                let played = stage.play(&script, |who| if who == 'a' { of_a } else { of_b }).await;
                assert!(!played.committed().is_empty(), "{of_a}, {of_b}: {name}: {played:#?}");
                assert!(stage.is_serializable(&played).await, "{of_a}, {of_b}: {name}: {played:#?}");
            }
        }
    });
}
