//! Files of a crate use each other one way: who reads one needs not read the other that it is read for.
//!
//! A file uses another if it names something of its module by `crate::`, `super::` or `self::`. What a module's own
//! file hands on of the modules below it (`pub use below::Thing`) is no use of them, and tests count for nothing.

use super::exception::FILES_IN_CIRCLES;
use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Crates with more files in circles than are listed, or fewer: then the list is to say so.
pub fn check(tree: &Tree) -> Vec<Finding> {
    judge(tree, FILES_IN_CIRCLES)
}

fn judge(tree: &Tree, listed: &[(&str, usize)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    for file in tree.ending(".rs") {
        if let Some((folder, path)) = file.path.split_once("/src/") {
            crates.entry(folder).or_default().add(path, file.code());
        }
    }
    let mut findings = Vec::new();
    for (folder, modules) in &crates {
        let circles = modules.circles();
        let found: usize = circles.iter().map(Vec::len).sum();
        let allowed = listed.iter().find(|(name, _)| name == folder).map_or(0, |(_, count)| *count);
        if found == allowed {
            continue;
        }
        let place = format!("{folder}/src/{}", circles.first().map_or("lib.rs", |circle| circle[0]));
        let shown: Vec<String> = circles.iter().map(|circle| circle.join(", ")).collect();
        let what = format!("{found} files are in circles, {allowed} are allowed: {}", shown.join("; "));
        let action = match found > allowed {
            true => "cut the circle: move what both need to a file of its own",
            false => "say so in FILES_IN_CIRCLES, so that they stay fewer",
        };
        findings.push(Finding::new(&place, 1, what, action));
    }
    findings
}

/// A crate's modules: the path of each (`a::b`), with its file and text.
#[derive(Default)]
struct Modules<'t> {
    files: BTreeMap<String, (&'t str, &'t str)>,
}

impl<'t> Modules<'t> {
    /// Takes a file by its path below `src`; programs of their own (`bin`) are no modules of the crate.
    fn add(&mut self, path: &'t str, code: &'t str) {
        let stem = path.strip_suffix(".rs").unwrap_or(path);
        let stem = stem.strip_suffix("/mod").unwrap_or(stem);
        let module = match stem {
            "lib" | "main" => String::new(),
            stem if stem.starts_with("bin/") || stem == "tests" || stem.ends_with("/tests") => return,
            stem => stem.replace('/', "::"),
        };
        self.files.insert(module, (path, code));
    }

    /// The module whose file a path leads to: its longest beginning that is one.
    fn of_path(&self, path: &str) -> Option<&str> {
        let mut path = path;
        loop {
            if let Some((module, _)) = self.files.get_key_value(path) {
                return Some(module);
            }
            path = path.rsplit_once("::").map_or("", |(before, _)| before);
        }
    }

    /// The modules that a module uses.
    fn used_by(&self, module: &str) -> BTreeSet<&str> {
        let Some((_, text)) = self.files.get(module) else { return BTreeSet::new() };
        let mut used = BTreeSet::new();
        let mut is_handed_on = false;
        for line in text.lines() {
            let line = line.trim_start();
            if line.starts_with("//") {
                continue;
            }
            if line.starts_with("pub") && line.contains(" use ") {
                is_handed_on = true;
            }
            for path in paths_in(line, module) {
                let Some(found) = self.of_path(&path) else { continue };
                let is_below = found.len() > module.len()
                    && (module.is_empty()
                        || found[module.len()..].starts_with("::") && found.starts_with(module));
                if found != module && !(is_handed_on && is_below) {
                    used.insert(found);
                }
            }
            if line.contains(';') {
                is_handed_on = false;
            }
        }
        used
    }

    /// Files that use each other, by their paths below `src`: each circle for itself.
    fn circles(&self) -> Vec<Vec<&'t str>> {
        let uses: BTreeMap<&str, BTreeSet<&str>> =
            self.files.keys().map(|module| (module.as_str(), self.used_by(module))).collect();
        // Modules reached from each; few hundred of them, so that this is quick enough.
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            uses.keys().map(|module| (*module, reached_from(module, &uses))).collect();
        let mut circles: Vec<Vec<&'t str>> = Vec::new();
        let mut seen = BTreeSet::new();
        for (module, there) in &reached {
            if !there.contains(module) || seen.contains(module) {
                continue;
            }
            let circle: Vec<&str> =
                there.iter().copied().filter(|other| reached[other].contains(module)).collect();
            seen.extend(circle.iter().copied());
            circles.push(circle.iter().map(|module| self.files[*module].0).collect());
        }
        circles
    }
}

fn reached_from<'m>(module: &str, uses: &BTreeMap<&'m str, BTreeSet<&'m str>>) -> BTreeSet<&'m str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = uses[module].iter().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(uses[next].iter().copied());
        }
    }
    reached
}

/// The modules and names that a line leads to, from the crate's root. Of a list in braces only what stands on the
/// line counts: a longer list is one of a module's names.
fn paths_in(line: &str, module: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in line.match_indices(start) {
            let before = line[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let mut base: Vec<&str> = match start {
                "crate::" => Vec::new(),
                _ => module.split("::").filter(|part| !part.is_empty()).collect(),
            };
            let mut rest = &line[at..];
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
            rest = rest.strip_prefix("crate::").or_else(|| rest.strip_prefix("self::")).unwrap_or(rest);
            let name = |text: &str| -> usize {
                text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len())
            };
            let (path, after) = rest.split_at(name(rest));
            let whole = |tail: &str| {
                let parts = base.iter().copied().chain(path.split("::")).chain(tail.split("::"));
                parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("::")
            };
            match after.strip_prefix('{') {
                Some(list) => {
                    let list = list.split('}').next().unwrap_or(list);
                    paths.extend(list.split(',').map(str::trim).map(|item| whole(&item[..name(item)])));
                }
                None => paths.push(whole("")),
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: files that use each other are found, over any number of steps; what a module hands on is no circle.
    #[test]
    fn circles_are_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "mod one;\nmod two;\npub use one::One;\n"),
            ("crates/a/src/one.rs", "use crate::two::inner::Two;\n"),
            ("crates/a/src/two/mod.rs", "pub mod inner;\npub use self::inner::Two;\n"),
            ("crates/a/src/two/inner.rs", "use super::super::three::{Three, four};\n"),
            (
                "crates/a/src/three.rs",
                "fn f() { crate::one::f() }\n#[cfg(test)]\nmod tests { use crate::four::F; }\n",
            ),
            ("crates/a/src/four.rs", "use crate::three::Three;\n// crate::five\n"),
            ("crates/b/src/lib.rs", "pub use crate::below::X;\nstruct Y;\n"),
            ("crates/b/src/below.rs", "use super::Y;\n"),
        ]);
        let found = |listed: &[(&str, usize)]| -> Vec<String> {
            judge(&tree, listed).iter().map(|finding| finding.what.clone()).collect()
        };
        let circle = "3 files are in circles, 0 are allowed: one.rs, three.rs, two/inner.rs";
        assert_eq!(found(&[]), [circle]);
        assert!(found(&[("crates/a", 3)]).is_empty());
        assert_eq!(found(&[("crates/a", 4)]).len(), 1);
    }
}
