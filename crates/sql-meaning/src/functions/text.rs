//! Functions of text and bytes.

use super::regular_expression::similar_pattern;
use super::{Call, Definition, array_of, define, elements_at, integer_at, of_programs, text_at, truth_at};
use crate::text_format::{cast_text, text};
use fabius_program::ir::Function;
use fabius_program::operation::function::regular_expression::pattern;
use fabius_sql_syntax::identifier::{quote_identifier, quote_literal};
use fabius_value::{Error, Result, SqlState, Value, letter_case};

/// Most characters that `repeat`, `lpad` and `rpad` make.
const LENGTH: usize = 64 << 20;

/// All of them.
pub fn definitions() -> Vec<Definition> {
    let mut all = vec![
        define("lower(text) text", |a, _| Ok(Value::Text(letter_case::lower(text_at(a, 0)))))
            .in_programs("lower"),
        define("upper(text) text", |a, _| Ok(Value::Text(letter_case::upper(text_at(a, 0)))))
            .in_programs("upper"),
        define("initcap(text) text", |a, _| Ok(Value::Text(letter_case::capital(text_at(a, 0)))))
            .in_programs("initcap"),
        of_programs("reverse(text) text", Function::Reverse),
        of_programs("ascii(text) int", Function::CodeOf),
        of_programs("chr(int) text", Function::CharacterOf),
        define("concat(any...) text null", |a, call| Ok(Value::Text(joined(a, call, 0, "")))),
        define("concat_ws(text, any...) text null", |a, call| match a.first() {
            Some(Value::Text(separator)) => Ok(Value::Text(joined(a, call, 1, separator))),
            _ => Ok(Value::Null),
        }),
        of_programs("left(text, int) text", Function::Left),
        of_programs("right(text, int) text", Function::Right),
        define("substr(text, int, int?) text", substring).in_programs("substring"),
        define("substring(text, int, int?) text", substring).in_programs("substring"),
        define("substring(text, text) text", |a, _| {
            let regex = pattern(text_at(a, 1), "")?;
            let found = regex.captures(text_at(a, 0)).and_then(|found| found.get(1).or(found.get(0)));
            Ok(found.map(|found| found.as_str().to_string()).into())
        }),
        define("replace(text, text, text) text", |a, _| {
            let from = text_at(a, 1);
            let replaced = if from.is_empty() {
                text_at(a, 0).to_string()
            } else {
                text_at(a, 0).replace(from, text_at(a, 2))
            };
            Ok(Value::Text(replaced))
        })
        .in_programs("replace"),
        define("translate(text, text, text) text", |a, _| {
            let to: Vec<char> = text_at(a, 2).chars().collect();
            let from: Vec<char> = text_at(a, 1).chars().collect();
            let translated = text_at(a, 0).chars().filter_map(|c| match from.iter().position(|f| *f == c) {
                Some(at) => to.get(at).copied(),
                None => Some(c),
            });
            Ok(Value::Text(translated.collect()))
        })
        .in_programs("translate"),
        define("repeat(text, int) text", |a, _| {
            let (text, n) = (text_at(a, 0), integer_at(a, 1).max(0) as usize);
            if text.len().saturating_mul(n) > LENGTH {
                return Err(Error::new(SqlState::PROGRAM_LIMIT, "requested length too large"));
            }
            Ok(Value::Text(text.repeat(n)))
        })
        .in_programs("repeat"),
        define("lpad(text, int, text?) text", |a, _| padded(a, true)).in_programs("lpad"),
        define("rpad(text, int, text?) text", |a, _| padded(a, false)).in_programs("rpad"),
        of_programs("btrim(text, text?) text", Function::Trim),
        of_programs("ltrim(text, text?) text", Function::TrimLeft),
        of_programs("rtrim(text, text?) text", Function::TrimRight),
        of_programs("strpos(text, text) int", Function::Position),
        define("position(text, text) int", |a, _| Ok(Value::Int(position(text_at(a, 1), text_at(a, 0))))),
        of_programs("starts_with(text, text) bool", Function::StartsWith),
        of_programs("split_part(text, text, int) text", Function::SplitPart),
        define("overlay(text, text, int, int?) text", overlay),
        define("like_escape(text, text) text", |a, _| {
            Ok(Value::Text(with_backslashes(text_at(a, 0), text_at(a, 1))))
        }),
        define("quote_ident(text) text", |a, _| Ok(Value::Text(quote_identifier(text_at(a, 0))))),
        define("quote_literal(text) text", |a, _| Ok(Value::Text(quote_literal(text_at(a, 0))))),
        define("quote_literal(anyelement) text", |a, call| {
            let text = call
                .types
                .first()
                .map(|sql_type| cast_text(&a[0], sql_type, &call.environment.style))
                .unwrap_or_default();
            Ok(Value::Text(quote_literal(&text)))
        }),
        define("quote_nullable(text) text null", |a, _| {
            Ok(Value::Text(match a.first() {
                Some(Value::Text(text)) => quote_literal(text),
                _ => "NULL".into(),
            }))
        }),
        define("format(text, any...) text null", format_text),
        of_programs("md5(text) text", Function::Md5),
        define("get_bit(bytea, bigint) int", |a, _| {
            let (bytes, at) = (bytes_at(a, 0), integer_at(a, 1));
            let byte = usize::try_from(at / 8).ok().filter(|_| at >= 0).and_then(|byte| bytes.get(byte));
            let byte = byte.ok_or_else(|| no_byte(at, bytes.len() * 8))?;
            Ok(Value::Int((byte >> (at % 8) & 1).into()))
        }),
        define("set_bit(bytea, bigint, int) bytea", |a, _| {
            let (mut bytes, at, bit) = (bytes_at(a, 0), integer_at(a, 1), integer_at(a, 2));
            let count = bytes.len() * 8;
            let byte = usize::try_from(at / 8).ok().filter(|_| at >= 0).and_then(|byte| bytes.get_mut(byte));
            let byte = byte.ok_or_else(|| no_byte(at, count))?;
            if !(0..=1).contains(&bit) {
                return Err(Error::new(SqlState::INVALID_PARAMETER, "new bit must be 0 or 1"));
            }
            *byte = *byte & !(1 << (at % 8)) | (bit as u8) << (at % 8);
            Ok(Value::Bytea(bytes))
        }),
        define("parse_ident(text, bool?) text[]", |a, _| {
            let is_whole = a.len() < 2 || truth_at(a, 1);
            Ok(array_of(identifiers(text_at(a, 0), is_whole)?.into_iter().map(Value::from)))
        }),
        define("||(bytea, bytea) bytea", |a, _| Ok(Value::Bytea([bytes_at(a, 0), bytes_at(a, 1)].concat()))),
        define("substr(bytea, int, int?) bytea", part_of_bytes).in_programs("substring"),
        define("substring(bytea, int, int?) bytea", part_of_bytes).in_programs("substring"),
        define("position(bytea, bytea) int", |a, _| {
            Ok(Value::Int(place_of_bytes(&bytes_at(a, 0), &bytes_at(a, 1))))
        }),
        define("get_byte(bytea, int) int", |a, _| {
            let (bytes, at) = (bytes_at(a, 0), integer_at(a, 1));
            let byte = usize::try_from(at).ok().and_then(|at| bytes.get(at).copied());
            byte.map(|byte| Value::Int(byte.into())).ok_or_else(|| no_byte(at, bytes.len()))
        }),
        define("set_byte(bytea, int, int) bytea", |a, _| {
            let (mut bytes, at) = (bytes_at(a, 0), integer_at(a, 1));
            let count = bytes.len();
            let place = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at));
            *place.ok_or_else(|| no_byte(at, count))? = integer_at(a, 2) as u8;
            Ok(Value::Bytea(bytes))
        }),
        define("bit_count(bytea) bigint", |a, _| {
            Ok(Value::BigInt(bytes_at(a, 0).iter().map(|byte| i64::from(byte.count_ones())).sum()))
        }),
        define("to_hex(bigint) text", |a, _| Ok(Value::Text(format!("{:x}", integer_at(a, 0))))),
        define("to_hex(int) text", |a, _| Ok(Value::Text(format!("{:x}", integer_at(a, 0) as i32)))),
        define("encode(bytea, text) text", encode),
        define("decode(text, text) bytea", decode),
        define("convert_from(bytea, name) text", |a, _| {
            String::from_utf8(bytes_at(a, 0))
                .map(Value::Text)
                .map_err(|_| Error::new(SqlState(*b"22021"), "invalid byte sequence for encoding \"UTF8\""))
        }),
        define("convert_to(text, name) bytea", |a, _| Ok(Value::Bytea(text_at(a, 0).as_bytes().to_vec()))),
        define("string_to_array(text, text, text?) text[] null", |a, _| {
            if a[0].is_null() {
                return Ok(Value::Null);
            }
            let null = a.get(2).filter(|value| !value.is_null());
            let item = |text: &str| match null {
                Some(Value::Text(null)) if null == text => Value::Null,
                _ => Value::from(text),
            };
            let text = text_at(a, 0);
            Ok(match a.get(1) {
                _ if text.is_empty() => array_of([]),
                Some(Value::Text(separator)) if separator.is_empty() => array_of([item(text)]),
                Some(Value::Text(separator)) => array_of(text.split(separator.as_str()).map(item)),
                _ => array_of(text.chars().map(|c| item(&c.to_string()))),
            })
        }),
        define("~(text, text) bool", |a, _| matches(a, "").map(Value::Boolean)),
        define("~*(text, text) bool", |a, _| matches(a, "i").map(Value::Boolean)),
        define("!~(text, text) bool", |a, _| Ok(Value::Boolean(!matches(a, "")?))),
        define("!~*(text, text) bool", |a, _| Ok(Value::Boolean(!matches(a, "i")?))),
        // Behind `SIMILAR TO`.
        define("fabius_similar(text, text, text?) bool", |a, _| {
            let escape = if a.len() > 2 { text_at(a, 2) } else { "\\" };
            let regex = similar_pattern(text_at(a, 1), escape)?;
            Ok(Value::Boolean(pattern(&regex, "s")?.is_match(text_at(a, 0))))
        }),
        define("unistr(text) text", |a, _| Ok(a[0].clone())),
        define("gen_random_uuid() uuid volatile", |_, _| Ok(random_uuid())),
        define("uuid_generate_v4() uuid volatile", |_, _| Ok(random_uuid())),
    ];
    all.extend(lengths());
    all.extend(joining());
    all
}

/// Behind `string_agg` with a separator that is computed: what is before a part is its own.
fn joining() -> Vec<Definition> {
    vec![
        define("fabius_joined(text[], text[]) text", |a, _| {
            let mut joined = String::new();
            for (at, (part, separator)) in elements_at(a, 0).iter().zip(elements_at(a, 1)).enumerate() {
                if let (Value::Text(separator), true) = (separator, at > 0) {
                    joined.push_str(&separator);
                }
                if let Value::Text(part) = part {
                    joined.push_str(part);
                }
            }
            Ok(Value::Text(joined))
        }),
        define("fabius_joined_bytes(bytea[], bytea[]) bytea", |a, _| {
            let mut joined = Vec::new();
            for (at, (part, separator)) in elements_at(a, 0).iter().zip(elements_at(a, 1)).enumerate() {
                if let (Value::Bytea(separator), true) = (separator, at > 0) {
                    joined.extend(separator);
                }
                if let Value::Bytea(part) = part {
                    joined.extend(part);
                }
            }
            Ok(Value::Bytea(joined))
        }),
    ]
}

/// How long texts and bytes are.
fn lengths() -> Vec<Definition> {
    vec![
        define("length(text) int", |a, _| Ok(Value::Int(text_at(a, 0).chars().count() as i32)))
            .in_programs("length"),
        define("length(bytea) int", |a, _| Ok(Value::Int(bytes_at(a, 0).len() as i32))).in_programs("length"),
        define("char_length(text) int", |a, _| Ok(Value::Int(text_at(a, 0).chars().count() as i32)))
            .in_programs("length"),
        define("character_length(text) int", |a, _| Ok(Value::Int(text_at(a, 0).chars().count() as i32)))
            .in_programs("length"),
        of_programs("octet_length(text) int", Function::OctetLength),
        // What a pattern is compared with.
        define("fabius_with_blanks(any) text", |a, call| Ok(Value::Text(with_blanks(a, call)))),
        define("octet_length(bytea) int", |a, _| Ok(Value::Int(bytes_at(a, 0).len() as i32))),
        define("bit_length(text) int", |a, _| Ok(Value::Int(text_at(a, 0).len() as i32 * 8))),
    ]
}

fn random_uuid() -> Value {
    Value::Bytea(uuid::Uuid::new_v4().as_bytes().to_vec())
}

/// Whether a regular expression is found in a text.
fn matches(a: &[Value], flags: &str) -> Result<bool> {
    Ok(pattern(text_at(a, 1), flags)?.is_match(text_at(a, 0)))
}

pub(super) fn bytes_at(arguments: &[Value], at: usize) -> Vec<u8> {
    match arguments.get(at) {
        Some(Value::Bytea(bytes)) => bytes.clone(),
        _ => Vec::new(),
    }
}

fn part_of_bytes(a: &[Value], _: &Call) -> Result<Value> {
    let bytes = bytes_at(a, 0);
    let (start, count) = window(a)?;
    Ok(Value::Bytea(bytes.into_iter().skip(start).take(count).collect()))
}

fn negative_length() -> Error {
    Error::new(SqlState(*b"22011"), "negative substring length not allowed")
}

fn overlay(a: &[Value], _: &Call) -> Result<Value> {
    let (text, new) = (text_at(a, 0), text_at(a, 1));
    let from = integer_at(a, 2);
    if from <= 0 {
        return Err(negative_length());
    }
    let cut = a.get(3).and_then(Value::as_integer).unwrap_or(new.chars().count() as i64);
    let mut result: String = text.chars().take(from as usize - 1).collect();
    result += new;
    // What is cut may be less than nothing: a part of the text is there twice then.
    result.extend(text.chars().skip((from - 1 + cut).max(0) as usize));
    Ok(Value::Text(result))
}

/// What `substring` wants of a text or of bytes: so many behind so many, from its second and third argument.
fn window(a: &[Value]) -> Result<(usize, usize)> {
    let from = integer_at(a, 1);
    let end = match a.get(2).and_then(Value::as_integer) {
        Some(length) if length < 0 => {
            return Err(negative_length());
        }
        Some(length) => from.saturating_add(length),
        None => i64::MAX,
    };
    let start = from.max(1);
    let count = usize::try_from(end.saturating_sub(start)).unwrap_or(0);
    Ok((usize::try_from(start - 1).unwrap_or(usize::MAX), count))
}

/// The place of bytes in others, from 1; 0 if they are not there.
fn place_of_bytes(part: &[u8], bytes: &[u8]) -> i32 {
    match part.is_empty() {
        true => 1,
        false => bytes.windows(part.len()).position(|window| window == part).map_or(0, |at| at as i32 + 1),
    }
}

/// The parts of a qualified name, as SQL reads them: what is not quoted is folded to lower case.
fn identifiers(text: &str, is_whole: bool) -> Result<Vec<String>> {
    let wrong = |why: &str| {
        let message = format!("string is not a valid identifier: \"{text}\"");
        let error = Error::new(SqlState::INVALID_PARAMETER, message);
        if why.is_empty() { error } else { error.with_detail(why) }
    };
    let mut rest = text.trim_start();
    let mut parts = Vec::new();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (mut part, mut after) = (String::new(), quoted);
            loop {
                let end = after.find('"').ok_or_else(|| wrong("String has unclosed double quotes."))?;
                part += &after[..end];
                after = &after[end + 1..];
                let Some(more) = after.strip_prefix('"') else { break };
                part.push('"');
                after = more;
            }
            if part.is_empty() {
                return Err(wrong("Quoted identifier must not be empty."));
            }
            parts.push(part);
            rest = after;
        } else {
            let continues = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let end = rest.find(|c| !continues(c)).unwrap_or(rest.len());
            let starts = rest.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_');
            if !starts {
                let place = if parts.is_empty() { "" } else { "No valid identifier after \".\"." };
                return Err(wrong(place));
            }
            parts.push(rest[..end].to_lowercase());
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() || !is_whole => return Ok(parts),
            None => return Err(wrong("")),
        }
    }
}

fn no_byte(at: i64, count: usize) -> Error {
    let most = count as i64 - 1;
    Error::new(SqlState(*b"2202E"), format!("index {at} out of valid range, 0..{most}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A pattern of `LIKE` whose escape is another character, or none, as one whose escape is the backslash.
fn with_backslashes(pattern: &str, escape: &str) -> String {
    let mut result = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if escape.starts_with(character) {
            result.push('\\');
            result.extend(characters.next());
        } else {
            if character == '\\' {
                result.push('\\');
            }
            result.push(character);
        }
    }
    result
}

fn joined(arguments: &[Value], call: &Call, from: usize, separator: &str) -> String {
    let texts = arguments.iter().zip(&call.types).skip(from);
    let texts = texts.filter_map(|(value, sql_type)| text(value, sql_type, &call.environment.style));
    texts.collect::<Vec<_>>().join(separator)
}

/// A `character` with the blanks at its end, which count only here and there.
fn with_blanks(a: &[Value], call: &Call) -> String {
    call.types.first().and_then(|sql_type| text(&a[0], sql_type, &call.environment.style)).unwrap_or_default()
}

fn substring(a: &[Value], _: &Call) -> Result<Value> {
    let (start, count) = window(a)?;
    Ok(Value::Text(text_at(a, 0).chars().skip(start).take(count).collect()))
}

fn padded(a: &[Value], at_left: bool) -> Result<Value> {
    let (text, length) = (text_at(a, 0), integer_at(a, 1).max(0) as usize);
    if length > LENGTH {
        return Err(Error::new(SqlState::PROGRAM_LIMIT, "requested length too large"));
    }
    let fill = if a.len() > 2 { text_at(a, 2) } else { " " };
    let all = text.chars().count();
    if all >= length || fill.is_empty() {
        return Ok(Value::Text(text.chars().take(length).collect()));
    }
    let padding: String = fill.chars().cycle().take(length - all).collect();
    Ok(Value::Text(if at_left { padding + text } else { text.to_string() + &padding }))
}

fn position(text: &str, part: &str) -> i32 {
    text.find(part).map_or(0, |at| text[..at].chars().count() as i32 + 1)
}

fn too_few_arguments() -> Error {
    Error::new(SqlState::INVALID_PARAMETER, "too few arguments for format()")
}

/// The place of an argument of `format` by its number.
fn place_of(digits: &str) -> Result<usize> {
    match digits.parse() {
        Ok(at @ 1..) => Ok(at),
        Ok(0) => Err(Error::new(
            SqlState::INVALID_PARAMETER,
            "format specifies argument 0, but arguments are numbered from 1",
        )),
        _ => Err(too_few_arguments()),
    }
}

fn format_text(a: &[Value], call: &Call) -> Result<Value> {
    let Some(Value::Text(template)) = a.first() else { return Ok(Value::Null) };
    let mut result = String::new();
    let mut next = 1;
    let mut characters = template.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            result.push(character);
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = characters.next_if(|c| c.is_ascii_digit() || *c == '-') {
            digits.push(digit);
        }
        let (mut width, mut place) = (0i64, None);
        if characters.next_if_eq(&'$').is_some() {
            place = Some(place_of(&digits)?);
            digits.clear();
            while let Some(digit) = characters.next_if(|c| c.is_ascii_digit() || *c == '-') {
                digits.push(digit);
            }
        }
        if characters.next_if_eq(&'*').is_some() {
            // The width is an argument, the next one or that of a number; of a null there is none.
            let is_left = digits == "-";
            digits.clear();
            while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let is_numbered = !digits.is_empty() && characters.next_if_eq(&'$').is_some();
            let at = if is_numbered { place_of(&digits)? } else { next };
            let given = a.get(at).ok_or_else(too_few_arguments)?;
            width = match given {
                Value::Text(text) => {
                    Value::parse(text, fabius_value::DataType::Int)?.as_integer().unwrap_or(0)
                }
                given => given.as_integer().unwrap_or(0),
            };
            width = if is_left { -width.abs() } else { width };
            next = at + 1;
        } else if !digits.is_empty() {
            width = digits.parse().unwrap_or(0);
        }
        let kind = characters.next().unwrap_or('?');
        if kind == '%' {
            result.push('%');
            continue;
        }
        next = place.unwrap_or(next);
        let value = a.get(next).ok_or_else(too_few_arguments)?;
        let text = call.types.get(next).and_then(|sql_type| text(value, sql_type, &call.environment.style));
        let text = text.unwrap_or_default();
        next += 1;
        let text = match kind {
            's' => text,
            'I' if value.is_null() => {
                return Err(Error::new(
                    SqlState(*b"22004"),
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            'I' => quote_identifier(&text),
            'L' if value.is_null() => "NULL".into(),
            'L' => quote_literal(&text),
            other => {
                return Err(Error::new(
                    SqlState::INVALID_PARAMETER,
                    format!("unrecognized format() type specifier \"{other}\""),
                ));
            }
        };
        let missing = (width.unsigned_abs() as usize).min(LENGTH).saturating_sub(text.chars().count());
        if width > 0 {
            result += &" ".repeat(missing);
        }
        result += &text;
        if width < 0 {
            result += &" ".repeat(missing);
        }
    }
    Ok(Value::Text(result))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode(a: &[Value], _: &Call) -> Result<Value> {
    let bytes = bytes_at(a, 0);
    Ok(Value::Text(match text_at(a, 1) {
        "hex" => hex(&bytes),
        "base64" => {
            let mut text = String::new();
            for chunk in bytes.chunks(3) {
                let number =
                    chunk.iter().fold(0u32, |n, byte| n << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
                for at in 0..4 {
                    let index = (number >> (18 - 6 * at)) as usize & 63;
                    text.push(if at <= chunk.len() { char::from(BASE64[index]) } else { '=' });
                }
            }
            text
        }
        "escape" => bytes
            .iter()
            .map(|byte| match byte {
                b'\\' => "\\\\".to_string(),
                0 | 128.. => format!("\\{byte:03o}"),
                byte => char::from(*byte).to_string(),
            })
            .collect(),
        other => return Err(no_encoding(other)),
    }))
}

fn decode(a: &[Value], _: &Call) -> Result<Value> {
    let text = text_at(a, 0);
    match text_at(a, 1) {
        "hex" => Value::parse(&format!("\\x{text}"), fabius_value::DataType::Bytea)
            .map_err(|_| Error::new(SqlState::INVALID_PARAMETER, "invalid hexadecimal data")),
        "base64" => {
            let written: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
            let padded = written.iter().rev().take_while(|byte| **byte == b'=').count();
            if !written.len().is_multiple_of(4) || padded > 2 {
                return Err(Error::new(SqlState::INVALID_PARAMETER, "invalid base64 end sequence")
                    .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
            }
            let (mut bytes, mut number, mut bits) = (Vec::new(), 0u32, 0);
            for byte in written[..written.len() - padded].iter().copied() {
                let digit = BASE64.iter().position(|b| *b == byte).ok_or_else(|| {
                    Error::new(
                        SqlState::INVALID_PARAMETER,
                        "invalid symbol found while decoding base64 sequence",
                    )
                })?;
                number = number << 6 | digit as u32;
                bits += 6;
                if bits >= 8 {
                    bits -= 8;
                    bytes.push((number >> bits) as u8);
                }
            }
            Ok(Value::Bytea(bytes))
        }
        "escape" => crate::text_format::read(
            text,
            &crate::sql_type::SqlType::Bytea,
            &crate::text_format::TextStyle::default(),
            crate::text_format::Fit::Cast,
        ),
        other => Err(no_encoding(other)),
    }
}

fn no_encoding(name: &str) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, format!("unrecognized encoding: \"{name}\""))
}

/// `array_to_string`'s work.
pub fn join_elements(
    a: &[Value],
    element: &crate::sql_type::SqlType,
    style: &crate::text_format::TextStyle,
) -> String {
    let null = a.get(2).filter(|value| !value.is_null()).map(|_| text_at(a, 2));
    let texts = elements_at(a, 0).into_iter().filter_map(|value| match value {
        Value::Null => null.map(String::from),
        value => text(&value, element, style),
    });
    texts.collect::<Vec<_>>().join(text_at(a, 1))
}
