//! A comment of unsafe code names what it stands on: not another comment, and not a promise of nobody in particular.

use super::{Finding, Tree};

/// What names nothing. Written in halves so that this file does not contain it.
const EMPTY: &[&str] = &[
    concat!("SAFETY: as ", "above"),
    concat!("SAFETY: as ", "below"),
    concat!("SAFETY: the same ", "contract"),
    concat!("the caller's ", "promise"),
    concat!("# Safety", "-relevant"),
];

/// Lines with such a comment.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs")) {
        for (number, line) in file.lines() {
            let is_of_unsafe = line.contains("SAFETY:") || line.contains("# Safety");
            if let Some(empty) = EMPTY.iter().find(|empty| is_of_unsafe && line.contains(**empty)) {
                let action = "name the invariant, and who keeps it";
                findings.push(Finding::new(&file.path, number, format!("\"{empty}\""), action));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: comments of unsafe code that name nothing are found, and no others.
    #[test]
    fn comments_that_name_nothing_are_found() {
        let code = format!(
            "//! Doc.\n// {}.\n// {}; it is there.\n// SAFETY: the epoch is pinned.\n// as {}\n// SAFETY: {}\n",
            EMPTY[0], EMPTY[2], "above", EMPTY[3]
        );
        let tree = Tree::of(&[("a.rs", &code), ("a.md", &code)]);
        let found: Vec<usize> = check(&tree).into_iter().map(|finding| finding.line).collect();
        assert_eq!(found, [2, 3, 6]);
    }
}
