//! Functions of regular expressions (PostgreSQL's documentation, 9.7.3).

use super::regular_expression::{captured, matches_from, split_at_matches};
use super::{Definition, array_of, define, integer_at, of_programs, text_at};
use crate::sql_type::SqlType;
use crate::text_format::{TextStyle, cast_text};
use fabius_program::ir::Function;
use fabius_program::operation::function::regular_expression::pattern;
use fabius_value::{Error, Result, SqlState, Value};
use regex::Captures;

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
        define("regexp_replace(text, text, text, text?) text", |a, _| {
            let flags = text_at(a, 3);
            if flags.starts_with(|c: char| c.is_ascii_digit()) {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER,
                    format!("invalid regular expression option: \"{}\"", &flags[..1]),
                )
                .with_hint("If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly."));
            }
            replaced(a, 0, usize::from(!flags.contains('g')), flags)
        }),
        define("regexp_replace(text, text, text, int, int?, text?) text", |a, _| {
            let (start, flags) = (start_at(a, 3)?, text_at(a, 5));
            let which = match a.get(4) {
                Some(_) => count_at(a, 4, 0, "n")?,
                None => 1,
            };
            replaced(a, start, which, flags)
        }),
        define("regexp_match(text, text, text?) text[]", |a, _| {
            let regex = pattern(text_at(a, 1), single(a, 2, "regexp_match")?)?;
            Ok(regex.captures(text_at(a, 0)).map_or(Value::Null, |found| captured(&found)))
        }),
        define("fabius_matches_of(text, text, text?) text[]", |a, _| {
            let (flags, text) = (text_at(a, 2), text_at(a, 0));
            let regex = pattern(text_at(a, 1), flags)?;
            let most = if flags.contains('g') { usize::MAX } else { 1 };
            // One text for each match: its groups as an array's text.
            let groups = SqlType::Array(Box::new(SqlType::Text));
            let shown = |found: Captures<'_>| cast_text(&captured(&found), &groups, &TextStyle::default());
            Ok(array_of(matches_from(&regex, text, 0).take(most).map(|found| Value::Text(shown(found)))))
        }),
        of_programs("regexp_like(text, text, text?) bool", Function::Matches),
        define("regexp_count(text, text, int?, text?) int", |a, _| {
            let regex = pattern(text_at(a, 1), single(a, 3, "regexp_count")?)?;
            Ok(Value::Int(matches_from(&regex, text_at(a, 0), start_at(a, 2)?).count() as i32))
        }),
        define("regexp_instr(text, text, int?, int?, int?, text?, int?) int", |a, _| {
            let is_end = match integer_at(a, 4) {
                end @ (0 | 1) => end == 1,
                other => return Err(invalid("endoption", other)),
            };
            let found = found(a, 5, 6, "regexp_instr")?;
            let at = found.map(|(start, end)| if is_end { end } else { start });
            let characters = at.map(|at| text_at(a, 0)[..at].chars().count() as i32 + 1);
            Ok(Value::Int(characters.unwrap_or(0)))
        }),
        define("regexp_substr(text, text, int?, int?, text?, int?) text", |a, _| {
            let found = found(a, 4, 5, "regexp_substr")?;
            Ok(found.map(|(start, end)| text_at(a, 0)[start..end].to_string()).into())
        }),
        define("regexp_split_to_array(text, text, text?) text[]", |a, _| {
            let regex = pattern(text_at(a, 1), single(a, 2, "regexp_split_to_array")?)?;
            Ok(array_of(split_at_matches(&regex, text_at(a, 0)).into_iter().map(Value::from)))
        }),
    ]
}

fn invalid(parameter: &str, value: i64) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("invalid value for parameter \"{parameter}\": {value}"))
}

/// A number that is given, or else 1.
fn count_at(a: &[Value], at: usize, least: i64, parameter: &str) -> Result<usize> {
    let count = if at < a.len() { integer_at(a, at) } else { 1 };
    if count < least { Err(invalid(parameter, count)) } else { Ok(count as usize) }
}

/// The byte of the first argument at which a search starts, which is given as a character.
fn start_at(a: &[Value], at: usize) -> Result<usize> {
    let (text, start) = (text_at(a, 0), count_at(a, at, 1, "start")?);
    Ok(text.char_indices().nth(start - 1).map_or(text.len(), |(byte, _)| byte))
}

/// Flags of a function that looks for one match.
fn single<'a>(a: &'a [Value], at: usize, function: &str) -> Result<&'a str> {
    let flags = text_at(a, at);
    if flags.contains('g') {
        let message = format!("{function}() does not support the \"global\" option");
        return Err(Error::new(SqlState::INVALID_PARAMETER, message));
    }
    Ok(flags)
}

/// What `regexp_instr` and `regexp_substr` find: the bytes of a match or of a group of it, by a start and a number.
fn found(a: &[Value], flags: usize, group: usize, function: &str) -> Result<Option<(usize, usize)>> {
    let (start, which) = (start_at(a, 2)?, count_at(a, 3, 1, "n")?);
    let group = match integer_at(a, group) {
        group @ 0.. => group as usize,
        other => return Err(invalid("subexpr", other)),
    };
    let regex = pattern(text_at(a, 1), single(a, flags, function)?)?;
    let found = matches_from(&regex, text_at(a, 0), start).nth(which - 1);
    Ok(found.and_then(|found| found.get(group).map(|group| (group.start(), group.end()))))
}

/// The first argument with a match, or all if that is 0, replaced.
fn replaced(a: &[Value], start: usize, which: usize, flags: &str) -> Result<Value> {
    let (text, new) = (text_at(a, 0), text_at(a, 2));
    let regex = pattern(text_at(a, 1), flags)?;
    let (mut out, mut done) = (String::new(), 0);
    for (at, found) in matches_from(&regex, text, start).enumerate() {
        if which != 0 && at + 1 != which {
            continue;
        }
        if let Some(whole) = found.get(0) {
            out += &text[done..whole.start()];
            push_replacement(&mut out, new, &found);
            done = whole.end();
        }
        if which != 0 {
            break;
        }
    }
    out += &text[done..];
    Ok(Value::Text(out))
}

/// Appends what comes in place of a match: `\1` is a group, `\&` all of it.
fn push_replacement(out: &mut String, new: &str, found: &Captures<'_>) {
    let mut characters = new.chars();
    while let Some(character) = characters.next() {
        let group = match (character, characters.clone().next()) {
            ('\\', Some('&')) => 0,
            ('\\', Some(digit @ '1'..='9')) => digit as usize - '0' as usize,
            ('\\', Some(other)) => {
                characters.next();
                if other != '\\' {
                    out.push('\\');
                }
                out.push(other);
                continue;
            }
            (other, _) => {
                out.push(other);
                continue;
            }
        };
        characters.next();
        *out += found.get(group).map_or("", |group| group.as_str());
    }
}
