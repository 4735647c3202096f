//! Regular expressions: PostgreSQL's in the syntax of the library, and the patterns of `LIKE` and `SIMILAR TO` as such.

use super::array_of;
use fabius_value::{Error, Result, SqlState, Value};
use parking_lot::Mutex;
use regex::{Captures, Regex, RegexBuilder};
use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;
use std::sync::LazyLock;

/// How many compiled patterns are kept.
const PATTERNS: usize = 256;

static COMPILED: LazyLock<Mutex<HashMap<(String, String), Regex>>> = LazyLock::new(Mutex::default);

/// A pattern, compiled. Compiled ones are kept, as the same one comes for each row.
pub fn pattern(text: &str, flags: &str) -> Result<Regex> {
    let key = (text.to_string(), flags.to_string());
    let mut compiled = COMPILED.lock();
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
fn push_class(regex: &mut String, characters: &mut Peekable<Chars<'_>>) {
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

/// What a pattern matches of a text from a byte on, one match behind the other; behind an empty one, from the next
/// character on.
pub fn matches_from<'r>(
    regex: &'r Regex,
    text: &'r str,
    from: usize,
) -> impl Iterator<Item = Captures<'r>> + use<'r> {
    let mut next = Some(from);
    std::iter::from_fn(move || {
        let found = regex.captures_at(text, next?)?;
        let whole = found.get(0)?;
        next = match whole.is_empty() {
            true => text[whole.end()..].chars().next().map(|passed| whole.end() + passed.len_utf8()),
            false => Some(whole.end()),
        };
        Some(found)
    })
}

/// The groups that a match found, or all of it if it has none.
pub fn captured(found: &Captures<'_>) -> Value {
    let group = |at| found.get(at).map(|group: regex::Match<'_>| group.as_str().to_string()).into();
    if found.len() == 1 { array_of([group(0)]) } else { array_of((1..found.len()).map(group)) }
}

/// The parts of a text between what a pattern matches. Empty matches at its ends, or next to another, part nothing.
pub fn split_at_matches<'t>(regex: &Regex, text: &'t str) -> Vec<&'t str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for found in matches_from(regex, text, 0).filter_map(|found| found.get(0)) {
        if !found.is_empty() || (found.start() > from && found.start() < text.len()) {
            parts.push(&text[from..found.start()]);
            from = found.end();
        }
    }
    parts.push(&text[from..]);
    parts
}

/// A `LIKE` pattern as a regular expression.
pub fn like_pattern(like: &str) -> String {
    let mut regex = String::from("^");
    let mut characters = like.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => regex += ".*",
            '_' => regex.push('.'),
            '\\' => regex += &regex::escape(&characters.next().map(String::from).unwrap_or_default()),
            other => regex += &regex::escape(&other.to_string()),
        }
    }
    regex + "$"
}

/// Whether bytes are as a pattern of `LIKE` says.
pub fn bytes_are_like(a: &[Value]) -> Result<bool> {
    let [Value::Bytea(bytes), Value::Bytea(like), ..] = a else { return Ok(false) };
    let mut regex = String::from("^");
    let mut rest = like.iter();
    while let Some(byte) = rest.next() {
        let plain = |byte: &u8| format!("\\x{byte:02X}");
        match byte {
            b'%' => regex += ".*",
            b'_' => regex.push('.'),
            b'\\' => regex += &rest.next().map(plain).unwrap_or_default(),
            other => regex += &plain(other),
        }
    }
    regex.push('$');
    let built = regex::bytes::RegexBuilder::new(&regex).unicode(false).dot_matches_new_line(true).build();
    let built = built.map_err(|_| Error::new(SqlState::PROGRAM_LIMIT, "the pattern of LIKE is too long"))?;
    Ok(built.is_match(bytes))
}

/// A pattern of `SIMILAR TO` as a regular expression.
pub fn similar_pattern(text: &str, escape: &str) -> Result<String> {
    let mut characters = escape.chars();
    let (escape, None) = (characters.next(), characters.next()) else {
        return Err(Error::new(SqlState(*b"22025"), "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    };
    let mut regex = String::from("^(?:");
    let mut characters = text.chars().peekable();
    // Within brackets: how many characters of them there were.
    let mut in_brackets: Option<usize> = None;
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            if let Some(escaped) = characters.next() {
                regex.extend(['\\', escaped]);
            }
            in_brackets = in_brackets.map(|count| count + 1);
            continue;
        }
        if let Some(count) = in_brackets {
            if character == '\\' {
                regex.push('\\');
            }
            regex.push(character);
            if character == '[' {
                push_class(&mut regex, &mut characters);
            }
            let is_negation = character == '^' && count == 0;
            in_brackets = match character {
                ']' if count > 0 => None,
                _ if is_negation => Some(0),
                _ => Some(count + 1),
            };
            continue;
        }
        match character {
            '%' => regex += ".*",
            '_' => regex.push('.'),
            '(' => regex += "(?:",
            '\\' | '.' | '^' | '$' => regex.extend(['\\', character]),
            '[' => {
                regex.push('[');
                in_brackets = Some(0);
            }
            other => regex.push(other),
        }
    }
    Ok(regex + ")$")
}
