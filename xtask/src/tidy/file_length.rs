//! A file is one thing; past a length it is two.

use super::exception::LONG_FILES;
use super::{Finding, Tree};

/// Lines of one Rust file.
const LINES_MAX: usize = 800;

/// Rust files that are too long and not listed, and listed ones that are not too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    judge(tree, LONG_FILES)
}

fn judge(tree: &Tree, listed: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs") {
        let lines = file.text.lines().count();
        let is_listed = listed.iter().any(|(path, _)| *path == file.path);
        if lines > LINES_MAX && !is_listed {
            let what = format!("{lines} lines, at most {LINES_MAX} are allowed");
            findings.push(Finding::new(&file.path, LINES_MAX + 1, what, "divide it by what it answers for"));
        }
        if lines <= LINES_MAX && is_listed {
            let what = format!("listed as long, has {lines} lines");
            findings.push(Finding::new(
                &file.path,
                1,
                what,
                "take it off LONG_FILES in xtask/src/tidy/exception.rs",
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the bound itself is allowed, a listed file may pass it, and a list that is not needed is found.
    #[test]
    fn long_files_are_listed_or_divided() {
        let (fits, long) = ("x\n".repeat(LINES_MAX), "x\n".repeat(LINES_MAX + 1));
        let tree =
            Tree::of(&[("fits.rs", &fits), ("long.rs", &long), ("table.rs", &long), ("long.md", &long)]);
        let found = |listed: &[(&str, &str)]| -> Vec<String> {
            judge(&tree, listed).into_iter().map(|finding| finding.path).collect()
        };
        assert_eq!(found(&[("table.rs", "a table of constants")]), ["long.rs"]);
        assert_eq!(found(&[("fits.rs", "was long"), ("long.rs", ""), ("table.rs", "")]), ["fits.rs"]);
    }
}
