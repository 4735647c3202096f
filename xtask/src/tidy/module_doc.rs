//! Every Rust file begins by saying what it is.

use super::{Finding, Tree};

/// Rust files whose first line is not a `//!` comment with words in it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let undocumented = tree.ending(".rs").filter(|file| {
        let first = file.text.lines().next().unwrap_or_default();
        first.strip_prefix("//!").is_none_or(|words| words.trim().is_empty())
    });
    undocumented
        .map(|file| {
            let action = "begin the file with `//!` and one sentence that says what it answers";
            Finding::new(&file.path, 1, "no module doc", action)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only a sentence on the very first line counts, in every kind of Rust file.
    #[test]
    fn the_first_line_says_what_the_file_is() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! What a is.\n"),
            ("crates/a/src/empty.rs", ""),
            ("crates/a/src/late.rs", "use std::fmt;\n//! Late.\n"),
            ("crates/a/tests/blank.rs", "//!\n//! Words.\n"),
            ("crates/a/examples/item.rs", "/// An item.\nfn main() {}\n"),
            ("docs/page.md", "no Rust"),
        ]);
        let found: Vec<String> = check(&tree).into_iter().map(|finding| finding.path).collect();
        let expected = [
            "crates/a/src/empty.rs",
            "crates/a/src/late.rs",
            "crates/a/tests/blank.rs",
            "crates/a/examples/item.rs",
        ];
        assert_eq!(found, expected);
    }
}
