//! A file or folder is named by what it answers for, with a noun.

use super::{Finding, Tree};

/// Names that say nothing of what is behind them.
const EMPTY_NAMES: &[&str] =
    &["common", "core", "helper", "helpers", "misc", "stuff", "types", "util", "utils", "utilities"];

/// Rust files, and folders of them, with empty names. A folder is reported once, at its first file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for file in tree.ending(".rs") {
        let mut start = 0;
        for part in file.path.split('/') {
            let end = start + part.len();
            let place = &file.path[..end];
            let stem = part.strip_suffix(".rs").unwrap_or(part);
            if EMPTY_NAMES.contains(&stem) && !seen.contains(&place) {
                seen.push(place);
                let action = "name it by the one thing it answers for, or divide it";
                findings.push(Finding::new(&file.path, 1, format!("{place} is named {stem}"), action));
            }
            start = end + 1;
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: empty names are found as files, modules and folders; longer names that contain them are not.
    #[test]
    fn empty_names_are_refused() {
        let tree = Tree::of(&[
            ("crates/a/src/common/one.rs", ""),
            ("crates/a/src/common/two.rs", ""),
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/common_prefix.rs", ""),
            ("docs/misc.md", ""),
        ]);
        let found: Vec<String> = check(&tree).into_iter().map(|finding| finding.what).collect();
        assert_eq!(found, ["crates/a/src/common is named common", "crates/a/src/utils.rs is named utils"]);
    }
}
