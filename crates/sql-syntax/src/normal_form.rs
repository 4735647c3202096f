//! The normal form of a statement: its text without its literals.
//!
//! ```text
//! UPDATE c SET v = v + 1 WHERE name = 'a'    form:     UPDATE c SET v = v + ␁ WHERE name = ␄
//!                                            literals: 1, a
//! ```
//!
//! Statements of one form are nearly always one program with other arguments; which literals of a form are arguments,
//! and which have a say in the program, only binding it tells ([`Recipe`]). Finding the form is
//! one pass over the text, far quicker than parsing it.

use sqlparser::tokenizer::Location;

/// Literals of a statement, at most: one with more is not looked for by its form.
const LITERALS: usize = 64;

/// What stands in it for a literal: its type by the way it is written.
const INT: char = '\u{1}';
const BIGINT: char = '\u{2}';
const DECIMAL: char = '\u{3}';
const QUOTED: char = '\u{4}';

/// A text without its literals, and the literals.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalForm {
    /// The text with a mark for each literal.
    pub text: String,
    /// The literals in their order.
    pub literals: Vec<Literal>,
}

/// A number, or a text in single quotes.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// What it says: digits, or what is within the quotes.
    pub text: String,
    /// Where it begins: line and column from 1.
    pub place: Location,
}

impl NormalForm {
    /// The normal form of a text. `None` if it has no literals or too many, if it has parameters (then it is prepared,
    /// and comes again as it is), or if it has what makes literals hard to tell: comments, dollar quotes, and literals
    /// with a prefix, an exponent and the like.
    pub fn of(text: &str) -> Option<NormalForm> {
        let mut scan = Scan { text, at: 0, line: 1, line_start: 0, form: String::with_capacity(text.len()) };
        let mut literals = Vec::new();
        while let Some(byte) = scan.peek() {
            let start = scan.at;
            let (mark, said) = match byte {
                b'\'' => (QUOTED, scan.quoted(b'\'')?.replace("''", "'")),
                b'0'..=b'9' => scan.number()?,
                _ => {
                    scan.other(byte)?;
                    continue;
                }
            };
            // Texts below each other are one.
            let is_continued = mark == QUOTED && scan.form.trim_end().ends_with(QUOTED);
            if literals.len() == LITERALS || is_continued {
                return None;
            }
            literals.push(Literal { text: said, place: scan.place(start) });
            scan.form.push(mark);
            scan.count_lines(start);
        }
        (!literals.is_empty()).then_some(NormalForm { text: scan.form, literals })
    }

    /// Whether the same of its literals are equal as of another's of the same form: so that what compares parts of
    /// one statement with each other finds the same in both.
    pub fn repeats_as(literals: &[Literal], others: &[Literal]) -> bool {
        let pairs = (0..literals.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        literals.len() == others.len()
            && pairs
                .into_iter()
                .all(|(a, b)| (literals[a].text == literals[b].text) == (others[a].text == others[b].text))
    }
}

/// A place in a text, and the form so far.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    line_start: usize,
    form: String,
}

impl<'t> Scan<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes on while bytes are such.
    fn pass(&mut self, such: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&such) {
            self.at += 1;
        }
    }

    /// Line and column of a byte on the current line.
    fn place(&self, byte: usize) -> Location {
        let before = self.text.get(self.line_start..byte).unwrap_or_default();
        Location { line: self.line, column: before.chars().count() as u64 + 1 }
    }

    fn count_lines(&mut self, from: usize) {
        let passed = self.text.as_bytes()[from..self.at].iter().enumerate();
        for (offset, _) in passed.filter(|(_, byte)| **byte == b'\n') {
            self.line += 1;
            self.line_start = from + offset + 1;
        }
    }

    /// Copies what was passed since `from` to the form.
    fn copy(&mut self, from: usize) {
        self.form.push_str(&self.text[from..self.at]);
        self.count_lines(from);
    }

    /// What stands between quotes, with quotes within still doubled.
    fn quoted(&mut self, quote: u8) -> Option<&'t str> {
        let start = self.at + 1;
        loop {
            self.at += 1;
            self.pass(|byte| byte != quote);
            self.peek()?;
            self.at += 1;
            if self.peek() != Some(quote) {
                return self.text.get(start..self.at - 1);
            }
        }
    }

    /// Digits, perhaps with a point among them.
    fn number(&mut self) -> Option<(char, String)> {
        let start = self.at;
        self.pass(|byte| byte.is_ascii_digit());
        let is_whole = self.peek() != Some(b'.');
        if !is_whole {
            self.at += 1;
            self.pass(|byte| byte.is_ascii_digit());
        }
        if self.peek().is_some_and(|byte| is_word(byte) || byte == b'.') {
            return None;
        }
        let digits = &self.text[start..self.at];
        let mark = match is_whole {
            true if digits.parse::<i32>().is_ok() => INT,
            true if digits.parse::<i64>().is_ok() => BIGINT,
            true => return None,
            false => DECIMAL,
        };
        Some((mark, digits.to_string()))
    }

    /// What is no literal.
    fn other(&mut self, first: u8) -> Option<()> {
        let start = self.at;
        self.at += 1;
        match first {
            b'"' => {
                self.at = start;
                self.quoted(b'"')?;
            }
            b'$' => return None,
            b'-' if self.peek() == Some(b'-') => return None,
            b'/' if self.peek() == Some(b'*') => return None,
            b'&' if self.peek() == Some(b'\'') => return None,
            b'.' if self.peek().is_some_and(|byte| byte.is_ascii_digit()) => return None,
            0..=4 => return None,
            _ if is_word(first) => {
                self.pass(|byte| is_word(byte) || byte == b'$');
                if self.peek() == Some(b'\'') {
                    return None;
                }
            }
            _ => self.pass(|byte| byte.is_ascii_whitespace()),
        }
        self.copy(start);
        Some(())
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::Tokens;
    use sqlparser::tokenizer::Token;

    fn said(text: &str) -> Option<Vec<String>> {
        NormalForm::of(text).map(|form| form.literals.into_iter().map(|literal| literal.text).collect())
    }

    #[test]
    fn statements_that_differ_in_literals_have_one_normal_form() {
        let one = NormalForm::of("UPDATE c SET v = v + 1 WHERE name = 'it''s'").unwrap();
        let other = NormalForm::of("UPDATE c SET v = v + 22 WHERE name = ''").unwrap();
        assert_eq!(one.text, other.text);
        assert_eq!(one.literals[1].text, "it's");
        assert_eq!(other.literals[1].text, "");
        assert!(
            NormalForm::of("SELECT 1").unwrap().text != NormalForm::of("SELECT 3000000000").unwrap().text
        );
        assert!(NormalForm::of("SELECT 1").unwrap().text != NormalForm::of("SELECT 1.5").unwrap().text);
        assert!(NormalForm::of("SELECT 1").unwrap().text != NormalForm::of("SELECT '1'").unwrap().text);
    }

    #[test]
    fn names_are_no_literals() {
        assert_eq!(said("select t1.c2, \"a'3\" from t1"), None);
        assert_eq!(said("select t1.c2 from t1 where y=5"), Some(vec!["5".into()]));
        assert_eq!(said("values(1,-2.50,'x')"), Some(vec!["1".into(), "2.50".into(), "x".into()]));
    }

    #[test]
    fn what_is_hard_to_tell_has_no_normal_form() {
        for text in [
            "select 1 -- one",
            "select /* 1 */ 1",
            "select 1 + $1",
            "select $$1$$, 1",
            "select e'\\n', 1",
            "select U&'a', 1",
            "select 1e5",
            "select 0x1F",
            "select 1_000",
            "select .5",
            "select 'a",
            "select 99999999999999999999",
            "select 1\u{1}",
        ] {
            assert_eq!(NormalForm::of(text), None, "{text}");
        }
    }

    #[test]
    fn literals_are_where_the_parser_finds_them() {
        let text = "insert into \"tä\"\n values (12, 'ä\nb',\n\t'c', 1.5)";
        let form = NormalForm::of(text).unwrap();
        let tokens = Tokens::of(text).unwrap();
        let literal =
            |at: usize| matches!(tokens.token(at), Token::Number(..) | Token::SingleQuotedString(_));
        let found: Vec<Location> =
            (0..tokens.len()).filter(|at| literal(*at)).map(|at| tokens.location(at)).collect();
        let places: Vec<Location> = form.literals.iter().map(|literal| literal.place).collect();
        assert_eq!(places, found);
    }

    #[test]
    fn equal_literals_are_told() {
        let literals = |text| NormalForm::of(text).unwrap().literals;
        assert!(NormalForm::repeats_as(&literals("f(1, 1, 2)"), &literals("f(3, 3, 4)")));
        assert!(!NormalForm::repeats_as(&literals("f(1, 1, 2)"), &literals("f(3, 4, 4)")));
    }
}
