//! What regular expressions find, and the patterns of `LIKE` and `SIMILAR TO` as such.

use super::array_of;
use fabius_program::operation::function::regular_expression::push_class;
use fabius_value::{Error, Result, SqlState, Value};
use regex::{Captures, Regex};

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
