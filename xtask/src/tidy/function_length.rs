//! A function fits on a screen or two; past a length it is two functions.

use super::exception::LONG_FUNCTIONS;
use super::{Finding, Tree};

/// Lines of a function, its head and its end included.
const LINES_MAX: usize = 100;

/// Functions that are too long and not listed, or longer than they are listed, and listed ones that are shorter.
pub fn check(tree: &Tree) -> Vec<Finding> {
    judge(tree, LONG_FUNCTIONS)
}

fn judge(tree: &Tree, listed: &[(&str, &str, usize)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = Vec::new();
    for file in tree.ending(".rs").filter(|file| file.path.contains("/src/")) {
        for (number, name, lines) in
            functions(file.code()).into_iter().filter(|(.., lines)| *lines > LINES_MAX)
        {
            let bound = listed.iter().find(|(path, of, _)| *path == file.path && *of == name);
            let bound = bound.map_or(LINES_MAX, |(.., lines)| *lines);
            found.push((file.path.as_str(), name, lines));
            if lines > bound {
                let what = format!("{name} has {lines} lines, at most {bound} are allowed");
                findings.push(Finding::new(&file.path, number, what, "divide it by what it does"));
            }
        }
    }
    for (path, name, bound) in listed {
        let lines =
            found.iter().find(|(of, called, _)| of == path && called == name).map(|(.., lines)| *lines);
        if lines.is_none_or(|lines| lines < *bound) {
            let what = match lines {
                Some(lines) => format!("{name} is listed with {bound} lines, and has {lines}"),
                None => format!("{name} is listed as long, and is not"),
            };
            findings.push(Finding::new(
                path,
                1,
                what,
                "say so in LONG_FUNCTIONS of xtask/src/tidy/exception.rs",
            ));
        }
    }
    findings
}

/// The functions of formatted code: first line, name, lines.
fn functions(code: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        let words = ["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "unsafe ", "extern \"C\" "];
        let mut rest = start;
        while let Some(after) = words.iter().find_map(|word| rest.strip_prefix(word)) {
            rest = after;
        }
        let Some(named) = rest.strip_prefix("fn ") else { continue };
        let name = named.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        // What a trait only declares has no lines.
        let signature = lines[at..].iter().find(|line| line.ends_with([';', '{', '}']));
        if signature.is_some_and(|last| last.ends_with(';')) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - start.len()]);
        let body = lines[at..].iter().position(|line| *line == end || line.ends_with("{}"));
        if let Some(more) = body {
            functions.push((at + 1, name, more + 1));
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: long functions are found, listed ones may not grow, and a list that is not needed is found.
    #[test]
    fn long_functions_are_listed_or_divided() {
        let long =
            |name: &str, lines: usize| format!("pub fn {name}() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
        let code =
            [long("fits", LINES_MAX), long("long", LINES_MAX + 1), long("table", LINES_MAX + 5)].concat();
        let code = format!("trait Declared {{\n    fn only(\n        of: u8,\n    );\n}}\n{code}");
        let tree = Tree::of(&[("crates/a/src/lib.rs", &code), ("crates/a/tests/b.rs", &long("test", 300))]);
        let found = |listed: &[(&str, &str, usize)]| -> Vec<String> {
            judge(&tree, listed).into_iter().map(|finding| finding.what).collect()
        };
        let path = "crates/a/src/lib.rs";
        assert_eq!(
            found(&[(path, "table", LINES_MAX + 4)]),
            ["long has 101 lines, at most 100 are allowed", "table has 105 lines, at most 104 are allowed"]
        );
        assert_eq!(
            found(&[(path, "long", 101), (path, "table", 110), (path, "fits", 120)]),
            ["table is listed with 110 lines, and has 105", "fits is listed as long, and is not"]
        );
    }
}
