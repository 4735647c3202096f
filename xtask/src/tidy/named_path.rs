//! Documents name only files that exist.
//!
//! Looked at are, outside code blocks, words in backquotes that have a slash or a known extension, and
//! the targets of links. In comments of Rust files, only names that end in `.rs`.
//!
//! A name is right if it is the path of a file or folder from the root or from the document's own
//! folder, or the end of the path of one: `slice/delta.rs` and `delta.rs` are as good as
//! `crates/program/src/slice/delta.rs`. A `*` stands for one part: `crates/*/src`.

use super::tree::SourceFile;
use super::{Finding, Tree};

/// Endings by which a word without a slash is taken for a file.
const EXTENSIONS: &[&str] = &[".rs", ".md", ".toml", ".fab", ".sh", ".txt", ".svg", ".yml", ".lock"];

const ACTION: &str = "name what is there now; what is still to come is \"not yet\"";

/// Names in documents and Rust comments that lead nowhere.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in tree.ending(".md") {
        check_page(tree, page, &mut findings);
    }
    for code in tree.ending(".rs") {
        for (number, line) in code.lines().filter(|(_, line)| is_doc(line)) {
            for name in backquoted(line).filter(|name| name.ends_with(".rs") && is_path(name)) {
                if !exists(tree, &code.path, name) {
                    findings.push(Finding::new(&code.path, number, format!("`{name}` is not there"), ACTION));
                }
            }
        }
    }
    findings
}

fn check_page(tree: &Tree, page: &SourceFile, findings: &mut Vec<Finding>) {
    let mut in_block = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        if in_block {
            continue;
        }
        let names = backquoted(line).filter(|name| is_path(name)).chain(links(line));
        for name in names.filter(|name| !exists(tree, &page.path, name)) {
            findings.push(Finding::new(&page.path, number, format!("`{name}` is not there"), ACTION));
        }
    }
}

fn is_doc(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//!") || line.starts_with("///")
}

/// What stands between single backquotes.
fn backquoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Targets of links into the repository, without what follows `#`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let own = targets.filter(|target| !target.contains(":") && !target.starts_with('#'));
    own.map(|target| target.split('#').next().unwrap_or_default())
}

/// Whether a word in backquotes means a file or folder. A part of one letter is of none: `calls/s`.
fn is_path(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let begins = word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '*');
    let has_parts = word.contains('/') && word.split('/').all(|part| part.len() != 1 || part == "*");
    let is_named = EXTENSIONS.iter().any(|end| word.ends_with(end) && word.len() > end.len());
    begins && (has_parts || is_named) && word.chars().all(plain)
}

fn exists(tree: &Tree, from: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    if tree.has(name) || tree.has(&joined(folder, name)) {
        return true;
    }
    let parts: Vec<&str> = name.split('/').collect();
    tree.files.iter().any(|file| {
        let path: Vec<&str> = file.path.split('/').collect();
        let matches =
            |window: &[&str]| window.iter().zip(&parts).all(|(have, want)| *want == "*" || have == want);
        path.windows(parts.len()).any(matches)
    })
}

/// A path relative to a folder, with `..` taken out.
fn joined(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/log/src/frame.rs", "//! A frame, read by `reading.rs`.\n"),
            ("crates/log/Cargo.toml", ""),
            ("docs/decisions/one.md", ""),
            ("docs/page.md", page),
        ]);
        let names = check(&tree).into_iter().filter(|finding| finding.path == "docs/page.md");
        names.map(|finding| finding.what).collect()
    }

    /// Goal: full paths, path ends, folders, `*` and links are followed; what is gone is found.
    #[test]
    fn names_lead_somewhere() {
        let good = "`crates/log/src/frame.rs` `src/frame.rs` `frame.rs` `crates/log` `log/` `crates/*/src` \
                    [one](decisions/one.md#why) [root](../docs/decisions/one.md) [site](https://example.org/a.md)";
        assert_eq!(found(good), [""; 0]);
        assert_eq!(
            found("`crates/log/src/gone.rs` `gone.md`"),
            ["`crates/log/src/gone.rs` is not there", "`gone.md` is not there"]
        );
        assert_eq!(found("`crates/*/tests` [two](decisions/two.md)").len(), 2);
    }

    /// Goal: what is no path is left alone: code blocks, operators, numbers, calls.
    #[test]
    fn other_words_are_left_alone() {
        assert_eq!(
            found("`x / y` `1.5` `count(list)` `numeric(12, 2)` `--out DIR` `/=` `.rs` `a.b` `calls/s`"),
            [""; 0]
        );
        assert_eq!(found("```text\n`gone.rs`\n```\n"), [""; 0]);
    }

    /// Goal: a comment that names a file of the past is found, with its line.
    #[test]
    fn comments_name_files_that_exist() {
        let tree = Tree::of(&[("crates/log/src/frame.rs", "//! A frame.\n//!\n//! Read by `reading.rs`.\n")]);
        let expected = Finding::new("crates/log/src/frame.rs", 3, "`reading.rs` is not there", ACTION);
        assert_eq!(check(&tree), [expected]);
    }
}
