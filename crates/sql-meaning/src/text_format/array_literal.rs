//! The text of an array: `{1,NULL,"a b"}` (PostgreSQL's documentation, 8.15.6).
//!
//! Blanks around elements do not count, unless they are quoted or have a backslash before them. An element is quoted
//! as a whole or not at all; only one that is neither quoted nor escaped can be `NULL`.

use fabius_value::{Error, Result, SqlState};
use std::iter::Peekable;
use std::str::Chars;

/// The elements as text; `None` for null.
///
/// # Errors
/// `22P02` for what is no array, `0A000` for one of several dimensions.
pub fn elements(text: &str) -> Result<Vec<Option<String>>> {
    let malformed = || Error::new(SqlState::INVALID_TEXT, format!("malformed array literal: \"{text}\""));
    let inside = text.trim_matches(is_blank).strip_prefix('{').ok_or_else(malformed)?;
    let mut rest = inside.chars().peekable();
    let mut elements = Vec::new();
    skip_blanks(&mut rest);
    if rest.next_if_eq(&'}').is_none() {
        loop {
            skip_blanks(&mut rest);
            if rest.peek() == Some(&'{') {
                let message = "arrays of several dimensions are not supported";
                return Err(Error::new(SqlState::NOT_SUPPORTED, message));
            }
            elements.push(element(&mut rest).ok_or_else(malformed)?);
            match rest.next() {
                Some(',') => {}
                Some('}') => break,
                _ => return Err(malformed()),
            }
        }
    }
    match rest.next() {
        None => Ok(elements),
        Some(_) => Err(malformed()),
    }
}

/// An element with the blanks behind it; `None` if there is none.
fn element(rest: &mut Peekable<Chars<'_>>) -> Option<Option<String>> {
    let mut text = String::new();
    if rest.next_if_eq(&'"').is_some() {
        loop {
            match rest.next()? {
                '"' => break,
                '\\' => text.push(rest.next()?),
                other => text.push(other),
            }
        }
        skip_blanks(rest);
        return Some(Some(text));
    }
    // Up to here nothing is a blank that does not count.
    let (mut counted, mut is_escaped) = (0, false);
    while let Some(next) = rest.next_if(|next| !matches!(next, ',' | '}' | '{' | '"')) {
        let next = match next {
            '\\' => {
                is_escaped = true;
                rest.next()?
            }
            next if is_blank(next) => {
                text.push(next);
                continue;
            }
            next => next,
        };
        text.push(next);
        counted = text.len();
    }
    text.truncate(counted);
    if text.is_empty() {
        return None;
    }
    Some((is_escaped || !text.eq_ignore_ascii_case("null")).then_some(text))
}

fn skip_blanks(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|next| is_blank(*next)).is_some() {}
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: elements come out as PostgreSQL reads them.
    #[test]
    fn elements_are_read() {
        let read = |text: &str| {
            let shown = |element: Option<String>| element.map_or("-".to_string(), |text| format!("<{text}>"));
            elements(text).map(|elements| elements.into_iter().map(shown).collect::<String>())
        };
        assert_eq!(read("{}").unwrap(), "");
        assert_eq!(read(" { } ").unwrap(), "");
        assert_eq!(read("{1, 2 ,3 }").unwrap(), "<1><2><3>");
        assert_eq!(read(r#"{ "b" , "a\"\\" }"#).unwrap(), r#"<b><a"\>"#);
        assert_eq!(read(r#"{null, NULL ,"null",nu\ll}"#).unwrap(), "--<null><null>");
        assert_eq!(read(r"{a\ , b c,\ }").unwrap(), "<a ><b c>< >");
        assert_eq!(read(r#"{"",","}"#).unwrap(), "<><,>");
        for bad in [
            "",
            "1",
            "{",
            "{1",
            "1}",
            "{1}x",
            "{,}",
            "{a,}",
            r#"{"b" x}"#,
            r#"{a"b"}"#,
            r#"{"a" "b"}"#,
            r"{\",
        ] {
            assert_eq!(read(bad).unwrap_err().state(), SqlState::INVALID_TEXT, "{bad}");
        }
        assert_eq!(read("{{1},{2}}").unwrap_err().state(), SqlState::NOT_SUPPORTED);
    }
}
