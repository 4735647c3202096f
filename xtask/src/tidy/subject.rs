//! Documentation names its subject.
//!
//! Whoever reads it at a use, or in an index, does not see what stands before it in the file: `The same for rows` and
//! `Its name` say nothing there.

use super::{Finding, Tree};

/// Words that documentation cannot begin with.
const DEPENDENT: &[&str] = &["The same", "Its"];

/// Documentation that begins with a word for something outside of it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".rs")) {
        let mut within = false;
        for (line, text) in file.lines() {
            let words = documentation(text);
            if let Some(words) = words.filter(|_| !within) {
                let first = DEPENDENT.iter().find(|first| {
                    words.strip_prefix(**first).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
                });
                if let Some(first) = first {
                    let what = format!("documentation begins with \"{first}\"");
                    findings.push(Finding::new(&file.path, line, what, "name the subject"));
                }
            }
            within = words.is_some();
        }
    }
    findings
}

/// The words of a line of documentation.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the first words of each documentation are looked at, and no others.
    #[test]
    fn first_words_are_looked_at() {
        let code = "/// Its name.\n/// The same.\nfn a() {}\n    /// The same, once more.\n    fn b() {}\n\
                    /// What it is.\n///\n/// Its end.\nfn c() {}\n/// The sameness.\n//\n// Its own.\n//! The same\n";
        let tree = Tree::of(&[("a.rs", code), ("a.md", "/// Its name")]);
        let lines: Vec<usize> = check(&tree).into_iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 4, 13]);
    }
}
