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
//! What stands between a `%` and the next one, or the end, is looked for as a whole, in a time that grows with the
//! text and the pattern. Only where there is a `_` in its midst each place is tried, and the time grows with their
//! product at worst.
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
                // Any characters and then one are one and then any.
                while let Some(part @ (Part::Any | Part::One)) = parts.get(at) {
                    at += 1;
                    if *part == Part::One && !skip(&mut rest) {
                        return Ok(false);
                    }
                }
                let exactly =
                    |part: &Part| if let Part::Exactly(wanted) = part { Some(*wanted) } else { None };
                let wanted: String = parts[at..].iter().map_while(exactly).collect();
                let ones_at = at + wanted.chars().count();
                let ones = parts[ones_at..].iter().take_while(|part| **part == Part::One).count();
                match parts.get(ones_at + ones) {
                    None => {
                        let mut before = rest.chars();
                        let is_long_enough = (0..ones).all(|_| before.next_back().is_some());
                        return Ok(is_long_enough && before.as_str().ends_with(&wanted));
                    }
                    Some(Part::Exactly(_)) => again = Some((at, rest)),
                    // The first place leaves most for what comes behind.
                    Some(Part::Any | Part::One | Part::Dangling) => {
                        let Some(found) = rest.find(&wanted) else { return Ok(false) };
                        rest = &rest[found + wanted.len()..];
                        if !(0..ones).all(|_| skip(&mut rest)) {
                            return Ok(false);
                        }
                        at = ones_at + ones;
                    }
                }
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

/// Passes over a character; false if there is none.
fn skip(text: &mut &str) -> bool {
    let mut characters = text.chars();
    let is_there = characters.next().is_some();
    *text = characters.as_str();
    is_there
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

    /// Tries each place for each `%`, as the definition says; an escape character with nothing behind it is an error
    /// where there is text left.
    fn tried(text: &[char], parts: &[Part]) -> Option<bool> {
        match (parts.first(), text.first()) {
            (None, first) => Some(first.is_none()),
            (Some(Part::Any), None) => tried(text, &parts[1..]),
            (Some(Part::Any), Some(_)) => match tried(text, &parts[1..])? {
                true => Some(true),
                false => tried(&text[1..], parts),
            },
            (Some(_), None) => Some(false),
            (Some(Part::Dangling), Some(_)) => None,
            (Some(Part::Exactly(wanted)), Some(found)) if wanted != found => Some(false),
            (Some(Part::One | Part::Exactly(_)), Some(_)) => tried(&text[1..], &parts[1..]),
        }
    }

    /// Goal: every short pattern answers as the definition does.
    #[test]
    fn short_patterns_are_as_defined() {
        let words = |letters: &'static [char], most: u32| {
            (0..=most).flat_map(move |length| {
                (0..letters.len().pow(length)).map(move |mut number| {
                    let letter = |_| {
                        let letter = letters[number % letters.len()];
                        number /= letters.len();
                        letter
                    };
                    (0..length).map(letter).collect::<String>()
                })
            })
        };
        let texts: Vec<String> = words(&['a', 'é'], 5).collect();
        for pattern in words(&['a', 'é', '%', '_', '\\'], 5) {
            let parts = parts(&pattern, Some(ESCAPE), false);
            for text in &texts {
                let defined = tried(&text.chars().collect::<Vec<_>>(), &parts);
                assert_eq!(like(text, &pattern), defined, "{text} like {pattern}");
            }
        }
    }

    /// Goal: long texts and patterns take about as long as reading them; place by place this would take hours.
    #[test]
    fn long_patterns_end() {
        let text = "a".repeat(1 << 22);
        let half = "a".repeat(1 << 21);
        for pattern in
            [format!("%{half}b%"), format!("%{half}b"), format!("%{half}b_%"), format!("%_{half}b_")]
        {
            assert_eq!(like(&text, &pattern), Some(false));
        }
        assert_eq!(like(&text, &"%a".repeat(1 << 20)), Some(true));
        assert_eq!(like(&text, &format!("{}b", "%a_".repeat(1 << 20))), Some(false));
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
