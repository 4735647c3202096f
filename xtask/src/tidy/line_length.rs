//! A line is read without turning the head.
//!
//! Lines of tables and of drawings between three backticks of documents, rows of tables in comments, and lines with a
//! part of a text in quotes, which has no better place to end, may be longer. So may what a test writes into a
//! document, between two comments of HTML.

use super::{Finding, Tree};

/// Columns of a line.
const COLUMNS_MAX: usize = 120;

/// Lines that are too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let long: Vec<(usize, usize)> = match file.path.rsplit('.').next() {
            Some("rs") => long_in_code(&file.text),
            Some("md") => long_in_document(&file.text),
            _ => continue,
        };
        for (line, columns) in long {
            let what = format!("{columns} columns, at most {COLUMNS_MAX} are allowed");
            findings.push(Finding::new(&file.path, line, what, "break the line"));
        }
    }
    findings
}

/// The number and columns of a line that is too long.
fn too_long(number: usize, line: &str) -> Option<(usize, usize)> {
    let columns = line.chars().count();
    (columns > COLUMNS_MAX).then_some((number, columns))
}

fn long_in_document(text: &str) -> Vec<(usize, usize)> {
    let (mut is_drawing, mut is_written) = (false, false);
    let mut long = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            is_drawing = !is_drawing;
        } else if start.starts_with("<!--") {
            is_written = !start.starts_with("<!-- end");
        } else if !is_drawing && !is_written && !start.starts_with('|') {
            long.extend(too_long(at + 1, line));
        }
    }
    long
}

fn long_in_code(text: &str) -> Vec<(usize, usize)> {
    let mut long = Vec::new();
    let mut quotes = Quotes::Outside;
    for (at, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let is_comment = start.starts_with("//");
        let has_text = quotes != Quotes::Outside || line.contains('"');
        if is_comment && quotes == Quotes::Outside {
            let row = start.trim_start_matches(['/', '!', ' ']);
            if !row.starts_with('|') {
                long.extend(too_long(at + 1, line));
            }
            continue;
        }
        if !has_text {
            long.extend(too_long(at + 1, line));
        }
        quotes = quotes.after(line);
    }
    long
}

/// Whether a line of code begins within a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    Outside,
    /// Within `"`.
    Inside,
    /// Within `r#"`, with so many `#`.
    Raw(usize),
}

impl Quotes {
    /// Where the line after this one begins.
    fn after(mut self, line: &str) -> Quotes {
        let bytes = line.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let marks = |from: usize| bytes[from..].iter().take_while(|byte| **byte == b'#').count();
            match (self, bytes[at]) {
                (Quotes::Outside, b'/') if bytes.get(at + 1) == Some(&b'/') => return self,
                (Quotes::Outside, b'\'') if bytes.get(at + 1) == Some(&b'"') => at += 2,
                (Quotes::Outside, b'\'') if bytes.get(at + 1) == Some(&b'\\') => at += 3,
                (Quotes::Outside, b'r') if bytes.get(at + 1 + marks(at + 1)) == Some(&b'"') => {
                    self = Quotes::Raw(marks(at + 1));
                    at += 1 + marks(at + 1);
                }
                (Quotes::Outside, b'"') => self = Quotes::Inside,
                (Quotes::Inside, b'\\') => at += 1,
                (Quotes::Inside, b'"') => self = Quotes::Outside,
                (Quotes::Raw(count), b'"') if marks(at + 1) >= count => self = Quotes::Outside,
                _ => {}
            }
            at += 1;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: long lines are found, but for those that have no better place to end.
    #[test]
    fn long_lines_are_found() {
        let words = "word ".repeat(30);
        let code = format!(
            "//! {words}\n//! | {words} |\nlet a = \"{words}\";\n/// {words}\nlet b = r#\"\n{words}\n\"#;\n{words}\n\
             let c = '\"';\n{words}\nlet d = \"a \\\" b\n{words}\";\n{words}\n"
        );
        let document = format!(
            "{words}\n| {words} |\n```text\n{words}\n```\n<!-- a -->\n{words}\n<!-- end -->\n{words}\n"
        );
        let tree = Tree::of(&[("a.rs", &code), ("a.md", &document), ("a.txt", &words)]);
        let found: Vec<(String, usize)> =
            check(&tree).into_iter().map(|finding| (finding.path, finding.line)).collect();
        let of = |path: &str, lines: &[usize]| -> Vec<(String, usize)> {
            lines.iter().map(|line| (path.to_string(), *line)).collect()
        };
        assert_eq!(found, [of("a.rs", &[1, 4, 8, 10, 13]), of("a.md", &[1, 9])].concat());
    }
}
