//! Crates stand on floors, and a crate uses crates of lower floors only.
//!
//! ```text
//! 14 python
//! 13 cli
//! 12 bench  fuzz
//! 11 server
//! 10 sql
//! 9  sql-program  sql-query
//! 8  sql-meaning
//! 7  sql-syntax
//! 6  sql-planning
//! 5  database
//! 4  engine-*  cluster
//! 3  testing
//! 2  engine
//! 1  program  storage  log
//! 0  value  env
//! ```
//!
//! This holds for tests and examples of a crate too: what a test needs from above belongs above. What tests stand on
//! (`testing`) is used by tests alone.

use super::exception::SAME_FLOOR;
use super::{Finding, Tree};
use toml::{Table, Value};

/// The floor of each crate, by its folder under `crates`.
const FLOORS: &[(&str, u8)] = &[
    ("value", 0),
    ("env", 0),
    ("program", 1),
    ("storage", 1),
    ("log", 1),
    ("engine", 2),
    ("testing", 3),
    ("cluster", 4),
    ("database", 5),
    ("sql-planning", 6),
    ("sql-syntax", 7),
    ("sql-meaning", 8),
    ("sql-program", 9),
    ("sql-query", 9),
    ("sql", 10),
    ("server", 11),
    ("bench", 12),
    ("fuzz", 12),
    ("cli", 13),
    ("python", 14),
];

/// The floor of every crate whose folder begins with `engine-`.
const ENGINES: u8 = 4;

/// What tests stand on.
const TESTING: &str = "fabius-testing";

/// Crates that are for tests themselves.
const TESTS: &[&str] = &["fuzz"];

/// Tables of a manifest that name crates it uses.
const DEPENDENCIES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

fn floor(folder: &str) -> Option<u8> {
    if folder.starts_with("engine-") {
        return Some(ENGINES);
    }
    FLOORS.iter().find(|(known, _)| *known == folder).map(|(_, floor)| *floor)
}

struct Crate<'t> {
    folder: &'t str,
    path: &'t str,
    text: &'t str,
    manifest: Table,
}

impl Crate<'_> {
    fn package(&self) -> &str {
        let package = self.manifest.get("package").and_then(Value::as_table);
        package.and_then(|package| package.get("name")).and_then(Value::as_str).unwrap_or(self.folder)
    }

    /// Names of the packages it uses, renamed ones by their own name.
    fn uses(&self) -> Vec<(String, usize)> {
        let mut tables: Vec<&Table> = vec![&self.manifest];
        let targets = self.manifest.get("target").and_then(Value::as_table);
        tables.extend(targets.into_iter().flat_map(|targets| targets.values()).filter_map(Value::as_table));
        let mut uses = Vec::new();
        for section in tables.iter().flat_map(|table| DEPENDENCIES.iter().filter_map(|name| table.get(*name)))
        {
            for (key, value) in section.as_table().into_iter().flatten() {
                let renamed = value.as_table().and_then(|value| value.get("package")).and_then(Value::as_str);
                uses.push((renamed.unwrap_or(key).to_string(), self.line_of(key)));
            }
        }
        uses
    }

    /// Whether what is shipped of it uses a package.
    fn ships(&self, package: &str) -> bool {
        let shipped = self.manifest.get("dependencies").and_then(Value::as_table);
        shipped.is_some_and(|shipped| shipped.contains_key(package))
    }

    /// The line that begins with a dependency's key.
    fn line_of(&self, key: &str) -> usize {
        let begins = |line: &str| {
            let rest = line.trim_start().strip_prefix(key)?;
            rest.starts_with(['.', ' ', '=']).then_some(())
        };
        self.text.lines().position(|line| begins(line).is_some()).map_or(1, |at| at + 1)
    }
}

/// Crates without a floor, dependencies that do not go down, and exceptions that nobody needs.
pub fn check(tree: &Tree) -> Vec<Finding> {
    judge(tree, SAME_FLOOR)
}

fn judge(tree: &Tree, exceptions: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut crates = Vec::new();
    for file in tree.ending("/Cargo.toml") {
        let Some(folder) =
            file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        match file.text.parse::<Table>() {
            Ok(manifest) => crates.push(Crate { folder, path: &file.path, text: &file.text, manifest }),
            Err(error) => {
                findings.push(Finding::new(&file.path, 1, format!("not a manifest: {error}"), "correct it"));
            }
        }
    }
    let mut needed = vec![false; exceptions.len()];
    for from in &crates {
        if from.ships(TESTING) && !TESTS.contains(&from.folder) {
            let what = format!("{} is shipped with {TESTING}, which is for tests", from.folder);
            let line = from.line_of(TESTING);
            findings.push(Finding::new(from.path, line, what, "move it to [dev-dependencies]"));
        }
        let Some(from_floor) = floor(from.folder) else {
            let what = format!("crate {} stands on no floor", from.folder);
            findings.push(Finding::new(from.path, 1, what, "give it one in xtask/src/tidy/floor.rs"));
            continue;
        };
        for (package, line) in from.uses() {
            let Some(to) = crates.iter().find(|known| known.package() == package) else { continue };
            let Some(to_floor) = floor(to.folder) else { continue };
            if to_floor < from_floor {
                continue;
            }
            let listed =
                exceptions.iter().position(|(user, used, _)| *user == from.folder && *used == to.folder);
            match listed {
                Some(at) if to_floor == from_floor => needed[at] = true,
                _ => {
                    let what = format!(
                        "{} (floor {from_floor}) uses {} (floor {to_floor}); only lower floors are allowed",
                        from.folder, to.folder
                    );
                    findings.push(Finding::new(
                        from.path,
                        line,
                        what,
                        "move what is used down, or its user up",
                    ));
                }
            }
        }
    }
    for ((user, used, _), needed) in exceptions.iter().zip(needed) {
        if let Some(from) = crates.iter().find(|known| known.folder == *user && !needed) {
            let what = format!("{user} may use {used} by exception, and does not");
            let action = "use it, or take it off SAME_FLOOR in xtask/src/tidy/exception.rs";
            findings.push(Finding::new(from.path, 1, what, action));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"fabius-{name}\"\n{rest}")
    }

    fn found(crates: &[(&str, &str)], exceptions: &[(&str, &str, &str)]) -> Vec<String> {
        let files: Vec<(String, String)> = crates
            .iter()
            .map(|(name, rest)| (format!("crates/{name}/Cargo.toml"), manifest(name, rest)))
            .collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        judge(&Tree::of(&files), exceptions).iter().map(ToString::to_string).collect()
    }

    /// Goal: down is allowed, across and up are not, in every kind of dependency.
    #[test]
    fn dependencies_go_down() {
        let ends = [("value", ""), ("env", ""), ("engine-lazy", "")];
        let with = |name, rest| [ends.as_slice(), &[(name, rest)]].concat();
        assert_eq!(found(&with("engine", "[dependencies]\nfabius-value.workspace = true\n"), &[]), [""; 0]);
        for rest in [
            "[dependencies]\nfabius-engine-lazy.workspace = true\n",
            "[dev-dependencies]\nfabius-engine-lazy = { path = \"../engine-lazy\" }\n",
            "[target.'cfg(unix)'.dependencies]\nlazy = { package = \"fabius-engine-lazy\", path = \"x\" }\n",
        ] {
            let expected = "crates/engine/Cargo.toml:4: engine (floor 2) uses engine-lazy (floor 4); only lower \
                            floors are allowed; move what is used down, or its user up";
            assert_eq!(found(&with("engine", rest), &[]), [expected]);
        }
        let across = with("engine-2pl", "[dependencies]\nfabius-engine-lazy.workspace = true\n");
        assert_eq!(found(&across, &[]).len(), 1);
        assert_eq!(found(&across, &[("engine-2pl", "engine-lazy", "because")]), [""; 0]);
    }

    /// Goal: what tests stand on is not shipped.
    #[test]
    fn testing_is_for_tests() {
        let with = |rest| found(&[("testing", ""), ("engine-lazy", rest)], &[]);
        assert_eq!(with("[dev-dependencies]\nfabius-testing.workspace = true\n"), [""; 0]);
        let expected = "crates/engine-lazy/Cargo.toml:4: engine-lazy is shipped with fabius-testing, which is for \
                        tests; move it to [dev-dependencies]";
        assert_eq!(with("[dependencies]\nfabius-testing.workspace = true\n"), [expected]);
    }

    /// Goal: a new crate is given a floor before it is used, and an exception goes when its reason does.
    #[test]
    fn floors_and_exceptions_are_kept_up() {
        let unknown = found(&[("attic", "")], &[]);
        let expected = "crates/attic/Cargo.toml:1: crate attic stands on no floor; give it one in xtask/src/tidy/floor.rs";
        assert_eq!(unknown, [expected]);
        assert_eq!(found(&[("cli", ""), ("bench", "")], &[("cli", "bench", "because")]).len(), 1);
        let up = [("value", "[dependencies]\nfabius-cli.workspace = true\n"), ("cli", "")];
        assert_eq!(found(&up, &[("value", "cli", "an exception does not reach up")]).len(), 2);
    }
}
