//! Regular expressions: PostgreSQL's in the syntax of the library, which looks at each character of a text once.

use fabius_value::{Error, Result, SqlState};
use regex::{Regex, RegexBuilder};
use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::{LazyLock, Mutex, PoisonError};

/// How many compiled patterns are kept.
const PATTERNS: usize = 256;

static COMPILED: LazyLock<Mutex<HashMap<(String, String), Regex>>> = LazyLock::new(Mutex::default);

/// A pattern, compiled. Compiled ones are kept, as the same one comes for each row.
///
/// # Errors
/// `2201B` for a pattern that is none, `22023` for an option that is none.
pub fn pattern(text: &str, flags: &str) -> Result<Regex> {
    let key = (text.to_string(), flags.to_string());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = compiled.get(&key) {
        return Ok(regex.clone());
    }
    let (text, options) = Options::of(text, flags)?;
    let syntax = if options.is_literal { regex::escape(text) } else { library_syntax(text) };
    let regex = RegexBuilder::new(&syntax)
        .case_insensitive(options.ignores_case)
        .dot_matches_new_line(options.dot_matches_newline)
        .multi_line(options.anchors_at_newline)
        .ignore_whitespace(options.is_expanded)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| {
            let reason = error.to_string();
            Error::new(
                SqlState(*b"2201B"),
                format!("invalid regular expression: {}", reason.lines().last().unwrap_or_default().trim()),
            )
        })?;
    if compiled.len() >= PATTERNS {
        compiled.clear();
    }
    compiled.insert(key, regex.clone());
    Ok(regex)
}

/// How a pattern is meant.
struct Options {
    ignores_case: bool,
    dot_matches_newline: bool,
    anchors_at_newline: bool,
    is_expanded: bool,
    is_literal: bool,
}

impl Options {
    /// The options of a call, and those that stand at the beginning of the pattern, `(?i)`; with the rest of it.
    fn of<'t>(text: &'t str, flags: &str) -> Result<(&'t str, Options)> {
        let mut options = Options {
            ignores_case: false,
            dot_matches_newline: true,
            anchors_at_newline: false,
            is_expanded: false,
            is_literal: false,
        };
        options.set(flags)?;
        if let Some(literal) = text.strip_prefix("***=") {
            options.is_literal = true;
            return Ok((literal, options));
        }
        let text = text.strip_prefix("***:").unwrap_or(text);
        let embedded = text.strip_prefix("(?").and_then(|rest| rest.split_once(')'));
        match embedded {
            Some((letters, rest)) if letters.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                options.set(letters)?;
                Ok((rest, options))
            }
            _ => Ok((text, options)),
        }
    }

    /// Of several letters about one thing the last is meant.
    fn set(&mut self, letters: &str) -> Result<()> {
        for letter in letters.chars() {
            match letter {
                'i' => self.ignores_case = true,
                'c' => self.ignores_case = false,
                'n' | 'm' => (self.dot_matches_newline, self.anchors_at_newline) = (false, true),
                's' => (self.dot_matches_newline, self.anchors_at_newline) = (true, false),
                'p' => (self.dot_matches_newline, self.anchors_at_newline) = (false, false),
                'w' => (self.dot_matches_newline, self.anchors_at_newline) = (true, true),
                'x' => self.is_expanded = true,
                't' => self.is_expanded = false,
                'q' => self.is_literal = true,
                'g' | 'e' => {}
                other => {
                    let message = format!("invalid regular expression option: \"{other}\"");
                    return Err(Error::new(SqlState::INVALID_PARAMETER, message));
                }
            }
        }
        Ok(())
    }
}

/// An advanced regular expression of PostgreSQL as the library writes it: they differ in escapes, and in what is
/// special within brackets.
fn library_syntax(text: &str) -> String {
    let mut regex = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => push_escape(&mut regex, characters.next()),
            '[' => push_brackets(&mut regex, &mut characters),
            other => regex.push(other),
        }
    }
    regex
}

/// What a backslash and the character behind it mean.
fn push_escape(regex: &mut String, escaped: Option<char>) {
    match escaped {
        Some('m') => *regex += "\\b{start}",
        Some('M') => *regex += "\\b{end}",
        Some('y') => *regex += "\\b",
        Some('Y') => *regex += "\\B",
        Some('b') => *regex += "\\x08",
        Some('B') => *regex += "\\\\",
        Some('e') => *regex += "\\x1B",
        Some('Z') => *regex += "\\z",
        Some(letter) if letter.is_ascii_alphanumeric() => regex.extend(['\\', letter]),
        Some(other) => *regex += &regex::escape(&other.to_string()),
        None => regex.push('\\'),
    }
}

/// What stands in brackets, behind the first of them.
fn push_brackets(regex: &mut String, characters: &mut Peekable<Chars<'_>>) {
    regex.push('[');
    regex.extend(characters.next_if_eq(&'^'));
    if characters.next_if_eq(&']').is_some() {
        *regex += "\\]";
    }
    while let Some(character) = characters.next() {
        match character {
            '\\' => push_escape(regex, characters.next()),
            '[' if matches!(characters.peek(), Some(':' | '.' | '=')) => {
                regex.push('[');
                push_class(regex, characters);
            }
            '[' | '&' | '~' => regex.extend(['\\', character]),
            other => regex.push(other),
        }
        if character == ']' {
            break;
        }
    }
}

/// The rest of a class of characters such as `[:alpha:]`, behind its bracket, if one stands there.
pub fn push_class(regex: &mut String, characters: &mut Peekable<Chars<'_>>) {
    let Some(mark) = characters.next_if(|next| matches!(next, ':' | '.' | '=')) else { return };
    regex.push(mark);
    while let Some(inner) = characters.next() {
        regex.push(inner);
        if inner == mark && characters.peek() == Some(&']') {
            regex.extend(characters.next());
            return;
        }
    }
}
