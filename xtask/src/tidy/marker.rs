//! Nothing is left for later in a comment or a macro: it is done, or it is in `docs/status.md`.

use super::{Finding, Tree};

/// Words that mark unfinished work. Written in halves so that this file does not contain them.
const MARKERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("to", "do!"),
    concat!("unimplem", "ented!"),
];

/// Kinds of files that are looked through.
const SUFFIXES: &[&str] = &[".rs", ".md", ".toml", ".fab", ".sh", ".yml", ".ci/run"];

/// Lines with a marker as a whole word.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| SUFFIXES.iter().any(|suffix| file.path.ends_with(suffix))) {
        for (number, line) in file.lines() {
            for marker in MARKERS.iter().filter(|marker| has_word(line, marker)) {
                let action = "do it, or put it in docs/status.md with its consequence";
                findings.push(Finding::new(&file.path, number, format!("{marker} marker"), action));
            }
        }
    }
    findings
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: whole words only, in every text of ours, with their line.
    #[test]
    fn markers_are_found_as_words() {
        let (first, second) = (MARKERS[0], MARKERS[1]);
        let code = format!("//! Doc.\nfn main() {{}} // {first}: later\nconst {first}S: u8 = 1;\n");
        let code = format!("{code}fn f() {{ {}() }}\n", MARKERS[3]);
        let page = format!("a {second}, and x{second}");
        let tree = Tree::of(&[("a.rs", &code), ("docs/a.md", &page), ("a.svg", &page)]);
        let found: Vec<(String, usize)> =
            check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect();
        let expected = [("a.rs", 2), ("a.rs", 4), ("docs/a.md", 1)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_string(), line)));
    }
}
