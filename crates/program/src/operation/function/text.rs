//! Functions of texts. Positions and lengths count characters, as PostgreSQL does.

use super::{pattern, regular_expression};
use crate::ir::Function;
use crate::operation::binary::join_text;
use bumpalo::Bump;
use fabius_value::{Datum, Error, Result, SqlState, limit, value::check_blob};

/// Computes a function of [`SIGNATURES`](super::SIGNATURES) whose first argument is a text (or the
/// code of a character); `None` for other functions.
///
/// # Errors
/// `22025` for a pattern or escape that is none, `2201B` for a regular expression that is none, `22023` for a position
/// outside the function's domain, `54000` for text too long and characters that do not exist.
pub(super) fn apply<'a>(
    function: Function,
    arguments: &[Datum<'a>],
    arena: &'a Bump,
) -> Result<Option<Datum<'a>>> {
    use Datum::{Boolean, Int, Text};
    Ok(Some(match (function, arguments) {
        (Function::Like | Function::ILike, [Text(text), Text(pattern)]) => {
            let folds = function == Function::ILike;
            Boolean(pattern::matches(text, pattern, Some(pattern::ESCAPE), folds)?)
        }
        (Function::Like | Function::ILike, [Text(text), Text(pattern), Text(escape)]) => {
            let folds = function == Function::ILike;
            Boolean(pattern::matches(text, pattern, pattern::escape_of(escape)?, folds)?)
        }
        (Function::Matches, [Text(text), Text(pattern), flags @ ..]) => {
            let flags = if let [Text(flags)] = flags { flags } else { "" };
            if flags.contains('g') {
                let message = "regexp_like() does not support the \"global\" option";
                return Err(Error::new(SqlState::INVALID_PARAMETER, message));
            }
            Boolean(regular_expression::pattern(pattern, flags)?.is_match(text))
        }
        (Function::StartsWith, [Text(text), Text(start)]) => Boolean(text.starts_with(start)),
        (Function::Position, [Text(text), Text(part)]) => {
            Int(text.find(part).map_or(0, |at| text[..at].chars().count() as i64 + 1))
        }
        (Function::Trim | Function::TrimLeft | Function::TrimRight, [Text(text), rest @ ..]) => {
            let set = match rest {
                [Text(set)] => *set,
                _ => " ",
            };
            let mut set: Vec<char> = set.chars().collect();
            set.sort_unstable();
            let in_set = |character: char| set.binary_search(&character).is_ok();
            let text = if function == Function::TrimLeft { text } else { text.trim_end_matches(in_set) };
            Text(if function == Function::TrimRight { text } else { text.trim_start_matches(in_set) })
        }
        (Function::Replace, [Text(text), Text(from), Text(to)]) => {
            if from.is_empty() {
                return Ok(Some(Text(text)));
            }
            let places = text.matches(from).count();
            check_blob((text.len() - places * from.len()).saturating_add(places.saturating_mul(to.len())))?;
            Text(arena.alloc_str(&text.replace(from, to)))
        }
        (Function::Translate, [Text(text), Text(from), Text(to)]) => made(&translate(text, from, to), arena)?,
        (Function::Left, [Text(text), Int(count)]) => Text(&text[..cut(text, *count)]),
        (Function::Right, [Text(_), Int(0)]) => Text(""),
        (Function::Right, [Text(text), Int(count)]) => {
            Text(&text[cut(text, count.checked_neg().unwrap_or(i64::MAX))..])
        }
        (Function::PadLeft | Function::PadRight, [Text(text), Int(length), rest @ ..]) => {
            let fill = match rest {
                [Text(fill)] => *fill,
                _ => " ",
            };
            pad(text, *length, fill, function == Function::PadLeft, arena)?
        }
        (Function::Repeat, [Text(text), Int(count)]) => {
            let count = usize::try_from(*count).unwrap_or(0);
            if text.len().saturating_mul(count) > limit::BLOB_BYTES {
                return Err(too_long());
            }
            Text(arena.alloc_str(&text.repeat(count)))
        }
        (Function::Reverse, [Text(text)]) => Text(arena.alloc_str(&text.chars().rev().collect::<String>())),
        (Function::Capitalise, [Text(text)]) => made(&fabius_value::letter_case::capital(text), arena)?,
        (Function::CodeOf, [Text(text)]) => {
            Int(text.chars().next().map_or(0, |first| i64::from(u32::from(first))))
        }
        (Function::CharacterOf, [Int(code)]) => made(character(*code)?.encode_utf8(&mut [0; 4]), arena)?,
        (Function::SplitPart, [Text(text), Text(by), Int(number)]) => Text(split_part(text, by, *number)?),
        (Function::OctetLength, [Text(text)]) => Int(text.len() as i64),
        (Function::Md5, [Text(text)]) => made(&format!("{:x}", md5::compute(text)), arena)?,
        _ => return Ok(None),
    }))
}

/// The texts one after the other, leaving out nulls.
///
/// # Errors
/// `54000` if that is too long.
pub(super) fn concatenate<'a>(arguments: &[Datum<'a>], arena: &'a Bump) -> Result<Datum<'a>> {
    let parts: Vec<&str> = arguments
        .iter()
        .filter_map(|argument| match argument {
            Datum::Text(text) => Some(*text),
            _ => None,
        })
        .collect();
    check_blob(parts.iter().map(|part| part.len()).sum())?;
    Ok(Datum::Text(join_text(&parts, arena)))
}

fn made<'a>(text: &str, arena: &'a Bump) -> Result<Datum<'a>> {
    check_blob(text.len())?;
    Ok(Datum::Text(arena.alloc_str(text)))
}

/// Where the first `count` characters end; counted from the end of the text if it is negative.
fn cut(text: &str, count: i64) -> usize {
    let place = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    match count {
        0 => 0,
        1.. => text.char_indices().nth(place(count.unsigned_abs())).map_or(text.len(), |(at, _)| at),
        _ => {
            let from_end = place(count.unsigned_abs() - 1);
            text.char_indices().rev().nth(from_end).map_or(0, |(at, _)| at)
        }
    }
}

fn pad<'a>(text: &'a str, length: i64, fill: &str, left: bool, arena: &'a Bump) -> Result<Datum<'a>> {
    let wanted = usize::try_from(length).unwrap_or(0);
    let has = text.chars().count();
    if has >= wanted || fill.is_empty() {
        return Ok(Datum::Text(&text[..cut(text, length.max(0))]));
    }
    // A character has at least a byte, so no text has more of them than bytes are allowed.
    if wanted > limit::BLOB_BYTES {
        return Err(too_long());
    }
    let filling: String = fill.chars().cycle().take(wanted - has).collect();
    check_blob(filling.len() + text.len())?;
    let parts = if left { [&filling, text] } else { [text, &filling] };
    Ok(Datum::Text(join_text(&parts, arena)))
}

/// Each character of `from` becomes that at its place in `to`, or nothing if there is none.
fn translate(text: &str, from: &str, to: &str) -> String {
    let mut to = to.chars();
    let mut changes: Vec<(char, Option<char>)> =
        from.chars().map(|character| (character, to.next())).collect();
    // Of a character that is there more than once, the first place counts.
    changes.sort_by_key(|(character, _)| *character);
    changes.dedup_by_key(|(character, _)| *character);
    let change = |character| match changes.binary_search_by_key(&character, |(changed, _)| *changed) {
        Ok(at) => changes[at].1,
        Err(_) => Some(character),
    };
    text.chars().filter_map(change).collect()
}

fn character(code: i64) -> Result<char> {
    let limited = |message: String| Error::new(SqlState::PROGRAM_LIMIT, message);
    match code {
        ..0 => Err(Error::new(SqlState::INVALID_PARAMETER, "character number must be positive")),
        0 => Err(limited("null character not permitted".into())),
        1..=0x10_FFFF => char::from_u32(code as u32)
            .ok_or_else(|| limited(format!("requested character not valid for encoding: {code}"))),
        _ => Err(limited(format!("requested character too large for encoding: {code}"))),
    }
}

/// A part by its number from 1, or from the end if it is negative; empty if there is none.
fn split_part<'t>(text: &'t str, by: &str, number: i64) -> Result<&'t str> {
    if number == 0 {
        return Err(Error::new(SqlState::INVALID_PARAMETER, "field position must not be zero"));
    }
    let at = usize::try_from(number.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let part = match number > 0 {
        _ if by.is_empty() => (at == 0).then_some(text),
        true => text.split(by).nth(at),
        false => text.rsplit(by).nth(at),
    };
    Ok(part.unwrap_or(""))
}

fn too_long() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT, "requested length too large")
}
