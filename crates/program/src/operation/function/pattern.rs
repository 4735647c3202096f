//! `like`: `%` stands for any characters, `_` for one; an escape character takes away what the
//! next one means.
//!
//! The pattern is read from the left, and the place after the last `%` is where matching goes back
//! to: what lies before it needs no second try, because a later place cannot match more.
//!
//! ```text
//! text      m i s s i s s i p p i
//! pattern   m % i s s i p %
//!             ^-- first tried here, then one character further, until `issip` is found
//! ```
//!
//! As in PostgreSQL, a pattern that ends with its escape character is an error only if matching
//! gets there.

use fabius_value::{Error, Result, SqlState};

/// The escape character of a pattern that does not say another.
pub(super) const ESCAPE: char = '\\';

/// Reads `escape e`: one character, or none.
pub(super) fn escape_of(text: &str) -> Result<Option<char>> {
    let mut characters = text.chars();
    let escape = characters.next();
    if characters.next().is_some() {
        return Err(Error::new(SqlState::INVALID_ESCAPE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    Ok(escape)
}

/// Whether matching this pattern can never be an error.
pub fn is_sound(pattern: &str, escape: Option<char>) -> bool {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape && characters.next().is_none() {
            return false;
        }
    }
    true
}

/// One part of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Exactly(char),
    /// An escape character with nothing behind it.
    Dangling,
}

fn parts(pattern: &str, escape: Option<char>, folds: bool) -> Vec<Part> {
    let mut parts = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let literal = match character {
            _ if Some(character) == escape => match characters.next() {
                Some(escaped) => escaped,
                None => {
                    parts.push(Part::Dangling);
                    break;
                }
            },
            '%' => {
                parts.push(Part::Any);
                continue;
            }
            '_' => {
                parts.push(Part::One);
                continue;
            }
            literal => literal,
        };
        if folds {
            parts.extend(literal.to_lowercase().map(Part::Exactly));
        } else {
            parts.push(Part::Exactly(literal));
        }
    }
    parts
}

/// Whether a text is as a pattern says; with `folds`, whatever the case of letters.
pub(super) fn matches(text: &str, pattern: &str, escape: Option<char>, folds: bool) -> Result<bool> {
    let parts = parts(pattern, escape, folds);
    if folds {
        let folded: String = text.chars().flat_map(char::to_lowercase).collect();
        return matches_parts(&folded, &parts);
    }
    matches_parts(text, &parts)
}

fn matches_parts(text: &str, parts: &[Part]) -> Result<bool> {
    let (mut rest, mut at) = (text, 0);
    // After the last `%`: its place in the pattern, and the text from where it was tried last.
    let mut again: Option<(usize, &str)> = None;
    loop {
        let mut characters = rest.chars();
        let next = characters.next();
        let fits = match (parts.get(at), next) {
            (Some(Part::Any), _) => {
                while parts.get(at) == Some(&Part::Any) {
                    at += 1;
                }
                match parts.get(at) {
                    None => return Ok(true),
                    Some(Part::Dangling) if next.is_some() => return Err(dangling()),
                    Some(_) => {}
                }
                again = Some((at, rest));
                continue;
            }
            (None, None) => return Ok(true),
            (None, Some(_)) => false,
            (Some(_), None) => return Ok(false),
            (Some(Part::One), Some(_)) => true,
            (Some(Part::Exactly(wanted)), Some(found)) => *wanted == found,
            (Some(Part::Dangling), Some(_)) => return Err(dangling()),
        };
        if fits {
            at += 1;
            rest = characters.as_str();
            continue;
        }
        let Some((after, from)) = &mut again else { return Ok(false) };
        let mut later = from.chars();
        later.next();
        *from = later.as_str();
        (at, rest) = (*after, *from);
    }
}

fn dangling() -> Error {
    Error::new(SqlState::INVALID_ESCAPE, "LIKE pattern must not end with escape character")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> Option<bool> {
        matches(text, pattern, Some(ESCAPE), false).ok()
    }

    /// Goal: what PostgreSQL 15 answers.
    #[test]
    fn patterns() {
        for (text, pattern, expected) in [
            ("abc", "abc", Some(true)),
            ("abc", "a%", Some(true)),
            ("abc", "_b_", Some(true)),
            ("abc", "_b", Some(false)),
            ("mississippi", "m%issip%", Some(true)),
            ("mississippi", "m%issip", Some(false)),
            ("aaa", "%aa%a", Some(true)),
            ("ab", "%__%_", Some(false)),
            ("é", "_", Some(true)),
            ("", "", Some(true)),
            ("", "%", Some(true)),
            ("", "_", Some(false)),
            ("a%", "a\\%", Some(true)),
            ("ab", "a\\%", Some(false)),
            ("a\\b", "a\\b", Some(false)),
            ("a\\b", "a\\\\b", Some(true)),
            ("a", "x\\", Some(false)),
            ("a", "a\\", Some(false)),
            ("ab", "a\\", None),
            ("ab", "%\\", None),
            ("a", "a%\\", Some(false)),
            ("", "\\", Some(false)),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} like {pattern}");
        }
        let escaped =
            |text, pattern, escape| matches(text, pattern, escape_of(escape).unwrap(), false).unwrap();
        assert!(!escaped("abc", "a#%", "#"));
        assert!(escaped("a%", "a#%", "#"));
        assert!(escaped("a\\b", "a\\b", ""));
        assert!(matches("ABC", "a_c", Some(ESCAPE), true).unwrap());
        assert!(!matches("AxB", "axX%", Some('X'), true).unwrap());
        assert!(matches("Ax%", "axX%", Some('X'), true).unwrap());
        assert_eq!(escape_of("ab").unwrap_err().state(), SqlState::INVALID_ESCAPE);
    }

    /// Goal: patterns called sound never fail.
    #[test]
    fn soundness() {
        assert!(is_sound("a%\\_", Some(ESCAPE)));
        assert!(is_sound("a\\\\", Some(ESCAPE)));
        assert!(!is_sound("a\\", Some(ESCAPE)));
        assert!(is_sound("a\\", None));
    }
}
