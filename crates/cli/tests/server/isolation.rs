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

/// A case of `isolation.txt`: its script, then who commits in which mode.
struct Case {
    name: &'static str,
    script: Vec<Step>,
    commits: &'static str,
}

impl Case {
    fn all() -> Vec<Case> {
        let sections = include_str!("isolation.txt").split("# ").filter(|section| !section.is_empty());
        let case = |section: &'static str| {
            let (name, rest) = section.split_once('\n').expect("a name and a script");
            let (script, commits) = rest.split_once("\n= ").expect("a script and who commits");
            Case { name, script: Step::read(script), commits: commits.trim() }
        };
        sections.map(case).collect()
    }

    /// Who commits; a speculative transaction without failed conditions goes as an optimistic one.
    fn commits(&self, mode: &str) -> &'static str {
        let mode = if mode == "speculative" { "optimistic" } else { mode };
        let of_mode =
            self.commits.split(", ").find_map(|one| one.split_once(' ').filter(|(of, _)| *of == mode));
        of_mode.expect("who commits in this mode").1
    }
}

/// Goal: everybody in one mode: whoever commits has seen what some order, one after the other, would have shown; those
/// commit that are expected to, not fewer.
#[test]
fn no_anomaly_in_any_mode() {
    let server = server();
    for mode in MODES {
        block_on(async {
            let mut stage = Stage::new(&server, RESET, "SELECT id, value FROM test").await;
            for case in Case::all() {
                let played = stage.play(&case.script, |_| mode).await;
                assert_eq!(played.committed(), case.commits(mode), "{mode}: {}: {played:#?}", case.name);
                assert!(stage.is_serializable(&played).await, "{mode}: {}: {played:#?}", case.name);
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
            for Case { name, script, .. } in Case::all() {
                let played = stage.play(&script, |who| if who == 'a' { of_a } else { of_b }).await;
                assert!(!played.committed().is_empty(), "{of_a}, {of_b}: {name}: {played:#?}");
                assert!(stage.is_serializable(&played).await, "{of_a}, {of_b}: {name}: {played:#?}");
            }
        }
    });
}
